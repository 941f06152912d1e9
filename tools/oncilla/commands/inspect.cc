// oncilla inspect: describes a model, and what would run where. The model never runs.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/compile/plan_memory.h"
#include "engine/graph/print.h"
#include "engine/import/container/container.h"
#include "engine/memory/host_account.h"
#include "engine/placement/device_name.h"
#include "engine/session/run.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/feeds.h"
#include "tools/oncilla/commands/inspect_all.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

struct InspectFlags {
  ModelFlags model;
  SessionFlags session;
  InputFlags input;
  std::vector<std::string> outputs;
  bool graph = false, plan = false, kernels = false, memory = false, placement = false;
  bool all = false, json = false;

  bool any_part() const { return graph || plan || kernels || memory || placement; }
};

// The data that all parts of the output print.
struct Inspected {
  OpenedModel opened;
  std::shared_ptr<Executor> executor;
  std::string stages;                            // the graph after each pass that changed it
  std::vector<std::pair<std::string, int>> ops;  // as imported, most frequent first
  double parameters = 0;
  std::vector<Tensor> feeds;  // of the right shapes; empty when a size is open
  std::string open_sizes;     // why there are none
  std::shared_ptr<const Plan> plan;
};

std::vector<std::pair<std::string, int>> CountOps(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) ++counts[std::string(node.op->name)];
  std::vector<std::pair<std::string, int>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

// The number of elements of constants that some node reads and that look like weights: of a
// floating-point type or of at most 16 bits, without scalars. Wider integers are sizes and indices.
double CountParameters(const Graph& graph) {
  const auto readers = Consumers(graph);
  double count = 0;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (!value.is_constant() || readers[i].empty()) continue;
    if (!IsFloat(value.fact.dtype) &&
        (!IsInteger(value.fact.dtype) || BitsOf(value.fact.dtype) > 16)) {
      continue;
    }
    if (value.fact.shape.known() && value.fact.shape.rank() > 0) {
      count += static_cast<double>(value.fact.desc().elements());
    }
  }
  return count;
}

// The graph's inputs by name, and the facts that files and --shape give of them, for graphs that
// cannot be imported without these.
Result<std::pair<std::vector<std::string>, Facts>> GivenFacts(const InspectFlags& flags,
                                                              const Inspected& in) {
  const Signature& signature = *in.opened.signature;
  ONCILLA_ASSIGN(const auto named, GivenInputs(signature, flags.input));
  ONCILLA_ASSIGN(const Inputs given, GatherInputs(signature, named, flags.input));
  const Facts known = FactsOfFeeds(given.feeds);
  std::vector<std::string> names;
  Facts facts;
  for (const TensorInfo& info : signature.inputs) {
    names.push_back(info.name);
    const auto file =
        std::find_if(given.feeds.begin(), given.feeds.end(),
                     [&](const NamedTensor& feed) { return feed.first == info.name; });
    if (file != given.feeds.end()) {
      facts.push_back(known[static_cast<size_t>(file - given.feeds.begin())]);
      continue;
    }
    if (info.has_default) {
      names.pop_back();
      continue;
    }
    const auto shape = SettledShape(info, flags.input, signature);
    facts.push_back(Fact::Of(info.dtype, shape.ok() ? PartialShape(*shape) : info.shape));
  }
  return std::pair(std::move(names), std::move(facts));
}

// The plan for these feeds. It may need a graph that is imported for the facts of the feeds.
Result<std::shared_ptr<const Plan>> FindPlan(const InspectFlags& flags,
                                             const std::vector<std::string>& fetches,
                                             const GraphObserver& observe, Inspected& in) {
  auto plan = in.executor->PlanFor(in.feeds);
  if (!NeedsNarrower(plan.status())) return plan;
  ONCILLA_ASSIGN(auto given, GivenFacts(flags, in));
  std::vector<NamedRunValue> feeds;
  for (size_t i = 0; i < in.feeds.size(); ++i) {
    feeds.emplace_back(in.executor->compiled().graph.inputs()[i].name, in.feeds[i]);
  }
  const auto stages = in.stages;
  const auto ops = in.ops;
  const double parameters = in.parameters;
  auto narrower =
      in.opened.model->Narrower({in.opened.signature->key, given.first, fetches, {}, given.second},
                                *in.executor, feeds, observe);
  if (narrower == nullptr) {
    in.stages = stages;
    in.ops = ops;
    in.parameters = parameters;
    return plan;
  }
  in.executor = std::move(narrower);
  ONCILLA_ASSIGN(PlanFeeds made, FeedsForPlan(in.opened, in.executor->compiled(), flags.input));
  in.feeds = std::move(made.feeds);
  return in.executor->PlanFor(in.feeds);
}

