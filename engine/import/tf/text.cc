// Detects text forms by their first word, and converts them to the binary form.
#include "engine/import/tf/text.h"

#include <algorithm>

#include "engine/import/tf/text_schema.h"

namespace oncilla {
namespace {

constexpr size_t kMaxTextBytes = size_t{512} << 20;

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
  return TextToWire(text, kind == TfFileKind::kSavedModel ? kSavedModelSchema : kGraphDefSchema,
                    [&](TextPosition at, std::string what) {
                      return WithStage(DataLoss(path, ":", at.line, ":", at.column, ": ", what),
                                       Stage::kFile);
                    });
}

}  // namespace oncilla
