// Compilation: passes, placement, constants.
#include "engine/compile/compiled_graph.h"

#include "engine/base/format.h"
#include "engine/base/free_memory.h"
#include "engine/base/work_limits.h"
#include "engine/compile/loop_round.h"
#include "engine/graph/at_node.h"
#include "engine/graph/shape_fixers.h"
#include "engine/graph/verify.h"
#include "engine/ops/control.h"

namespace oncilla {
namespace {

// Constants that kernels read only in packed form, so that their original bytes are not needed.
// Small ones are kept, since planning may compute with them.
std::vector<bool> ReadByKernelsAlone(const Graph& graph) {
  std::vector<bool> alone(graph.values().size());
  for (uint32_t i = 0; i < alone.size(); ++i) {
    const Value& value = graph.value(ValueId{i});
    alone[i] =
        value.is_constant() && value.fact.fixed() && value.fact.desc().elements() > kMaxKnownInts;
  }
  for (const NamedValue& output : graph.outputs()) alone[Index(output.value)] = false;
  for (const Node& node : graph.nodes()) {
    const bool on_host = RunsOnHost(graph, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool plan_input = node.op->traits.IsPlanInput(i);
      if (node.inputs[i] != kNoValue && (on_host || plan_input)) {
        alone[Index(node.inputs[i])] = false;
      }
    }
  }
  return alone;
}

// Packs all constants that kernels read, and releases each as soon as it is on its devices, so that
// the constants computed by passes and their packed copies are never all in memory together.
Status PackConstants(CompiledGraph& compiled, std::span<Device* const> devices,
                     ConstantStore& store, const RunControl& control) {
  Graph& graph = compiled.graph;
  std::vector<ConstantStore::Wanted> wanted;
  std::vector<std::pair<uint32_t, int>> places;  // (node, input) of each packed constant
  std::vector<int> readers(graph.values().size());
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    if (RunsOnHost(graph, node)) continue;
    const Facts in = graph.FactsOf(node.inputs), out = graph.FactsOf(node.outputs);
    const NodeView view{node.op, &node.attrs, in, out, node.name};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !graph.value(node.inputs[i]).is_constant()) continue;
      if (node.op->traits.IsPlanInput(i)) continue;
      ONCILLA_TRY(WorkLook::Ask());  // a large constant takes time to hash, and to pack below
      const auto look = [&] { return devices[node.device]->PackingFor(view, static_cast<int>(i)); };
      ONCILLA_ASSIGN(Packing packing, FencedAtNode(look, node));
      wanted.emplace_back(node.device, in[i].value, std::move(packing));
      places.emplace_back(n, static_cast<int>(i));
      ++readers[Index(node.inputs[i])];
    }
  }
  ONCILLA_TRY(store.Reserve(wanted, control));
  const std::vector<bool> goes = ReadByKernelsAlone(graph);
  for (uint32_t i = 0; i < goes.size(); ++i) {
    if (goes[i] && readers[i] == 0) graph.LetGo(ValueId{i});
  }
  constexpr int64_t kReturnedAtOnce = int64_t{8} << 20;
  int64_t free = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    ONCILLA_TRY(WorkLook::Ask());
    const Node& node = graph.node(NodeId{places[w].first});
    auto memory = Fenced([&] { return store.Get(wanted[w], control); });
    if (!memory.ok()) {
      return WithNode(
          In(memory.status(), StrCat("constant ", places[w].second, " of node '",
                                     OneLine(NameInModel(node)), "' (", node.op->name, ")")),
          NameInModel(node));
    }
    compiled.packed.emplace(places[w], *memory);
    wanted[w].constant = Tensor();
    const ValueId id = node.inputs[static_cast<size_t>(places[w].second)];
    if (--readers[Index(id)] > 0 || !goes[Index(id)]) continue;
    graph.LetGo(id);
    free += graph.fact(id).desc().bytes();
    if (free >= kReturnedAtOnce) {
      ReturnFreeMemory();
      free = 0;
    }
  }
  store.LetGoOfScratch();
  return Status();
}

