// Fast Requantize of integers of up to 32 bits to integers of 8 and 16 bits: bit for bit what plain
// code computes, on vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/requantize.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/requantize.h"

#include <algorithm>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/integer/requantize.inl.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

void RequantizeRun(const RequantizeRule& rule, const int32_t* x, int64_t n, int64_t place,
                   std::byte* y, int64_t at) {
  ForRequantized(rule.to, [&](auto like) HWY_ATTR {
    using T = decltype(like);
    T* to = reinterpret_cast<T*>(y) + at;
    if (rule.fixed()) {
      RequantizeSums<T, true>(rule, x, n, place, to);
    } else {
      RequantizeSums<T, false>(rule, x, n, place, to);
    }
  });
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(RequantizeRun);

int32_t ZeroOf(const Args& args, size_t input) {
  if (!args.has_input(input)) return 0;
  int32_t zero = 0;
  DispatchDType(args.in(input).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) zero = args.In<T>(input)[0];
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
    ONCILLA_ASSIGN(const RequantizeRule all, RuleOf(attrs_, args, 1));
    ParallelFor(args.threads, args.in(0).elements(), 1 << 15, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t place = all.many ? begin / s.inner % s.count : 0;
        RequantizeRule rule = all;
        rule.many = all.many && s.inner == 1;
        // n reaches to the end of the factors, where each element has its own; to the end of the
        // factor's elements; or to the end of the chunk.
        int64_t n = end - begin;
        if (all.many) n = std::min(n, rule.many ? s.count - place : s.inner - begin % s.inner);
        if (!rule.many && rule.fixed()) {
          rule.multipliers += place;
          rule.shifts += place;
        } else if (!rule.many) {
          rule.scales += place;
        }
        HWY_DYNAMIC_DISPATCH(RequantizeRun)
        (rule, args.In<int32_t>(0) + begin, n, place, args.outputs[0], begin);
        begin += n;
      }
    });
    return Status();
  }

 private:
  const RequantizeAttrs attrs_;
};

}  // namespace

Result<RequantizeRule> RuleOf(const RequantizeAttrs& attrs, const Args& args, size_t first) {
  RequantizeRule rule;
  rule.to = attrs.to;
  if (attrs.mode == "fixed") {
    rule.multipliers = args.In<int32_t>(first);
    rule.shifts = args.In<int32_t>(first + 2);
    const auto shifts = static_cast<size_t>(args.in(first + 2).elements());
    ONCILLA_TRY(CheckShifts(DType::kI32, {rule.shifts, shifts}));
  } else {
    rule.scales = args.In<float>(first);
  }
  rule.many = args.in(first).elements() != 1;
  rule.x_zero = static_cast<int32_t>(attrs.x_zero);
  rule.left_shift = static_cast<int32_t>(attrs.left_shift);
  rule.zero = ZeroOf(args, first + 1);
  const IntegerRange range = RangeOf(attrs);
  rule.least = static_cast<int32_t>(range.least - rule.zero);
  rule.most = static_cast<int32_t>(range.most - rule.zero);
  return rule;
}

Result<RequantizeRule> RuleOf(const IntegerEpilogue& epilogue, const Args& args) {
  if (!epilogue.real()) return RuleOf(AsRequantize(epilogue), args, 5);
  RequantizeRule rule;
  rule.to = DType::kF32;
  rule.scales = args.In<float>(5);
  rule.many = args.in(5).elements() != 1;
  if (args.has_input(6)) {
    rule.terms = args.In<float>(6);
    rule.many_terms = args.in(6).elements() != 1;
  }
  return rule;
}

Result<std::unique_ptr<CpuKernel>> MakeFastRequantize(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<RequantizeAttrs>(*node.attrs));
  if (BitsOf(attrs.to) > 16 || node.inputs[0].dtype != DType::kI32 ||
      node.inputs[0].desc().elements() == 0) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastRequantize>(node, attrs));
}

}  // namespace oncilla::cpu
#endif
