// Movements as data: which box of which input is copied to which box of which output.
//
// Most ops that only rearrange elements copy a few strided boxes. Their geometry is computed here
// once, from shapes and plan inputs alone; backends only have to copy a box. Ops whose pattern
// depends on data (Gather) or is periodic (Pad, Roll) are not expressed this way.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// One axis of a box: its size, and the strides, in elements, at the source and at the destination.
struct MoveAxis {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// For every index i over the axes: to[to_start + sum i*to] = from[from_start + sum i*from]. Moves
// of one node are made in order; a later one may overwrite zeros of an earlier one.
inline constexpr int kZeros = -1;  // instead of an input: zeros, false or empty strings; no strides
struct Move {
  int input = 0;
  int output = 0;
  int64_t from_start = 0;
  int64_t to_start = 0;
  absl::InlinedVector<MoveAxis, 8> axes;

  int64_t elements() const;  // saturates
};
// Fills output 0 with zeros.
Move ZeroMove(const Shape& to);
using Moves = std::vector<Move>;

// An equivalent move with as few axes as possible: ordered by destination stride (largest first),
// axes of one element dropped, neighbours that are contiguous on both sides merged. A move of no
// elements has one axis of size zero.
Move Simplified(Move move);

// Strides of the dense row-major form.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// The moves of one node whose facts are all fixed and whose plan inputs have values. `F` of a row
// is Result<Moves> F(const Attrs&, const NodeView&), or F(const NodeView&) where attributes do not
// matter.
template <auto F>
Result<Moves> MovesOf(const NodeView& node) {
  if constexpr (std::is_invocable_v<decltype(F), const NodeView&>) {
    return F(node);
  } else {
    ONCILLA_ASSIGN(auto attrs, ReadAttrs<internal::AttrsOf<F>>(*node.attrs));
    return F(attrs, node);
  }
}

}  // namespace oncilla