Status MakePlanOf(const InspectFlags& flags, const std::vector<std::string>& fetches,
                  const GraphObserver& observe, Inspected& in) {
  if (!in.open_sizes.empty()) {
    if (!flags.plan && !flags.kernels && !flags.memory) return {};
    return WithStage(InvalidArgument(in.open_sizes), Stage::kOptions);
  }
  const Progress progress("planning");
  // Nothing runs, so the values that planning computes should not take as much memory as a run may.
  // Without a limit from the user, they get a separate one.
  constexpr int64_t kMostComputed = int64_t{1} << 30;
  const SessionOptions& options = in.opened.session->options();
  const bool limited = options.memory_limit_bytes > 0 || options.memory_limit_fraction > 0 ||
                       !options.device_memory.empty();
  WorkLimits limits = WorkScope::Current();
  if (!limited) limits.memory = std::make_shared<BoundedAccount>(kMostComputed);
  const WorkScope scope(limits);
  auto plan = FindPlan(flags, fetches, observe, in);
  if (!limited && plan.status().code() == Code::kResourceExhausted) {
    return In(plan.status(), "planning (--memory-limit sets another bound)");
  }
  ONCILLA_ASSIGN(in.plan, std::move(plan));
  return {};
}

std::string SignatureText(const Signature& signature, const Signature* chosen) {
  std::string out;
  if (!signature.key.empty()) {
    out += StrCat("signature '", signature.key, "'", &signature == chosen ? " (the default)" : "",
                  "\n");
  }
  for (const auto& [word, list] :
       {std::pair("input", &signature.inputs), std::pair("output", &signature.outputs)}) {
    for (const TensorInfo& info : *list) {
      out += StrCat("  ", word, word[0] == 'i' ? "   " : "  ", OneLine(info.name), "  ",
                    TypeText(info), "\n");
    }
  }
  return out;
}

// The outputs of the chosen signature. Sizes that the file leaves open are those that follow from
// the graph.
std::vector<TensorInfo> SizedOutputs(const Inspected& in) {
  std::vector<TensorInfo> outputs = in.opened.signature->outputs;
  const Graph& graph = in.executor->compiled().graph;
  // Other names of sizes belong to the graph.
  const auto is_stated = [&in](const std::string& name) {
    const std::vector<TensorInfo>& inputs = in.opened.signature->inputs;
    return std::ranges::any_of(inputs, [&name](const TensorInfo& input) {
      return input.shape.ranked() && std::ranges::any_of(input.shape.dims(), [&name](const Dim& d) {
               return d.name == name;
             });
    });
  };
  for (TensorInfo& info : outputs) {
    const auto found = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                    [&](const NamedValue& v) { return v.name == info.name; });
    if (found == graph.outputs().end()) continue;
    const Fact& fact = graph.fact(found->value);
    if (info.kind != TensorInfo::Kind::kTensor || fact.kind != ValueKind::kTensor) continue;
    if (info.dtype == DType::kInvalid) info.dtype = fact.dtype;
    if (!fact.shape.ranked()) continue;
    if (!info.shape.ranked()) info.shape = PartialShape::OfRank(fact.shape.rank());
    if (info.shape.rank() != fact.shape.rank()) continue;
    for (int i = 0; i < fact.shape.rank(); ++i) {
      const Dim& known = fact.shape[i];
      Dim& dim = info.shape[i];
      const bool named = !known.name.empty() && is_stated(known.name);
      if (!dim.known() && (known.known() || (dim.name.empty() && named))) dim = known;
    }
  }
  return outputs;
}

