// The gates of recurrent layers on vectors, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/recurrent_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/fast/recurrent_lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

HWY_INLINE Vector Sigmoid(Vector x) { return Activate(Floats(), Activation::kSigmoid, x); }
HWY_INLINE Vector Tanh(Vector x) { return Activate(Floats(), Activation::kTanh, x); }

void LstmUnits(const float* sum, const float* peepholes, bool input_forget, int64_t units,
               float* cell, float* y) {
  constexpr Floats d;
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    const Vector old = LoadSome(cell + j, left);
    Vector in = LoadSome(sum + j, left), out = LoadSome(sum + units + j, left);
    Vector forget = LoadSome(sum + 2 * units + j, left);
    if (peepholes != nullptr) {
      in = hn::MulAdd(LoadSome(peepholes + j, left), old, in);
      forget = hn::MulAdd(LoadSome(peepholes + 2 * units + j, left), old, forget);
    }
    in = Sigmoid(in);
    forget = input_forget ? hn::Sub(hn::Set(d, 1.0f), in) : Sigmoid(forget);
    const Vector fresh = Tanh(LoadSome(sum + 3 * units + j, left));
    const Vector now = hn::MulAdd(forget, old, hn::Mul(in, fresh));
    if (peepholes != nullptr) {
      out = hn::MulAdd(LoadSome(peepholes + units + j, left), now, out);
    }
    StoreSome(now, cell + j, left);
    StoreSome(hn::Mul(Sigmoid(out), Tanh(now)), y + j, left);
  }
}

void GruReset(const float* r, const float* h, int64_t units, float* reset) {
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    StoreSome(hn::Mul(Sigmoid(LoadSome(r + j, left)), LoadSome(h + j, left)), reset + j, left);
  }
}

void GruUnits(const float* sum, const float* gate, const float* bias, const float* h, int64_t units,
              float* y) {
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    Vector candidate = LoadSome(sum + 2 * units + j, left);
    if (gate != nullptr) {
      if (bias != nullptr) candidate = hn::Add(candidate, LoadSome(bias + j, left));
      candidate = hn::MulAdd(Sigmoid(LoadSome(sum + units + j, left)), candidate,
                             LoadSome(gate + 2 * units + j, left));
    }
    candidate = Tanh(candidate);
    const Vector z = Sigmoid(LoadSome(sum + j, left));
    const Vector change = hn::Sub(LoadSome(h + j, left), candidate);
    StoreSome(hn::MulAdd(z, change, candidate), y + j, left);
  }
}

void RnnUnits(const float* sum, bool relu, int64_t units, float* y) {
  const Vector zero = hn::Zero(Floats());
  for (int64_t j = 0; j < units; j += kLanes) {
    const Vector v = LoadSome(sum + j, units - j);
    StoreSome(relu ? hn::IfThenElse(hn::Lt(v, zero), zero, v) : Tanh(v), y + j, units - j);
  }
}

// The range of n numbers and zero; returns whether all are finite.
bool RangeOf(const float* h, int64_t n, float* least, float* most) {
  constexpr Floats d;
  Vector low = hn::Zero(d), high = low, odd = low;
  for (int64_t j = 0; j < n; j += kLanes) {
    const Vector v = LoadSome(h + j, n - j);
    low = hn::Min(low, v);
    high = hn::Max(high, v);
    odd = hn::Add(odd, hn::Sub(v, v));  // NaN where v is not finite
  }
  *least = hn::GetLane(hn::MinOfLanes(d, low));
  *most = hn::GetLane(hn::MaxOfLanes(d, high));
  return hn::GetLane(hn::SumOfLanes(d, odd)) == 0;
}

// bytes = the nearest integers to h / step, plus zero, within a byte.
void RoundAll(const float* h, int64_t n, float step, float zero, uint8_t* bytes) {
  constexpr Floats d;
  constexpr hn::RebindToSigned<Floats> ints;
  constexpr hn::Rebind<uint8_t, Floats> narrow;
  const Vector steps = hn::Set(d, step), zeros = hn::Set(d, zero);
  for (int64_t j = 0; j < n; j += kLanes) {
    Vector place = hn::Add(hn::Round(hn::Div(LoadSome(h + j, n - j), steps)), zeros);
    place = hn::Min(hn::Max(place, hn::Zero(d)), hn::Set(d, 255.0f));
    const auto rounded = hn::DemoteTo(narrow, hn::ConvertTo(ints, place));
    if (n - j >= kLanes) {
      hn::StoreU(rounded, narrow, bytes + j);
      continue;
    }
    HWY_ALIGN uint8_t lanes[kLanes];
    hn::StoreU(rounded, narrow, lanes);
    std::memcpy(bytes + j, lanes, static_cast<size_t>(n - j));
  }
}

void ConvertSums(const float* gates, float step, const float* scales, int64_t n, float* sums) {
  constexpr Floats d;
  constexpr hn::RebindToSigned<Floats> ints;
  const Vector steps = hn::Set(d, step);
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t left = n - j;
    const Vector sum = hn::ConvertTo(d, hn::BitCast(ints, LoadSome(sums + j, left)));
    // In this order, a sum of 0 stays 0 however large the scale is.
    StoreSome(
        hn::MulAdd(hn::Mul(sum, steps), LoadSome(scales + j, left), LoadSome(gates + j, left)),
        sums + j, left);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {
HWY_EXPORT(LstmUnits);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruUnits);
HWY_EXPORT(RnnUnits);
HWY_EXPORT(RangeOf);
HWY_EXPORT(RoundAll);
HWY_EXPORT(ConvertSums);
}  // namespace

void LstmUnits(const float* sum, const float* peepholes, bool input_forget, int64_t units,
               float* cell, float* y) {
  HWY_DYNAMIC_DISPATCH(LstmUnits)(sum, peepholes, input_forget, units, cell, y);
}
void GruReset(const float* r, const float* h, int64_t units, float* reset) {
  HWY_DYNAMIC_DISPATCH(GruReset)(r, h, units, reset);
}
void GruUnits(const float* sum, const float* gate, const float* bias, const float* h, int64_t units,
              float* y) {
  HWY_DYNAMIC_DISPATCH(GruUnits)(sum, gate, bias, h, units, y);
}
void RnnUnits(const float* sum, bool relu, int64_t units, float* y) {
  HWY_DYNAMIC_DISPATCH(RnnUnits)(sum, relu, units, y);
}

StateScale RoundToBytes(const float* h, int64_t n, uint8_t* bytes) {
  constexpr StateScale kNothing{NAN, 0};
  float least = 0, most = 0;
  if (!HWY_DYNAMIC_DISPATCH(RangeOf)(h, n, &least, &most)) return kNothing;
  float step = (most - least) / 255.0f;
  if (!std::isfinite(step)) return kNothing;
  if (step == 0) step = 1;
  const float zero = std::nearbyint(std::clamp(-least / step, 0.0f, 255.0f));
  HWY_DYNAMIC_DISPATCH(RoundAll)(h, n, step, zero, bytes);
  return {step, static_cast<int32_t>(zero)};
}
float* ToGates(const float* gates, float step, const float* scales, int64_t n, int32_t* sums) {
  auto* out = reinterpret_cast<float*>(sums);
  HWY_DYNAMIC_DISPATCH(ConvertSums)(gates, step, scales, n, out);
  return out;
}

}  // namespace oncilla::cpu
#endif
