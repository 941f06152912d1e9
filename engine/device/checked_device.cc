// Checks the rules of device.h. Queues, recordings and events are wrapped, so that each knows which
// device made it.
#include "engine/device/checked_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "engine/base/log.h"

namespace oncilla {

struct CheckedDevice::State {
  std::mutex mutex;
  std::set<const Region*> regions;
  std::set<const Region*> wrapped;  // made from the application's buffers
  std::atomic<int> queues = 0, recordings = 0;
};

namespace {

// The shared state also identifies the device that made an object.
template <class State>
class CheckedQueue : public Queue {
 public:
  CheckedQueue(std::shared_ptr<State> state, std::unique_ptr<Queue> inner)
      : state(std::move(state)), inner(std::move(inner)) {
    ++this->state->queues;
  }
  ~CheckedQueue() override { --state->queues; }
  const std::shared_ptr<State> state;
  const std::unique_ptr<Queue> inner;
};

template <class State>
class CheckedRecording : public Recording {
 public:
  CheckedRecording(std::shared_ptr<State> state, std::unique_ptr<Recording> inner)
      : state(std::move(state)), inner(std::move(inner)) {
    ++this->state->recordings;
  }
  ~CheckedRecording() override { --state->recordings; }
  const std::shared_ptr<State> state;
  const std::unique_ptr<Recording> inner;
  std::set<int> externals;  // the external slots that its steps use
};

template <class State>
class CheckedEvent : public Event {
 public:
  CheckedEvent(std::shared_ptr<State> state, EventPtr inner)
      : state(std::move(state)), inner(std::move(inner)) {}
  std::vector<StepTime> step_times() const override { return inner->step_times(); }
  const std::shared_ptr<State> state;
  const EventPtr inner;
};

// Runs a packing function on memory of our own with guard bytes behind it, then copies the result.
Status WriteGuarded(const Packing& packing, const Tensor& constant, std::span<std::byte> to) {
  constexpr size_t kGuard = 256;
  constexpr std::byte kMark{0xa5};
  if (static_cast<int64_t>(to.size()) != packing.bytes) {
    return Internal("packing ", packing.name, " takes ", packing.bytes, " bytes and got ",
                    to.size());
  }
  std::vector<std::byte> own(to.size() + kGuard, kMark);
  ONCILLA_TRY(packing.write(constant, std::span(own).first(to.size())));
  if (std::any_of(own.end() - kGuard, own.end(), [&](std::byte b) { return b != kMark; })) {
    return Internal("packing ", packing.name, " writes past its ", packing.bytes, " bytes");
  }
  if (!to.empty()) std::memcpy(to.data(), own.data(), to.size());
  return Status();
}

}  // namespace

CheckedDevice::CheckedDevice(std::unique_ptr<Device> device)
    : state_(std::make_shared<State>()),
      device_(std::move(device)),
      objects_(dynamic_cast<HostObjects*>(device_.get())) {}

CheckedDevice::~CheckedDevice() {
  if (const int regions = alive().regions; regions > 0) {
    DefaultLog().Error(info().name, " is closed with ", regions, " regions still in use");
  }
}

CheckedDevice::Alive CheckedDevice::alive() const {
  std::lock_guard lock(state_->mutex);
  return {static_cast<int>(state_->regions.size() + state_->wrapped.size()), state_->queues,
          state_->recordings};
}

Status CheckedDevice::CheckView(const BufferView& view, std::string_view what) const {
  if (view.region == nullptr) return Status();
  // Memory that wraps the host's own is not ours to align, and its bounds are not known here.
  bool ours = false, wrapped = false;
  {
    std::lock_guard lock(state_->mutex);
    ours = state_->regions.contains(view.region);
    wrapped = state_->wrapped.contains(view.region);
  }
  if (!ours && !wrapped && !info().host_memory)
    return Internal(what, " is in no region of this device");
  if (view.offset < 0 || view.bytes < 0 || view.offset > view.region->bytes() - view.bytes) {
    return Internal(what, " [", view.offset, ", +", view.bytes, ") lies outside its region of ",
                    view.region->bytes(), " bytes");
  }
  if (ours && view.offset % info().alignment_bytes != 0) {
    return Internal(what, " is at ", view.offset, ", not a multiple of ", info().alignment_bytes);
  }
  return Status();
}

Status CheckedDevice::CanRun(const NodeView& node) const { return device_->CanRun(node); }

Result<Packing> CheckedDevice::PackingFor(const NodeView& node, int input) const {
  if (input < 0 || static_cast<size_t>(input) >= node.inputs.size() ||
      !node.inputs[input].constant) {
    return Internal(node.op->name, ": input ", input, " is not a constant");
  }
  ONCILLA_ASSIGN(Packing packing, device_->PackingFor(node, input));
  if (packing.bytes < 0 || packing.name.empty()) {
    return Internal(node.op->name, ": a packing without name or with ", packing.bytes, " bytes");
  }
  if (packing.write != nullptr) {
    packing.write = [inner = packing](const Tensor& constant, std::span<std::byte> to) {
      return WriteGuarded(inner, constant, to);
    };
  }
  return packing;
}

Result<std::unique_ptr<Kernel>> CheckedDevice::Prepare(const NodeView& node, const EarlyEnd& end) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].absent() && !node.inputs[i].fixed()) {
      return Internal(node.op->name, ": input ", i, " is ", node.inputs[i]);
    }
    const bool plan_input = node.op->traits.IsPlanInput(i);
    if (plan_input && !node.inputs[i].absent() && !node.inputs[i].has_value()) {
      return Internal(node.op->name, ": plan input ", i, " has no value");
    }
  }
  for (const Fact& fact : node.outputs) {
    if (!fact.fixed()) return Internal(node.op->name, ": an output is ", fact);
  }
  ONCILLA_TRY(device_->CanRun(node));
  ONCILLA_ASSIGN(auto kernel, device_->Prepare(node, end));
  if (kernel == nullptr || kernel->scratch_bytes() < 0 || kernel->description().empty()) {
    return Internal(node.op->name, ": a kernel without description or with negative scratch");
  }
  return kernel;
}

