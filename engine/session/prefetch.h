// Prefetcher: the next feeds are made and put on the device while the device computes.
//
// A thread of its own calls the application's function and uploads what it made, on another queue
// than the one that runs use, a bounded number of sets ahead: with two, one is being filled while
// the other is read. Where the device has no room for another set, it waits until one is used up.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/session/callable.h"

namespace oncilla {

// Makes the next feeds, in the callable's order; `feeds` has as many invalid tensors. False: there
// are no more. A failure ends the stream too, and is returned in place of the next feeds.
using FeedSource = std::function<Result<bool>(std::span<Tensor> feeds)>;

class Prefetcher {
 public:
  // Begins at once. `depth`, at least 1: sets that are ready or being made at any time.
  static Result<std::unique_ptr<Prefetcher>> Create(std::shared_ptr<Callable> callable,
                                                    FeedSource source, int depth = 2);
  // Waits for a call of the source that is under way.
  ~Prefetcher();

  // Runs the callable on the next feeds; nothing at the end of the stream. Failures of the source
  // come after all that it made before, in order; those of a run do not end the stream. One call at
  // a time.
  Result<std::optional<std::vector<RunValue>>> Next(const CallOptions& options = {});

  // How often the device had no room and the source's next set waited for it.
  int64_t waits_for_memory() const;

 private:
  using Feeds = std::vector<RunValue>;
  Prefetcher(std::shared_ptr<Callable> callable, FeedSource source, size_t depth,
             std::vector<std::shared_ptr<DeviceLink>> links);
  void Fill();
  // Nothing at the end of the stream.
  Result<std::optional<Feeds>> Make();
  // Sets that are ready go back to the host, and none goes up while starved_.
  Status BringBack();
  Result<RunValue> Put(const Tensor& feed, DeviceLink* link);

  const std::shared_ptr<Callable> callable_;
  const FeedSource source_;
  const size_t depth_;
  const std::vector<std::shared_ptr<DeviceLink>> links_;
  mutable Mutex mutex_;
  std::deque<Feeds> ready_ ABSL_GUARDED_BY(mutex_);
  size_t out_ ABSL_GUARDED_BY(mutex_) = 0;    // sets ready or in a run
  size_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // sets used up so far
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool putting_ ABSL_GUARDED_BY(mutex_) = false;  // a set is on its way to the device
  bool starved_ ABSL_GUARDED_BY(mutex_) =
      false;  // a run needs the device's memory: nothing goes up
  Status failure_ ABSL_GUARDED_BY(mutex_);
  int64_t waits_for_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace oncilla
