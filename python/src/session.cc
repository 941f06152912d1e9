// The class Session: memory and limits of the devices in use.
#include <nanobind/stl/string.h>

#include "python/src/handles.h"

namespace oncilla_python {
namespace {

void Create(Session& session, nb::object runtime, nb::object device, bool strict, int threads,
            int64_t memory_limit, int max_concurrent_runs, nb::object config) {
  oncilla_session_options options{};
  options.size = sizeof(options);
  std::string name;
  if (!device.is_none()) name = nb::cast<std::string>(device);
  if (!name.empty() && name != "auto") options.device = name.c_str();
  options.strict = strict ? 1 : 0;
  options.threads = threads;
  options.memory_limit_bytes = memory_limit;
  options.max_concurrent_runs = max_concurrent_runs;
  char* bytes = nullptr;
  if (!config.is_none()) {
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(config.ptr(), &bytes, &size) != 0) throw nb::python_error();
    options.config = bytes;
    options.config_size = static_cast<size_t>(size);
  }
  oncilla_session* made = nullptr;
  Unlocked([&, of = nb::cast<Runtime&>(runtime).handle.get()] {
    return oncilla_session_create(of, &options, &made);
  });
  session.handle.reset(made);
  session.runtime = runtime;
}

nb::dict Memory(const Session& session, const std::string& device) {
  oncilla_memory_info info{};
  info.size = sizeof(info);
  Unlocked([&, of = Need(session)] { return oncilla_session_memory(of, device.c_str(), &info); });
  nb::dict d;
  d["in_use_bytes"] = info.in_use_bytes;
  d["pool_bytes"] = info.pool_bytes;
  d["peak_bytes"] = info.peak_bytes;
  d["limit_bytes"] = info.limit_bytes;
  d["largest_free_bytes"] = info.largest_free_bytes;
  d["fragmentation"] = info.fragmentation;
  d["reserve_bytes"] = info.reserve_bytes;
  d["total_bytes"] = info.total_bytes;
  d["total_limit_bytes"] = info.total_limit_bytes;
  d["abandoned_bytes"] = info.abandoned_bytes;
  return d;
}

nb::list Devices(const Session& session) {
  nb::list all;
  const oncilla_session* of = Need(session);
  for (size_t i = 0; i < oncilla_session_device_count(of); ++i) {
    oncilla_session_device info{};
    info.size = sizeof(info);
    Check(oncilla_session_device_info(of, i, &info));
    nb::dict d;
    d["name"] = info.name;
    d["driver_name"] = info.driver_name;
    d["in_use"] = info.in_use != 0;
    d["preferred"] = info.preferred != 0;
    d["limit_bytes"] = info.limit_bytes;
    d["pool_bytes"] = info.pool_bytes;
    all.append(d);
  }
  return all;
}

std::string Report(const Session& session, bool json) {
  std::string text(1 << 16, '\0');
  Unlocked([&, of = Need(session)] {
    size_t needed = 0;
    oncilla_status* failure =
        oncilla_session_memory_report(of, json ? 1 : 0, text.data(), text.size(), &needed);
    // The report may grow between two calls, so it gets more room than was needed.
    if (failure == nullptr && needed > text.size()) {
      text.assign(needed + needed / 4, '\0');
      failure = oncilla_session_memory_report(of, json ? 1 : 0, text.data(), text.size(), &needed);
    }
    return failure;
  });
  return text.c_str();
}

nb::object Upload(const Session& session, const Tensor& tensor, nb::object device) {
  oncilla_tensor* made = nullptr;
  std::string name;
  if (!device.is_none()) name = nb::cast<std::string>(device);
  Unlocked([&, of = Need(session)] {
    return oncilla_session_upload(of, name.empty() ? nullptr : name.c_str(), tensor.handle.get(),
                                  &made);
  });
  return nb::cast(Tensor{TensorHandle(made)});
}

// Calls a function that frees memory, and returns the number of bytes.
template <class F>
int64_t Freed(const Session& session, F&& call) {
  int64_t bytes = 0;
  Unlocked([&, of = Need(session)] { return call(of, &bytes); });
  return bytes;
}

}  // namespace

void DefineSession(nb::module_& m) {
  nb::class_<Session>(m, "SessionBase", nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("_create", &Create, nb::arg("runtime"), nb::arg("device").none(), nb::arg("strict"),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("max_concurrent_runs"),
           nb::arg("config").none())
      .def("_config", [](const Session& s) { return oncilla_session_config(Need(s)); })
      .def("_memory", &Memory)
      .def("_devices", &Devices)
      .def("_report", &Report)
      .def("_upload", &Upload, nb::arg("tensor"), nb::arg("device").none())
      .def("_close",
           [](Session& s, bool cancel, int64_t timeout_ms) {
             return Freed(s, [&](oncilla_session* of, int64_t* bytes) {
               return oncilla_session_close_within(of, cancel ? 1 : 0, timeout_ms, bytes);
             });
           })
      .def(
          "trim", [](Session& s) { return Freed(s, oncilla_session_trim); },
          "Frees the memory that no run holds now, except weights; returns how many bytes.")
      .def(
          "defragment", [](Session& s) { return Freed(s, oncilla_session_defragment); },
          "Compacts the weights and frees what is left over; returns how many bytes.")
      .def(
          "reset", [](Session& s) { return Freed(s, oncilla_session_reset); },
          "Unloads all models after waiting for their runs; returns how many bytes that freed.")
      .def(
          "reset_peaks",
          [](Session& s) { Unlocked([of = Need(s)] { return oncilla_session_reset_peaks(of); }); },
          "Resets all peaks to what is taken now.")
      .def(
          "record_memory",
          [](Session& s, size_t changes) {
            Unlocked([=, of = Need(s)] { return oncilla_session_record_memory(of, changes); });
          },
          nb::arg("changes"), "Keeps the latest changes of memory for the report; 0: none.")
      .def("_set_memory_limit", [](Session& s, const std::string& device, int64_t bytes) {
        Unlocked([&, of = Need(s)] {
          return oncilla_session_set_memory_limit(of, device.c_str(), bytes);
        });
      });
}

}  // namespace oncilla_python