Result<std::vector<Tensor>> CheckedDevice::Evaluate(const NodeView& node,
                                                    std::span<const Tensor> inputs) {
  if (!info().can_evaluate) return Internal("this device does not evaluate");
  if (inputs.size() != node.inputs.size()) return Internal(node.op->name, ": inputs do not match");
  return device_->Evaluate(node, inputs);
}

Result<std::unique_ptr<Region>> CheckedDevice::AllocateRegion(int64_t bytes, const EarlyEnd& end) {
  const int64_t most = info().max_allocation_bytes;
  if (bytes <= 0 || (most > 0 && bytes > most)) {
    return Internal("a region of ", bytes, " bytes; the largest is ", most);
  }
  ONCILLA_ASSIGN(auto region, device_->AllocateRegion(bytes, end));
  if (region == nullptr) return Internal("no region and no error");
  const bool has_address = region->host() != nullptr;
  if (region->bytes() < bytes || info().host_memory != has_address) {
    const int64_t got = region->bytes();
    ONCILLA_TRY(device_->ReleaseRegion(std::move(region)));
    return Internal("asked for a region of ", bytes, " bytes, got ", got, " with",
                    has_address ? "" : "out", " an address");
  }
  std::lock_guard lock(state_->mutex);
  state_->regions.insert(region.get());
  return region;
}

Status CheckedDevice::ReleaseRegion(std::unique_ptr<Region> region) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->regions.erase(region.get()) + state_->wrapped.erase(region.get()) == 0) {
      return Internal("not a region of this device");
    }
  }
  return device_->ReleaseRegion(std::move(region));
}

Result<std::unique_ptr<Queue>> CheckedDevice::OpenQueue(const QueueOptions& options) {
  ONCILLA_ASSIGN(auto queue, device_->OpenQueue(options));
  if (queue == nullptr) return Internal("no queue and no error");
  return std::make_unique<CheckedQueue<State>>(state_, std::move(queue));
}

