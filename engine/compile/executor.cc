// Running: plans by key, instances by availability, segments one after the other.
#include "engine/compile/executor.h"

#include <algorithm>

#include "engine/ops/control.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {

struct Executor::Entry {
  std::string key;
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Instance>> idle;
  int alive = 0;  // idle or in use
};

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

Executor::~Executor() = default;

Result<SegmentStart> Executor::Start(std::span<const Tensor> feeds) const {
  const Graph& graph = compiled_->graph;
  if (feeds.size() != graph.inputs().size()) {
    return InvalidArgument("the model takes ", graph.inputs().size(), " inputs, got ",
                           feeds.size());
  }
  SegmentStart start;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const Fact& wanted = graph.fact(input.value);
    const bool list = feeds[i].is_list();
    if (feeds[i].dtype() != wanted.dtype || list != (wanted.kind == ValueKind::kList) ||
        (!list && !wanted.shape.Accepts(feeds[i].shape()))) {
      return WithStage(
          InvalidArgument("input '", input.name, "' must be ", wanted, ", not ", feeds[i].desc()),
          Stage::kOptions);
    }
    Fact fact = Fact::Of(feeds[i]);
    if (!list && compiled_->fixes_shapes[Index(input.value)]) fact.value = feeds[i];
    start.available.emplace_back(input.value, std::move(fact));
  }
  return start;
}

namespace {

// Keys are made at each run, in loops at each round: bytes, no text.
void AppendNumber(std::string& key, int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendFact(std::string& key, const Fact& fact) {
  key.push_back(static_cast<char>(fact.kind));
  key.push_back(static_cast<char>(fact.dtype));
  key.push_back(static_cast<char>(fact.shape.ranked() ? fact.shape.rank() : -1));
  if (!fact.shape.ranked()) return;
  for (const Dim& dim : fact.shape.dims()) {
    AppendNumber(key, dim.size);
    if (dim.known()) continue;
    AppendNumber(key, static_cast<int64_t>(dim.name.size()));
    key += dim.name;
  }
}

}  // namespace

std::string Executor::KeyOf(const SegmentStart& start) const {
  std::string key(start.done.begin(), start.done.end());
  for (const auto& [id, fact] : start.available) {
    AppendNumber(key, Index(id));
    AppendFact(key, fact);
    if (!fact.has_value()) continue;
    if (fact.dtype == DType::kString) {
      for (const std::string& s : fact.value.strings()) {
        AppendNumber(key, static_cast<int64_t>(s.size()));
        key += s;
      }
    } else {
      key.append(reinterpret_cast<const char*>(fact.value.bytes().data()),
                 fact.value.bytes().size());
    }
  }
  return key;
}

Result<Executor::EntryPtr> Executor::FindOrMake(const SegmentStart& start) {
  std::string key = KeyOf(start);
  {
    MutexLock lock(&mutex_);
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return *it->second;
    }
  }
  // Made without the lock: two runs may make the same plan, and the second one is dropped.
  ONCILLA_ASSIGN(std::shared_ptr<const Plan> plan, MakePlan(compiled_, devices_, start));
  auto entry = std::make_shared<Entry>();
  entry->key = key;
  entry->plan = std::move(plan);
  std::vector<EntryPtr> dropped;  // their memory goes back after the lock
  MutexLock lock(&mutex_);
  ++counters_.plans_made;
  if (auto it = by_key_.find(key); it != by_key_.end()) return *it->second;
  entries_.push_front(entry);
  by_key_[std::move(key)] = entries_.begin();
  while (entries_.size() > options_.max_plans) {
    by_key_.erase(entries_.back()->key);
    dropped.push_back(std::move(entries_.back()));
    entries_.pop_back();
  }
  counters_.plans_kept = entries_.size();
  return entry;
}

