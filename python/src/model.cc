// The class Model: its declarations, runs, variables and placement.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/deferred.h"
#include "python/src/interrupt.h"
#include "python/src/requests.h"

namespace oncilla_python {
namespace {

// An exception that a hook of the program raised while the library called it; raised again after
// the call.
struct HookFailure {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  void Catch(nb::python_error& failure) {
    if (type != nullptr) return;
    failure.restore();
    PyErr_Fetch(&type, &value, &trace);
  }
  void Raise() {
    if (type == nullptr) return;
    PyErr_Restore(type, value, trace);
    throw nb::python_error();
  }
};
struct Progress {
  nb::handle hook;
  HookFailure failure;
};

void OnProgress(void* user, const char* what, double fraction) {
  if (InterpreterEnds()) return;
  nb::gil_scoped_acquire locked;
  auto* progress = static_cast<Progress*>(user);
  try {
    progress->hook(what, fraction);
  } catch (nb::python_error& failure) {
    progress->failure.Catch(failure);
  }
}

// The device of a node by the program's rule. A rule that raises states no preference; its
// exception is reported as one that no caller can catch.
const char* Place(void* rule, const char* node, const char* op, const char* stored) {
  static thread_local std::string device;
  if (Py_IsInitialized() == 0 || InterpreterEnds()) return nullptr;
  nb::gil_scoped_acquire locked;
  try {
    const nb::object answer =
        nb::handle(static_cast<PyObject*>(rule))(NameOf(node), NameOf(op), NameOf(stored));
    device = answer.is_none() ? std::string() : nb::cast<std::string>(answer);
  } catch (nb::python_error& failure) {
    failure.discard_as_unraisable("a rule of Model.place_by");
    device.clear();
  } catch (const nb::cast_error&) {
    device.clear();
  }
  return device.empty() ? nullptr : device.c_str();
}

void ForgetRule(void* rule) {
  auto kept = std::make_unique<Kept>();
  kept->managed = rule;
  kept->free = [](void* r) { Py_DECREF(static_cast<PyObject*>(r)); };
  ReleaseLater(kept.release());
}

nb::tuple InfoOf(const oncilla_tensor_info& info) {
  nb::object dims = nb::none();
  if (info.ranked != 0) {
    nb::list sizes;
    for (size_t i = 0; i < info.rank; ++i) {
      sizes.append(info.dims[i] < 0 ? nb::none() : nb::cast(info.dims[i]));
    }
    dims = nb::tuple(sizes);
  }
  return nb::make_tuple(NameOf(info.name), static_cast<int>(info.dtype), dims,
                        static_cast<int>(info.kind));
}

template <class Get>
nb::list Infos(size_t count, Get&& get) {
  nb::list all;
  for (size_t i = 0; i < count; ++i) {
    oncilla_tensor_info info{};
    info.size = sizeof(info);
    Check(get(i, &info));
    all.append(InfoOf(info));
  }
  return all;
}

nb::object Finish(Model& model, Request& request) {
  const WillDrain drained_below;
  oncilla_result* result = nullptr;
  oncilla_status* failure = request.Run(Need(model), &result);
  Drain();
  CheckRun(failure);
  return request.MakeResult(model.handle.get(), ResultHandle(result));
}

// Frees the feeds of a request, then releases the objects that they held.
template <class F>
nb::object Drained(F&& body) {
  nb::object result;
  {
    const WillDrain drained_below;
    result = body();
  }
  Drain();
  return result;
}

nb::object Call(Model& model, nb::args positional, nb::kwargs named) {
  return Drained([&] {
    Request request(model.convert, model);
    if (positional.size() > 0) {
      const nb::handle first = positional[0];
      if (positional.size() > 1 || named.size() > 0) {
        throw nb::type_error("inputs are given by name, or one input alone without");
      }
      if (nb::isinstance<nb::dict>(first)) {
        request.AddAll(nb::borrow<nb::dict>(first));
      } else if (model.only_input.is_none()) {
        throw nb::type_error("the model does not have exactly one input: give inputs by name");
      } else {
        request.Add(model.only_input, first);
      }
    }
    for (const auto [name, value] : named) request.Add(name, value);
    return Finish(model, request);
  });
}

nb::object Run(Model& model, nb::dict inputs, nb::dict options, nb::object convert) {
  return Drained([&] {
    Request request(convert, model);
    request.SetOptions(options);
    request.AddAll(inputs);
    return Finish(model, request);
  });
}

void Prepare(Model& model, nb::dict inputs, nb::dict options, nb::object convert) {
  Drained([&] {
    Request request(convert, model);
    request.SetOptions(options);
    request.AddAll(inputs);
    oncilla_status* failure = request.Prepare(Need(model));
    Check(failure);
    return nb::object();
  });
}

// A run on a thread of the session; RunIsOver reports its number.
struct PendingRun {
  Handle<oncilla_run, oncilla_run_free> handle;
  std::vector<Feed> feeds;
  nb::object model;
  bool bytes = false;
};

PendingRun* Start(nb::handle self, nb::dict inputs, nb::dict options, nb::object convert,
                  uintptr_t number) {
  auto& model = nb::cast<Model&>(self);
  Request request(convert, model);
  request.SetOptions(options);
  if (request.c.into_count > 0) {
    throw nb::value_error("into needs memory that is held: it is for runs that are waited for");
  }
  request.AddAll(inputs);
  oncilla_run* run = nullptr;
  oncilla_status* failure =
      request.Start(Need(model), RunIsOver, reinterpret_cast<void*>(number), &run);
  Drain();
  Check(failure);
  auto pending = std::make_unique<PendingRun>();
  pending->handle.reset(run);
  pending->feeds = request.TakeFeeds();
  pending->model = nb::borrow(self);
  pending->bytes = model.bytes;
  return pending.release();
}

nb::object Wait(PendingRun& run) {
  oncilla_result* result = nullptr;
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = oncilla_run_wait(run.handle.get(), -1, &result);
  }
  Drain();
  Check(failure);
  return ResultOf(nb::cast<Model&>(run.model).handle.get(), ResultHandle(result), run.bytes,
                  run.feeds);
}

oncilla_load_options LoadOptionsOf(const std::string& tags, int stored_devices, bool eager,
                                   Progress& progress) {
  oncilla_load_options options{};
  options.size = sizeof(options);
  options.tags = tags.empty() ? nullptr : tags.c_str();
  options.stored_devices = stored_devices;
  options.load_policy = eager ? ONCILLA_LOAD_EAGER : ONCILLA_LOAD_LAZY;
  if (!progress.hook.is_none()) {
    options.progress = OnProgress;
    options.progress_user = &progress;
  }
  return options;
}

}  // namespace

