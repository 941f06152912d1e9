// TensorFlow's elementwise ops; most are renames into the table of expressions.
#include <algorithm>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/ops/formula.h"
#include "engine/ops/broadcast.h"

namespace oncilla {
namespace {

// The number of explicit mantissa bits of a float type.
int MantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 52;
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    default:
      return 0;
  }
}

// A cast that truncates the mantissa instead of rounding: the bits that the narrower type lacks are
// cleared first. NaN is left as it is, since clearing its bits could turn it into infinity.
Result<Values> LowerTruncatingCast(TfLowering& b, DType to) {
  const DType from = b.dtype();
  const int lost = MantissaBits(from) - MantissaBits(to);
  if (lost <= 0) return One(b.Add(CastAttrs{to}, {b.in(0)}));
  // TensorFlow rounds when it casts 64 bits to bfloat16, whatever was requested.
  if (from == DType::kF64 && to == DType::kBF16) return One(b.Add(CastAttrs{to}, {b.in(0)}));
  const bool known = from == DType::kF32 || from == DType::kF64;
  if (MantissaBits(to) == 0 || !known) {
    return Unsupported("a cast of ", from, " to ", to, " that truncates the mantissa");
  }
  const uint64_t kept = ~uint64_t{0} << lost;
  const auto low = static_cast<uint32_t>(kept);
  const bool wide = from == DType::kF64;
  const DType bits = wide ? DType::kU64 : DType::kU32;
  const ValueId mask =
      b.Constant(wide ? Tensor::Of<uint64_t>(bits, {}, std::span<const uint64_t>(&kept, 1))
                      : Tensor::Of<uint32_t>(bits, {}, std::span<const uint32_t>(&low, 1)));
  TfFormula f(b);
  const ValueId cleared = f("BitAnd", {f(BitcastAttrs{.to = bits}, {b.in(0)}), mask});
  const ValueId shorter = f(BitcastAttrs{.to = from}, {cleared});
  const ValueId number = f("Where", {f("IsNaN", {b.in(0)}), b.in(0), shorter});
  return f.Last(CastAttrs{to}, {number});
}

Result<Values> LowerCast(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("DstT"));
  ONCILLA_ASSIGN(const bool truncate, b.attrs().Bool("Truncate"));
  if (truncate && IsFloat(to) && IsFloat(b.dtype())) return LowerTruncatingCast(b, to);
  return One(b.Add(CastAttrs{to}, {b.in(0)}));
}

Result<Values> LowerLeakyRelu(TfLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  return One(b.Add("LeakyRelu", AlphaAttrs{.alpha = alpha}, {b.in(0)}));
}

bool IsString(const TfLowering& b, size_t input) {
  return b.in_fact(input).dtype == DType::kString;
}

Result<Values> LowerSelect(TfLowering& b) { return LowerSelectRows(b); }

Result<Values> LowerSelectV2(TfLowering& b) { return One(Choose(b, b.in(0), b.in(1), b.in(2))); }

