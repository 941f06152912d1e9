// Feeds by name, the run itself, and the report of what ran where.
#include "engine/session/run.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <sstream>

#include "engine/base/first_by_name.h"
#include "engine/placement/device_name.h"
#include "engine/tensor/tensor_list.h"

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

// Nodes may be placed on devices other than the run's own, so all of them are checked.
Status CheckAlive(const Session& session, const CompiledGraph& compiled) {
  std::set<int> used;
  for (const Node& node : compiled.graph.nodes()) used.insert(node.device);
  for (const int device : used) {
    ONCILLA_TRY(session.device_set().CheckAlive(static_cast<size_t>(device)));
  }
  for (const auto& [name, function] : compiled.functions) {
    ONCILLA_TRY(CheckAlive(session, *function));
  }
  return Status();
}

void SamplePools(const Session& session, std::vector<PoolSample>& samples) {
  const DeviceSet& devices = session.device_set();
  for (size_t d = 0; d < devices.size(); ++d) {
    SamplePool(devices.pool(d), devices.names()[d], samples);
  }
}

// Checks a list that is fed against what the graph relies on: the type of every element.
Result<Tensor> CheckedList(const Tensor& feed, const Fact& wanted, const std::string& name) {
  TensorList list = feed.list();
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor& element = list.at(i);
    if (!element.valid()) continue;
    if (element.is_list() || element.dtype() != wanted.dtype ||
        !wanted.shape.Accepts(element.shape())) {
      return WithStage(InvalidArgument("input '", name, "' must be a ", wanted,
                                       ", and its element ", i, " is ", element.desc()),
                       Stage::kOptions);
    }
  }
  list.set_element(wanted.shape);
  return Tensor::OfList(std::move(list));
}

// The request's feeds, in the order of the graph's inputs.
Result<std::vector<RunValue>> FeedsOf(const ModelSource& source, const Graph& graph,
                                      const RunRequest& request) {
  std::vector<RunValue> feeds;
  const FirstByName far_feeds(request.device_feeds);
  const FirstByName near_feeds(request.feeds);
  for (const NamedValue& input : graph.inputs()) {
    if (const auto* far = far_feeds.Find(input.name); far != nullptr) {
      feeds.push_back(far->second);
      continue;
    }
    const auto* near = near_feeds.Find(input.name);
    const Fact& fact = graph.fact(input.value);
    if (near == nullptr) return source.NotFed(input.name, fact);
    ONCILLA_ASSIGN(RunValue value, CheckedFeed(source, input.name, fact, near->second));
    feeds.push_back(std::move(value));
  }
  return feeds;
}

void CountNodes(const Graph& graph, std::span<const NodeFate> fates, RunReport& report) {
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
}

// What every report contains.
void FillReport(const CompiledGraph& compiled, RunReport& report) {
  report.devices = compiled.placement.devices;
  report.nodes_on.resize(report.devices.size());
  CountNodes(compiled.graph, report.stats.fates, report);
  for (const auto& [function, fates] : report.stats.functions) {
    CountNodes(function->graph, fates, report);
  }
  report.refusals = compiled.placement.Refusals();
  report.relaxed = compiled.placement.Relaxed();
}

// Whether two ranges of memory overlap.
bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) &&
         before(b.data(), a.data() + a.size());
}

// The caller's memory for each output of the graph, empty where there is none; an empty list if the
// request gives none.
Result<std::vector<std::span<std::byte>>> MemoryOf(const Graph& graph, const RunRequest& request,
                                                   const std::vector<bool>& keep) {
  const auto refuse = [](const auto&... why) {
    return WithStage(InvalidArgument(why...), Stage::kOptions);
  };
  std::vector<std::span<std::byte>> memory;
  if (request.into.empty()) return memory;
  memory.resize(graph.outputs().size());
  for (size_t k = 0; k < request.into.size(); ++k) {
    const auto& [name, bytes] = request.into[k];
    const auto it = std::find_if(
        graph.outputs().begin(), graph.outputs().end(),
        [&, wanted = std::string_view(name)](const NamedValue& o) { return o.name == wanted; });
    if (it == graph.outputs().end()) {
      return refuse("memory is given for '", name, "', which is not an output of the run");
    }
    const auto i = static_cast<size_t>(it - graph.outputs().begin());
    if (keep[i]) return refuse("output '", name, "' is to be kept on its device and in memory");
    if (memory[i].data() != nullptr) return refuse("memory is given for '", name, "' twice");
    for (size_t j = 0; j < k; ++j) {
      if (!Overlap(request.into[j].second, bytes)) continue;
      return refuse("the memory for '", request.into[j].first, "' and '", name, "' overlaps");
    }
    for (const auto& feed : request.feeds) {
      if (feed.second.dtype() == DType::kString || !Overlap(feed.second.bytes(), bytes)) continue;
      return refuse("the memory for '", name, "' overlaps with the input '", feed.first, "'");
    }
    memory[i] = bytes;
  }
  return memory;
}

