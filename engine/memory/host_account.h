// PoolAccount: host memory of one piece of work, under the limit of the host's pools.
//
// A run's tensors, scratch and strings on the host do not come from a pool; they are taken where
// they are needed, and counted here (engine/base/work_limits.h). What the work leaves behind when it
// is over, results above all, is the application's from then on.
#pragma once

#include <memory>

#include "engine/base/mutex.h"
#include "engine/base/work_limits.h"
#include "engine/memory/pool.h"

namespace oncilla {

class PoolAccount : public HostAccount {
 public:
  // Under the limit of `host`, which must live until Close(). Where that is taken up by regions that
  // the pool was told to keep, what is idle in them stands for what is taken here. The
  // machine is asked, too, before much is taken: a limit may be above what is free.
  PoolAccount(const Pool& host, OwnerId owner)
      : host_(host), held_(host.Hold({owner, MemoryCategory::kValues})) {}

  Status Take(int64_t bytes) override;
  void Give(int64_t bytes) noexcept override;
  // The work is over: nothing counts any more, of what is still there or taken later.
  void Close();

 private:
  const Pool& host_;
  Mutex mutex_;
  HeldMemory held_ ABSL_GUARDED_BY(mutex_);
  int64_t covered_ ABSL_GUARDED_BY(mutex_) = 0;  // by what is idle in the pool
  int64_t unasked_ ABSL_GUARDED_BY(mutex_) = 0;  // taken since the machine was asked
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// For work that makes a graph, or reads inputs: what it takes is gone, or counted elsewhere, when it
// is over, and no part of the limit. Bounded all the same: by what is given here, and by what the
// machine has.
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

// Counts what this thread's work takes until the end of its life, unless something does already: a
// run inside of a run. `end` may be null; what was in force before goes on where it is.
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
