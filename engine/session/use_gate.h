// UseGate counts the users of an object that can be closed. Closing admits no new users and waits
// for the current ones. Thread-safe.
#pragma once

#include <optional>
#include <utility>

#include "engine/base/mutex.h"

namespace oncilla {

class UseGate {
 public:
  // Held while working with the object. It must not outlive the gate.
  class Use {
   public:
    Use(Use&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Use(const Use&) = delete;
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (gate_ == nullptr) return;
      MutexLock lock(&gate_->mutex_);
      --gate_->users_;
    }

   private:
    friend class UseGate;
    explicit Use(UseGate* gate) : gate_(gate) {}
    UseGate* gate_;
  };

  // Returns nothing once the gate is closed, or closing.
  std::optional<Use> Enter() {
    MutexLock lock(&mutex_);
    if (closed_ || draining_) return std::nullopt;
    ++users_;
    return Use(this);
  }

  // Admits no new users from now on; returns false if there still are users at the deadline.
  bool Drain(Deadline deadline) {
    MutexLock lock(&mutex_);
    draining_ = true;
    return mutex_.AwaitUntil(deadline,
                             [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
  }

  // Admits no new users from now on and waits until there are none; returns false if it was closed
  // before.
  bool Close() {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    closed_ = true;
    mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
    return true;
  }

  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }

 private:
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  int users_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace oncilla
