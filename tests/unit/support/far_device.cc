// The CPU as a remote device: memory without host addresses, and a thread for each queue.
#include "tests/unit/support/far_device.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "engine/device/linked_backends.h"

namespace oncilla::testing {
namespace {

using Clock = std::chrono::steady_clock;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

void Spend(int us) {
  if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

class FarRegion : public Region {
 public:
  explicit FarRegion(std::unique_ptr<Region> inner)
      : Region(inner->bytes()), inner(std::move(inner)) {}
  std::unique_ptr<Region> inner;
};

BufferView Inner(const BufferView& view) {
  if (view.region == nullptr) return {};
  return {static_cast<FarRegion*>(view.region)->inner.get(), view.offset, view.bytes};
}

// One step per inner recording, so that it can stop between them.
struct FarRecording : Recording {
  std::vector<std::unique_ptr<Recording>> steps;
};

struct FarEvent : Event {
  std::vector<StepTime> step_times() const override { return times; }
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Status status;
  std::vector<StepTime> times;

  void Finish(Status with) {
    std::lock_guard lock(mutex);
    if (done) return;
    done = true;
    status = std::move(with);
    changed.notify_all();
  }
};

struct Work {
  std::shared_ptr<FarEvent> event;
  const FarRecording* recording = nullptr;
  std::vector<BufferView> externals;
  std::vector<Upload> uploads;
  std::vector<Download> downloads;
};

// The state of a queue's thread; it may outlive the queue when it hangs.
struct Line {
  Device* cpu = nullptr;
  std::shared_ptr<FarScript> script;
  std::unique_ptr<Queue> inner;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> work;
  bool ends = false, busy = false, lost = false;
  Status failed;

  void HangIfTold(bool told) {
    while (told || script->hang) {
      {
        std::lock_guard lock(mutex);
        if (lost) return;
      }
      if (!script->hang) told = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Status Do(Work& w) {
    for (const Upload& u : w.uploads) {
      HangIfTold(false);
      const int64_t begin = Now();
      Spend(script->transfer_us);
      std::memcpy(Inner(u.to).host(), u.from.data(), u.from.size());
      script->uploaded_bytes += static_cast<int64_t>(u.from.size());
      script->Note('u', begin, Now());
    }
    for (size_t i = 0; w.recording != nullptr && i < w.recording->steps.size(); ++i) {
      const bool here = script->hang_before_node > 0 && --script->hang_before_node == 0;
      if (here) script->hang = true;
      HangIfTold(false);
      const int64_t begin = Now();
      Spend(script->step_us);
      auto event = cpu->Submit(*inner, *w.recording->steps[i], w.externals, {});
      if (!event.ok()) return event.status();
      ONCILLA_TRY(cpu->Wait(*event, kNoDeadline));
      ++script->steps;
      const int64_t end = Now();
      script->Note('s', begin, end);
      w.event->times.push_back({static_cast<int>(i), begin, end});
    }
    for (const Download& d : w.downloads) {
      HangIfTold(false);
      const int64_t begin = Now();
      Spend(script->transfer_us);
      std::memcpy(d.to.data(), Inner(d.from).host(), d.to.size());
      script->downloaded_bytes += static_cast<int64_t>(d.to.size());
      script->Note('d', begin, Now());
    }
    return Status();
  }

  void Serve() {
    for (;;) {
      Work next;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ends || !work.empty(); });
        if (work.empty()) return;
        next = std::move(work.front());
        work.pop_front();
        busy = true;
      }
      Status status = failed.ok() ? Do(next) : failed;
      std::lock_guard lock(mutex);
      busy = false;
      changed.notify_all();
      if (failed.ok()) failed = status;
      next.event->Finish(lost ? Error(Code::kUnavailable, "the device hangs") : status);
      if (lost) return;
    }
  }
};

class FarQueue : public Queue {
 public:
  explicit FarQueue(std::shared_ptr<Line> given) : line(std::move(given)) {
    thread = std::thread([line = line] { line->Serve(); });
  }
  ~FarQueue() override {
    bool lost = false;
    {
      std::unique_lock lock(line->mutex);
      lost = !line->changed.wait_for(lock, std::chrono::milliseconds(300),
                                     [&] { return line->work.empty() && !line->busy; });
      line->ends = true;
      line->lost = lost;
      if (lost) {
        ++line->script->lost_queues;
        for (Work& w : line->work) w.event->Finish(Error(Code::kUnavailable, "the device hangs"));
        line->work.clear();
      }
      line->changed.notify_all();
    }
    for (auto& event : events) {
      if (lost) event->Finish(Error(Code::kUnavailable, "the device hangs"));
    }
    thread.join();  // a lost one notices
  }
  EventPtr Add(Work work) {
    work.event = std::make_shared<FarEvent>();
    EventPtr event = work.event;
    std::lock_guard lock(line->mutex);
    std::erase_if(events, [](const auto& e) {
      std::lock_guard inner(e->mutex);
      return e->done;
    });
    events.push_back(work.event);
    ++line->script->flushed;
    line->work.push_back(std::move(work));
    line->changed.notify_all();
    return event;
  }

