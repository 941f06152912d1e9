// The C interface: cancellation, asynchronous runs, tensors on devices, callables.
#include "engine/api/handles.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace oncilla::api {

Result<CallOptions> ReadCallOptions(const oncilla_call_options* options) {
  oncilla_call_options given{};
  ONCILLA_TRY(ReadStruct(options, "oncilla_call_options", &given));
  if (given.timeout_ms < 0) return InvalidArgument("timeout_ms is ", given.timeout_ms);
  CallOptions call;
  call.timeout = std::chrono::milliseconds(given.timeout_ms);
  if (given.cancellation != nullptr) call.cancel = given.cancellation->token;
  return call;
}

}  // namespace oncilla::api

oncilla_status* oncilla_cancellation_create(oncilla_cancellation** cancellation) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(cancellation, "cancellation"));
    *cancellation = new oncilla_cancellation{CancellationToken::Create()};
    return Status();
  });
}
void oncilla_cancellation_cancel(oncilla_cancellation* cancellation) {
  if (cancellation != nullptr) cancellation->token.Cancel();
}
void oncilla_cancellation_free(oncilla_cancellation* cancellation) { delete cancellation; }

oncilla_status* oncilla_model_run_async(oncilla_model* model, const char* const* input_names,
                                        const oncilla_tensor* const* inputs, size_t input_count,
                                        const oncilla_run_options* options, oncilla_done_fn done,
                                        void* user, oncilla_run** run) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(run, "run"));
    RunRequest request;
    ONCILLA_TRY(ReadRunRequest(input_names, inputs, input_count, options, &request));
    std::function<void(const RunHandle&)> tell;
    if (done != nullptr) tell = [done, user](const RunHandle&) { done(user); };
    ONCILLA_ASSIGN(RunHandle handle, model->model->RunAsync(std::move(request), std::move(tell)));
    *run = new oncilla_run{std::move(handle)};
    return Status();
  });
}
int oncilla_run_done(const oncilla_run* run) {
  return run != nullptr && run->handle.Done() ? 1 : 0;
}
oncilla_status* oncilla_run_wait(oncilla_run* run, int64_t timeout_ms, oncilla_result** result) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(run, "run"));
    ONCILLA_TRY(NeedHandle(result, "result"));
    *result = nullptr;
    const Deadline deadline = timeout_ms < 0 ? kNoDeadline
                                             : DeadlineAfter(std::chrono::steady_clock::now(),
                                                             std::chrono::milliseconds(timeout_ms));
    if (!run->handle.Wait(deadline)) {
      return Error(Code::kDeadlineExceeded, "the run is not over after ", timeout_ms, " ms");
    }
    ONCILLA_ASSIGN(RunResult ran, run->handle.Take());
    *result = MakeResult(std::move(ran)).release();
    return Status();
  });
}
void oncilla_run_cancel(oncilla_run* run) {
  if (run != nullptr) run->handle.Cancel();
}
void oncilla_run_free(oncilla_run* run) { delete run; }

oncilla_status* oncilla_session_close_within(oncilla_session* session, int cancel,
                                             int64_t timeout_ms, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    if (timeout_ms < 0) return InvalidArgument("timeout_ms is ", timeout_ms);
    CloseOptions options;
    options.mode = cancel != 0 ? CloseMode::kCancel : CloseMode::kDrain;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    const int64_t bytes = session->session->Close(options).bytes;
    if (released_bytes != nullptr) *released_bytes = bytes;
    return Status();
  });
}

const char* oncilla_tensor_device(const oncilla_tensor* tensor) {
  return tensor == nullptr || !tensor->device.valid() ? "" : tensor->device.device_name().c_str();
}
oncilla_status* oncilla_tensor_read(const oncilla_tensor* tensor, oncilla_tensor** host) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_TRY(NeedHandle(host, "host"));
    ONCILLA_ASSIGN(Tensor value, tensor->value().ToHost());
    *host = new oncilla_tensor(MakeTensor(std::move(value)));
    return Status();
  });
}
oncilla_status* oncilla_session_upload(oncilla_session* session, const char* device,
                                       const oncilla_tensor* tensor, oncilla_tensor** on_device) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedTensor(tensor, "tensor"));
    ONCILLA_TRY(NeedHandle(on_device, "on_device"));
    ONCILLA_ASSIGN(const Tensor host, tensor->value().ToHost());
    ONCILLA_ASSIGN(RunValue copy,
                   session->session->device_set().ToDevice(host, device != nullptr ? device : ""));
    *on_device = new oncilla_tensor(MakeTensor(std::move(copy)));
    return Status();
  });
}