// Lists the outputs of which the graph states more than the file.
std::string SizedOutputsText(const Inspected& in) {
  const std::vector<TensorInfo>& stated = in.opened.signature->outputs;
  const std::vector<TensorInfo> sized = SizedOutputs(in);
  std::string out;
  for (size_t i = 0; i < sized.size(); ++i) {
    const std::string type = TypeText(sized[i]);
    if (type != TypeText(stated[i])) out += StrCat("  ", OneLine(sized[i].name), "  ", type, "\n");
  }
  return out.empty() ? "" : "outputs, as their sizes follow from the graph\n" + out;
}

struct DeviceBytes {
  std::string device;
  int64_t arena_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t result_bytes = 0;
  int64_t peak() const { return arena_bytes + constant_bytes + result_bytes; }
};

// The memory of a run of this plan on each device: its arena, in whole regions; the packed
// constants, which were uploaded when compiling; and, on the host, the results.
std::vector<DeviceBytes> MemoryOf(const Inspected& in) {
  std::vector<DeviceBytes> out;
  for (const DeviceMemory& memory : in.opened.session->memory().Devices()) {
    const int d = static_cast<int>(out.size());
    out.push_back({memory.device, in.opened.session->memory().ArenaBytes(*in.plan, d),
                   memory.pool_bytes, d == 0 ? ResultBytes(*in.plan) : 0});
  }
  return out;
}

std::string MemoryText(const Inspected& in) {
  std::string out = "memory\n";
  for (const DeviceBytes& bytes : MemoryOf(in)) {
    if (bytes.peak() == 0) continue;
    out += StrCat("  ", ShortDeviceName(bytes.device), "  peak ", HumanBytes(bytes.peak()),
                  ": intermediates ", HumanBytes(bytes.arena_bytes), ", constants ",
                  HumanBytes(bytes.constant_bytes));
    if (bytes.result_bytes > 0) out += StrCat(", results ", HumanBytes(bytes.result_bytes));
    out += "\n";
  }
  for (const PlanMemory& memory : oncilla::MemoryOf(*in.plan)) {
    const auto device = static_cast<size_t>(memory.device);
    out += StrCat("  ", ShortDeviceName(in.opened.session->device_set().names()[device]), "  ",
                  PeakText(memory), "\n");
  }
  return out;
}

// Nodes are counted as they run, after fusion; reasons are those of the nodes as they were placed,
// before fusion.
std::string PlacementSummary(const Inspected& in) {
  const CompiledGraph& compiled = in.executor->compiled();
  const auto preferred = static_cast<size_t>(in.opened.session->device_set().preferred());
  std::vector<int> counts(compiled.placement.devices.size());
  int on_host = 0, planned = 0;
  for (uint32_t n = 0; n < compiled.graph.nodes().size(); ++n) {
    const Node& node = compiled.graph.node(NodeId{n});
    const NodeFate fate = in.plan == nullptr ? NodeFate::kElsewhere : in.plan->fates[n];
    if (fate == NodeFate::kSettled || fate == NodeFate::kUnneeded) {
      ++planned;
    } else {
      ++(RunsOnHost(compiled.graph, node) ? on_host : counts[static_cast<size_t>(node.device)]);
    }
  }
  std::string out = "placement\n";
  for (size_t d = counts.size(); d-- > 0;) {
    if (counts[d] == 0 && d != preferred) continue;
    out += StrCat("  ", ShortDeviceName(compiled.placement.devices[d]), "  ", counts[d],
                  counts[d] == 1 ? " node" : " nodes", "\n");
  }
  if (on_host > 0) out += StrCat("  the host  ", on_host, on_host == 1 ? " node\n" : " nodes\n");
  if (planned > 0) {
    out += StrCat("  while planning  ", planned, planned == 1 ? " node\n" : " nodes\n");
  }
  size_t stored = 0;
  for (const auto& [name, node] : in.opened.model->source().source_nodes()) {
    stored += !node.device.empty();
  }
  if (stored > 0 && in.opened.model->executables().stored_devices() == StoredDevices::kIgnore) {
    out += StrCat("  ", stored,
                  stored == 1 ? " node has a stored device" : " nodes have stored devices",
                  ", which --stored-devices follows\n");
  }
  std::map<std::string, int> reasons;
  for (const NodePlacement& node : compiled.placement.nodes) {
    if (node.reason == PlacementReason::kRelaxed) ++reasons["stored for " + node.detail];
    if (node.reason == PlacementReason::kRelaxed || node.reason == PlacementReason::kStored)
      continue;
    if (static_cast<size_t>(node.device) == preferred) continue;
    ++reasons[node.detail.empty() ? std::string(Name(node.reason)) : node.detail];
  }
  if (!reasons.empty()) {
    out +=
        StrCat("  not on ", ShortDeviceName(compiled.placement.devices[preferred]), ", because:\n");
  }
  for (const auto& [reason, n] : reasons) out += StrCat("    ", n, "  ", reason, "\n");
  return out;
}

