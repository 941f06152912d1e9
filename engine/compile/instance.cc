// Binding a plan to memory, and letting go of it, also while a device hangs.
#include "engine/compile/instance.h"

#include "absl/container/inlined_vector.h"
#include "engine/compile/instance_state.h"

namespace oncilla {
namespace {

constexpr size_t kPieceSteps = 32;

}  // namespace

void SamplePool(const Pool& pool, const std::string& device, std::vector<PoolSample>& samples) {
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  const BfcStats stats = pool.stats();
  samples.push_back({device, now, stats.bytes_in_use, stats.pool_bytes, stats.fragmentation()});
}

Instance::~Instance() {
  if (state_ == nullptr) return;
  State& state = *state_;
  // Of an instance that was not finished there may be less. Inlined: memory may be what there is not.
  absl::InlinedVector<bool, 16> busy(state.last.size());
  for (size_t d = 0; d < busy.size(); ++d) {
    busy[d] = state.last[d] != nullptr && !state.devices[d]->Poll(state.last[d]);
  }
  // Queues before the recordings and the memory that they use.
  state.queues.clear();
  for (size_t d = 0; d < busy.size(); ++d) {
    if (!busy[d]) continue;
    if (!WasGivenUp(*state.devices[d], state.last[d])) continue;
    // All of this is nobody's any more.
    if (state.abandoned_bytes != nullptr) *state.abandoned_bytes += state.bytes();
    KeepForever(plan_);
    KeepForever(std::shared_ptr<State>(std::move(state_)));
    return;
  }
  state.pieces.clear();
}

Result<std::unique_ptr<Instance>> Instance::Create(std::shared_ptr<const Plan> plan,
                                                   std::span<Device* const> devices,
                                                   const InstanceOptions& options,
                                                   const RunControl& control) {
  std::unique_ptr<Instance> instance(new Instance);
  instance->plan_ = plan;
  instance->state_ = std::make_unique<State>();
  State& state = *instance->state_;
  state.devices = devices;
  state.links = options.links;
  state.owner = options.owner;
  state.abandoned_bytes = options.abandoned_bytes;
  state.arenas.resize(devices.size());
  state.queues.resize(devices.size());
  state.last.resize(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    for (int64_t bytes : plan->arenas[d].block_bytes) {
      ONCILLA_ASSIGN(
          Allocation block,
          options.pools[d]->Allocate(bytes, {options.owner, MemoryCategory::kArena}, control));
      state.arenas[d].push_back(std::move(block));
    }
  }
  auto open = [&](int device) -> Status {
    if (state.queues[device] == nullptr) {
      ONCILLA_ASSIGN(state.queues[device], devices[device]->OpenQueue());
    }
    return Status();
  };
  auto bind = [&](const PlannedStep& planned) {
    const Node& node = plan->compiled->graph.node(planned.node);
    Step step;
    step.kernel = planned.kernel.get();
    step.node = node.name;
    auto bytes_of = [&](const Home& home) {
      return home.kind == Home::kStorage ? plan->storages[home.index].bytes : int64_t{0};
    };
    auto operand = [&](const Home& home) -> Operand {
      if (home.kind == Home::kNone) return {};
      const int slot = ExternalSlot(*plan, home);
      if (slot >= 0) return {{}, slot};
      return {state.ViewOf(*plan, home, bytes_of(home)), -1};
    };
    for (const Home& home : planned.inputs) step.inputs.push_back(operand(home));
    for (const Home& home : planned.outputs) step.outputs.push_back(operand(home));
    if (planned.scratch >= 0) {
      const Home home{Home::kStorage, planned.scratch, {}};
      step.scratch = state.ViewOf(*plan, home, bytes_of(home));
    }
    return step;
  };
  for (size_t s = 0; s < plan->stretches.size(); ++s) {
    const Stretch& stretch = plan->stretches[s];
    ONCILLA_TRY(open(stretch.device));
    for (const PlannedCopy& copy : stretch.copies) {
      const bool from_host = FromHost(*plan, devices, copy);
      if (!from_host) ONCILLA_TRY(open(copy.from_device));
      const bool both_far = !from_host && !devices[stretch.device]->info().host_memory;
      state.staging.emplace_back(both_far ? static_cast<size_t>(copy.bytes) : 0);
    }
    size_t next = 0;
    do {  // one piece even when all steps are views: its end is the stretch's
      Piece piece;
      piece.stretch = static_cast<int>(s);
      piece.first_step = next;
      std::vector<Step> steps;
      while (next < stretch.steps.size() && steps.size() < kPieceSteps) {
        steps.push_back(bind(stretch.steps[next++]));
      }
      piece.steps = steps.size();
      piece.last_of_stretch = next == stretch.steps.size();
      auto recording = devices[stretch.device]->Record(std::move(steps));
      if (!recording.ok()) {
        return WithDevice(recording.status(), plan->compiled->placement.devices[stretch.device]);
      }
      piece.recording = *std::move(recording);
      state.pieces.push_back(std::move(piece));
    } while (next < stretch.steps.size());
  }
  for (const SegmentOutput& output : plan->outputs) {
    if (output.read_back(plan->input_devices)) ONCILLA_TRY(open(output.device));
  }
  for (const PlannedUpload& upload : plan->uploads) {
    ONCILLA_TRY(open(upload.device));
    Device& device = *devices[upload.device];
    const Upload transfer{state.ViewOf(*plan, upload.to, upload.value.desc().bytes()),
                          upload.value.bytes()};
    EventPtr& event = state.last[upload.device];
    ONCILLA_ASSIGN(event, device.Transfer(*state.queues[upload.device], {&transfer, 1}, {}));
    ONCILLA_TRY(WithDevice(AwaitUpload(device, event, control),
                           plan->compiled->placement.devices[upload.device]));
  }
  return instance;
}

int Instance::BusyDevice() {
  for (size_t d = 0; d < state_->last.size(); ++d) {
    if (state_->last[d] == nullptr || state_->devices[d]->Poll(state_->last[d])) continue;
    return static_cast<int>(d);
  }
  return -1;
}

}  // namespace oncilla
