// Oncilla with the OpenCL objects of the application, for C++17: oncilla_opencl.h with classes that
// free what they hold. It includes no OpenCL header; OpenCL handles convert to void* implicitly.
//
//   cl_context context = ..; cl_command_queue queue = ..; cl_mem in = .., out = ..;
//   auto runtime = oncilla::opencl::MakeRuntime(context).value();
//   auto session = oncilla::Session::Create(runtime).value();
//   auto model = session.Load("model.onnx").value();
//   auto net = model.MakeCallable({{"x"}, {"y"}}).value();
//   auto x = oncilla::opencl::Wrap(session, in, ONCILLA_FLOAT32, {1, 224, 224, 3}).value();
//   auto y = oncilla::opencl::Wrap(session, out, ONCILLA_FLOAT32, {1, 1000}).value();
//   auto run = oncilla::opencl::Enqueue(net, queue, {x}, {y}).value();  // waits for nothing
//   ..                                                                 // more on the queue
//   run.Finish();                                                      // waits for the outcome
#ifndef ONCILLA_OPENCL_HPP_
#define ONCILLA_OPENCL_HPP_

#include <oncilla/oncilla_opencl.h>

#include <memory>
#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

namespace oncilla {
inline namespace v0 {
namespace opencl {

struct HostOptions {
  void* device = nullptr;       // cl_device_id; null: the context's only one
  std::string library = {};     // see oncilla_opencl_host
  RuntimeOptions runtime = {};  // opencl_cpu_devices has no effect here
};

// A runtime with the CPU and, as GPU:0, the device of a cl_context.
inline Result<Runtime> MakeRuntime(void* context, const HostOptions& options = {}) {
  oncilla_runtime_options r{};
  r.size = sizeof(r);
  r.threads = options.runtime.threads;
  oncilla_opencl_host h{};
  h.size = sizeof(h);
  h.context = context;
  h.device = options.device;
  h.library = options.library.empty() ? nullptr : options.library.c_str();
  oncilla_runtime* runtime = nullptr;
  Status status(oncilla_opencl_runtime_create(&r, &h, &runtime));
  if (!status.ok()) return status;
  return Runtime::Adopt(runtime);
}

// A tensor in a cl_mem, without a copy; see oncilla_opencl_wrap.
inline Result<Tensor> Wrap(const Session& session, void* buffer, oncilla_dtype dtype,
                           const std::vector<int64_t>& dims, size_t offset = 0) {
  oncilla_tensor* tensor = nullptr;
  Status status(
      oncilla_opencl_wrap(session.get(), buffer, offset, dtype, dims.data(), dims.size(), &tensor));
  if (!status.ok()) return status;
  return Tensor::Adopt(tensor);
}

// The memory of a tensor on the device; see oncilla_opencl_buffer.
struct Place {
  void* buffer = nullptr;  // cl_mem
  size_t offset = 0, bytes = 0;
};
inline Result<Place> BufferOf(const Tensor& tensor) {
  Place place;
  Status status(oncilla_opencl_buffer(tensor.get(), &place.buffer, &place.offset, &place.bytes));
  if (!status.ok()) return status;
  return place;
}

namespace internal {
inline std::vector<const oncilla_tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const oncilla_tensor*> pointers;
  for (const Tensor& t : tensors) pointers.push_back(t.get());
  return pointers;
}
}  // namespace internal

// Runs the callable and writes the results to wrapped tensors; see oncilla_callable_run_into.
inline Result<oncilla_run_cost> RunInto(const Callable& callable, const std::vector<Tensor>& inputs,
                                        const std::vector<Tensor>& outputs, int64_t timeout_ms = 0,
                                        const Cancellation& cancellation = {}) {
  const auto in = internal::Pointers(inputs), out = internal::Pointers(outputs);
  oncilla_call_options c{};
  c.size = sizeof(c);
  c.timeout_ms = timeout_ms;
  c.cancellation = cancellation.get();
  oncilla_run_cost cost{};
  cost.size = sizeof(cost);
  Status status(oncilla_callable_run_into(callable.get(), in.data(), in.size(), out.data(),
                                          out.size(), &c, &cost));
  if (!status.ok()) return status;
  return cost;
}

// A run on a queue of the application. Destroying the object does not end the run; its outcome is
// then not checked.
class EnqueuedRun {
 public:
  explicit EnqueuedRun(oncilla_enqueued* owned) : run_(owned, oncilla_enqueued_free) {}
  bool Done() const { return oncilla_enqueued_done(run_.get()) != 0; }
  // Waits for the run and returns its outcome; see oncilla_enqueued_finish.
  Status Finish(int64_t timeout_ms = -1) const {
    return Status(oncilla_enqueued_finish(run_.get(), timeout_ms));
  }
  // The trace of a run of EnqueueTraced that has finished successfully; see oncilla_enqueued_trace.
  Result<std::string> Trace(oncilla_trace_format format = ONCILLA_TRACE_CHROME) const {
    size_t needed = 0;
    Status status(oncilla_enqueued_trace(run_.get(), format, nullptr, 0, &needed));
    if (!status.ok()) return status;
    std::string bytes(needed, ' ');
    status = Status(oncilla_enqueued_trace(run_.get(), format, bytes.data(), needed, nullptr));
    if (!status.ok()) return status;
    return bytes;
  }

 private:
  std::shared_ptr<oncilla_enqueued> run_;
};

namespace internal {
inline Result<EnqueuedRun> Enqueue(decltype(oncilla_opencl_enqueue)* enqueue,
                                   const Callable& callable, void* queue,
                                   const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& outputs,
                                   const std::vector<void*>& wait_for, void** event) {
  const auto in = Pointers(inputs), out = Pointers(outputs);
  oncilla_enqueued* run = nullptr;
  Status status(enqueue(callable.get(), queue, in.data(), in.size(), out.data(), out.size(),
                        wait_for.data(), wait_for.size(), event, &run));
  if (!status.ok()) return status;
  return EnqueuedRun(run);
}
}  // namespace internal

// Enqueues the run and returns; see oncilla_opencl_enqueue. Unless null, `event` is set to a
// cl_event of the end of the run, which the caller releases.
inline Result<EnqueuedRun> Enqueue(const Callable& callable, void* queue,
                                   const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& outputs,
                                   const std::vector<void*>& wait_for = {},
                                   void** event = nullptr) {
  return internal::Enqueue(oncilla_opencl_enqueue, callable, queue, inputs, outputs, wait_for,
                           event);
}
// Like Enqueue, and records the time of each step; the queue must have been created with
// CL_QUEUE_PROFILING_ENABLE.
inline Result<EnqueuedRun> EnqueueTraced(const Callable& callable, void* queue,
                                         const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& outputs,
                                         const std::vector<void*>& wait_for = {},
                                         void** event = nullptr) {
  return internal::Enqueue(oncilla_opencl_enqueue_traced, callable, queue, inputs, outputs,
                           wait_for, event);
}

}  // namespace opencl
}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_OPENCL_HPP_
