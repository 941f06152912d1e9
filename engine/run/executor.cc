// Runs graphs: segments one after the other, each with an idle instance of its plan.
#include "engine/run/executor.h"

#include <algorithm>

#include "engine/base/caught.h"
#include "engine/graph/at_node.h"
#include "engine/memory/host_account.h"
#include "engine/ops/control.h"
#include "engine/run/executor_entry.h"

namespace oncilla {

Executor::Executor(std::shared_ptr<const CompiledGraph> compiled, std::span<Device* const> devices,
                   std::vector<Pool*> pools, OwnerId owner, ExecutorOptions options)
    : compiled_(std::move(compiled)),
      devices_(devices),
      pools_(std::move(pools)),
      owner_(owner),
      options_(options) {
  for (const auto& [name, function] : compiled_->functions) {
    functions_[name] = std::make_unique<Executor>(function, devices_, pools_, owner_, options_);
  }
}

Executor::~Executor() { CloseLines(/*all=*/true); }

Result<int> Executor::DeviceOf(const RunValue& value) const {
  if (!value.on_device()) return 0;
  const std::shared_ptr<DeviceLink>& link = value.device().link();
  if (link->closed()) {
    return WithStage(Error(Code::kFailedPrecondition, "the session of the tensor on ",
                           link->device_name(), " is closed, and the tensor's memory with it"),
                     Stage::kOptions);
  }
  for (size_t d = 0; d < options_.links.size(); ++d) {
    if (options_.links[d] == link) return static_cast<int>(d);
  }
  return WithStage(InvalidArgument("the tensor is on ", link->device_name(),
                                   " of another session; read it to the host first"),
                   Stage::kOptions);
}

Result<Tensor> Executor::ToHost(const RunValue& value, const RunControl& control) const {
  if (!value.on_device()) return value.host();
  if (control.stats != nullptr) {
    ++control.stats->copies;
    control.stats->copied_bytes += value.desc().bytes();
  }
  return value.device().Read(control);
}

Result<SegmentStart> Executor::Start(std::span<RunValue> feeds, const RunControl& control) const {
  const Graph& graph = compiled_->graph;
  if (feeds.size() != graph.inputs().size()) {
    return InvalidArgument("the model takes ", graph.inputs().size(), " inputs, got ",
                           feeds.size());
  }
  SegmentStart start;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const Fact& wanted = graph.fact(input.value);
    RunValue& feed = feeds[i];
    const bool list = !feed.on_device() && feed.host().is_list();
    const TensorDesc desc = feed.desc();
    if (desc.dtype != wanted.dtype || list != (wanted.kind == ValueKind::kList) ||
        (!list && !wanted.shape.Accepts(desc.shape))) {
      return WithStage(InvalidArgument("input '", input.name, "' must be ", wanted, ", not ", desc),
                       Stage::kOptions);
    }
    auto device = DeviceOf(feed);
    if (!device.ok()) return In(device.status(), StrCat("input '", input.name, "'"));
    if (feed.on_device() && !feed.device().readable()) {
      return WithStage(InvalidArgument("input '", input.name, "' is in a buffer that kernels may ",
                                       "only write (CL_MEM_WRITE_ONLY)"),
                       Stage::kOptions);
    }
    const bool fixes = !list && compiled_->fixes_shapes[Index(input.value)];
    if (fixes && *device > 0) {
      auto near = Fenced([&] { return ToHost(feed, control); });
      if (!near.ok()) return In(near.status(), StrCat("input '", input.name, "'"));
      feed = *std::move(near);
    } else if (*device > 0) {
      start.on_device.emplace_back(input.value, *device);
    }
    Fact fact = feed.on_device() ? Fact::Of(desc) : Fact::Of(feed.host());
    if (fixes) fact.value = feed.host();
    start.available.emplace_back(input.value, std::move(fact));
  }
  return start;
}

