// The classes Callable, a run whose names are looked up once, and Prefetcher, which reads ahead.
#include "python/src/callable.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/deferred.h"
#include "python/src/interrupt.h"

namespace oncilla_python {

Fed FeedsOf(const Callable& callable, nb::handle values) {
  const nb::tuple given = nb::borrow<nb::tuple>(values);
  if (given.size() != callable.inputs.size()) {
    throw nb::type_error(("the callable takes " + std::to_string(callable.inputs.size()) +
                          " inputs, not " + std::to_string(given.size()))
                             .c_str());
  }
  Fed fed;
  for (size_t i = 0; i < given.size(); ++i) {
    fed.feeds.push_back(ToFeed(given[i], callable.convert, callable.inputs[i], callable.plain));
    fed.tensors.push_back(fed.feeds.back().tensor);
  }
  return fed;
}

namespace {

std::vector<const char*> Texts(nb::handle names) {
  std::vector<const char*> texts;
  for (nb::handle name : names) texts.push_back(TextOf(name));
  return texts;
}

Callable* Make(nb::handle self, nb::object signature, nb::tuple inputs, nb::list outputs,
               nb::list targets, nb::list keep, bool keep_all, nb::object convert) {
  const auto& model = nb::cast<Model&>(self);
  const auto names = Texts(inputs), o = Texts(outputs), t = Texts(targets), k = Texts(keep);
  oncilla_callable_options options{};
  options.size = sizeof(options);
  options.signature = signature.is_none() ? nullptr : TextOf(signature);
  options.inputs = names.data();
  options.input_count = names.size();
  options.outputs = o.data();
  options.output_count = o.size();
  options.targets = t.data();
  options.target_count = t.size();
  options.keep = k.data();
  options.keep_count = k.size();
  options.keep_all = keep_all ? 1 : 0;
  oncilla_callable* made = nullptr;
  Unlocked([&, of = Need(model)] { return oncilla_model_make_callable(of, &options, &made); });
  auto callable = std::make_unique<Callable>();
  callable->handle.reset(made);
  callable->model = nb::borrow(self);
  callable->convert = convert;
  callable->inputs = inputs;
  callable->bytes = model.bytes;
  callable->plain = model.plain;
  return callable.release();
}

// Results by position: a single value, or a tuple.
nb::object ValuesOf(const Callable& callable, ResultHandle result, const std::vector<Feed>& fed) {
  const size_t count = oncilla_result_count(result.get());
  nb::list values;
  for (size_t i = 0; i < count; ++i) {
    const bool list = oncilla_tensor_is_sequence(oncilla_result_tensor(result.get(), i)) != 0;
    const oncilla_kind kind = list ? KindOf(nb::cast<const Model&>(callable.model).handle.get(),
                                            oncilla_result_name(result.get(), i))
                                   : ONCILLA_KIND_TENSOR;
    values.append(ToPython(TakeOutput(result.get(), i, fed), callable.bytes, kind));
  }
  return count == 1 ? nb::borrow(values[0]) : nb::object(nb::tuple(values));
}

nb::object Call(Callable& callable, nb::handle values, oncilla_call_options options) {
  nb::object result;
  {
    const WillDrain drained_below;
    const Fed fed = FeedsOf(callable, values);
    oncilla_result* ran = nullptr;
    oncilla_status* failure = nullptr;
    {
      const Interruptible interruptible(options.cancellation);
      options.cancellation = interruptible.token();
      const Unlock unlocked;
      failure = oncilla_callable_run(callable.handle.get(), fed.tensors.data(), fed.tensors.size(),
                                     &options, &ran);
    }
    CheckRun(failure);
    result = ValuesOf(callable, ResultHandle(ran), fed.feeds);
  }
  Drain();
  return result;
}

// Inputs from a Python iterator, which is read on a thread of the prefetcher.
struct Source {
  nb::object iterator;
  const Callable* callable = nullptr;
  Fed current;
  nb::object failure;
};

struct Prefetcher {
  Handle<oncilla_prefetcher, oncilla_prefetcher_free> handle;
  nb::object callable;
  std::unique_ptr<Source> source;
  ~Prefetcher() { FreeUnlocked(handle); }
};

int ReadNext(void* user, const oncilla_tensor** inputs, size_t count) {
  constexpr int kEnd = 0, kRead = 1, kFailed = 2;
  if (Py_IsInitialized() == 0 || InterpreterEnds()) return kEnd;
  nb::gil_scoped_acquire locked;
  auto* source = static_cast<Source*>(user);
  try {
    PyObject* item = PyIter_Next(source->iterator.ptr());
    if (item == nullptr) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return kEnd;
    }
    const nb::object value = nb::steal(item);
    const nb::object values =
        nb::isinstance<nb::tuple>(value) ? value : nb::object(nb::make_tuple(value));
    source->current = FeedsOf(*source->callable, values);
    for (size_t i = 0; i < count; ++i) inputs[i] = source->current.tensors[i];
    return kRead;
  } catch (nb::python_error& failure) {
    source->failure = nb::borrow(failure.value());
  } catch (const std::exception& failure) {
    source->failure = nb::borrow(PyExc_TypeError)(failure.what());
  }
  return kFailed;
}

Prefetcher* Prefetch(nb::handle self, nb::handle iterable, int depth) {
  auto& callable = nb::cast<Callable&>(self);
  auto made = std::make_unique<Prefetcher>();
  made->callable = nb::borrow(self);
  made->source = std::make_unique<Source>();
  made->source->iterator = nb::steal(PyObject_GetIter(iterable.ptr()));
  if (!made->source->iterator.is_valid()) throw nb::python_error();
  made->source->callable = &callable;
  oncilla_prefetcher* handle = nullptr;
  Unlocked([&] {
    return oncilla_prefetcher_create(callable.handle.get(), ReadNext, made->source.get(), depth,
                                     &handle);
  });
  made->handle.reset(handle);
  return made.release();
}

nb::object Next(Prefetcher& prefetcher) {
  oncilla_result* ran = nullptr;
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = oncilla_prefetcher_next(prefetcher.handle.get(), nullptr, &ran);
  }
  Drain();
  if (failure != nullptr && prefetcher.source->failure.is_valid()) {
    oncilla_status_free(failure);
    const nb::object raised = std::move(prefetcher.source->failure);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    throw nb::python_error();
  }
  Check(failure);
  if (ran == nullptr) throw nb::stop_iteration();
  return ValuesOf(nb::cast<Callable&>(prefetcher.callable), ResultHandle(ran), {});
}

}  // namespace

