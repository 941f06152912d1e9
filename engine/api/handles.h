// The structs behind the opaque handles of oncilla.h, and the guards at the C interface.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "engine/api/oncilla.h"
#include "engine/api/oncilla_opencl.h"
#include "engine/api/oncilla_precision.h"
#include "engine/base/caught.h"
#include "engine/session/callable.h"
#include "engine/session/model.h"
#include "engine/session/precision_check.h"
#include "engine/session/prefetch.h"

struct oncilla_status {
  oncilla::Status status;
  oncilla::StatusDetails details;
  std::string message, stage;
};
struct oncilla_runtime {
  std::shared_ptr<oncilla::Runtime> runtime;
};
struct oncilla_session {
  std::shared_ptr<oncilla::Session> session;
  std::string config;
};
struct oncilla_tensor {
  oncilla::Tensor tensor;        // invalid if it is on a device
  oncilla::DeviceTensor device;  // invalid otherwise
  std::vector<int64_t> dims;
  const oncilla::TensorDesc& desc() const { return device.valid() ? device.desc() : tensor.desc(); }
  oncilla::RunValue value() const {
    return device.valid() ? oncilla::RunValue(device) : oncilla::RunValue(tensor);
  }
};
struct oncilla_cancellation {
  oncilla::CancellationToken token;
};
struct oncilla_run {
  oncilla::RunHandle handle;
};
struct oncilla_prefetcher {
  std::unique_ptr<oncilla::Prefetcher> prefetcher;
  std::vector<std::string> outputs;
};
struct oncilla_enqueued {
  oncilla::EnqueuedRun run;
};
struct oncilla_precision_check {
  oncilla::PrecisionCheck check;
  std::string text;
};
struct oncilla_callable {
  std::shared_ptr<oncilla::Callable> callable;
};
struct oncilla_model {
  std::shared_ptr<oncilla::Model> model;
  // Shapes as C arrays, per signature: inputs, then outputs.
  std::vector<std::vector<std::vector<int64_t>>> dims;
  // The variables and their shapes, filled on first request.
  mutable std::once_flag listed = {};
  mutable oncilla::Status variables_status = {};
  mutable std::vector<oncilla::TensorInfo> variables = {};
  mutable std::vector<std::vector<int64_t>> variable_dims = {};
};
struct oncilla_result {
  std::vector<std::string> names;
  std::vector<oncilla_tensor> tensors;
  std::unique_ptr<const oncilla::RunReport> report = nullptr;  // a callable's results have none
  mutable std::string line = {};  // the report, filled on first request
};

namespace oncilla::api {

// Null for success. If there is no memory for a handle, returns a static one that says so and need
// not be freed.
oncilla_status* ToHandle(const Status& status) noexcept;

// Runs `body`, which returns a Status, and turns exceptions into failures.
template <class F>
oncilla_status* Guard(F&& body) noexcept {
  return ToHandle(Fenced(std::forward<F>(body)));
}

Status NeedHandle(const void* handle, std::string_view what);

// Held by functions of the caller: the destruction of the last copy calls `done`, which may be
// null, if the call that took the functions has succeeded.
struct LastCall {
  LastCall(void (*call)(void*), void* with) : done(call), user(with) {}
  ~LastCall() {
    if (succeeded && done != nullptr) done(user);
  }
  LastCall(const LastCall&) = delete;
  LastCall& operator=(const LastCall&) = delete;

  void (*const done)(void* user);
  void* const user;
  std::atomic<bool> succeeded{false};
};

// The largest size that a struct of a later version can have; a larger one was not set by the
// caller.
inline constexpr size_t kMostStructBytes = 4096;

// InvalidArgument for a `size` that no version of a struct can have.
inline Status CheckStructSize(size_t size, std::string_view what) {
  if (size < sizeof(size_t)) return InvalidArgument(what, ": size is not set");
  if (size > kMostStructBytes) {
    return InvalidArgument(what, ": size is ", size, ", more than a struct can have (",
                           kMostStructBytes, "); set it to sizeof(", what, ")");
  }
  return Status();
}

// Copies a struct that begins with its size into `ours`, which holds the defaults. Of a shorter
// struct the fields that it has are copied; a longer one is refused unless its tail is zero. Null
// means all defaults.
template <class T>
Status ReadStruct(const T* given, std::string_view what, T* ours) {
  if (given == nullptr) return Status();
  const size_t size = given->size;
  ONCILLA_TRY(CheckStructSize(size, what));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return InvalidArgument(what, ": byte ", i, " is set, which this version (", sizeof(T),
                             " bytes) does not know");
    }
  }
  std::memcpy(ours, given, size < sizeof(T) ? size : sizeof(T));
  ours->size = sizeof(T);
  return Status();
}

// Fills as much of the caller's struct as its size has room for.
template <class T>
Status WriteStruct(T value, T* to, std::string_view what) {
  ONCILLA_TRY(NeedHandle(to, what));
  ONCILLA_TRY(CheckStructSize(to->size, what));
  value.size = to->size;
  std::memcpy(to, &value, to->size < sizeof(T) ? to->size : sizeof(T));
  return Status();
}

// The sizes of a shape; -1 for an unknown one.
std::vector<int64_t> DimsOf(const PartialShape& shape);
// The name and `dims` must live as long as the caller's struct.
Status WriteTensorInfo(const TensorInfo& from, const std::vector<int64_t>& dims,
                       oncilla_tensor_info* info);

oncilla_dtype ToC(DType dtype);
// kInvalid for a number that is not a type.
DType FromC(oncilla_dtype dtype);
Result<Shape> ReadShape(const int64_t* dims, size_t rank);
// `last` receives the LastCall of the functions in the options.
Result<RuntimeOptions> ReadRuntimeOptions(const oncilla_runtime_options* options,
                                          std::shared_ptr<LastCall>* last);
// Notes about a ConfigProto go to the runtime's log.
Result<SessionOptions> ReadSessionOptions(const oncilla_session_options* options, Runtime& runtime);
Result<CallOptions> ReadCallOptions(const oncilla_call_options* options);
// `usual` stands for ONCILLA_STORED_DEVICES_DEFAULT.
Result<OpenModelOptions> ReadLoadOptions(const oncilla_load_options& given, StoredDevices usual);
// Returns the model that `load` returns; with ONCILLA_LOAD_EAGER prepared, and unloaded if that
// fails. Reports progress to given.progress.
Result<std::shared_ptr<Model>> LoadAsAsked(
    const oncilla_load_options& given, const std::function<Result<std::shared_ptr<Model>>()>& load);
std::unique_ptr<oncilla_model> MakeModel(std::shared_ptr<Model> loaded);
oncilla_tensor MakeTensor(RunValue value);
// InvalidArgument for a null name, and for a null array with a count.
Status ReadNames(const char* const* names, size_t count, std::string_view what,
                 std::vector<std::string>* out);
Status ReadRunRequest(const char* const* input_names, const oncilla_tensor* const* inputs,
                      size_t input_count, const oncilla_run_options* options, RunRequest* request);
// InvalidArgument for null, and for a sequence or an optional value.
Status NeedTensor(const oncilla_tensor* tensor, std::string_view what);
// The same for an element of an array; its name is formatted only for a failure.
Status NeedTensor(const oncilla_tensor* tensor, std::string_view what, size_t index);
std::unique_ptr<oncilla_result> MakeResult(RunResult ran);

}  // namespace oncilla::api
