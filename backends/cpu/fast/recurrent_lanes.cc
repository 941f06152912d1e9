// The gates of recurrent layers on vectors, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/recurrent_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/fast/recurrent_lanes.h"

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

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {
HWY_EXPORT(LstmUnits);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruUnits);
HWY_EXPORT(RnnUnits);
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

}  // namespace oncilla::cpu
#endif
