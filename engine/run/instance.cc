// Binds a plan to memory and releases it, also while a device hangs.
#include "engine/run/instance.h"

#include "absl/container/inlined_vector.h"
#include "engine/graph/at_node.h"
#include "engine/run/instance_state.h"

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
  // An instance whose creation failed may have fewer entries. The vector is inlined because this
  // code may run when memory is exhausted.
  absl::InlinedVector<bool, 16> busy(state.last.size());
  for (size_t d = 0; d < busy.size(); ++d) {
    busy[d] = state.last[d] != nullptr && !state.devices[d]->Poll(state.last[d]);
  }
  // Queues go before the recordings and the memory that they use.
  state.queues.clear();
  for (size_t d = 0; d < busy.size(); ++d) {
    if (!busy[d]) continue;
    if (!WasGivenUp(*state.devices[d], state.last[d])) continue;
    // The device may still use all of this, so it is never freed.
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
  instance->plan_ = std::move(plan);
  instance->state_ = std::make_unique<State>();
  State& state = *instance->state_;
  state.devices = devices;
  state.links = options.links;
  state.owner = options.owner;
  state.abandoned_bytes = options.abandoned_bytes;
  state.results = options.results;
  state.arenas.resize(devices.size());
  state.queues.resize(devices.size());
  state.last.resize(devices.size());
  const Plan& of = *instance->plan_;
  ONCILLA_TRY(instance->TakeArenas(options.pools, control));
  for (size_t s = 0; s < of.stretches.size(); ++s) ONCILLA_TRY(instance->RecordStretch(s));
  for (const SegmentOutput& output : of.outputs) {
    if (output.read_back(of.input_devices)) ONCILLA_TRY(instance->OpenQueue(output.device));
  }
  for (const PlannedUpload& upload : of.uploads) ONCILLA_TRY(instance->Send(upload, control));
  return instance;
}

Status Instance::TakeArenas(std::span<Pool* const> pools, const RunControl& control) {
  for (size_t d = 0; d < pools.size() && d < state_->arenas.size(); ++d) {
    for (int64_t bytes : plan_->arenas[d].block_bytes) {
      ONCILLA_ASSIGN(Allocation block,
                     pools[d]->Allocate(bytes, {state_->owner, MemoryCategory::kArena}, control));
      state_->arenas[d].push_back(std::move(block));
    }
  }
  return Status();
}

Status Instance::OpenQueue(int device) {
  std::unique_ptr<Queue>& queue = state_->queues[device];
  if (queue == nullptr) {
    ONCILLA_ASSIGN(queue, state_->devices[device]->OpenQueue());
  }
  return Status();
}

// The step with its operands bound to the instance's memory.
Step Instance::Bind(const PlannedStep& planned) const {
  Step step;
  step.kernel = planned.kernel.get();
  step.node = NameInModel(plan_->compiled->graph.node(planned.node));
  const auto view_of = [&](const Home& home) {
    const bool stored = home.kind == Home::kStorage;
    return state_->ViewOf(*plan_, home, stored ? plan_->storages[home.index].bytes : 0);
  };
  const auto operand = [&](const Home& home) -> Operand {
    if (home.kind == Home::kNone) return {};
    const int slot = ExternalSlot(*plan_, home);
    if (slot >= 0) return {{}, slot};
    return {view_of(home), -1};
  };
  for (const Home& home : planned.inputs) step.inputs.push_back(operand(home));
  for (const Home& home : planned.outputs) step.outputs.push_back(operand(home));
  if (planned.scratch >= 0) step.scratch = view_of({Home::kStorage, planned.scratch, {}});
  return step;
}

// Opens the queues of the stretch, allocates staging memory for copies between two devices, and
// records its steps piece by piece.
Status Instance::RecordStretch(size_t index) {
  State& state = *state_;
  const Stretch& stretch = plan_->stretches[index];
  Device& device = *state.devices[stretch.device];
  ONCILLA_TRY(OpenQueue(stretch.device));
  for (const PlannedCopy& copy : stretch.copies) {
    const bool from_host = FromHost(*plan_, state.devices, copy);
    if (!from_host) ONCILLA_TRY(OpenQueue(copy.from_device));
    const bool both_far = !from_host && !device.info().host_memory;
    state.staging.emplace_back(both_far ? static_cast<size_t>(copy.bytes) : 0);
  }
  size_t next = 0;
  do {  // even if all steps are views: the last piece marks the end of the stretch
    Piece piece;
    piece.stretch = static_cast<int>(index);
    piece.first_step = next;
    std::vector<Step> steps;
    while (next < stretch.steps.size() && steps.size() < kPieceSteps) {
      steps.push_back(Bind(stretch.steps[next++]));
    }
    piece.steps = steps.size();
    piece.last_of_stretch = next == stretch.steps.size();
    auto recording = device.Record(std::move(steps));
    if (!recording.ok()) {
      return WithDevice(recording.status(), plan_->compiled->placement.devices[stretch.device]);
    }
    piece.recording = *std::move(recording);
    state.pieces.push_back(std::move(piece));
  } while (next < stretch.steps.size());
  return Status();
}

// Uploads a value that planning computed.
Status Instance::Send(const PlannedUpload& upload, const RunControl& control) {
  ONCILLA_TRY(OpenQueue(upload.device));
  Device& device = *state_->devices[upload.device];
  const Upload transfer{state_->ViewOf(*plan_, upload.to, upload.value.desc().bytes()),
                        upload.value.bytes()};
  EventPtr& event = state_->last[upload.device];
  ONCILLA_ASSIGN(event, device.Transfer(*state_->queues[upload.device], {&transfer, 1}, {}));
  return WithDevice(AwaitUpload(device, event, control),
                    plan_->compiled->placement.devices[upload.device]);
}

int Instance::BusyDevice() {
  for (size_t d = 0; d < state_->last.size(); ++d) {
    if (state_->last[d] == nullptr || state_->devices[d]->Poll(state_->last[d])) continue;
    return static_cast<int>(d);
  }
  return -1;
}

}  // namespace oncilla
