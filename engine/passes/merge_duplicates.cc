// Common subexpressions: two nodes with the same op, attributes and inputs become one, unless
// different devices are requested for them. Equal small constants become one.
#include <map>
#include <tuple>

#include "engine/passes/pass.h"

namespace oncilla {

Status MergeDuplicates(const Graph& graph, const PassContext& context, Patch& patch) {
  constexpr int64_t kMaxComparedBytes = 4096;
  std::vector<ValueId> same(graph.values().size());
  std::map<std::tuple<DType, std::string, std::string>, ValueId> constants;
  for (uint32_t i = 0; i < same.size(); ++i) {
    const ValueId id{i};
    same[i] = id;
    const Value& value = graph.value(id);
    if (!value.is_constant() || value.fact.dtype == DType::kString) continue;
    const auto bytes = value.fact.value.bytes();
    if (static_cast<int64_t>(bytes.size()) > kMaxComparedBytes) continue;
    std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    same[i] =
        constants
            .emplace(std::tuple(value.fact.dtype, StrCat(value.fact.shape), std::move(data)), id)
            .first->second;
  }
  std::vector<std::string> wanted;
  if (context.wanted) wanted = context.wanted(graph);
  wanted.resize(graph.nodes().size());
  using Key =
      std::tuple<std::string_view, std::string, std::vector<ValueId>, int, std::string_view>;
  std::map<Key, const Node*> nodes;
  for (size_t n = 0; n < wanted.size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op->traits.has_effects || node.op->traits.is_random) continue;
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& id : inputs) {
      if (id != kNoValue) id = same[Index(id)];
    }
    auto [it, added] = nodes.emplace(
        Key(node.op->name, ToString(node.attrs), std::move(inputs), node.device, wanted[n]), &node);
    if (added) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      same[Index(node.outputs[i])] = it->second->outputs[i];
      ONCILLA_TRY(patch.Replace(node.outputs[i], it->second->outputs[i]));
    }
  }
  return Status();
}

}  // namespace oncilla
