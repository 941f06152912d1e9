// Slices of tensors in checkpoints: TensorFlow stores a partitioned variable as several boxes of
// one tensor, each under a key of its own, and restores a box given as text, such as "30 8 10,5:-".
//
// This file parses both spellings of a box, and assembles a box from stored ones. A box that is
// contiguous in one stored tensor stays a view of it; any other is copied. Nothing here reads
// files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/tensor.h"

namespace oncilla {

// One axis of a box.
struct SliceExtent {
  static constexpr int64_t kAll = -1;
  int64_t start = 0;
  int64_t length = kAll;
  friend bool operator==(const SliceExtent& a, const SliceExtent& b) {
    return a.start == b.start && a.length == b.length;
  }
};
using SliceBox = std::vector<SliceExtent>;

// The key of a stored slice: 0, the tensor's name, the rank, then start and length of each axis, in
// TensorFlow's ordered code. DataLoss for anything else.
struct SliceKey {
  std::string tensor;
  SliceBox box;
};
Result<SliceKey> ParseSliceKey(std::string_view key);

// RestoreV2's shape_and_slices: the sizes of the whole tensor, then each axis as "start,length" or
// "-", with ':' between. DataLoss for anything else.
struct SliceSpec {
  Shape whole;
  SliceBox box;
};
Result<SliceSpec> ParseSliceSpec(std::string_view text);

// The box with every kAll replaced by its size. DataLoss when it exceeds `whole`.
Result<SliceBox> Settled(const SliceBox& box, const Shape& whole);
Shape ShapeOf(const SliceBox& settled);
std::string ToString(const SliceBox& box);  // "10,5:-"

// A stored part of a tensor, with its position.
struct StoredSlice {
  SliceBox box;  // settled
  Tensor tensor;
};
// The tensor in the box `wanted` (settled), from parts of one dtype. DataLoss when the parts do not
// cover it or overlap.
Result<Tensor> Assemble(const SliceBox& wanted, std::span<const StoredSlice> parts);

}  // namespace oncilla
