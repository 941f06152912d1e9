// Three instances of every expression: double, int64_t and uint64_t (bool among them).
#include "backends/cpu/fast/element_rows.h"

#include "backends/cpu/fast/element_math.h"

namespace oncilla::cpu {
namespace {

struct None {};

namespace scalar_rows {
using namespace scalar;  // NOLINT: the vocabulary of the expressions
// T is the type that the expression computes in; x is a T, or a condition.
#define K(c) T(c)
#define ELEMENTWISE(name, inputs, params, flags, storage, f, i, b)                                    \
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
#include "engine/ops/math/elementwise_table.inc"
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
    return [](const Tile* const* in, Tile* out, int64_t n, const ElementwiseCall& call) {
      const T alpha = T(static_cast<W>(call.alpha)), beta = T(static_cast<W>(call.beta));
      // Operands that the row lacks alias the first one and are ignored.
      const W* y = reinterpret_cast<const W*>(in[Row::kInputs > 1 ? 1 : 0]);
      const W* z = reinterpret_cast<const W*>(in[Row::kInputs > 2 ? 2 : 0]);
      using XW = std::conditional_t<Row::kCondition, uint64_t, W>;
      const XW* x = reinterpret_cast<const XW*>(in[0]);
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
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
};

}  // namespace

TileFunction TileFunctionOf(const ElementwiseRow& row, DType dtype) {
  const RowFunctions& f = kFunctions[&row - ElementwiseRows().data()];
  return IsFloat(dtype)          ? f.floats
         : IsSigned(dtype)       ? f.signeds
         : dtype == DType::kBool ? f.bools
                                 : f.unsigneds;
}

}  // namespace oncilla::cpu
