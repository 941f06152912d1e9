// Waiting for events: see waiter.h.
#include "backends/opencl/runtime/waiter.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace oncilla::opencl {
namespace {

using std::chrono::microseconds;

// How long a wait yields before it asks for a callback.
constexpr microseconds kAtFirst(20);
// How close to its expected end a wait polls continuously: about the time it takes to wake a
// thread.
constexpr microseconds kClose(60);
// The number of waits of a run whose durations are remembered.
constexpr size_t kMostPlaces = 64;

Status StillWorking(std::chrono::steady_clock::duration waited) {
  return WithStage(
      Error(Code::kDeadlineExceeded, "the device is still working after ",
            std::chrono::duration_cast<std::chrono::milliseconds>(waited).count(), " ms"),
      Stage::kDevice);
}

}  // namespace

// What the driver's callback and the wait share. Each owns a reference; the last one frees it.
class Waiter::Signal {
 public:
  // Asks the driver to call back.
  static std::shared_ptr<Signal> On(const Api& api, cl_event event) {
    auto signal = std::make_shared<Signal>();
    auto owner = std::make_unique<std::shared_ptr<Signal>>(signal);
    signal->asked_ =
        api.SetEventCallback(event, CL_COMPLETE, &Signal::Called, owner.get()) == CL_SUCCESS;
    if (signal->asked_) (void)owner.release();  // Called takes ownership
    return signal;
  }

  bool asked() const { return asked_; }

  // Returns at once if the callback has already come. A callback counts once.
  void WaitUntil(Clock::time_point time) {
    std::unique_lock<std::mutex> lock(mutex_);
    called_.wait_until(lock, time, [&] { return came_; });
    came_ = false;
  }

 private:
  static void CL_CALLBACK Called(cl_event, cl_int, void* data) {
    const std::unique_ptr<std::shared_ptr<Signal>> owner(
        static_cast<std::shared_ptr<Signal>*>(data));
    Signal& signal = **owner;
    const std::lock_guard<std::mutex> lock(signal.mutex_);
    signal.came_ = true;
    signal.called_.notify_one();
  }

  bool asked_ = false;
  std::mutex mutex_;
  std::condition_variable called_;
  bool came_ = false;
};

void Waiter::Restart() {
  place_ = 0;
  event_ = nullptr;
  signal_.reset();
}

Waiter::Clock::time_point Waiter::NextLook(Clock::time_point now) const {
  const Clock::duration waited = now - since_;
  if (waited < kAtFirst) return now;
  if (looks_closely_ && place_ < last_.size()) {
    const Clock::duration expected = last_[place_];
    if (waited >= expected - kClose && waited < expected + kClose) return now;
    if (waited < expected - kClose) return since_ + (expected - kClose);
  }
  // With a callback pending, polling is rare, since it only guards against drivers that forget
  // callbacks. Without one, only polling notices the end; it costs a few percent of the waiting
  // time.
  const bool called = signal_ != nullptr && signal_->asked();
  return now + (called ? std::clamp<Clock::duration>(waited, std::chrono::milliseconds(1),
                                                     std::chrono::milliseconds(50))
                       : std::min<Clock::duration>(waited / 32, microseconds(250)));
}

Status Waiter::Wait(cl_event event, Clock::time_point deadline) {
  if (event != event_) {
    event_ = event;
    since_ = Clock::now();
    signal_.reset();
  }
  while (!IsDone(api_, event)) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return StillWorking(now - since_);
    const Clock::time_point look = NextLook(now);
    if (look <= now) {
      std::this_thread::yield();
      continue;
    }
    if (signal_ == nullptr) {
      signal_ = Signal::On(api_, event);
      continue;
    }
    if (signal_->asked()) {
      signal_->WaitUntil(std::min(look, deadline));
    } else {
      std::this_thread::sleep_until(std::min(look, deadline));
    }
  }
  if (place_ < kMostPlaces) {
    if (place_ == last_.size()) last_.emplace_back();
    last_[place_++] = Clock::now() - since_;
  }
  event_ = nullptr;
  signal_.reset();
  return Outcome(api_, event);
}

}  // namespace oncilla::opencl
