// The table of contents of the CPU kernels: one line per family.
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
             ElementwiseKernels(),
             CheckKernels(),
             ConvKernels(),
             DiagonalKernels(),
             LinalgKernels(),
             MatMulKernels(),
             IndexingKernels(),
             ListKernels(),
             MovementKernels(),
             NormKernels(),
             SelectKernels(),
             ShapeKernels(),
             PoolKernels(),
             RecurrentKernels(),
             ReduceKernels(),
             ResizeKernels(),
             SamplingKernels(),
             TableKernels(),
             SegmentKernels(),
             RaggedKernels(),
             SparseKernels(),
             SpecialKernels(),
             PrintKernels(),
             RecordKernels(),
             StringKernels(),
             UnicodeKernels(),
             BoxKernels(),
             CodecKernels(),
             ImageKernels(),
             RandomKernels(),
             QuantizeKernels(),
             SequenceKernels(),
             TextKernels(),
         }) {
      for (const KernelRow& row : family) map->emplace(row.op, &row);
    }
    return map;
  }();
  auto it = rows->find(op);
  return it == rows->end() ? nullptr : it->second;
}

}  // namespace oncilla::cpu
