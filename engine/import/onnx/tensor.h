// Converts ONNX's element types and TensorProto to ours.
//
// Fields and numbers follow onnx.proto. Types that ONNX does not define are kept as numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/import/onnx/reader.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// kInvalid for types that the engine does not have.
DType DTypeFromOnnx(int64_t onnx_type);
// "FLOAT", "INT4", ... or "type 99" for undefined numbers.
std::string OnnxTypeName(int64_t onnx_type);

// The location of a tensor's bytes outside its message.
struct OnnxExternalData {
  std::string location;  // relative to the model's folder
  int64_t offset = 0;
  int64_t length = -1;  // to the end of the file
};
// Returns the bytes, checked against the file, as a tensor of this desc.
using OnnxExternalReader =
    std::function<Result<Tensor>(const OnnxExternalData&, const TensorDesc&)>;

// The files that contain bytes of a tensor, if the tensor is external. Throws WireError.
std::vector<std::string> OnnxExternalLocations(const OnnxTensorData& tensor);

struct OnnxTensor {
  std::string name;
  Tensor value;
};

// Reads a TensorProto. Raw data become a view that shares `owner`; typed lists are copied. Without
// `external`, tensors with external data are refused. Throws WireError.
Result<OnnxTensor> TensorFromOnnx(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                                  const OnnxExternalReader& external = nullptr);

// Reads a SparseTensorProto as a dense tensor, copied. Throws WireError.
Result<Tensor> DenseFromOnnx(Bytes sparse_proto, const OnnxExternalReader& external);

}  // namespace oncilla
