// Callable: a run whose names are resolved once. Feeds and results are identified by position, on
// the host or on devices; no name is looked up per call.
//
// It keeps the model's object alive, not its memory: once the model is unloaded, calls fail with
// FailedPrecondition. Thread-safe: calls may overlap.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/run/enqueue.h"
#include "engine/session/model.h"

namespace oncilla {

struct CallableOptions {
  std::string signature;                  // empty: the default one
  std::vector<std::string> feeds;         // in the order of the calls' feeds
  std::vector<std::string> fetches;       // in the order of the results; empty: as RunRequest
  std::vector<std::string> targets = {};  // as RunRequest
  std::vector<std::string> keep = {};     // results that stay on the device that computes them
  bool keep_all = false;
  std::string device = {};  // as RunRequest
};

struct CallOptions {
  std::chrono::milliseconds timeout{0};  // 0: none
  CancellationToken cancel = {};
  RunStats* stats = nullptr;  // receives the cost of the call
  // Per output, memory of the application (DeviceLink::Wrap) for the result; invalid: none for this
  // output; empty: none at all. A result that the device computes is written there directly, unless
  // the run may end early or a feed uses the same memory; any other is copied there at the end.
  // After a failure the contents are undefined.
  std::span<const DeviceTensor> into = {};
};

class Callable {
 public:
  // NotFound for unknown names, InvalidArgument for missing feeds; feeds that are not needed are
  // accepted and ignored. Some graphs cannot be made from names alone (a function that is chosen by
  // its arguments, an op that needs a rank): then each call finds the graph for its feeds, and the
  // first call reports a model that is not supported.
  static Result<std::shared_ptr<Callable>> Create(std::shared_ptr<Model> model,
                                                  CallableOptions options);
  ~Callable();

  // A feed may be a host tensor, a tensor on any device of the session, or a sequence; this may
  // differ from call to call.
  Result<std::vector<RunValue>> Run(std::span<const RunValue> feeds,
                                    const CallOptions& options = {});

  // Enqueues the run on a queue of the application without waiting (run/enqueue.h): feeds by
  // position, a tensor for each output, events after which the run begins.
  Result<EnqueuedRun> Enqueue(void* queue, std::span<const RunValue> feeds,
                              std::span<const DeviceTensor> into, std::span<void* const> wait_for,
                              bool profile = false);

  // Per feed, the device to which it is best copied beforehand (DeviceLink::Write); null: the host.
  Result<std::vector<std::shared_ptr<DeviceLink>>> FeedLinks();

  const CallableOptions& options() const { return options_; }
  // Names of the results.
  const std::vector<std::string>& outputs() const { return outputs_; }
  Model& model() { return *model_; }

 private:
  using Bound = CallableState::Bound;
  Callable(std::shared_ptr<Model> model, CallableOptions options);
  // The binding for any feeds of these names.
  Result<std::shared_ptr<const Bound>> Bind(const RunControl& control);
  Result<std::shared_ptr<const Bound>> BoundTo(std::shared_ptr<Executor> executor) const;
  Result<std::shared_ptr<const Bound>> BoundFor(std::span<const RunValue> feeds,
                                                const RunControl& control);
  // Calls `work` with the binding for these feeds: the one for any feeds, else one for them alone.
  template <class Given, class Work>
  Result<Given> WithBound(std::span<const RunValue> feeds, const RunControl& control,
                          const Work& work);
  Status CheckFeeds(std::span<const RunValue> feeds) const;
  std::vector<NamedRunValue> Named(std::span<const RunValue> feeds) const;
  Result<std::vector<RunValue>> RunInto(const Bound& bound, std::span<const RunValue> inputs,
                                        std::span<const DeviceTensor> into, RunControl control);

  const std::shared_ptr<Model> model_;
  const CallableOptions options_;
  ImportRequest names_;  // what calls ask for
  std::vector<std::string> outputs_;
  bool for_any_ = true;  // one graph serves any feeds, as far as sizes allow
  const std::shared_ptr<CallableState> state_ = std::make_shared<CallableState>();
};

}  // namespace oncilla
