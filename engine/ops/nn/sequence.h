// Attributes of ops on sequences by TensorFlow's rules.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// BlockLstm(gates[T, N, 4H], recurrent[H, 4H], steps[], h0[N, H], c0[N, H], peepholes[3H]?) ->
// i, c, f, o, g, tanh(c), h of every step, each [T, N, H]. Gates stand in the order i, f, g, o, and
// peepholes in i, f, o. Steps from `steps` on give zeros.
//   i = sigmoid(i + Pi c'), f = sigmoid(f + forget + Pf c'), g = tanh(g), c = g i + c' f, cut to
//   +-clip where that is above 0, o = sigmoid(o + Po c), h = tanh(c) o
struct BlockLstmAttrs {
  double forget = 0;
  double clip = 0;
  void Fields(auto&& field) {
    field("forget", forget);
    field("clip", clip);
  }
};

// CtcGreedy(x[T, N, C], lengths[N]) -> indices i64[m, 2], classes i64[m], shape i64[2], -sums[N,
// 1]: the best class of each step, without blanks; with `merge` one for each run of a class.
struct CtcGreedyAttrs {
  int64_t blank = -1;  // negative: counted from the end
  bool merge = false;
  void Fields(auto&& field) {
    field("blank", blank);
    field("merge", merge);
  }
};

// CtcBeam(x[T, N, C], lengths[N]) -> for each of the `paths` best: indices i64[m, 2], classes
// i64[m], shape i64[2]; then logarithms of their probabilities [N, paths]. The last class is blank.
// Graves' prefix search with at most `beam` prefixes, pruned as in TensorFlow; x are logits. With
// `merge` a run of a class is one class, also across blanks.
struct CtcBeamAttrs {
  int64_t beam = 100;
  int64_t paths = 1;
  bool merge = false;
  void Fields(auto&& field) {
    field("beam", beam);
    field("paths", paths);
    field("merge", merge);
  }
};

// WarpPath(costs f32[M, N]) -> i32[2, length]: rows and columns of the path with the least sum from
// the first element to the last one, whose steps advance by a row, a column, or both. If several
// paths have the same sum, the step along the row is taken. No attributes.

}  // namespace oncilla
