// Transforms of inputs and outputs, once per instruction set.
//
// A transform takes all columns of a tile and then all rows, in registers as far as these suffice.
// The matrices are written out by hand, because most of their elements are zeros, or belong to
// pairs of rows that differ in sign only (points +p and -p).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/winograd_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/winograd_lanes.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// One column or row of B^T d.
template <int kTile>
HWY_INLINE void TransformInputs(const Vector* in, Vector* out) {
  constexpr Floats d;
  if constexpr (kTile == 2) {
    out[0] = hn::Sub(in[0], in[2]);
    out[1] = hn::Add(in[1], in[2]);
    out[2] = hn::Sub(in[2], in[1]);
    out[3] = hn::Sub(in[1], in[3]);
  } else {
    constexpr double kA = kWinogradA, kB = kWinogradB;
    const Vector a = hn::Set(d, kA), b = hn::Set(d, kB);
    const Vector aa = hn::Set(d, kA * kA), bb = hn::Set(d, kB * kB);
    const Vector product = hn::Set(d, kA * kA * kB * kB), sum = hn::Set(d, kA * kA + kB * kB);
    const Vector even_a = hn::NegMulAdd(bb, in[2], in[4]), odd_a = hn::NegMulAdd(bb, in[1], in[3]);
    const Vector even_b = hn::NegMulAdd(aa, in[2], in[4]), odd_b = hn::NegMulAdd(aa, in[1], in[3]);
    out[0] = hn::MulAdd(product, in[0], hn::NegMulAdd(sum, in[2], in[4]));
    out[1] = hn::MulAdd(a, odd_a, even_a);
    out[2] = hn::NegMulAdd(a, odd_a, even_a);
    out[3] = hn::MulAdd(b, odd_b, even_b);
    out[4] = hn::NegMulAdd(b, odd_b, even_b);
    out[5] = hn::MulAdd(product, in[1], hn::NegMulAdd(sum, in[3], in[5]));
  }
}

// One column or row of A^T m.
template <int kTile>
HWY_INLINE void TransformSums(const Vector* in, Vector* out) {
  constexpr Floats d;
  if constexpr (kTile == 2) {
    out[0] = hn::Add(in[0], hn::Add(in[1], in[2]));
    out[1] = hn::Sub(hn::Sub(in[1], in[2]), in[3]);
  } else {
    constexpr double kA = kWinogradA, kB = kWinogradB;
    const Vector even_a = hn::Add(in[1], in[2]), odd_a = hn::Sub(in[1], in[2]);
    const Vector even_b = hn::Add(in[3], in[4]), odd_b = hn::Sub(in[3], in[4]);
    out[0] = hn::Add(in[0], hn::Add(even_a, even_b));
    out[1] = hn::MulAdd(hn::Set(d, kA), odd_a, hn::Mul(hn::Set(d, kB), odd_b));
    out[2] = hn::MulAdd(hn::Set(d, kA * kA), even_a, hn::Mul(hn::Set(d, kB * kB), even_b));
    out[3] = hn::MulAdd(hn::Set(d, kA * kA * kA), odd_a,
                        hn::MulAdd(hn::Set(d, kB * kB * kB), odd_b, in[5]));
  }
}

template <int kTile, bool kInside>
HWY_INLINE void InputVector(const WinogradInput& t, int64_t c) {
  constexpr Floats d;
  constexpr int kEdge = kTile + 2;
  const int64_t count = t.channels - c;
  Vector half[kEdge][kEdge];
  ONCILLA_UNROLL for (int j = 0; j < kEdge; ++j) {
    Vector column[kEdge], out[kEdge];
    ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) {
      const bool there = kInside || (t.top + i >= 0 && t.top + i < t.height && t.left + j >= 0 &&
                                     t.left + j < t.width);
      const int64_t at = ((t.top + i) * t.width + t.left + j) * t.channels + c;
      column[i] = there ? LoadSome(t.image + at, count) : hn::Zero(d);
    }
    TransformInputs<kTile>(column, out);
    ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) half[i][j] = out[i];
  }
  ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) {
    Vector out[kEdge];
    TransformInputs<kTile>(half[i], out);
    ONCILLA_UNROLL for (int j = 0; j < kEdge; ++j) {
      StoreSome(out[j], t.to + (i * kEdge + j) * t.plane + c, count);
    }
  }
}

template <int kTile>
void InputTile(const WinogradInput& t) {
  constexpr int kEdge = kTile + 2;
  const bool inside =
      t.top >= 0 && t.left >= 0 && t.top + kEdge <= t.height && t.left + kEdge <= t.width;
  if (inside) {
    for (int64_t c = 0; c < t.channels; c += kLanes) InputVector<kTile, true>(t, c);
  } else {
    for (int64_t c = 0; c < t.channels; c += kLanes) InputVector<kTile, false>(t, c);
  }
}

