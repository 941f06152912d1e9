// The arguments of a run as Python gives them, in the form of the C interface.
#pragma once

#include "python/src/arrays.h"
#include "python/src/text.h"

namespace oncilla_python {

// Refers to the Python objects it was made from, which live as long as the call.
class Request {
 public:
  Request(nb::handle convert, const Model& model)
      : convert_(convert), bytes_(model.bytes), plain_(model.plain) {}
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void Add(nb::handle name, nb::handle value);
  void AddAll(nb::dict inputs);
  // signature, outputs, targets, device, timeout, cancel, keep, into, trace; None: not given.
  void SetOptions(nb::dict options);

  oncilla_status* Run(oncilla_model* model, oncilla_result** result);
  // Call it with the interpreter's lock: it only queues the run.
  oncilla_status* Start(oncilla_model* model, oncilla_done_fn done, void* user, oncilla_run** run);
  oncilla_status* Prepare(oncilla_model* model);

  oncilla_run_options c{};
  // The result as Python's `Result`, whose arrays share no memory with arrays that were passed in.
  nb::object MakeResult(oncilla_model* model, ResultHandle result) const;
  std::vector<Feed> TakeFeeds() { return std::move(feeds_); }

 private:
  std::vector<const char*> Texts(nb::handle list);
  nb::handle convert_;
  const bool bytes_, plain_;
  std::vector<const char*> names_, outputs_, targets_, keep_;
  std::vector<const oncilla_tensor*> tensors_;
  std::vector<Feed> feeds_;
  std::vector<oncilla_output_memory> into_;
  std::vector<Py_buffer> views_;
  std::vector<nb::object> held_;
};

// The options of a call with a time limit and a token: (timeout in seconds or None, token or None).
oncilla_call_options CallOptionsOf(nb::handle timeout, nb::handle cancel);
int64_t Milliseconds(nb::handle seconds);

// The kind that the model declares for an output that is a sequence or an optional value.
oncilla_kind KindOf(const oncilla_model* model, const char* name);
// The outputs as a dict of arrays; `fed` are arrays whose memory a result must not share.
nb::object ResultOf(oncilla_model* model, ResultHandle result, bool bytes,
                    const std::vector<Feed>& fed);
// The output at that place, out of the result, or a copy of it where its memory lies in an array
// that was passed in.
TensorHandle TakeOutput(oncilla_result* result, size_t index, const std::vector<Feed>& fed);

}  // namespace oncilla_python
