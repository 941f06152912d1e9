// ONNX's element types and TensorProto, as ours.
//
// Fields and numbers after onnx.proto. A number that ONNX has not defined is known as such.
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
// "FLOAT", "INT4", ... or "type 99" for numbers nobody defined.
std::string OnnxTypeName(int64_t onnx_type);

// Where the bytes of a tensor stand that its message does not hold.
struct OnnxExternalData {
  std::string location;  // relative to the model's folder
  int64_t offset = 0;
  int64_t length = -1;  // to the end of the file
};
// Gives the bytes, checked against the file, as a tensor of this desc.
using OnnxExternalReader =
    std::function<Result<Tensor>(const OnnxExternalData&, const TensorDesc&)>;

// The files that bytes of a tensor stand in, where it does not hold them itself. Throws WireError.
std::vector<std::string> OnnxExternalLocations(const OnnxTensorData& tensor);

struct OnnxTensor {
  std::string name;
  Tensor value;
};

// A TensorProto. Raw data become a view that shares `owner`; typed lists are copied out. Without
// `external`, tensors with external data are refused. Throws WireError.
Result<OnnxTensor> TensorFromOnnx(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                                  const OnnxExternalReader& external = nullptr);

// A SparseTensorProto as a dense tensor, copied out. Throws WireError.
Result<Tensor> DenseFromOnnx(Bytes sparse_proto, const OnnxExternalReader& external);

}  // namespace oncilla
