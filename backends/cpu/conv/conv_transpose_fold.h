// ConvTranspose with few output channels, for f32: all taps are columns of one product, whose
// results are then added to the outputs.
//
// By phases (conv_transpose.cc) an image of three channels would fill three columns of a tile; with
// the 16 taps of a filter of 4x4 there are 48. The product contains no zeros; the additional cost
// is the addition, once per tap and output.
#pragma once

#include "backends/cpu/fast/fast.h"
#include "engine/ops/nn/conv.h"

namespace oncilla::cpu {

// Depends on the filter [spatial.., out channels of a group, in channels] and groups alone.
bool FoldsConvTranspose(const Shape& filter, int64_t groups);
std::unique_ptr<CpuKernel> MakeFoldedConvTranspose(const NodeView& node, const WindowGeometry& g);
// For one group per product: panels for each tap of the depth.
CpuPacking FoldedConvTransposePacking(const TensorDesc& filter, int64_t groups);

}  // namespace oncilla::cpu
