// Opening a model: its format is found from its content, never from its name.
#include "engine/import/model_source.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/near_names.h"
#include "engine/import/container.h"
#include "engine/import/onnx_reader.h"
#include "engine/import/onnx_source.h"
#include "engine/import/saved_model.h"
#include "engine/import/tf_source.h"

namespace oncilla {
namespace {

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Files that people have and that are no model for us: what they are, and the way out.
Status WhatItIs(std::string_view bytes) {
  if (bytes.empty()) return DataLoss("the file is empty");
  if (StartsWith(bytes, "\x89HDF")) {
    return Unsupported(
        "an HDF5 file (a Keras .h5 model); export a SavedModel with "
        "model.export(folder)");
  }
  if (StartsWith(bytes, "PK\x03\x04")) {
    return Unsupported(
        "a zip archive (a .keras model?); export a SavedModel with "
        "model.export(folder)");
  }
  if (bytes.size() > 8 && StartsWith(bytes.substr(4), "TFL3")) {
    return Unsupported("a TensorFlow Lite model, which is not read");
  }
  if (StartsWith(bytes, "node {") || StartsWith(bytes, "node{") ||
      StartsWith(bytes, "saved_model_schema_version")) {
    return Unsupported("a model in text form (pbtxt), which is not read; save the binary form");
  }
  return DataLoss("not a model: neither a SavedModel nor a GraphDef nor ONNX");
}

}  // namespace

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
    keys.push_back(signature.key);
    listed += (listed.empty() ? "'" : ", '") + signature.key + "'";
  }
  if (listed.empty()) listed = "none";
  if (key.empty()) {
    return WithStage(
        NotFound("no signature is asked for and none is the default; there is: ", listed),
        Stage::kOptions);
  }
  return WithStage(
      NotFound("there is no signature '", key, "'", DidYouMean(key, keys), " There is: ", listed),
      Stage::kOptions);
}

Result<std::unique_ptr<ModelSource>> OpenModel(const std::string& path,
                                               const OpenModelOptions& options) {
  if (FolderExists(path)) return OpenSavedModel(path, options.tags);
  ONCILLA_ASSIGN(auto file, MappedFile::Open(path));
  if (LooksLikeContainer(file->text())) return OpenContainer(std::move(file));
  if (LooksLikeOnnx(file->text())) return OpenOnnx(std::move(file));
  switch (DetectTfFile(file->text())) {
    case TfFileKind::kSavedModel: {
      // The variables lie beside the file, so its folder is the model.
      const size_t slash = path.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
      if (path.substr(slash + 1) == "saved_model.pb") return OpenSavedModel(folder, options.tags);
      return WithStage(Unsupported(path,
                                   ": a SavedModel's graph under another name; it must be "
                                   "saved_model.pb in a folder with its variables"),
                       Stage::kFile);
    }
    case TfFileKind::kGraphDef:
      return OpenGraphDef(std::move(file));
    case TfFileKind::kUnknown:
      break;
  }
  return WithStage(In(WhatItIs(file->text()), path), Stage::kFile);
}

}  // namespace oncilla
