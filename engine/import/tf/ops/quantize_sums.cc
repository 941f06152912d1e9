// TensorFlow's arithmetic on quantised tensors: 8-bit integers, where each tensor has the real
// numbers that its lowest and highest integer represent. Sums have 32 bits and are exact. Their
// range, and their conversion back to 8 bits, follow the formulas of TensorFlow's CPU kernels to
// the bit, with the precision of each step.
#include "engine/import/tf/ops/quantize_sums.h"

#include <algorithm>

#include "engine/import/tf/ops/formula.h"
#include "engine/import/tf/ops/window.h"

namespace oncilla {
namespace {

constexpr int64_t kQint8 = 11, kQuint8 = 12, kQint32 = 13;
constexpr double kLeast32 = -2147483648.0;

Status RequireType(const TfLowering& b, std::string_view attr, int64_t number) {
  ONCILLA_ASSIGN(const int64_t found, b.attrs().TypeNumber(attr));
  if (found == number) return {};
  return Unsupported("with ", attr, " of type ", found, " instead of ", number);
}

// Builds formulas on numbers of one type.
class Numbers {
 public:
  Numbers(TfFormula& f, DType dtype) : f_(f), dtype_(dtype) {}

  ValueId operator()(double value) { return f_.Number(dtype_, value); }
  ValueId From(ValueId x) { return f_.Cast(x, dtype_); }
  ValueId Add(ValueId x, ValueId y) { return f_("Add", {x, y}); }
  ValueId Sub(ValueId x, ValueId y) { return f_("Sub", {x, y}); }
  ValueId Mul(ValueId x, ValueId y) { return f_("Mul", {x, y}); }
  ValueId Div(ValueId x, ValueId y) { return f_("Div", {x, y}); }
  // Rounds half away from zero.
  ValueId Round(ValueId x) { return f_("RoundAway", {x}); }
  ValueId Clip(ValueId x, double least, double most) {
    return f_("Clip", {x, (*this)(least), (*this)(most)});
  }