namespace {

// Records in the trace what the host does in a scope.
class HostSpan {
 public:
  HostSpan(const RunControl& control, std::string_view name) : control_(control), name_(name) {
    if (On()) begin_ns_ = Now();
  }
  ~HostSpan() {
    if (!On()) return;
    control_.stats->spans.push_back(
        {TraceSpan::kHost, std::string(name_), 0, begin_ns_, begin_ns_, Now(), 0});
  }
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

 private:
  bool On() const { return control_.profile && control_.stats != nullptr; }
  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  const RunControl& control_;
  const std::string_view name_;
  int64_t begin_ns_ = 0;
};

Result<std::vector<RunValue>> EvaluateNode(Device& cpu, const Graph& graph, const Node& node,
                                           std::span<const RunValue> in) {
  Facts in_facts;
  std::vector<Tensor> tensors;
  in_facts.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    tensors.push_back(in[i].host());
    in_facts.push_back(node.inputs[i] == kNoValue ? Fact::Absent() : Fact::Constant(tensors[i]));
  }
  const Facts out_facts = graph.FactsOf(node.outputs);
  ONCILLA_ASSIGN(const auto out,
                 cpu.Evaluate({node.op, &node.attrs, in_facts, out_facts, node.name}, tensors));
  return std::vector<RunValue>(out.begin(), out.end());
}

}  // namespace

RunValue Executor::ValueOf(const std::vector<RunValue>& values, ValueId id) const {
  if (id == kNoValue) return RunValue();
  const Graph& graph = compiled_->graph;
  return graph.value(id).is_constant() ? RunValue(graph.fact(id).value) : values[Index(id)];
}

Status Executor::RunHostNodes(const Plan& plan, std::vector<RunValue>& values,
                              const RunControl& control) {
  const Graph& graph = compiled_->graph;
  for (NodeId id : plan.host_nodes) {
    const Node& node = graph.node(id);
    ONCILLA_TRY(MayGoOn(control));
    const bool is_control = IsControl(node.op->name);
    std::vector<RunValue> in;
    in.reserve(node.inputs.size());
    for (ValueId v : node.inputs) {
      in.push_back(ValueOf(values, v));
      // Control flow passes values on to its functions; all other host nodes compute with them
      // here.
      if (is_control && node.op->name == "While") continue;
      if (in.back().on_device()) {
        ONCILLA_ASSIGN(in.back(), FencedAtNode([&] { return ToHost(in.back(), control); }, node));
      }
    }
    const HostSpan span(control, node.name);
    // Host nodes allocate memory without a plan (results of loops, lists, variables), so they are
    // run inside Fenced.
    const auto compute = [&] {
      return is_control ? RunControlNode(node, in, control)
                        : EvaluateNode(*devices_[0], graph, node, in);
    };
    auto out = Fenced(compute);
    if (!out.ok()) return AtNode(out.status(), node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      values[Index(node.outputs[i])] = std::move((*out)[i]);
    }
  }
  return Status();
}

Result<std::vector<Tensor>> Executor::Run(std::span<const Tensor> feeds,
                                          const RunControl& control) {
  const std::vector<RunValue> values(feeds.begin(), feeds.end());
  ONCILLA_ASSIGN(const auto results, RunValues(values, {}, control));
  std::vector<Tensor> out;
  out.reserve(results.size());
  for (const RunValue& result : results) out.push_back(result.host());
  return out;
}

// One run: the values of the graph but its constants, filled in as segment after segment computes
// them.
class Executor::OneRun {
 public:
  OneRun(Executor& executor, const std::vector<bool>& keep, const RunControl& control)
      : executor_(executor),
        compiled_(*executor.compiled_),
        graph_(compiled_.graph),
        keep_(keep),
        control_(control),
        values_(graph_.values().size()) {}

