// Tensors in OpenCL buffers of the program's, and the other way round. Handles of OpenCL are passed
// as numbers, which is how pyopencl gives them (`buffer.int_ptr`).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <oncilla/oncilla_opencl.h>

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

}  // namespace

void DefineOpenCl(nb::module_& m) {
  m.def("_opencl_runtime", &CreateRuntime, nb::arg("runtime"), nb::arg("context"),
        nb::arg("device"), nb::arg("library").none(), nb::arg("threads"), nb::arg("log_level"));
  m.def("_opencl_wrap", &Wrap);
  m.def("_opencl_buffer", &Buffer);
}

}  // namespace oncilla_python
