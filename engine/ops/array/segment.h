// Attributes of ops that group elements by a number beside them: segments, counts, sorted places.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Reduces the slices x[place] that have the same number ids[place] to row ids[place] of the result;
// the axes of ids are the first of x. An empty row is 0; with `identity` that of the reduction (1
// for prod, the lowest number for max, the highest for min). sqrtn is the sum over the root of the
// count.
//   SegmentReduce(x, ids, *count): ids in any order, negative ones are left out.
//   SortedSegmentReduce(x, ids): ids are ascending from 0 on, as many rows as the last one says;
//   that depends on data.
// An id that is out of range, or descends where it must not, fails the run.
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

// SearchSorted(sorted[.., n], values[.., m]): for each value its place among the ascending numbers
// of its row: the first that is not less than it, or with `right` the first that is greater. A
// `sorted` of rank 1 serves values of any shape.
struct SearchSortedAttrs {
  bool right = false;
  DType to = DType::kI32;
  void Fields(auto&& field) {
    field("right", right);
    field("to", to);
  }
};

// Bincount(x, *size, weights?): how often each of the numbers below `size` stands in x, or in each
// row of a matrix; the others are left out, and negative ones fail the run. Weights (as many as x;
// none are ones) are added up instead of counted. `binary`: whether it is there at all. The result
// has the dtype `to`.
struct BincountAttrs {
  bool binary = false;
  DType to = DType::kI32;
  void Fields(auto&& field) {
    field("binary", binary);
    field("to", to);
  }
};

}  // namespace oncilla
