// Attention of f32 and of 16-bit floats on vectors, a block of queries at a time.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/ops/nn/attention.h"

namespace oncilla::cpu {

// The keys that the query in `row` of sample `b` sees, by the inputs of the call.
inline KeyRange Seen(const Args& args, const AttentionGeometry& g, int64_t b, int64_t row) {
  using In = AttentionInput;
  const int64_t length = args.has_input(In::kLengths) ? args.In<int64_t>(In::kLengths)[b] : g.keys;
  const int64_t start = args.has_input(In::kStarts) ? args.In<int64_t>(In::kStarts)[b] : 0;
  return g.Seen(row, length, start);
}

Result<std::unique_ptr<CpuKernel>> MakeFastAttention(const NodeView& node);

}  // namespace oncilla::cpu