Result<std::unique_ptr<Recording>> CheckedDevice::Record(std::vector<Step> steps) {
  std::set<int> externals;
  auto check = [&](const Operand& o, std::string_view what, const std::string& node) -> Status {
    if (o.external >= 0) externals.insert(o.external);
    return CheckView(o.view, StrCat(what, " of node '", node, "'"));
  };
  for (const Step& step : steps) {
    if (step.kernel == nullptr) return Internal("node '", step.node, "' has no kernel");
    for (const Operand& o : step.inputs) ONCILLA_TRY(check(o, "an input", step.node));
    for (const Operand& o : step.outputs) {
      if (o.external < 0 && o.view.region == nullptr) {
        return Internal("an output of node '", step.node, "' has no memory");
      }
      ONCILLA_TRY(check(o, "an output", step.node));
    }
    if (step.kernel->scratch_bytes() > step.scratch.bytes) {
      return Internal("node '", step.node, "' needs ", step.kernel->scratch_bytes(),
                      " bytes of scratch and has ", step.scratch.bytes);
    }
    ONCILLA_TRY(CheckView(step.scratch, StrCat("the scratch of node '", step.node, "'")));
  }
  ONCILLA_ASSIGN(auto recording, device_->Record(std::move(steps)));
  if (recording == nullptr) return Internal("no recording and no error");
  auto checked = std::make_unique<CheckedRecording<State>>(state_, std::move(recording));
  checked->externals = std::move(externals);
  return checked;
}

Result<EventPtr> CheckedDevice::Submit(Queue& queue, const Recording& recording,
                                       std::span<const BufferView> externals,
                                       const SubmitOptions& options) {
  const auto* ours = dynamic_cast<CheckedQueue<State>*>(&queue);
  if (ours == nullptr || ours->state != state_) return Internal("a queue of another device");
  const auto* recorded = dynamic_cast<const CheckedRecording<State>*>(&recording);
  if (recorded == nullptr || recorded->state != state_) {
    return Internal("a recording of another device");
  }
  for (const int slot : recorded->externals) {
    if (static_cast<size_t>(slot) >= externals.size() || externals[slot].region == nullptr) {
      return Internal("external ", slot, " has no memory");
    }
    ONCILLA_TRY(CheckView(externals[slot], StrCat("external ", slot)));
  }
  ONCILLA_ASSIGN(EventPtr event,
                 device_->Submit(*ours->inner, *recorded->inner, externals, options));
  if (event == nullptr) return Internal("no event and no error");
  return std::make_shared<CheckedEvent<State>>(state_, std::move(event));
}

Result<EventPtr> CheckedDevice::Transfer(Queue& queue, std::span<const Upload> uploads,
                                         std::span<const Download> downloads) {
  const auto* ours = dynamic_cast<CheckedQueue<State>*>(&queue);
  if (ours == nullptr || ours->state != state_) return Internal("a queue of another device");
  for (const Upload& u : uploads) {
    ONCILLA_TRY(CheckView(u.to, "the target of an upload"));
    if (static_cast<int64_t>(u.from.size()) > u.to.bytes) {
      return Internal("an upload of ", u.from.size(), " bytes into ", u.to.bytes);
    }
  }
  for (const Download& d : downloads) {
    ONCILLA_TRY(CheckView(d.from, "the source of a download"));
    if (static_cast<int64_t>(d.to.size()) > d.from.bytes) {
      return Internal("a download of ", d.to.size(), " bytes out of ", d.from.bytes);
    }
  }
  ONCILLA_ASSIGN(EventPtr event, device_->Transfer(*ours->inner, uploads, downloads));
  if (event == nullptr) return Internal("no event and no error");
  return std::make_shared<CheckedEvent<State>>(state_, std::move(event));
}

bool CheckedDevice::Poll(const EventPtr& event) {
  const auto* ours = dynamic_cast<const CheckedEvent<State>*>(event.get());
  return ours != nullptr && ours->state == state_ && device_->Poll(ours->inner);
}

