// The rules of device.h, checked.
#include "engine/device/checked_device.h"

#include <mutex>
#include <set>

namespace oncilla {

struct CheckedDevice::State {
  mutable std::mutex mutex;
  std::set<const Region*> regions;
};

CheckedDevice::CheckedDevice(std::unique_ptr<Device> device)
    : device_(std::move(device)), state_(std::make_unique<State>()) {}

CheckedDevice::~CheckedDevice() = default;

int CheckedDevice::live_regions() const {
  std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->regions.size());
}

Status CheckedDevice::CheckView(const BufferView& view, std::string_view what) const {
  if (view.region == nullptr) return Status();
  if (view.offset < 0 || view.bytes < 0 || view.offset > view.region->bytes() - view.bytes) {
    return Internal(what, " [", view.offset, ", +", view.bytes, ") lies outside its region of ",
                    view.region->bytes(), " bytes");
  }
  // Memory of the host's own is not ours to align.
  std::lock_guard lock(state_->mutex);
  if (!state_->regions.contains(view.region)) {
    return info().host_memory ? Status() : Internal(what, " is in no region of this device");
  }
  if (view.offset % info().alignment_bytes != 0) {
    return Internal(what, " is at ", view.offset, ", not a multiple of ", info().alignment_bytes);
  }
  return Status();
}

Status CheckedDevice::CanRun(const NodeView& node) const { return device_->CanRun(node); }

Result<Packing> CheckedDevice::PackingFor(const NodeView& node, int input) const {
  if (input < 0 || static_cast<size_t>(input) >= node.inputs.size() ||
      !node.inputs[input].constant) {
    return Internal(node.op->name, ": input ", input, " is no constant");
  }
  ONCILLA_ASSIGN(Packing packing, device_->PackingFor(node, input));
  if (packing.bytes < 0 || packing.name.empty()) {
    return Internal(node.op->name, ": a packing without name or with ", packing.bytes, " bytes");
  }
  return packing;
}

Result<std::unique_ptr<Kernel>> CheckedDevice::Prepare(const NodeView& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].absent() && !node.inputs[i].fixed()) {
      return Internal(node.op->name, ": input ", i, " is ", node.inputs[i]);
    }
    const bool plan_input = i < 32 && (node.op->traits.plan_inputs >> i & 1) != 0;
    if (plan_input && !node.inputs[i].absent() && !node.inputs[i].has_value()) {
      return Internal(node.op->name, ": plan input ", i, " has no value");
    }
  }
  for (const Fact& fact : node.outputs) {
    if (!fact.fixed()) return Internal(node.op->name, ": an output is ", fact);
  }
  ONCILLA_TRY(device_->CanRun(node));
  ONCILLA_ASSIGN(auto kernel, device_->Prepare(node));
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

Result<std::unique_ptr<Region>> CheckedDevice::AllocateRegion(int64_t bytes) {
  if (bytes <= 0 || bytes > info().max_allocation_bytes) {
    return Internal("a region of ", bytes, " bytes; the largest is ", info().max_allocation_bytes);
  }
  ONCILLA_ASSIGN(auto region, device_->AllocateRegion(bytes));
  if (region->bytes() < bytes) return Internal("a region smaller than asked for");
  if (info().host_memory != (region->host() != nullptr)) {
    return Internal("the region's address does not fit host_memory");
  }
  std::lock_guard lock(state_->mutex);
  state_->regions.insert(region.get());
  return region;
}

Status CheckedDevice::ReleaseRegion(std::unique_ptr<Region> region) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->regions.erase(region.get()) == 0) return Internal("not a region of this device");
  }
  return device_->ReleaseRegion(std::move(region));
}

Result<std::unique_ptr<Queue>> CheckedDevice::OpenQueue() { return device_->OpenQueue(); }

Result<std::unique_ptr<Recording>> CheckedDevice::Record(std::vector<Step> steps) {
  for (const Step& step : steps) {
    if (step.kernel == nullptr) return Internal("node '", step.node, "' has no kernel");
    for (const Operand& o : step.inputs) {
      ONCILLA_TRY(CheckView(o.view, StrCat("an input of node '", step.node, "'")));
    }
    for (const Operand& o : step.outputs) {
      if (o.external < 0 && o.view.region == nullptr) {
        return Internal("an output of node '", step.node, "' has no memory");
      }
      ONCILLA_TRY(CheckView(o.view, StrCat("an output of node '", step.node, "'")));
    }
    if (step.kernel->scratch_bytes() > step.scratch.bytes) {
      return Internal("node '", step.node, "' needs ", step.kernel->scratch_bytes(),
                      " bytes of scratch and has ", step.scratch.bytes);
    }
    ONCILLA_TRY(CheckView(step.scratch, "scratch"));
  }
  return device_->Record(std::move(steps));
}

Result<EventPtr> CheckedDevice::Submit(Queue& queue, const Recording& recording,
                                       std::span<const BufferView> externals, bool profile) {
  for (const BufferView& view : externals) ONCILLA_TRY(CheckView(view, "an external"));
  return device_->Submit(queue, recording, externals, profile);
}

Result<EventPtr> CheckedDevice::Transfer(Queue& queue, std::span<const Upload> uploads,
                                         std::span<const Download> downloads) {
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
  return device_->Transfer(queue, uploads, downloads);
}

bool CheckedDevice::Poll(const EventPtr& event) { return event != nullptr && device_->Poll(event); }

Status CheckedDevice::Wait(const EventPtr& event, Deadline deadline) {
  if (event == nullptr) return Internal("a wait for no event");
  return device_->Wait(event, deadline);
}

}  // namespace oncilla
