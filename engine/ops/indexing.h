// Attributes of the indexing family: ops that pick, place or count elements, and shapes as values.
#pragma once

#include <span>

#include "engine/ops/moves.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// Gather(x, indices): slices of x along one axis. The first batch_dims axes of x and indices are
// gone through together. A negative index counts from the end, or is refused.
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
// are start + i * delta, as many as lie before limit; their number is computed in the dtype itself.
Result<Moves> FillMoves(const NodeView& node);

// Gather.
std::span<const OpDef> IndexingOps();
// Shape Size Rank Fill Range OneHot.
std::span<const OpDef> ShapeOps();

}  // namespace oncilla
