// Converts bytes of requests to tensors, and back.
#include "integrations/triton/src/request.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "integrations/triton/src/border.h"
#include "integrations/triton/src/config.h"

namespace oncilla::triton {
namespace {

constexpr size_t kMostAxes = 64;
// Enough for vector instructions and for all element types.
constexpr size_t kAlignment = 16;

std::string Named(const InputView& input) { return "oncilla: input '" + input.name + "'"; }

size_t ElementBytes(DataType type) {
  switch (type) {
    case kBool:
    case kUint8:
    case kInt8:
      return 1;
    case kUint16:
    case kInt16:
    case kFp16:
    case kBf16:
      return 2;
    case kUint32:
    case kInt32:
    case kFp32:
      return 4;
    case kUint64:
    case kInt64:
    case kFp64:
      return 8;
    default:
      return 0;
  }
}

size_t ElementsOf(const InputView& input) {
  if (input.dims.size() > kMostAxes) {
    throw Failure(kInvalidArgument,
                  Named(input) + " has " + std::to_string(input.dims.size()) + " axes");
  }
  uint64_t elements = 1;
  bool empty = false, overflow = false;
  for (const int64_t size : input.dims) {
    if (size < 0) {
      throw Failure(kInvalidArgument,
                    Named(input) + " has the shape " + ShapeText(input.dims) + "; give all sizes");
    }
    if (size == 0) empty = true;
    overflow |=
        size > 0 && (__builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements) ||
                     elements > uint64_t{1} << 58);
  }
  if (empty) return 0;
  if (overflow) {
    throw Failure(kInvalidArgument,
                  Named(input) + ": the shape " + ShapeText(input.dims) + " is too large");
  }
  return elements;
}

InputView ReadInput(TRITONBACKEND_Input* handle) {
  InputView input;
  const char* name = nullptr;
  const int64_t* shape = nullptr;
  uint32_t rank = 0, buffers = 0;
  TRITONSERVER_DataType type = kNoType;
  uint64_t bytes = 0;
  Check(TRITONBACKEND_InputProperties(handle, &name, &type, &shape, &rank, &bytes, &buffers));
  input.name = name;
  input.type = static_cast<DataType>(type);
  input.dims.assign(shape, shape + rank);
  for (uint32_t i = 0; i < buffers; ++i) {
    const void* data = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = kHost;
    int64_t memory_id = 0;
    Check(TRITONBACKEND_InputBuffer(handle, i, &data, &size, &memory, &memory_id));
    if (memory != kHost && memory != kPinned) {
      throw Failure(kUnsupported,
                    Named(input) + " lies in CUDA memory, which this backend does not read");
    }
    if (size > 0) input.buffers.emplace_back(static_cast<const char*>(data), size);
  }
  return input;
}

void CheckBytes(const InputView& input) {
  const size_t elements = ElementsOf(input), bytes = input.bytes();
  if (input.type == kBytes) return;  // checked when the strings are read
  const size_t each = ElementBytes(input.type);
  if (each == 0) {
    throw Failure(kUnsupported, Named(input) + " has a type that is not supported");
  }
  if (bytes % each != 0 || bytes / each != elements) {
    throw Failure(kInvalidArgument, Named(input) + " has " + std::to_string(bytes) +
                                        " bytes of data; its shape " + ShapeText(input.dims) +
                                        " has " + std::to_string(elements) + " elements of " +
                                        std::to_string(each));
  }
  if (input.type != kBool) return;
  for (const auto& [data, size] : input.buffers) {
    if (std::any_of(data, data + size, [](char c) { return c != 0 && c != 1; })) {
      throw Failure(kInvalidArgument, Named(input) + " has a BOOL that is neither 0 nor 1");
    }
  }
}

// The bytes of one input as one block: in place if they are contiguous, otherwise in `copy`.
std::pair<const char*, size_t> InOnePiece(const InputView& input, std::string& copy) {
  if (input.buffers.size() == 1) return input.buffers[0];
  for (const auto& [data, size] : input.buffers) copy.append(data, size);
  return {copy.data(), copy.size()};
}

void AppendStrings(const InputView& input, std::vector<std::string>& strings) {
  const size_t wanted = ElementsOf(input), before = strings.size();
  std::string copy;
  const auto [data, bytes] = InOnePiece(input, copy);
  size_t at = 0;
  while (at < bytes && strings.size() - before < wanted) {
    uint32_t length = 0;
    const size_t left = bytes - at;
    if (left >= sizeof(length)) std::memcpy(&length, data + at, sizeof(length));
    if (left < sizeof(length) || length > left - sizeof(length)) {
      throw Failure(kInvalidArgument, Named(input) + " ends inside string " +
                                          std::to_string(strings.size() - before));
    }
    at += sizeof(length);
    strings.emplace_back(data + at, length);
    at += length;
  }
  const size_t found = strings.size() - before;
  if (found == wanted && at == bytes) return;
  throw Failure(kInvalidArgument, Named(input) + " holds " + (found < wanted ? "fewer" : "more") +
                                      " strings than its shape has elements (" +
                                      std::to_string(wanted) + ")");
}

std::vector<int64_t> JoinedDims(const std::vector<const InputView*>& parts) {
  std::vector<int64_t> dims = parts[0]->dims;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (__builtin_add_overflow(dims[0], parts[i]->dims[0], &dims[0])) {
      throw Failure(kInvalidArgument, Named(*parts[0]) + ": the batch is too large");
    }
  }
  return dims;
}

