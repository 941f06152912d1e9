// Attributes of the reduce family, and the geometry of a reduction that backends share.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Inputs of every Reduce op: x, axes? (plan input). Without axes, or with none listed, all axes are
// reduced; with empty_axes_is_all=false none, and each element is reduced by itself.
struct ReduceAttrs {
  bool keep_dims = false;
  bool empty_axes_is_all = true;
  void Fields(auto&& field) {
    field("keep_dims", keep_dims);
    field("empty_axes_is_all", empty_axes_is_all);
  }
};

// The index of the largest or smallest element; among equal ones the first, or the last. NaN is
// both largest and smallest; with `skip_nan` (TensorFlow's rule) NaN is no better than an infinity
// of the wrong sign: both count as the smallest or largest finite number.
struct ArgAttrs {
  int64_t axis = 0;
  bool keep_dims = false;
  bool last = false;
  bool skip_nan = false;
  DType to = DType::kI64;
  void Fields(auto&& field) {
    field("axis", axis);
    field("keep_dims", keep_dims);
    field("last", last);
    field("skip_nan", skip_nan);
    field("to", to);
  }
};

// Inputs: x, axis (plan input, one element). `exclusive` leaves each element out of its own sum.
struct CumulativeAttrs {
  bool exclusive = false;
  bool reverse = false;
  void Fields(auto&& field) {
    field("exclusive", exclusive);
    field("reverse", reverse);
  }
};

// Inputs: x, k (plan input, one element). Among equal elements the one with the lower index comes
// first; NaN counts as larger than any number. Without `sorted` any order is valid.
struct TopKAttrs {
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  DType to = DType::kI64;
  void Fields(auto&& field) {
    field("axis", axis);
    field("largest", largest);
    field("sorted", sorted);
    field("to", to);
  }
};

// The axes that a Reduce op reduces, sorted. The value of `axes` must be known.
Result<std::vector<int>> ReducedAxes(const ReduceAttrs& attrs, const Fact* axes, int rank);

// A reduction as two loop nests over a dense input: over outputs in order, and over the elements of
// one output. Adjacent axes of one kind are merged; an empty list is one element.
struct ReduceLoops {
  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> kept, reduced;  // outermost first
  int64_t outputs = 1, count = 1;   // elements of the output; elements per output
};
ReduceLoops MakeReduceLoops(const Shape& shape, std::span<const int> axes);

}  // namespace oncilla
