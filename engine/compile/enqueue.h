// Runs on a queue of the application's: enqueued, never waited for.
//
// A graph qualifies when it runs whole on one device, with nothing that the host computes, decides
// or carries. Its first run on a queue prepares it (kernels, memory, constants), which waits for
// work of our own but never for the application's queue; runs behind it only enqueue. Runs on one
// queue share memory, since the queue keeps them in order.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/executor.h"

namespace oncilla {

struct EnqueueRequest {
  void* queue = nullptr;               // as HostObjects::WrapQueue takes it
  std::span<const RunValue> feeds;     // in the order of the graph's inputs: on the device, but for
                                       // those that fix shapes, which the host must know
  std::span<const DeviceTensor> into;  // one per output of the graph, all on the device
  std::span<void* const> wait_for = {};  // events of the application's
  bool profile = false;                  // each step is stamped by the device
};

// What a run did, on the device's own clock, as the application's events on that queue have it.
struct EnqueuedProfile {
  std::vector<std::string> devices;  // names, by StepProfile::device
  std::vector<StepProfile> steps;
};

// A plan made ready for one queue of the application's. Not for others than the two files.
struct HostLine {
  std::shared_ptr<const Plan> plan;  // null once the model is gone
  void* native_queue = nullptr;
  Device* device = nullptr;
  HostObjects* objects = nullptr;

  Mutex mutex;
  std::unique_ptr<Instance> instance ABSL_GUARDED_BY(mutex);  // null once the model is gone
  Queue* queue ABSL_GUARDED_BY(mutex) = nullptr;              // the instance's
  // What runs under way use, until their last event.
  struct Holding {
    EventPtr last;  // null: nobody knows when they are over
    std::vector<RunValue> inputs;
    std::vector<DeviceTensor> into;
  };
  std::deque<Holding> holding ABSL_GUARDED_BY(mutex);

  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

// One such run. What it has computed is checked by nobody until Finish() is asked: an index out of
// range, say, is told there and nowhere else. Thread-safe.
class EnqueuedRun {
 public:
  EnqueuedRun() = default;
  // Whether it is over, well or badly. Asks the driver without waiting or flushing.
  bool Done() const;
  // The outcome; waits, and sees to it that the queue is flushed. DeadlineExceeded when it is not
  // over by then. FailedPrecondition when the model was unloaded before anybody asked.
  Status Finish(Deadline deadline = kNoDeadline);
  // Once Finish() was OK; FailedPrecondition before, and of a run that was not asked to be
  // profiled.
  Result<EnqueuedProfile> Profile() const;
  // Its last event as the API's own, with a reference for the caller.
  Result<void*> Event() const;

 private:
  friend class Executor;
  std::shared_ptr<HostLine> line_;
  std::vector<EventPtr> events_;
  int profiled_device_ = -1;                   // -1: it is not profiled
  std::shared_ptr<EnqueuedProfile> profile_ =  // filled by Finish
      std::make_shared<EnqueuedProfile>();
  std::shared_ptr<Status> outcome_ = std::make_shared<Status>(Error(Code::kUnknown, ""));
};

// Unimplemented, naming a node, for a plan that is not wholly the device's.
Status CheckEnqueueable(const Plan& plan, int device);

}  // namespace oncilla