constexpr int kMaxFunctionDepth = 64;

// Whether a function has enough work to run it on a device: each call costs at least one wait
// there, and a copy for each value that it passes on.
bool IsWorthADevice(const Graph& graph) {
  constexpr int64_t kWeightElements = 1 << 18;
  for (const Node& node : graph.nodes()) {
    const Work work = node.op->traits.work;
    if (work == Work::kTaps || work == Work::kTapsBackwards) return true;
    if (work != Work::kProduct) continue;
    for (ValueId id : node.inputs) {
      const Fact& fact = graph.fact(id);
      if (fact.fixed() && fact.desc().elements() >= kWeightElements) return true;
    }
  }
  return false;
}

// The requested devices, for passes that run before placement; null if there can be no requests.
std::function<std::vector<std::string>(const Graph&)> WantedOf(const WishOptions& options) {
  const bool requests = options.requests != nullptr && !options.requests->empty();
  if (!requests && !(options.follow_stored && options.sources != nullptr)) return nullptr;
  return [&options](const Graph& graph) {
    std::vector<std::string> wanted;
    const auto wishes = GatherWishes(graph, options);
    if (!wishes.ok()) return wanted;  // placement reports the error
    for (const Wish& wish : *wishes) wanted.push_back(wish.device);
    return wanted;
  };
}

class Compiler {
 public:
  Compiler(std::span<Device* const> devices, std::span<const std::string> device_names,
           ConstantStore& constants, const CompileOptions& options)
      : devices_(devices), device_names_(device_names), constants_(constants), options_(options) {}

  Result<std::shared_ptr<const CompiledGraph>> Run(Module module) {
    FindUnmatched(module);
    for (auto& [name, graph] : module.functions) functions_.emplace(name, std::move(graph));
    return CompileOne(std::move(module.main), "", options_.placement, 0);
  }

 private:
  using Compiled = Result<std::shared_ptr<const CompiledGraph>>;

  // Compiles one graph. `function` is empty for the main graph.
  Compiled CompileOne(Graph graph, const std::string& function, PlacementOptions placement_options,
                      int depth) {
    PassContext context{devices_};
    context.functions = &functions_;
    context.wanted = WantedOf(placement_options.wishes);
    PipelineOptions pipeline{options_.verify, options_.observe};
    if (options_.observe && !function.empty()) {
      pipeline.observe = [this, function](std::string_view stage, const Graph& g) {
        options_.observe(StrCat(stage, " ", function), g);
      };
    }
    if (options_.verify) {
      if (Status s = Verify(graph); !s.ok()) return In(s, "as imported");
    }
    if (pipeline.observe) pipeline.observe("imported", graph);
    // Passes that see the whole graph, then placement, then passes within one device's part.
    ONCILLA_ASSIGN(graph, RunPasses(std::move(graph), GraphPasses(), context, pipeline));
    ONCILLA_ASSIGN(auto placement, Place(graph, devices_, device_names_, placement_options));
    if (pipeline.observe) pipeline.observe("placed", graph);
    ONCILLA_ASSIGN(graph, RunPasses(std::move(graph), DevicePasses(), context, pipeline));
    // Reduced-precision storage. One round suffices: the pass visits every node.
    PrecisionReport precision;
    precision.unmatched = unmatched_;
    context.storage = &options_.precision;
    context.precision = &precision;
    PipelineOptions once = pipeline;
    once.max_rounds = 1;
    ONCILLA_ASSIGN(graph, RunPasses(std::move(graph), NarrowingPasses(), context, once));
    ONCILLA_ASSIGN(graph, RunPasses(std::move(graph), LastPasses(), context, pipeline));
    auto compiled = std::make_shared<CompiledGraph>(std::move(graph));
    compiled->precision = std::move(precision);
    compiled->placement = std::move(placement);
    compiled->fixes_shapes = FindShapeFixers(compiled->graph);
    ONCILLA_TRY(PackConstants(*compiled, devices_, constants_, options_.control));
    // Functions that control flow calls are compiled in the same way.
    for (const Node& node : compiled->graph.nodes()) {
      compiled->writes_variables |= node.op->name == "AssignVariable";
      std::vector<std::string> names = CalledFunctions(node.op->name, node.attrs);
      if (node.op->name == "While") {
        ONCILLA_ASSIGN(const auto loop, ReadAttrs<WhileAttrs>(node.attrs));
        if (AddRound(loop)) {
          compiled->rounds.insert(RoundName(loop));
          names = {loop.cond, RoundName(loop)};
        }
      }
      for (const std::string& name : names) {
        auto called = CompileFunction(name, depth + 1);
        if (!called.ok()) {
          return In(called.status(), StrCat("function '", name, "', called by '", node.name, "'"));
        }
        compiled->writes_variables |= (*called)->writes_variables;
        compiled->functions[name] = *std::move(called);
      }
    }
    return std::shared_ptr<const CompiledGraph>(std::move(compiled));
  }

