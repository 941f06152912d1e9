// Calls ONNX Runtime, and turns its failures into exceptions.
#include "integrations/onnxruntime/src/ort.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace oncilla::ort {
namespace {

Functions functions;
bool takes_holders = false;

int CodeOf(oncilla_code code) {
  switch (code) {
    case ONCILLA_INVALID_ARGUMENT:
    case ONCILLA_OUT_OF_RANGE:
      return kOrtInvalidArgument;
    case ONCILLA_UNIMPLEMENTED:
      return kOrtNotImplemented;
    case ONCILLA_DATA_LOSS:
      return kOrtInvalidProtobuf;
    // For this code, ONNX Runtime's Python continues with its CPU provider, which is right only if
    // a device is lost.
    case ONCILLA_UNAVAILABLE:
      return kOrtEpFail;
    default:
      return kOrtFail;
  }
}

std::string TextOf(const Status& status) {
  std::string text = "oncilla: " + status.message();
  const std::string node = status.node(), device = status.device();
  if (!node.empty() && text.find(node) == std::string::npos) text += " (node '" + node + "')";
  if (!device.empty() && text.find(device) == std::string::npos) text += " (on " + device + ")";
  return text;
}

// Element types by their number in TensorProto.DataType.
constexpr std::array<int, kOrtLastElementType + 1> kTypes = {
    0,
    ONCILLA_FLOAT32,
    ONCILLA_UINT8,
    ONCILLA_INT8,
    ONCILLA_UINT16,
    ONCILLA_INT16,
    ONCILLA_INT32,
    ONCILLA_INT64,
    ONCILLA_STRING,
    ONCILLA_BOOL,
    ONCILLA_FLOAT16,
    ONCILLA_FLOAT64,
    ONCILLA_UINT32,
    ONCILLA_UINT64,
    ONCILLA_COMPLEX64,
    ONCILLA_COMPLEX128,
    ONCILLA_BFLOAT16,
    ONCILLA_FLOAT8E4M3FN,
    ONCILLA_FLOAT8E4M3FNUZ,
    ONCILLA_FLOAT8E5M2,
    ONCILLA_FLOAT8E5M2FNUZ,
    ONCILLA_UINT4,
    ONCILLA_INT4,
};

}  // namespace

const Functions& Ort() { return functions; }

bool TakesHoldersOfGraphs() { return takes_holders; }

OrtStatus* Connect(const OrtApiBase* base) {
  const void* api = base->GetApi(kApiVersion);
  if (api != nullptr) {
    functions.Fill(api);
    int major = 0, minor = 0;
    takes_holders = std::sscanf(base->GetVersionString(), "%d.%d", &major, &minor) == 2 &&
                    (major > 1 || minor >= 27);
    return nullptr;
  }
  // Even the oldest version of the table has the functions that make a status.
  const void* oldest = base->GetApi(1);
  if (oldest == nullptr) return nullptr;
  const auto create =
      reinterpret_cast<OrtStatus* (*)(int, const char*)>(static_cast<void* const*>(oldest)[0]);
  const std::string message = std::string("oncilla: this is ONNX Runtime ") +
                              base->GetVersionString() +
                              "; providers that are loaded as libraries need 1." +
                              std::to_string(kApiVersion) + " or later";
  return create(kOrtFail, message.c_str());
}

Failure::Failure(const Status& status)
    : std::runtime_error(TextOf(status)), code_(CodeOf(status.code())) {}

void Check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = Ort().GetErrorMessage(status);
  Ort().ReleaseStatus(status);
  throw Failure(kOrtFail, message);
}

void Check(const Status& status) {
  if (!status.ok()) throw Failure(status);
}

void Log(const OrtLogger* logger, int level, const std::string& message) noexcept {
  if (logger == nullptr) return;
  OrtStatus* failed =
      Ort().Logger_LogMessage(logger, level, message.c_str(), "oncilla", 0, "oncilla");
  if (failed != nullptr) Ort().ReleaseStatus(failed);
}

TensorType TypeOf(const OrtTensorInfo* info) {
  TensorType type;
  Check(Ort().GetTensorElementType(info, &type.element));
  type.ranked = Ort().TensorTypeAndShape_HasShape(info);
  if (!type.ranked) return type;
  size_t rank = 0;
  Check(Ort().GetDimensionsCount(info, &rank));
  type.dims.resize(rank);
  std::vector<const char*> names(rank);
  if (rank > 0) {
    Check(Ort().GetDimensions(info, type.dims.data(), rank));
    Check(Ort().GetSymbolicDimensions(info, names.data(), rank));
  }
  for (const char* name : names) type.names.emplace_back(name == nullptr ? "" : name);
  for (int64_t& dim : type.dims) dim = std::max<int64_t>(dim, -1);
  return type;
}

TensorType TypeOf(const OrtValue* value) {
  OrtTensorInfo* info = nullptr;
  Check(Ort().GetTensorTypeAndShape(value, &info));
  const std::unique_ptr<OrtTensorInfo, void (*)(OrtTensorInfo*)> held(
      info, Ort().ReleaseTensorTypeAndShapeInfo);
  TensorType type;
  Check(Ort().GetTensorElementType(info, &type.element));
  size_t rank = 0;
  Check(Ort().GetDimensionsCount(info, &rank));
  type.ranked = true;
  type.dims.resize(rank);
  if (rank > 0) Check(Ort().GetDimensions(info, type.dims.data(), rank));
  return type;
}

oncilla_dtype DTypeOf(int element) {
  const bool known = element > 0 && element <= kOrtLastElementType;
  return static_cast<oncilla_dtype>(known ? kTypes[static_cast<size_t>(element)] : 0);
}

int ElementOf(oncilla_dtype dtype) {
  const auto* found = std::find(kTypes.begin() + 1, kTypes.end(), static_cast<int>(dtype));
  return found == kTypes.end() ? 0 : static_cast<int>(found - kTypes.begin());
}

std::vector<std::string> StringsOf(const OrtValue* value, size_t count) {
  std::vector<std::string> strings(count);
  if (count == 0) return strings;
  size_t bytes = 0;
  Check(Ort().GetStringTensorDataLength(value, &bytes));
  std::string all(bytes, '\0');
  std::vector<size_t> offsets(count);
  Check(Ort().GetStringTensorContent(value, all.data(), bytes, offsets.data(), count));
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? offsets[i + 1] : bytes;
    if (offsets[i] > end || end > bytes)
      throw Failure(kOrtFail, "oncilla: a damaged string tensor");
    strings[i] = all.substr(offsets[i], end - offsets[i]);
  }
  return strings;
}

}  // namespace oncilla::ort
