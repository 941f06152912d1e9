// Attributes and geometry of Attention, shared by inference and kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/op_def.h"

namespace oncilla {

// q, k, v, mask?, lengths[B]?, starts[B]?, sink[heads]? -> y: for each of B samples, of `heads`
// heads and L queries, softmax(cap(q k^T * scale) + mask) v over S keys.
//
// q is [B, heads, L, size] or [B, L, columns], where head h has the `size` columns from columns[0]
// + h * size on; k and v are the same with kv_heads heads, S rows, columns[1] and columns[2], and
// value_size for v. Each head of k and v serves heads / kv_heads consecutive heads of q. y is [B,
// heads, L, value_size], or if `joined` [B, L, heads * value_size].
//
// mask has rank 4 and broadcasts to [B, heads, L, S]. The position of the query in row i is i, or i
// + starts[b] with starts, or with from_end i + n - L, where n is the number of keys. It sees keys
// j < lengths[b] (all of them without lengths) in [position - left, position + right], where -1
// means unbounded: right = 0 is causal. Keys that it does not see are not read. A sink is the score
// of one more key, which has no value. A query that sees no key, or only keys that the mask sets to
// minus infinity, gives zeros with zero_blind, else NaN.
struct AttentionAttrs {
  int64_t heads = 0, kv_heads = 0;   // 0: from axis 1 of q (k); with columns kv_heads 0: as heads
  int64_t size = 0, value_size = 0;  // 0: from the size of rows; required if columns are left over
  std::vector<int64_t> columns;      // where q, k and v begin in their rows; empty: at 0
  double scale = 0;                  // 0: 1 / sqrt(size)
  double softcap = 0;                // c > 0: scores become c * tanh(score / c)
  int64_t left = -1, right = -1;
  bool from_end = false;
  bool zero_blind = false;
  bool joined = false;
  void Fields(auto&& field) {
    field("heads", heads);
    field("kv_heads", kv_heads);
    field("size", size);
    field("value_size", value_size);
    field("columns", columns);
    field("scale", scale);
    field("softcap", softcap);
    field("left", left);
    field("right", right);
    field("from_end", from_end);
    field("zero_blind", zero_blind);
    field("joined", joined);
  }
};

// Inputs by index.
struct AttentionInput {
  enum : size_t { kQuery, kKey, kValue, kMask, kLengths, kStarts, kSink };
};

// Keys [first, end) that one query sees.
struct KeyRange {
  int64_t first = 0, end = 0;
};

struct AttentionGeometry {
  // The offset of element 0 of a row: at + sample * batch + head * head + row * row, in elements.
  struct Steps {
    int64_t at = 0, batch = 0, head = 0, row = 0;
    int64_t Offset(int64_t b, int64_t h, int64_t r) const {
      return at + b * batch + h * head + r * row;
    }
  };
  int64_t batch = 0, heads = 0, kv_heads = 0, rows = 0, keys = 0, size = 0, value_size = 0;
  Steps q, k, v, y;
  int64_t mask[4] = {0, 0, 0, 0};  // steps of sample, head, row and key; 0 where it is broadcast
  double scale = 1;
  int64_t left = -1, right = -1;
  bool from_end = false;

  int64_t group() const { return heads / kv_heads; }
  // The keys that the query in `row` sees, if `length` keys exist and queries start at `start` (0
  // without starts). Both numbers come from data and may be anything.
  KeyRange Seen(int64_t row, int64_t length, int64_t start) const {
    constexpr int64_t kFar = int64_t{1} << 40;
    const int64_t there = std::clamp<int64_t>(length, 0, keys);
    const int64_t place = row + (from_end ? there - rows : std::clamp(start, -kFar, kFar));
    KeyRange range{0, there};
    if (left >= 0) range.first = std::clamp<int64_t>(place - std::min(left, kFar), 0, there);
    if (right >= 0) {
      range.end = std::clamp<int64_t>(place + std::min(right, kFar) + 1, range.first, there);
    }
    return range;
  }
};

// For a node that passed inference with all sizes known. Sizes may be zero.
AttentionGeometry GeometryOf(const AttentionAttrs& attrs, std::span<const Fact> in);

}  // namespace oncilla
