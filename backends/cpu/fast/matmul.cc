// The fast MatMul for float and for 16-bit floats: packed panels, or dot products where a result is
// one column or row.
#include "engine/ops/math/matmul.h"

#include <algorithm>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/packed_form.h"
#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {
namespace {

// Packed: the type of B's packed elements.
template <class T, class Packed = T>
class FastMatMul : public CpuKernel {
 public:
  FastMatMul(const NodeView& node, const MatMulGeometry& g, Activation activation, bool packed)
      : CpuKernel(node), g_(g), activation_(activation), packed_(packed) {
    const Shape b = node.inputs[1].shape.ToShape();
    b_count_ = g.k * g.n == 0 ? 0 : b.elements() / (g.k * g.n);
    panels_ = (g.n + PanelColumns() - 1) / PanelColumns();
  }

  int64_t scratch_bytes() const override {
    return packed_ ? 0
                   : SaturatingMul(b_count_, static_cast<int64_t>(sizeof(Packed)) *
                                                 PackedCount<Packed>(g_.k, g_.n));
  }
  std::string description() const override {
    return StrCat("gemm ", TileNameOf<Packed>(), Stored<T>(), packed_ ? " packed" : " packs",
                  " batch ", g_.batch, " of ", g_.m, 'x', g_.n, 'x', g_.k);
  }

  Status Run(const Args& args) const override {
    const Packed* packed = args.In<Packed>(1);
    const Split split = SplitOf(ProductOf(args, packed, 0), g_.batch);
    const int64_t tasks = split.tasks();
    Packed* scratch = reinterpret_cast<Packed*>(args.scratch);
    // When one task computes a whole matrix, it can pack B itself and use it while it is in the
    // cache.
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
  // The panels that one task packs: some tens of thousands of elements.
  int64_t PanelGrain() const {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, g_.k * PanelColumns()));
  }

  void PackSome(const Args& args, int64_t matrix, int64_t first, int64_t last) const {
    PackPanels(args.In<T>(1) + matrix * g_.k * g_.n, g_.b_row, g_.b_col, g_.k, g_.n, first, last,
               reinterpret_cast<Packed*>(args.scratch) + matrix * PackedCount<Packed>(g_.k, g_.n));
  }

  // Product `i` of the batch.
  Product<T, Packed> ProductOf(const Args& args, const Packed* packed, int64_t i) const {
    static constexpr int64_t kOneTap = 0;
    Product<T, Packed> p;
    p.line_rows = g_.m;
    p.a = args.In<T>(0) + g_.a_offset(i);
    p.row_step = g_.a_row;
    p.run_step = g_.a_col;
    p.taps = &kOneTap;
    p.run = g_.k;
    p.b = packed + g_.b_offset(i) / (g_.k * g_.n) * PackedCount<Packed>(g_.k, g_.n);
    p.columns = g_.n;
    p.c = args.Out<T>(0) + i * g_.m * g_.n;
    p.c_step = g_.n;
    if (args.has_input(2)) p.epilogue.bias = args.In<T>(2);
    if (args.has_input(3)) p.epilogue.residual = args.In<T>(3) + i * g_.m * g_.n;
    p.epilogue.activation = activation_;
    return p;
  }

  const MatMulGeometry g_;
  const Activation activation_;
  const bool packed_;
  int64_t b_count_, panels_;
};

// Every result is the dot product of two contiguous vectors: a matrix times a vector, or a vector
// times a matrix that is stored transposed and not constant.
template <class T>
class DotMatMul : public CpuKernel {
 public:
  DotMatMul(const NodeView& node, const MatMulGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {}
  std::string description() const override { return StrCat("dot products", Stored<T>()); }

  Status Run(const Args& args) const override {
    const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
    const T* residual = args.has_input(3) ? args.In<T>(3) : nullptr;
    const int64_t per_matrix = g_.m * g_.n;
    const int64_t grain = std::max<int64_t>(1, 65536 / g_.k);
    ParallelFor(args.threads, g_.batch * per_matrix, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = i / per_matrix, row = i % per_matrix / g_.n, column = i % g_.n;
        float y = Dot(args.In<T>(0) + g_.a_offset(matrix) + row * g_.a_row,
                      args.In<T>(1) + g_.b_offset(matrix) + column * g_.b_col, g_.k);
        if (bias != nullptr) y += static_cast<float>(bias[column]);
        if (residual != nullptr) y += static_cast<float>(residual[i]);
        args.Out<T>(0)[i] = T(static_cast<float>(Apply(activation_, static_cast<double>(y))));
      }
    });
    return Status();
  }

 private:
  const MatMulGeometry g_;
  const Activation activation_;
};

// Weights of one column stay unpacked: DotMatMul reads them.
bool IsPacked(const Fact& b, bool transposed) {
  const Shape shape = b.shape.ToShape();
  return b.constant && IsCarried(b.dtype) && shape.rank() >= 2 && shape.elements() > 0 &&
         shape[shape.rank() - (transposed ? 2 : 1)] > 1;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastMatMul(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  const TensorDesc a = node.inputs[0].desc(), b = node.inputs[1].desc();
  const MatMulGeometry g = GeometryOf(attrs, a.shape, b.shape);
  if (!IsCarried(a.dtype) || g.batch * g.m * g.n == 0 || g.k == 0) return nullptr;
  std::unique_ptr<CpuKernel> kernel;
  const bool packed = IsPacked(node.inputs[1], attrs.transpose_b);
  if (!packed && g.a_col == 1 && g.b_row == 1 && (g.n == 1 || g.m == 1)) {
    ForCarried(a.dtype, [&]<class T>(TypeTag<T>) {
      kernel = std::make_unique<DotMatMul<T>>(node, g, activation);
    });
    return kernel;
  }
  WithPackedForm(a.dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
    kernel = std::make_unique<FastMatMul<T, Packed>>(node, g, activation, packed);
  });
  return kernel;
}

Result<CpuPacking> MatMulPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulAttrs>(*node.attrs));
  if (input != 1 || !IsPacked(fact, attrs.transpose_b)) {
    return CpuPacking{"dense", fact.desc().bytes(), nullptr};
  }
  const Shape shape = fact.shape.ToShape();
  const MatMulGeometry g =
      GeometryOf(attrs, Shape{attrs.transpose_b ? shape.back() : shape[shape.rank() - 2]}, shape);
  const int64_t count = shape.elements() / (g.k * g.n);
  return WithPackedForm(fact.dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
    const int64_t elements = PackedCount<Packed>(g.k, g.n);
    return CpuPacking{StrCat(PackedName<Packed>(), PanelColumns(), attrs.transpose_b ? "t" : ""),
                      SaturatingMul(count, SaturatingMul(int64_t{sizeof(Packed)}, elements)),
                      [=](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
                        const T* from = constant.As<T>().data();
                        Packed* packed = reinterpret_cast<Packed*>(to.data());
                        for (int64_t i = 0; i < count; ++i) {
                          Pack(threads, from + i * g.k * g.n, g.b_row, g.b_col, g.k, g.n,
                               packed + i * elements);
                        }
                        return Status();
                      }};
  });
}

}  // namespace oncilla::cpu
