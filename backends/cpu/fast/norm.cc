// Softmax and normalisations of f32: one row, or one block of columns, after the other on vectors.
// Rows of 16-bit floats are widened into a buffer of float and rounded when they are done.
#include "backends/cpu/fast/norm.h"

#include <algorithm>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/row_lanes.h"
#include "engine/ops/nn/norm.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kShortest = 8;       // elements that make a vector worth while
constexpr int64_t kWidth = 64;         // columns of a block
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
    if (args.in(0).dtype != DType::kF32) return RunNarrow(args);
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
  Status RunNarrow(const Args& args) const {
    const DType dtype = args.in(0).dtype;
    const int64_t blocks = inner_ == 1 ? 1 : (inner_ + kWidth - 1) / kWidth;
    const int64_t task = n_ * std::min(inner_, kWidth);
    const int64_t grain = std::max<int64_t>(1, kChunkCost / task);
    ParallelFor(args.threads, outer_ * blocks, grain, [&](int64_t begin, int64_t end) {
      std::vector<float> wide(static_cast<size_t>(task));
      for (int64_t i = begin; i < end; ++i) {
        // A whole row, or kWidth columns of each of n rows.
        const int64_t column = i % blocks * kWidth;
        const int64_t width = inner_ == 1 ? n_ : std::min(kWidth, inner_ - column);
        const int64_t rows = inner_ == 1 ? 1 : n_;
        const int64_t at = (i / blocks * n_ * inner_ + column) * 2;
        for (int64_t r = 0; r < rows; ++r) {
          ToFloats(dtype, args.inputs[0] + at + r * inner_ * 2, width, &wide[r * width]);
        }
        if (inner_ == 1) {
          SoftmaxRow(wide.data(), wide.data(), n_, log_);
        } else {
          SoftmaxColumns(wide.data(), wide.data(), n_, width, width, log_);
        }
        for (int64_t r = 0; r < rows; ++r) {
          FromFloats(&wide[r * width], width, dtype, args.outputs[0] + at + r * inner_ * 2);
        }
      }
    });
    return Status();
  }

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
    if (args.in(0).dtype != DType::kF32) return RunNarrow(args);
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
  Status RunNarrow(const Args& args) const {
    const DType dtype = args.in(0).dtype;
    const int64_t grain = std::max<int64_t>(1, kChunkCost / n_);
    std::vector<float> parameters[2];
    const float* at[2] = {nullptr, nullptr};
    for (size_t i = 0; i < 2; ++i) {
      if (!args.has_input(i + 1)) continue;
      parameters[i].resize(static_cast<size_t>(n_));
      ToFloats(dtype, args.inputs[i + 1], n_, parameters[i].data());
      at[i] = parameters[i].data();
    }
    ParallelFor(args.threads, rows_, grain, [&](int64_t begin, int64_t end) {
      std::vector<float> wide(static_cast<size_t>(n_));
      for (int64_t i = begin; i < end; ++i) {
        ToFloats(dtype, args.inputs[0] + 2 * i * n_, n_, wide.data());
        NormalizeRow(wide.data(), wide.data(), n_, centered_, epsilon_, at[0], at[1]);
        FromFloats(wide.data(), n_, dtype, args.outputs[0] + 2 * i * n_);
      }
    });
    return Status();
  }

  const int64_t rows_, n_;
  const double epsilon_;
  const bool centered_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastSoftmax(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  if (!IsCarried(node.inputs[0].dtype)) return none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<SoftmaxAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  if (shape.elements() == 0 || (inner == 1 ? shape[axis] : inner) < kShortest) return none;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastSoftmax>(node, shape, axis, attrs.log));
}

Result<std::unique_ptr<CpuKernel>> MakeFastLayerNorm(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  if (!IsCarried(node.inputs[0].dtype)) return none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<LayerNormAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t n = shape.Product(axis, shape.rank());
  if (shape.elements() == 0 || n < kShortest) return none;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.has_input(i)) continue;
    const TensorDesc desc = node.inputs[i].desc();
    if (desc.dtype != node.inputs[0].dtype || desc.elements() != n) return none;
  }
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastLayerNorm>(node, shape.Product(0, axis), n, attrs.epsilon));
}

}  // namespace oncilla::cpu