Result<std::unique_ptr<Instance>> Executor::Acquire(Entry& entry, Deadline deadline) {
  {
    MutexLock lock(&mutex_);
    std::erase_if(quarantine_, [](const auto& instance) { return instance->Idle(); });
    auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !entry.idle.empty() || entry.alive < options_.max_instances;
    };
    if (deadline == kNoDeadline) {
      mutex_.Await(free);
    } else if (!mutex_.AwaitUntil(deadline, free)) {
      return Error(Code::kDeadlineExceeded, "all ", options_.max_instances,
                   " instances of the plan were busy until the deadline");
    }
    if (!entry.idle.empty()) {
      auto instance = std::move(entry.idle.back());
      entry.idle.pop_back();
      return instance;
    }
    ++entry.alive;
    ++counters_.instances_made;
  }
  auto instance = Instance::Create(entry.plan, devices_, pools_, owner_);
  if (!instance.ok() && instance.status().code() == Code::kResourceExhausted) {
    // Idle instances of other shapes may hold what is missing.
    DropIdle();
    instance = Instance::Create(entry.plan, devices_, pools_, owner_);
  }
  if (!instance.ok()) {
    MutexLock lock(&mutex_);
    --entry.alive;
  }
  return instance;
}

void Executor::Release(Entry& entry, std::unique_ptr<Instance> instance, bool reusable) {
  MutexLock lock(&mutex_);
  if (reusable) {
    entry.idle.push_back(std::move(instance));
    return;
  }
  --entry.alive;
  if (!instance->Idle()) quarantine_.push_back(std::move(instance));
}

void Executor::DropIdle() {
  for (const auto& [name, function] : functions_) function->DropIdle();
  std::vector<std::unique_ptr<Instance>> dropped;
  MutexLock lock(&mutex_);
  for (const EntryPtr& entry : entries_) {
    entry->alive -= static_cast<int>(entry->idle.size());
    for (auto& instance : entry->idle) dropped.push_back(std::move(instance));
    entry->idle.clear();
  }
}

namespace {

Result<std::vector<Tensor>> EvaluateNode(Device& cpu, const Graph& graph, const Node& node,
                                         std::span<const Tensor> in) {
  Facts in_facts;
  in_facts.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    in_facts.push_back(node.inputs[i] == kNoValue ? Fact::Absent() : Fact::Constant(in[i]));
  }
  const Facts out_facts = graph.FactsOf(node.outputs);
  return cpu.Evaluate({node.op, &node.attrs, in_facts, out_facts, node.name}, in);
}

}  // namespace

Status Executor::RunHostNodes(const Plan& plan, std::vector<Tensor>& values,
                              const RunControl& control) {
  const Graph& graph = compiled_->graph;
  for (NodeId id : plan.host_nodes) {
    const Node& node = graph.node(id);
    std::vector<Tensor> in;
    in.reserve(node.inputs.size());
    for (ValueId v : node.inputs) in.push_back(v == kNoValue ? Tensor() : values[Index(v)]);
    auto out = IsControl(node.op->name) ? RunControlNode(node, in, control)
                                        : EvaluateNode(*devices_[0], graph, node, in);
    if (!out.ok()) {
      return WithNode(In(out.status(), StrCat("node '", node.name, "' (", node.op->name, ")")),
                      node.name);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      values[Index(node.outputs[i])] = std::move((*out)[i]);
    }
  }
  return Status();
}

