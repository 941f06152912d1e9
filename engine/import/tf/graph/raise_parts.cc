// Replaces nodes by a raised one, and removes the nodes that are no longer needed.
#include "engine/import/tf/graph/raise_parts.h"

#include <algorithm>

namespace oncilla::tf_raise {

bool IsRead(const TfFlatGraph& graph, const TfRef& ref) {
  if (std::count(graph.outputs.begin(), graph.outputs.end(), ref) > 0) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const TfFlatNode& node) {
    return std::count(node.inputs.begin(), node.inputs.end(), ref) > 0;
  });
}

Result<Tensor> IndexTensor(size_t input) {
  ONCILLA_ASSIGN(Tensor index, Tensor::Allocate({DType::kI32, {}}));
  index.MutableAs<int32_t>()[0] = static_cast<int32_t>(input);
  return index;
}

// Adds a node that replaces others: readers of `replaced` read its outputs instead, and it takes
// the place of the first of `effects`.
int AddRaised(TfFlatGraph& graph, TfFlatNode node, const std::map<TfRef, int, RefLess>& replaced,
              const std::set<int>& effects) {
  const int id = static_cast<int>(graph.nodes.size());
  const auto redirect = [&](TfRef& ref) {
    const auto at = replaced.find(ref);
    if (at != replaced.end()) ref = {id, at->second};
  };
  for (TfFlatNode& other : graph.nodes) {
    for (TfRef& ref : other.inputs) redirect(ref);
    for (TfRef& ref : other.controls) redirect(ref);
  }
  for (TfRef& ref : graph.outputs) redirect(ref);
  graph.nodes.push_back(std::move(node));
  std::vector<int> left;
  bool placed = false;
  for (int effect : graph.effects) {
    if (effects.count(effect) == 0) {
      left.push_back(effect);
    } else if (!placed) {
      left.push_back(id);
      placed = true;
    }
  }
  graph.effects = std::move(left);
  return id;
}

Status Compact(TfFlatGraph& graph) {
  const Extraction::Arguments no_arguments;
  const Extraction::Forwards no_forwards;
  std::vector<TfRef> captures;
  Extraction all(
      graph, no_arguments, no_forwards, [](int) { return true; }, 0, captures);
  for (const TfRef& ref : graph.outputs) all.AddOutput(ref);
  for (int effect : graph.effects) all.AddEffect(effect);
  for (int input : graph.inputs) {
    if (input >= 0) all.Copy({input, 0});
  }
  ONCILLA_TRY(all.CheckAcyclic());
  TfFlatGraph out = all.Finish(false);
  // Finish() sorts, so inputs are found again by their feed numbers.
  out.inputs.assign(graph.inputs.size(), -1);
  for (size_t n = 0; n < out.nodes.size(); ++n) {
    if (out.nodes[n].kind != TfFlatNode::Kind::kInput) continue;
    out.inputs[static_cast<size_t>(out.nodes[n].feed)] = static_cast<int>(n);
  }
  graph = std::move(out);
  return {};
}

}  // namespace oncilla::tf_raise
