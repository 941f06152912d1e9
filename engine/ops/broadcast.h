// The loop nest of a broadcast, as data: its axes, and the stride of each operand along them.
//
// Axes of size one are dropped, and adjacent axes that every operand traverses alike are merged, so
// that most broadcasts have one to three axes. Pure arithmetic, used by every backend.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/tensor/shape.h"

namespace oncilla {

struct BroadcastAxes {
  using Strides = std::array<int64_t, kMaxRank>;

  int rank = 0;                              // after merging; 0 for one element
  std::array<int64_t, kMaxRank> sizes = {};  // outermost first
  std::vector<Strides> strides;              // per operand, in elements; 0 where it is broadcast
  int64_t elements = 1;                      // of the output

  // The operand is read from its first element to its last, in order.
  bool dense(int operand) const;
  // The operand is one element.
  bool scalar(int operand) const;
};

// Every input must broadcast to `out`, which is written densely. Absent inputs and scalars both
// have rank 0.
BroadcastAxes MergeBroadcast(const Shape& out, std::span<const Shape> inputs);

}  // namespace oncilla
