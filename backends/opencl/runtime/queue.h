// Queue and Event of the OpenCL backend: an in-order command queue, and the completion of one
// submission.
//
// Commands write to host memory after Submit has returned (the error word, downloads), so the queue
// keeps events alive until they are settled: their command is done and their outcome read. The
// queue is in order, so a failure that was not waited for is also the outcome of what follows it:
// waiting for a download reports the failure of any kernel before it. Work that is not done a short
// while after its queue was closed is considered hung: its objects are abandoned, and nothing waits
// for it again.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backends/opencl/runtime/recording.h"
#include "backends/opencl/runtime/waiter.h"
#include "engine/device/host_objects.h"

namespace oncilla::opencl {

class ClQueue;

class ClEvent : public Event {
 public:
  std::vector<StepTime> step_times() const override { return times; }

  ClQueue* queue = nullptr;  // null once settled
  EventObject last;          // the submission's last command
  std::shared_ptr<const ClRecording::Names> names;
  cl_int error_word = 0;  // the driver writes it
  std::vector<std::pair<int, EventObject>> stamps;
  std::vector<StepTime> times;
  Status outcome;  // once settled
  // The queue's first failure that no wait has returned yet; shared by all its events.
  std::shared_ptr<Status> untold;
};

// The health of a device, which its queues share.
struct QueueHealth {
  std::atomic<bool> hung{false};  // some work was abandoned
  // Queues that are closed do not wait beyond this.
  std::atomic<Deadline::duration> close_by{kNoDeadline.time_since_epoch()};

  // `patience`, or less if the device is to be closed soon.
  std::chrono::milliseconds Within(std::chrono::milliseconds patience) const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(close_by.load() - now);
    return std::max(std::chrono::milliseconds(0), std::min(patience, left));
  }
};

// The owner of the command queue. On the application's queue the engine only enqueues, and waits or
// flushes only in Wait: outcomes are read as far as possible without either.
enum class QueueOwner { kEngine, kApplication };

class ClQueue : public Queue {
 public:
  struct Options {
    QueueOwner owner = QueueOwner::kEngine;
    bool stamps = false;         // the command queue has time stamps, which Submit may ask for
    bool looks_closely = false;  // see waiter.h
  };
  // `flushes` counts; it and `health` must outlive the queue.
  ClQueue(const Api& api, CommandQueue queue, QueueHealth& health, std::atomic<int64_t>& flushes,
          const Options& options)
      : api_(api),
        queue_(std::move(queue)),
        health_(health),
        flushes_(flushes),
        foreign_(options.owner == QueueOwner::kApplication),
        stamps_(options.stamps),
        waiter_(api, options.looks_closely) {}
  // Gives work in progress a few seconds; less when waits for it have already timed out, and none
  // when they have for long or the device is known to hang.
  ~ClQueue() override;

  // Neither blocks. Work has certainly started after a Transfer with downloads, a Poll or a Wait,
  // each of which flushes what was not flushed yet; the first launches and long pieces are flushed
  // at once, so that the device works while the rest is enqueued. After a failure a part may be
  // enqueued, but nothing that writes to the caller's memory.
  Result<EventPtr> Submit(const ClRecording& recording, std::span<const BufferView> externals,
                          bool profile);
  Result<EventPtr> Transfer(std::span<const Upload> uploads, std::span<const Download> downloads);
  // Copies between memory of the device.
  Result<EventPtr> Copy(std::span<const DeviceCopy> copies);
  // Later commands begin after these events.
  Status EnqueueAfter(std::span<const cl_event> events);
  // True when Wait would return at once.
  bool Poll(const ClEvent& event);
  // Settles the event and all before it, unless the deadline comes first. For WaitForEvent.
  Status Wait(ClEvent& event, Deadline deadline);

 private:
  std::chrono::milliseconds Patience() const;
  // `stamps` gets an event per copy, numbered as in device.h.
  Status EnqueueTransfers(std::span<const Upload> uploads, std::span<const Download> downloads,
                          std::vector<std::pair<int, EventObject>>& stamps);
  Result<EventPtr> Finish(std::shared_ptr<ClEvent> event, cl_event last);
  Status Flush();
  // Flushes once enough launches have gathered; `launched` more have been enqueued.
  Status FlushSome(size_t launched);
  // Waits until all is done; returns false when it takes too long.
  bool Drain(std::chrono::milliseconds limit);
  // The same on a queue of the application, by polling.
  bool SeeItOver(std::chrono::milliseconds limit);
  // `may_wait`: read the outcome by a wait, which alone returns it reliably.
  void Settle(ClEvent& event, bool may_wait);
  void SettleDone();

  const Api& api_;
  CommandQueue queue_;
  QueueHealth& health_;
  std::atomic<int64_t>& flushes_;
  const bool foreign_, stamps_;
  Waiter waiter_;
  bool closing_ = false;
  std::deque<std::shared_ptr<ClEvent>> in_flight_;  // not settled, in the order of submission
  const std::shared_ptr<Status> untold_ = std::make_shared<Status>();
  bool unflushed_ = false;
  // Launches since the last flush, and how many of them justify one.
  static constexpr size_t kFirstLaunches = 8;  // of an idle device
  size_t launches_ = 0, worth_a_flush_ = kFirstLaunches;
  // The first and the last wait that timed out since one has succeeded; zero when none has.
  std::chrono::steady_clock::time_point first_late_{}, last_late_{};
  bool dirty_ = false;  // something was enqueued that no event covers
};

// The outcome of the submission, or of an earlier one whose failure no wait has returned yet: the
// report of a kernel names its node. DeadlineExceeded leaves the work running.
Status WaitForEvent(ClEvent& event, Deadline deadline);

}  // namespace oncilla::opencl
