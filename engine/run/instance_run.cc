// Running an instance: copies, stretches, results, and the waits for them.
//
// Only WaitFor blocks. It wakes regularly to check whether the run should end and whether the
// device still makes progress. If the run may end while a device still reads its inputs, they are
// copied to memory of our own first.
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>

#include "engine/base/caught.h"
#include "engine/graph/at_node.h"
#include "engine/run/instance_state.h"
#include "engine/run/run_profile.h"

namespace oncilla {
namespace {

using Clock = std::chrono::steady_clock;

// The intervals at which a wait checks for an early end and for progress.
constexpr std::chrono::milliseconds kLookForStop(4), kLookForProgress(50);
// The number of pieces on a device's queue at once. If the run may end early, fewer mean a faster
// stop. Otherwise the limit keeps the driver's own queue from getting full, which holds about 1024
// launches on NVIDIA's: a call that enqueues would then wait for the device inside the driver, and
// no watchdog could end that wait.
constexpr size_t kDepthOfLimitedRuns = 2, kDepth = 16;

}  // namespace

// One run. If it ends early, what the devices still use is in the instance's state.
class Instance::Walk {
 public:
  Walk(const Plan& plan, State& state, const RunControl& control)
      : plan_(plan),
        state_(state),
        control_(control),
        in_flight_(state.devices.size()),
        profile_(plan, state.devices, control) {}

  Result<std::vector<RunValue>> Go(std::span<const RunValue> inputs) {
    ONCILLA_TRY(Bind(inputs));
    ONCILLA_TRY(UseStamps(control_.profile && control_.stamps));
    size_t copy_index = 0;
    // For each piece: copies into its stretch if it is the first one there, then its steps.
    for (size_t p = 0; p < state_.pieces.size(); ++p) {
      const Piece& piece = state_.pieces[p];
      ONCILLA_TRY(MayGoOn(control_));
      if (piece.first_step == 0) {
        ONCILLA_TRY(Bring(plan_.stretches[piece.stretch], copy_index));
      }
      ONCILLA_TRY(SubmitPiece(piece));
    }
    // Download the outputs that the host wants, and wait for everything.
    std::vector<std::vector<Download>> results(state_.devices.size());
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const SegmentOutput& output = plan_.outputs[i];
      if (!output.read_back(plan_.input_devices)) continue;
      results[output.device].push_back(
          {Writable(state_.outputs[i]), ViewOf(output.home, output.desc.bytes())});
    }
    for (size_t d = 0; d < state_.devices.size(); ++d) {
      ONCILLA_TRY(Transfer(static_cast<int>(d), {}, results[d]));
    }
    for (size_t d = 0; d < state_.devices.size(); ++d) ONCILLA_TRY(WaitFor(static_cast<int>(d)));
    Report();
    state_.inputs.clear();
    return std::move(state_.outputs);
  }

  // Called after a failure. The CPU device works only inside Wait, so that its pending work is
  // simply dropped. Other devices continue by themselves; they must be done with the caller's
  // memory first.
  void GiveUp() {
    if (!control_.may_end_early() && !stuck_) LetReadersFinish();
    for (size_t d = 0; d < state_.devices.size(); ++d) {
      if (!state_.devices[d]->info().can_evaluate) continue;
      state_.last[d] = nullptr;
      state_.queues[d] = nullptr;
    }
  }

 private:
  struct Submitted {
    EventPtr event;
    const Piece* piece;  // null: a transfer
  };
  Status Bind(std::span<const RunValue> inputs) {
    state_.inputs.assign(inputs.begin(), inputs.end());
    for (RunValue& v : state_.inputs) {
      if (!v.on_device() && !v.host().aligned()) v = Tensor::Copy(v.desc(), v.host().bytes());
    }
    if (control_.may_end_early()) StageInputs();
    state_.outputs.clear();
    state_.host_regions.clear();
    for (const RunValue& v : state_.inputs) AddExternal(v);
    int64_t allocated = 0;
    for (const SegmentOutput& output : plan_.outputs) {
      const Graph& graph = plan_.compiled->graph;
      ONCILLA_ASSIGN(RunValue v, FencedAtNode([&] { return MakeOutput(output); },
                                              graph.node(graph.value(output.value).producer)));
      AddExternal(v);
      if (!v.on_device() && v.host().unshared()) {
        allocated = SaturatingAdd(allocated, output.desc.bytes());
      }
      state_.outputs.push_back(std::move(v));
    }
    if (state_.results != nullptr) state_.results->Expect(allocated);
    return Status();
  }

