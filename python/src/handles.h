// What the files of the extension share: handles of the C interface that free what they hold, and
// failures as Python's exceptions.
//
// Calls that may take time release the interpreter's lock. Callbacks of the library never acquire
// it, since a thread that has it may be waiting for a lock of the library: they queue their work,
// which a thread of Python does later (deferred.h).
#pragma once

#include <nanobind/nanobind.h>
#include <oncilla/oncilla.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/src/unlock.h"

namespace oncilla_python {

namespace nb = nanobind;

// Raises the exception for a failure, and frees the status; null is success.
void Check(oncilla_status* status);
// The exception as an object, for futures.
nb::object ToException(oncilla_status* status);

template <class T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* handle) const { kFree(handle); }
};
template <class T, void (*kFree)(T*)>
using Handle = std::unique_ptr<T, Freer<T, kFree>>;

using TensorHandle = Handle<oncilla_tensor, oncilla_tensor_free>;
using ResultHandle = Handle<oncilla_result, oncilla_result_free>;

// A tensor of Python's: on the host or on a device, or a sequence.
struct Tensor {
  TensorHandle handle;
  bool writable = false;  // arrays over it may be written to
};

struct Cancellation {
  Handle<oncilla_cancellation, oncilla_cancellation_free> handle;
};

// Frees the handle without the interpreter's lock, since that may wait for runs.
template <class H>
void FreeUnlocked(H& handle) {
  if (handle == nullptr) return;
  const Unlock unlocked;
  handle.reset();
}

struct Runtime {
  Handle<oncilla_runtime, oncilla_runtime_free> handle;
  ~Runtime() { FreeUnlocked(handle); }
};
struct Session {
  Handle<oncilla_session, oncilla_session_free> handle;
  nb::object runtime;
  ~Session() { FreeUnlocked(handle); }
};
struct Model {
  Handle<oncilla_model, oncilla_model_free> handle;
  bool bytes = false;     // strings as bytes objects
  bool plain = true;      // all inputs are tensors
  nb::object convert;     // a function that makes a tensor of a name and what is no plain array
  nb::object only_input;  // the default signature's input where there is one only; else None
  nb::object session;     // closed with its object: it lives as long as its models
  ~Model() { FreeUnlocked(handle); }
};

// Calls the library without the interpreter's lock and raises its failure.
void CheckDrained(oncilla_status* status);
template <class F>
void Unlocked(F&& body) {
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = body();
  }
  CheckDrained(failure);
}

// The object behind a Python argument, or an exception that names the argument.
inline oncilla_session* Need(const Session& session) {
  if (session.handle == nullptr) throw nb::value_error("the session was not created");
  return session.handle.get();
}
inline oncilla_model* Need(const Model& model) {
  if (model.handle == nullptr) throw nb::value_error("the model was not loaded");
  return model.handle.get();
}

// Loads `model` by a function of the C interface, which runs without the interpreter's lock, and
// reports progress to `hook`, a Python function or None. An exception in the hook ends the load.
using LoadFunction =
    std::function<oncilla_status*(const oncilla_load_options* options, oncilla_model** model)>;
void LoadBy(Model& model, nb::handle hook, const std::string& tags, int stored_devices, bool eager,
            const LoadFunction& load);

// Functions and classes that the Python part registers by name (__init__.py), and that live as long
// as the process. Nothing is imported on use: that could wait for another thread.
nb::handle PythonHelper(const char* name);

void DefineTensor(nb::module_& m);
void DefineDevices(nb::module_& m);
void DefineSession(nb::module_& m);
void DefineModel(nb::module_& m);
void DefineCallable(nb::module_& m);
void DefineGraph(nb::module_& m);
void DefineOpenCl(nb::module_& m);
void DefinePrecision(nb::module_& m);
void DefineDeferred(nb::module_& m);

}  // namespace oncilla_python