 private:
  TfFormula& f_;
  const DType dtype_;
};

// The integers of a quantised type: their number, and the lowest.
struct Steps {
  double count, lowest;
  DType dtype;
};
constexpr Steps kBytes = {256, 0, DType::kU8}, kSignedBytes = {256, -128, DType::kI8};
constexpr Steps kWords = {4294967296.0, kLeast32, DType::kI32};

// The steps of the type that attribute `attr` states, which must be one of `types`.
Result<Steps> StepsOf(const TfLowering& b, std::string_view attr, std::vector<int64_t> types) {
  ONCILLA_ASSIGN(const int64_t found, b.attrs().TypeNumber(attr));
  if (std::find(types.begin(), types.end(), found) == types.end()) {
    return Unsupported("with ", attr, " of type ", found);
  }
  return found == kQint8 ? kSignedBytes : found == kQuint8 ? kBytes : kWords;
}

// `otherwise` if the range is a single number, else y.
ValueId UnlessEmpty(TfFormula& f, ValueId least, ValueId most, ValueId otherwise, ValueId y) {
  return f("Where", {f("Equal", {least, most}), otherwise, y});
}

// The integer that represents a number in a range, as f64, before it is clipped to the type.
ValueId StepOf(TfFormula& f, ValueId number, ValueId least, ValueId most, const Steps& steps) {
  Numbers wide(f, DType::kF64);
  const ValueId extent = wide.From(f("Sub", {most, least}));
  const ValueId range = wide.Mul(extent, wide(steps.count / (steps.count - 1)));
  const ValueId scale = wide.Div(wide(steps.count), range);
  const ValueId place = wide.Round(wide.Mul(wide.From(number), scale));
  const ValueId first = wide.Round(wide.Mul(wide.From(least), scale));
  const ValueId step = wide.Add(wide.Sub(place, first), wide(steps.lowest));
  return UnlessEmpty(f, least, most, wide(steps.lowest), step);
}
ValueId StepOfNumber(TfFormula& f, double number, ValueId least, ValueId most, const Steps& steps) {
  return StepOf(f, f.Number(DType::kF64, number), least, most, steps);
}

// The 8-bit integer that represents zero. If the range does not contain zero, the run fails.
Result<ValueId> ZeroOf(TfLowering& b, TfFormula& f, ValueId least, ValueId most,
                       const std::string& operand) {
  const ValueId step = StepOfNumber(f, 0, least, most, kBytes);
  Numbers wide(f, DType::kF64);
  const ValueId inside = f("Equal", {step, wide.Clip(step, 0, 255)});
  ONCILLA_TRY(f.status());
  const ValueId text =
      b.Constant(Tensor::Strings({}, {StrCat("zero is outside of the range of ", operand)}));
  ONCILLA_TRY(b.AddAll(AssertAttrs{}, {inside, text, least, most}, operand + "_zero").status());
  return f(CastAttrs{DType::kU8}, {step});
}

// The range of sums of products: all 32-bit integers, in units of the product of both operands'
// steps.
Values RangeOfProducts(TfFormula& f, const Values& ranges) {
  Numbers narrow(f, DType::kF32);
  const ValueId a = narrow.Div(narrow.Sub(ranges[1], ranges[0]), narrow(255));
  const ValueId b = narrow.Div(narrow.Sub(ranges[3], ranges[2]), narrow(255));
  const ValueId step = narrow.Mul(a, b);
  return {narrow.Mul(step, narrow(kLeast32)), narrow.Mul(step, narrow(-kLeast32))};
}

// The real number that an integer represents, as f32.
ValueId RealOf(TfFormula& f, ValueId x, ValueId least, ValueId most, const Steps& steps) {
  Numbers narrow(f, DType::kF32), wide(f, DType::kF64);
  const ValueId extent = wide.From(f("Sub", {most, least}));
  const ValueId range = wide.Mul(extent, wide(steps.count / (steps.count - 1)));
  const ValueId scale = wide.Div(range, wide(steps.count));
  const ValueId single = narrow.From(scale);
  const ValueId whole = wide.Round(wide.From(narrow.Div(least, single)));
  const ValueId first = wide.From(narrow.Mul(narrow.From(whole), single));
  const ValueId offset = wide.Sub(wide.From(x), wide(steps.lowest));
  const ValueId y = f.Cast(wide.Add(first, wide.Mul(offset, scale)), DType::kF32);
  return UnlessEmpty(f, least, most, least, y);
}

// The range that the values of a 32-bit tensor use; its lower end is at most zero.
Values UsedRange(TfFormula& f, TfLowering& b) {
  const ReduceAttrs all = {.keep_dims = false};
  const ValueId lowest = f("ReduceMin", all, {b.in(0)}), highest = f("ReduceMax", all, {b.in(0)});
  const ValueId least = RealOf(f, lowest, b.in(1), b.in(2), kWords);
  return {f("Min", {least, f.Number(DType::kF32, 0)}),
          RealOf(f, highest, b.in(1), b.in(2), kWords)};
}

// Converts 32 bits to 8 in 16-bit fixed point: scale, shift, round, clip.
Result<ValueId> ToBytes(TfLowering& b, TfFormula& f, const Values& range, std::string_view role) {
  constexpr double kOne = 65536;
  Numbers narrow(f, DType::kF32), wide(f, DType::kF64), whole(f, DType::kI64);
  const ValueId in_range = f("Sub", {b.in(2), b.in(1)}), out_range = f("Sub", {range[1], range[0]});
  const ValueId wide_out = wide.From(out_range);
  const ValueId factor = f.Cast(wide.Div(wide(255), wide_out), DType::kF32);
  const ValueId middle =
      f.Cast(wide.Div(wide.From(f("Add", {b.in(1), b.in(2)})), wide(2)), DType::kF32);
  const ValueId scale =
      whole.From(wide.Div(wide.Mul(wide(255 * kOne), wide.From(in_range)), wide_out));
  const ValueId in_offset = whole.From(narrow.Mul(narrow.Mul(middle, factor), narrow(kOne)));
  const ValueId out_offset = whole.From(
      wide.Div(wide.Mul(wide(kOne), wide.Mul(wide.From(range[0]), wide(255))), wide_out));
  const ValueId offset = whole.Add(whole.Sub(in_offset, out_offset), whole(kOne / 2));
  // Division rounds down, as a right shift of a negative number does.
  const ValueId product = whole.Mul(whole.From(b.in(0)), scale);
  const ValueId scaled = whole.Add(f("FloorDiv", {product, whole(4294967296.0)}), offset);
  const ValueId step = whole.Clip(f("FloorDiv", {scaled, whole(kOne)}), 0, 255);
  const ValueId empty = f("Equal", {out_range, narrow(0)});
  const ValueId y = f("Where", {empty, whole(0), step});
  ONCILLA_TRY(f.status());
  return b.Cast(y, DType::kU8, role);
}

// The real numbers that integers represent, computed in single precision.
ValueId SingleOf(TfFormula& f, ValueId x, ValueId least, ValueId most, const Steps& steps) {
  Numbers narrow(f, DType::kF32), wide(f, DType::kF64);
  const ValueId extent = wide.From(f("Sub", {most, least}));
  const ValueId step = f.Cast(wide.Div(extent, wide(steps.count - 1)), DType::kF32);
  const ValueId whole = narrow.From(wide.Round(wide.From(narrow.Div(least, step))));
  ValueId first = UnlessEmpty(f, least, most, least, narrow.Mul(whole, step));
  first = narrow.Sub(first, narrow.Mul(narrow(steps.lowest), step));
  return narrow.Add(first, narrow.Mul(narrow.From(x), step));
}

// A range for conversion from real numbers to integers, in single precision.
class Target {
 public:
  Target(TfFormula& f, ValueId least, ValueId most, const Steps& steps) : f_(f), steps_(steps) {
    Numbers narrow(f, DType::kF32), wide(f, DType::kF64);
    const ValueId extent = wide.From(f("Sub", {most, least}));
    const ValueId scale = f.Cast(wide.Div(wide(steps.count - 1), extent), DType::kF32);
    scale_ = UnlessEmpty(f, least, most, narrow(0), scale);
    first_ = narrow.Sub(narrow.Round(narrow.Mul(least, scale_)), narrow(steps.lowest));
  }
  ValueId StepsOf(ValueId real) const {
    Numbers narrow(f_, DType::kF32);
    // The largest float below 2^31.
    const double most = std::min(steps_.lowest + steps_.count - 1, 2147483520.0);
    const ValueId step = narrow.Sub(narrow.Round(narrow.Mul(real, scale_)), first_);
    return f_.Cast(narrow.Clip(step, steps_.lowest, most), steps_.dtype);
  }