void LoadBy(Model& model, nb::handle hook, const std::string& tags, int stored_devices, bool eager,
            const LoadFunction& load) {
  if (model.handle != nullptr) throw nb::value_error("the model is loaded already");
  Progress progress{hook, {}};
  const oncilla_load_options options = LoadOptionsOf(tags, stored_devices, eager, progress);
  oncilla_model* made = nullptr;
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = load(&options, &made);
  }
  Handle<oncilla_model, oncilla_model_free> own(made);
  Drain();
  if (progress.failure.type != nullptr) {
    oncilla_status_free(failure);
    if (made != nullptr) oncilla_status_free(oncilla_model_unload(made, nullptr));
    progress.failure.Raise();
  }
  Check(failure);
  model.handle = std::move(own);
}

namespace {

void Load(Model& model, const Session& session, nb::bytes path, const std::string& tags,
          int stored_devices, bool eager, nb::object progress) {
  oncilla_session* in = Need(session);
  LoadBy(model, progress, tags, stored_devices, eager,
         [&](const oncilla_load_options* options, oncilla_model** made) {
           return oncilla_model_load(in, path.c_str(), options, made);
         });
}

// The bytes belong to the object, which lives as long as the model needs them.
void LoadBytes(Model& model, const Session& session, nb::object bytes, const std::string& name,
               const std::string& tags, int stored_devices, bool eager, nb::object progress) {
  oncilla_session* in = Need(session);
  auto kept = std::make_unique<Kept>();
  if (PyObject_GetBuffer(bytes.ptr(), &kept->view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  LoadBy(model, progress, tags, stored_devices, eager,
         [&](const oncilla_load_options* options, oncilla_model** made) {
           oncilla_status* failure =
               oncilla_model_load_bytes(in, kept->view.buf, static_cast<size_t>(kept->view.len),
                                        name.c_str(), ReleaseLater, kept.get(), options, made);
           if (failure == nullptr) (void)kept.release();  // freed by ReleaseLater
           return failure;
         });
  // On a failure the view is released with `kept`.
}

nb::object Placement(const Model& model, nb::object signature, nb::object device) {
  oncilla_model* of = Need(model);
  const char* s = signature.is_none() ? nullptr : TextOf(signature);
  const char* d = device.is_none() ? nullptr : TextOf(device);
  std::string text(1 << 14, '\0');
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    size_t needed = 0;
    failure = oncilla_model_placement(of, s, d, text.data(), text.size(), &needed);
    if (failure == nullptr && needed > text.size()) {
      text.resize(needed);
      failure = oncilla_model_placement(of, s, d, text.data(), text.size(), &needed);
    }
  }
  Drain();
  Check(failure);
  return NameOf(text.c_str());  // JSON, in which escapes would be wrong
}

nb::object MemoryReport(const Model& model) {
  std::string text(1 << 14, '\0');
  Unlocked([&, of = Need(model)] {
    size_t needed = 0;
    oncilla_status* failure = oncilla_model_memory_report(of, text.data(), text.size(), &needed);
    // The report may grow between two calls, so it gets more room than was needed.
    if (failure == nullptr && needed > text.size()) {
      text.assign(needed + needed / 4, '\0');
      failure = oncilla_model_memory_report(of, text.data(), text.size(), &needed);
    }
    return failure;
  });
  return NameOf(text.c_str());  // JSON, in which escapes would be wrong
}

nb::list JudgeNodes(const Model& model) {
  struct Judged {
    std::string node, op, reason;
  };
  oncilla_model* of = Need(model);
  std::vector<Judged> all;
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = oncilla_model_judge_nodes(
        of,
        [](void* user, size_t, const char* node, const char* op, const char* reason) {
          static_cast<std::vector<Judged>*>(user)->push_back({node, op, reason});
        },
        &all);
  }
  Drain();
  Check(failure);
  nb::list nodes;
  for (const Judged& judged : all) {
    nodes.append(nb::make_tuple(NameOf(judged.node.c_str()), NameOf(judged.op.c_str()),
                                Readable(judged.reason)));
  }
  return nodes;
}

void PlaceBy(Model& model, nb::object rule) {
  oncilla_model* of = Need(model);
  PyObject* held = nb::object(rule).release().ptr();
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = oncilla_model_place_by(of, Place, held, ForgetRule);
  }
  if (failure != nullptr) Py_DECREF(held);
  Drain();
  Check(failure);
}

