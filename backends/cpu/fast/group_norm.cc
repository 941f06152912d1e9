// InstanceNorm and GroupNorm of f32 and of 16-bit floats, channels last: vectors span the channels,
// and loops run over the positions. A sample's positions are divided into pieces of fixed size,
// which the threads share.
//
// Three passes: sums, squares around the means, results. Computing sums and squares in one pass
// would lose digits if a mean is large. After each of the first two passes, one thread adds up the
// sums of the pieces in order, so that results do not depend on threads.
#include <algorithm>
#include <cmath>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/norm.h"
#include "backends/cpu/fast/row_lanes.h"
#include "engine/ops/nn/norm.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kPieceElements = 16384;  // some ten microseconds

class FastGroupNorm : public CpuKernel {
 public:
  FastGroupNorm(const NodeView& node, const Shape& shape, int64_t groups, double epsilon)
      : CpuKernel(node),
        dtype_(node.inputs[0].dtype),
        samples_(shape[0]),
        places_(shape.Product(1, shape.rank() - 1)),
        channels_(shape.back()),
        groups_(groups),
        epsilon_(epsilon),
        piece_(std::max<int64_t>(1, kPieceElements / channels_)),
        pieces_((places_ + piece_ - 1) / piece_) {}

  int64_t scratch_bytes() const override {
    const int64_t sums = SaturatingMul(SaturatingMul(samples_, pieces_), channels_);
    const int64_t floats = SaturatingMul(2 * samples_ + 1, channels_);
    return SaturatingAdd(SaturatingMul(sizeof(double), sums), SaturatingMul(sizeof(float), floats));
  }
  std::string description() const override { return "vectors along channels"; }

  Status Run(const Args& args) const override {
    auto* sums = reinterpret_cast<double*>(args.scratch);
    auto* mean = reinterpret_cast<float*>(sums + samples_ * pieces_ * channels_);
    float *factor = mean + samples_ * channels_, *offset = factor + samples_ * channels_;
    LoadFloats(args, 2, offset);
    ForPieces(args, false, [&](const Piece& p) {
      double* sum = sums + p.index * channels_;
      std::fill_n(sum, channels_, 0.0);
      ReduceColumns(RowReduction::kSum, p.x, p.places, channels_, channels_, sum);
    });
    ForGroups(sums, [&](int64_t first, double average) {
      std::fill_n(mean + first, channels_ / groups_, static_cast<float>(average));
    });
    ForPieces(args, false, [&](const Piece& p) {
      double* sum = sums + p.index * channels_;
      std::fill_n(sum, channels_, 0.0);
      AddSquaresAround(mean + p.sample * channels_, p.x, p.places, channels_, sum);
    });
    for (int64_t i = 0; i < samples_; ++i) LoadFloats(args, 1, factor + i * channels_);
    ForGroups(sums, [&](int64_t first, double variance) {
      const double scale = 1 / std::sqrt(variance + epsilon_);
      for (int64_t c = first; c < first + channels_ / groups_; ++c) {
        factor[c] = static_cast<float>(factor[c] * scale);
      }
    });
    ForPieces(args, true, [&](const Piece& p) {
      const int64_t at = p.sample * channels_;
      NormalizeColumns(p.x, p.y, p.places, channels_, mean + at, factor + at, offset);
    });
    return Status();
  }

 private:
  // Some positions of a sample. For 16-bit floats x and y are one buffer of widened numbers.
  struct Piece {
    int64_t index, sample, places;
    const float* x;
    float* y;
  };

  // Calls fn for all pieces; `stores` means that fn fills y.
  template <class F>
  void ForPieces(const Args& args, bool stores, const F& fn) const {
    ParallelFor(args.threads, samples_ * pieces_, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> wide(dtype_ == DType::kF32 ? 0 : static_cast<size_t>(piece_ * channels_));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t sample = i / pieces_, first = i % pieces_ * piece_;
        Piece p{i, sample, std::min(piece_, places_ - first), nullptr, nullptr};
        const int64_t at = (sample * places_ + first) * channels_;
        if (dtype_ == DType::kF32) {
          p.x = args.In<float>(0) + at;
          p.y = args.Out<float>(0) + at;
          fn(p);
          continue;
        }
        const int64_t count = p.places * channels_;
        ToFloats(dtype_, args.inputs[0] + 2 * at, count, wide.data());
        p.x = p.y = wide.data();
        fn(p);
        if (stores) FromFloats(wide.data(), count, dtype_, args.outputs[0] + 2 * at);
      }
    });
  }

  // Calls fn(first channel, mean of the sums of all pieces) for each group; channels are counted
  // over samples.
  template <class F>
  void ForGroups(const double* sums, const F& fn) const {
    const int64_t width = channels_ / groups_;
    for (int64_t i = 0; i < samples_ * groups_; ++i) {
      const int64_t sample = i / groups_, group = i % groups_;
      double sum = 0;
      for (int64_t piece = 0; piece < pieces_; ++piece) {
        const double* from = sums + (sample * pieces_ + piece) * channels_ + group * width;
        for (int64_t c = 0; c < width; ++c) sum += from[c];
      }
      fn(i * width, sum / static_cast<double>(places_ * width));
    }
  }

  // A parameter, which may have another dtype than x.
  void LoadFloats(const Args& args, size_t input, float* to) const {
    ToFloats(args.in(input).dtype, args.inputs[input], channels_, to);
  }

  const DType dtype_;
  const int64_t samples_, places_, channels_, groups_;
  const double epsilon_;
  const int64_t piece_, pieces_;  // positions of a piece, pieces of a sample
};

std::unique_ptr<CpuKernel> MakeGroups(const NodeView& node, int64_t groups, double epsilon) {
  const TensorDesc x = node.inputs[0].desc();
  if (!IsCarried(x.dtype) || x.elements() == 0 || groups < 1 || x.shape.back() % groups != 0) {
    return nullptr;
  }
  return std::make_unique<FastGroupNorm>(node, x.shape, groups, epsilon);
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastInstanceNorm(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<InstanceNormAttrs>(*node.attrs));
  return MakeGroups(node, node.inputs[0].desc().shape.back(), attrs.epsilon);
}

Result<std::unique_ptr<CpuKernel>> MakeFastGroupNorm(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<GroupNormAttrs>(*node.attrs));
  return MakeGroups(node, attrs.groups, attrs.epsilon);
}

}  // namespace oncilla::cpu
