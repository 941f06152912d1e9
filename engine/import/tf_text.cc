// Text to bytes. Nesting and size are bounded before protobuf sees the text: its parser recurses,
// and its messages take several times the text's bytes.
#include "engine/import/tf_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <proto/tensorflow_text.pb.h>

#include <algorithm>
#include <array>

namespace oncilla {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxTextBytes = size_t{512} << 20;

// What says what is computed: here an unknown field is not skipped.
constexpr std::array<std::string_view, 9> kStrict = {
    "NodeDef",      "AttrEntry",   "AttrValue",        "AttrValue.ListValue",
    "NameAttrList", "TensorProto", "TensorShapeProto", "TensorShapeProto.Dim",
    "StringEntry"};
// Fields of those that TensorFlow has and that mean nothing to inference, or that the readers
// refuse by the tensor's type.
constexpr std::array<std::string_view, 4> kSkipped = {
    "experimental_debug_info", "experimental_type", "resource_handle_val", "variant_val"};

template <size_t kCount>
bool Has(const std::array<std::string_view, kCount>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// What stands between quotes after `before`; empty when that is not there.
std::string_view Quoted(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find('"'));
}

class Complaints : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& what) override {
    if (!first_.empty()) return;
    std::string plain = what;  // our package is nobody's business
    for (size_t at; (at = plain.find(kPackage)) != std::string::npos;) {
      plain.erase(at, kPackage.size());
    }
    // Both count from 0, and -1 stands for the text as a whole.
    first_ = line < 0 ? StrCat(": ", plain) : StrCat(":", line + 1, ":", column + 1, ": ", plain);
  }
  // Unknown fields that may be skipped are warnings.
  void AddWarning(int line, google::protobuf::io::ColumnNumber column,
                  const std::string& what) override {
    const std::string_view message = Quoted(what, "Message type \"oncilla.tf_text.");
    const std::string_view field = Quoted(what, "no field named \"");
    if (Has(kStrict, message) && !Has(kSkipped, field)) AddError(line, column, what);
  }
  const std::string& first() const { return first_; }

 private:
  static constexpr std::string_view kPackage = "oncilla.tf_text.";
  std::string first_;
};

// True when brackets outside of strings and comments nest at most so deep.
bool NestsAtMost(std::string_view text, int limit) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote || c == '\n') quote = 0;  // no string goes over a line
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '{' || c == '<' || c == '[') {
      if (++depth > limit) return false;
    } else if (c == '}' || c == '>' || c == ']') {
      --depth;
    }
  }
  return true;
}

}  // namespace

TfFileKind DetectTfText(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  size_t at = 0;
  while (at < text.size() && (is_space(text[at]) || text[at] == '#')) {
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
  size_t end = at;
  while (end < text.size() && is_word(text[end]) && end < at + 64) ++end;
  const std::string_view word = text.substr(at, end - at);
  while (end < text.size() && is_space(text[end])) ++end;
  if (end == text.size() || (text[end] != '{' && text[end] != ':' && text[end] != '<')) {
    return TfFileKind::kUnknown;
  }
  if (word == "node" || word == "library" || word == "versions") return TfFileKind::kGraphDef;
  if (word == "saved_model_schema_version" || word == "meta_graphs") return TfFileKind::kSavedModel;
  return TfFileKind::kUnknown;
}

Result<std::string> TfTextToBytes(std::string_view text, TfFileKind kind, const std::string& path) {
  if (text.size() > kMaxTextBytes) {
    return WithStage(Unsupported(path, ": a text of more than 512 MiB; save the binary form"),
                     Stage::kFile);
  }
  const auto fail = [&](const auto&... what) {
    return WithStage(DataLoss(path, what...), Stage::kFile);
  };
  if (!NestsAtMost(text, kMaxDepth)) return fail(": messages nest too deeply");
  Complaints complaints;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&complaints);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxDepth);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  std::string bytes;
  const auto convert = [&](google::protobuf::Message* message) -> Status {
    const bool parsed = parser.Parse(&stream, message);
    if (!complaints.first().empty()) return fail(complaints.first());
    if (!parsed) return fail(": the text cannot be read");
    // Numbers in packed lists may take more bytes than their digits; protobuf stops at 2 GB.
    if (message->ByteSizeLong() > size_t{INT32_MAX} || !message->SerializeToString(&bytes)) {
      return WithStage(Unsupported(path, ": more than 2 GB in the binary form"), Stage::kFile);
    }
    return {};
  };
  tf_text::SavedModel model;
  tf_text::GraphDef graph;
  ONCILLA_TRY(kind == TfFileKind::kSavedModel ? convert(&model) : convert(&graph));
  return bytes;
}

}  // namespace oncilla
