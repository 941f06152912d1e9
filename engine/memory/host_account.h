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
  // On the line, and under the limit, of `held`. The machine is asked, too, before much is taken:
  // a limit may be above what is free.
  explicit PoolAccount(HeldMemory held) : held_(std::move(held)) {}

  Status Take(int64_t bytes) override;
  void Give(int64_t bytes) noexcept override;
  // The work is over: nothing counts any more, of what is still there or taken later.
  void Close();

 private:
  Mutex mutex_;
  HeldMemory held_ ABSL_GUARDED_BY(mutex_);
  int64_t unasked_ ABSL_GUARDED_BY(mutex_) = 0;  // taken since the machine was asked
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
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
