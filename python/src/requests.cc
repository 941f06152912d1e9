// Reads the arguments of runs, and makes results.
#include "python/src/requests.h"

#include <cmath>
#include <cstring>

#include "python/src/deferred.h"
#include "python/src/interrupt.h"

namespace oncilla_python {
namespace {

bool Overlap(const oncilla_tensor* a, const oncilla_tensor* b) {
  const auto* first = static_cast<const char*>(oncilla_tensor_data(a));
  const auto* second = static_cast<const char*>(oncilla_tensor_data(b));
  return first != nullptr && second != nullptr && first < second + oncilla_tensor_bytes(b) &&
         second < first + oncilla_tensor_bytes(a);
}

}  // namespace

oncilla_kind KindOf(const oncilla_model* model, const char* name) {
  for (size_t s = 0; model != nullptr && s < oncilla_model_signature_count(model); ++s) {
    for (size_t i = 0; i < oncilla_model_output_count(model, s); ++i) {
      oncilla_tensor_info info{};
      info.size = sizeof(info);
      Check(oncilla_model_output(model, s, i, &info));
      if (std::strcmp(info.name, name) == 0) return info.kind;
    }
  }
  return ONCILLA_KIND_SEQUENCE;
}

int64_t Milliseconds(nb::handle seconds) {
  if (!seconds.is_valid() || seconds.is_none()) return 0;
  double given = 0;
  if (!nb::try_cast(seconds, given)) {
    const std::string type = nb::cast<std::string>(nb::str(seconds.type().attr("__name__")));
    throw nb::type_error(("timeout must be a number of seconds, not " + type).c_str());
  }
  constexpr double kMost = 1e15;  // milliseconds; longer than any clock runs
  if (!(given > 0)) throw nb::value_error("timeout must be a positive number of seconds");
  return static_cast<int64_t>(std::min(std::ceil(given * 1000), kMost));
}

oncilla_call_options CallOptionsOf(nb::handle timeout, nb::handle cancel) {
  oncilla_call_options options{};
  options.size = sizeof(options);
  options.timeout_ms = Milliseconds(timeout);
  if (cancel.is_valid() && !cancel.is_none()) {
    options.cancellation = nb::cast<const Cancellation&>(cancel).handle.get();
  }
  return options;
}

Request::~Request() {
  for (Py_buffer& view : views_) PyBuffer_Release(&view);
}

void Request::Add(nb::handle name, nb::handle value) {
  names_.push_back(TextOf(name));
  feeds_.push_back(ToFeed(value, convert_, name, plain_));
  tensors_.push_back(feeds_.back().tensor);
}

void Request::AddAll(nb::dict inputs) {
  for (const auto [name, value] : inputs) {
    if (!nb::isinstance<nb::str>(name)) throw nb::type_error("names of inputs must be str");
    Add(name, value);
  }
}

std::vector<const char*> Request::Texts(nb::handle list) {
  std::vector<const char*> texts;
  held_.push_back(nb::steal(PySequence_Tuple(list.ptr())));
  if (!held_.back().is_valid()) throw nb::python_error();
  for (nb::handle item : held_.back()) texts.push_back(TextOf(item));
  return texts;
}

void Request::SetOptions(nb::dict options) {
  c.size = sizeof(c);
  if (options.size() == 0) return;  // each look-up makes a str
  const auto given = [&](const char* key) {
    nb::handle value = PyDict_GetItemString(options.ptr(), key);
    return value.is_valid() && value.is_none() ? nb::handle() : value;
  };
  if (const nb::handle v = given("signature")) c.signature = TextOf(v);
  if (const nb::handle v = given("device")) c.device = TextOf(v);
  if (const nb::handle v = given("timeout")) c.timeout_ms = Milliseconds(v);
  if (const nb::handle v = given("cancel")) {
    c.cancellation = nb::cast<const Cancellation&>(v).handle.get();
  }
  if (const nb::handle v = given("trace")) c.trace_level = nb::cast<int>(v);
  if (const nb::handle v = given("outputs")) {
    outputs_ = Texts(v);
    c.outputs = outputs_.data();
    c.output_count = outputs_.size();
  }
  if (const nb::handle v = given("targets")) {
    targets_ = Texts(v);
    c.targets = targets_.data();
    c.target_count = targets_.size();
  }
  if (const nb::handle v = given("keep")) {
    if (v.is(Py_True)) {
      c.keep_all = 1;
    } else {
      keep_ = Texts(v);
      c.keep = keep_.data();
      c.keep_count = keep_.size();
    }
  }
  if (const nb::handle v = given("into")) {
    for (const auto [name, memory] : nb::borrow<nb::dict>(v)) {
      Py_buffer view;
      if (PyObject_GetBuffer(memory.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) {
        throw nb::python_error();
      }
      views_.push_back(view);
      into_.push_back({TextOf(name), view.buf, static_cast<size_t>(view.len)});
    }
    c.into = into_.data();
    c.into_count = into_.size();
  }
}

oncilla_status* Request::Run(oncilla_model* model, oncilla_result** result) {
  const Interruptible interruptible(c.cancellation);
  c.size = sizeof(c);
  c.cancellation = interruptible.token();
  const Unlock unlocked;
  return oncilla_model_run(model, names_.data(), tensors_.data(), names_.size(), &c, result);
}

oncilla_status* Request::Start(oncilla_model* model, oncilla_done_fn done, void* user,
                               oncilla_run** run) {
  c.size = sizeof(c);
  const Unlock unlocked;
  return oncilla_model_run_async(model, names_.data(), tensors_.data(), names_.size(), &c, done,
                                 user, run);
}

oncilla_status* Request::Prepare(oncilla_model* model) {
  c.size = sizeof(c);
  const Unlock unlocked;
  return oncilla_model_prepare(model, names_.data(), tensors_.data(), names_.size(), &c);
}

TensorHandle TakeOutput(oncilla_result* result, size_t index, const std::vector<Feed>& fed) {
  const oncilla_tensor* tensor = oncilla_result_tensor(result, index);
  oncilla_tensor* made = nullptr;
  for (const Feed& feed : fed) {
    if (feed.owned == nullptr || !Overlap(tensor, feed.tensor)) continue;
    Check(oncilla_tensor_create(oncilla_tensor_dtype(tensor), oncilla_tensor_dims(tensor),
                                oncilla_tensor_rank(tensor), oncilla_tensor_data(tensor),
                                oncilla_tensor_bytes(tensor), &made));
    return TensorHandle(made);
  }
  Check(oncilla_result_take(result, index, &made));
  return TensorHandle(made);
}

nb::object ResultOf(oncilla_model* model, ResultHandle result, bool bytes,
                    const std::vector<Feed>& fed) {
  static PyObject* const kind = PythonHelper("Result").ptr();  // held for the life of the process
  static PyObject* const native = PyUnicode_InternFromString("_native");
  nb::object outputs = nb::handle(kind)();
  oncilla_result* from = result.get();
  for (size_t i = 0; i < oncilla_result_count(from); ++i) {
    const char* name = oncilla_result_name(from, i);
    const bool list = oncilla_tensor_is_sequence(oncilla_result_tensor(from, i)) != 0;
    const nb::object value =
        ToPython(TakeOutput(from, i, fed), bytes, list ? KindOf(model, name) : ONCILLA_KIND_TENSOR);
    if (PyDict_SetItem(outputs.ptr(), NameOf(name).ptr(), value.ptr()) != 0) {
      throw nb::python_error();
    }
  }
  const nb::object held = nb::cast(std::move(result));
  if (PyObject_SetAttr(outputs.ptr(), native, held.ptr()) != 0) throw nb::python_error();
  return outputs;
}

nb::object Request::MakeResult(oncilla_model* model, ResultHandle result) const {
  return ResultOf(model, std::move(result), bytes_, feeds_);
}

}  // namespace oncilla_python
