// Attention on the CPU: plain, exact code, all sums in double, one query after the other.
#include "engine/ops/nn/attention.h"

#include <cmath>
#include <vector>

#include "backends/cpu/fast/attention.h"
#include "backends/cpu/kernel.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Attend = AttentionInput;

template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

// One query of one head: its scores, their softmax, and the sum of the values.
template <class T>
class Query {
 public:
  Query(const AttentionAttrs& attrs, const AttentionGeometry& g, const Args& args)
      : attrs_(attrs), g_(g), args_(args), scores_(static_cast<size_t>(g.keys)) {}

  // Returns the number of sums that the query took.
  int64_t Run(int64_t b, int64_t h, int64_t row) {
    const int64_t shared = h / g_.group();
    const KeyRange seen = Seen(args_, g_, b, row);
    const T* q = args_.In<T>(Attend::kQuery) + g_.q.Offset(b, h, row);
    double most = args_.has_input(Attend::kSink) ? At(args_.In<T>(Attend::kSink), h) : -INFINITY;
    const double sink = most;
    for (int64_t j = seen.first; j < seen.end; ++j) {
      const T* k = args_.In<T>(Attend::kKey) + g_.k.Offset(b, shared, j);
      double sum = 0;
      for (int64_t i = 0; i < g_.size; ++i) sum += At(q, i) * At(k, i);
      const double score = Finished(sum * g_.scale, b, h, row, j);
      scores_[j] = score;
      most = std::fmax(most, score);
    }
    double total = sink == -INFINITY ? 0 : std::exp(sink - most);
    for (int64_t j = seen.first; j < seen.end; ++j) {
      scores_[j] = scores_[j] == -INFINITY ? 0 : std::exp(scores_[j] - most);
      total += scores_[j];
    }
    T* y = args_.Out<T>(0) + g_.y.Offset(b, h, row);
    for (int64_t i = 0; i < g_.value_size; ++i) {
      double sum = 0;
      for (int64_t j = seen.first; j < seen.end; ++j) {
        sum += scores_[j] * At(args_.In<T>(Attend::kValue) + g_.v.Offset(b, shared, j), i);
      }
      y[i] = To<T>(total == 0 && attrs_.zero_blind ? 0 : sum / total);
    }
    return (seen.end - seen.first) * (g_.size + g_.value_size);
  }

 private:
  static double At(const T* x, int64_t i) { return static_cast<double>(x[i]); }

  double Finished(double score, int64_t b, int64_t h, int64_t row, int64_t key) const {
    if (attrs_.softcap > 0) score = attrs_.softcap * std::tanh(score / attrs_.softcap);
    if (!args_.has_input(Attend::kMask)) return score;
    const int64_t at = b * g_.mask[0] + h * g_.mask[1] + row * g_.mask[2] + key * g_.mask[3];
    return score + At(args_.In<T>(Attend::kMask), at);
  }

  const AttentionAttrs& attrs_;
  const AttentionGeometry& g_;
  const Args& args_;
  std::vector<double> scores_;
};

Status Attention(const AttentionAttrs& attrs, const Args& args) {
  const AttentionGeometry g = GeometryOf(attrs, args.node.inputs);
  const int64_t queries = g.batch * g.heads * g.rows;
  if (queries * g.value_size == 0) return Status();
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const int64_t grain = GrainOf(g.keys * (g.size + g.value_size), g.rows);
      ParallelFor(args.threads, queries, grain, [&](int64_t begin, int64_t end) {
        Query<T> query(attrs, g, args);
        Lookout look(args.threads);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t head = i / g.rows;
          if (look.Ended(query.Run(head / g.heads, head % g.heads, i % g.rows))) return;
        }
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Attention>("Attention", kFloats, &MakeFastAttention),
};

}  // namespace

std::span<const KernelRow> AttentionKernels() { return kRows; }

}  // namespace oncilla::cpu
