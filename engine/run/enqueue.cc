// Determines whether a plan can be enqueued as a whole, and enqueues it.
#include "engine/run/enqueue.h"

#include <algorithm>

#include "engine/run/instance_state.h"

namespace oncilla {
namespace {

constexpr size_t kMostLines = 16;  // plans kept ready for the application's queues, per graph
constexpr std::chrono::milliseconds kLook(4);

Status CannotEnqueue(const Plan& plan, NodeId id, std::string_view why) {
  const Node& node = plan.compiled->graph.node(id);
  return WithNode(
      WithStage(Error(Code::kUnimplemented, "the graph cannot be enqueued on a queue of the ",
                      "application's: node '", node.name, "' (", node.op->name, ") ", why),
                Stage::kRun),
      node.name);
}

}  // namespace

Status CheckEnqueueable(const Plan& plan, int device) {
  const Graph& graph = plan.compiled->graph;
  if (plan.compiled->writes_variables) {
    return WithStage(Error(Code::kUnimplemented, "the graph cannot be enqueued on a queue of the ",
                           "application's: it changes variables"),
                     Stage::kRun);
  }
  if (!plan.host_nodes.empty()) {
    return CannotEnqueue(plan, plan.host_nodes.front(), "is computed by the host");
  }
  for (uint32_t n = 0; n < graph.nodes().size() && !plan.complete; ++n) {
    if (!plan.done[n]) {
      return CannotEnqueue(plan, NodeId{n}, "has sizes that depend on data of the run");
    }
  }
  for (const Stretch& stretch : plan.stretches) {
    if (stretch.device != device && !stretch.steps.empty()) {
      return CannotEnqueue(plan, stretch.steps.front().node,
                           StrCat("runs on ", plan.compiled->placement.devices[stretch.device]));
    }
    if (!stretch.copies.empty()) {
      return CannotEnqueue(plan, stretch.steps.front().node, "reads what the host must copy");
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    const auto found = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                    [&](const auto& o) { return o.value == output.value; });
    const bool given = found != plan.outputs.end() && found->home.kind == Home::kInput &&
                       plan.input_devices[found->home.index] == device;
    if (found == plan.outputs.end() || !(given || (found->on_device && found->device == device))) {
      return WithStage(
          Error(Code::kUnimplemented, "the graph cannot be enqueued on a queue of ",
                "the application's: output '", output.name, "' is not computed on the device"),
          Stage::kRun);
    }
  }
  return Status();
}

void Instance::UseQueue(int device, std::unique_ptr<Queue> queue) {
  state_->queues[device] = std::move(queue);
  state_->last[device] = nullptr;
}

Result<std::vector<EventPtr>> Instance::Enqueue(int device, std::span<const RunValue> inputs,
                                                std::span<const DeviceTensor> targets,
                                                bool profile) {
  State& state = *state_;
  Queue& queue = *state.queues[device];
  std::vector<BufferView> externals;
  for (const RunValue& v : inputs) {
    externals.push_back(v.on_device() ? v.device().view() : BufferView());
  }
  for (const DeviceTensor& target : targets) externals.push_back(target.view());
  std::vector<EventPtr> events;
  const auto note = [&](EventPtr event) {
    state.last[device] = event;
    events.push_back(std::move(event));
  };
  for (const Piece& piece : state.pieces) {
    ONCILLA_ASSIGN(EventPtr event, state.devices[device]->Submit(queue, *piece.recording, externals,
                                                                 {.profile = profile}));
    note(std::move(event));
  }
  std::vector<DeviceCopy> copies;
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    const SegmentOutput& output = plan_->outputs[i];
    if (output.direct) continue;
    const BufferView from = output.same_as >= 0 ? targets[output.same_as].view()
                                                : externals[static_cast<size_t>(output.home.index)];
    copies.push_back({targets[i].view(), from});
  }
  if (!copies.empty() || events.empty()) {
    auto* objects = dynamic_cast<HostObjects*>(state.devices[device]);
    if (objects == nullptr) return Internal("a device without queues of the application's");
    ONCILLA_ASSIGN(EventPtr event, objects->Copy(queue, copies));
    note(std::move(event));
  }
  return events;
}

