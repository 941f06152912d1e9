// Runs on a queue of the application: enqueued and never waited for.
//
// A graph qualifies when it runs entirely on one device, with nothing that the host computes,
// decides or copies. Its first run on a queue prepares it (kernels, memory, constants); that waits
// for the engine's own work but never for the application's queue. Later runs only enqueue. Runs on
// one queue share memory, since the queue keeps them in order.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/run/executor.h"

namespace oncilla {

struct EnqueueRequest {
  void* queue = nullptr;               // as HostObjects::WrapQueue takes it
  std::span<const RunValue> feeds;     // in the order of the graph's inputs: on the device, but for
                                       // those that fix shapes, which are on the host
  std::span<const DeviceTensor> into;  // one per output of the graph, all on the device
  std::span<void* const> wait_for = {};  // events of the application's
  bool profile = false;                  // the device records the time of each step
};

// The trace of a run on the device's own clock, which the application's events on that queue use
// too.
struct EnqueuedProfile {
  std::vector<std::string> devices;  // names, by StepProfile::device
  std::vector<StepProfile> steps;
};

// A plan prepared for one queue of the application. Used by enqueue.cc and executor.cc only.
struct HostLine {
  std::shared_ptr<const Plan> plan;  // null once the model is gone
  void* native_queue = nullptr;
  Device* device = nullptr;
  HostObjects* objects = nullptr;

  Mutex mutex;
  std::unique_ptr<Instance> instance ABSL_GUARDED_BY(mutex);  // null once the model is gone
  Queue* queue ABSL_GUARDED_BY(mutex) = nullptr;              // the instance's
  // What runs in progress use, until their last event.
  struct Holding {
    EventPtr last;  // null: it is not known when they are over
    std::vector<RunValue> inputs;
    std::vector<DeviceTensor> into;
  };
  std::deque<Holding> holding ABSL_GUARDED_BY(mutex);

  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

// One such run. Its outcome is checked only by Finish(): an index out of range, for example, is
// reported there and nowhere else. Thread-safe.
class EnqueuedRun {
 public:
  EnqueuedRun() = default;
  // Whether it is over, successful or not. Asks the driver without waiting or flushing.
  bool Done() const;
  // Waits for the run, flushing the queue, and returns its outcome. DeadlineExceeded when it is not
  // over by then. FailedPrecondition when the model was unloaded before the first call.
  Status Finish(Deadline deadline = kNoDeadline);
  // The trace, once Finish() has returned OK; FailedPrecondition before that, and for a run that
  // was not to be profiled.
  Result<EnqueuedProfile> Profile() const;
  // The API's own event of the end of the run, with a reference that the caller owns.
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

// Unimplemented, naming a node, for a plan that does not run entirely on the device.
Status CheckEnqueueable(const Plan& plan, int device);

}  // namespace oncilla