 private:
  TfFormula& f_;
  const Steps steps_;
  ValueId scale_ = kNoValue, first_ = kNoValue;
};

// Bytes of the range [low, high] as 32-bit integers of the range [least, most]. They are multiples
// of one integer step: the difference between the conversions of 1 and 0.
ValueId Widened(TfFormula& f, ValueId x, ValueId low, ValueId high, ValueId least, ValueId most) {
  Numbers wide(f, DType::kF64), whole(f, DType::kI64);
  const auto place = [&](double byte) {
    const ValueId real = RealOf(f, f.Number(DType::kU8, byte), low, high, kBytes);
    return whole.From(StepOf(f, real, least, most, kWords));
  };
  const ValueId first = place(0), step = whole.Sub(place(1), first);
  return whole.Clip(whole.Add(first, whole.Mul(whole.From(x), step)), kLeast32, -kLeast32 - 1);
}

// The same for a single byte, which is converted and rounded directly.
ValueId WidenedOne(TfFormula& f, ValueId x, ValueId low, ValueId high, ValueId least,
                   ValueId most) {
  Numbers whole(f, DType::kI64);
  const ValueId step = StepOf(f, RealOf(f, x, low, high, kBytes), least, most, kWords);
  return whole.Clip(whole.From(step), kLeast32, -kLeast32 - 1);
}

// A real number as a 32-bit integer of the range [least, most].
ValueId WordOf(TfFormula& f, ValueId real, ValueId least, ValueId most) {
  Numbers wide(f, DType::kF64);
  const ValueId step = StepOf(f, real, least, most, kWords);
  return f.Cast(wide.Clip(step, kLeast32, -kLeast32 - 1), DType::kI32);
}

}  // namespace

Result<ValueId> WordsOf(TfLowering& b, ValueId x, ValueId least, ValueId most) {
  TfFormula f(b);
  const ValueId y = Target(f, least, most, kWords).StepsOf(x);
  ONCILLA_TRY(f.status());
  return y;
}

// Inputs: x, mean, variance, offset and scale, each with its range. Results: integers of 32 bits,
// whose range is 2^20 on both sides of zero: x times one integer for each channel, plus another.
Result<Values> LowerQuantizedBatchNorm(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "Tinput", kQuint8));
  ONCILLA_TRY(RequireType(b, "out_type", kQint32));
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("variance_epsilon"));
  ONCILLA_ASSIGN(const bool scaled, b.attrs().Bool("scale_after_normalization"));
  TfFormula f(b);
  Numbers narrow(f, DType::kF32);
  const ValueId least = narrow(-1048576), most = narrow(1048576);
  const auto real = [&](size_t i) { return RealOf(f, b.in(i), b.in(i + 1), b.in(i + 2), kBytes); };
  const auto word = [&](ValueId x) { return WordOf(f, x, least, most); };
  const ValueId root = f("Sqrt", {narrow.Add(real(6), narrow(double{epsilon}))});
  ValueId scale = narrow.Div(narrow(1), root);
  if (scaled) scale = narrow.Mul(scale, real(12));
  const ValueId offset = narrow.Add(narrow.Mul(f("Neg", {real(3)}), scale), real(9));
  const ValueId product = f("Mul", {word(real(0)), word(scale)});
  const ValueId whole = f("Div", {product, word(narrow(1))});
  const ValueId moved = word(offset);
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Add("Add", {}, {whole, moved}));
  return Values{y, least, most};
}