// Lists what is stored in 16 bits, and why other nodes are not.
std::string PrecisionSummary(const PrecisionReport& report) {
  if (report.storage == DType::kF32) return "";
  std::string out =
      StrCat("precision ", PrecisionName(report.storage), "\n  ", report.narrow_nodes,
             report.narrow_nodes == 1 ? " node stores" : " nodes store", " 16 bits, of ",
             report.narrow_constants, " constants; ", report.kept.size(), " keep fp32\n");
  for (const auto& [why, count] : Reasons(report)) out += StrCat("    ", count, "  ", why, "\n");
  for (const std::string& entry : report.unmatched) {
    out += StrCat("  ", entry, " names no node\n");
  }
  return out;
}

std::string KernelsText(const Inspected& in) {
  std::string out;
  const Graph& graph = in.executor->compiled().graph;
  for (const Stretch& stretch : in.plan->stretches) {
    for (const PlannedStep& step : stretch.steps) {
      const Node& node = graph.node(step.node);
      out +=
          StrCat(OneLine(node.name), " (", node.op->name, ") on ",
                 ShortDeviceName(
                     in.opened.session->device_set().names()[static_cast<size_t>(stretch.device)]),
                 "\n");
      for (const std::string& line : SplitAt(step.kernel->description(), '\n')) {
        if (!line.empty()) out += "  " + line + "\n";
      }
    }
  }
  return out;
}

GraphWork Work(const Inspected& in) {
  Facts facts;
  for (const Tensor& feed : in.feeds) {
    Fact fact = Fact::Of(feed.desc());
    facts.push_back(std::move(fact));
  }
  return WorkOf(in.executor->compiled().graph, facts,
                *in.opened.session->device_set().devices()[0]);
}

std::string Head(const InspectFlags& flags, const OpenedModel& opened) {
  const ModelSource& source = opened.model->source();
  std::string out =
      StrCat(flags.model.path, ": ", source.format(), ", ", HumanBytes(source.file_bytes()), "\n");
  const Signature* chosen = source.signatures().size() > 1 ? opened.signature : nullptr;
  for (const Signature& signature : source.signatures()) out += SignatureText(signature, chosen);
  return out;
}

std::string Summary(const Inspected& in) {
  std::string out = SizedOutputsText(in) + "ops\n ";
  int total = 0;
  for (const auto& [op, count] : in.ops) {
    out += StrCat(" ", op, " ", count);
    total += count;
  }
  out += StrCat("\n  ", total, " nodes as imported, ", in.executor->compiled().graph.nodes().size(),
                " after the passes\n");
  out += StrCat("parameters ", HumanCount(in.parameters), "\n");
  if (in.plan) {
    const GraphWork work = Work(in);
    out += StrCat("operations ", HumanCount(work.operations), " per run");
    if (work.unknown_nodes > 0) {
      out += StrCat(" (", work.unknown_nodes, " nodes whose sizes depend on data not counted)");
    }
    out += "\n";
    out += MemoryText(in);
  } else {
    out += StrCat("operations and memory depend on sizes: ", in.open_sizes, "\n");
  }
  return out + PlacementSummary(in) + PrecisionSummary(in.executor->compiled().precision);
}

