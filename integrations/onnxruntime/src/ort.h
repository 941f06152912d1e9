// ONNX Runtime's functions for the rest of the provider, and the conversion of failures: inside
// they are exceptions; only an OrtStatus leaves the library.
#pragma once

#include <cstdint>
#include <exception>
#include <oncilla/oncilla.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "integrations/onnxruntime/src/abi.h"

namespace oncilla::ort {

// The functions of the ONNX Runtime that loaded this library; set once by CreateEpFactories.
const Functions& Ort();
// Null if it is new enough, else a failure that names the required version.
OrtStatus* Connect(const OrtApiBase* base);
// Whether a node with graphs may be taken: before 1.27, ONNX Runtime does not report what those
// graphs read from the enclosing graph.
bool TakesHoldersOfGraphs();

class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // A failure of the engine, with its message, node and device.
  explicit Failure(const Status& status);
  int code() const { return code_; }

 private:
  int code_;
};

// Throws the failure that a call of ONNX Runtime or of the engine returned.
void Check(OrtStatus* status);
void Check(const Status& status);
template <class T>
T Value(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

// Runs `body` and turns exceptions into a status.
template <class F>
OrtStatus* Guard(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return Ort().CreateStatus(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return Ort().CreateStatus(kOrtFail, "oncilla: the host has no memory left");
  } catch (const std::exception& e) {
    return Ort().CreateStatus(kOrtFail, e.what());
  } catch (...) {
    return Ort().CreateStatus(kOrtFail, "oncilla: an exception of an unknown type");
  }
}

// Writes a line to a log of ONNX Runtime; never fails.
void Log(const OrtLogger* logger, int level, const std::string& message) noexcept;

// A tensor's type as ONNX Runtime reports it.
struct TensorType {
  int element = 0;  // of TensorProto.DataType
  bool ranked = false;
  std::vector<int64_t> dims;       // -1: unknown
  std::vector<std::string> names;  // of the sizes; "" where there is none
};
TensorType TypeOf(const OrtTensorInfo* info);
// The type of an existing tensor.
TensorType TypeOf(const OrtValue* value);

// The engine's type, or 0 for one that it does not have or that ONNX Runtime cannot pass.
oncilla_dtype DTypeOf(int element);
int ElementOf(oncilla_dtype dtype);

// The strings of a string tensor of `count` elements.
std::vector<std::string> StringsOf(const OrtValue* value, size_t count);

}  // namespace oncilla::ort
