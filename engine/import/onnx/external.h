// The files beside an ONNX model that contain its large tensors.
//
// A file is opened only inside the model's folder (see MappedFile::OpenBeneath), and a tensor is a
// view into the mapping, which lives as long as this object or any tensor of it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/base/file.h"
#include "engine/import/onnx/tensor.h"

namespace oncilla {

// Not thread-safe.
class OnnxExternalFiles {
 public:
  // Empty: there is no folder, and no file is read.
  explicit OnnxExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  // The file, which is opened once: a later file of the same name is ignored. Unimplemented without
  // a folder.
  Result<std::shared_ptr<const MappedFile>> Open(const std::string& location);
  // DataLoss if offset and length do not fit the file or the tensor.
  Result<Tensor> Read(const OnnxExternalData& data, const TensorDesc& desc);
  // The bytes of the files opened so far.
  int64_t bytes() const;
  void AddTo(std::vector<std::shared_ptr<const MappedFile>>& files) const {
    for (const auto& [name, file] : files_) files.push_back(file);
  }

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace oncilla