  // Time stamps cost something for every command, so only profiled runs use queues that take them.
  Status UseStamps(bool stamps) {
    if (state_.stamps == stamps) return Status();
    for (size_t d = 0; d < state_.queues.size(); ++d) {
      if (state_.queues[d] == nullptr) continue;
      ONCILLA_ASSIGN(state_.queues[d], state_.devices[d]->OpenQueue({.stamps = stamps}));
      state_.last[d] = nullptr;  // it is complete, or the instance would not be idle
    }
    state_.stamps = stamps;
    return Status();
  }

  Result<RunValue> MakeOutput(const SegmentOutput& output) {
    if (output.home.kind == Home::kInput && !output.read_back(plan_.input_devices)) {
      return state_.inputs[output.home.index].Reshaped(output.desc.shape);
    }
    if (output.same_as >= 0) return state_.outputs[output.same_as].Reshaped(output.desc.shape);
    if (output.on_device) {
      if (const DeviceTensor* target = TargetOf(output)) return RunValue(*target);
      ONCILLA_ASSIGN(DeviceTensor t,
                     state_.links[output.device]->Allocate(output.desc, state_.owner, control_));
      return RunValue(std::move(t));
    }
    const std::span<std::byte> target = HostTargetOf(output);
    if (target.data() != nullptr) return RunValue(Tensor::View(output.desc, target, nullptr));
    ONCILLA_ASSIGN(Tensor t, Tensor::AllocateResult(output.desc, state_.results));
    return RunValue(std::move(t));
  }

  std::span<std::byte> HostTargetOf(const SegmentOutput& output) const {
    if (control_.into == nullptr || control_.into->graph != plan_.compiled.get()) return {};
    if (!state_.devices[output.device]->info().can_evaluate) return {};
    const std::span<const NamedValue> outputs = plan_.compiled->graph.outputs();
    for (size_t i = 0; i < control_.into->host.size(); ++i) {
      const std::span<std::byte> target = control_.into->host[i];
      if (outputs[i].value != output.value || target.data() == nullptr) continue;
      const bool aligned = reinterpret_cast<uintptr_t>(target.data()) % 64 == 0;
      const auto bytes = static_cast<int64_t>(target.size());
      return aligned && bytes == output.desc.bytes() ? target : std::span<std::byte>();
    }
    return {};
  }

  // The application's memory for this output if it can be written directly; else null.
  const DeviceTensor* TargetOf(const SegmentOutput& output) const {
    if (control_.into == nullptr || control_.into->graph != plan_.compiled.get()) return nullptr;
    const std::span<const NamedValue> outputs = plan_.compiled->graph.outputs();
    for (size_t i = 0; i < control_.into->targets.size(); ++i) {
      const DeviceTensor& target = control_.into->targets[i];
      if (outputs[i].value != output.value || !target.valid()) continue;
      const bool fits = target.link() == state_.links[output.device] &&
                        target.desc().dtype == output.desc.dtype &&
                        target.desc().shape == output.desc.shape;
      return fits ? &target : nullptr;
    }
    return nullptr;
  }

  // Copies inputs in host memory that a device reads while the run may already have ended. Inputs
  // on devices belong to the engine and stay valid.
  void StageInputs() {
    std::vector<bool> staged(state_.inputs.size());
    for (const Stretch& stretch : plan_.stretches) {
      for (const PlannedCopy& copy : stretch.copies) {
        if (copy.from.kind != Home::kInput || staged[copy.from.index]) continue;
        staged[copy.from.index] = true;
        RunValue& v = state_.inputs[copy.from.index];
        if (!v.on_device()) v = Tensor::Copy(v.desc(), v.host().bytes());
      }
    }
  }

