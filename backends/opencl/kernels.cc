// The families of recipes, listed by hand.
#include "backends/opencl/kernels.h"

#include <map>

namespace oncilla::opencl {

const KernelRow* FindKernel(std::string_view op) {
  static const std::map<std::string_view, const KernelRow*> rows = [] {
    std::map<std::string_view, const KernelRow*> all;
    for (std::span<const KernelRow> family :
         {ConvKernels(), ElementwiseKernels(), IndexingKernels(), MatMulKernels(),
          MovementKernels(), NormKernels(), PoolKernels(), RecurrentKernels(), ReduceKernels(),
          ResizeKernels(), SamplingKernels(), ShapeKernels()}) {
      for (const KernelRow& row : family) all.emplace(row.op, &row);
    }
    return all;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace oncilla::opencl