// The memory for an output of a response.
char* OutputMemory(TRITONBACKEND_Output* output, const std::string& name, size_t bytes) {
  void* memory = nullptr;
  TRITONSERVER_MemoryType type = kHost;
  int64_t id = 0;
  Check(TRITONBACKEND_OutputBuffer(output, &memory, bytes, &type, &id));
  if (type != kHost && type != kPinned) {
    throw Failure(kUnsupported,
                  "oncilla: output '" + name +
                      "' is wanted in CUDA memory, which this backend does not write");
  }
  return static_cast<char*>(memory);
}

void WriteStrings(TRITONBACKEND_Output* output, const std::string& name, const Tensor& tensor,
                  size_t first, size_t count) {
  std::string bytes;
  for (size_t i = first; i < first + count; ++i) {
    const std::string text = tensor.string(i);
    const auto length = static_cast<uint32_t>(text.size());
    if (length != text.size()) {
      throw Failure(kUnsupported, "oncilla: output '" + name + "' has a string of 4 GB or more");
    }
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes += text;
  }
  char* memory = OutputMemory(output, name, bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
}

}  // namespace

size_t InputView::bytes() const {
  size_t all = 0;
  for (const auto& [data, size] : buffers) all += size;
  return all;
}

void Read(Request& request, bool batches) {
  uint32_t count = 0;
  Check(TRITONBACKEND_RequestInputCount(request.handle, &count));
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Input* input = nullptr;
    Check(TRITONBACKEND_RequestInputByIndex(request.handle, i, &input));
    request.inputs.push_back(ReadInput(input));
    CheckBytes(request.inputs.back());
  }
  std::sort(request.inputs.begin(), request.inputs.end(),
            [](const InputView& a, const InputView& b) { return a.name < b.name; });
  Check(TRITONBACKEND_RequestOutputCount(request.handle, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    Check(TRITONBACKEND_RequestOutputName(request.handle, i, &name));
    request.outputs.emplace_back(name);
  }
  uint64_t timeout = 0;
  Check(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request.handle, &timeout));
  request.timeout_us = static_cast<int64_t>(std::min<uint64_t>(timeout, INT64_MAX / 2));
  if (!batches) return;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InputView& input = request.inputs[i];
    if (input.dims.empty() || (i > 0 && input.dims[0] != request.rows)) {
      throw Failure(kInvalidArgument, Named(input) + " of the shape " + ShapeText(input.dims) +
                                          " has not as many rows as the other inputs (" +
                                          std::to_string(request.rows) + ")");
    }
    request.rows = input.dims[0];
    std::vector<int64_t> dims = input.dims;
    dims[0] = -1;
    request.key += input.name + ':' + std::to_string(input.type) + ShapeText(dims) + ';';
  }
}

Tensor Join(const std::vector<const InputView*>& parts) {
  const std::vector<int64_t> dims = JoinedDims(parts);
  if (parts[0]->type == kBytes) {
    std::vector<std::string> strings;
    for (const InputView* part : parts) AppendStrings(*part, strings);
    return Value(Tensor::Strings(dims, strings));
  }
  const oncilla_dtype dtype = DTypeOf(parts[0]->type);
  const auto& buffers = parts[0]->buffers;
  if (parts.size() == 1 && buffers.size() == 1 &&
      reinterpret_cast<uintptr_t>(buffers[0].first) % kAlignment == 0) {
    return Value(Tensor::Wrap(dtype, dims, buffers[0].first, buffers[0].second));
  }
  size_t bytes = 0;
  for (const InputView* part : parts) bytes += part->bytes();
  const auto joined = std::make_shared<std::string>();
  joined->reserve(bytes);
  for (const InputView* part : parts) {
    for (const auto& [data, size] : part->buffers) joined->append(data, size);
  }
  return Value(Tensor::Wrap(dtype, dims, joined->data(), joined->size(), [joined] {}));
}

void Write(TRITONBACKEND_Response* response, const std::string& name, const Tensor& tensor,
           int64_t first, int64_t count) {
  std::vector<int64_t> dims = tensor.dims();
  const auto all = count < 0 ? size_t{1} : static_cast<size_t>(dims[0]);
  const auto begin = count < 0 ? size_t{0} : static_cast<size_t>(first);
  const auto rows = count < 0 ? size_t{1} : static_cast<size_t>(count);
  if (count >= 0) dims[0] = count;
  if (dims.empty()) dims = {1};  // Triton has no scalars
  TRITONBACKEND_Output* output = nullptr;
  Check(TRITONBACKEND_ResponseOutput(response, &output, name.c_str(), DataTypeOf(tensor.dtype()),
                                     dims.data(), static_cast<uint32_t>(dims.size())));
  if (tensor.dtype() == ONCILLA_STRING) {
    const size_t each = all == 0 ? 0 : tensor.size() / all;
    return WriteStrings(output, name, tensor, each * begin, each * rows);
  }
  const size_t each = all == 0 ? 0 : tensor.bytes() / all;
  char* memory = OutputMemory(output, name, each * rows);
  if (each * rows > 0) {
    std::memcpy(memory, static_cast<const char*>(tensor.raw()) + each * begin, each * rows);
  }
}

bool IsCancelled(const Request& request) noexcept {
  bool cancelled = false;
  TRITONSERVER_Error* error = TRITONBACKEND_RequestIsCancelled(request.handle, &cancelled);
  if (error == nullptr) return cancelled;
  TRITONSERVER_ErrorDelete(error);
  return false;
}

}  // namespace oncilla::triton
