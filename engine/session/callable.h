// Callable: a run whose names are settled once. Feeds go in by position, results come out by
// position, on the host or on devices; nothing is looked up per call.
//
// It keeps the model's object, not its memory: once that is unloaded, calls fail with
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
  RunStats* stats = nullptr;  // gets what the call cost
  // Per output, memory of the application's (DeviceLink::Wrap) that is to have it; invalid: none;
  // empty: none at all. What the device computes is written there at once, unless the run may end
  // early or a feed lies there too; what else there is, is copied there at the end. After a failure
  // the contents are anything.
  std::span<const DeviceTensor> into = {};
};

class Callable {
 public:
  // Names that are not there, and feeds that are missing, are refused now; what nothing needs may
  // be fed and is ignored. Where the graph cannot be made for any feeds of these names (a function
  // that is chosen by its arguments, an op that needs a rank), each call finds the one for what it
  // is given, and a model that is not supported is refused by the first.
  static Result<std::shared_ptr<Callable>> Create(std::shared_ptr<Model> model,
                                                  CallableOptions options);
  ~Callable();

  // A feed may be a tensor of the host or on any device of the session, from call to call, or a
  // sequence.
  Result<std::vector<RunValue>> Run(std::span<const RunValue> feeds,
                                    const CallOptions& options = {});

  // Enqueues the run on a queue of the application's and waits for nothing (run/enqueue.h):
  // feeds by position, a tensor to write to for each output, events to begin after.
  Result<EnqueuedRun> Enqueue(void* queue, std::span<const RunValue> feeds,
                              std::span<const DeviceTensor> into, std::span<void* const> wait_for,
                              bool profile = false);

  // Per feed, the device that it is best put on beforehand (DeviceLink::Write); null: the host.
  Result<std::vector<std::shared_ptr<DeviceLink>>> FeedLinks();

  const CallableOptions& options() const { return options_; }
  // Names of the results.
  const std::vector<std::string>& outputs() const { return outputs_; }
  Model& model() { return *model_; }

 private:
  using Bound = CallableState::Bound;
  Callable(std::shared_ptr<Model> model, CallableOptions options);
  // For any feeds of these names.
  Result<std::shared_ptr<const Bound>> Bind(const RunControl& control);
  Result<std::shared_ptr<const Bound>> BoundTo(std::shared_ptr<Executor> executor) const;
  Result<std::shared_ptr<const Bound>> BoundFor(std::span<const RunValue> feeds,
                                                const RunControl& control);
  // Does `work` with what serves these feeds: what is bound to any, else to them alone.
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
