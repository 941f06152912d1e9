// Opening a model: its format is detected by content, never by name.
#include "engine/import/model_source.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/near_names.h"
#include "engine/import/container/container.h"
#include "engine/import/onnx/reader.h"
#include "engine/import/onnx/source.h"
#include "engine/import/tf/saved_model.h"
#include "engine/import/tf/source.h"
#include "engine/import/tf/text.h"
#include "engine/import/tflite/reader.h"
#include "engine/import/tflite/source.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {
namespace {

// Whether a list that is fed is acceptable for an input of this kind.
bool StandsFor(const TensorList& list, TensorInfo::Kind kind) {
  const bool marked = list.size() > 0 && !list.at(list.size() - 1).valid();
  switch (kind) {
    case TensorInfo::Kind::kTensor:
      return true;  // checked when the graph runs
    case TensorInfo::Kind::kSequence:
      return !marked;
    case TensorInfo::Kind::kOptional:
      return list.size() <= 1 && !marked;
    case TensorInfo::Kind::kOptionalSequence:
      return list.size() == 0 || marked;
  }
  return false;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// The first bytes of a Riegeli file, the format of saved_model.cpb.
constexpr std::string_view kRiegeli("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", 8);
// The last bytes of a sorted table, such as the .index file of a checkpoint.
constexpr std::string_view kSortedTable("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);

// Files that users have but that are not models for this engine: says what they are and what to do.
Status WhatItIs(std::string_view bytes, const std::string& path) {
  if (bytes.empty()) return DataLoss("the file is empty");
  const auto keras = [&](std::string_view what) {
    return Unsupported(what, ", which is not read; in Keras, keras.saving.load_model('", path,
                       "').export('FOLDER') writes a SavedModel");
  };
  if (StartsWith(bytes, "\x89HDF\r\n\x1a\n")) return keras("an HDF5 file (a Keras .h5 model)");
  if (StartsWith(bytes, "PK\x03\x04")) {
    // The central directory of a zip archive is at its end.
    const std::string_view end =
        bytes.substr(bytes.size() - std::min(bytes.size(), size_t{1} << 16));
    if (end.find("model.weights.h5") != std::string_view::npos) return keras("a .keras archive");
    return Unsupported("a zip archive, which is not read");
  }
  if (StartsWith(bytes, kRiegeli)) {
    return Unsupported(
        "a SavedModel in the split form (.cpb), which is not read; in TensorFlow, "
        "tf.saved_model.save(tf.saved_model.load('OLD'), 'NEW') without experimental_image_format "
        "writes saved_model.pb");
  }
  if (bytes.size() > 48 && bytes.substr(bytes.size() - 8) == kSortedTable) {
    return Unsupported(
        "the index of a TensorFlow checkpoint, which holds weights and no graph; in TensorFlow, "
        "restore it into its model and write that with tf.saved_model.save");
  }
  return DataLoss(
      "not a model: neither a SavedModel nor a GraphDef nor ONNX nor TFLite nor our own .oncilla");
}

}  // namespace

Result<TensorInfo> ModelSource::FindVariable(std::string_view name) const {
  ONCILLA_ASSIGN(auto variables, Variables());
  std::vector<std::string> names;
  for (TensorInfo& variable : variables) {
    if (variable.name == name) return std::move(variable);
    names.push_back(std::move(variable.name));
  }
  return WithStage(NotFound("the model has no variable '", name, "'", DidYouMean(name, names)),
                   Stage::kOptions);
}

std::vector<std::string> NamesOf(std::span<const TensorInfo> tensors) {
  std::vector<std::string> names;
  for (const TensorInfo& info : tensors) names.push_back(info.name);
  return names;
}

Status NoSuchTensor(std::string_view role, std::string_view name,
                    const std::vector<std::string>& names) {
  return WithStage(
      NotFound("there is no ", role, " '", name, "'", DidYouMeanAmong(name, names, Listed(names))),
      Stage::kOptions);
}

Status ModelSource::NotFed(std::string_view name, const Fact& wanted) const {
  return WithStage(InvalidArgument("input '", name, "' (", wanted, ") is not fed"),
                   Stage::kOptions);
}

Status ModelSource::CheckFeed(std::string_view name, const Fact&, const Tensor& tensor) const {
  if (!tensor.is_list()) return {};
  for (const Signature& signature : signatures()) {
    for (const TensorInfo& input : signature.inputs) {
      if (input.name == name && !StandsFor(tensor.list(), input.kind)) {
        return WithStage(InvalidArgument("input '", name, "' is ", TypeText(input), ", and a list ",
                                         "of ", tensor.list().size(), " was fed that is none"),
                         Stage::kOptions);
      }
    }
  }
  return {};
}

std::string TypeText(const TensorInfo& info) {
  const std::string tensor = StrCat(Fact::Of(info.dtype, info.shape));
  switch (info.kind) {
    case TensorInfo::Kind::kTensor:
      break;
    case TensorInfo::Kind::kSequence:
      return "sequence<" + tensor + ">";
    case TensorInfo::Kind::kOptional:
      return "optional<" + tensor + ">";
    case TensorInfo::Kind::kOptionalSequence:
      return "optional<sequence<" + tensor + ">>";
  }
  return tensor;
}

Result<const Signature*> ModelSource::FindSignature(std::string_view key) const {
  const std::span<const Signature> all = signatures();
  const auto find = [&](std::string_view name) -> const Signature* {
    for (const Signature& signature : all) {
      if (signature.key == name) return &signature;
    }
    return nullptr;
  };
  if (const Signature* found = find(key); found != nullptr) return found;
  if (key.empty()) {
    if (const Signature* found = find("serving_default"); found != nullptr) return found;
    if (all.size() == 1) return &all[0];
  }
  std::vector<std::string> keys;
  std::string listed;
  for (const Signature& signature : all) {
    if (signature.key.empty()) continue;  // the signature of a format without signature names
    keys.push_back(signature.key);
    listed += (listed.empty() ? "'" : ", '") + signature.key + "'";
  }
  if (listed.empty()) listed = all.empty() ? "none" : "one, without a name";
  if (key.empty()) {
    return WithStage(
        NotFound("no signature is asked for and none is the default; there is: ", listed),
        Stage::kOptions);
  }
  return WithStage(
      NotFound("there is no signature '", key, "'", DidYouMeanAmong(key, keys, listed)),
      Stage::kOptions);
}

Status CheckNoTargets(const ImportRequest& asked, std::string_view format) {
  if (asked.targets.empty()) return {};
  return WithStage(InvalidArgument("target '", asked.targets[0], "': nodes that are run for their ",
                                   "effects are TensorFlow's, and this is ", format),
                   Stage::kOptions);
}

Result<std::unique_ptr<ModelSource>> OpenModel(const std::string& path,
                                               const OpenModelOptions& options) {
  if (FolderExists(path)) return OpenSavedModel(path, options.tags);
  ONCILLA_ASSIGN(auto file, MappedFile::Open(path));
  return OpenModelBytes(std::move(file), options);
}

Status CheckUnchanged(const ModelSource::Files& files) {
  for (const auto& file : files) ONCILLA_TRY(file->CheckUnchanged());
  return {};
}

namespace {

Result<std::unique_ptr<ModelSource>> OpenByContent(std::shared_ptr<const MappedFile> file,
                                                   const OpenModelOptions& options) {
  const std::string path = file->path();
  if (LooksLikeContainer(file->text())) return OpenContainer(std::move(file));
  if (LooksLikeTflite(file->text())) return OpenTflite(std::move(file));
  if (LooksLikeOnnx(file->text())) return OpenOnnx(std::move(file));
  TfFileKind kind = DetectTfFile(file->text());
  const bool is_text = kind == TfFileKind::kUnknown;
  if (is_text) kind = DetectTfText(file->text());
  switch (kind) {
    case TfFileKind::kSavedModel: {
      // The variables are stored next to the file, so its folder is the model.
      const size_t slash = path.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
      return OpenSavedModel(folder, options.tags,
                            slash == std::string::npos ? path : path.substr(slash + 1));
    }
    case TfFileKind::kGraphDef:
      return is_text ? OpenGraphDefText(std::move(file)) : OpenGraphDef(std::move(file));
    case TfFileKind::kUnknown:
      break;
  }
  return WithStage(In(WhatItIs(file->text(), path), path), Stage::kFile);
}

}  // namespace

Result<std::unique_ptr<ModelSource>> OpenModelBytes(std::shared_ptr<const MappedFile> file,
                                                    const OpenModelOptions& options) {
  const std::string path = file->path();
  auto source = OpenByContent(std::move(file), options);
  if (!source.ok() || options.tags.empty() || (*source)->format() == "SavedModel") return source;
  return WithStage(InvalidArgument(path, ": tags choose a graph of a SavedModel, and this is ",
                                   (*source)->format()),
                   Stage::kOptions);
}

}  // namespace oncilla