  Result<std::vector<RunValue>> Run(std::span<const RunValue> feeds) {
    SegmentStart start;
    ONCILLA_ASSIGN(EntryPtr entry, FirstSegment(feeds, start));
    if (control_.stats != nullptr) {
      control_.stats->fates.assign(graph_.nodes().size(), NodeFate::kElsewhere);
    }
    for (;;) {
      ONCILLA_TRY(RunSegment(*entry));
      if (entry->plan->complete) return Results();
      ONCILLA_ASSIGN(SegmentStart next, StartBehind(*entry->plan));
      next.keep = Keep();
      if (next.done == start.done && next.available.size() == start.available.size()) {
        return Internal("planning makes no progress");
      }
      start = std::move(next);
      ONCILLA_TRY(MayGoOn(control_));
      const HostSpan span(control_, "find or make the plan");
      ONCILLA_ASSIGN(entry, executor_.FindOrMake(start, {.end = control_}));
    }
  }

 private:
  // The outputs that stay on devices; none if the run may share its plans with PlanFor.
  std::vector<bool> Keep() const {
    const bool any = std::find(keep_.begin(), keep_.end(), true) != keep_.end();
    return any && !executor_.options_.links.empty() ? keep_ : std::vector<bool>();
  }

  // Takes the feeds, and finds the plan of the first segment. `start` becomes its start, unless the
  // last run was of the same kind, and its plan is taken without.
  Result<EntryPtr> FirstSegment(std::span<const RunValue> given, SegmentStart& start) {
    ONCILLA_TRY(MayGoOn(control_));
    const HostSpan span(control_, "find or make the plan");
    EntryPtr entry = executor_.LastIfSame(given, keep_);
    if (entry != nullptr) {
      Take(given);
      return entry;
    }
    std::vector<RunValue> feeds(given.begin(), given.end());
    ONCILLA_ASSIGN(start, executor_.Start(feeds, control_));
    start.keep = Keep();
    Take(feeds);
    ONCILLA_ASSIGN(entry, executor_.FindOrMake(start, {.end = control_}));
    executor_.RememberLast(given, keep_, entry);
    return entry;
  }
  void Take(std::span<const RunValue> feeds) {
    for (size_t i = 0; i < feeds.size(); ++i) values_[Index(graph_.inputs()[i].value)] = feeds[i];
  }

  // Runs one segment, as far as sizes are known: first what devices compute, then what the host
  // does.
  Status RunSegment(Entry& entry) {
    const Plan& plan = *entry.plan;
    if (!plan.outputs.empty() || !plan.stretches.empty()) ONCILLA_TRY(RunPlan(entry));
    for (const auto& [id, value] : plan.settled) values_[Index(id)] = value;
    ONCILLA_TRY(executor_.RunHostNodes(plan, values_, control_));
    for (size_t n = 0; control_.stats != nullptr && n < plan.fates.size(); ++n) {
      if (plan.fates[n] != NodeFate::kElsewhere) control_.stats->fates[n] = plan.fates[n];
    }
    return Status();
  }