template <int kTile>
bool OutputTile(const WinogradOutput& t) {
  constexpr Floats d;
  constexpr int kEdge = kTile + 2;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool bounded = t.activation == Activation::kRelu || t.activation == Activation::kRelu6;
  const bool curved = t.activation != Activation::kNone && !bounded;
  const Vector low = hn::Set(d, bounded ? 0 : -kInf);
  const Vector high = hn::Set(d, t.activation == Activation::kRelu6 ? 6 : kInf);
  const bool whole = t.rows == kTile && t.row_pixels == kTile;
  Vector strange = hn::Zero(d);  // zero times every sum: NaN once one is not finite
  for (int64_t c = 0; c < t.columns; c += kLanes) {
    const int64_t count = t.columns - c;
    Vector half[kTile][kEdge];
    ONCILLA_UNROLL for (int j = 0; j < kEdge; ++j) {
      Vector column[kEdge], out[kTile];
      ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) {
        column[i] = LoadSome(t.from + (i * kEdge + j) * t.plane + c, count);
      }
      TransformSums<kTile>(column, out);
      ONCILLA_UNROLL for (int i = 0; i < kTile; ++i) half[i][j] = out[i];
    }
    const Vector bias = t.bias != nullptr ? LoadSome(t.bias + c, count) : hn::Zero(d);
    ONCILLA_UNROLL for (int i = 0; i < kTile; ++i) {
      Vector out[kTile];
      TransformSums<kTile>(half[i], out);
      ONCILLA_UNROLL for (int j = 0; j < kTile; ++j) {
        strange = hn::MulAdd(out[j], hn::Zero(d), strange);
        if (!whole && (i >= t.rows || j >= t.row_pixels)) continue;
        const int64_t at = i * t.line + j * t.columns + c;
        Vector v = hn::Add(out[j], bias);
        if (t.residual != nullptr) v = hn::Add(v, LoadSome(t.residual + at, count));
        // The value is the second operand: min and max of x86 return the second operand when one is
        // NaN.
        v = Bounded(low, high, v);
        if (curved) v = CallActivate(d, t.activation, v);
        StoreSome(v, t.y + at, count);
      }
    }
  }
  return hn::AllFalse(d, hn::IsNaN(strange));
}

template <int kTile>
void WeightsRow(const WinogradWeights& t) {
  constexpr int kEdge = kTile + 2;
  const hn::ScalableTag<double> d;
  using Doubles = hn::Vec<decltype(d)>;
  const hn::Rebind<float, decltype(d)> floats;
  constexpr int64_t kStep = HWY_LANES(double);
  for (int64_t n = 0; n < t.to_columns; n += kStep) {
    const int64_t count = std::clamp<int64_t>(t.columns - n, 0, kStep);
    Doubles half[kEdge][3];
    ONCILLA_UNROLL for (int j = 0; j < 3; ++j) {
      Doubles in[3];
      ONCILLA_UNROLL for (int i = 0; i < 3; ++i) {
        const float* from = t.filter + (i * 3 + j) * t.tap + n;
        if (count == kStep) {
          in[i] = hn::PromoteTo(d, hn::LoadU(floats, from));
        } else {
          HWY_ALIGN float some[kStep] = {};
          for (int64_t k = 0; k < count; ++k) some[k] = from[k];
          in[i] = hn::PromoteTo(d, hn::Load(floats, some));
        }
      }
      ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) {
        half[i][j] = hn::MulAdd(
            hn::Set(d, t.g[i][0]), in[0],
            hn::MulAdd(hn::Set(d, t.g[i][1]), in[1], hn::Mul(hn::Set(d, t.g[i][2]), in[2])));
      }
    }
    ONCILLA_UNROLL for (int i = 0; i < kEdge; ++i) {
      ONCILLA_UNROLL for (int j = 0; j < kEdge; ++j) {
        const Doubles sum = hn::MulAdd(hn::Set(d, t.g[j][0]), half[i][0],
                                       hn::MulAdd(hn::Set(d, t.g[j][1]), half[i][1],
                                                  hn::Mul(hn::Set(d, t.g[j][2]), half[i][2])));
        hn::StoreU(hn::DemoteTo(floats, sum), floats, t.to + (i * kEdge + j) * t.plane + n);
      }
    }
  }
}

const WinogradFunctions* GetFunctions() {
  static const WinogradFunctions functions[2] = {{&InputTile<2>, &WeightsRow<2>, &OutputTile<2>},
                                                 {&InputTile<4>, &WeightsRow<4>, &OutputTile<4>}};
  return functions;
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(GetFunctions);

const WinogradFunctions& WinogradFunctionsFor(int tile) {
  static const WinogradFunctions* functions = HWY_DYNAMIC_DISPATCH(GetFunctions)();
  return functions[tile == 2 ? 0 : 1];
}

}  // namespace oncilla::cpu
#endif
