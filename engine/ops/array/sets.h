// Attributes of ops that combine or split sparse tensors, and of ops on sets: a set is the stored
// elements of a sparse tensor along its last axis, or those of a dense one there.
#pragma once

#include <string>

#include "engine/ops/op_def.h"

namespace oncilla {

// SparseAdd(indices, values, shape, indices, values, shape, threshold) -> indices, values, shape:
// the sum of two tensors of one shape with sorted indices; where both have an entry, a sum smaller
// than the threshold is left out. SparsePick(indices, values, shape, indices, values, shape) ->
// indices, values, shape: the same with the larger one of two values, or the smaller one; an entry
// that is missing is zero.
struct SparsePickAttrs {
  bool smaller = false;
  void Fields(auto&& field) { field("smaller", smaller); }
};

// SparseLookup(indices[n,rank], values[n], wanted[m,rank]) -> [m]: the values with the wanted
// indices, zero where there are none. With `complete` every entry must be wanted.
struct SparseLookupAttrs {
  bool complete = false;
  void Fields(auto&& field) { field("complete", complete); }
};

// SparseSplit(axis, indices, values, shape) -> indices.., values.., shapes..: parts along an axis;
// if it cannot be divided evenly, the first ones are longer by one.
struct SparseSplitAttrs {
  int64_t parts = 1;
  void Fields(auto&& field) { field("parts", parts); }
};

// SparseReduce(indices, values, shape, axes) -> indices, values, shape: reduces the stored entries,
// in order.
struct SparseReduceAttrs {
  std::string reduction = "sum";  // or max
  bool keep_dims = false;
  void Fields(auto&& field) {
    field("reduction", reduction);
    field("keep_dims", keep_dims);
  }
};

// SetOperation(first.., second..) -> indices, values, shape of sets in ascending order. Each
// operand is one dense tensor, or indices, values and shape; both agree in all axes but the last.
// The last size of the result is that of its largest set. With `validate` indices must be sorted.
struct SetOperationAttrs {
  std::string operation = "union";  // intersection, a-b, b-a
  bool dense_first = false, dense_second = false;
  bool validate = true;
  void Fields(auto&& field) {
    field("operation", operation);
    field("dense_first", dense_first);
    field("dense_second", dense_second);
    field("validate", validate);
  }
};

// SetSize(indices, values, shape) -> i32: the number of distinct values of each set.
struct SetSizeAttrs {
  bool validate = true;
  void Fields(auto&& field) { field("validate", validate); }
};

// FeatureCross(indices.., values.., shapes.., dense..) -> indices, values, shape: for each row of
// the columns, every combination of their features; the last column's feature varies fastest. The
// first `sparse` columns are sparse tensors [rows, features], the others dense ones; features are
// i64 or strings. With `hashed` a combination is a hash: FarmHash's fingerprints of its strings,
// and its numbers as they are, chained starting from `key`, modulo `buckets` if that is not 0; else
// it is its features as text, joined by `separator`.
struct FeatureCrossAttrs {
  int64_t sparse = 0;
  bool hashed = true;
  int64_t buckets = 0;
  int64_t key = 0;  // the bits of a u64
  std::string separator;
  void Fields(auto&& field) {
    field("sparse", sparse);
    field("hashed", hashed);
    field("buckets", buckets);
    field("key", key);
    field("separator", separator);
  }
};

}  // namespace oncilla
