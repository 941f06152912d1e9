// Oncilla for C++17: results of runs, asynchronous runs and callables. Included by oncilla.hpp.
#ifndef ONCILLA_RUNS_HPP_
#define ONCILLA_RUNS_HPP_

#include <functional>
#include <memory>
#include <oncilla/oncilla_tensor.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oncilla {
inline namespace v0 {

// The outputs of a run, by position or by name, and its report. Copies refer to the same result.
class RunResult {
 public:
  size_t size() const { return oncilla_result_count(result_.get()); }
  std::string name(size_t index) const { return oncilla_result_name(result_.get(), index); }
  // The output at a position or of a name.
  template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
  Tensor operator[](I position) const {
    const auto index = static_cast<size_t>(position);
    return View(oncilla_result_tensor(result_.get(), index));
  }
  // An invalid tensor where there is no output of that name.
  Tensor operator[](const char* name) const {
    return View(oncilla_result_find(result_.get(), name));
  }
  Tensor operator[](const std::string& name) const { return (*this)[name.c_str()]; }
  bool Has(const std::string& name) const {
    return oncilla_result_find(result_.get(), name.c_str()) != nullptr;
  }
  // The output at a position, taken out of the result: an invalid tensor stands there from then on.
  // Its bytes may be changed, where nobody else has them (Tensor::mutable_raw).
  Result<Tensor> Take(size_t position) {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_result_take(result_.get(), position, &tensor));
    if (!status.ok()) return status;
    return Tensor::Adopt(tensor);
  }
  // Copies an output into the caller's memory, whose size must be exactly that of the tensor.
  Status CopyTo(const std::string& name, void* memory, size_t bytes) const {
    return Status(oncilla_result_copy(result_.get(), name.c_str(), memory, bytes));
  }
  std::string report() const { return oncilla_result_report(result_.get()); }
  // The trace of a run that had a trace level; see oncilla_result_trace.
  Result<std::string> Trace(oncilla_trace_format format = ONCILLA_TRACE_CHROME) const {
    size_t needed = 0;
    Status status(oncilla_result_trace(result_.get(), format, nullptr, 0, &needed));
    if (!status.ok()) return status;
    std::string bytes(needed, ' ');
    status = Status(oncilla_result_trace(result_.get(), format, bytes.data(), needed, nullptr));
    if (!status.ok()) return status;
    return bytes;
  }
  Status SaveTrace(const std::string& path,
                   oncilla_trace_format format = ONCILLA_TRACE_CHROME) const {
    return Status(oncilla_result_save_trace(result_.get(), format, path.c_str()));
  }

 private:
  friend class Model;
  friend class AsyncRun;
  friend class Callable;
  friend class Prefetcher;
  explicit RunResult(oncilla_result* owned) : result_(owned, oncilla_result_free) {}
  Tensor View(const oncilla_tensor* tensor) const {
    if (tensor == nullptr) return Tensor();
    return Tensor(std::shared_ptr<const oncilla_tensor>(result_, tensor));
  }
  std::shared_ptr<oncilla_result> result_;
};

// A cancellation token, which any thread may use to cancel the runs that have it; see
// oncilla_cancellation_create. Copies refer to the same token.
class Cancellation {
 public:
  // Whether this is a token: a default-constructed object is none and cancels nothing.
  explicit operator bool() const { return wish_ != nullptr; }
  static Result<Cancellation> Create() {
    oncilla_cancellation* wish = nullptr;
    Status status(oncilla_cancellation_create(&wish));
    if (!status.ok()) return status;
    Cancellation made;
    made.wish_ = std::shared_ptr<oncilla_cancellation>(wish, oncilla_cancellation_free);
    return made;
  }
  void Cancel() const { oncilla_cancellation_cancel(wish_.get()); }
  const oncilla_cancellation* get() const { return wish_.get(); }

 private:
  std::shared_ptr<oncilla_cancellation> wish_;
};

// A run on a thread of the session, in progress or over. Destroying the object does not end the
// run.
class AsyncRun {
 public:
  bool Done() const { return oncilla_run_done(run_.get()) != 0; }
  // Waits for the run and returns its result, once. When `timeout_ms` (negative: no limit) passes
  // before the run is over, ONCILLA_DEADLINE_EXCEEDED, with Done() still false.
  Result<RunResult> Wait(int64_t timeout_ms = -1) const {
    oncilla_result* result = nullptr;
    Status status(oncilla_run_wait(run_.get(), timeout_ms, &result));
    if (!status.ok()) return status;
    return RunResult(result);
  }
  void Cancel() const { oncilla_run_cancel(run_.get()); }