  // Finds entries of the precision's allow and deny lists that match nothing in the module as
  // imported.
  void FindUnmatched(const Module& module) {
    const StorageRequest& request = options_.precision;
    if (!request.options.narrow()) return;
    const auto look = [&](std::string_view list, const std::vector<std::string>& entries) {
      for (const std::string& entry : entries) {
        const auto in = [&](const Graph& graph) {
          for (const Node& node : graph.nodes()) {
            if (NamesNode(entry, node, request.sources.get())) return true;
          }
          return false;
        };
        bool found = in(module.main);
        for (const auto& [name, graph] : module.functions) found = found || in(graph);
        if (!found) unmatched_.push_back(StrCat(list, " '", entry, "'"));
      }
    };
    look("allow", request.options.allow);
    look("deny", request.options.deny);
  }

  Compiled CompileFunction(const std::string& name, int depth) {
    if (depth > kMaxFunctionDepth) return Exhausted("functions call each other too deeply");
    if (auto known = compiled_.find(name); known != compiled_.end()) return known->second;
    auto it = functions_.find(name);
    if (it == functions_.end()) return NotFound("the module has no such function");
    PlacementOptions placement = options_.placement;
    placement.small = !IsWorthADevice(it->second);
    ONCILLA_ASSIGN(auto compiled, CompileOne(it->second, name, std::move(placement), depth));
    compiled_.emplace(name, compiled);
    return compiled;
  }

  // Adds the function that is one round of the loop, if that may be one call. A body that is worth
  // another device than the CPU is called alone, since the condition would have to wait for it.
  bool AddRound(const WhileAttrs& loop) {
    const std::string name = RoundName(loop);
    if (functions_.contains(name)) return rounds_.contains(name);
    const auto body = functions_.find(loop.body), cond = functions_.find(loop.cond);
    if (body == functions_.end() || cond == functions_.end()) return false;
    if (devices_.size() > 1 && IsWorthADevice(body->second)) return false;
    std::optional<Graph> round = RoundOf(body->second, cond->second);
    if (!round) return false;
    functions_.emplace(name, *std::move(round));
    rounds_.insert(name);
    return true;
  }

  const std::span<Device* const> devices_;
  const std::span<const std::string> device_names_;
  ConstantStore& constants_;
  const CompileOptions& options_;
  std::vector<std::string> unmatched_;
  std::map<std::string, Graph> functions_;
  std::set<std::string> rounds_;  // functions that AddRound has made
  std::map<std::string, std::shared_ptr<const CompiledGraph>> compiled_;
};

}  // namespace

Result<std::shared_ptr<const CompiledGraph>> Compile(Module module,
                                                     std::span<Device* const> devices,
                                                     std::span<const std::string> device_names,
                                                     ConstantStore& constants,
                                                     const CompileOptions& options) {
  auto compiled = Compiler(devices, device_names, constants, options).Run(std::move(module));
  if (compiled.ok()) return compiled;
  return WithStage(compiled.status(), Stage::kCompile);
}

}  // namespace oncilla