Status CheckedDevice::Wait(const EventPtr& event, Deadline deadline) {
  const auto* ours = dynamic_cast<const CheckedEvent<State>*>(event.get());
  if (ours == nullptr || ours->state != state_) return Internal("a wait for no event of ours");
  return device_->Wait(ours->inner, deadline);
}

namespace {

Status NoHostObjects() { return Unsupported("this device takes no objects of the application's"); }

}  // namespace

Result<WrappedMemory> CheckedDevice::WrapMemory(void* buffer, int64_t offset, int64_t bytes) {
  if (objects_ == nullptr) return NoHostObjects();
  ONCILLA_ASSIGN(WrappedMemory wrapped, objects_->WrapMemory(buffer, offset, bytes));
  if (wrapped.region == nullptr || wrapped.view.region != wrapped.region.get() ||
      wrapped.view.bytes != bytes || wrapped.view.offset > wrapped.region->bytes() - bytes) {
    return Internal("a buffer was wrapped otherwise than asked for");
  }
  std::lock_guard lock(state_->mutex);
  state_->wrapped.insert(wrapped.region.get());
  return wrapped;
}

Result<std::pair<void*, int64_t>> CheckedDevice::MemoryOf(const BufferView& view) {
  if (objects_ == nullptr) return NoHostObjects();
  ONCILLA_TRY(CheckView(view, "memory that was asked for"));
  return objects_->MemoryOf(view);
}

bool CheckedDevice::Overlap(const BufferView& a, const BufferView& b) {
  return objects_ != nullptr && objects_->Overlap(a, b);
}

Result<std::unique_ptr<Queue>> CheckedDevice::WrapQueue(void* queue) {
  if (objects_ == nullptr) return NoHostObjects();
  ONCILLA_ASSIGN(auto wrapped, objects_->WrapQueue(queue));
  if (wrapped == nullptr) return Internal("no queue and no error");
  return std::make_unique<CheckedQueue<State>>(state_, std::move(wrapped));
}

Status CheckedDevice::CanProfile(void* queue) {
  return objects_ == nullptr ? NoHostObjects() : objects_->CanProfile(queue);
}

Status CheckedDevice::EnqueueAfter(Queue& queue, std::span<void* const> events) {
  const auto* ours = dynamic_cast<CheckedQueue<State>*>(&queue);
  if (ours == nullptr || ours->state != state_) return Internal("a queue of another device");
  return objects_ == nullptr ? NoHostObjects() : objects_->EnqueueAfter(*ours->inner, events);
}

Result<void*> CheckedDevice::EventOf(const EventPtr& event) {
  const auto* ours = dynamic_cast<const CheckedEvent<State>*>(event.get());
  if (ours == nullptr || ours->state != state_) return Internal("an event of another device");
  if (objects_ == nullptr) return NoHostObjects();
  return objects_->EventOf(ours->inner);
}

Result<EventPtr> CheckedDevice::Copy(Queue& queue, std::span<const DeviceCopy> copies) {
  const auto* ours = dynamic_cast<CheckedQueue<State>*>(&queue);
  if (ours == nullptr || ours->state != state_) return Internal("a queue of another device");
  if (objects_ == nullptr) return NoHostObjects();
  for (const DeviceCopy& c : copies) {
    ONCILLA_TRY(CheckView(c.to, "the target of a copy"));
    ONCILLA_TRY(CheckView(c.from, "the source of a copy"));
    if (c.to.bytes != c.from.bytes || objects_->Overlap(c.to, c.from)) {
      return Internal("a copy of ", c.from.bytes, " bytes to ", c.to.bytes, ", or onto itself");
    }
  }
  ONCILLA_ASSIGN(EventPtr event, objects_->Copy(*ours->inner, copies));
  if (event == nullptr) return Internal("no event and no error");
  return std::make_shared<CheckedEvent<State>>(state_, std::move(event));
}

HostObjects::Staged CheckedDevice::staged() const {
  return objects_ == nullptr ? Staged{} : objects_->staged();
}

}  // namespace oncilla