 private:
  std::shared_ptr<Line> line;
  std::vector<std::shared_ptr<FarEvent>> events;
  std::thread thread;
};

class FarDevice : public Device {
 public:
  FarDevice(std::unique_ptr<Device> cpu, std::shared_ptr<FarScript> script, const std::string& name)
      : cpu_(std::move(cpu)), script_(std::move(script)), info_(cpu_->info()) {
    info_.backend = "far";
    info_.type = "GPU";
    info_.name = name;
    info_.id = name;
    info_.host_memory = false;
    info_.can_evaluate = false;
    info_.alignment_bytes = 128;
  }

  const DeviceInfo& info() const override { return info_; }
  Status CanRun(const NodeView& node) const override {
    if (node.op->name == script_->refused_op) return Unsupported("far has no ", node.op->name);
    return cpu_->CanRun(node);
  }
  Result<Packing> PackingFor(const NodeView& node, int input) const override {
    return cpu_->PackingFor(node, input);
  }
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd&) override {
    return cpu_->Prepare(node);
  }
  Result<std::vector<Tensor>> Evaluate(const NodeView&, std::span<const Tensor>) override {
    return Unsupported("far");
  }
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    ONCILLA_ASSIGN(auto inner, cpu_->AllocateRegion(bytes));
    return std::make_unique<FarRegion>(std::move(inner));
  }
  Status ReleaseRegion(std::unique_ptr<Region> region) override {
    return cpu_->ReleaseRegion(std::move(static_cast<FarRegion&>(*region).inner));
  }
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override {
    auto line = std::make_shared<Line>();
    line->cpu = cpu_.get();
    line->script = script_;
    ONCILLA_ASSIGN(line->inner, cpu_->OpenQueue());
    return std::make_unique<FarQueue>(std::move(line));
  }
  Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) override {
    auto recording = std::make_unique<FarRecording>();
    for (Step& step : steps) {
      for (auto* side : {&step.inputs, &step.outputs}) {
        for (Operand& o : *side) o.view = Inner(o.view);
      }
      step.scratch = Inner(step.scratch);
      ONCILLA_ASSIGN(auto inner, cpu_->Record({std::move(step)}));
      recording->steps.push_back(std::move(inner));
    }
    return recording;
  }
  Result<EventPtr> Submit(Queue& queue, const Recording& recording,
                          std::span<const BufferView> externals, const SubmitOptions&) override {
    Work work;
    work.recording = static_cast<const FarRecording*>(&recording);
    for (const BufferView& view : externals) {
      // Slots of other devices are filled too; nothing here may use them.
      const bool mine = dynamic_cast<FarRegion*>(view.region) != nullptr;
      work.externals.push_back(mine ? Inner(view) : BufferView());
    }
    return static_cast<FarQueue&>(queue).Add(std::move(work));
  }
  Result<EventPtr> Transfer(Queue& queue, std::span<const Upload> uploads,
                            std::span<const Download> downloads) override {
    Work work;
    work.uploads.assign(uploads.begin(), uploads.end());
    work.downloads.assign(downloads.begin(), downloads.end());
    return static_cast<FarQueue&>(queue).Add(std::move(work));
  }
  bool Poll(const EventPtr& event) override {
    auto& mine = static_cast<FarEvent&>(*event);
    std::lock_guard lock(mine.mutex);
    return mine.done;
  }
  Status Wait(const EventPtr& event, Deadline deadline) override {
    auto& mine = static_cast<FarEvent&>(*event);
    std::unique_lock lock(mine.mutex);
    const auto done = [&] { return mine.done; };
    if (deadline == kNoDeadline) {
      mine.changed.wait(lock, done);
    } else if (!mine.changed.wait_until(lock, std::max(deadline, Clock::now()), done)) {
      return Error(Code::kDeadlineExceeded, "still working");
    }
    return mine.status;
  }

 private:
  const std::unique_ptr<Device> cpu_;
  const std::shared_ptr<FarScript> script_;
  DeviceInfo info_;
};

std::shared_ptr<FarScript>& CurrentScript() {
  static std::shared_ptr<FarScript> script = std::make_shared<FarScript>();
  return script;
}

}  // namespace

std::unique_ptr<Device> MakeFarDevice(ThreadPool* threads, std::shared_ptr<FarScript> script,
                                      const std::string& name) {
  std::vector<std::string> notes;
  const Backend* backend = LinkedBackends()[0];
  OpenOptions options;
  options.threads = threads;
  return std::make_unique<FarDevice>(*backend->open(backend->discover({}, notes)[0], options),
                                     std::move(script), name);
}

const Backend* FarBackend() {
  static const Backend backend = {
      "far",
      [](const DiscoverOptions&, std::vector<std::string>& notes) {
        DeviceInfo info = LinkedBackends()[0]->discover({}, notes)[0];
        info.backend = "far";
        info.type = "GPU";
        info.name = info.id = "far";
        info.host_memory = info.can_evaluate = false;
        return std::vector<DeviceInfo>{info};
      },
      [](const DeviceInfo& info, const OpenOptions& options) -> Result<std::unique_ptr<Device>> {
        return MakeFarDevice(options.threads, CurrentScript(), info.name);
      }};
  return &backend;
}

std::shared_ptr<FarScript> NewFarScript() {
  return CurrentScript() = std::make_shared<FarScript>();
}

}  // namespace oncilla::testing
