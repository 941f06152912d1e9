// Calls Triton, and turns its failures into exceptions.
#include "integrations/triton/src/border.h"

namespace oncilla::triton {
namespace {

ErrorCode CodeOf(oncilla_code code) {
  switch (code) {
    case ONCILLA_INVALID_ARGUMENT:
    case ONCILLA_OUT_OF_RANGE:
      return kInvalidArgument;
    case ONCILLA_NOT_FOUND:
      return kNotFound;
    case ONCILLA_ALREADY_EXISTS:
      return kAlreadyExists;
    case ONCILLA_UNIMPLEMENTED:
      return kUnsupported;
    case ONCILLA_CANCELLED:
      return kCancelled;
    // Triton has no codes for these. This one becomes HTTP 503, which means that a retry may
    // succeed.
    case ONCILLA_RESOURCE_EXHAUSTED:
    case ONCILLA_DEADLINE_EXCEEDED:
    case ONCILLA_UNAVAILABLE:
      return kUnavailable;
    default:
      return kInternal;
  }
}

std::string TextOf(const Status& status) {
  std::string text = "oncilla: " + status.message();
  const std::string node = status.node(), device = status.device();
  if (!node.empty() && text.find(node) == std::string::npos) text += " (node '" + node + "')";
  if (!device.empty() && text.find(device) == std::string::npos) text += " (on " + device + ")";
  return text;
}

}  // namespace

Failure::Failure(const Status& status)
    : std::runtime_error(TextOf(status)),
      code_(CodeOf(status.code())),
      out_of_memory_(status.code() == ONCILLA_RESOURCE_EXHAUSTED) {}

void Check(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  const auto code = static_cast<ErrorCode>(TRITONSERVER_ErrorCode(error));
  const std::string message = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  throw Failure(code, message);
}

void Check(const Status& status) {
  if (!status.ok()) throw Failure(status);
}

TRITONSERVER_Error* ErrorOf(const Failure& failure) noexcept {
  return TRITONSERVER_ErrorNew(failure.code(), failure.what());
}

void Log(LogLevel level, const std::string& message) noexcept {
  if (!TRITONSERVER_LogIsEnabled(level)) return;
  TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, "oncilla", 0, message.c_str());
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

Message::Message(const std::string& json) {
  Check(TRITONSERVER_MessageNewFromSerializedJson(&message_, json.data(), json.size()));
}

Message::~Message() {
  if (message_ == nullptr) return;
  TRITONSERVER_Error* error = TRITONSERVER_MessageDelete(message_);
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

std::string JsonOf(TRITONSERVER_Message* message) {
  const char* base = nullptr;
  size_t size = 0;
  Check(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  return {base, size};
}

}  // namespace oncilla::triton
