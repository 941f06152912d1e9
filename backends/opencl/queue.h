// Queue and Event of the OpenCL backend: one in-order command queue, and the end of one submission.
//
// Commands write into host memory after Submit returned (the error word, downloads), so events are
// kept alive by their queue until their command is done. Work that is still not done a short while
// after its queue is closed hangs: its objects are abandoned, and nothing waits for it again.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backends/opencl/recording.h"

namespace oncilla::opencl {

class ClQueue;

class ClEvent : public Event {
 public:
  std::vector<StepTime> step_times() const override { return times; }

  ClQueue* queue = nullptr;  // while it keeps the event
  EventObject last;          // the submission's last command
  std::shared_ptr<const ClRecording::Names> names;
  cl_int error_word = 0;  // the driver writes it
  std::vector<std::pair<int, EventObject>> stamps;
  std::vector<StepTime> times;
  bool finished = false;  // `outcome` is final
  Status outcome;
};

class ClQueue : public Queue {
 public:
  // `device_hung` is set when work is given up; it must outlive the queue.
  ClQueue(const Api& api, CommandQueue queue, std::atomic<bool>& device_hung)
      : api_(api), queue_(std::move(queue)), device_hung_(device_hung) {}
  // Gives work in flight a few seconds, less when a wait for it has already timed out.
  ~ClQueue() override;

  // Each enqueues and flushes once, and does not block. After a failure a part may be enqueued, but
  // nothing that writes to memory of the caller's.
  Result<EventPtr> Submit(const ClRecording& recording, std::span<const BufferView> externals,
                          bool profile);
  Result<EventPtr> Transfer(std::span<const Upload> uploads, std::span<const Download> downloads);

 private:
  friend Status WaitForEvent(const Api& api, ClEvent& event, Deadline deadline);

  Status EnqueueTransfers(std::span<const Upload> uploads, std::span<const Download> downloads);
  Result<EventPtr> Finish(std::shared_ptr<ClEvent> event, cl_event last);
  // Waits until all is done; false when it takes too long.
  bool Drain(std::chrono::seconds limit);
  void DropFinished();

  const Api& api_;
  CommandQueue queue_;
  std::atomic<bool>& device_hung_;
  std::deque<std::shared_ptr<ClEvent>> in_flight_;  // in the order of submission
  bool late_ = false;                               // a wait timed out and none has succeeded since
  bool dirty_ = false;                              // something was enqueued that no event covers
};

// The outcome of the submission: a kernel's report names its node; DeadlineExceeded leaves the work
// running. Belongs to the queue's thread.
Status WaitForEvent(const Api& api, ClEvent& event, Deadline deadline);

}  // namespace oncilla::opencl
