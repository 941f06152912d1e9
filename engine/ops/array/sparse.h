// Attributes of ops on sparse and ragged tensors, and of those that sort elements into parts: what
// goes where depends on data. Strings too; they run on the host.
//
// A sparse tensor is (indices[n, rank], values[n], shape[rank]); a ragged one is a list of values
// and, for each ragged axis, where its rows begin and end (splits, one more than rows).
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// SparseToDense(indices, *shape, values, default): the elements at the indices are the values, of
// which there may be only one. Indices are a number, a list for a list, or [n, rank]. With
// `validate` they must ascend and none may repeat.
struct SparseToDenseAttrs {
  bool validate = true;
  void Fields(auto&& field) { field("validate", validate); }
};

// SparseReshape(indices, shape, new shape) -> indices, shape: one new size may be -1.
// SparseReorder(indices, values, shape) -> indices, values: in row-major order.
// SparseFillEmptyRows(indices, values, shape, default) -> indices, values, which rows were empty,
// where each entry went: an entry at column 0 for every row without one.
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
// RaggedToDense(shape, values, default, partitions...): each partition says how its axis is cut:
// first_dim_size (a number), row_splits or value_rowids. Sizes of -1 in `shape`, or -1 as the whole
// of it, are as long as the longest row; shorter ones cut rows off.
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
// SparseSoftmax(indices, values, shape) -> values: over each row along the last axis. Elements
// that are not stored count nothing. Indices must be in order.
// RaggedToSparse(splits..., values) -> indices, values, shape.
// SparseSlice(indices, values, shape, start, size) -> indices, values, shape.

// EditDistance(indices, values, shape, indices, values, shape) -> f32: how many elements must be
// inserted, left out or changed to make the second sparse tensor's list from the first's, for each
// list along the last axis; with `normalize` over the length of the second.
struct EditDistanceAttrs {
  bool normalize = true;
  void Fields(auto&& field) { field("normalize", normalize); }
};

// ListDiff(x, y) -> the elements of x that are not in y, and their places.
struct ListDiffAttrs {
  DType to = DType::kI32;
  void Fields(auto&& field) { field("to", to); }
};

// DynamicPartition(x, partitions) -> `parts` tensors: the slices of x that are numbered so.
struct DynamicPartitionAttrs {
  int64_t parts = 1;
  void Fields(auto&& field) { field("parts", parts); }
};
// DynamicStitch(indices[k], data[k]): slice data[i] goes to row indices[i]; the last one wins, rows
// that nobody names are zero.
struct DynamicStitchAttrs {
  int64_t parts = 1;
  void Fields(auto&& field) { field("parts", parts); }
};

// InvertPermutation(x): y[x[i]] = i. UnravelIndex(indices, sizes) -> coordinates [rank, ..].
// BroadcastSizes(a, b): the shape that tensors of the shapes a and b broadcast to.

}  // namespace oncilla
