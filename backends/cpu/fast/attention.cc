// The fast Attention: a task is a block of queries that share keys and values, for any strides of
// heads and rows; nothing is copied or packed beforehand.
#include "backends/cpu/fast/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/attention_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {
namespace {

using In = AttentionInput;

template <class T>
class FastAttention : public CpuKernel {
 public:
  FastAttention(const NodeView& node, const AttentionAttrs& attrs)
      : CpuKernel(node),
        g_(GeometryOf(attrs, node.inputs)),
        softcap_(static_cast<float>(attrs.softcap)),
        zero_blind_(attrs.zero_blind) {
    // Many rows of queries: a block takes rows of one head, whose queries see nearly the same keys.
    // Few rows: a block takes the rows of all heads that share keys and values (grouped-query
    // attention), so that keys are read once.
    stacked_ = g_.rows >= AttentionQueries() ? 1 : g_.group();
    per_stack_ = (stacked_ * g_.rows + AttentionQueries() - 1) / AttentionQueries();
  }

  std::string description() const override {
    return StrCat("heads on vectors", Stored<T>(), " batch ", g_.batch * g_.heads, " of ", g_.rows,
                  'x', g_.keys, 'x', g_.size);
  }

  Status Run(const Args& args) const override {
    const int64_t stacks = g_.batch * g_.heads / stacked_;
    ParallelFor(args.threads, stacks * per_stack_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) RunBlock(args, i / per_stack_, i % per_stack_);
    });
    return Status();
  }

 private:
  void RunBlock(const Args& args, int64_t stack, int64_t part) const {
    const int64_t all = stacked_ * g_.rows, first = all * part / per_stack_;
    const int64_t per_sample = g_.heads / stacked_;
    const int64_t b = stack / per_sample, head = stack % per_sample * stacked_;
    AttentionBlock<T> block;
    block.queries = static_cast<int>(all * (part + 1) / per_stack_ - first);
    block.has_mask = args.has_input(In::kMask);
    for (int i = 0; i < block.queries; ++i) {
      const int64_t h = head + (first + i) / g_.rows, row = (first + i) % g_.rows;
      block.q[i] = args.In<T>(In::kQuery) + g_.q.Offset(b, h, row);
      block.y[i] = args.Out<T>(0) + g_.y.Offset(b, h, row);
      if (block.has_mask) {
        block.mask[i] = args.In<T>(In::kMask) + b * g_.mask[0] + h * g_.mask[1] + row * g_.mask[2];
      }
      block.sink[i] = args.has_input(In::kSink) ? static_cast<float>(args.In<T>(In::kSink)[h])
                                                : -std::numeric_limits<float>::infinity();
      const KeyRange seen = Seen(args, g_, b, row);
      block.first[i] = static_cast<int32_t>(seen.first);
      block.end[i] = static_cast<int32_t>(seen.end);
    }
    const int64_t shared = head / g_.group();
    block.k = args.In<T>(In::kKey) + g_.k.Offset(b, shared, 0);
    block.v = args.In<T>(In::kValue) + g_.v.Offset(b, shared, 0);
    block.k_row = g_.k.row;
    block.v_row = g_.v.row;
    block.size = g_.size;
    block.value_size = g_.value_size;
    block.mask_key = g_.mask[3];
    block.scale = static_cast<float>(g_.scale);
    block.softcap = softcap_;
    block.zero_blind = zero_blind_;
    AttendBlock(block);
  }

  const AttentionGeometry g_;
  const float softcap_;
  const bool zero_blind_;
  int64_t stacked_ = 1;    // heads whose queries a block may mix
  int64_t per_stack_ = 1;  // blocks of such heads
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastAttention(const NodeView& node) {
  std::unique_ptr<CpuKernel> kernel;
  if (!IsCarried(node.inputs[0].dtype)) return kernel;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<AttentionAttrs>(*node.attrs));
  const AttentionGeometry g = GeometryOf(attrs, node.inputs);
  if (g.batch * g.heads * g.rows * g.keys == 0 || g.size < 1 || g.size > kMostAttentionSize ||
      g.value_size < 1 || g.value_size > kMostAttentionSize ||
      g.keys > std::numeric_limits<int32_t>::max() - kMostAttentionSize) {
    return kernel;
  }
  ForCarried(node.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<FastAttention<T>>(node, attrs);
  });
  return kernel;
}

}  // namespace oncilla::cpu