Json TensorInfosJson(const std::vector<TensorInfo>& list) {
  Json json = Json::array();
  for (const TensorInfo& info : list) {
    Json one;
    one["name"] = JsonText(info.name);
    one["dtype"] = std::string(Name(info.dtype));
    if (info.kind != TensorInfo::Kind::kTensor) one["type"] = TypeText(info);
    one["shape"] = nullptr;  // the rank is unknown
    if (info.shape.ranked()) {
      one["shape"] = Json::array();
      for (const Dim& dim : info.shape.dims()) {
        if (dim.known()) {
          one["shape"].push_back(dim.size);
        } else {
          one["shape"].push_back(dim.name.empty() ? Json(nullptr) : Json(JsonText(dim.name)));
        }
      }
    }
    json.push_back(std::move(one));
  }
  return json;
}

Json ToJson(const InspectFlags& flags, const Inspected& in) {
  const ModelSource& source = in.opened.model->source();
  Json json = DocumentJson("inspect");
  json["model"] = {{"path", JsonText(flags.model.path)},
                   {"format", std::string(source.format())},
                   {"file_bytes", source.file_bytes()}};
  json["signatures"] = Json::array();
  for (const Signature& signature : source.signatures()) {
    json["signatures"].push_back(
        {{"key", JsonText(signature.key)},
         {"inputs", TensorInfosJson(signature.inputs)},
         {"outputs", TensorInfosJson(&signature == in.opened.signature ? SizedOutputs(in)
                                                                       : signature.outputs)}});
  }
  json["signature"] = JsonText(in.opened.signature->key);
  json["devices"] = DevicesJson(*in.opened.session);
  json["ops"] = Json::array();
  for (const auto& [op, count] : in.ops) json["ops"].push_back({{"op", op}, {"count", count}});
  json["parameters"] = in.parameters;
  json["nodes"] = in.executor->compiled().graph.nodes().size();
  json["operations"] = nullptr;
  json["memory"] = nullptr;
  if (in.plan) {
    json["operations"] = Work(in).operations;
    json["memory"] = Json::array();
    for (const DeviceBytes& bytes : MemoryOf(in)) {
      json["memory"].push_back({{"device", bytes.device},
                                {"arena_bytes", bytes.arena_bytes},
                                {"constant_bytes", bytes.constant_bytes},
                                {"result_bytes", bytes.result_bytes},
                                {"peak_bytes", bytes.peak()}});
    }
  }
  json["placement"] = Json::array();
  const PlacementReport& report = in.executor->compiled().placement;
  for (const NodePlacement& node : report.nodes) {
    json["placement"].push_back({{"node", JsonText(node.node)},
                                 {"op", node.op},
                                 {"device", report.devices[static_cast<size_t>(node.device)]},
                                 {"reason", std::string(Name(node.reason))},
                                 {"detail", JsonText(node.detail)}});
  }
  const PrecisionReport& precision = in.executor->compiled().precision;
  if (precision.storage != DType::kF32) {
    Json kept = Json::array();
    for (const PrecisionReport::Kept& node : precision.kept) {
      kept.push_back({{"node", JsonText(node.node)}, {"op", node.op}, {"why", JsonText(node.why)}});
    }
    json["precision"] = {{"storage", std::string(PrecisionName(precision.storage))},
                         {"narrow_nodes", precision.narrow_nodes},
                         {"narrow_constants", precision.narrow_constants},
                         {"kept", std::move(kept)},
                         {"unmatched", precision.unmatched}};
  }
  return json;
}