std::vector<StepProfile> Instance::StepsOf(int device, std::span<const EventPtr> events) const {
  std::vector<StepProfile> steps;
  const std::map<int, int64_t> live = LiveBytes(*plan_, device);
  for (size_t i = 0; i < state_->pieces.size() && i < events.size(); ++i) {
    const Piece& piece = state_->pieces[i];
    for (const StepTime& t : events[i]->step_times()) {
      const auto at = piece.first_step + static_cast<size_t>(t.step);
      const PlannedStep& step = plan_->stretches[piece.stretch].steps[at];
      steps.push_back(ProfileOf(*plan_, step, device, live, t.start_ns, t.end_ns));
    }
  }
  return steps;
}

void HostLine::LetGo() {
  while (!holding.empty() && holding.front().last != nullptr &&
         device->Poll(holding.front().last)) {
    holding.pop_front();
  }
}

bool EnqueuedRun::Done() const {
  if (line_ == nullptr) return true;
  MutexLock lock(&line_->mutex);
  return line_->instance == nullptr || line_->device->Poll(events_.back());
}

Status EnqueuedRun::Finish(Deadline deadline) {
  if (line_ == nullptr) return InvalidArgument("there is no run to finish");
  HostLine& line = *line_;
  for (;;) {
    const Deadline look = std::min(deadline, std::chrono::steady_clock::now() + kLook);
    MutexLock lock(&line.mutex);  // held briefly: other threads enqueue, and sessions close
    if (outcome_->code() != Code::kUnknown) return *outcome_;
    if (line.instance == nullptr) {
      *outcome_ = WithStage(Error(Code::kFailedPrecondition, "the model was unloaded before the ",
                                  "outcome of the run was asked for: it is not checked"),
                            Stage::kRun);
      return *outcome_;
    }
    // The queue is in order, so all events are complete once the last one is.
    Status status = line.device->Wait(events_.back(), look);
    if (status.code() == Code::kDeadlineExceeded) {
      if (std::chrono::steady_clock::now() < deadline) continue;
      return status;
    }
    *outcome_ = Status();
    for (const EventPtr& event : events_) {
      Status part = line.device->Wait(event, kNoDeadline);
      if (outcome_->ok()) *outcome_ = std::move(part);
    }
    if (outcome_->ok() && profiled_device_ >= 0) {
      profile_->steps = line.instance->StepsOf(profiled_device_, events_);
    }
    line.LetGo();
    return *outcome_;
  }
}

Result<EnqueuedProfile> EnqueuedRun::Profile() const {
  const auto refuse = [](std::string_view why) {
    return WithStage(Error(Code::kFailedPrecondition, "the run has no trace: ", why), Stage::kRun);
  };
  if (line_ == nullptr || profiled_device_ < 0) return refuse("it was not enqueued to be traced");
  MutexLock lock(&line_->mutex);
  if (!outcome_->ok()) return refuse("it is not finished, or has failed");
  return *profile_;
}

Result<void*> EnqueuedRun::Event() const {
  if (line_ == nullptr) return InvalidArgument("there is no run");
  MutexLock lock(&line_->mutex);
  if (line_->instance == nullptr) {
    return Error(Code::kFailedPrecondition, "the model of the run was unloaded");
  }
  return line_->objects->EventOf(events_.back());
}

Result<std::shared_ptr<HostLine>> Executor::FindOrMakeLine(std::shared_ptr<const Plan> plan,
                                                           int device, void* queue) {
  {
    MutexLock lock(&mutex_);
    for (auto it = lines_.begin(); it != lines_.end(); ++it) {
      if ((*it)->plan != plan || (*it)->native_queue != queue) continue;
      lines_.splice(lines_.begin(), lines_, it);
      return lines_.front();
    }
  }
  ONCILLA_TRY(CheckEnqueueable(*plan, device));
  auto line = std::make_shared<HostLine>();
  line->plan = plan;
  line->native_queue = queue;
  line->device = devices_[static_cast<size_t>(device)];
  line->objects = dynamic_cast<HostObjects*>(line->device);
  if (line->objects == nullptr) {
    return Unsupported(compiled_->placement.devices[static_cast<size_t>(device)],
                       " takes no queues of the application's");
  }
  ONCILLA_ASSIGN(auto wrapped, line->objects->WrapQueue(queue));
  const InstanceOptions options{pools_, owner_, options_.links, options_.abandoned_bytes, results_};
  auto instance = Instance::Create(plan, devices_, options, RunControl());
  if (instance.status().code() == Code::kResourceExhausted) {
    DropIdle();
    instance = Instance::Create(plan, devices_, options, RunControl());
  }
  ONCILLA_TRY(instance.status());
  std::shared_ptr<HostLine> dropped;
  MutexLock lock(&mutex_);
  {
    MutexLock inner(&line->mutex);
    line->instance = *std::move(instance);
    line->queue = wrapped.get();
    line->instance->UseQueue(device, std::move(wrapped));
  }
  ++counters_.instances_made;
  if (lines_.size() >= kMostLines) {
    for (auto it = std::prev(lines_.end());; --it) {
      MutexLock inner(&(*it)->mutex);
      if (it->use_count() == 1 && (*it)->instance->Idle()) {
        dropped = *it;
        lines_.erase(it);
        break;
      }
      if (it == lines_.begin()) {
        return Exhausted("runs of ", kMostLines, " kinds are under way on queues of the ",
                         "application's");
      }
    }
  }
  lines_.push_front(line);
  return line;
}