// The output as a view of the caller's memory; copied there unless it was computed there.
Result<Tensor> Delivered(const std::string& name, const Tensor& output,
                         std::span<std::byte> memory) {
  const auto size = static_cast<int64_t>(memory.size());
  if (output.dtype() == DType::kString) {
    return WithStage(InvalidArgument("output '", name, "' is ", output.desc(),
                                     ", and strings are not written to memory"),
                     Stage::kOptions);
  }
  if (output.is_list() || output.desc().bytes() != size) {
    return WithStage(
        InvalidArgument("output '", name, "' is ", output.desc(), " of ", output.desc().bytes(),
                        " bytes, and the memory given for it ", "has ", size),
        Stage::kOptions);
  }
  if (!memory.empty() && output.bytes().data() != memory.data()) {
    std::memcpy(memory.data(), output.bytes().data(), memory.size());
  }
  return Tensor::View(output.desc(), memory, nullptr);
}

int64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
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
  for (const std::string& step : memory.steps) out << "; " << step << " for lack of memory";
  for (const FallbackStep& step : fallbacks) {
    out << "; not on " << ShortDeviceName(step.device) << ": " << Message(step.why);
  }
  return std::move(out).str();
}

RunControl Watched(const Session& session) {
  RunControl control;
  control.stop = session.stop();
  constexpr int64_t kMost = int64_t{1} << 40;  // 34 years, which fits the clock
  control.watchdog = std::chrono::milliseconds(std::min(session.options().watchdog_ms, kMost));
  return control;
}

RunControl ControlOf(const Session& session, std::chrono::steady_clock::time_point begin,
                     std::chrono::milliseconds timeout, const CancellationToken& cancel) {
  RunControl control = Watched(session);
  if (timeout.count() <= 0) timeout = std::chrono::milliseconds(session.options().run_timeout_ms);
  if (timeout.count() > 0) control.deadline = DeadlineAfter(begin, timeout);
  control.time_limit = timeout;
  control.cancel = cancel;
  return control;
}

namespace {

Fact FactOfFeed(const Tensor& tensor) {
  constexpr int64_t kMostNumbers = 64, kMostFloats = 2 * kMaxRank;
  constexpr size_t kLongestName = 4096;
  Fact fact = tensor.valid() ? Fact::Of(tensor) : Fact::Absent();
  if (fact.kind != ValueKind::kTensor) return fact;
  if (fact.dtype == DType::kString) {
    const bool one = tensor.elements() == 1 && tensor.strings()[0].size() <= kLongestName;
    if (one) fact.value = tensor;
    return fact;
  }
  const bool numbers = IsInteger(fact.dtype) || fact.dtype == DType::kBool;
  // Short vectors of floats may be scales of axes.
  const bool floats =
      IsFloat(fact.dtype) && tensor.shape().rank() == 1 && tensor.elements() <= kMostFloats;
  if (!numbers && !floats) return fact;
  if (tensor.shape().rank() > 2 || tensor.elements() > kMostNumbers) return fact;
  // The graph outlives the caller's memory, so the value is copied.
  fact.value = Tensor::Copy(tensor.desc(), tensor.bytes());
  return fact;
}

}  // namespace

Facts FactsOfFeeds(std::span<const NamedTensor> feeds) {
  Facts facts;
  for (const auto& [name, tensor] : feeds) facts.push_back(FactOfFeed(tensor));
  return facts;
}

Facts FactsOfFeeds(std::span<const NamedRunValue> feeds) {
  Facts facts;
  for (const auto& [name, value] : feeds) {
    facts.push_back(value.on_device() ? Fact::Of(value.desc()) : FactOfFeed(value.host()));
  }
  return facts;
}

Result<RunValue> CheckedFeed(const ModelSource& source, const std::string& name, const Fact& wanted,
                             const Tensor& value) {
  ONCILLA_TRY(source.CheckFeed(name, wanted, value));
  if (!value.is_list() || wanted.kind != ValueKind::kList) return RunValue(value);
  ONCILLA_ASSIGN(Tensor list, CheckedList(value, wanted, name));
  return RunValue(std::move(list));
}

Status NoOutputToKeep(const std::string& name) {
  return WithStage(InvalidArgument("'", name, "' is to be kept but is not an output of the run"),
                   Stage::kOptions);
}

