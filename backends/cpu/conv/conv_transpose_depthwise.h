// ConvTranspose with a filter of its own for each channel, for float and 16-bit floats: computed by
// rows of outputs, each a sum of the few inputs that contribute to it.
#pragma once

#include <memory>

#include "backends/cpu/kernel.h"
#include "engine/ops/nn/conv.h"

namespace oncilla::cpu {

// Depends on the filter [spatial.., out channels of a group, in channels] and groups alone.
bool IsDepthwiseConvTranspose(const Shape& filter, int64_t groups);
// The filter is not packed, and so need not be constant. Strides must be small: there is a table of
// the taps for each remainder.
std::unique_ptr<CpuKernel> MakeDepthwiseConvTranspose(const NodeView& node,
                                                      const WindowGeometry& g);

}  // namespace oncilla::cpu
