// PoolAccount: counts the host memory of one unit of work under the limit of the host's pools.
//
// A run's tensors, scratch and strings on the host do not come from a pool; they are allocated
// where they are needed, and counted here (engine/base/work_limits.h). What remains when the work
// is over, mainly results, belongs to the application from then on.
#pragma once

#include <memory>

#include "engine/base/mutex.h"
#include "engine/base/work_limits.h"
#include "engine/memory/pool.h"

namespace oncilla {

class PoolAccount : public HostAccount {
 public:
  // Counts under the limit of `host`, which must live until Close(). Where that limit is used up by
  // regions that the pool was told to keep, memory taken here is offset against their idle part.
  // Before much is taken, the machine's free memory is checked as well: a limit may be above it.
  PoolAccount(const Pool& host, OwnerId owner)
      : host_(host), held_(host.Hold({owner, MemoryCategory::kValues})) {}

  Status Take(int64_t bytes) override;
  void Give(int64_t bytes) noexcept override;
  // Ends the counting: memory that is still held or taken later is no longer counted.
  void Close();

 private:
  const Pool& host_;
  Mutex mutex_;
  HeldMemory held_ ABSL_GUARDED_BY(mutex_);
  int64_t covered_ ABSL_GUARDED_BY(mutex_) = 0;  // by what is idle in the pool
  int64_t unasked_ ABSL_GUARDED_BY(mutex_) = 0;  // taken since the machine was asked
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// For work that builds a graph or reads inputs: the memory that it takes is freed, or counted
// elsewhere, when it is over, and is not part of the session's limit. It is bounded all the same:
// by `most`, and by what the machine has.
class BoundedAccount : public HostAccount {
 public:
  explicit BoundedAccount(int64_t most) : most_(most) {}
  Status Take(int64_t bytes) override;
  void Give(int64_t bytes) noexcept override;

 private:
  const int64_t most_;
  Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t unasked_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Counts what this thread's work allocates for as long as the object lives, unless it is counted
// already (a run inside a run). `end` may be null; the EarlyEnd that was in force then stays in
// force.
class CountedWork {
 public:
  CountedWork(const Pool& host, OwnerId owner, const EarlyEnd* end);
  ~CountedWork();
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;

 private:
  std::shared_ptr<PoolAccount> own_;  // null inside of counted work
  const WorkScope scope_;
};

}  // namespace oncilla