oncilla_status* oncilla_model_make_callable(oncilla_model* model,
                                            const oncilla_callable_options* options,
                                            oncilla_callable** callable) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(callable, "callable"));
    oncilla_callable_options given{};
    ONCILLA_TRY(ReadStruct(options, "oncilla_callable_options", &given));
    CallableOptions wanted;
    if (given.signature != nullptr) wanted.signature = given.signature;
    ONCILLA_TRY(ReadNames(given.inputs, given.input_count, "inputs", &wanted.feeds));
    ONCILLA_TRY(ReadNames(given.outputs, given.output_count, "outputs", &wanted.fetches));
    ONCILLA_TRY(ReadNames(given.targets, given.target_count, "targets", &wanted.targets));
    ONCILLA_TRY(ReadNames(given.keep, given.keep_count, "keep", &wanted.keep));
    wanted.keep_all = given.keep_all != 0;
    ONCILLA_ASSIGN(auto made, Callable::Create(model->model, std::move(wanted)));
    *callable = new oncilla_callable{std::move(made)};
    return Status();
  });
}

namespace {

std::unique_ptr<oncilla_result> MakeResult(const std::vector<std::string>& names,
                                           std::vector<RunValue> values) {
  auto handle = std::make_unique<oncilla_result>();
  handle->names = names;
  for (RunValue& value : values) handle->tensors.push_back(MakeTensor(std::move(value)));
  return handle;
}

}  // namespace

oncilla_status* oncilla_callable_run(oncilla_callable* callable,
                                     const oncilla_tensor* const* inputs, size_t input_count,
                                     const oncilla_call_options* options, oncilla_result** result) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(callable, "callable"));
    ONCILLA_TRY(NeedHandle(result, "result"));
    ONCILLA_ASSIGN(const CallOptions call, ReadCallOptions(options));
    if (input_count > 0) ONCILLA_TRY(NeedHandle(inputs, "inputs"));
    std::vector<RunValue> feeds;
    feeds.reserve(input_count);
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i] == nullptr) return InvalidArgument("inputs[", i, "] is null");
      feeds.push_back(inputs[i]->value());
    }
    ONCILLA_ASSIGN(auto out, callable->callable->Run(feeds, call));
    *result = MakeResult(callable->callable->outputs(), std::move(out)).release();
    return Status();
  });
}
void oncilla_callable_free(oncilla_callable* callable) { delete callable; }

oncilla_status* oncilla_prefetcher_create(oncilla_callable* callable, oncilla_source_fn source,
                                          void* user, int depth, oncilla_prefetcher** prefetcher) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(callable, "callable"));
    ONCILLA_TRY(NeedHandle(reinterpret_cast<const void*>(source), "source"));
    ONCILLA_TRY(NeedHandle(prefetcher, "prefetcher"));
    const auto fill = [source, user](std::span<Tensor> feeds) -> Result<bool> {
      std::vector<const oncilla_tensor*> inputs(feeds.size());
      const int answer = source(user, inputs.data(), inputs.size());
      if (answer == 0) return false;
      if (answer == 2) {
        return InvalidArgument("the source gave more than the ", inputs.size(),
                               " inputs that the callable takes");
      }
      if (answer != 1) return Error(Code::kAborted, "the source failed with ", answer);
      for (size_t i = 0; i < feeds.size(); ++i) {
        if (inputs[i] == nullptr) continue;  // the prefetcher says which
        ONCILLA_ASSIGN(feeds[i], inputs[i]->value().ToHost());
      }
      return true;
    };
    ONCILLA_ASSIGN(auto made, Prefetcher::Create(callable->callable, fill, depth == 0 ? 2 : depth));
    *prefetcher = new oncilla_prefetcher{std::move(made), callable->callable->outputs()};
    return Status();
  });
}
oncilla_status* oncilla_prefetcher_next(oncilla_prefetcher* prefetcher,
                                        const oncilla_call_options* options,
                                        oncilla_result** result) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(prefetcher, "prefetcher"));
    ONCILLA_TRY(NeedHandle(result, "result"));
    *result = nullptr;
    ONCILLA_ASSIGN(const CallOptions call, ReadCallOptions(options));
    ONCILLA_ASSIGN(auto out, prefetcher->prefetcher->Next(call));
    if (!out.has_value()) return Status();
    *result = MakeResult(prefetcher->outputs, *std::move(out)).release();
    return Status();
  });
}
void oncilla_prefetcher_free(oncilla_prefetcher* prefetcher) { delete prefetcher; }
