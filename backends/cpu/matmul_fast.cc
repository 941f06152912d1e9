// The fast MatMul for float: packed panels, or dot products where a result is one column or row.
#include <algorithm>

#include "backends/cpu/fast.h"
#include "backends/cpu/gemm.h"
#include "engine/ops/matmul.h"

namespace oncilla::cpu {
namespace {

class FastMatMul : public CpuKernel {
 public:
  FastMatMul(const NodeView& node, const MatMulGeometry& g, Activation activation, bool packed)
      : CpuKernel(node), g_(g), activation_(activation), packed_(packed) {
    const Shape b = node.inputs[1].shape.ToShape();
    b_count_ = g.k * g.n == 0 ? 0 : b.elements() / (g.k * g.n);
    panels_ = (g.n + PanelColumns() - 1) / PanelColumns();
  }

  int64_t scratch_bytes() const override {
    return packed_ ? 0 : SaturatingMul(b_count_, 4 * PackedFloats(g_.k, g_.n));
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), packed_ ? " packed" : " packs", " batch ", g_.batch, " of ",
                  g_.m, 'x', g_.n, 'x', g_.k);
  }

  Status Run(const Args& args) const override {
    const float* packed = args.In<float>(1);
    const Split split = SplitOf(ProductOf(args, packed, 0), g_.batch);
    const int64_t tasks = split.tasks();
    float* scratch = reinterpret_cast<float*>(args.scratch);
    // One task for each matrix can pack it on its way, while it is near.
    const bool pack_inside = !packed_ && b_count_ == g_.batch && tasks == 1;
    if (!packed_) {
      packed = scratch;
      if (!pack_inside) {
        ParallelFor(args.threads, b_count_ * panels_, PanelGrain(), [&](int64_t i, int64_t end) {
          for (; i < end; ++i) PackSome(args, i / panels_, i % panels_, i % panels_ + 1);
        });
      }
    }
    ParallelFor(args.threads, g_.batch * tasks, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        if (pack_inside) PackSome(args, g_.b_offset(i) / (g_.k * g_.n), 0, panels_);
        RunTask(ProductOf(args, packed, i / tasks), split, i % tasks);
      }
    });
    return Status();
  }

 private:
  // Panels worth some tens of thousands of elements.
  int64_t PanelGrain() const {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, g_.k * PanelColumns()));
  }

  void PackSome(const Args& args, int64_t matrix, int64_t first, int64_t last) const {
    PackPanels(args.In<float>(1) + matrix * g_.k * g_.n, g_.b_row, g_.b_col, g_.k, g_.n, first,
               last, reinterpret_cast<float*>(args.scratch) + matrix * PackedFloats(g_.k, g_.n));
  }

  // Product `i` of the batch.
  Product ProductOf(const Args& args, const float* packed, int64_t i) const {
    static constexpr int64_t kOneTap = 0;
    Product p;
    p.line_rows = g_.m;
    p.a = args.In<float>(0) + g_.a_offset(i);
    p.row_step = g_.a_row;
    p.run_step = g_.a_col;
    p.taps = &kOneTap;
    p.run = g_.k;
    p.b = packed + g_.b_offset(i) / (g_.k * g_.n) * PackedFloats(g_.k, g_.n);
    p.columns = g_.n;
    p.c = args.Out<float>(0) + i * g_.m * g_.n;
    p.c_step = g_.n;
    if (args.has_input(2)) p.epilogue.bias = args.In<float>(2);
    if (args.has_input(3)) p.epilogue.residual = args.In<float>(3) + i * g_.m * g_.n;
    p.epilogue.activation = activation_;
    return p;
  }

  const MatMulGeometry g_;
  const Activation activation_;
  const bool packed_;
  int64_t b_count_, panels_;
};

// Every result is the dot product of two stretches of memory: a matrix times a vector, or a vector
// times a matrix that is stored transposed and is no weight.
class DotMatMul : public CpuKernel {
 public:
  DotMatMul(const NodeView& node, const MatMulGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {}
  std::string description() const override { return "dot products"; }

  Status Run(const Args& args) const override {
    const float* bias = args.has_input(2) ? args.In<float>(2) : nullptr;
    const float* residual = args.has_input(3) ? args.In<float>(3) : nullptr;
    const int64_t per_matrix = g_.m * g_.n;
    const int64_t grain = std::max<int64_t>(1, 65536 / g_.k);
    ParallelFor(args.threads, g_.batch * per_matrix, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = i / per_matrix, row = i % per_matrix / g_.n, column = i % g_.n;
        float y = Dot(args.In<float>(0) + g_.a_offset(matrix) + row * g_.a_row,
                      args.In<float>(1) + g_.b_offset(matrix) + column * g_.b_col, g_.k);
        if (bias != nullptr) y += bias[column];
        if (residual != nullptr) y += residual[i];
        args.Out<float>(0)[i] = static_cast<float>(Apply(activation_, static_cast<double>(y)));
      }
    });
    return Status();
  }

 private:
  const MatMulGeometry g_;
  const Activation activation_;
};

// Weights of one column stay as they are: they are multiplied as dot products.
bool IsPacked(const Fact& b, bool transposed) {
  const Shape shape = b.shape.ToShape();
  return b.constant && b.dtype == DType::kF32 && shape.rank() >= 2 && shape.elements() > 0 &&
         shape[shape.rank() - (transposed ? 2 : 1)] > 1;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastMatMul(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  const TensorDesc a = node.inputs[0].desc(), b = node.inputs[1].desc();
  const MatMulGeometry g = GeometryOf(attrs, a.shape, b.shape);
  if (a.dtype != DType::kF32 || g.batch * g.m * g.n == 0 || g.k == 0) return nullptr;
  const bool packed = IsPacked(node.inputs[1], attrs.transpose_b);
  if (!packed && g.a_col == 1 && g.b_row == 1 && (g.n == 1 || g.m == 1)) {
    return std::unique_ptr<CpuKernel>(std::make_unique<DotMatMul>(node, g, activation));
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastMatMul>(node, g, activation, packed));
}

Result<Packing> MatMulPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulAttrs>(*node.attrs));
  if (input != 1 || !IsPacked(fact, attrs.transpose_b)) {
    return Packing{"dense", fact.desc().bytes(), nullptr};
  }
  const Shape shape = fact.shape.ToShape();
  const MatMulGeometry g =
      GeometryOf(attrs, Shape{attrs.transpose_b ? shape.back() : shape[shape.rank() - 2]}, shape);
  const int64_t count = shape.elements() / (g.k * g.n);
  return Packing{StrCat("panels", PanelColumns(), attrs.transpose_b ? "t" : ""),
                 SaturatingMul(count, 4 * PackedFloats(g.k, g.n)),
                 [g, count](const Tensor& constant, std::span<std::byte> to) {
                   const float* from = constant.As<float>().data();
                   auto* floats = reinterpret_cast<float*>(to.data());
                   for (int64_t i = 0; i < count; ++i) {
                     Pack(from + i * g.k * g.n, g.b_row, g.b_col, g.k, g.n,
                          floats + i * PackedFloats(g.k, g.n));
                   }
                   return Status();
                 }};
}

}  // namespace oncilla::cpu
