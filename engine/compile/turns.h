// Turns: a lock for work that only one run at a time may do. A run that waits for it may end early.
// Thread-safe.
#pragma once

#include <utility>

#include "engine/base/mutex.h"
#include "engine/compile/run_control.h"

namespace oncilla {

class Turns {
 public:
  // Holds the turn until it is destroyed.
  class Turn {
   public:
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Turn() {
      if (turns_ == nullptr) return;
      MutexLock lock(&turns_->mutex_);
      turns_->taken_ = false;
    }

   private:
    friend class Turns;
    explicit Turn(Turns* turns) : turns_(turns) {}
    Turns* turns_;
  };

  // Waits until no other run has the turn. DeadlineExceeded or Cancelled when the run ends first;
  // `meanwhile` then says what it waited for: "while another run compiled the model".
  Result<Turn> Take(const RunControl& control, std::string_view meanwhile) {
    MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !taken_; };
    if (!AwaitReady(mutex_, control, free)) return In(MayGoOn(control), meanwhile);
    taken_ = true;
    return Turn(this);
  }

 private:
  Mutex mutex_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace oncilla
