// Binding a plan to memory, and running it: copies, stretches, results.
#include "engine/compile/instance.h"

#include <cstring>

namespace oncilla {

struct Instance::State {
  std::span<Device* const> devices;
  std::vector<std::vector<Allocation>> arenas;         // [device][block]
  std::vector<std::unique_ptr<Queue>> queues;          // [device], null where nothing runs
  std::vector<std::unique_ptr<Recording>> recordings;  // [stretch]
  std::vector<std::vector<std::byte>> staging;         // per copy between two devices, in order
  std::vector<EventPtr> last;                          // [device]
  // Of the run under way; kept when it is given up so that late work has somewhere to write.
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<std::unique_ptr<HostRegion>> host_regions;

  BufferView ViewOf(const Plan& plan, const Home& home, int64_t bytes) const {
    if (home.kind == Home::kConstant) return home.view;
    const Storage& storage = plan.storages[home.index];
    const BufferView block = arenas[storage.device][storage.block].view();
    return {block.region, block.offset + storage.offset, bytes};
  }
};

namespace {

// Homes that are memory of the caller or of a result are slots filled in at each run.
int ExternalSlot(const Plan& plan, const Home& home) {
  if (home.kind == Home::kInput) return home.index;
  if (home.kind == Home::kStorage && plan.storages[home.index].output >= 0) {
    return static_cast<int>(plan.inputs.size()) + plan.storages[home.index].output;
  }
  return -1;
}

}  // namespace

Instance::~Instance() {
  if (state_ == nullptr) return;
  // Recordings and queues before the memory they use.
  state_->recordings.clear();
  state_->queues.clear();
}

Result<std::unique_ptr<Instance>> Instance::Create(std::shared_ptr<const Plan> plan,
                                                   std::span<Device* const> devices,
                                                   std::span<Pool* const> pools, OwnerId owner) {
  std::unique_ptr<Instance> instance(new Instance);
  instance->plan_ = plan;
  instance->state_ = std::make_unique<State>();
  State& state = *instance->state_;
  state.devices = devices;
  state.arenas.resize(devices.size());
  state.queues.resize(devices.size());
  state.last.resize(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    for (int64_t bytes : plan->arenas[d].block_bytes) {
      ONCILLA_ASSIGN(Allocation block, pools[d]->Allocate(bytes, {owner, MemoryCategory::kArena}));
      state.arenas[d].push_back(std::move(block));
    }
  }
  auto open = [&](int device) -> Status {
    if (state.queues[device] == nullptr) {
      ONCILLA_ASSIGN(state.queues[device], devices[device]->OpenQueue());
    }
    return Status();
  };
  for (const Stretch& stretch : plan->stretches) {
    ONCILLA_TRY(open(stretch.device));
    for (const PlannedCopy& copy : stretch.copies) {
      const bool both_far = copy.from.kind == Home::kStorage &&
                            !devices[copy.from_device]->info().host_memory &&
                            !devices[stretch.device]->info().host_memory;
      state.staging.emplace_back(both_far ? static_cast<size_t>(copy.bytes) : 0);
    }
    std::vector<Step> steps;
    for (const PlannedStep& planned : stretch.steps) {
      const Node& node = plan->compiled->graph.node(planned.node);
      Step step;
      step.kernel = planned.kernel.get();
      step.node = node.name;
      auto operand = [&](const Home& home, int64_t bytes) -> Operand {
        if (home.kind == Home::kNone) return {};
        const int slot = ExternalSlot(*plan, home);
        if (slot >= 0) return {{}, slot};
        return {state.ViewOf(*plan, home, bytes), -1};
      };
      auto bytes_of = [&](const Home& home) {
        return home.kind == Home::kStorage ? plan->storages[home.index].bytes : int64_t{0};
      };
      for (const Home& home : planned.inputs) step.inputs.push_back(operand(home, bytes_of(home)));
      for (const Home& home : planned.outputs)
        step.outputs.push_back(operand(home, bytes_of(home)));
      if (planned.scratch >= 0) {
        const Home home{Home::kStorage, planned.scratch, {}};
        step.scratch = state.ViewOf(*plan, home, bytes_of(home));
      }
      steps.push_back(std::move(step));
    }
    auto recording = devices[stretch.device]->Record(std::move(steps));
    if (!recording.ok()) {
      return WithDevice(recording.status(), plan->compiled->placement.devices[stretch.device]);
    }
    state.recordings.push_back(*std::move(recording));
  }
  for (const PlannedUpload& upload : plan->uploads) {
    ONCILLA_TRY(open(upload.device));
    const Upload transfer{state.ViewOf(*plan, upload.to, upload.value.desc().bytes()),
                          upload.value.bytes()};
    ONCILLA_ASSIGN(const EventPtr event, devices[upload.device]->Transfer(
                                             *state.queues[upload.device], {&transfer, 1}, {}));
    ONCILLA_TRY(devices[upload.device]->Wait(event, kNoDeadline));
  }
  return instance;
}

bool Instance::Idle() {
  for (size_t d = 0; d < state_->last.size(); ++d) {
    if (state_->last[d] != nullptr && !state_->devices[d]->Poll(state_->last[d])) return false;
  }
  return true;
}

Result<std::vector<Tensor>> Instance::Run(std::span<const Tensor> inputs,
                                          const RunControl& control) {
  State& state = *state_;
  const Plan& plan = *plan_;
  state.inputs.assign(inputs.begin(), inputs.end());
  for (Tensor& t : state.inputs) {
    if (!t.aligned()) t = Tensor::Copy(t.desc(), t.bytes());
  }
  state.outputs.clear();
  state.host_regions.clear();
  std::vector<BufferView> externals;
  auto add_external = [&](std::span<const std::byte> bytes) {
    state.host_regions.push_back(std::make_unique<HostRegion>(const_cast<std::byte*>(bytes.data()),
                                                              static_cast<int64_t>(bytes.size())));
    externals.push_back({state.host_regions.back().get(), 0, static_cast<int64_t>(bytes.size())});
  };
  for (const Tensor& t : state.inputs) add_external(t.bytes());
  for (const SegmentOutput& output : plan.outputs) {
    if (output.home.kind == Home::kInput) {
      state.outputs.push_back(state.inputs[output.home.index].Reshaped(output.desc.shape));
    } else {
      ONCILLA_ASSIGN(Tensor t, Tensor::Allocate(output.desc));
      state.outputs.push_back(std::move(t));
    }
    add_external(state.outputs.back().bytes());
  }
  auto host_bytes = [&](const Home& home, int64_t bytes) -> std::span<std::byte> {
    const int slot = ExternalSlot(plan, home);
    const BufferView view = slot >= 0 ? externals[slot] : state.ViewOf(plan, home, bytes);
    return {view.host(), static_cast<size_t>(bytes)};
  };
  auto wait = [&](int device) -> Status {
    if (state.last[device] == nullptr) return Status();
    return WithDevice(state.devices[device]->Wait(state.last[device], control.deadline),
                      plan.compiled->placement.devices[device]);
  };
  auto transfer = [&](int device, std::span<const Upload> up,
                      std::span<const Download> down) -> Status {
    if (up.empty() && down.empty()) return Status();
    auto event = state.devices[device]->Transfer(*state.queues[device], up, down);
    if (!event.ok()) return WithDevice(event.status(), plan.compiled->placement.devices[device]);
    state.last[device] = *std::move(event);
    return Status();
  };

  std::vector<EventPtr> events;
  size_t copy_index = 0;
  for (size_t s = 0; s < plan.stretches.size(); ++s) {
    const Stretch& stretch = plan.stretches[s];
    Device& device = *state.devices[stretch.device];
    const bool to_host = device.info().host_memory;
    // First out of the devices that have the values, then into this one.
    std::vector<std::vector<Download>> downloads(state.devices.size());
    std::vector<bool> must_wait(state.devices.size());
    std::vector<Upload> uploads;
    for (const PlannedCopy& copy : stretch.copies) {
      std::vector<std::byte>& staging = state.staging[copy_index++];
      const bool from_host =
          copy.from.kind == Home::kInput || state.devices[copy.from_device]->info().host_memory;
      std::span<std::byte> on_host;
      if (from_host) {
        on_host = host_bytes(copy.from, copy.bytes);
        if (copy.from.kind != Home::kInput) must_wait[copy.from_device] = true;
      } else {
        on_host = to_host ? host_bytes(copy.to, copy.bytes) : std::span<std::byte>(staging);
        downloads[copy.from_device].push_back({on_host, state.ViewOf(plan, copy.from, copy.bytes)});
        must_wait[copy.from_device] = true;
      }
      if (from_host || !to_host) {
        uploads.push_back({state.ViewOf(plan, copy.to, copy.bytes), on_host});
      }
    }
    for (size_t d = 0; d < state.devices.size(); ++d) {
      ONCILLA_TRY(transfer(static_cast<int>(d), {}, downloads[d]));
    }
    for (size_t d = 0; d < state.devices.size(); ++d) {
      if (must_wait[d]) ONCILLA_TRY(wait(static_cast<int>(d)));
    }
    ONCILLA_TRY(transfer(stretch.device, uploads, {}));
    auto event = device.Submit(*state.queues[stretch.device], *state.recordings[s], externals,
                               control.profile);
    if (!event.ok())
      return WithDevice(event.status(), plan.compiled->placement.devices[stretch.device]);
    state.last[stretch.device] = *event;
    events.push_back(*std::move(event));
  }
  std::vector<std::vector<Download>> results(state.devices.size());
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const SegmentOutput& output = plan.outputs[i];
    if (output.direct || output.home.kind != Home::kStorage) continue;
    const int slot = ExternalSlot(plan, output.home);
    const BufferView from =
        slot >= 0 ? externals[slot] : state.ViewOf(plan, output.home, output.desc.bytes());
    results[output.device].push_back({state.outputs[i].mutable_bytes(), from});
  }
  for (size_t d = 0; d < state.devices.size(); ++d) {
    ONCILLA_TRY(transfer(static_cast<int>(d), {}, results[d]));
  }
  for (size_t d = 0; d < state.devices.size(); ++d) ONCILLA_TRY(wait(static_cast<int>(d)));
  if (control.stats != nullptr) {
    control.stats->copies += plan.copies();
    control.stats->copied_bytes += plan.copied_bytes();
    ++control.stats->segments;
    for (size_t s = 0; control.profile && s < events.size(); ++s) {
      const Stretch& stretch = plan.stretches[s];
      for (const StepTime& t : events[s]->step_times()) {
        const PlannedStep& step = stretch.steps[t.step];
        const Node& node = plan.compiled->graph.node(step.node);
        control.stats->steps.push_back({node.name, std::string(node.op->name),
                                        step.kernel->description(), stretch.device, t.start_ns,
                                        t.end_ns});
      }
    }
  }
  state.inputs.clear();
  return std::move(state.outputs);
}

}  // namespace oncilla
