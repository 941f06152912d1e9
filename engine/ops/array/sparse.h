// Attributes of ops on sparse and ragged tensors, and of those that distribute elements to parts by
// data. They accept strings too, and run on the host.
//
// A sparse tensor is (indices[n, rank], values[n], shape[rank]); a ragged one is a list of values
// and, for each ragged axis, where its rows begin and end (splits, one more than rows).
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// SparseToDense(indices, *shape, values, default): the values, or one value, at the indices, and
// the default elsewhere. Indices are a scalar, a vector for a vector, or [n, rank]. With `validate`
// they must ascend without repetition.
struct SparseToDenseAttrs {
  bool validate = true;
  void Fields(auto&& field) { field("validate", validate); }
};

// SparseReshape(indices, shape, new shape) -> indices, shape: one new size may be -1 (inferred).
// SparseReorder(indices, values, shape) -> indices, values: sorted in row-major order.
// SparseFillEmptyRows(indices, values, shape, default) -> indices, values, which rows were empty,
// new position of each entry: adds an entry at column 0 for every row without one.
// RaggedRange(starts, limits, deltas) -> splits, values.
struct RaggedRangeAttrs {
  DType splits = DType::kI64;
  void Fields(auto&& field) { field("splits", splits); }
};
// RaggedGather(splits..., values, indices) -> splits..., values: rows of the outermost axis. The
// first splits of the result belong to the axes of `indices` beyond the first.
struct RaggedGatherAttrs {
  int64_t ragged_rank = 1;  // of the operand
  int64_t index_rank = 1;
  void Fields(auto&& field) {
    field("ragged_rank", ragged_rank);
    field("index_rank", index_rank);
  }
};
// RaggedToDense(shape, values, default, partitions...): each partition type says how its axis is
// divided: first_dim_size (a number), row_splits or value_rowids. Sizes of -1 in `shape`, or -1 as
// all of it, are the length of the longest row; smaller sizes truncate rows.
struct RaggedToDenseAttrs {
  std::vector<std::string> types;
  void Fields(auto&& field) { field("types", types); }
};

// SparseConcat(indices[k], values[k], shapes[k]), in that order -> indices, values, shape.
struct SparseConcatAttrs {
  int64_t axis = 0;
  int64_t parts = 1;
  void Fields(auto&& field) {
    field("axis", axis);
    field("parts", parts);
  }
};
// SparseSoftmax(indices, values, shape) -> values: over each row along the last axis. Elements that
// are not stored contribute nothing. Indices must be sorted.
// RaggedToSparse(splits..., values) -> indices, values, shape.
// SparseSlice(indices, values, shape, start, size) -> indices, values, shape.

// EditDistance(indices, values, shape, indices, values, shape) -> f32: the number of insertions,
// deletions and replacements that turn the first sparse tensor's list into the second's, for each
// list along the last axis; with `normalize` divided by the length of the second.
struct EditDistanceAttrs {
  bool normalize = true;
  void Fields(auto&& field) { field("normalize", normalize); }
};

// ListDiff(x, y) -> the elements of x that are not in y, and their indices.
struct ListDiffAttrs {
  DType to = DType::kI32;
  void Fields(auto&& field) { field("to", to); }
};

// DynamicPartition(x, partitions) -> `parts` tensors: the slices of x with that partition number.
struct DynamicPartitionAttrs {
  int64_t parts = 1;
  void Fields(auto&& field) { field("parts", parts); }
};
// DynamicStitch(indices[k], data[k]): slice data[i] goes to row indices[i]; the last one wins, rows
// without an index are zero.
struct DynamicStitchAttrs {
  int64_t parts = 1;
  void Fields(auto&& field) { field("parts", parts); }
};

// InvertPermutation(x): y[x[i]] = i. UnravelIndex(indices, sizes) -> coordinates [rank, ..].
// BroadcastSizes(a, b): the shape that tensors of the shapes a and b broadcast to.

}  // namespace oncilla