// Inputs: x and its range. Each channel of a sample is normalised; the range is that of the
// results, unless it is given, and is not narrower than an attribute says.
Result<Values> LowerQuantizedInstanceNorm(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "T", kQuint8));
  ONCILLA_ASSIGN(const bool given, b.attrs().Bool("output_range_given"));
  ONCILLA_ASSIGN(const float given_least, b.attrs().Float("given_y_min"));
  ONCILLA_ASSIGN(const float given_most, b.attrs().Float("given_y_max"));
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("variance_epsilon"));
  ONCILLA_ASSIGN(const float separation, b.attrs().Float("min_separation"));
  if (given && !(given_least < given_most)) {
    return InvalidArgument("given_y_min must be less than given_y_max : ", given_least,
                           " >= ", given_most);
  }
  TfFormula f(b);
  Numbers narrow(f, DType::kF32);
  const ReduceAttrs plane = {.keep_dims = true};
  const auto mean = [&](ValueId x) { return f("ReduceMean", plane, {x, f.Ints({1, 2})}); };
  const ValueId scale = narrow.Div(narrow.Sub(b.in(2), b.in(1)), narrow(255));
  const ValueId x = narrow.From(b.in(0));
  const ValueId centred = narrow.Mul(narrow.Sub(x, mean(x)), scale);
  const ValueId variance = mean(f("Square", {centred}));
  const ValueId rate = f("Rsqrt", {narrow.Add(variance, narrow(double{epsilon}))});
  const ValueId normal = narrow.Mul(centred, rate);
  const ReduceAttrs all = {.keep_dims = false};
  const ValueId least = given ? narrow(double{given_least}) : f("ReduceMin", all, {normal});
  ValueId most = given ? narrow(double{given_most}) : f("ReduceMax", all, {normal});
  const ValueId close = f("Less", {narrow.Sub(most, least), narrow(double{separation})});
  most = f("Where", {close, narrow.Add(least, narrow(double{separation})), most});
  const ValueId y = Target(f, least, most, kBytes).StepsOf(normal);
  return f.Done({y, least, most});
}

