// Runs a part of a graph: inputs are read in place, outputs written to ONNX Runtime's memory.
#include "integrations/onnxruntime/src/compute.h"

#include <cstring>

#include "integrations/onnxruntime/src/ort.h"

namespace oncilla::ort {
namespace {

// A view of ONNX Runtime's tensor, which lives until the node has run; strings are copied.
Tensor InputOf(const OrtValue* value, const std::string& name) {
  const TensorType type = TypeOf(value);
  const oncilla_dtype dtype = DTypeOf(type.element);
  if (dtype == 0) {
    throw Failure(kOrtNotImplemented, "oncilla: input '" + name + "' has the element type " +
                                          std::to_string(type.element));
  }
  oncilla_tensor* tensor = nullptr;
  if (dtype == ONCILLA_STRING) {
    size_t count = 1;
    for (const int64_t dim : type.dims) count *= static_cast<size_t>(dim);
    const std::vector<std::string> strings = StringsOf(value, count);
    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    for (const std::string& text : strings) {
      texts.push_back(text.data());
      lengths.push_back(text.size());
    }
    Check(Status(oncilla_tensor_create_strings(type.dims.data(), type.dims.size(), texts.data(),
                                               lengths.data(), texts.size(), &tensor)));
    return Tensor::Adopt(tensor);
  }
  size_t bytes = 0;
  const void* data = nullptr;
  Check(Ort().GetTensorSizeInBytes(value, &bytes));
  if (bytes > 0) Check(Ort().GetTensorData(value, &data));
  Check(Status(oncilla_tensor_wrap(dtype, type.dims.data(), type.dims.size(), data, bytes, nullptr,
                                   nullptr, &tensor)));
  return Tensor::Adopt(tensor);
}

void GiveOutput(OrtKernelContext* context, size_t index, const oncilla_tensor* from) {
  const size_t rank = oncilla_tensor_rank(from);
  OrtValue* value = nullptr;
  Check(Ort().KernelContext_GetOutput(context, index, oncilla_tensor_dims(from), rank, &value));
  if (value == nullptr) return;  // no reader
  const TensorType type = TypeOf(value);
  if (DTypeOf(type.element) != oncilla_tensor_dtype(from)) {
    throw Failure(kOrtFail, "oncilla: output " + std::to_string(index) +
                                " is of another type than the model states (" +
                                std::to_string(type.element) + ")");
  }
  const size_t count = oncilla_tensor_elements(from);
  if (oncilla_tensor_dtype(from) == ONCILLA_STRING) {
    // ONNX Runtime takes strings that end with a zero byte.
    std::vector<const char*> texts(count);
    for (size_t i = 0; i < count; ++i) {
      size_t length = 0;
      texts[i] = oncilla_tensor_string(from, i, &length);
      if (std::strlen(texts[i]) != length) {
        throw Failure(kOrtFail, "oncilla: output " + std::to_string(index) +
                                    " holds a string with a zero byte, which cannot be handed "
                                    "over to ONNX Runtime");
      }
    }
    if (count > 0) Check(Ort().FillStringTensor(value, texts.data(), count));
    return;
  }
  const size_t bytes = oncilla_tensor_bytes(from);
  size_t room = 0;
  Check(Ort().GetTensorSizeInBytes(value, &room));
  if (room != bytes) {
    throw Failure(kOrtFail, "oncilla: output " + std::to_string(index) + " has " +
                                std::to_string(bytes) + " bytes, and ONNX Runtime's tensor " +
                                std::to_string(room));
  }
  void* data = nullptr;
  if (bytes == 0) return;
  Check(Ort().GetTensorMutableData(value, &data));
  std::memcpy(data, oncilla_tensor_data(from), bytes);
}

}  // namespace

Compute::Compute(Model model, std::vector<Input> inputs, std::vector<std::string> outputs)
    : OrtNodeComputeInfo{},
      model_(std::move(model)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {
  version = kStructVersion;
  CreateState = [](OrtNodeComputeInfo* self, OrtComputeContext*, void** state) -> OrtStatus* {
    *state = self;
    return nullptr;
  };
  OrtNodeComputeInfo::Compute = &Compute::Run;
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

OrtStatus* Compute::Run(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  return Guard([&] { static_cast<const class Compute*>(self)->Run(context); });
}

void Compute::Run(OrtKernelContext* context) const {
  Model::Inputs inputs;
  for (const Input& input : inputs_) {
    const OrtValue* value = nullptr;
    Check(Ort().KernelContext_GetInput(context, input.index, &value));
    if (value == nullptr) {
      throw Failure(kOrtInvalidArgument, "oncilla: input '" + input.name + "' is missing");
    }
    inputs.emplace_back(input.name, InputOf(value, input.name));
  }
  RunOptions options;
  options.outputs = outputs_;
  const RunResult result = Value(model_.Run(inputs, options));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    GiveOutput(context, i, result[outputs_[i]].get());
  }
}

}  // namespace oncilla::ort
