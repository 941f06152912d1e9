// Submission and waiting.
#include "backends/opencl/runtime/queue.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "backends/opencl/runtime/run_error.h"

namespace oncilla::opencl {
namespace {

constexpr std::chrono::milliseconds kCloseLimit(5000), kLateCloseLimit(1000);
// How many further launches justify another flush after an idle device was started: they are
// enqueued while it works on the first ones.
constexpr size_t kMoreLaunches = 32;
// The most submissions to an application's queue whose outcome was not asked for yet.
constexpr size_t kMostUnasked = 256;

// Keeps host memory forever that a hung driver may still write to.
void Bury(std::deque<std::shared_ptr<ClEvent>> events) {
  static std::mutex mutex;
  static auto* const buried = new std::deque<std::shared_ptr<ClEvent>>();
  std::lock_guard<std::mutex> lock(mutex);
  for (auto& event : events) {
    event->last.Abandon();
    for (auto& [step, stamp] : event->stamps) stamp.Abandon();
    buried->push_back(std::move(event));
  }
}

// The device time of each step; zero if the driver gives no time or an impossible one.
std::vector<StepTime> ReadStamps(const Api& api,
                                 const std::vector<std::pair<int, EventObject>>& stamps) {
  std::vector<StepTime> times;
  for (const auto& [step, stamp] : stamps) {
    cl_ulong start = 0, end = 0;
    const bool told = api.GetEventProfilingInfo(stamp.get(), CL_PROFILING_COMMAND_START,
                                                sizeof(start), &start, nullptr) == CL_SUCCESS &&
                      api.GetEventProfilingInfo(stamp.get(), CL_PROFILING_COMMAND_END, sizeof(end),
                                                &end, nullptr) == CL_SUCCESS &&
                      start != 0 && end >= start;
    StepTime time{step, told ? static_cast<int64_t>(start) : 0,
                  told ? static_cast<int64_t>(end) : 0};
    if (!times.empty() && times.back().step == step) {
      StepTime& whole = times.back();
      if (!told || whole.end_ns == 0) {
        whole.start_ns = whole.end_ns = 0;
      } else {
        whole.end_ns = std::max(whole.end_ns, time.end_ns);
      }
    } else {
      times.push_back(time);
    }
  }
  return times;
}

// Whether the command has certainly ended, successfully or not. (IsDone is also true if the driver
// does not report the state.)
bool IsOver(const Api& api, cl_event event) {
  cl_int state = CL_QUEUED;
  return api.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state,
                          nullptr) == CL_SUCCESS &&
         state <= CL_COMPLETE;
}

}  // namespace

std::chrono::milliseconds ClQueue::Patience() const {
  using std::chrono::milliseconds;
  if (health_.hung) return milliseconds(0);
  if (last_late_ == std::chrono::steady_clock::time_point()) return health_.Within(kCloseLimit);
  if (last_late_ - first_late_ >= kCloseLimit) return milliseconds(0);
  const auto since =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - last_late_);
  return health_.Within(kLateCloseLimit - since);
}

bool ClQueue::Drain(std::chrono::milliseconds limit) {
  // The queue is in order, so a marker is complete when everything before it is.
  cl_event raw = nullptr;
  if (api_.EnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &raw) == CL_SUCCESS) {
    EventObject marker(api_, raw);
    unflushed_ = true;
    (void)Flush().ok();
    const Status status = WaitFor(api_, raw, std::chrono::steady_clock::now() + limit);
    if (status.ok() || IsOver(api_, raw)) return true;
    if (status.code() == Code::kDeadlineExceeded) {
      marker.Abandon();
      return false;
    }
  }
  // A marker or a wait that fails does not say whether the work before it has ended; clFinish does.
  return api_.Finish(queue_.get()) == CL_SUCCESS;
}

bool ClQueue::SeeItOver(std::chrono::milliseconds limit) {
  // The queue is in order, so a marker covers the commands before it that have no event.
  EventObject marker;
  if (dirty_) {
    cl_event raw = nullptr;
    if (api_.EnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &raw) != CL_SUCCESS) return false;
    marker = EventObject(api_, raw);
  }
  const cl_event last = marker ? marker.get() : in_flight_.back()->last.get();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!IsOver(api_, last)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      marker.Abandon();
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

ClQueue::~ClQueue() {
  closing_ = true;
  SettleDone();
  const bool pending = dirty_ || !in_flight_.empty();
  if (!pending || (foreign_ ? SeeItOver(Patience()) : Drain(Patience()))) {
    SettleDone();
    return;
  }
  for (auto& event : in_flight_) {
    event->queue = nullptr;
    event->outcome = WithStage(Error(Code::kUnavailable, "the device hangs"), Stage::kDevice);
  }
  health_.hung = true;
  Bury(std::move(in_flight_));
  queue_.Abandon();
}

