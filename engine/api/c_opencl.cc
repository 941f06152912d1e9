// The C interface: the application's OpenCL objects (oncilla_opencl.h). Handles are passed through
// unchanged; only the backend interprets them.
#include "engine/api/handles.h"
#include "engine/device/linked_backends.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace {

Result<std::vector<RunValue>> ReadValues(const oncilla_tensor* const* tensors, size_t count,
                                         std::string_view what) {
  if (count > 0) ONCILLA_TRY(NeedHandle(tensors, what));
  std::vector<RunValue> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    ONCILLA_TRY(NeedTensor(tensors[i], what, i));
    values.push_back(tensors[i]->value());
  }
  return values;
}

// Null tensors become invalid ones, which mean no target.
Result<std::vector<DeviceTensor>> ReadTargets(const oncilla_tensor* const* tensors, size_t count) {
  if (count > 0) ONCILLA_TRY(NeedHandle(tensors, "outputs"));
  std::vector<DeviceTensor> targets(count);
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) continue;
    if (!tensors[i]->device.valid()) {
      return InvalidArgument("outputs[", i, "] is in host memory");
    }
    targets[i] = tensors[i]->device;
  }
  return targets;
}

}  // namespace

oncilla_status* oncilla_opencl_runtime_create(const oncilla_runtime_options* options,
                                              const oncilla_opencl_host* host,
                                              oncilla_runtime** runtime) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    ONCILLA_TRY(NeedHandle(host, "host"));
    oncilla_opencl_host given{};
    ONCILLA_TRY(ReadStruct(host, "oncilla_opencl_host", &given));
    HostHandles handles;
    handles.context = given.context;
    handles.device = given.device;
    if (given.library != nullptr) handles.library = given.library;
    if (given.entry_point != nullptr) {
      handles.entry_point = [&](const char* name) { return given.entry_point(given.user, name); };
    }
    std::shared_ptr<LastCall> last;
    ONCILLA_ASSIGN(RuntimeOptions ours, ReadRuntimeOptions(options, &last));
    ONCILLA_ASSIGN(HostDevice borrowed, BorrowOpenCl(handles));
    ours.host_devices.push_back(std::move(borrowed));
    *runtime = new oncilla_runtime{Runtime::Create(std::move(ours))};
    last->succeeded = true;
    return Status();
  });
}

oncilla_status* oncilla_opencl_wrap(oncilla_session* session, void* buffer, size_t offset,
                                    oncilla_dtype dtype, const int64_t* dims, size_t rank,
                                    oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_ASSIGN(Shape shape, ReadShape(dims, rank));
    TensorDesc desc{FromC(dtype), std::move(shape)};
    if (desc.dtype == DType::kInvalid) {
      return InvalidArgument("dtype ", static_cast<int>(dtype), " is not a type");
    }
    if (offset > static_cast<size_t>(INT64_MAX)) return InvalidArgument("offset is ", offset);
    Session& on = *session->session;
    const auto links = on.device_set().links();
    ONCILLA_ASSIGN(DeviceTensor wrapped,
                   links[static_cast<size_t>(on.device_set().preferred())]->Wrap(
                       std::move(desc), buffer, static_cast<int64_t>(offset)));
    *tensor = new oncilla_tensor(MakeTensor(std::move(wrapped)));
    return Status();
  });
}

oncilla_status* oncilla_opencl_buffer(const oncilla_tensor* tensor, void** buffer, size_t* offset,
                                      size_t* bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_TRY(NeedHandle(buffer, "buffer"));
    ONCILLA_TRY(NeedHandle(offset, "offset"));
    if (!tensor->device.valid()) return InvalidArgument("the tensor is in host memory");
    ONCILLA_ASSIGN(const auto place, tensor->device.link()->BufferOf(tensor->device));
    *buffer = place.first;
    *offset = static_cast<size_t>(place.second);
    if (bytes != nullptr) *bytes = static_cast<size_t>(tensor->device.desc().bytes());
    return Status();
  });
}

