// What convolutions that compute rows of outputs have in common: the input rows under the windows
// of an output row, and its pixels whose windows lie inside the input.
#pragma once

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// The rows of input under the windows of output row `row`, which is counted over samples, depth and
// height, and for each the row of the filter, of `filter_row` elements. With `ring` above 0, x is a
// ring of so many rows of one sample, with row h at (h + pad_begin) % ring.
template <class T>
struct SeenRows {
  absl::InlinedVector<const T*, 16> inputs, filters;

  SeenRows(const WindowGeometry& g, const T* x, const T* filter, int64_t filter_row, int64_t row,
           int64_t ring = 0) {
    const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
    const int64_t oh = row % height.out, od = row / height.out % depth.out;
    const int64_t sample = row / height.out / depth.out;
    const auto td = depth.Seen(od), th = height.Seen(oh);
    for (int64_t kd = td.begin; kd < td.end; ++kd) {
      const int64_t at = sample * depth.in + depth.start(od) + kd * depth.dilation;
      for (int64_t kh = th.begin; kh < th.end; ++kh) {
        const int64_t h = height.start(oh) + kh * height.dilation;
        const int64_t line = ring > 0 ? (h + height.pad_begin) % ring : at * height.in + h;
        inputs.push_back(x + line * width.in * g.in_channels);
        filters.push_back(filter + (kd * height.kernel + kh) * filter_row);
      }
    }
  }
  int count() const { return static_cast<int>(inputs.size()); }
};

// Pixels [first, last) of a row have their whole window inside the input.
struct InnerPixels {
  int64_t first = 0, last = 0;

  explicit InnerPixels(const WindowAxis& width) {
    const int64_t room = width.in + width.pad_begin - width.extent();
    last = room < 0 ? 0 : std::min(width.out, room / width.stride + 1);
    first = std::min((width.pad_begin + width.stride - 1) / width.stride, last);
  }
};

}  // namespace oncilla::cpu
