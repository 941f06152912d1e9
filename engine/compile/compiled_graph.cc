// Compilation: passes, placement, constants.
#include "engine/compile/compiled_graph.h"

#include "engine/graph/shape_fixers.h"
#include "engine/graph/verify.h"

namespace oncilla {
namespace {

Status PackConstants(CompiledGraph& compiled, std::span<Device* const> devices,
                     ConstantStore& store) {
  const Graph& graph = compiled.graph;
  std::vector<ConstantStore::Wanted> wanted;
  std::vector<std::pair<uint32_t, int>> places;  // (node, input) of each
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    if (RunsOnHost(graph, node)) continue;
    const Facts in = graph.FactsOf(node.inputs), out = graph.FactsOf(node.outputs);
    const NodeView view{node.op, &node.attrs, in, out, node.name};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !graph.value(node.inputs[i]).is_constant()) continue;
      if (i < 32 && (node.op->traits.plan_inputs >> i & 1) != 0) continue;
      ONCILLA_ASSIGN(Packing packing, devices[node.device]->PackingFor(view, static_cast<int>(i)));
      wanted.emplace_back(node.device, in[i].value, std::move(packing));
      places.emplace_back(n, static_cast<int>(i));
    }
  }
  ONCILLA_TRY(store.Reserve(wanted));
  for (size_t w = 0; w < wanted.size(); ++w) {
    auto memory = store.Get(wanted[w]);
    if (!memory.ok()) {
      const std::string& name = graph.node(NodeId{places[w].first}).name;
      return WithNode(
          In(memory.status(), StrCat("constant ", places[w].second, " of node '", name, "'")),
          name);
    }
    compiled.packed.emplace(places[w], *memory);
  }
  return Status();
}

// Constants that only kernels read are on their devices now. Their bytes are let go; small ones
// stay, since planning may compute with them.
void LetConstantsGo(Graph& graph) {
  std::vector<bool> needed(graph.values().size());
  for (const NamedValue& output : graph.outputs()) needed[Index(output.value)] = true;
  for (const Node& node : graph.nodes()) {
    const bool on_host = RunsOnHost(graph, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool plan_input = i < 32 && (node.op->traits.plan_inputs >> i & 1) != 0;
      if (node.inputs[i] != kNoValue && (on_host || plan_input)) {
        needed[Index(node.inputs[i])] = true;
      }
    }
  }
  for (uint32_t i = 0; i < needed.size(); ++i) {
    const Value& value = graph.value(ValueId{i});
    if (needed[i] || !value.is_constant() || !value.fact.fixed()) continue;
    if (value.fact.desc().elements() > kMaxKnownInts) graph.LetGo(ValueId{i});
  }
}

}  // namespace

Result<std::shared_ptr<const CompiledGraph>> Compile(Graph graph, std::span<Device* const> devices,
                                                     std::span<const std::string> device_names,
                                                     ConstantStore& constants,
                                                     const CompileOptions& options) {
  const PassContext context{devices};
  const PipelineOptions pipeline{options.verify, options.observe};
  auto fail = [](Status status) { return WithStage(std::move(status), Stage::kCompile); };
  if (options.verify) {
    if (Status s = Verify(graph); !s.ok()) return fail(In(s, "as imported"));
  }
  if (options.observe) options.observe("imported", graph);
  auto optimised = RunPasses(std::move(graph), GraphPasses(), context, pipeline);
  if (!optimised.ok()) return fail(optimised.status());
  auto placement = Place(*optimised, devices, device_names, options.placement);
  if (!placement.ok()) return fail(placement.status());
  if (options.observe) options.observe("placed", *optimised);
  auto fused = RunPasses(*std::move(optimised), DevicePasses(), context, pipeline);
  if (!fused.ok()) return fail(fused.status());
  fused = RunPasses(*std::move(fused), LastPasses(), context, pipeline);
  if (!fused.ok()) return fail(fused.status());
  auto compiled = std::make_shared<CompiledGraph>(*std::move(fused));
  compiled->placement = *std::move(placement);
  compiled->fixes_shapes = FindShapeFixers(compiled->graph);
  if (Status s = PackConstants(*compiled, devices, constants); !s.ok()) return fail(s);
  LetConstantsGo(compiled->graph);
  return std::shared_ptr<const CompiledGraph>(std::move(compiled));
}

}  // namespace oncilla