void Executor::CloseLines(bool all) {
  std::vector<std::shared_ptr<HostLine>> closed;
  {
    MutexLock lock(&mutex_);
    for (auto it = lines_.begin(); it != lines_.end();) {
      bool idle = all;
      if (!all && it->use_count() == 1) {
        MutexLock inner(&(*it)->mutex);
        idle = (*it)->instance->Idle();
      }
      if (idle) closed.push_back(*it);
      it = idle ? lines_.erase(it) : std::next(it);
    }
  }
  for (const auto& line : closed) {
    MutexLock lock(&line->mutex);
    line->queue = nullptr;
    line->instance = nullptr;  // waits a bounded time for the work
    line->holding.clear();
    line->plan =
        nullptr;  // its kernels belong to the device, which unfinished runs must not outlive
  }
}

namespace {

Status Refuse(Status status) { return WithStage(std::move(status), Stage::kOptions); }

// Checks that no output overlaps an input or another output: a run must not write what it still
// reads.
Status CheckApart(const Graph& graph, std::span<const RunValue> feeds,
                  std::span<const DeviceTensor> into) {
  const auto name = [&](size_t i) { return StrCat("'", graph.outputs()[i].name, "'"); };
  for (size_t i = 0; i < into.size(); ++i) {
    for (const RunValue& feed : feeds) {
      if (feed.on_device() && into[i].link()->Overlap(into[i], feed.device())) {
        return Refuse(InvalidArgument("output ", name(i), " overlaps an input of the run"));
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (into[i].link()->Overlap(into[i], into[j])) {
        return Refuse(InvalidArgument("outputs ", name(j), " and ", name(i), " overlap"));
      }
    }
  }
  return Status();
}

// Reorders the feeds to the plan's order of inputs.
Result<std::vector<RunValue>> InputsOf(const Plan& plan, const Graph& graph,
                                       std::span<const RunValue> feeds) {
  std::vector<RunValue> inputs;
  for (ValueId id : plan.inputs) {
    for (size_t i = 0; i < feeds.size(); ++i) {
      if (graph.inputs()[i].value == id) inputs.push_back(feeds[i]);
    }
  }
  if (inputs.size() != plan.inputs.size()) return Internal("a plan reads what is not an input");
  return inputs;
}

// The tensors that the run writes, in the plan's order of outputs. If several outputs name one
// value, it is computed once and copied.
struct Targets {
  std::vector<DeviceTensor> written;
  std::vector<DeviceCopy> copies;
};
Result<Targets> TargetsOf(const Plan& plan, const Graph& graph,
                          std::span<const DeviceTensor> into) {
  Targets targets;
  for (const SegmentOutput& output : plan.outputs) {
    DeviceTensor first;
    for (size_t i = 0; i < into.size(); ++i) {
      if (graph.outputs()[i].value != output.value) continue;
      const TensorDesc& desc = into[i].desc();
      if (desc.dtype != output.desc.dtype || desc.shape != output.desc.shape) {
        return Refuse(InvalidArgument("output '", graph.outputs()[i].name, "' is ", output.desc,
                                      ", and the tensor given for it ", desc));
      }
      if (first.valid()) {
        targets.copies.push_back({into[i].view(), first.view()});
      } else {
        first = into[i];
      }
    }
    if (!first.valid()) return Internal("a plan computes what is not an output");
    targets.written.push_back(std::move(first));
  }
  return targets;
}

}  // namespace

Result<int> Executor::TargetDevice(std::span<const DeviceTensor> into) const {
  const Graph& graph = compiled_->graph;
  if (into.size() != graph.outputs().size() || into.empty()) {
    return Refuse(InvalidArgument("the run has ", graph.outputs().size(), " outputs and was given ",
                                  into.size(), " tensors for them"));
  }
  int device = 0;
  for (size_t i = 0; i < into.size(); ++i) {
    const std::string what = StrCat("output '", graph.outputs()[i].name, "'");
    const auto on = DeviceOf(into[i]);
    if (!on.ok()) return In(on.status(), what);
    if (*on == 0 || (i > 0 && *on != device)) {
      return Refuse(InvalidArgument(what, " is not on the device of the others"));
    }
    device = *on;
    if (!into[i].writable()) {
      return Refuse(InvalidArgument(what, " cannot be written: it is not a buffer of the ",
                                    "application's, or a read-only one (CL_MEM_READ_ONLY)"));
    }
  }
  return device;
}

Result<SegmentStart> Executor::StartOnDevice(std::span<RunValue> feeds, int device) const {
  const Graph& graph = compiled_->graph;
  for (size_t i = 0; i < feeds.size() && i < graph.inputs().size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const bool fixes = compiled_->fixes_shapes[Index(input.value)];
    if (feeds[i].on_device() == !fixes) continue;
    return Refuse(InvalidArgument(
        "input '", input.name,
        fixes ? "' fixes shapes, so that the host must know it: give it in host memory"
              : "' must be on the device"));
  }
  ONCILLA_ASSIGN(SegmentStart start, Start(feeds, {}));
  for (const auto& [value, on] : start.on_device) {
    if (on == device) continue;
    return Refuse(InvalidArgument("a feed is on another device than the outputs"));
  }
  start.keep.assign(graph.outputs().size(), true);
  return start;
}

Result<EnqueuedRun> Executor::Enqueue(const EnqueueRequest& request) {
  const Graph& graph = compiled_->graph;
  ONCILLA_ASSIGN(const int device, TargetDevice(request.into));
  std::vector<RunValue> feeds(request.feeds.begin(), request.feeds.end());
  ONCILLA_ASSIGN(const SegmentStart start, StartOnDevice(feeds, device));
  ONCILLA_ASSIGN(const auto plan, FindOrMakePlan(start));
  ONCILLA_ASSIGN(const auto line, FindOrMakeLine(plan, device, request.queue));
  ONCILLA_ASSIGN(const auto inputs, InputsOf(*plan, graph, feeds));
  ONCILLA_ASSIGN(const Targets targets, TargetsOf(*plan, graph, request.into));
  ONCILLA_TRY(CheckApart(graph, feeds, request.into));
  EnqueuedRun run;
  run.line_ = line;
  if (request.profile) {
    ONCILLA_TRY(line->objects->CanProfile(request.queue));
    run.profiled_device_ = device;
    run.profile_->devices = compiled_->placement.devices;
  }
  MutexLock lock(&line->mutex);
  if (line->instance == nullptr) return Error(Code::kAborted, "the model was unloaded meanwhile");
  line->LetGo();
  ONCILLA_TRY(line->objects->EnqueueAfter(*line->queue, request.wait_for));
  auto events = line->instance->Enqueue(device, inputs, targets.written, request.profile);
  if (events.ok() && !targets.copies.empty()) {
    auto copied = line->objects->Copy(*line->queue, targets.copies);
    if (copied.ok()) events->push_back(*std::move(copied));
    if (!copied.ok()) events = copied.status();
  }
  // On failure a part may be enqueued all the same, and uses the caller's memory until the marker
  // enqueued here.
  auto last =
      events.ok() ? Result<EventPtr>(events->back()) : line->objects->Copy(*line->queue, {});
  line->holding.push_back({last.ok() ? *std::move(last) : nullptr,
                           std::move(feeds),
                           {request.into.begin(), request.into.end()}});
  if (!events.ok()) {
    return WithDevice(events.status(), compiled_->placement.devices[static_cast<size_t>(device)]);
  }
  run.events_ = *std::move(events);
  return run;
}

}  // namespace oncilla
