// Topological order of a flat graph.
#include "engine/import/tf/graph/functions.h"

namespace oncilla {

// Depth-first without recursion. A node comes after its inputs, and one with effects also after the
// previous effect. The Switches that it depends on come before it where possible, so that their
// guards are known by then.
void SortTfFlatGraph(TfFlatGraph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<int> before(count, -1);
  for (size_t e = 1; e < graph.effects.size(); ++e) {
    if (graph.effects[e] != graph.effects[e - 1]) {
      before[static_cast<size_t>(graph.effects[e])] = graph.effects[e - 1];
    }
  }
  std::vector<int> place(count, -1), order;
  std::vector<char> state(count, 0);  // 1: on the stack, 2: placed
  std::vector<std::pair<int, size_t>> stack;
  graph.cycle.clear();
  for (size_t root = 0; root < count; ++root) {
    if (state[root] == 0) stack.emplace_back(static_cast<int>(root), 0);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const TfFlatNode& node = graph.nodes[static_cast<size_t>(id)];
      state[static_cast<size_t>(id)] = 1;
      if (next < node.inputs.size() + 1) {
        const int input = next == 0 ? before[static_cast<size_t>(id)] : node.inputs[next - 1].node;
        ++next;
        if (input < 0) continue;
        const char there = state[static_cast<size_t>(input)];
        if (there == 0) stack.emplace_back(input, 0);
        if (there == 1 && graph.cycle.empty()) graph.cycle = node.name;
        continue;
      }
      if (const size_t c = next - node.inputs.size() - 1; c < node.controls.size()) {
        const int pivot = node.controls[c].node;
        ++next;
        if (pivot >= 0 && state[static_cast<size_t>(pivot)] == 0) stack.emplace_back(pivot, 0);
        continue;
      }
      state[static_cast<size_t>(id)] = 2;
      place[static_cast<size_t>(id)] = static_cast<int>(order.size());
      order.push_back(id);
      stack.pop_back();
    }
  }
  const auto move = [&](int& id) {
    if (id >= 0) id = place[static_cast<size_t>(id)];
  };
  std::vector<TfFlatNode> sorted;
  sorted.reserve(count);
  for (int id : order) {
    TfFlatNode node = std::move(graph.nodes[static_cast<size_t>(id)]);
    for (TfRef& ref : node.inputs) move(ref.node);
    for (TfRef& ref : node.controls) move(ref.node);
    sorted.push_back(std::move(node));
  }
  graph.nodes = std::move(sorted);
  for (TfRef& ref : graph.outputs) move(ref.node);
  for (int& id : graph.inputs) move(id);
  for (int& id : graph.effects) move(id);
}

}  // namespace oncilla