std::string Trace(const ResultHandle& result, int format) {
  size_t needed = 0;
  const auto as = static_cast<oncilla_trace_format>(format);
  Check(oncilla_result_trace(result.get(), as, nullptr, 0, &needed));
  std::string bytes(needed, '\0');
  Check(oncilla_result_trace(result.get(), as, bytes.data(), bytes.size(), &needed));
  return bytes;
}

}  // namespace

void DefineModel(nb::module_& m) {
  nb::class_<ResultHandle>(m, "NativeResult")
      .def("report", [](const ResultHandle& r) { return Readable(oncilla_result_report(r.get())); })
      .def("trace", [](const ResultHandle& r, int format) {
        const std::string bytes = Trace(r, format);
        return nb::bytes(bytes.data(), bytes.size());
      });
  nb::class_<Cancellation>(m, "Cancellation",
                           "A token that cancels the runs it was given to, from any thread.")
      .def("__init__",
           [](Cancellation* self) {
             oncilla_cancellation* made = nullptr;
             Check(oncilla_cancellation_create(&made));
             new (self) Cancellation{Handle<oncilla_cancellation, oncilla_cancellation_free>(made)};
           })
      .def(
          "cancel", [](Cancellation& c) { oncilla_cancellation_cancel(c.handle.get()); },
          "Cancels the runs, now and for good.");
  nb::class_<PendingRun>(m, "PendingRun")
      .def("done", [](PendingRun& r) { return oncilla_run_done(r.handle.get()) != 0; })
      .def("cancel", [](PendingRun& r) { oncilla_run_cancel(r.handle.get()); })
      .def("wait", &Wait);
  nb::class_<Model>(m, "ModelBase", nb::is_weak_referenceable())
      .def(nb::init<>())
      .def_rw("_convert", &Model::convert)
      .def_prop_rw(
          "_only_input", [](const Model& model) { return model.only_input; },
          [](Model& model, nb::object name) { model.only_input = name; },
          nb::for_setter(nb::arg("name").none()))
      .def_rw("_bytes", &Model::bytes)
      .def_rw("_plain", &Model::plain)
      .def_rw("_session", &Model::session)
      .def("__call__", &Call)
      .def("_load", &Load, nb::arg("session"), nb::arg("path"), nb::arg("tags"),
           nb::arg("stored_devices"), nb::arg("eager"), nb::arg("progress").none())
      .def("_load_bytes", &LoadBytes, nb::arg("session"), nb::arg("bytes"), nb::arg("name"),
           nb::arg("tags"), nb::arg("stored_devices"), nb::arg("eager"), nb::arg("progress").none())
      .def("_run", &Run)
      .def("_prepare", &Prepare)
      .def("_start", &Start)
      .def("_signatures",
           [](const Model& model) {
             nb::list keys;
             for (size_t i = 0; i < oncilla_model_signature_count(Need(model)); ++i) {
               keys.append(NameOf(oncilla_model_signature_key(Need(model), i)));
             }
             return keys;
           })
      .def("_infos",
           [](const Model& model, size_t signature, bool output) {
             const oncilla_model* of = Need(model);
             return Infos(output ? oncilla_model_output_count(of, signature)
                                 : oncilla_model_input_count(of, signature),
                          [&](size_t i, oncilla_tensor_info* info) {
                            return output ? oncilla_model_output(of, signature, i, info)
                                          : oncilla_model_input(of, signature, i, info);
                          });
           })
      .def("_variables",
           [](const Model& model) {
             const oncilla_model* of = Need(model);
             size_t count = 0;
             {
               const Unlock unlocked;  // reads the model's graph the first time
               count = oncilla_model_variable_count(of);
             }
             oncilla_tensor_info info{};
             info.size = sizeof(info);
             // There may be no variable because the graph cannot be read: this call reports why, or
             // that index 0 is out of range.
             oncilla_status* none = count == 0 ? oncilla_model_variable(of, 0, &info) : nullptr;
             if (oncilla_status_code(none) != ONCILLA_INVALID_ARGUMENT)
               Check(none);
             else
               oncilla_status_free(none);
             return Infos(count, [&](size_t i, oncilla_tensor_info* to) {
               return oncilla_model_variable(of, i, to);
             });
           })
      .def("_read_variable",
           [](Model& model, nb::str name) {
             oncilla_tensor* value = nullptr;
             Unlocked([&, of = Need(model), text = TextOf(name)] {
               return oncilla_model_read_variable(of, text, &value);
             });
             return ToPython(TensorHandle(value), model.bytes);
           })
      .def("_assign_variable",
           [](Model& model, nb::str name, const Tensor& value) {
             Unlocked([&, of = Need(model), text = TextOf(name)] {
               return oncilla_model_assign_variable(of, text, value.handle.get());
             });
           })
      .def(
          "_place",
          [](Model& model, nb::object nodes, nb::object op, const std::string& device) {
            const char* n = nodes.is_none() ? nullptr : TextOf(nodes);
            const char* o = op.is_none() ? nullptr : TextOf(op);
            Unlocked(
                [&, of = Need(model)] { return oncilla_model_place(of, n, o, device.c_str()); });
          },
          nb::arg("nodes").none(), nb::arg("op").none(), nb::arg("device"))
      .def("_place_by", &PlaceBy)
      .def(
          "clear_placement",
          [](Model& model) {
            Unlocked([of = Need(model)] { return oncilla_model_clear_placement(of); });
          },
          "Undoes all requests of place() and place_by().")
      .def("judge_nodes", &JudgeNodes,
           "Judges every node of an ONNX model's main graph, in the order of the file: its name, "
           "its "
           "op, and why it is not supported, or ''.")
      .def("_memory_report", &MemoryReport)
      .def("_placement", &Placement, nb::arg("signature").none(), nb::arg("device").none())
      .def("_unload", [](Model& model) {
        int64_t bytes = 0;
        if (model.handle == nullptr) return bytes;
        Unlocked([&] { return oncilla_model_unload(model.handle.get(), &bytes); });
        return bytes;
      });
}

}  // namespace oncilla_python
