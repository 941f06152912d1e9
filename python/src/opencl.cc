// Tensors in OpenCL buffers of the program, and OpenCL buffers of tensors. Handles of OpenCL are
// passed as numbers, as pyopencl gives them (`buffer.int_ptr`).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <oncilla/oncilla_opencl.h>

#include "python/src/callable.h"
#include "python/src/deferred.h"

namespace oncilla_python {
namespace {

void* Pointer(uintptr_t number) { return reinterpret_cast<void*>(number); }

void CreateRuntime(Runtime& runtime, uintptr_t context, uintptr_t device, nb::object library,
                   int threads, int log_level) {
  oncilla_runtime_options options{};
  options.size = sizeof(options);
  options.threads = threads;
  options.log = LogLater;
  options.log_level = static_cast<oncilla_log_level>(log_level);
  oncilla_opencl_host host{};
  host.size = sizeof(host);
  host.context = Pointer(context);
  host.device = Pointer(device);
  std::string path;
  if (!library.is_none()) {
    path = nb::cast<std::string>(library);
    host.library = path.c_str();
  }
  oncilla_runtime* made = nullptr;
  Unlocked([&] { return oncilla_opencl_runtime_create(&options, &host, &made); });
  runtime.handle.reset(made);
}

nb::object Wrap(const Session& session, uintptr_t buffer, size_t offset, int dtype,
                const std::vector<int64_t>& dims) {
  oncilla_tensor* made = nullptr;
  Unlocked([&, of = Need(session)] {
    return oncilla_opencl_wrap(of, Pointer(buffer), offset, static_cast<oncilla_dtype>(dtype),
                               dims.data(), dims.size(), &made);
  });
  return nb::cast(Tensor{TensorHandle(made)});
}

nb::tuple Buffer(const Tensor& tensor) {
  void* buffer = nullptr;
  size_t offset = 0, bytes = 0;
  Check(oncilla_opencl_buffer(tensor.handle.get(), &buffer, &offset, &bytes));
  return nb::make_tuple(reinterpret_cast<uintptr_t>(buffer), offset, bytes);
}

// Handles of tensors of wrap_opencl; None drops an output.
std::vector<const oncilla_tensor*> TargetsOf(nb::handle outputs) {
  std::vector<const oncilla_tensor*> targets;
  for (nb::handle output : nb::borrow<nb::sequence>(outputs)) {
    targets.push_back(output.is_none() ? nullptr : nb::cast<const Tensor&>(output).handle.get());
  }
  return targets;
}

nb::dict RunInto(Callable& callable, nb::tuple inputs, nb::object outputs, nb::object timeout,
                 nb::object cancel) {
  nb::dict d;
  {
    const WillDrain drained_below;
    const Fed fed = FeedsOf(callable, inputs);
    const auto targets = TargetsOf(outputs);
    const oncilla_call_options options = CallOptionsOf(timeout, cancel);
    oncilla_run_cost cost{};
    cost.size = sizeof(cost);
    Unlocked([&] {
      return oncilla_callable_run_into(callable.handle.get(), fed.tensors.data(),
                                       fed.tensors.size(), targets.data(), targets.size(), &options,
                                       &cost);
    });
    d["copies"] = cost.copies;
    d["copied_bytes"] = cost.copied_bytes;
    d["device_copies"] = cost.device_copies;
    d["device_copied_bytes"] = cost.device_copied_bytes;
  }
  Drain();
  return d;
}

struct EnqueuedRun {
  Handle<oncilla_enqueued, oncilla_enqueued_free> handle;
  nb::object callable;
  uintptr_t event = 0;
  ~EnqueuedRun() { FreeUnlocked(handle); }
};

EnqueuedRun* Enqueue(nb::handle self, uintptr_t queue, nb::tuple inputs, nb::object outputs,
                     const std::vector<uintptr_t>& wait_for, bool trace) {
  auto& callable = nb::cast<Callable&>(self);
  const Fed fed = FeedsOf(callable, inputs);
  const auto targets = TargetsOf(outputs);
  std::vector<void*> events;
  for (const uintptr_t event : wait_for) events.push_back(Pointer(event));
  void* event = nullptr;
  oncilla_enqueued* made = nullptr;
  Unlocked([&] {
    const auto enqueue = trace ? oncilla_opencl_enqueue_traced : oncilla_opencl_enqueue;
    return enqueue(callable.handle.get(), Pointer(queue), fed.tensors.data(), fed.tensors.size(),
                   targets.data(), targets.size(), events.data(), events.size(), &event, &made);
  });
  auto run = std::make_unique<EnqueuedRun>();
  run->handle.reset(made);
  run->callable = nb::borrow(self);
  run->event = reinterpret_cast<uintptr_t>(event);
  return run.release();
}

nb::bytes TraceOf(const EnqueuedRun& run, int format) {
  size_t needed = 0;
  const auto as = static_cast<oncilla_trace_format>(format);
  Check(oncilla_enqueued_trace(run.handle.get(), as, nullptr, 0, &needed));
  std::string bytes(needed, '\0');
  Check(oncilla_enqueued_trace(run.handle.get(), as, bytes.data(), bytes.size(), &needed));
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void DefineOpenCl(nb::module_& m) {
  m.def("_opencl_runtime", &CreateRuntime, nb::arg("runtime"), nb::arg("context"),
        nb::arg("device"), nb::arg("library").none(), nb::arg("threads"), nb::arg("log_level"));
  m.def("_opencl_wrap", &Wrap);
  m.def("_opencl_buffer", &Buffer);
  m.def("_run_into", &RunInto, nb::arg("callable"), nb::arg("inputs"), nb::arg("outputs"),
        nb::arg("timeout").none(), nb::arg("cancel").none());
  m.def("_enqueue", &Enqueue);
  nb::class_<EnqueuedRun>(m, "EnqueuedRun", "A run on a queue of the program's own.")
      .def_prop_ro(
          "event", [](const EnqueuedRun& run) { return run.event; },
          "The address of the cl_event of its end, which the program releases.")
      .def(
          "done",
          [](const EnqueuedRun& run) { return oncilla_enqueued_done(run.handle.get()) != 0; },
          "Whether it is over, successful or not. Neither waits nor flushes.")
      .def("_finish",
           [](EnqueuedRun& run, int64_t timeout_ms) {
             Unlocked([&] { return oncilla_enqueued_finish(run.handle.get(), timeout_ms); });
           })
      .def("_trace", &TraceOf);
}

}  // namespace oncilla_python