// Inputs: x, filter, and the ranges of both. Results: the sums and their range.
Result<Values> LowerQuantizedConv(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "Tinput", kQuint8));
  ONCILLA_TRY(RequireType(b, "Tfilter", kQuint8));
  ONCILLA_TRY(RequireType(b, "out_type", kQint32));
  const TfLayout layout;
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, true));
  for (const int64_t dilation : window.dilations) {
    if (dilation != 1) return Unsupported("with dilations");
  }
  TfFormula f(b);
  ONCILLA_ASSIGN(const ValueId x_zero, ZeroOf(b, f, b.in(2), b.in(3), "input"));
  ONCILLA_ASSIGN(const ValueId filter_zero, ZeroOf(b, f, b.in(4), b.in(5), "filter"));
  const Values range = RangeOfProducts(f, {b.in(2), b.in(3), b.in(4), b.in(5)});
  ONCILLA_TRY(f.status());
  ConvIntegerAttrs attrs;
  attrs.strides = window.strides;
  attrs.auto_pad = window.auto_pad;
  attrs.pads = window.pads;
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), b.in(1), x_zero, filter_zero}));
  return Values{y, range[0], range[1]};
}

// Inputs: a, b, and the ranges of both. Results: the sums and their range.
Result<Values> LowerQuantizedMatMul(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "T1", kQuint8));
  ONCILLA_TRY(RequireType(b, "T2", kQuint8));
  ONCILLA_TRY(RequireType(b, "Toutput", kQint32));
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  TfFormula f(b);
  ONCILLA_ASSIGN(const ValueId a_zero, ZeroOf(b, f, b.in(2), b.in(3), "a"));
  ONCILLA_ASSIGN(const ValueId b_zero, ZeroOf(b, f, b.in(4), b.in(5), "b"));
  const Values range = RangeOfProducts(f, {b.in(2), b.in(3), b.in(4), b.in(5)});
  ONCILLA_TRY(f.status());
  const MatMulIntegerAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), b.in(1), a_zero, b_zero}));
  return Values{y, range[0], range[1]};
}

// Both operands are converted to a 32-bit range that is 2^17 times as wide as the wider one.
Result<Values> LowerQuantizedBiasAdd(TfLowering& b) {
  ONCILLA_ASSIGN(const Steps steps, StepsOf(b, "T1", {kQint8, kQuint8}));
  ONCILLA_ASSIGN(const Steps bias_steps, StepsOf(b, "T2", {kQint8, kQuint8}));
  ONCILLA_TRY(RequireType(b, "out_type", kQint32));
  TfFormula f(b);
  Numbers wide(f, DType::kF64);
  ValueId most = f("Max", {b.in(3), f("Neg", {b.in(2)})});
  most = f("Max", {most, f("Max", {b.in(5), f("Neg", {b.in(4)})})});
  most = f("Mul", {most, f.Number(DType::kF32, 131072)});
  const ValueId least = f("Neg", {most});
  const Target target(f, least, most, kWords);
  const ValueId x = target.StepsOf(SingleOf(f, b.in(0), b.in(2), b.in(3), steps));
  const ValueId bias = target.StepsOf(SingleOf(f, b.in(1), b.in(4), b.in(5), bias_steps));
  const ValueId zero = f.Cast(
      wide.Clip(StepOfNumber(f, 0, least, most, kWords), kLeast32, -kLeast32 - 1), DType::kI32);
  const ValueId moved = f("Add", {bias, zero});
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Add("Add", {}, {x, moved}));
  return Values{y, least, most};
}

