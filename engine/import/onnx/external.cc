// The bounds of a tensor in its file are checked here, before a view of it exists.
#include "engine/import/onnx/external.h"

namespace oncilla {

Result<std::shared_ptr<const MappedFile>> OnnxExternalFiles::Open(const std::string& location) {
  if (folder_.empty()) {
    return WithStage(Unsupported("its data is in the file '", location,
                                 "', and a model that is loaded from bytes has no folder for it"),
                     Stage::kLoad);
  }
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  auto opened = MappedFile::OpenBeneath(folder_, location);
  if (!opened.ok()) return In(opened.status(), "external data");
  return files_[location] = *std::move(opened);
}

Result<Tensor> OnnxExternalFiles::Read(const OnnxExternalData& data, const TensorDesc& desc) {
  ONCILLA_ASSIGN(const std::shared_ptr<const MappedFile> file, Open(data.location));
  ONCILLA_TRY(file->CheckUnchanged());
  const auto size = static_cast<int64_t>(file->bytes().size());
  const int64_t bytes = desc.bytes();
  if (data.length >= 0 && data.length != bytes) {
    return DataLoss("external data of ", data.length, " bytes for ", desc, ", which needs ", bytes);
  }
  if (data.offset > size || bytes > size - data.offset) {
    return DataLoss("external data at ", data.offset, " of ", bytes, " bytes; the file '",
                    file->path(), "' has ", size);
  }
  Tensor tensor = Tensor::View(
      desc, file->bytes().subspan(static_cast<size_t>(data.offset), static_cast<size_t>(bytes)),
      file);
  tensor.set_mapped();
  return tensor;
}

int64_t OnnxExternalFiles::bytes() const {
  int64_t total = 0;
  for (const auto& [name, file] : files_) total += static_cast<int64_t>(file->bytes().size());
  return total;
}

}  // namespace oncilla
