// Fast convolution to few output channels for float, as at the end of nets that give pictures,
// sound or maps, or in filters of pictures: vectors over the positions of a row. As a product it
// would leave most columns of its tiles empty, as a depthwise convolution most lanes.
#pragma once

#include <cstdint>

#include "backends/cpu/conv/grouped.h"

namespace oncilla::cpu {

// How a convolution is divided: strips of positions along the width, for which each worker holds as
// many input rows as a window has, channel by channel.
struct FewOutputs {
  explicit FewOutputs(const WindowGeometry& g);

  int64_t scratch_floats() const { return rows * row_floats; }  // of one worker

  int64_t rows = 0;        // of input, held at once
  int64_t plane = 0;       // positions held of a row, those that its windows reach included
  int64_t row_floats = 0;  // channels * plane
  int64_t strip = 0;       // output positions of a strip
  int64_t strips = 0;
};

// Whether a convolution with filter[spatial.., in / groups, out] belongs here on this machine: one
// of a single group, or depthwise with a filter for each channel.
bool HasFewOutputs(const Shape& filter, const WindowSpec& windows, int64_t groups);
// `scratch`: scratch_floats() for each worker.
void RunFewOutputs(const Threads& threads, const Grouped& conv, const FewOutputs& few,
                   float* scratch);

}  // namespace oncilla::cpu
