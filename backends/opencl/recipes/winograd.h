// Winograd's convolution: 3 x 3 windows of stride 1 with fewer multiplications, by three launches:
// the inputs' transform, 16 or 36 products, the outputs' transform with the epilogue
// (cl_kernels/conv/winograd.cl says which matrices).
//
// Its filter is packed as for a direct convolution, followed by the transformed one, so that each
// plan can choose between both, and tiles with infinities or NaN are computed again from the
// weights themselves. Errors, root mean square and relative to that of the outputs: tiles of 2 x 2
// at most 0.7 of those of direct sums; of 4 x 4 8e-7, for which at most 64 channels are added up at
// a time.
#pragma once

#include "backends/opencl/recipes/recipe.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::opencl {

// The tile (2 or 4: outputs along a side) for which a constant filter is transformed, or 0. Depends
// on the filter alone, because it is packed before other sizes are known.
int WinogradTileFor(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps);

// The packing of a filter [3, 3, channels, columns], followed by its transforms.
Packing WithTransforms(const Packing& direct, int tile, const TensorDesc& filter,
                       const Capabilities& caps);

// Whether a transformed filter is expected to be faster at these sizes.
bool WinogradPays(const WindowGeometry& g, int tile, const Capabilities& caps);

// `direct_bytes`: size of the filter as for direct convolutions.
Recipe WinogradConv(const std::string& activation, const WindowGeometry& g, int tile,
                    int64_t direct_bytes, const NodeView& node, const Capabilities& caps);

}  // namespace oncilla::opencl
