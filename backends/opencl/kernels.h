// One function per family of ops, each defined at the end of kernels_<family>.cc.
#pragma once

#include <span>

#include "backends/opencl/recipe.h"

namespace oncilla::opencl {

std::span<const KernelRow> ConvKernels();
std::span<const KernelRow> ElementwiseKernels();
std::span<const KernelRow> IndexingKernels();
std::span<const KernelRow> MatMulKernels();
std::span<const KernelRow> MovementKernels();
std::span<const KernelRow> NormKernels();
std::span<const KernelRow> RecurrentKernels();
std::span<const KernelRow> ReduceKernels();
std::span<const KernelRow> PoolKernels();
std::span<const KernelRow> ResizeKernels();
std::span<const KernelRow> SamplingKernels();
std::span<const KernelRow> ShapeKernels();

}  // namespace oncilla::opencl