  void AddExternal(const RunValue& value) {
    if (value.on_device()) {
      externals_.push_back(value.device().view());
      return;
    }
    const std::span<std::byte> bytes = Writable(value);
    const auto size = static_cast<int64_t>(bytes.size());
    state_.host_regions.push_back(std::make_unique<HostRegion>(bytes.data(), size));
    externals_.push_back({state_.host_regions.back().get(), 0, size});
  }

  // Inputs are only read; outputs may be written until they are returned.
  static std::span<std::byte> Writable(const RunValue& value) {
    const std::span<const std::byte> bytes = value.host().bytes();
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }

  BufferView ViewOf(const Home& home, int64_t bytes) const {
    const int slot = ExternalSlot(plan_, home);
    return slot >= 0 ? externals_[slot] : state_.ViewOf(plan_, home, bytes);
  }

  std::span<std::byte> HostBytes(const Home& home, int64_t bytes) const {
    return {ViewOf(home, bytes).host(), static_cast<size_t>(bytes)};
  }

  // Copies in two stages: downloads from the devices that have the values, then uploads to the
  // stretch's.
  Status Bring(const Stretch& stretch, size_t& copy_index) {
    const bool to_host = state_.devices[stretch.device]->info().host_memory;
    std::vector<std::vector<Download>> downloads(state_.devices.size());
    std::vector<bool> must_wait(state_.devices.size());
    std::vector<Upload> uploads;
    for (const PlannedCopy& copy : stretch.copies) {
      std::vector<std::byte>& staging = state_.staging[copy_index++];
      const bool from_host = FromHost(plan_, state_.devices, copy);
      std::span<std::byte> on_host;
      if (from_host) {
        on_host = HostBytes(copy.from, copy.bytes);
        if (copy.from.kind != Home::kInput) must_wait[copy.from_device] = true;
      } else {
        on_host = to_host ? HostBytes(copy.to, copy.bytes) : std::span<std::byte>(staging);
        downloads[copy.from_device].push_back({on_host, ViewOf(copy.from, copy.bytes)});
        must_wait[copy.from_device] = true;
      }
      if (from_host || !to_host) {
        uploads.push_back({ViewOf(copy.to, copy.bytes), on_host});
      }
    }
    for (size_t d = 0; d < state_.devices.size(); ++d) {
      ONCILLA_TRY(Transfer(static_cast<int>(d), {}, downloads[d]));
    }
    for (size_t d = 0; d < state_.devices.size(); ++d) {
      if (must_wait[d]) ONCILLA_TRY(WaitFor(static_cast<int>(d)));
    }
    ONCILLA_TRY(Transfer(stretch.device, uploads, {}));
    if (!uploads.empty()) reading_.push_back({stretch.device, state_.last[stretch.device]});
    return Status();
  }

  Status Transfer(int device, std::span<const Upload> up, std::span<const Download> down) {
    if (up.empty() && down.empty()) return Status();
    const int64_t asked = profile_.Now();
    auto event = state_.devices[device]->Transfer(*state_.queues[device], up, down);
    if (!event.ok()) return WithDevice(event.status(), NameOf(device));
    state_.last[device] = *event;
    profile_.OnTransfer(device, *event, asked, up, down);
    in_flight_[device].push_back({*std::move(event), nullptr});
    return Status();
  }

  Status SubmitPiece(const Piece& piece) {
    const int d = plan_.stretches[piece.stretch].device;
    Device& device = *state_.devices[d];
    const int64_t asked = profile_.Now();
    const SubmitOptions options{control_.profile && control_.stamps, control_};
    auto event = device.Submit(*state_.queues[d], *piece.recording, externals_, options);
    if (!event.ok()) return WithDevice(event.status(), NameOf(d));
    state_.last[d] = *event;
    profile_.OnPiece(d, piece, *event, asked);
    std::deque<Submitted>& queue = in_flight_[d];
    queue.push_back({*std::move(event), &piece});
    if (device.info().can_evaluate) return Status();
    while (queue.size() > (control_.may_end_early() ? kDepthOfLimitedRuns : kDepth)) {
      ONCILLA_TRY(WaitFor(d, queue.front().event));
      queue.pop_front();
    }
    return Status();
  }

  const std::string& NameOf(int device) const {
    return plan_.compiled->placement.devices[static_cast<size_t>(device)];
  }

