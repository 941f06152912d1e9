// Depth-first search with an explicit stack, since a file may contain chains of any length.
#include "engine/import/onnx/order.h"

#include <unordered_map>

namespace oncilla {

Result<std::vector<size_t>> OrderOnnxNodes(std::span<const OnnxNode> nodes,
                                           std::span<const std::string_view> wanted,
                                           const OnnxNames& known, const OnnxNames& given) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (!producer.emplace(output, i).second) {
        return DataLoss("two nodes compute '", output, "'");
      }
      if (given.contains(output)) {
        return DataLoss("a node computes '", output, "', which is an input or a constant");
      }
    }
  }
  std::vector<size_t> order;
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(nodes.size(), kNew);
  struct Step {
    size_t node;
    size_t next_input;
  };
  std::vector<Step> stack;
  const auto visit = [&](std::string_view name) -> Status {
    if (name.empty() || known.contains(name)) return {};
    const auto it = producer.find(name);
    if (it == producer.end()) return {};  // the reader of the name reports it
    if (state[it->second] == kOpen) {
      return DataLoss("the graph has a cycle through '", name, "'");
    }
    if (state[it->second] == kNew) {
      state[it->second] = kOpen;
      stack.push_back({it->second, 0});
    }
    return {};
  };
  for (std::string_view name : wanted) {
    ONCILLA_TRY(visit(name));
    while (!stack.empty()) {
      Step& step = stack.back();
      const OnnxNode& node = nodes[step.node];
      const size_t next = step.next_input++;
      if (next < node.inputs.size() + node.captures.size()) {
        const bool input = next < node.inputs.size();
        ONCILLA_TRY(visit(input ? node.inputs[next] : node.captures[next - node.inputs.size()]));
        continue;
      }
      state[step.node] = kDone;
      order.push_back(step.node);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace oncilla