// x, y, ranges of both -> sums in a range of 32 bits, 2^14 times as wide as the largest number.
Result<Values> LowerQuantizedAdd(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "T1", kQuint8));
  ONCILLA_TRY(RequireType(b, "T2", kQuint8));
  ONCILLA_TRY(RequireType(b, "Toutput", kQint32));
  TfFormula f(b);
  Numbers whole(f, DType::kI64);
  for (size_t i = 2; i < 6; i += 2) {
    const ValueId wide = f("Greater", {b.in(i + 1), b.in(i)});
    ONCILLA_TRY(f.status());
    const ValueId text =
        b.Constant(Tensor::Strings({}, {"max must be larger than min, which are"}));
    const Values data = {wide, text, b.in(i + 1), b.in(i)};
    ONCILLA_TRY(b.AddAll(AssertAttrs{}, data, StrCat("range", i / 2)).status());
  }
  const ValueId lowest = f("Min", {b.in(2), b.in(4)}), highest = f("Max", {b.in(3), b.in(5)});
  ValueId most = f("Max", {f("Abs", {lowest}), f("Abs", {highest})});
  most = f("Mul", {most, f.Number(DType::kF32, 16384)});
  const ValueId least = f("Neg", {most});
  // If an operand has one element, that one is rounded directly; if both have, only x is.
  const auto is_one = [&](size_t i) {
    return f("Equal", {f(SizeAttrs{}, {b.in(i)}), f.Number(DType::kI64, 1)});
  };
  const ValueId x_one = is_one(0), y_one = f("And", {is_one(1), f("Not", {x_one})});
  const auto wide = [&](size_t i, ValueId one) {
    const ValueId low = b.in(2 + 2 * i), high = b.in(3 + 2 * i);
    return f("Where", {one, WidenedOne(f, b.in(i), low, high, least, most),
                       Widened(f, b.in(i), low, high, least, most)});
  };
  const ValueId sum = f("Add", {wide(0, x_one), wide(1, y_one)});
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Cast(sum, DType::kI32, ""));
  return Values{y, least, most};
}

// x, y, ranges of both -> products, their range.
Result<Values> LowerQuantizedMul(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "T1", kQuint8));
  ONCILLA_TRY(RequireType(b, "T2", kQuint8));
  ONCILLA_TRY(RequireType(b, "Toutput", kQint32));
  TfFormula f(b);
  const auto above_zero = [&](size_t x, size_t least, size_t most) {
    const ValueId zero = StepOfNumber(f, 0, b.in(least), b.in(most), kBytes);
    return f("Sub", {f.Cast(b.in(x), DType::kI64), f.Cast(zero, DType::kI64)});
  };
  const ValueId product = f("Mul", {above_zero(0, 2, 3), above_zero(1, 4, 5)});
  const Values range = RangeOfProducts(f, {b.in(2), b.in(3), b.in(4), b.in(5)});
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Cast(product, DType::kI32, ""));
  return Values{y, range[0], range[1]};
}

// Averages of the integers; the range stays the same.
Result<Values> LowerQuantizedAvgPool(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "T", kQuint8));
  ONCILLA_ASSIGN(const PoolWindow window, ReadPoolWindow(b, TfLayout(), "ksize"));
  double count = 1;
  for (const int64_t size : window.kernel) count *= static_cast<double>(size);
  // For larger windows the correction below would be lost in single precision.
  if (count > 4096) return Unsupported("with windows of ", count, " places");
  TfFormula f(b);
  const ValueId mean = f(AveragePoolAttrs{window}, {f.Cast(b.in(0), DType::kF32)});
  // A mean is a multiple of 1 / count. Adding half of that keeps a rounding error from moving an
  // exact integer to the one below.
  const ValueId whole = f("Floor", {f("Add", {mean, f.Number(DType::kF32, 0.5 / count)})});
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Cast(whole, DType::kU8, ""));
  return Values{y, b.in(1), b.in(2)};
}