  Status WaitFor(int device) {
    return state_.last[device] == nullptr ? Status() : WaitFor(device, state_.last[device]);
  }

  Status WaitFor(int d, const EventPtr& event) {
    const int64_t begin = profile_.Now();
    Status status = WaitWatched(d, event);
    profile_.OnWaited(d, begin);
    return status;
  }

  Status WaitWatched(int d, const EventPtr& event) {
    Device& device = *state_.devices[d];
    const bool looks = control_.cancel.possible() || control_.stop.possible();
    const bool watches = control_.deadline == kNoDeadline && control_.watchdog.count() > 0 &&
                         !device.info().can_evaluate;
    Clock::time_point progress = Clock::now();
    for (Clock::time_point now = progress;; now = Clock::now()) {
      Deadline look = control_.deadline;
      if (looks) look = std::min(look, now + kLookForStop);
      if (watches) look = std::min(look, now + std::min(kLookForProgress, control_.watchdog));
      const Status status = device.Wait(event, look);
      if (status.code() != Code::kDeadlineExceeded) {
        return WithDevice(status, NameOf(d));
      }
      if (Status ends = MayGoOn(control_); !ends.ok()) {
        return WithDevice(WithStage(std::move(ends), Stage::kRun), NameOf(d));
      }
      if (!watches) continue;
      now = Clock::now();
      if (HasFinishedMore(d)) progress = now;
      if (now - progress >= control_.watchdog) return Stuck(d);
    }
  }

  void LetReadersFinish() {
    const Deadline limit = control_.watchdog.count() > 0
                               ? DeadlineAfter(Clock::now(), control_.watchdog)
                               : kNoDeadline;
    for (const auto& [device, event] : reading_) (void)state_.devices[device]->Wait(event, limit);
  }

  bool HasFinishedMore(int device) {
    std::deque<Submitted>& queue = in_flight_[device];
    bool any = false;
    for (; queue.size() > 1 && state_.devices[device]->Poll(queue.front().event); any = true) {
      queue.pop_front();
    }
    return any;
  }

  Status Stuck(int device) {
    stuck_ = true;
    const auto name = [&](const Piece& piece, size_t step) -> const std::string& {
      const PlannedStep& planned = plan_.stretches[piece.stretch].steps[step];
      return plan_.compiled->graph.node(planned.node).name;
    };
    const std::string& on = NameOf(device);
    const std::string what =
        StrCat(on, " has finished nothing for ", control_.watchdog.count(), " ms and is abandoned");
    Status status = Error(Code::kUnavailable, what, ": a transfer hangs");
    const std::deque<Submitted>& queue = in_flight_[device];
    const Piece* piece = queue.empty() ? nullptr : queue.front().piece;
    if (piece != nullptr && piece->steps > 0) {
      const std::string& first = name(*piece, piece->first_step);
      const std::string& last = name(*piece, piece->first_step + piece->steps - 1);
      status = first == last ? Error(Code::kUnavailable, what, ": node '", first, "' hangs")
                             : Error(Code::kUnavailable, what, ": it hangs between nodes '", first,
                                     "' and '", last, "'");
      status = WithNode(std::move(status), first);
    }
    return WithDevice(WithStage(std::move(status), Stage::kDevice), on);
  }

  void Report() const {
    if (control_.stats == nullptr) return;
    RunStats& stats = *control_.stats;
    stats.copies += plan_.copies();
    stats.copied_bytes += plan_.copied_bytes();
    ++stats.segments;
    profile_.ReportTo(stats);
  }

  const Plan& plan_;
  State& state_;
  const RunControl& control_;
  std::vector<BufferView> externals_;
  std::vector<std::deque<Submitted>> in_flight_;  // [device]: submitted, not known to be done
  RunProfile profile_;
  bool stuck_ = false;                             // the watchdog has abandoned a device
  std::vector<std::pair<int, EventPtr>> reading_;  // uploads that may read inputs
};

Result<std::vector<RunValue>> Instance::Run(std::span<const RunValue> inputs,
                                            const RunControl& control) {
  Walk walk(*plan_, *state_, control);
  auto out = Fenced([&] { return walk.Go(inputs); });
  if (!out.ok()) walk.GiveUp();
  return out;
}

}  // namespace oncilla