// Records the outcome of an event whose command has ended as far as the driver reports it.
void ClQueue::Settle(ClEvent& event, bool may_wait) {
  Status status;
  if (may_wait) {
    status = WaitFor(api_, event.last.get(), kNoDeadline);  // returns at once, reliably
  } else {
    cl_int state = CL_COMPLETE;
    const cl_int error = api_.GetEventInfo(event.last.get(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                           sizeof(state), &state, nullptr);
    status = Check(error != CL_SUCCESS ? error : std::min(state, CL_COMPLETE), "a command failed");
  }
  // If the wait itself fails, the work may still be running on memory that the caller reuses after
  // the error. So the queue is drained first, or declared hung.
  if (!status.ok() && !IsOver(api_, event.last.get()) && (foreign_ || !Drain(kCloseLimit))) {
    health_.hung = true;
  }
  if (status.ok() && event.error_word != 0) {
    const RunError error = RunError::FromWord(event.error_word);
    const auto step = static_cast<size_t>(error.step);
    if (step < event.names->node.size()) {
      status = WithNode(
          WithStage(InvalidArgument(event.names->where[step], ": ", error.text()), Stage::kRun),
          event.names->node[step]);
    } else {
      status = Internal("the run's error word is damaged: ", event.error_word);
    }
  }
  if (status.ok()) event.times = ReadStamps(api_, event.stamps);
  if (foreign_) {
    event.outcome = std::move(status);  // the application waits for its events separately
  } else {
    if (untold_->ok()) *untold_ = status;
    event.outcome = *untold_;
  }
  event.stamps.clear();
  event.last.Reset();
  event.queue = nullptr;
}

void ClQueue::SettleDone() {
  // Events that a caller may still ask for are kept for a later wait, up to a limit.
  if (foreign_ && !closing_ && in_flight_.size() < kMostUnasked) return;
  while (!in_flight_.empty() && IsDone(api_, in_flight_.front()->last.get())) {
    const std::shared_ptr<ClEvent> event = std::move(in_flight_.front());
    in_flight_.pop_front();
    Settle(*event, /*may_wait=*/!foreign_);
  }
}

Status ClQueue::Flush() {
  if (!unflushed_) return Status();
  ++flushes_;
  ONCILLA_TRY(Check(api_.Flush(queue_.get()), "clFlush"));
  unflushed_ = false;
  launches_ = 0;
  worth_a_flush_ = kMoreLaunches;
  return Status();
}

Status ClQueue::FlushSome(size_t launched) {
  unflushed_ = true;
  launches_ += launched;
  return launches_ < worth_a_flush_ ? Status() : Flush();
}

Result<EventPtr> ClQueue::Finish(std::shared_ptr<ClEvent> event, cl_event last) {
  if (last == nullptr) {
    ONCILLA_TRY(Check(api_.EnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &last),
                      "clEnqueueMarkerWithWaitList"));
  }
  event->last = EventObject(api_, last);
  event->queue = this;
  if (!foreign_) event->untold = untold_;
  in_flight_.push_back(event);
  dirty_ = false;
  return EventPtr(std::move(event));
}

Result<EventPtr> ClQueue::Submit(const ClRecording& recording,
                                 std::span<const BufferView> externals, bool profile) {
  SettleDone();
  dirty_ = unflushed_ = true;
  auto event = std::make_shared<ClEvent>();
  event->names = recording.names();
  const auto launched = [&](size_t launches) { return foreign_ ? Status() : FlushSome(launches); };
  ONCILLA_TRY(recording.Enqueue(queue_.get(), externals,
                                profile && stamps_ ? &event->stamps : nullptr, launched));
  cl_event last = nullptr;
  if (recording.error_word() != nullptr) {
    ONCILLA_TRY(Check(
        api_.EnqueueReadBuffer(queue_.get(), recording.error_word(), CL_FALSE, 0,
                               sizeof(event->error_word), &event->error_word, 0, nullptr, &last),
        "clEnqueueReadBuffer"));
  }
  return Finish(std::move(event), last);
}

Result<EventPtr> ClQueue::Transfer(std::span<const Upload> uploads,
                                   std::span<const Download> downloads) {
  SettleDone();
  dirty_ = unflushed_ = true;
  std::vector<std::pair<int, EventObject>> stamps;
  Status status = EnqueueTransfers(uploads, downloads, stamps);
  if (status.ok()) {
    // The queue is in order, so the event of the last copy is that of the transfer; a transfer
    // without copies needs a marker.
    cl_event last = stamps.empty() ? nullptr : stamps.back().second.get();
    if (last != nullptr && api_.RetainEvent(last) != CL_SUCCESS) last = nullptr;
    auto made = std::make_shared<ClEvent>();
    if (stamps_) made->stamps = std::move(stamps);
    auto event = Finish(std::move(made), last);
    status = event.status();
    if (status.ok() && !downloads.empty()) status = Flush();
    if (status.ok()) return event;
  }
  // Commands that were enqueued before the failure still use the caller's memory.
  if (foreign_ ? !SeeItOver(kCloseLimit) : !Drain(kCloseLimit)) {
    health_.hung = true;
    for (auto& [number, stamp] : stamps) stamp.Abandon();
  }
  return status;
}