Result<std::vector<Tensor>> Executor::Run(std::span<const Tensor> feeds,
                                          const RunControl& control) {
  const Graph& graph = compiled_->graph;
  auto fail = [](Status status) { return WithStage(std::move(status), Stage::kRun); };
  auto start = Start(feeds);
  if (!start.ok()) return fail(start.status());
  std::vector<Tensor> values(graph.values().size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (graph.value(ValueId{i}).is_constant()) values[i] = graph.fact(ValueId{i}).value;
  }
  for (size_t i = 0; i < feeds.size(); ++i) values[Index(graph.inputs()[i].value)] = feeds[i];
  if (control.stats != nullptr) {
    control.stats->fates.assign(graph.nodes().size(), NodeFate::kElsewhere);
  }

  // What the run holds between its segments.
  LedgerEntry held = pools_[0]->Line({owner_, MemoryCategory::kValues});
  for (;;) {
    auto entry = FindOrMake(*start);
    if (!entry.ok()) return fail(entry.status());
    const Plan& plan = *(*entry)->plan;
    std::vector<Tensor> in;
    for (ValueId id : plan.inputs) in.push_back(values[Index(id)]);
    if (!plan.outputs.empty() || !plan.stretches.empty()) {
      auto instance = Acquire(**entry, control.deadline);
      if (!instance.ok()) return fail(instance.status());
      auto out = (*instance)->Run(in, control);
      Release(**entry, *std::move(instance), out.ok());
      if (!out.ok()) return fail(out.status());
      for (size_t i = 0; i < plan.outputs.size(); ++i) {
        values[Index(plan.outputs[i].value)] = std::move((*out)[i]);
      }
    }
    for (const auto& [id, value] : plan.settled) values[Index(id)] = value;
    if (Status s = RunHostNodes(plan, values, control); !s.ok()) return fail(s);
    for (size_t n = 0; control.stats != nullptr && n < plan.fates.size(); ++n) {
      if (plan.fates[n] != NodeFate::kElsewhere) control.stats->fates[n] = plan.fates[n];
    }
    if (plan.complete) break;

    int64_t bytes = 0;
    for (uint32_t i = 0; i < values.size(); ++i) {
      const Value& value = graph.value(ValueId{i});
      if (value.producer != kNoNode && !value.is_constant()) bytes += HeldBytesOf(values[i]);
    }
    held.Set(bytes);

    // The next segment starts with what its nodes read and is at hand.
    SegmentStart next;
    next.done = plan.done;
    std::vector<bool> listed(values.size());
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
      if (plan.done[n]) continue;
      for (ValueId id : graph.node(NodeId{n}).inputs) {
        if (id == kNoValue || listed[Index(id)] || graph.value(id).is_constant()) continue;
        if (!values[Index(id)].valid()) continue;
        listed[Index(id)] = true;
        Fact fact = Fact::Of(values[Index(id)]);
        const bool small =
            !values[Index(id)].is_list() && values[Index(id)].elements() <= kMaxKnownInts;
        if (compiled_->fixes_shapes[Index(id)] && small) fact.value = values[Index(id)];
        next.available.emplace_back(id, std::move(fact));
      }
    }
    if (next.done == start->done && next.available.size() == start->available.size()) {
      return fail(Internal("planning makes no progress"));
    }
    start = std::move(next);
  }
  std::vector<Tensor> results;
  for (const NamedValue& output : graph.outputs()) {
    Tensor& value = values[Index(output.value)];
    if (!value.valid()) return fail(Internal("output '", output.name, "' was not computed"));
    results.push_back(value);
  }
  return results;
}

Result<std::shared_ptr<const Plan>> Executor::PlanFor(std::span<const Tensor> feeds) {
  ONCILLA_ASSIGN(const SegmentStart start, Start(feeds));
  ONCILLA_ASSIGN(const EntryPtr entry, FindOrMake(start));
  return entry->plan;
}

Result<std::shared_ptr<const Plan>> Executor::PlanAlone(std::span<const Tensor> feeds) {
  ONCILLA_ASSIGN(const SegmentStart start, Start(feeds));
  ONCILLA_ASSIGN(std::shared_ptr<const Plan> plan,
                 MakePlan(compiled_, devices_, start, /*arena_work=*/0));
  return plan;
}

std::vector<Executor::KeptPlan> Executor::KeptPlans() const {
  std::vector<KeptPlan> plans;
  {
    MutexLock lock(&mutex_);
    for (const EntryPtr& entry : entries_) {
      plans.push_back({entry->plan, entry->alive, static_cast<int>(entry->idle.size())});
    }
  }
  for (const auto& [name, function] : functions_) {
    for (KeptPlan& plan : function->KeptPlans()) plans.push_back(std::move(plan));
  }
  return plans;
}

ExecutorCounters Executor::counters() const {
  ExecutorCounters sum;
  {
    MutexLock lock(&mutex_);
    sum = counters_;
  }
  for (const auto& [name, function] : functions_) {
    const ExecutorCounters c = function->counters();
    sum.plans_made += c.plans_made;
    sum.instances_made += c.instances_made;
    sum.plans_kept += c.plans_kept;
  }
  return sum;
}

}  // namespace oncilla
