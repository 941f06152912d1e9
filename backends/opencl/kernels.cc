// The families of recipes, listed by hand.
#include "backends/opencl/kernels.h"

namespace oncilla::opencl {

const KernelRow* FindKernel(std::string_view op) {
  for (std::span<const KernelRow> family : {MovementKernels()}) {
    for (const KernelRow& row : family) {
      if (row.op == op) return &row;
    }
  }
  return nullptr;
}

}  // namespace oncilla::opencl
