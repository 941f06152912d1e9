// Fast Requantize of sums in i32 by factors in float, to integers of 8 and 16 bits: what plain code
// computes, on vectors and without a difference.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/requantize.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>
#include <cmath>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/vector.inl.h"
#include "engine/ops/nn/integer.h"

#ifndef ONCILLA_FAST_REQUANTIZE_TYPES
#define ONCILLA_FAST_REQUANTIZE_TYPES
namespace oncilla::cpu {

// A run of sums with one factor, or with one for each.
struct RequantizeRun {
  const int32_t* x = nullptr;
  int64_t n = 0;
  const float* scales = nullptr;
  bool many = false;
  int32_t x_zero = 0, zero = 0;
  float least = 0, most = 0;  // of the steps, before the zero point is added
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

template <class T>
void RoundRun(const RequantizeRun& r, T* y) {
  constexpr Floats d;
  constexpr hn::Rebind<int32_t, Floats> ints;
  constexpr hn::Rebind<T, Floats> narrow;
  const auto x_zero = hn::Set(ints, r.x_zero), zero = hn::Set(ints, r.zero);
  const auto least = hn::Set(d, r.least), most = hn::Set(d, r.most), one = hn::Set(d, r.scales[0]);
  const auto round = [&](auto x, auto scale) HWY_ATTR {
    const auto value = hn::Mul(hn::ConvertTo(d, hn::Sub(x, x_zero)), scale);
    // NaN is no more than the least.
    const auto above = hn::IfThenElse(hn::Gt(value, least), value, least);
    return hn::Add(hn::NearestInt(hn::Min(above, most)), zero);
  };
  int64_t i = 0;
  for (; i + kLanes <= r.n; i += kLanes) {
    const auto scale = r.many ? hn::LoadU(d, r.scales + i) : one;
    hn::StoreU(hn::DemoteTo(narrow, round(hn::LoadU(ints, r.x + i), scale)), narrow, y + i);
  }
  for (; i < r.n; ++i) {
    const auto y_one = round(hn::Set(ints, r.x[i]), hn::Set(d, r.scales[r.many ? i : 0]));
    y[i] = static_cast<T>(hn::GetLane(y_one));
  }
}

void RoundRunOf(DType to, const RequantizeRun& r, std::byte* y, int64_t at) {
  if (to == DType::kU8) RoundRun(r, reinterpret_cast<uint8_t*>(y) + at);
  if (to == DType::kI8) RoundRun(r, reinterpret_cast<int8_t*>(y) + at);
  if (to == DType::kU16) RoundRun(r, reinterpret_cast<uint16_t*>(y) + at);
  if (to == DType::kI16) RoundRun(r, reinterpret_cast<int16_t*>(y) + at);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(RoundRunOf);

int32_t ZeroOf(const Args& args) {
  if (!args.has_input(2)) return 0;
  int32_t zero = 0;
  DispatchDType(args.in(2).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) zero = args.In<T>(2)[0];
  });
  return zero;
}

class FastRequantize : public CpuKernel {
 public:
  FastRequantize(const NodeView& node, const RequantizeAttrs& attrs)
      : CpuKernel(node), attrs_(attrs) {}
  std::string description() const override { return "vectors"; }

  Status Run(const Args& args) const override {
    const RequantizeSpan s = SpanOf(attrs_, args.in(0).shape, args.in(1).shape);
    const IntegerRange range = RangeOf(attrs_);
    const bool many = args.in(1).elements() != 1;
    RequantizeRun all;
    all.x_zero = static_cast<int32_t>(attrs_.x_zero);
    all.zero = ZeroOf(args);
    all.least = static_cast<float>(range.least - all.zero);
    all.most = static_cast<float>(range.most - all.zero);
    ParallelFor(args.threads, args.in(0).elements(), 1 << 15, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t place = many ? begin / s.inner % s.count : 0;
        RequantizeRun run = all;
        run.many = many && s.inner == 1;
        // To the end of the places, each with its factor; of the place; of everything.
        run.n = end - begin;
        if (many) {
          run.n = std::min(run.n, run.many ? s.count - place : s.inner - begin % s.inner);
        }
        run.x = args.In<int32_t>(0) + begin;
        run.scales = args.In<float>(1) + place;
        HWY_DYNAMIC_DISPATCH(RoundRunOf)(attrs_.to, run, args.outputs[0], begin);
        begin += run.n;
      }
    });
    return Status();
  }

 private:
  const RequantizeAttrs attrs_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastRequantize(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<RequantizeAttrs>(*node.attrs));
  if (attrs.mode != "float" || BitsOf(attrs.to) > 16 || node.inputs[0].dtype != DType::kI32 ||
      node.inputs[0].desc().elements() == 0) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastRequantize>(node, attrs));
}

}  // namespace oncilla::cpu
#endif
