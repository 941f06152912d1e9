// Rows of the table as loops over integers and booleans, once per instruction set. The loops are
// plain ones, which the compiler turns into vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/element_native.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/element_native.h"

#include <cstring>
#include <string_view>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/element_math.h"
#include "backends/cpu/fast/tiles.h"
#include "hwy/highway.h"

#ifndef ONCILLA_CPU_ELEMENT_NATIVE_ONCE
#define ONCILLA_CPU_ELEMENT_NATIVE_ONCE
namespace oncilla::cpu {
struct NativeFunctions {
  NativeFunction i32, i64, u8, bools;
};
using ConvertFunction = void (*)(const void* x, int64_t n, void* y);

constexpr bool AtAnyWidth(std::string_view row, int flags) {
  return (flags & kDivides) == 0 && row != "Pow" && row != "ShiftLeft" && row != "ShiftRight";
}
}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

struct None {};

namespace rows {
using namespace scalar;  // NOLINT: the vocabulary of the expressions
#define K(c) T(static_cast<decltype(T::v)>(c))
#define NONE \
  None {}
#define ELEMENTWISE(name, inputs, params, flags, storage, f, i, b)              \
  struct name##Row {                                                            \
    static constexpr int kInputs = inputs;                                      \
    static constexpr bool kCondition = ((flags)&kConditionFirst) != 0;          \
    static constexpr bool kAtAnyWidth = AtAnyWidth(#name, flags);               \
    template <class T, class X>                                                 \
    static HWY_INLINE auto Integers([[maybe_unused]] X x, [[maybe_unused]] T y, \
                                    [[maybe_unused]] T z) {                     \
      return i;                                                                 \
    }                                                                           \
    template <class T, class X>                                                 \
    static HWY_INLINE auto Booleans([[maybe_unused]] X x, [[maybe_unused]] T y, \
                                    [[maybe_unused]] T z) {                     \
      return b;                                                                 \
    }                                                                           \
  };
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
#undef NONE
#undef K
}  // namespace rows

// Evaluates the expression on values of type T; booleans are 0 and 1.
template <class Row, class T, class E, class X>
HWY_INLINE auto Compute(X x, E y, E z) {
  if constexpr (std::is_same_v<T, bool>) {
    return Row::template Booleans<E, X>(x, y, z);
  } else {
    return Row::template Integers<E, X>(x, y, z);
  }
}

// Elements of an inner loop: compilers vectorise loops of known length without a remainder.
constexpr int64_t kRun = 64;

template <class Row, class T, class XT, class XS, class S, class Out>
HWY_INLINE void Some(const XS* HWY_RESTRICT x, const S* HWY_RESTRICT y, const S* HWY_RESTRICT z,
                     Out* HWY_RESTRICT to, int64_t n) {
  using E = scalar::Int<S>;
  using X = std::conditional_t<Row::kCondition, bool, E>;
  for (int64_t i = 0; i < n; ++i) {
    E second(S{0}), third(S{0});
    if constexpr (Row::kInputs > 1) second = E(internal::Widen<T, S>(y[i]));
    if constexpr (Row::kInputs > 2) third = E(internal::Widen<T, S>(z[i]));
    const auto r = Compute<Row, T, E, X>(X(internal::Widen<XT, XS>(x[i])), second, third);
    if constexpr (std::is_same_v<decltype(r), const bool>) {
      to[i] = r ? 1 : 0;
    } else {
      to[i] = r.v;
    }
  }
}

template <class Row, class T, class R>
void Loop(const void* x, const void* y, const void* z, void* out, int64_t n) {
  using S = internal::Stored<T>;
  using XT = std::conditional_t<Row::kCondition, bool, T>;
  using XS = internal::Stored<XT>;
  using Out = std::conditional_t<std::is_same_v<R, bool>, uint8_t, S>;
  const auto* first = static_cast<const XS*>(x);
  const auto *second = static_cast<const S*>(y), *third = static_cast<const S*>(z);
  auto* to = static_cast<Out*>(out);
  int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    Some<Row, T, XT>(first + i, second + i, third + i, to + i, kRun);
  }
  if (i < n) Some<Row, T, XT>(first + i, second + i, third + i, to + i, n - i);
}

template <class Row, class T>
constexpr NativeFunction MakeLoop() {
  using E = scalar::Int<internal::Stored<T>>;
  using X = std::conditional_t<Row::kCondition, bool, E>;
  using R = decltype(Compute<Row, T, E, X>(X(0), E(0), E(0)));
  if constexpr (std::is_same_v<R, None> || !Row::kAtAnyWidth) {
    return nullptr;
  } else {
    return &Loop<Row, T, R>;
  }
}

// In the order of ElementwiseRows().
const NativeFunctions* FunctionTable() {
  static constexpr NativeFunctions kFunctions[] = {
#define ELEMENTWISE(name, ...)                                                 \
  {MakeLoop<rows::name##Row, int32_t>(), MakeLoop<rows::name##Row, int64_t>(), \
   MakeLoop<rows::name##Row, uint8_t>(), MakeLoop<rows::name##Row, bool>()},
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
  };
  return kFunctions;
}

template <class From, class To, class F, class T>
HWY_INLINE void ConvertSome(const F* HWY_RESTRICT from, int64_t n, T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < n; ++i) to[i] = ConvertElement<To>(internal::Widen<From, F>(from[i]));
}
template <class From, class To>
void Convert(const void* x, int64_t n, void* y) {
  const auto* from = static_cast<const internal::Stored<From>*>(x);
  auto* to = static_cast<internal::Stored<To>*>(y);
  int64_t i = 0;
  for (; i + kRun <= n; i += kRun) ConvertSome<From, To>(from + i, kRun, to + i);
  if (i < n) ConvertSome<From, To>(from + i, n - i, to + i);
}
template <class T>
constexpr bool kNativeInteger =
    std::is_integral_v<T> && !std::is_same_v<T, uint32_t> && !std::is_same_v<T, uint64_t>;

ConvertFunction ConvertFunctionOf(DType from, DType to) {
  ConvertFunction found = nullptr;
  DispatchDType(from, [&]<class From>(TypeTag<From>) {
    DispatchDType(to, [&]<class To>(TypeTag<To>) {
      if constexpr (kNativeInteger<From> && kNativeInteger<To>) found = &Convert<From, To>;
    });
  });
  return found;
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(FunctionTable);
HWY_EXPORT(ConvertFunctionOf);

bool IsNative(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kU8 ||
         dtype == DType::kBool || dtype == DType::kF32 || dtype == DType::kI8 ||
         dtype == DType::kI16 || dtype == DType::kU16;
}

NativeFunction NativeFunctionOf(const ElementwiseRow& row, DType compute) {
  const NativeFunctions& f = HWY_DYNAMIC_DISPATCH(FunctionTable)()[&row - ElementwiseRows().data()];
  return compute == DType::kI32    ? f.i32
         : compute == DType::kI64  ? f.i64
         : compute == DType::kU8   ? f.u8
         : compute == DType::kBool ? f.bools
                                   : nullptr;
}

void ConvertNative(DType from, const void* x, int64_t n, DType to, void* y) {
  if (from == DType::kF32 && to == DType::kF32) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
  } else if (from == DType::kF32) {
    FromFloats(static_cast<const float*>(x), n, to, y);
  } else if (to == DType::kF32) {
    ToFloats(from, x, n, static_cast<float*>(y));
  } else {
    HWY_DYNAMIC_DISPATCH(ConvertFunctionOf)(from, to)(x, n, y);
  }
}

}  // namespace oncilla::cpu
#endif
