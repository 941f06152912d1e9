// What TensorFlow's window ops share: strides, kernels and paddings as canonical attributes, and
// the transposes around channel-first nodes.
#pragma once

#include "engine/import/lowering/window.h"
#include "engine/import/tf/lowering.h"

namespace oncilla {

// The entries for spatial axes of a list with one entry per axis; those for batch and channels must
// be 1. `name` is for messages.
Result<std::vector<int64_t>> SpatialOf(const std::vector<int64_t>& all, std::string_view name,
                                       const TfLayout& layout);
// The same for the list attribute `name`.
Result<std::vector<int64_t>> SpatialInts(const TfLowering& b, std::string_view name,
                                         const TfLayout& layout);

// Padding (SAME, VALID, EXPLICIT with explicit_paddings) as auto_pad or pads.
Status AddPadding(const TfLowering& b, const TfLayout& layout, Window& window);
// Strides, dilations (if the op has them) and padding.
Result<Window> ReadWindow(const TfLowering& b, const TfLayout& layout, bool dilations);
// The same with the list attribute `kernel`, for pools.
Result<PoolWindow> ReadPoolWindow(const TfLowering& b, const TfLayout& layout,
                                  std::string_view kernel);

Result<ValueId> ToChannelsLast(TfLowering& b, ValueId x, const TfLayout& layout);
// Adds the op on channels-last data; the node's own name goes to the final result.
template <class Attrs>
Result<ValueId> AddChannelsLast(TfLowering& b, const Attrs& attrs, Values inputs,
                                const TfLayout& layout, std::string_view role = "") {
  if (!layout.channels_first) return b.Add(attrs, std::move(inputs), role);
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, std::move(inputs), "inner"));
  return b.ChannelsFirst(y, layout.rank, role);
}

// The number of groups of a convolution: the filter's depth may be a fraction of the input's.
Result<int64_t> GroupsOf(const Fact& x, const Fact& filter, int rank);

}  // namespace oncilla
