// Normalisations of f32: one row, or one group of columns, after the other on vectors.
#include "backends/cpu/norm_fast.h"

#include <algorithm>

#include "backends/cpu/row_lanes.h"
#include "engine/ops/norm.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kShortest = 8;       // elements that are worth a vector
constexpr int64_t kWidth = 64;         // columns that go down together
constexpr int64_t kChunkCost = 16384;  // elements of one task, some ten microseconds

class FastSoftmax : public CpuKernel {
 public:
  FastSoftmax(const NodeView& node, const Shape& shape, int axis, bool log)
      : CpuKernel(node),
        outer_(shape.Product(0, axis)),
        n_(shape[axis]),
        inner_(shape.Product(axis + 1, shape.rank())),
        log_(log) {}

  std::string description() const override {
    return inner_ == 1 ? "vectors along rows" : "vectors across rows";
  }

  Status Run(const Args& args) const override {
    const float* x = args.In<float>(0);
    float* y = args.Out<float>(0);
    const int64_t blocks = inner_ == 1 ? 1 : (inner_ + kWidth - 1) / kWidth;
    const int64_t task = n_ * std::min(inner_, kWidth);
    const int64_t grain = std::max<int64_t>(1, kChunkCost / task);
    ParallelFor(args.threads, outer_ * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (inner_ == 1) {
          SoftmaxRow(x + i * n_, y + i * n_, n_, log_);
        } else {
          const int64_t column = i % blocks * kWidth, at = i / blocks * n_ * inner_ + column;
          SoftmaxColumns(x + at, y + at, n_, inner_, std::min(kWidth, inner_ - column), log_);
        }
      }
    });
    return Status();
  }

 private:
  const int64_t outer_, n_, inner_;
  const bool log_;
};

class FastLayerNorm : public CpuKernel {
 public:
  FastLayerNorm(const NodeView& node, int64_t rows, int64_t n, double epsilon)
      : CpuKernel(node),
        rows_(rows),
        n_(n),
        epsilon_(epsilon),
        centered_(node.op->name == "LayerNorm") {}

  std::string description() const override { return "vectors along rows"; }

  Status Run(const Args& args) const override {
    const float* x = args.In<float>(0);
    float* y = args.Out<float>(0);
    const float* scale = args.has_input(1) ? args.In<float>(1) : nullptr;
    const float* offset = args.has_input(2) ? args.In<float>(2) : nullptr;
    const int64_t grain = std::max<int64_t>(1, kChunkCost / n_);
    ParallelFor(args.threads, rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        NormalizeRow(x + i * n_, y + i * n_, n_, centered_, epsilon_, scale, offset);
      }
    });
    return Status();
  }

 private:
  const int64_t rows_, n_;
  const double epsilon_;
  const bool centered_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastSoftmax(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  if (node.inputs[0].dtype != DType::kF32) return none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<SoftmaxAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  if (shape.elements() == 0 || (inner == 1 ? shape[axis] : inner) < kShortest) return none;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastSoftmax>(node, shape, axis, attrs.log));
}

Result<std::unique_ptr<CpuKernel>> MakeFastLayerNorm(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  if (node.inputs[0].dtype != DType::kF32) return none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<LayerNormAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t n = shape.Product(axis, shape.rank());
  if (shape.elements() == 0 || n < kShortest) return none;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.has_input(i)) continue;
    const TensorDesc desc = node.inputs[i].desc();
    if (desc.dtype != DType::kF32 || desc.elements() != n) return none;
  }
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastLayerNorm>(node, shape.Product(0, axis), n, attrs.epsilon));
}

}  // namespace oncilla::cpu