// Adding strings concatenates them.
Result<Values> LowerAdd(TfLowering& b) {
  if (!IsString(b, 0)) return One(b.Add("Add", {}, {b.in(0), b.in(1)}));
  ONCILLA_ASSIGN(const ValueId rows, b.Add("Shape", {}, {b.in(0)}, "rows"));
  ONCILLA_ASSIGN(const ValueId columns, b.Add("Shape", {}, {b.in(1)}, "columns"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("BroadcastSizes", {}, {rows, columns}, "shape"));
  ONCILLA_ASSIGN(const ValueId left, b.Add("Expand", {}, {b.in(0), shape}, "left"));
  ONCILLA_ASSIGN(const ValueId right, b.Add("Expand", {}, {b.in(1), shape}, "right"));
  return One(b.Add("JoinStrings", {}, {left, right}));
}

Result<Values> LowerEqual(TfLowering& b) {
  const bool equal = b.op() == "Equal";
  ONCILLA_ASSIGN(const bool refuses, b.attrs().Bool("incompatible_shape_error"));
  if (!refuses && !BroadcastShapes(b.in_fact(0).shape, b.in_fact(1).shape).ok()) {
    // Tensors whose shapes are incompatible are unequal as a whole. If that is only found at run
    // time, the run fails.
    const uint8_t differ = equal ? 0 : 1;
    return Values{
        b.Constant(Tensor::Of<uint8_t>(DType::kBool, {}, std::span<const uint8_t>(&differ, 1)))};
  }
  if (!IsString(b, 0)) return One(b.Add(b.op(), {}, {b.in(0), b.in(1)}));
  ONCILLA_ASSIGN(const ValueId same,
                 b.Add("EqualStrings", {}, {b.in(0), b.in(1)}, equal ? "" : "same"));
  if (equal) return Values{same};
  return One(b.Add("Not", {}, {same}));
}

// exp(|x|) times the scaled function. It overflows where exp does, as in TensorFlow.
Result<Values> LowerBessel(TfLowering& b) {
  const std::string_view scaled_op = b.op() == "BesselI0" ? "BesselI0e" : "BesselI1e";
  ONCILLA_ASSIGN(const ValueId scaled, b.Add(scaled_op, {}, {b.in(0)}, "scaled"));
  ONCILLA_ASSIGN(const ValueId size, b.Add("Abs", {}, {b.in(0)}, "size"));
  ONCILLA_ASSIGN(const ValueId growth, b.Add("Exp", {}, {size}, "growth"));
  return One(b.Add("Mul", {}, {growth, scaled}));
}

// The quotient of floats, truncated towards zero; integer division truncates already.
Result<Values> LowerTruncateDiv(TfLowering& b) {
  const DType dtype = b.in_fact(0).dtype;
  const bool whole = !IsFloat(dtype);
  ONCILLA_ASSIGN(const ValueId quotient,
                 b.Add("Div", {}, {b.in(0), b.in(1)}, whole ? "" : "quotient"));
  if (whole) return Values{quotient};
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
  ONCILLA_ASSIGN(const ValueId below, b.Add("Less", {}, {quotient, zero}, "below"));
  ONCILLA_ASSIGN(const ValueId up, b.Add("Ceil", {}, {quotient}, "up"));
  ONCILLA_ASSIGN(const ValueId down, b.Add("Floor", {}, {quotient}, "down"));
  return One(b.Add("Where", {}, {below, up, down}));
}

Result<Values> LowerClip(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId below, b.Add("Min", {}, {b.in(0), b.in(2)}, "max"));
  return One(b.Add("Max", {}, {below, b.in(1)}));
}

Result<Values> LowerAddN(TfLowering& b) { return LowerSum(b); }

Result<Values> LowerLike(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId value,
                 b.Scalar(b.in_fact(0).dtype, b.op() == "OnesLike" ? 1.0 : 0.0));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  return One(b.Add("Fill", {}, {shape, value}));
}

Result<Values> LowerSquareSum(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId squares, b.Add("ReduceSumSquare", {}, {b.in(0)}, "squares"));
  ONCILLA_ASSIGN(const ValueId half, b.Scalar(b.in_fact(0).dtype, 0.5));
  return One(b.Add("Mul", {}, {squares, half}));
}

Result<Values> LowerApproximateEqual(TfLowering& b) {
  ONCILLA_ASSIGN(const float tolerance, b.attrs().Float("tolerance"));
  ONCILLA_ASSIGN(const ValueId difference, b.Add("Sub", {}, {b.in(0), b.in(1)}, "difference"));
  ONCILLA_ASSIGN(const ValueId distance, b.Add("Abs", {}, {difference}, "distance"));
  ONCILLA_ASSIGN(const ValueId limit, b.Scalar(b.in_fact(0).dtype, double{tolerance}));
  return One(b.Add("Less", {}, {distance, limit}));
}

// The number of bits set, by adding neighbouring groups of bits whose width doubles in each step.
Result<Values> LowerPopulationCount(TfLowering& b) {
  const DType dtype = b.in_fact(0).dtype;
  if (!IsInteger(dtype)) return InvalidArgument("population count of ", dtype);
  const DType same[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  const int64_t bytes = BytesOf(dtype);
  ValueId x = b.in(0);
  // Reinterpret as unsigned first, so that widening does not extend the sign.
  ONCILLA_ASSIGN(x, b.Add(BitcastAttrs{.to = same[bytes == 1   ? 0
                                                  : bytes == 2 ? 1
                                                  : bytes == 4 ? 2
                                                               : 3]},
                          {x}, "bits"));
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kU64, "wide"));
  auto number = [&](uint64_t v) {
    return b.Constant(Tensor::Of<uint64_t>(DType::kU64, {}, std::span<const uint64_t>(&v, 1)));
  };
  constexpr uint64_t kMasks[] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
                                 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  for (size_t i = 0; i < 6; ++i) {
    const std::string role = "step" + std::to_string(i);
    const ValueId mask = number(kMasks[i]);
    ONCILLA_ASSIGN(const ValueId shifted,
                   b.Add("ShiftRight", {}, {x, number(uint64_t{1} << i)}, role + "_shifted"));
    ONCILLA_ASSIGN(const ValueId odd, b.Add("BitAnd", {}, {shifted, mask}, role + "_odd"));
    ONCILLA_ASSIGN(const ValueId even, b.Add("BitAnd", {}, {x, mask}, role + "_even"));
    ONCILLA_ASSIGN(x, b.Add("Add", {}, {odd, even}, role));
  }
  return One(b.Add(CastAttrs{DType::kU8}, {x}));
}