Status Inspect(const InspectFlags& flags) {
  if (flags.all) {
    const OpenModelOptions open = LoadOptionsOf(flags.model);
    const auto source = OpenModel(flags.model.path, open);
    if (!source.ok()) return OfModel(source.status());
    if ((*source)->has_tf_contents()) {
      const Status status = InspectAll(flags.model, **source, flags.json);
      return status.ok() ? status : OfModel(status);
    }
    if (flags.json) {
      return WithStage(
          InvalidArgument("--all --json is for TensorFlow's models; this is ", (*source)->format()),
          Stage::kOptions);
    }
  }
  Inspected in;
  ONCILLA_ASSIGN(in.opened, Open(flags.model, flags.session));
  if (in.opened.model->source().has_sums()) {
    const Progress progress("verifying the weights");
    ONCILLA_ASSIGN(const auto file, MappedFile::Open(flags.model.path));
    Status status = VerifyWeights(file);
    if (!status.ok()) return OfModel(status);
  }
  // The description of a model is printed even where the model cannot run.
  if (!flags.json && !flags.any_part()) ONCILLA_TRY(PrintResult(Head(flags, in.opened)));
  std::vector<std::string> fetches;
  for (const std::string& name : flags.outputs) {
    fetches.push_back(FullName(name, in.opened.signature->outputs));
  }
  const auto observe = [&](std::string_view stage, const Graph& graph) {
    if (stage == "imported") {
      in.stages.clear();  // of a graph that was tried earlier
      in.ops = CountOps(graph);
      in.parameters = CountParameters(graph);
    }
    if (flags.graph) in.stages += StrCat("== ", stage, "\n", Print(graph));
  };
  // A graph that cannot be imported with open sizes is compiled again with those that files and
  // --shape give.
  auto compiled = CompileModel(in.opened, {}, fetches, {}, observe);
  if (compiled.status().code() == Code::kUnimplemented &&
      !(flags.input.shapes.empty() && flags.input.inputs.empty())) {
    ONCILLA_ASSIGN(const auto given, GivenFacts(flags, in));
    compiled = CompileModel(in.opened, given.first, fetches, {}, observe, given.second);
  }
  ONCILLA_ASSIGN(in.executor, std::move(compiled));
  ONCILLA_ASSIGN(PlanFeeds made, FeedsForPlan(in.opened, in.executor->compiled(), flags.input));
  in.feeds = std::move(made.feeds);
  in.open_sizes = std::move(made.open_sizes);
  ONCILLA_TRY(MakePlanOf(flags, fetches, observe, in));
  if (flags.json) return PrintDocument(ToJson(flags, in));
  std::string text;
  if (flags.graph) text += in.stages;
  if (flags.placement) text += Print(in.executor->compiled().placement);
  if (flags.plan) text += Print(*in.plan, in.opened.session->device_set().names());
  if (flags.kernels) text += KernelsText(in);
  if (flags.memory) text += MemoryText(in);
  if (!flags.any_part()) text += Summary(in);
  return PrintResult(text);
}

}  // namespace

Action AddInspect(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  flags->model.AddTo(app);
  flags->input.AddTo(app);
  for (const char* no : {"--random", "--seed"}) app.remove_option(app.get_option(no));
  app.add_option("--output", flags->outputs, "Only what this output needs (else all)")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  flags->session.AddTo(app);
  AddPlacement(app, flags->model);
  app.add_flag("--all", flags->all,
               "Everything in a TensorFlow model's files: tags, signatures, functions, ops, stored "
               "devices, variables, what is not supported");
  app.add_flag("--graph", flags->graph, "The graph as imported and after each pass");
  app.add_flag("--placement", flags->placement, "Where each node would run, and why");
  app.add_flag("--plan", flags->plan, "Steps, kernels and memory at the given shapes");
  app.add_flag("--kernels", flags->kernels, "What each kernel is, OpenCL recipes whole");
  app.add_flag("--memory", flags->memory, "The peak on each device, before anything runs");
  app.add_flag("--json", flags->json, "All of it as one JSON document");
  app.footer(
      "Examples:\n"
      "  oncilla inspect mobilenet/\n"
      "  oncilla inspect mobilenet/ --all\n"
      "  oncilla inspect mobilenet/ --shape image=1x224x224x3 --memory\n"
      "  oncilla inspect resizer.onnx --input sizes=sizes.npy --plan\n"
      "  oncilla inspect model.pb --device gpu --placement");
  return [flags] { return Inspect(*flags); };
}

}  // namespace oncilla::tool
