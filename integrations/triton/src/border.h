// Failures at the interface to Triton: exceptions inside the backend, a TRITONSERVER_Error outside.
#pragma once

#include <exception>
#include <oncilla/oncilla.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "integrations/triton/src/abi.h"

namespace oncilla::triton {

class Failure : public std::runtime_error {
 public:
  Failure(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // A failure of the engine, with its message, node and device.
  explicit Failure(const Status& status);
  ErrorCode code() const { return code_; }
  // Memory ran out: fewer rows at once may fit.
  bool out_of_memory() const { return out_of_memory_; }

 private:
  ErrorCode code_;
  bool out_of_memory_ = false;
};

// Throws the failure that a call of Triton or of the engine returned.
void Check(TRITONSERVER_Error* error);
void Check(const Status& status);
template <class T>
T Value(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

// The error for Triton; null only if Triton has no memory for one.
TRITONSERVER_Error* ErrorOf(const Failure& failure) noexcept;

// Runs `body` and turns exceptions into an error.
template <class F>
TRITONSERVER_Error* Guard(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return ErrorOf(failure);
  } catch (const std::bad_alloc&) {
    return TRITONSERVER_ErrorNew(kInternal, "oncilla: the host has no memory left");
  } catch (const std::exception& e) {
    return TRITONSERVER_ErrorNew(kInternal, e.what());
  } catch (...) {
    return TRITONSERVER_ErrorNew(kInternal, "oncilla: an exception of an unknown type");
  }
}

// Writes a line to Triton's log; never fails.
void Log(LogLevel level, const std::string& message) noexcept;

// The text of a message.
std::string JsonOf(TRITONSERVER_Message* message);

// A message that Triton made for the backend, deleted at the end of its scope.
class Message {
 public:
  Message() = default;
  explicit Message(const std::string& json);
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  TRITONSERVER_Message** out() { return &message_; }
  TRITONSERVER_Message* get() const { return message_; }
  std::string json() const { return JsonOf(message_); }

 private:
  TRITONSERVER_Message* message_ = nullptr;
};

}  // namespace oncilla::triton