// Integers have no negative powers: TensorFlow fails the run, and so does this.
Result<Values> LowerPow(TfLowering& b) {
  const DType dtype = b.in_fact(1).dtype;
  const Fact& exponent = b.in_fact(1);
  bool checked = !IsInteger(dtype) || !IsSigned(dtype);
  if (!checked && exponent.has_value()) {
    ONCILLA_ASSIGN(const auto values, ToInt64s(exponent.value));
    checked = std::all_of(values.begin(), values.end(), [](int64_t v) { return v >= 0; });
  }
  if (!checked) {
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
    ONCILLA_ASSIGN(const ValueId good, b.Add("GreaterEqual", {}, {b.in(1), zero}, "good"));
    ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {good, b.Ints({-1})}, "flat"));
    ONCILLA_ASSIGN(const ValueId all, b.Add("ReduceAll", {}, {flat}, "all"));
    const ValueId text =
        b.Constant(Tensor::Strings({}, {"Integers to negative integer powers are not allowed"}));
    ONCILLA_TRY(b.AddAll("Assert", {}, {all, text}, "check").status());
  }
  return One(b.Add("Pow", {}, {b.in(0), b.in(1)}));
}

// The bias with as many trailing axes of size one as the input has axes after its channels.
Result<ValueId> ChannelsFirstBias(TfLowering& b) {
  const Result<int> rank = b.Rank(0, "the input");
  if (!rank.ok()) {
    if (!b.RanksStayOpen()) return rank.status();
    ONCILLA_ASSIGN(const ValueId own, b.Add(RankAttrs{.to = DType::kI64}, {b.in(0)}, "rank"));
    ONCILLA_ASSIGN(const ValueId two, b.Scalar(DType::kI64, 2));
    ONCILLA_ASSIGN(const ValueId more, b.Add("Sub", {}, {own, two}, "more"));
    return WithTrailingAxes(b, b.in(1), more, "bias");
  }
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < *rank - 1; ++axis) axes.push_back(axis);
  if (axes.empty()) return b.in(1);
  return b.Add("Unsqueeze", {}, {b.in(1), b.Ints(axes)}, "bias");
}

// A bias runs along the channels: the last axis, or the second of channel-first images.
Result<Values> LowerBiasAdd(TfLowering& b) {
  ValueId bias = b.in(1);
  if (b.op() == "BiasAdd") {
    ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
    if (layout.channels_first) {
      ONCILLA_ASSIGN(bias, ChannelsFirstBias(b));
    }
  }
  return One(b.Add("Add", {}, {b.in(0), bias}));
}

