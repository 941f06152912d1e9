// Makers of the fast kernels: the functions that rows of plain kernels name as `fast` and
// `packing`.
//
// A maker returns null if only the plain kernel supports the node. A packing depends on attributes
// and the constant alone, so a maker accepts every node whose constant was packed, unless the
// result is empty.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/base/half.h"
#include "engine/ops/nn/conv_geometry.h"
#include "engine/ops/nn/integer.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

// Dtypes that are converted to vectors of float: the types T of fast kernels.
constexpr bool IsCarried(DType t) {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16;
}
// Calls fn(TypeTag<T>) with float, Half or BFloat16 for a carried dtype.
template <class F>
void ForCarried(DType t, F&& fn) {
  if (t == DType::kF16) {
    fn(TypeTag<Half>{});
  } else if (t == DType::kBF16) {
    fn(TypeTag<BFloat16>{});
  } else {
    fn(TypeTag<float>{});
  }
}
// For descriptions.
template <class T>
constexpr std::string_view Stored() {
  return std::is_same_v<T, Half> ? " f16" : std::is_same_v<T, BFloat16> ? " bf16" : "";
}

Result<std::unique_ptr<CpuKernel>> MakeFastMatMul(const NodeView& node);
Result<CpuPacking> MatMulPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastConv(const NodeView& node);
Result<CpuPacking> ConvPacking(const NodeView& node, int input);
Result<std::unique_ptr<CpuKernel>> MakeFastConvTranspose(const NodeView& node);
Result<CpuPacking> ConvTransposePacking(const NodeView& node, int input);
Result<std::unique_ptr<CpuKernel>> MakeFastDeformConv(const NodeView& node);
Result<CpuPacking> DeformConvPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastMaxPool(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastAveragePool(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastLpPool(const NodeView& node);

Result<std::unique_ptr<CpuKernel>> MakeFastRecurrent(const NodeView& node);
Result<CpuPacking> RecurrentPacking(const NodeView& node, int input);
Result<std::unique_ptr<CpuKernel>> MakeFastByteLstm(const NodeView& node);
Result<CpuPacking> ByteLstmPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastConvInteger(const NodeView& node);
// For a ConvInteger of bytes with sums in i32 whose groups have one input and one output channel;
// the packing is for a filter of such groups without zero points.
std::unique_ptr<CpuKernel> MakeFastIntegerDepthwise(const NodeView& node,
                                                    const IntegerEpilogue& epilogue,
                                                    const WindowGeometry& g, bool packed);
CpuPacking IntegerDepthwisePacking(const TensorDesc& filter);
Result<CpuPacking> ConvIntegerPacking(const NodeView& node, int input);
Result<std::unique_ptr<CpuKernel>> MakeFastMatMulInteger(const NodeView& node);
Result<CpuPacking> MatMulIntegerPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastRequantize(const NodeView& node);

Result<std::unique_ptr<CpuKernel>> MakeFastByteTable(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastQuantizeLinear(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastDequantizeLinear(const NodeView& node);

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulPacked(const NodeView& node);
Result<CpuPacking> MatMulPackedPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastTreeEnsemble(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastGridSample(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastResize(const NodeView& node);

}  // namespace oncilla::cpu
