// Attributes and geometry of pools, shared by inference and kernels. Input x[N, spatial.., C].
#pragma once

#include <span>

#include "engine/ops/nn/conv_geometry.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// The attributes of all pools. `ceil` counts a last window that extends beyond the end of the
// input.
struct PoolWindow {
  std::vector<int64_t> kernel, strides, dilations, pads;
  std::string auto_pad = "explicit";
  bool ceil = false;
  void Fields(auto&& field) {
    field("kernel", kernel);
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("auto_pad", auto_pad);
    field("ceil", ceil);
  }
};

// -> y, and with `with_indices` the index of each maximum in the flattened x, as x is stored
// (index_order nhwc) or as if x were channels first (nchw); the first of equal elements; NaN is
// above everything; -1 for a window of padding only, whose y is the lowest value.
struct MaxPoolAttrs : PoolWindow {
  bool with_indices = false;
  std::string index_order = "nhwc";
  void Fields(auto&& field) {
    PoolWindow::Fields(field);
    field("with_indices", with_indices);
    field("index_order", index_order);
  }
};

// Divides by the number of elements in the window, or with `count_pads` by those plus the padding
// of `pads` or `auto_pad` (what `ceil` adds after it never counts). 0 for a window of padding only.
struct AveragePoolAttrs : PoolWindow {
  bool count_pads = false;
  void Fields(auto&& field) {
    PoolWindow::Fields(field);
    field("count_pads", count_pads);
  }
};

// The p-th root of the sum of the p-th powers of magnitudes.
struct LpPoolAttrs : PoolWindow {
  int64_t p = 2;
  void Fields(auto&& field) {
    PoolWindow::Fields(field);
    field("p", p);
  }
};

// ExtractPatches(x) -> [N, out.., taps * C]: each window flattened to one pixel, padding as zeros.
struct ExtractPatchesAttrs : PoolWindow {};

// Dilation(x, filter[spatial.., C]): the maximum over each window of the sums of element and
// filter; `kernel` is the filter's size and not given. Padding is never the maximum.
struct DilationAttrs : PoolWindow {};

// DilationGrad(x, filter, dy) -> the gradient of Dilation's input, or with `of_filter` that of its
// filter: each element of dy is added where the first maximum of its window is.
struct DilationGradAttrs : PoolWindow {
  bool of_filter = false;
  void Fields(auto&& field) {
    PoolWindow::Fields(field);
    field("of_filter", of_filter);
  }
};

// FractionalPool(x[N, H, W, C]) -> y, rows, columns: windows of varying sizes, so that an axis
// shrinks by a ratio that need not be an integer. rows and columns are the begins of the windows,
// and the end of the last one; with `overlapping` each includes the first element of the next. The
// sizes are in random order, or with pseudo_random spread evenly from a random start (TensorFlow's
// rules and numbers for these seeds).
struct FractionalPoolAttrs {
  std::string mode = "max";    // or average
  std::vector<double> ratios;  // of height and width, at least 1
  bool pseudo_random = false;
  bool overlapping = false;
  int64_t seed = 0, seed2 = 0;
  void Fields(auto&& field) {
    field("mode", mode);
    field("ratios", ratios);
    field("pseudo_random", pseudo_random);
    field("overlapping", overlapping);
    field("seed", seed);
    field("seed2", seed2);
  }
};

// The geometry of a node that passed inference with all sizes known.
Result<WindowGeometry> PoolGeometry(const PoolWindow& window, const NodeView& node);

}  // namespace oncilla