constexpr TfOpRow kRows[] = {
    // One input.
    {"Abs", 1, "Abs"},
    {"Acos", 1, "Acos"},
    {"Acosh", 1, "Acosh"},
    {"Asin", 1, "Asin"},
    {"Asinh", 1, "Asinh"},
    {"Atan", 1, "Atan"},
    {"Atanh", 1, "Atanh"},
    {"BesselI0", 1, "", LowerBessel},
    {"BesselI1", 1, "", LowerBessel},
    {"BesselI0e", 1, "BesselI0e"},
    {"BesselI1e", 1, "BesselI1e"},
    {"Ceil", 1, "Ceil"},
    {"Cos", 1, "Cos"},
    {"Cosh", 1, "Cosh"},
    {"Digamma", 1, "Digamma"},
    {"Elu", 1, "Elu"},
    {"Erf", 1, "Erf"},
    {"Erfc", 1, "Erfc"},
    {"Erfinv", 1, "Erfinv"},
    {"Exp", 1, "Exp"},
    {"Expm1", 1, "Expm1"},
    {"Floor", 1, "Floor"},
    {"Inv", 1, "Reciprocal"},
    {"Invert", 1, "BitNot"},
    {"IsFinite", 1, "IsFinite"},
    {"IsInf", 1, "IsInf"},
    {"IsNan", 1, "IsNaN"},
    {"Lgamma", 1, "Lgamma"},
    {"Log", 1, "Log"},
    {"Log1p", 1, "Log1p"},
    {"LogicalNot", 1, "Not"},
    {"Ndtri", 1, "Ndtri"},
    {"Neg", 1, "Neg"},
    {"Reciprocal", 1, "Reciprocal"},
    {"Relu", 1, "Relu"},
    {"Relu6", 1, "Relu6"},
    {"Rint", 1, "Round"},
    {"Round", 1, "Round"},
    {"Rsqrt", 1, "Rsqrt"},
    {"Selu", 1, "Selu"},
    {"Sigmoid", 1, "Sigmoid"},
    {"Sign", 1, "Sign"},
    {"Sin", 1, "Sin"},
    {"Sinh", 1, "Sinh"},
    {"Softplus", 1, "Softplus"},
    {"Softsign", 1, "Softsign"},
    {"Sqrt", 1, "Sqrt"},
    {"Square", 1, "Square"},
    {"Tan", 1, "Tan"},
    {"Tanh", 1, "Tanh"},
    // Two inputs.
    {"Add", 2, "", LowerAdd},
    {"AddV2", 2, "", LowerAdd},
    {"Atan2", 2, "Atan2"},
    {"BitwiseAnd", 2, "BitAnd"},
    {"BitwiseOr", 2, "BitOr"},
    {"BitwiseXor", 2, "BitXor"},
    {"Div", 2, "Div"},
    {"DivNoNan", 2, "DivNoNan"},
    {"Equal", 2, "", LowerEqual},
    {"FloorDiv", 2, "FloorDiv"},
    {"FloorMod", 2, "FloorMod"},
    {"Greater", 2, "Greater"},
    {"GreaterEqual", 2, "GreaterEqual"},
    {"Igamma", 2, "Igamma"},
    {"Igammac", 2, "Igammac"},
    {"LeftShift", 2, "ShiftLeft"},
    {"Less", 2, "Less"},
    {"LessEqual", 2, "LessEqual"},
    {"LogicalAnd", 2, "And"},
    {"LogicalOr", 2, "Or"},
    {"Maximum", 2, "Max"},
    {"Minimum", 2, "Min"},
    {"Mod", 2, "TruncMod"},
    {"Mul", 2, "Mul"},
    {"MulNoNan", 2, "MulNoNan"},
    {"NextAfter", 2, "NextAfter"},
    {"NotEqual", 2, "", LowerEqual},
    {"Polygamma", 2, "Polygamma"},
    {"RealDiv", 2, "Div"},
    {"RightShift", 2, "ShiftRight"},
    {"SquaredDifference", 2, "SquaredDifference"},
    {"Sub", 2, "Sub"},
    {"TruncateDiv", 2, "", LowerTruncateDiv},
    {"TruncateMod", 2, "TruncMod"},
    {"Xdivy", 2, "Xdivy"},
    {"Xlog1py", 2, "Xlog1py"},
    {"Xlogy", 2, "Xlogy"},
    {"Zeta", 2, "Zeta"},
    // All others.
    {"Betainc", 3, "Betainc"},
    {"AccumulateNV2", 1, "", LowerAddN},
    {"AddN", 1, "", LowerAddN},
    {"ApproximateEqual", 2, "", LowerApproximateEqual},
    {"BiasAdd", 2, "", LowerBiasAdd},
    {"BiasAddV1", 2, "", LowerBiasAdd},
    {"Cast", 1, "", LowerCast},
    {"ClipByValue", 3, "", LowerClip},
    {"L2Loss", 1, "", LowerSquareSum},
    {"LeakyRelu", 1, "", LowerLeakyRelu},
    {"OnesLike", 1, "", LowerLike},
    {"PopulationCount", 1, "", LowerPopulationCount},
    {"Pow", 2, "", LowerPow},
    {"Select", 3, "", LowerSelect},
    {"SelectV2", 3, "", LowerSelectV2},
    {"ZerosLike", 1, "", LowerLike},
};

}  // namespace

std::span<const TfOpRow> TfElementwiseRows() { return kRows; }

}  // namespace oncilla
