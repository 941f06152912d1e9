// Vectors of sums in i32 as integers of another scale. Included once per instruction set.
#if defined(ONCILLA_CPU_REQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_REQUANTIZE_INL_H_
#undef ONCILLA_CPU_REQUANTIZE_INL_H_
#else
#define ONCILLA_CPU_REQUANTIZE_INL_H_
#endif

#include <cstring>

#include "backends/cpu/integer/fixed_in_floats.h"
#include "backends/cpu/integer/requantize.h"
#include "backends/cpu/vector.inl.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

using Ints = hn::ScalableTag<int32_t>;
using IntVector = hn::Vec<Ints>;

// Converts integers that fit T to T.
template <class T>
HWY_INLINE hn::Vec<hn::Rebind<T, Ints>> Narrowed(IntVector x) {
  constexpr hn::Rebind<T, Ints> narrow;
#if HWY_TARGET == HWY_AVX3
  // Takes the lowest byte of each: two shuffles. DemoteTo also clips, which takes three and a mask.
  if constexpr (sizeof(T) == 1) {
    return hn::BitCast(narrow, hn::U8FromU32(hn::BitCast(hn::RebindToUnsigned<Ints>(), x)));
  }
#endif
  return hn::DemoteTo(narrow, x);
}

// MultiplyFixed of engine/ops/nn/integer.h, lane by lane.
HWY_INLINE IntVector MultiplyFixedLanes(IntVector x, IntVector multiplier, IntVector shift) {
  constexpr Ints d;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  HWY_ALIGN int32_t lanes[3][kLanes];
  hn::Store(x, d, lanes[0]);
  hn::Store(multiplier, d, lanes[1]);
  hn::Store(shift, d, lanes[2]);
  for (int i = 0; i < kLanes; ++i) {
    lanes[0][i] = MultiplyFixed(lanes[0][i], lanes[1][i], lanes[2][i]);
  }
  return hn::Load(d, lanes[0]);
#else
  using Wide = hn::RepartitionToWide<Ints>;
  constexpr Wide wide;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1);
  const auto left = hn::Max(shift, zero), right = hn::Max(hn::Neg(shift), zero);
  x = hn::Shl(x, left);
  // 64-bit products of even and of odd lanes; bits 31 to 62 of each are its rounded upper half.
  const auto odd_lanes = [&](IntVector v) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, v)));
  };
  const auto half = hn::Set(wide, int64_t{1} << 30);
  const auto even = hn::Add(hn::MulEven(x, multiplier), half);
  const auto odd = hn::Add(hn::MulEven(odd_lanes(x), odd_lanes(multiplier)), half);
  const auto high =
      hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(odd)), hn::BitCast(d, hn::ShiftRight<31>(even)));
  const auto mask = hn::Sub(hn::Shl(one, right), one);
  const auto above = hn::Sub(hn::ShiftRight<1>(mask), hn::BroadcastSignBit(high));
  const auto up = hn::Gt(hn::And(high, mask), above);
  const auto y = hn::Sub(hn::Shr(high, right), hn::VecFromMask(d, up));
  // Handles the only product whose upper half does not fit 32 bits.
  const auto lowest = hn::Set(d, INT32_MIN), most = hn::Shr(hn::Set(d, INT32_MAX), right);
  const auto beyond = hn::And(hn::Eq(x, lowest), hn::Eq(multiplier, lowest));
  return hn::IfThenElse(beyond, most, y);
#endif
}

// A rule with the factors for one vector of sums, in registers.
template <bool kFixed>
struct RuleLanes;

template <>
struct RuleLanes<false> {
  // Adding this to a small float leaves the nearest integer, ties to even, in the lowest bits.
  static constexpr float kMagic = 12582912.0f;  // 3 * 2^22
  static constexpr int32_t kMagicBits = 0x4B400000;

  Vector scale, least, most;
  IntVector zero;

  // Reads a whole vector of factors from `place` on if there are many, otherwise one factor for
  // all.
  HWY_INLINE RuleLanes(const RequantizeRule& rule, int64_t place) {
    constexpr Floats d;
    scale = rule.many ? hn::LoadU(d, rule.scales + place) : hn::Set(d, rule.scales[0]);
    least = hn::Set(d, static_cast<float>(rule.least));
    most = hn::Set(d, static_cast<float>(rule.most));
    zero = hn::Set(Ints(), rule.zero - kMagicBits);
  }
  HWY_INLINE IntVector operator()(IntVector x) const {
    const auto value = hn::Mul(hn::ConvertTo(Floats(), x), scale);
    // A NaN becomes `least`: the comparison is false for it.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
    const auto above = hn::Max(value, least);  // x86 returns the second operand if one is NaN
#else
    const auto above = hn::IfThenElse(hn::Gt(value, least), value, least);
#endif
    const auto rounded = hn::Add(hn::Min(above, most), hn::Set(Floats(), kMagic));
    return hn::Add(hn::BitCast(Ints(), rounded), zero);
  }
};