Result<EventPtr> ClQueue::Copy(std::span<const DeviceCopy> copies) {
  SettleDone();
  dirty_ = unflushed_ = true;
  for (const DeviceCopy& c : copies) {
    if (c.from.bytes == 0) continue;
    ONCILLA_ASSIGN(ClRegion * to, RegionOf(c.to));
    ONCILLA_ASSIGN(ClRegion * from, RegionOf(c.from));
    if (c.from.bytes != c.to.bytes) {
      return Internal("a copy of ", c.from.bytes, " bytes to ", c.to.bytes);
    }
    ONCILLA_TRY(Check(
        api_.EnqueueCopyBuffer(queue_.get(), from->raw(), to->raw(),
                               static_cast<size_t>(c.from.offset), static_cast<size_t>(c.to.offset),
                               static_cast<size_t>(c.from.bytes), 0, nullptr, nullptr),
        "clEnqueueCopyBuffer"));
  }
  return Finish(std::make_shared<ClEvent>(), nullptr);
}

Status ClQueue::EnqueueAfter(std::span<const cl_event> events) {
  dirty_ = unflushed_ = true;
  return Check(api_.EnqueueBarrierWithWaitList(queue_.get(), static_cast<cl_uint>(events.size()),
                                               events.data(), nullptr),
               "clEnqueueBarrierWithWaitList");
}

Status ClQueue::EnqueueTransfers(std::span<const Upload> uploads,
                                 std::span<const Download> downloads,
                                 std::vector<std::pair<int, EventObject>>& stamps) {
  int number = -1;
  cl_event stamp = nullptr;
  const auto keep = [&] {
    if (stamp != nullptr) stamps.emplace_back(number, EventObject(api_, stamp));
    stamp = nullptr;
  };
  for (const Upload& u : uploads) {
    ++number;
    if (u.from.empty()) continue;
    ONCILLA_ASSIGN(ClRegion * region, RegionOf(u.to));
    if (static_cast<int64_t>(u.from.size()) > u.to.bytes) {
      return Internal("an upload of ", u.from.size(), " bytes into ", u.to.bytes);
    }
    ONCILLA_TRY(Check(api_.EnqueueWriteBuffer(queue_.get(), region->raw(), CL_FALSE,
                                              static_cast<size_t>(u.to.offset), u.from.size(),
                                              u.from.data(), 0, nullptr, &stamp),
                      "clEnqueueWriteBuffer"));
    keep();
  }
  for (const Download& d : downloads) {
    ++number;
    if (d.to.empty()) continue;
    ONCILLA_ASSIGN(ClRegion * region, RegionOf(d.from));
    if (static_cast<int64_t>(d.to.size()) > d.from.bytes) {
      return Internal("a download of ", d.to.size(), " bytes from ", d.from.bytes);
    }
    ONCILLA_TRY(Check(api_.EnqueueReadBuffer(queue_.get(), region->raw(), CL_FALSE,
                                             static_cast<size_t>(d.from.offset), d.to.size(),
                                             d.to.data(), 0, nullptr, &stamp),
                      "clEnqueueReadBuffer"));
    keep();
  }
  return Status();
}

bool ClQueue::Poll(const ClEvent& event) {
  if (event.queue == nullptr) return true;
  if (foreign_) return IsDone(api_, event.last.get());
  // A flush that fails is reported by Wait.
  return !Flush().ok() || IsDone(api_, event.last.get());
}

Status ClQueue::Wait(ClEvent& event, Deadline deadline) {
  (void)Flush().ok();  // waiting flushes too, and only a wait reports the outcome
  const Status status = waiter_.Wait(event.last.get(), deadline);
  if (status.code() == Code::kDeadlineExceeded) {
    last_late_ = std::chrono::steady_clock::now();
    if (first_late_ == std::chrono::steady_clock::time_point()) first_late_ = last_late_;
    return status;
  }
  first_late_ = last_late_ = {};
  // The queue is in order, so all events before this one are complete as well, whatever the driver
  // reports about them.
  while (event.queue != nullptr) {
    const std::shared_ptr<ClEvent> first = std::move(in_flight_.front());
    in_flight_.pop_front();
    Settle(*first, /*may_wait=*/true);
  }
  if (in_flight_.empty()) {
    waiter_.Restart();
    launches_ = 0;
    worth_a_flush_ = kFirstLaunches;
  }
  return Status();
}

Status WaitForEvent(ClEvent& event, Deadline deadline) {
  if (event.queue != nullptr) ONCILLA_TRY(event.queue->Wait(event, deadline));
  if (!event.outcome.ok() && event.untold != nullptr) *event.untold = Status();
  return event.outcome;
}

}  // namespace oncilla::opencl