 private:
  friend class Model;
  explicit AsyncRun(oncilla_run* owned) : run_(owned, oncilla_run_free) {}
  std::shared_ptr<oncilla_run> run_;
};

struct CallableOptions {
  std::vector<std::string> inputs;        // names, in the order in which calls give the inputs
  std::vector<std::string> outputs = {};  // in the order of the results; empty: as in RunOptions
  std::string signature = {};             // this and the rest: as in RunOptions
  std::vector<std::string> targets = {};
  std::vector<std::string> keep = {};
  bool keep_all = false;
};

// A run whose names are looked up once, for calls that are made very often. Calls may overlap, also
// on several threads.
class Callable {
 public:
  Result<RunResult> operator()(const std::vector<Tensor>& inputs, int64_t timeout_ms = 0,
                               const Cancellation& cancellation = {}) const {
    std::vector<const oncilla_tensor*> tensors;
    for (const Tensor& t : inputs) tensors.push_back(t.get());
    oncilla_call_options c{};
    c.size = sizeof(c);
    c.timeout_ms = timeout_ms;
    c.cancellation = cancellation.get();
    oncilla_result* result = nullptr;
    Status status(
        oncilla_callable_run(callable_.get(), tensors.data(), tensors.size(), &c, &result));
    if (!status.ok()) return status;
    return RunResult(result);
  }
  oncilla_callable* get() const { return callable_.get(); }

 private:
  friend class Model;
  friend class Prefetcher;
  explicit Callable(oncilla_callable* owned) : callable_(owned, oncilla_callable_free) {}
  std::shared_ptr<oncilla_callable> callable_;
};

// Runs a callable on inputs that a function provides. They are uploaded while the device computes.
class Prefetcher {
 public:
  // Provides the next inputs, in the callable's order; returns false when there are no more. Called
  // on a thread of the prefetcher; must not throw.
  using Source = std::function<bool(std::vector<Tensor>& inputs)>;
  static Result<Prefetcher> Create(const Callable& callable, Source source, int depth = 2);

  // The results for the next inputs; empty() at the end of the stream.
  struct Item {
    std::shared_ptr<RunResult> result;
    bool empty() const { return result == nullptr; }
    Tensor operator[](size_t index) const { return (*result)[index]; }
  };
  Result<Item> Next(int64_t timeout_ms = 0, const Cancellation& cancellation = {}) const;

 private:
  struct State {
    Source source;
    std::vector<Tensor> inputs;  // of the last call of `source`
  };
  Prefetcher(std::unique_ptr<State> state, oncilla_prefetcher* owned)
      : state_(std::move(state)), prefetcher_(owned) {}
  std::unique_ptr<State> state_;  // outlives the prefetcher
  internal::Handle<oncilla_prefetcher, oncilla_prefetcher_free> prefetcher_;
};

inline Result<Prefetcher> Prefetcher::Create(const Callable& callable, Source source, int depth) {
  auto state = std::make_unique<State>();
  state->source = std::move(source);
  const oncilla_source_fn fill = [](void* user, const oncilla_tensor** inputs,
                                    size_t count) -> int {
    auto& s = *static_cast<State*>(user);
    s.inputs.clear();
    if (!s.source(s.inputs)) return 0;
    if (s.inputs.size() > count) return 2;
    for (size_t i = 0; i < count && i < s.inputs.size(); ++i) inputs[i] = s.inputs[i].get();
    return 1;
  };
  oncilla_prefetcher* prefetcher = nullptr;
  Status status(
      oncilla_prefetcher_create(callable.callable_.get(), fill, state.get(), depth, &prefetcher));
  if (!status.ok()) return status;
  return Prefetcher(std::move(state), prefetcher);
}

inline Result<Prefetcher::Item> Prefetcher::Next(int64_t timeout_ms,
                                                 const Cancellation& cancellation) const {
  oncilla_call_options c{};
  c.size = sizeof(c);
  c.timeout_ms = timeout_ms;
  c.cancellation = cancellation.get();
  oncilla_result* result = nullptr;
  Status status(oncilla_prefetcher_next(prefetcher_.get(), &c, &result));
  if (!status.ok()) return status;
  if (result == nullptr) return Item{};
  return Item{std::make_shared<RunResult>(RunResult(result))};
}

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_RUNS_HPP_
