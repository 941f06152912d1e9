// The attributes of a node that kernels copy, and the kernels of every family by the name of their
// op.
#include "backends/cpu/kernel.h"

#include <map>

#include "engine/base/thread_pool.h"

namespace oncilla::cpu {

OwnedNode::OwnedNode(const NodeView& node)
    : op_(node.op),
      attrs_(*node.attrs),
      inputs_(node.inputs.begin(), node.inputs.end()),
      outputs_(node.outputs.begin(), node.outputs.end()),
      name_(node.name) {}

const KernelRow* FindKernel(std::string_view op) {
  static const auto* const rows = [] {
    auto* map = new std::map<std::string_view, const KernelRow*>;
    for (std::span<const KernelRow> family : {
#define FAMILY_own(word) word##Kernels(),
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##cpu(word)
#include "engine/ops/families.inc"
         }) {
      for (const KernelRow& row : family) map->emplace(row.op, &row);
    }
    return map;
  }();
  auto it = rows->find(op);
  return it == rows->end() ? nullptr : it->second;
}

}  // namespace oncilla::cpu