// Inputs: axis, values, their minima, their maxima. All are converted to the smallest range that
// contains every range and zero.
Result<Values> LowerQuantizedConcat(TfLowering& b) {
  ONCILLA_ASSIGN(const Steps steps, StepsOf(b, "T", {kQuint8, kQint32}));
  ONCILLA_ASSIGN(const int64_t count, b.attrs().Int("N"));
  if (count < 1 || count > (1 << 20) || static_cast<size_t>(count) * 3 + 1 != b.inputs()) {
    return DataLoss("it has ", b.inputs(), " inputs for ", count, " values");
  }
  const auto n = static_cast<size_t>(count);
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(0, "the axis"));
  TfFormula f(b);
  ValueId least = f.Number(DType::kF32, 0), most = b.in(1 + 2 * n);
  for (size_t i = 0; i < n; ++i) {
    least = f("Min", {least, b.in(1 + n + i)});
    most = f("Max", {most, b.in(1 + 2 * n + i)});
  }
  if (steps.lowest < 0) {  // the middle of signed integers is zero
    most = f("Max", {f("Abs", {least}), f("Abs", {most})});
    least = f("Neg", {most});
  }
  const Target target(f, least, most, steps);
  Values moved;
  for (size_t i = 0; i < n; ++i) {
    const ValueId x = b.in(1 + i), low = b.in(1 + n + i), high = b.in(1 + 2 * n + i);
    const ValueId same = f("And", {f("Equal", {low, least}), f("Equal", {high, most})});
    const ValueId other = target.StepsOf(SingleOf(f, x, low, high, steps));
    moved.push_back(f("Where", {same, x, other}));
  }
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Add(ConcatAttrs{.axis = axis}, std::move(moved)));
  return Values{y, least, most};
}

// Clips at zero, and for Relu6 also at six; the range stays the same.
Result<Values> LowerQuantizedRelu(TfLowering& b) {
  ONCILLA_ASSIGN(const Steps steps, StepsOf(b, "Tinput", {kQuint8, kQint32}));
  ONCILLA_TRY(RequireType(b, "out_type", steps.dtype == DType::kU8 ? kQuint8 : kQint32));
  TfFormula f(b);
  Numbers wide(f, DType::kF64);
  const auto bound = [&](double number) {
    const ValueId step = StepOfNumber(f, number, b.in(1), b.in(2), steps);
    return f.Cast(wide.Clip(step, steps.lowest, steps.lowest + steps.count - 1), steps.dtype);
  };
  const ValueId zero = bound(0);
  if (b.op() == "QuantizedRelu") {
    ONCILLA_TRY(f.status());
    ONCILLA_ASSIGN(const ValueId y, b.Add("Max", {}, {b.in(0), zero}));
    return Values{y, b.in(1), b.in(2)};
  }
  const ValueId above = f("Max", {b.in(0), zero}), six = bound(6);
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Add("Min", {}, {above, six}));
  return Values{y, b.in(1), b.in(2)};
}

Result<Values> LowerRequantizationRange(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "Tinput", kQint32));
  TfFormula f(b);
  return f.Done(UsedRange(f, b));
}

// Inputs: x, its range, and the requested range. Results: x in that range, and the range. Only for
// unsigned bytes does TensorFlow compute in fixed point.
Result<Values> LowerRequantize(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "Tinput", kQint32));
  ONCILLA_ASSIGN(const Steps steps, StepsOf(b, "out_type", {kQint8, kQuint8}));
  TfFormula f(b);
  if (steps.dtype == DType::kI8) {
    const Target target(f, b.in(3), b.in(4), steps);
    const ValueId y = target.StepsOf(SingleOf(f, b.in(0), b.in(1), b.in(2), kWords));
    return f.Done({y, b.in(3), b.in(4)});
  }
  ONCILLA_ASSIGN(const ValueId y, ToBytes(b, f, {b.in(3), b.in(4)}, ""));
  return Values{y, b.in(3), b.in(4)};
}

Result<Values> LowerShrinkRange(TfLowering& b) {
  ONCILLA_TRY(RequireType(b, "Tinput", kQint32));
  ONCILLA_TRY(RequireType(b, "out_type", kQuint8));
  TfFormula f(b);
  const Values range = UsedRange(f, b);
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, ToBytes(b, f, range, ""));
  return Values{y, range[0], range[1]};
}

}  // namespace oncilla
