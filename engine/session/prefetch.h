// Prefetcher: produces the next feeds and copies them to the device while the device computes.
//
// A thread of its own calls the application's function and uploads the feeds that it produced, on a
// queue of its own, a bounded number of sets ahead: with two, one is filled while the other is
// read. If the device has no memory for another set, the thread waits until a set has been used.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/session/callable.h"

namespace oncilla {

// Produces the next feeds, in the callable's order; `feeds` has as many invalid tensors. Returns
// false at the end of the stream. A failure ends the stream too, and is returned in place of the
// next feeds.
using FeedSource = std::function<Result<bool>(std::span<Tensor> feeds)>;

class Prefetcher {
 public:
  // Starts at once. `depth`, at least 1: the number of sets that are ready or being produced.
  static Result<std::unique_ptr<Prefetcher>> Create(std::shared_ptr<Callable> callable,
                                                    FeedSource source, int depth = 2);
  // Waits for a call of the source that is in progress.
  ~Prefetcher();

  // Runs the callable on the next feeds; returns nothing at the end of the stream. A failure of the
  // source is returned after all sets produced before it; a failure of a run does not end the
  // stream. One call at a time.
  Result<std::optional<std::vector<RunValue>>> Next(const CallOptions& options = {});

  // How often the next set waited because the device had no memory for it.
  int64_t waits_for_memory() const;

 private:
  using Feeds = std::vector<RunValue>;
  Prefetcher(std::shared_ptr<Callable> callable, FeedSource source, size_t depth,
             std::vector<std::shared_ptr<DeviceLink>> links);
  void Fill();
  // Nothing at the end of the stream.
  Result<std::optional<Feeds>> Make();
  // Moves sets that are ready back to the host; none is uploaded while starved_.
  Status BringBack();
  Result<RunValue> Put(const Tensor& feed, DeviceLink* link);

  const std::shared_ptr<Callable> callable_;
  const FeedSource source_;
  const size_t depth_;
  const std::vector<std::shared_ptr<DeviceLink>> links_;
  mutable Mutex mutex_;
  std::deque<Feeds> ready_ ABSL_GUARDED_BY(mutex_);
  size_t out_ ABSL_GUARDED_BY(mutex_) = 0;    // sets that are ready or used by a run
  size_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // sets that runs have finished with so far
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool putting_ ABSL_GUARDED_BY(mutex_) = false;  // a set is being uploaded
  bool starved_ ABSL_GUARDED_BY(mutex_) = false;  // a run needs the device's memory: no uploads
  Status failure_ ABSL_GUARDED_BY(mutex_);
  int64_t waits_for_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace oncilla