Result<std::vector<bool>> KeepMask(const Graph& graph, const std::vector<std::string>& keep,
                                   bool all) {
  std::vector<bool> mask(graph.outputs().size(), all);
  for (const std::string& name : keep) {
    const auto it = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                 [&](const NamedValue& output) { return output.name == name; });
    if (it == graph.outputs().end()) return NoOutputToKeep(name);
    mask[static_cast<size_t>(it - graph.outputs().begin())] = true;
  }
  return mask;
}

// Records a lost device, and adds its name to a failure that does not state it.
Status AfterFailure(Session& session, const Status& failure, const std::string& device) {
  if (failure.code() != Code::kUnavailable || Details(failure).stage == Stage::kFile) {
    return failure;
  }
  DeviceSet& devices = session.device_set();
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

Result<std::vector<RunValue>> Execute(Session& session, VariableStore& variables,
                                      Executor& executor, std::span<const RunValue> feeds,
                                      const std::vector<bool>& keep, const RunControl& control,
                                      MemoryOutcome* memory) {
  if (session.device_set().any_lost()) ONCILLA_TRY(CheckAlive(session, executor.compiled()));
  const RunsUnderWay::Run running(session.memory().runs_under_way());
  std::optional<Turns::Turn> turn;
  if (executor.compiled().writes_variables) {
    ONCILLA_ASSIGN(turn, variables.TakeTurn(control));
  }
  MemoryOutcome outcome;
  OutOfMemoryPolicy policy = session.options().on_out_of_memory;
  const auto split = std::find(policy.steps.begin(), policy.steps.end(), OutOfMemoryStep::kSplit);
  if (session.options().auto_split_batch && split == policy.steps.end()) {
    policy.steps.push_back(OutOfMemoryStep::kSplit);
  }
  auto results = RunWithinMemory(session, executor, feeds, keep, control, policy, outcome);
  if (memory != nullptr) *memory = std::move(outcome);
  if (const StatusDetails details = Details(results.status()); !details.device.empty()) {
    (void)AfterFailure(session, results.status(), details.device)
        .ok();  // a callable has no other place to record it
  }
  session.memory().HoldFragmentation();
  return results;
}

Result<RunResult> RunOnce(Session& session, const ModelSource& source, VariableStore& variables,
                          Executor& executor, int preferred, const RunRequest& request,
                          RunControl control, std::chrono::steady_clock::time_point begin) {
  const CompiledGraph& compiled = executor.compiled();
  ONCILLA_ASSIGN(const auto feeds, FeedsOf(source, compiled.graph, request));
  ONCILLA_ASSIGN(const auto keep, KeepMask(compiled.graph, request.keep, request.keep_all));
  RunResult result;
  RunReport& report = result.report;
  const DeviceCounters before = CountersOf(session.device_set().devices());
  const TraceLevel trace = request.profile ? TraceLevel::kFull : request.trace;
  const bool software = trace == TraceLevel::kSoftware || trace == TraceLevel::kFull;
  control.profile = trace != TraceLevel::kNone;
  control.stamps = trace != TraceLevel::kSoftware;
  control.stats = &report.stats;
  if (software) SamplePools(session, report.pool_samples);
  ONCILLA_ASSIGN(const auto memory, MemoryOf(compiled.graph, request, keep));
  const OutputTargets targets{.graph = &compiled, .host = memory};
  if (!request.into.empty()) control.into = &targets;
  ONCILLA_ASSIGN(auto outputs,
                 Execute(session, variables, executor, feeds, keep, control, &report.memory));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = compiled.graph.outputs()[i].name;
    Tensor output = outputs[i].host();
    if (i < memory.size() && memory[i].data() != nullptr) {
      ONCILLA_ASSIGN(output, Delivered(name, output, memory[i]));
    }
    result.outputs.emplace_back(name, std::move(output));
    if (request.keep_all || !request.keep.empty()) result.kept.push_back(outputs[i].device());
  }
  FillReport(compiled, report);
  report.preferred = preferred;
  const DeviceCounters after = CountersOf(session.device_set().devices());
  report.flushes = after.flushes - before.flushes;
  report.waits = after.waits - before.waits;
  report.wall_ns = Nanoseconds(std::chrono::steady_clock::now() - begin);
  report.begin_ns = Nanoseconds(begin.time_since_epoch());
  if (software) {
    auto& samples = report.pool_samples;
    samples.insert(samples.end(), report.stats.pools.begin(), report.stats.pools.end());
    SamplePools(session, samples);
  } else {
    std::erase_if(report.stats.spans, [](const auto& s) { return s.kind == TraceSpan::kHost; });
  }
  report.traced = trace != TraceLevel::kNone;
  report.stats.pools.clear();
  return result;
}

}  // namespace oncilla