void DefineCallable(nb::module_& m) {
  nb::class_<Callable>(m, "Callable",
                       "A run whose names are looked up once: inputs and results by position.")
      .def("__call__",
           [](Callable& c, nb::args values) { return Call(c, values, CallOptionsOf({}, {})); })
      .def(
          "run",
          [](Callable& c, nb::args values, nb::object timeout, nb::object cancel) {
            return Call(c, values, CallOptionsOf(timeout, cancel));
          },
          nb::arg("values"), nb::kw_only(), nb::arg("timeout") = nb::none(),
          nb::arg("cancel") = nb::none(),
          "Like a call, with a time limit in seconds and a Cancellation.")
      .def("prefetch", &Prefetch, nb::arg("inputs"), nb::kw_only(), nb::arg("depth") = 0,
           "Iterates over the results for an iterable of inputs (a tuple each, or one array), "
           "which\n"
           "is read, and uploaded, `depth` sets ahead (0: 2) on another thread.")
      .def_prop_ro("inputs", [](const Callable& c) { return c.inputs; });
  nb::class_<Prefetcher>(m, "Prefetcher", "The results of Callable.prefetch.")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", &Next);
  m.def("_make_callable", &Make, nb::arg("model"), nb::arg("signature").none(), nb::arg("inputs"),
        nb::arg("outputs"), nb::arg("targets"), nb::arg("keep"), nb::arg("keep_all"),
        nb::arg("convert"));
}

}  // namespace oncilla_python
