// Makers of the fast kernels of convolutions that are fused with preceding or following ops; see
// fast.h.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Packs a filter[taps.., in_group, out_channels] as the panels of a product for each group.
CpuPacking PanelPacking(const TensorDesc& filter, int64_t groups = 1);

Result<std::unique_ptr<CpuKernel>> MakeFastGatedConv(const NodeView& node);
Result<CpuPacking> GatedConvPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastInvertedResidual(const NodeView& node);
Result<CpuPacking> InvertedResidualPacking(const NodeView& node, int input);

}  // namespace oncilla::cpu
