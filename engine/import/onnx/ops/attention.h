// What attention ops of ONNX and of com.microsoft have in common: splitting and joining heads,
// masks as a bias, rotary embeddings.
#pragma once

#include <string>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// [N, L, heads * size] as [N, heads, L, size], and back.
Result<ValueId> SplitHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name);
Result<ValueId> JoinHeads(OnnxLowering& b, ValueId x, std::string_view role);

// The size of an axis of a tensor of rank 4, which must be known.
Result<int64_t> KnownSize(OnnxLowering& b, ValueId x, int axis, std::string_view what);

// The size of an axis as a scalar.
Result<ValueId> SizeOf(OnnxLowering& b, ValueId x, int axis, const std::string& name);

// Keys or values [N, own heads, S, size], with each head repeated for the heads of queries that
// share it.
Result<ValueId> ShareHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name);

// Which keys a query may not see by their positions: bool, broadcasting to [N, heads, L, S].
struct HiddenKeys {
  bool causal = false;
  int64_t left = -1, right = -1;  // how far a query sees; -1 is unbounded
  ValueId past = kNoValue;        // [N, heads, P, size]: keys before the first query
  ValueId valid = kNoValue;       // i64[N]: keys that are no padding, the last ones the queries'
  ValueId start = kNoValue;       // i64[N]: position of the first query, if not given by `valid`
  bool nothing() const { return !causal && left < 0 && right < 0 && valid == kNoValue; }
};
// kNoValue when none is hidden. `queries` and `keys` are [N, heads, L or S, size].
Result<ValueId> AddHidden(OnnxLowering& b, const HiddenKeys& rule, ValueId queries, ValueId keys);

// A float or bool mask (true: visible) and hidden keys as numbers to add to scores of `dtype`.
// Either may be kNoValue; if both are, so is the result.
Result<ValueId> AddMaskBias(OnnxLowering& b, ValueId mask, ValueId hidden, DType dtype, double off);

// q, k, v by head and the other inputs of Attention; kNoValue for absent ones.
struct AttentionParts {
  ValueId q = kNoValue, k = kNoValue, v = kNoValue, mask = kNoValue;
  ValueId lengths = kNoValue, starts = kNoValue, sink = kNoValue;
};
// Positions the queries after the keys of `past` [N, heads, P, size]; `own` are the keys that
// belong to the queries.
Status PlaceBehind(OnnxLowering& b, ValueId past, ValueId own, AttentionAttrs& attrs,
                   AttentionParts& parts);
// Adds the op for operands that are split by head. A mask of lower rank applies to all heads or
// samples.
Result<ValueId> AddAttention(OnnxLowering& b, const AttentionAttrs& attrs, AttentionParts parts,
                             std::string_view role);

// Rotates pairs of numbers in the last axis of x [N, L, heads, size] (or with heads and positions
// swapped) by angles whose cosines and sines broadcast to [N, L, heads, turned / 2].
Result<ValueId> AddRotation(OnnxLowering& b, ValueId x, ValueId cosine, ValueId sine,
                            int64_t turned, bool interleaved);

}  // namespace oncilla
