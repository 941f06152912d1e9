// RunsUnderWay: counts the runs of a session in progress, and lets a run that needs memory wait
// until another one has ended. Thread-safe.
#pragma once

#include <cstdint>

#include "engine/base/mutex.h"
#include "engine/compile/run_control.h"

namespace oncilla {

class RunsUnderWay {
 public:
  // Registers a run from its beginning to its end.
  class Run {
   public:
    explicit Run(RunsUnderWay& runs) : runs_(runs) {
      MutexLock lock(&runs_.mutex_);
      ++runs_.running_;
    }
    ~Run() {
      MutexLock lock(&runs_.mutex_);
      --runs_.running_;
      ++runs_.ended_;
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    RunsUnderWay& runs_;
  };

  int running() const {
    MutexLock lock(&mutex_);
    return running_;
  }
  // How many runs have ended so far.
  int64_t ended() const {
    MutexLock lock(&mutex_);
    return ended_;
  }

  // For a registered run: waits until `ended()` is above `seen`. Returns false when the run should
  // end, and at once when all other runs are waiting here too, since none of them would free
  // anything.
  bool AwaitAnEnd(int64_t seen, const RunControl& control) {
    MutexLock lock(&mutex_);
    ++waiting_;
    const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_ > seen || waiting_ >= running_;
    };
    AwaitReady(mutex_, control, over);
    --waiting_;
    return ended_ > seen;
  }

  // Runs that all wait for each other retry one at a time: each may have held memory that another
  // one needed. Returns false when the run should end.
  bool AwaitTurn(const RunControl& control) {
    MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !turn_taken_; };
    if (!AwaitReady(mutex_, control, free)) return false;
    return turn_taken_ = true;
  }
  void EndTurn() {
    MutexLock lock(&mutex_);
    turn_taken_ = false;
  }

 private:
  mutable Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool turn_taken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace oncilla
