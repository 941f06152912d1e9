// Attributes of the indexing family: ops that select, insert or count elements, and shapes as
// values.
#pragma once

#include <span>

#include "engine/ops/array/moves.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// Gather(x, indices): slices of x along one axis. The first batch_dims axes are shared by x and
// indices. A negative index counts from the end, or is refused.
struct GatherAttrs {
  int64_t axis = 0;
  int64_t batch_dims = 0;
  bool negative_indices = true;
  void Fields(auto&& field) {
    field("axis", axis);
    field("batch_dims", batch_dims);
    field("negative_indices", negative_indices);
  }
};

// OneHot(indices, *depth, values[off, on]) -> values.dtype, with a new axis of size depth. An index
// out of range gives a row of "off"; with negative_indices, -depth..-1 count from the end.
struct OneHotAttrs {
  int64_t axis = -1;  // of the output
  bool negative_indices = false;
  void Fields(auto&& field) {
    field("axis", axis);
    field("negative_indices", negative_indices);
  }
};

// Shape(x): the sizes of axes [start, end), both clamped as a slice's are.
struct ShapeAttrs {
  int64_t start = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  DType to = DType::kI64;
  void Fields(auto&& field) {
    field("start", start);
    field("end", end);
    field("to", to);
  }
};

struct SizeAttrs {
  DType to = DType::kI64;
  void Fields(auto&& field) { field("to", to); }
};

struct RankAttrs {
  DType to = DType::kI32;
  void Fields(auto&& field) { field("to", to); }
};

// Fill(*shape, value) and Range(*start, *limit, *delta) have no attributes. The elements of a range
// are start + i * delta, as many as come before limit; their number is computed in the dtype
// itself.
Result<Moves> FillMoves(const NodeView& node);

// GatherElements(x, indices): y has the shape of indices; each index selects an element of x along
// `axis`. A negative index counts from the end.
struct GatherElementsAttrs {
  int64_t axis = 0;
  void Fields(auto&& field) { field("axis", axis); }
};

// GatherND(x, indices[.., k]): each row of indices selects an element, or a slice, by the k axes of
// x that follow the first batch_dims ones. A negative index counts from the end, or is refused.
struct GatherNDAttrs {
  int64_t batch_dims = 0;
  bool negative_indices = true;
  void Fields(auto&& field) {
    field("batch_dims", batch_dims);
    field("negative_indices", negative_indices);
  }
};

// ScatterElements and ScatterND(x, indices, updates): x with the updates written where
// GatherElements or GatherND with these indices would read, in order; without a reduction the last
// update of an element wins. For strings, the only reduction is add, which concatenates.
enum class Reduction { kNone, kAdd, kMul, kMax, kMin };
Result<Reduction> ParseReduction(std::string_view text);
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "none";  // or add, mul, max, min
  void Fields(auto&& field) {
    field("axis", axis);
    field("reduction", reduction);
  }
};
struct ScatterNDAttrs {
  std::string reduction = "none";
  bool negative_indices = true;
  void Fields(auto&& field) {
    field("reduction", reduction);
    field("negative_indices", negative_indices);
  }
};

// NonZero(x) -> i64[rank, n]: the indices of elements that are not zero, in row-major order; n
// depends on data. It has no attributes.

// The axis value that means that the op treats x as flat.
inline constexpr int64_t kFlatAxis = std::numeric_limits<int64_t>::min();

// Compress(x, condition): the slices along axis for which the boolean condition is true; slices
// beyond the end of the condition are left out. Their number depends on data.
struct CompressAttrs {
  int64_t axis = kFlatAxis;
  void Fields(auto&& field) { field("axis", axis); }
};

// Trilu(x, *k?): the triangle of each matrix on or above the k-th diagonal, or on or below it; the
// rest is zero.
struct TriluAttrs {
  bool upper = true;
  void Fields(auto&& field) { field("upper", upper); }
};

// Unique(x) -> y, first, inverse, counts: the distinct elements, or slices along axis; the index at
// which each occurs first and how often; and for each element of x the index of its equal in y. In
// ascending order, or in order of first occurrence. NaNs are equal to each other, or all distinct,
// and come last. The number of elements depends on data.
struct UniqueAttrs {
  int64_t axis = kFlatAxis;
  bool sorted = true;
  bool equal_nans = true;
  void Fields(auto&& field) {
    field("axis", axis);
    field("sorted", sorted);
    field("equal_nans", equal_nans);
  }
};

// EyeLike(x): a matrix of x's sizes with ones on the k-th diagonal.
struct EyeLikeAttrs {
  int64_t k = 0;
  DType to = DType::kInvalid;  // kInvalid: that of x
  void Fields(auto&& field) {
    field("k", k);
    field("to", to);
  }
};

// NonMaxSuppression(boxes[batches, n, 4], scores[batches, classes, n], *max?, iou?, score?) ->
// i64[m, 3] of (batch, class, box), by ONNX's rules. Selects at most `max` boxes per class, none
// without it; a box is left out when it overlaps a better one by more than iou (default 0), or when
// its score is not above `score`.
struct NonMaxSuppressionAttrs {
  bool center_point_box = false;  // boxes are (x, y, width, height), not two corners (y, x, y, x)
  void Fields(auto&& field) { field("center_point_box", center_point_box); }
};

}  // namespace oncilla
