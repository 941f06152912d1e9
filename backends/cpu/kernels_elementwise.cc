// Elementwise kernels of the CPU: plain, exact code from the table of expressions.
//
// Tile by tile: operands are loaded and widened, the row's expression is computed in double or
// 64-bit integers, the result is cut to its dtype. One kernel serves all rows and dtypes.
#include <algorithm>
#include <atomic>

#include "backends/cpu/element_math.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/tiles.h"
#include "engine/ops/elementwise.h"

namespace oncilla::cpu {
namespace {

struct None {};

// x is a tile of bools (uint64_t) where the row's first operand is a condition.
using TileFunction = void (*)(const Tile* in, Tile* out, int64_t n, const ElementwiseCall& call);

namespace scalar_rows {
using namespace scalar;  // NOLINT: the vocabulary of the expressions
// The type that the expression computes in is T; x is T or a condition.
#define K(c) T(c)
#define ELEMENTWISE(name, inputs, params, flags, f, i, b)                                    \
  struct name##Row {                                                                         \
    static constexpr int kInputs = inputs;                                                   \
    static constexpr bool kCondition = (flags & kConditionFirst) != 0;                       \
    template <class T, class X>                                                              \
    static auto Floats([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z,     \
                       [[maybe_unused]] T alpha, [[maybe_unused]] T beta) {                  \
      return f;                                                                              \
    }                                                                                        \
    template <class T, class X>                                                              \
    static auto Integers([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z) { \
      return i;                                                                              \
    }                                                                                        \
    template <class T, class X>                                                              \
    static auto Booleans([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z) { \
      return b;                                                                              \
    }                                                                                        \
  };
#define NONE \
  None {}
#include "engine/ops/elementwise_table.inc"
#undef NONE
#undef ELEMENTWISE
#undef K
}  // namespace scalar_rows

template <class Row, ElementClass c, class T, class X>
auto Compute(X x, T y, T z, [[maybe_unused]] T alpha, [[maybe_unused]] T beta) {
  if constexpr (c == ElementClass::kFloat) return Row::template Floats<T>(x, y, z, alpha, beta);
  if constexpr (c == ElementClass::kInteger) return Row::template Integers<T>(x, y, z);
  if constexpr (c == ElementClass::kBool) return Row::template Booleans<T>(x, y, z);
}

// Computes a tile of one row in the wide type W; null where the row does not take the class.
template <class Row, class W, ElementClass c>
constexpr TileFunction MakeTileFunction() {
  using T = std::conditional_t<std::is_same_v<W, double>, double, scalar::Int<W>>;
  using X = std::conditional_t<Row::kCondition, bool, T>;
  using R = decltype(Compute<Row, c, T, X>(X(W{}), T(W{}), T(W{}), T(W{}), T(W{})));
  if constexpr (std::is_same_v<R, None>) {
    return nullptr;
  } else {
    return [](const Tile* in, Tile* out, int64_t n, const ElementwiseCall& call) {
      const T alpha = T(static_cast<W>(call.alpha)), beta = T(static_cast<W>(call.beta));
      // Operands that the row lacks are read from the first one, and ignored.
      const W* y = reinterpret_cast<const W*>(&in[Row::kInputs > 1 ? 1 : 0]);
      const W* z = reinterpret_cast<const W*>(&in[Row::kInputs > 2 ? 2 : 0]);
      using XW = std::conditional_t<Row::kCondition, uint64_t, W>;
      const XW* x = reinterpret_cast<const XW*>(&in[0]);
      for (int64_t j = 0; j < n; ++j) {
        const R r = Compute<Row, c, T, X>(X(x[j]), T(y[j]), T(z[j]), alpha, beta);
        if constexpr (std::is_same_v<R, bool>) {
          out->u[j] = r;
        } else if constexpr (std::is_same_v<R, double>) {
          out->f[j] = r;
        } else {
          reinterpret_cast<W*>(out)[j] = r.v;
        }
      }
    };
  }
}

struct RowFunctions {
  TileFunction floats, signeds, unsigneds, bools;
};

// In the order of ElementwiseRows().
constexpr RowFunctions kFunctions[] = {
#define ELEMENTWISE(name, ...)                                                   \
  {MakeTileFunction<scalar_rows::name##Row, double, ElementClass::kFloat>(),     \
   MakeTileFunction<scalar_rows::name##Row, int64_t, ElementClass::kInteger>(),  \
   MakeTileFunction<scalar_rows::name##Row, uint64_t, ElementClass::kInteger>(), \
   MakeTileFunction<scalar_rows::name##Row, uint64_t, ElementClass::kBool>()},
#include "engine/ops/elementwise_table.inc"
#undef ELEMENTWISE
};

TileFunction FunctionOf(const ElementwiseRow& row, DType dtype) {
  const RowFunctions& f = kFunctions[&row - ElementwiseRows().data()];
  return IsFloat(dtype)          ? f.floats
         : IsSigned(dtype)       ? f.signeds
         : dtype == DType::kBool ? f.bools
                                 : f.unsigneds;
}

class ElementwiseKernel : public CpuKernel {
 public:
  ElementwiseKernel(const NodeView& node, const ElementwiseCall& call)
      : CpuKernel(node), call_(call) {
    std::vector<Shape> shapes;
    for (const Fact& fact : node.inputs) {
      shapes.push_back(fact.absent() ? Shape() : fact.shape.ToShape());
    }
    axes_ = MergeBroadcast(node.outputs[0].shape.ToShape(), shapes);
    dtype_ = node.inputs[(call.row->flags & kConditionFirst) != 0 ? 1 : 0].dtype;
    out_dtype_ = node.outputs[0].dtype;
    function_ = FunctionOf(*call.row, dtype_);
  }

  std::string description() const override { return "plain"; }

  Status Run(const Args& args) const override {
    const bool divides = (call_.row->flags & kDivides) != 0 && IsInteger(dtype_);
    const Wide wide = (call_.row->flags & kToBool) != 0 ? Wide::kUnsigned : WideOf(dtype_);
    std::atomic<bool> zero_divisor = false;
    ParallelFor(args.threads, axes_.elements, kGrain, [&](int64_t begin, int64_t end) {
      Tile in[3], out;
      for (; begin < end; begin += kTile) {
        const int64_t n = std::min(kTile, end - begin);
        for (int k = 0; k < call_.row->inputs; ++k) {
          if (!args.has_input(k)) {
            FillBound(k == 1, &in[k], n);
          } else {
            LoadTile(args.inputs[k], args.node.inputs[k].dtype, axes_, k, begin, n, &in[k]);
          }
        }
        if (divides && std::find(in[1].u, in[1].u + n, 0) != in[1].u + n) zero_divisor = true;
        function_(in, &out, n, call_);
        StoreTile(out, wide, out_dtype_, args.outputs[0], begin, n);
      }
    });
    return zero_divisor ? InvalidArgument("integer division by zero") : Status();
  }

 private:
  static constexpr int64_t kGrain = 16 * kTile;

  // What an absent bound stands for.
  void FillBound(bool lowest, Tile* tile, int64_t n) const {
    DispatchWide(WideOf(dtype_), [&]<class W>(TypeTag<W>) {
      using Limits = std::numeric_limits<W>;
      const W low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      const W high = Limits::has_infinity ? Limits::infinity() : Limits::max();
      std::fill_n(reinterpret_cast<W*>(tile), n, lowest ? low : high);
    });
  }

  ElementwiseCall call_;
  BroadcastAxes axes_;
  DType dtype_, out_dtype_;
  TileFunction function_;
};

Result<std::unique_ptr<CpuKernel>> MakeElementwise(const NodeView& node) {
  ONCILLA_ASSIGN(const ElementwiseCall call, ReadElementwise(*node.op->elementwise, *node.attrs));
  return std::unique_ptr<CpuKernel>(std::make_unique<ElementwiseKernel>(node, call));
}

DTypeSet DTypesOf(const ElementwiseRow& row) {
  if ((row.flags & kConditionFirst) != 0) return kBools;
  return (row.takes(ElementClass::kFloat) ? kFloats : 0) |
         (row.takes(ElementClass::kInteger) ? kIntegers : 0) |
         (row.takes(ElementClass::kBool) ? kBools : 0);
}

}  // namespace

std::span<const KernelRow> ElementwiseKernels() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> out;
    for (const OpDef& op : ElementwiseOps()) {
      KernelRow row;
      row.op = op.name;
      row.dtypes = DTypesOf(*op.elementwise);
      row.plain = &MakeElementwise;
      out.push_back(row);
    }
    return out;
  }();
  return rows;
}

}  // namespace oncilla::cpu
