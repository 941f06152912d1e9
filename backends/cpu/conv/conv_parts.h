// What kernels that are convolutions share: how one is computed as a product, and padding its
// input.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/nn/conv_product.h"

namespace oncilla::cpu {

// A convolution as a product: its sizes, and the offsets at which the runs of a row begin; for one
// group of possibly several.
struct ConvParts {
  explicit ConvParts(const WindowGeometry& g) : shape(ProductOf(g)) {
    for (int64_t kd = 0; kd < shape.tap_count[0]; ++kd) {
      for (int64_t kh = 0; kh < shape.tap_count[1]; ++kh) {
        for (int64_t kw = 0; kw < shape.tap_count[2]; ++kw) {
          taps.push_back(kd * shape.tap_step[0] + kh * shape.tap_step[1] + kw * shape.tap_step[2]);
        }
      }
    }
    sizes.tap_count = static_cast<int64_t>(taps.size());
    sizes.run = shape.run;
    sizes.columns = shape.columns;
    sizes.c_step = g.out_channels;
    sizes.row_step = shape.row_step;
    sizes.line_rows = shape.line_rows;
    std::copy_n(shape.line_count.begin(), kMaxSpatial, sizes.line_count);
    std::copy_n(shape.line_step.begin(), kMaxSpatial, sizes.line_step);
    FindSeen(g);
    int64_t step = sizes.line_rows * sizes.c_step;
    for (size_t i = kMaxSpatial; i-- > 0; step *= shape.line_count[i]) sizes.c_line_step[i] = step;
  }

  // Elements of the padded input; 0 if the input is read without padding.
  int64_t padded_elements() const { return shape.pads ? shape.in_floats : 0; }
  // The product, without operands. It borrows from this.
  template <class T, class B = T>
  Product<T, B> product() const {
    Product<T, B> p;
    static_cast<ProductSizes&>(p) = sizes;
    p.taps = taps.data();
    return p;
  }

  ConvProduct shape;
  std::vector<int64_t> taps;
  std::optional<SeenTaps> seen;  // where leaving others out saves work; for all lines at once
  ProductSizes sizes;            // without taps

 private:
  // Windows that are wide by dilation may have whole rows of taps in the zeros around the input.
  void FindSeen(const WindowGeometry& g) {
    constexpr double kWorthIt = 0.9;  // of all taps
    const bool dilated = g.axis[0].dilation > 1 || g.axis[1].dilation > 1 || g.axis[2].dilation > 1;
    if (!dilated || !shape.pads || shape.line_count[1] != g.axis[0].out ||
        shape.line_count[2] != g.axis[1].out || shape.line_rows != g.axis[2].out) {
      return;
    }
    SeenTaps found;
    double share = 1;
    for (int i = 0; i < 3; ++i) {
      const WindowAxis& axis = g.axis[static_cast<size_t>(i)];
      found.count[i] = shape.tap_count[static_cast<size_t>(i)];
      int64_t sum = 0;
      for (int64_t o = 0; o < axis.out; ++o) {
        const WindowAxis::Taps window = axis.Seen(o);
        // A window along the last axis may be one run.
        const bool whole = found.count[i] != axis.kernel;
        found.axis[i].push_back({whole ? 0 : window.begin, whole ? found.count[i] : window.end});
        sum += std::max<int64_t>(0, found.axis[i].back().end - found.axis[i].back().begin);
      }
      share *= static_cast<double>(sum) / static_cast<double>(axis.out * found.count[i]);
    }
    if (share < kWorthIt) seen = std::move(found);
  }
};

// Elements up to the next multiple of 64 bytes.
template <class T>
int64_t WholeLines(int64_t elements) {
  constexpr int64_t kStep = 64 / sizeof(T);
  return SaturatingAdd(elements, kStep - 1) / kStep * kStep;
}

// Copies row i of the input with the zeros around it that `shape` describes; rows are counted over
// samples, depth and height.
template <class T>
void FillPaddedRow(const WindowGeometry& g, const ConvProduct& shape, const T* x, int64_t i,
                   T* to) {
  const int64_t channels = g.in_channels, row = shape.size[2] * channels;
  const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  // A long stride may end the last window before the padding does.
  const int64_t left = std::min(shape.before[2] * channels, row);
  const int64_t middle = std::min(width.in * channels, row - left);
  const int64_t h = i % shape.size[1] - shape.before[1],
                d = i / shape.size[1] % shape.size[0] - shape.before[0];
  if (h < 0 || h >= height.in || d < 0 || d >= depth.in) {
    std::fill_n(to, row, T());
    return;
  }
  const int64_t line = (i / shape.size[1] / shape.size[0] * depth.in + d) * height.in + h;
  std::fill_n(to, left, T());
  std::memcpy(to + left, x + line * width.in * channels, static_cast<size_t>(middle) * sizeof(T));
  std::fill(to + left + middle, to + row, T());
}

// The same for all rows.
template <class T>
void FillPadded(const Threads& threads, const WindowGeometry& g, const ConvProduct& shape,
                const T* x, T* to) {
  const int64_t row = shape.size[2] * g.in_channels;
  const int64_t rows = g.batch * shape.size[0] * shape.size[1];
  const int64_t grain = std::max<int64_t>(1, 32768 / row);
  ParallelFor(threads, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) FillPaddedRow(g, shape, x, i, to + i * row);
  });
}

}  // namespace oncilla::cpu
