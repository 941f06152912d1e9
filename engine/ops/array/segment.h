// Attributes of ops that group elements by ids beside them, count them, or search sorted ones.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Reduces the slices x[i] that have the same id ids[i] to row ids[i] of the result; the axes of ids
// are the first ones of x. A row without slices is 0; with `identity` it is that of the reduction
// (1 for prod, the lowest number for max, the highest for min). sqrtn is the sum divided by the
// root of the count.
//   SegmentReduce(x, ids, *count): ids in any order; negative ones are ignored.
//   SortedSegmentReduce(x, ids): ids ascend from 0; the last one determines the number of rows,
//   which depends on data.
// An id that is out of range, or not ascending where it must be, fails the run.
struct SegmentAttrs {
  std::string reduction = "sum";  // or mean, sqrtn, prod, max, min
  bool identity = false;
  bool sorted = false;  // SegmentReduce: the ids must ascend and none be negative
  void Fields(auto&& field) {
    field("reduction", reduction);
    field("identity", identity);
    field("sorted", sorted);
  }
};
enum class SegmentReduction { kSum, kMean, kSqrtN, kProd, kMax, kMin };
Result<SegmentReduction> ParseSegmentReduction(std::string_view text);

// SearchSorted(sorted[.., n], values[.., m]): for each value its position among the ascending
// numbers of its row: the first that is not less than it, or with `right` the first that is
// greater. A `sorted` of rank 1 is used for values of any shape.
struct SearchSortedAttrs {
  bool right = false;
  DType to = DType::kI32;
  void Fields(auto&& field) {
    field("right", right);
    field("to", to);
  }
};

// Bincount(x, *size, weights?): how often each of the numbers below `size` occurs in x, or in each
// row of a matrix; others are ignored, and negative ones fail the run. Weights (as many as x; none
// means ones) are added up instead of counted. `binary`: whether the number occurs at all. The
// result has the dtype `to`.
struct BincountAttrs {
  bool binary = false;
  DType to = DType::kI32;
  void Fields(auto&& field) {
    field("binary", binary);
    field("to", to);
  }
};

}  // namespace oncilla