template <>
struct RuleLanes<true> {
  IntVector multiplier, shift, least, most, zero;
  // Where results are bytes and all factors permit it, the rule in floats (fixed_in_floats.h).
  bool floats;
  Vector scale, half;

  HWY_INLINE RuleLanes(const RequantizeRule& rule, int64_t place) {
    constexpr Ints d;
    multiplier =
        rule.many ? hn::LoadU(d, rule.multipliers + place) : hn::Set(d, rule.multipliers[0]);
    shift = rule.many ? hn::LoadU(d, rule.shifts + place) : hn::Set(d, rule.shifts[0]);
    least = hn::Set(d, rule.least);
    most = hn::Set(d, rule.most);
    zero = hn::Set(d, rule.zero);
    const auto possible = hn::Min(hn::Max(shift, hn::Set(d, -30)), hn::Set(d, -1));
    const auto fits =
        hn::And(hn::Eq(hn::Max(multiplier, hn::Zero(d)), multiplier), hn::Eq(possible, shift));
    floats = BitsOf(rule.to) == 8 && hn::AllTrue(d, fits);
    // 2^(shift - 31) and 2^(shift - 1), by their exponents.
    const auto power = [&](int32_t plus) HWY_ATTR {
      return hn::BitCast(Floats(), hn::ShiftLeft<23>(hn::Add(shift, hn::Set(d, 127 + plus))));
    };
    scale = hn::Mul(hn::ConvertTo(Floats(), multiplier), power(-31));
    half = power(-1);
  }
  HWY_INLINE IntVector Bounded(IntVector y) const {
    return hn::Add(hn::Min(hn::Max(y, least), most), zero);
  }
  HWY_INLINE IntVector operator()(IntVector x) const {
    if (HWY_LIKELY(floats)) {
      constexpr Floats d;
      const auto value = hn::ConvertTo(d, x);
      const auto moved = hn::MulAdd(value, scale, hn::CopySignToAbs(half, value));
      const auto nearest = hn::NearestInt(moved);
      const auto off = hn::Abs(hn::Sub(moved, hn::ConvertTo(d, nearest)));
      if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(off, hn::Set(d, kCertain))))) return Bounded(nearest);
    }
    return Bounded(MultiplyFixedLanes(x, multiplier, shift));
  }
};

// Converts `n` sums to numbers of type T; the factor of the first sum is at `place`.
template <class T, bool kFixed>
HWY_INLINE void RequantizeSums(const RequantizeRule& rule, const int32_t* x, int64_t n,
                               int64_t place, T* y) {
  constexpr Ints d;
  constexpr hn::Rebind<T, Ints> narrow;
  const auto x_zero = hn::Set(d, rule.x_zero);
  const int left_shift = rule.left_shift;
  const auto moved = [&](IntVector v) HWY_ATTR {
    v = hn::Sub(v, x_zero);
    return left_shift == 0 ? v : hn::ShiftLeftSame(v, left_shift);
  };
  int64_t i = 0;
  if (!rule.many) {
    const RuleLanes<kFixed> lanes(rule, 0);
    for (; i + kLanes <= n; i += kLanes) {
      hn::StoreU(Narrowed<T>(lanes(moved(hn::LoadU(d, x + i)))), narrow, y + i);
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    const RuleLanes<kFixed> lanes(rule, place + i);
    hn::StoreU(Narrowed<T>(lanes(moved(hn::LoadU(d, x + i)))), narrow, y + i);
  }
  for (; i < n; ++i) {
    RequantizeRule one = rule;
    const int64_t at = rule.many ? place + i : 0;
    one.many = false;
    if constexpr (kFixed) {
      one.multipliers += at;
      one.shifts += at;
    } else {
      one.scales += at;
    }
    const RuleLanes<kFixed> lanes(one, 0);
    y[i] = static_cast<T>(hn::GetLane(lanes(moved(hn::Set(d, x[i])))));
  }
}

// Calls fn(T) with a value of the type that the rule produces.
template <class F>
HWY_INLINE void ForRequantized(DType to, F&& fn) {
  if (to == DType::kU8) fn(uint8_t{});
  if (to == DType::kI8) fn(int8_t{});
  if (to == DType::kU16) fn(uint16_t{});
  if (to == DType::kI16) fn(int16_t{});
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