oncilla_status* oncilla_callable_run_into(oncilla_callable* callable,
                                          const oncilla_tensor* const* inputs, size_t input_count,
                                          const oncilla_tensor* const* outputs, size_t output_count,
                                          const oncilla_call_options* options,
                                          oncilla_run_cost* cost) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(callable, "callable"));
    ONCILLA_ASSIGN(CallOptions call, ReadCallOptions(options));
    ONCILLA_ASSIGN(const auto feeds, ReadValues(inputs, input_count, "inputs"));
    ONCILLA_ASSIGN(const auto targets, ReadTargets(outputs, output_count));
    RunStats stats;
    call.stats = &stats;
    call.into = targets;
    if (targets.empty()) return InvalidArgument("there are no outputs to write to");
    ONCILLA_TRY(callable->callable->Run(feeds, call).status());
    if (cost == nullptr) return Status();
    oncilla_run_cost value{};
    value.copies = stats.copies;
    value.copied_bytes = stats.copied_bytes;
    value.device_copies = stats.device_copies;
    value.device_copied_bytes = stats.device_copied_bytes;
    return WriteStruct(value, cost, "oncilla_run_cost");
  });
}

namespace {

oncilla_status* Enqueue(oncilla_callable* callable, void* queue,
                        const oncilla_tensor* const* inputs, size_t input_count,
                        const oncilla_tensor* const* outputs, size_t output_count,
                        void* const* wait_for, size_t wait_count, void** event,
                        oncilla_enqueued** run, bool profile) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(callable, "callable"));
    ONCILLA_TRY(NeedHandle(queue, "queue"));
    ONCILLA_TRY(NeedHandle(run, "run"));
    if (wait_count > 0) ONCILLA_TRY(NeedHandle(wait_for, "wait_for"));
    ONCILLA_ASSIGN(const auto feeds, ReadValues(inputs, input_count, "inputs"));
    ONCILLA_ASSIGN(const auto targets, ReadTargets(outputs, output_count));
    for (size_t i = 0; i < output_count; ++i) {
      ONCILLA_TRY(NeedHandle(outputs[i], StrCat("outputs[", i, "]")));
    }
    auto handle = std::make_unique<oncilla_enqueued>();
    ONCILLA_ASSIGN(handle->run, callable->callable->Enqueue(queue, feeds, targets,
                                                            {wait_for, wait_count}, profile));
    if (event != nullptr) {
      ONCILLA_ASSIGN(*event, handle->run.Event());
    }
    *run = handle.release();
    return Status();
  });
}

}  // namespace

oncilla_status* oncilla_opencl_enqueue(oncilla_callable* callable, void* queue,
                                       const oncilla_tensor* const* inputs, size_t input_count,
                                       const oncilla_tensor* const* outputs, size_t output_count,
                                       void* const* wait_for, size_t wait_count, void** event,
                                       oncilla_enqueued** run) {
  return Enqueue(callable, queue, inputs, input_count, outputs, output_count, wait_for, wait_count,
                 event, run, false);
}
oncilla_status* oncilla_opencl_enqueue_traced(
    oncilla_callable* callable, void* queue, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_tensor* const* outputs, size_t output_count,
    void* const* wait_for, size_t wait_count, void** event, oncilla_enqueued** run) {
  return Enqueue(callable, queue, inputs, input_count, outputs, output_count, wait_for, wait_count,
                 event, run, true);
}
int oncilla_enqueued_done(const oncilla_enqueued* run) {
  return run != nullptr && run->run.Done() ? 1 : 0;
}
oncilla_status* oncilla_enqueued_finish(oncilla_enqueued* run, int64_t timeout_ms) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(run, "run"));
    return run->run.Finish(timeout_ms < 0 ? kNoDeadline
                                          : DeadlineAfter(std::chrono::steady_clock::now(),
                                                          std::chrono::milliseconds(timeout_ms)));
  });
}
void oncilla_enqueued_free(oncilla_enqueued* run) { delete run; }
