// Runs: feeds by name, fallbacks, and the report of what ran where.
#include <algorithm>
#include <sstream>

#include "engine/import/tf_messages.h"
#include "engine/placement/device_name.h"
#include "engine/session/fallback.h"
#include "engine/session/model.h"

namespace oncilla {
namespace {

DeviceCounters CountersOf(std::span<Device* const> devices) {
  DeviceCounters sum;
  for (Device* device : devices) {
    const DeviceCounters c = device->counters();
    sum.flushes += c.flushes;
    sum.waits += c.waits;
    sum.kernels_built += c.kernels_built;
  }
  return sum;
}

}  // namespace

std::string RunReport::Line() const {
  std::ostringstream out;
  const auto ran = [&](size_t d) {
    out << ShortDeviceName(devices[d]) << " ran " << nodes_on[d]
        << (nodes_on[d] == 1 ? " node" : " nodes");
  };
  const auto first = static_cast<size_t>(preferred);
  if (first < devices.size()) ran(first);
  for (size_t d = devices.size(); d-- > 0;) {
    if (d == first || nodes_on[d] == 0) continue;
    out << ", ";
    ran(d);
  }
  if (host_nodes > 0) out << ", the host " << host_nodes;
  if (planned_nodes > 0) out << ", " << planned_nodes << " computed while planning";
  if (!refusals.empty()) {
    out << " (";
    for (size_t i = 0; i < refusals.size() && i < 3; ++i) {
      out << (i ? "; " : "") << refusals[i].second << ": " << refusals[i].first;
    }
    if (refusals.size() > 3) out << "; and " << refusals.size() - 3 << " more reasons";
    out << ')';
  }
  for (size_t i = 0; i < relaxed.size() && i < 3; ++i) {
    out << "; " << relaxed[i].second << " not on " << relaxed[i].first;
  }
  if (relaxed.size() > 3) out << "; and " << relaxed.size() - 3 << " more such reasons";
  out << "; " << stats.copies << (stats.copies == 1 ? " copy" : " copies");
  if (stats.copies > 0) {
    out.setf(std::ios::fixed);
    out.precision(2);
    out << ", " << static_cast<double>(stats.copied_bytes) / 1e6 << " MB";
  }
  for (const std::string& step : memory.steps) out << "; " << step << " for want of memory";
  for (const FallbackStep& step : fallbacks) {
    out << "; not on " << ShortDeviceName(step.device) << ": " << Message(step.why);
  }
  return std::move(out).str();
}

Result<RunResult> Model::RunSince(const RunRequest& request,
                                  std::chrono::steady_clock::time_point begin) {
  const FallbackPolicy& policy =
      request.fallback.has_value() ? *request.fallback : session_->options().fallback;
  DeviceSet& devices = session_->device_set();
  const std::string key = policy.chain.empty() ? std::string() : SettledKey(request, policy);
  bool known = false;  // that this kind of run went on elsewhere, which is told once
  Settled now;
  now.device = request.device;
  if (auto settled = FindSettled(key, known)) now = *std::move(settled);
  std::vector<FallbackStep>& steps = now.steps;
  std::set<int> tried;
  for (const FallbackStep& step : steps) {
    if (const auto used = devices.Use(step.device); used.ok()) tried.insert(*used);
  }
  const bool settled = !steps.empty();
  bool lasts = true;
  for (;;) {
    bool may_repeat = true;
    const std::string device = now.device;
    const auto on = devices.Use(device);
    const bool was_lost = on.ok() && !devices.CheckAlive(static_cast<size_t>(*on)).ok();
    auto result = RunOn(device, request, begin, may_repeat);
    if (result.ok()) {
      if (!steps.empty() && lasts && !settled) Settle(key, now);
      result->report.fallbacks = std::move(steps);
      if (result->report.fallbacks.empty() && request.device.empty() &&
          !devices.preferred_note().empty()) {
        result->report.fallbacks.push_back(
            {session_->options().device, NotFound(devices.preferred_note())});
      }
      return result;
    }
    const Status failure = AfterFailure(result.status(), device);
    if (on.ok()) tried.insert(*on);
    steps.push_back(
        {device.empty() ? std::string(devices.names()[devices.preferred()]) : device, failure});
    const auto cause = CauseOf(failure);
    const bool goes_on = cause.has_value() && policy.on.count(*cause) != 0 && may_repeat;
    while (goes_on && now.next < policy.chain.size()) {
      const auto used = devices.Use(policy.chain[now.next]);
      if (used.ok() && tried.count(*used) == 0) break;
      ++now.next;
    }
    if (!goes_on || now.next == policy.chain.size()) {
      if (steps.size() == 1) return failure;
      std::string before;
      for (size_t i = 0; i + 1 < steps.size(); ++i) {
        before +=
            StrCat(i ? "; " : "", ShortDeviceName(steps[i].device), ": ", Message(steps[i].why));
      }
      return In(failure, StrCat(ShortDeviceName(device), ", after others (", before, ")"));
    }
    // A device is lost by what happened to it, and CheckAlive() knows of that.
    lasts &= cause != FallbackCause::kDeviceLost;
    if (on.ok() && failure.code() == Code::kResourceExhausted) {
      const auto d = static_cast<size_t>(*on);
      now.room.emplace_back(d, devices.budget(d).available_bytes());
    }
    now.device = policy.chain[now.next++];
    session_->runtime().log().Write(
        known || was_lost ? LogLevel::kInfo : LogLevel::kWarning,
        StrCat(path_, ": going on with ", now.device, ": ", Message(failure)));
  }
}

std::string Model::SettledKey(const RunRequest& request, const FallbackPolicy& policy) const {
  std::string key = request.device + '\n' + request.signature + '\n';
  for (const std::string& fetch : request.fetches) key += fetch + '\n';
  for (const std::string& target : request.targets) key += target + '\n';
  for (const std::string& device : policy.chain) key += device + '\n';
  for (const FallbackCause cause : policy.on) key += static_cast<char>(cause);
  for (const NamedTensor& feed : request.feeds) key += StrCat(feed.first, ' ', feed.second.desc());
  for (const auto& [name, value] : request.device_feeds) key += StrCat(name, ' ', value.desc());
  return key;
}

std::optional<Model::Settled> Model::FindSettled(const std::string& key, bool& known) {
  MutexLock lock(&mutex_);
  const auto found = settled_.find(key);
  known = found != settled_.end();
  if (!known) return std::nullopt;
  for (const auto& [device, bytes] : found->second.room) {
    if (session_->device_set().budget(device).available_bytes() > bytes) return std::nullopt;
  }
  return found->second;
}

void Model::Settle(const std::string& key, Settled settled) {
  constexpr size_t kMost = 1024;
  MutexLock lock(&mutex_);
  if (settled_.size() >= kMost) settled_.clear();
  settled_[key] = std::move(settled);
}

// Notes a device that was lost, and names it where the failure does not.
Status Model::AfterFailure(const Status& failure, const std::string& device) {
  if (failure.code() != Code::kUnavailable || Details(failure).stage == Stage::kFile) {
    return failure;
  }
  DeviceSet& devices = session_->device_set();
  Status named = failure;
  if (const auto used = devices.Use(device); used.ok()) {
    named = WithDevice(std::move(named), devices.names()[static_cast<size_t>(*used)]);
  }
  const std::string lost = Details(named).device;
  for (size_t d = 1; d < devices.size(); ++d) {
    if (devices.names()[d] == lost) devices.MarkLost(d, failure);
  }
  return named;
}

// Nodes may be placed on other devices than the run's own.
Status Model::CheckAlive(const CompiledGraph& compiled) const {
  std::set<int> used;
  for (const Node& node : compiled.graph.nodes()) used.insert(node.device);
  for (const int device : used) {
    ONCILLA_TRY(session_->device_set().CheckAlive(static_cast<size_t>(device)));
  }
  for (const auto& [name, function] : compiled.functions) ONCILLA_TRY(CheckAlive(*function));
  return Status();
}

Result<RunResult> Model::RunOn(const std::string& device, const RunRequest& request,
                               std::chrono::steady_clock::time_point begin, bool& may_repeat) {
  ImportRequest names{request.signature, {}, request.fetches, request.targets};
  for (const NamedTensor& feed : request.feeds) names.feeds.push_back(feed.first);
  for (const auto& feed : request.device_feeds) names.feeds.push_back(feed.first);
  ONCILLA_ASSIGN(const int preferred, session_->device_set().Use(device));
  ONCILLA_TRY(session_->device_set().CheckAlive(static_cast<size_t>(preferred)));
  RunControl control = ControlOf(begin, request.timeout, request.cancel);
  auto found = ExecutableInUse(names, nullptr, preferred, control);
  if (found.status().code() == Code::kResourceExhausted && session_->Trim().bytes > 0) {
    // What weights lacked, idle plans of other models held.
    found = ExecutableInUse(names, nullptr, preferred, control);
  }
  ONCILLA_TRY(found.status());
  const auto executor = *std::move(found);
  const CompiledGraph& compiled = executor->compiled();
  std::vector<RunValue> feeds;
  for (const NamedValue& input : compiled.graph.inputs()) {
    auto far = std::find_if(request.device_feeds.begin(), request.device_feeds.end(),
                            [&](const auto& f) { return f.first == input.name; });
    if (far != request.device_feeds.end()) {
      feeds.push_back(far->second);
      continue;
    }
    auto it = std::find_if(request.feeds.begin(), request.feeds.end(),
                           [&](const NamedTensor& f) { return f.first == input.name; });
    if (it == request.feeds.end()) {
      return NotFed(input.name, compiled.graph.fact(input.value));
    }
    ONCILLA_TRY(
        tf_messages::FeedFits(*source_, input.name, compiled.graph.fact(input.value), it->second));
    feeds.push_back(it->second);
  }
  RunResult result;
  const DeviceCounters before = CountersOf(session_->devices());
  const TraceLevel trace = request.profile ? TraceLevel::kFull : request.trace;
  const bool software = trace == TraceLevel::kSoftware || trace == TraceLevel::kFull;
  control.profile = trace != TraceLevel::kNone;
  control.stamps = trace != TraceLevel::kSoftware;
  if (software) SamplePools(result.report.pool_samples);
  control.stats = &result.report.stats;
  if (compiled.writes_variables) may_repeat = false;
  ONCILLA_ASSIGN(const auto keep, KeepMask(compiled.graph, request.keep, request.keep_all));
  ONCILLA_ASSIGN(auto outputs, Execute(*executor, feeds, keep, control, &result.report.memory));
  for (size_t i = 0; i < outputs.size(); ++i) {
    result.outputs.emplace_back(compiled.graph.outputs()[i].name, outputs[i].host());
    if (request.keep_all || !request.keep.empty()) result.kept.push_back(outputs[i].device());
  }
  RunReport& report = result.report;
  report.devices = compiled.placement.devices;
  report.preferred = preferred;
  report.nodes_on.resize(report.devices.size());
  const auto count = [&](const Graph& graph, std::span<const NodeFate> fates) {
    for (size_t n = 0; n < fates.size(); ++n) {
      switch (fates[n]) {
        case NodeFate::kStep:
        case NodeFate::kView:
          ++report.nodes_on[graph.node(NodeId{static_cast<uint32_t>(n)}).device];
          break;
        case NodeFate::kHost:
          ++report.host_nodes;
          break;
        default:
          ++report.planned_nodes;
      }
    }
  };
  count(compiled.graph, report.stats.fates);
  for (const auto& [function, fates] : report.stats.functions) count(function->graph, fates);
  report.refusals = compiled.placement.Refusals();
  report.relaxed = compiled.placement.Relaxed();
  const DeviceCounters after = CountersOf(session_->devices());
  report.flushes = after.flushes - before.flushes;
  report.waits = after.waits - before.waits;
  report.wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
          .count();
  report.begin_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(begin.time_since_epoch()).count();
  if (software) {
    auto& samples = report.pool_samples;
    samples.insert(samples.end(), report.stats.pools.begin(), report.stats.pools.end());
    SamplePools(samples);
  } else {
    std::erase_if(report.stats.spans, [](const auto& s) { return s.kind == TraceSpan::kHost; });
  }
  report.traced = trace != TraceLevel::kNone;
  report.stats.pools.clear();
  return result;
}

void Model::SamplePools(std::vector<PoolSample>& samples) const {
  const DeviceSet& devices = session_->device_set();
  for (size_t d = 0; d < devices.size(); ++d) {
    SamplePool(devices.pool(d), devices.names()[d], samples);
  }
}

RunControl Model::ControlOf(std::chrono::steady_clock::time_point begin,
                            std::chrono::milliseconds timeout,
                            const CancellationToken& cancel) const {
  RunControl control = Watched();
  if (timeout.count() <= 0) {
    timeout = std::chrono::milliseconds(session_->options().run_timeout_ms);
  }
  if (timeout.count() > 0) control.deadline = DeadlineAfter(begin, timeout);
  control.cancel = cancel;
  return control;
}

RunControl Model::Watched() const {
  RunControl control;
  control.stop = session_->stop();
  constexpr int64_t kMost = int64_t{1} << 40;  // 34 years, which the clock can count
  control.watchdog = std::chrono::milliseconds(std::min(session_->options().watchdog_ms, kMost));
  return control;
}

Result<std::vector<RunValue>> Model::Execute(Executor& executor, std::span<const RunValue> feeds,
                                             const std::vector<bool>& keep,
                                             const RunControl& control, MemoryOutcome* memory) {
  if (session_->device_set().any_lost()) ONCILLA_TRY(CheckAlive(executor.compiled()));
  const RunsUnderWay::Run running(session_->runs_under_way());
  std::optional<VariableStore::Turn> turn;
  if (executor.compiled().writes_variables) {
    ONCILLA_ASSIGN(turn, variables_.TakeTurn(control));
  }
  MemoryOutcome outcome;
  OutOfMemoryPolicy policy = session_->options().on_out_of_memory;
  const auto split = std::find(policy.steps.begin(), policy.steps.end(), OutOfMemoryStep::kSplit);
  if (session_->options().auto_split_batch && split == policy.steps.end()) {
    policy.steps.push_back(OutOfMemoryStep::kSplit);
  }
  auto results = RunWithinMemory(*session_, executor, feeds, keep, control, policy, outcome);
  if (memory != nullptr) *memory = std::move(outcome);
  if (const StatusDetails details = Details(results.status()); !details.device.empty()) {
    (void)AfterFailure(results.status(), details.device).ok();  // callables have no other place
  }
  session_->HoldFragmentation();
  return results;
}

Result<std::vector<bool>> Model::KeepMask(const Graph& graph, const std::vector<std::string>& keep,
                                          bool all) {
  std::vector<bool> mask(graph.outputs().size(), all);
  for (const std::string& name : keep) {
    const auto it = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                 [&](const NamedValue& output) { return output.name == name; });
    if (it == graph.outputs().end()) {
      return WithStage(InvalidArgument("'", name, "' is to be kept, but is no output of the run"),
                       Stage::kOptions);
    }
    mask[static_cast<size_t>(it - graph.outputs().begin())] = true;
  }
  return mask;
}

Status Model::NotFed(const std::string& input, const Fact& fact) const {
  return tf_messages::NotFed(*source_, input, fact);
}

ModelCounters Model::counters() const {
  ModelCounters out;
  MutexLock lock(&mutex_);
  out.graphs_compiled = graphs_compiled_;
  for (const Entry& entry : executors_) {
    const ExecutorCounters c = entry.executor->counters();
    out.plans_made += c.plans_made;
    out.instances_made += c.instances_made;
  }
  if (constants_ != nullptr) {
    out.constants_packed = constants_->packings();
    out.constant_bytes = constants_->bytes();
  }
  out.kernels_built = CountersOf(session_->devices()).kernels_built;
  return out;
}

}  // namespace oncilla
