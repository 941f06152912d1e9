// The class Runtime: the devices of the machine, and the destination of log messages.
#include <nanobind/stl/string.h>

#include "python/src/deferred.h"
#include "python/src/text.h"

namespace oncilla_python {
namespace {

void Create(Runtime& runtime, bool opencl_cpu_devices, int threads, nb::object cache_dir,
            int log_level) {
  oncilla_runtime_options options{};
  options.size = sizeof(options);
  options.opencl_cpu_devices = opencl_cpu_devices ? 1 : 0;
  options.threads = threads;
  std::string folder;
  if (!cache_dir.is_none()) {
    const auto bytes = nb::cast<nb::bytes>(cache_dir);
    folder.assign(bytes.c_str(), bytes.size());
    options.cache_dir = folder.c_str();
  }
  options.log = LogLater;
  options.log_level = static_cast<oncilla_log_level>(log_level);
  oncilla_runtime* made = nullptr;
  Unlocked([&] { return oncilla_runtime_create(&options, &made); });
  runtime.handle.reset(made);
}

oncilla_runtime* Need(const Runtime& runtime) {
  if (runtime.handle == nullptr) throw nb::value_error("the runtime was not created");
  return runtime.handle.get();
}

nb::list Devices(const Runtime& runtime) {
  const oncilla_runtime* of = Need(runtime);
  nb::list all;
  for (size_t i = 0; i < oncilla_runtime_device_count(of); ++i) {
    oncilla_device_info info{};
    info.size = sizeof(info);
    Check(oncilla_runtime_device(of, i, &info));
    nb::dict d;
    d["name"] = Readable(info.name);
    d["note"] = Readable(info.note);
    d["driver_name"] = Readable(info.driver_name);
    d["vendor"] = Readable(info.vendor);
    d["driver_version"] = Readable(info.driver_version);
    d["backend"] = Readable(info.backend);
    d["memory_bytes"] = info.memory_bytes;
    d["max_allocation_bytes"] = info.max_allocation_bytes;
    d["compute_units"] = info.compute_units;
    d["id"] = Readable(info.id);
    all.append(d);
  }
  return all;
}

nb::tuple CloseSessions(const Runtime& runtime) {
  std::string text(1 << 16, '\0');
  int64_t bytes = 0;
  Unlocked([&, of = Need(runtime)] {
    size_t needed = 0;
    return oncilla_runtime_close_sessions(of, &bytes, text.data(), text.size(), &needed);
  });
  return nb::make_tuple(bytes, text.c_str());
}

}  // namespace

void DefineDevices(nb::module_& m) {
  nb::class_<Runtime>(m, "RuntimeBase", nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("_create", &Create, nb::arg("opencl_cpu_devices"), nb::arg("threads"),
           nb::arg("cache_dir").none(), nb::arg("log_level"))
      .def("_devices", &Devices)
      .def("_close_sessions", &CloseSessions)
      .def(
          "has_device",
          [](const Runtime& r, const std::string& name) {
            return oncilla_runtime_has_device(Need(r), name.c_str()) != 0;
          },
          nb::arg("name"),
          "Whether there is a usable device of that name: \"/GPU:0\", \"gpu:0\", or a type, "
          "\"GPU\".");
}

}  // namespace oncilla_python