  Status RunPlan(Entry& entry) {
    const Plan& plan = *entry.plan;
    std::vector<RunValue> in;
    in.reserve(plan.inputs.size());
    for (ValueId id : plan.inputs) in.push_back(executor_.ValueOf(values_, id));
    auto taken = [&] {
      const HostSpan span(control_, "take an instance");
      return executor_.Acquire(entry, control_);
    }();
    ONCILLA_ASSIGN(std::unique_ptr<Instance> instance, std::move(taken));
    auto out = Fenced([&] {
      SamplePools();  // arenas are taken now, and the segment's results are added to them
      auto results = instance->Run(in, control_);
      SamplePools();
      return results;
    });
    executor_.Release(entry, std::move(instance), out.ok());
    ONCILLA_TRY(out.status());
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      values_[Index(plan.outputs[i].value)] = std::move((*out)[i]);
    }
    return Status();
  }

  void SamplePools() const {
    if (!control_.profile || control_.stats == nullptr) return;
    for (size_t d = 0; d < executor_.pools_.size(); ++d) {
      SamplePool(*executor_.pools_[d], compiled_.placement.devices[d], control_.stats->pools);
    }
  }

  // The next segment starts with the values that its nodes read and that are computed already.
  Result<SegmentStart> StartBehind(const Plan& plan) {
    SegmentStart next;
    next.done = plan.done;
    std::vector<bool> listed(values_.size());
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (plan.done[n]) continue;
      for (ValueId id : graph_.node(NodeId{n}).inputs) {
        if (id == kNoValue || listed[Index(id)] || graph_.value(id).is_constant()) continue;
        if (!values_[Index(id)].valid()) continue;
        listed[Index(id)] = true;
        ONCILLA_TRY(Offer(id, next));
      }
    }
    return next;
  }

  // Describes a value to the next segment. A value that determines shapes is brought to the host
  // for that.
  Status Offer(ValueId id, SegmentStart& start) {
    RunValue& value = values_[Index(id)];
    const bool list = !value.on_device() && value.host().is_list();
    const bool small = !list && value.desc().elements() <= kMaxKnownInts;
    const bool fixes = small && compiled_.fixes_shapes[Index(id)];
    if (fixes && value.on_device()) {
      ONCILLA_ASSIGN(value, executor_.ToHost(value, control_));
    }
    ONCILLA_ASSIGN(const int device, executor_.DeviceOf(value));
    if (device > 0) start.on_device.emplace_back(id, device);
    Fact fact = value.on_device() ? Fact::Of(value.desc()) : Fact::Of(value.host());
    if (fixes) fact.value = value.host();
    start.available.emplace_back(id, std::move(fact));
    return Status();
  }

  Result<std::vector<RunValue>> Results() const {
    std::vector<RunValue> results;
    results.reserve(graph_.outputs().size());
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const NamedValue& output = graph_.outputs()[i];
      RunValue value = executor_.ValueOf(values_, output.value);
      if (!value.valid()) return Internal("output '", output.name, "' was not computed");
      if (value.on_device() && !(i < keep_.size() && keep_[i])) {
        ONCILLA_ASSIGN(value, executor_.ToHost(value, control_));
      }
      results.push_back(std::move(value));
    }
    return results;
  }

  Executor& executor_;
  const CompiledGraph& compiled_;
  const Graph& graph_;
  const std::vector<bool>& keep_;
  const RunControl& control_;
  std::vector<RunValue> values_;  // by id
};

Result<std::vector<RunValue>> Executor::RunValues(std::span<const RunValue> feeds,
                                                  const std::vector<bool>& keep,
                                                  const RunControl& control) {
  // Charges the memory that the run takes on the host: results, and values held between its
  // segments.
  const CountedWork counted(*pools_[0], owner_, &control);
  auto results = OneRun(*this, keep, control).Run(feeds);
  if (!results.ok()) return WithStage(results.status(), Stage::kRun);
  return results;
}

std::vector<int> Executor::InputDevices() const {
  const Graph& graph = compiled_->graph;
  std::vector<int> read_on(graph.values().size(), -1);  // -1: nowhere, 0: the host, or several
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      int& on = read_on[Index(node.inputs[i])];
      const bool plan_input = node.op->traits.IsPlanInput(i);
      const bool host = plan_input || RunsOnHost(graph, node) ||
                        devices_[static_cast<size_t>(node.device)]->info().host_memory;
      const int device = host ? 0 : node.device;
      on = on < 0 || on == device ? device : 0;
    }
  }
  std::vector<int> devices;
  for (const NamedValue& input : graph.inputs()) {
    const bool fixes = compiled_->fixes_shapes[Index(input.value)];
    devices.push_back(fixes ? 0 : std::max(0, read_on[Index(input.value)]));
  }
  return devices;
}

Result<std::shared_ptr<const Plan>> Executor::PlanFor(std::span<const Tensor> feeds,
                                                      const PlanProgress& progress) {
  return PlanForValues(std::vector<RunValue>(feeds.begin(), feeds.end()), progress);
}

Result<std::shared_ptr<const Plan>> Executor::PlanForValues(std::span<const RunValue> feeds,
                                                            const PlanProgress& progress) {
  const CountedWork counted(*pools_[0], owner_, nullptr);
  std::vector<RunValue> values(feeds.begin(), feeds.end());
  ONCILLA_ASSIGN(const SegmentStart start, Start(values, {}));
  return FindOrMakePlan(start, progress);
}

}  // namespace oncilla
