// TFLite's elementwise ops: most are renames into the table of expressions.
#include <algorithm>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {
namespace {

constexpr char kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul", kDiv[] = "Div";

// Sums and differences of bytes: both operands are brought to twice the larger scale with 20 bits
// below the step, added, and brought to the output's scale.
Result<Values> AddIntegerSum(TfliteLowering& b, std::string_view op, int64_t activation) {
  constexpr int kBits = 20;
  const float scales[] = {b.tensor(0).quantization.scale[0], b.tensor(1).quantization.scale[0]};
  const double twice = 2 * double{std::max(scales[0], scales[1])};
  ValueId parts[2];
  for (size_t i = 0; i < 2; ++i) {
    RequantizeAttrs attrs;
    attrs.x_zero = TfliteZeroOf(b.tensor(i));
    attrs.left_shift = kBits;
    ONCILLA_ASSIGN(parts[i], TfliteFixed(b, b.in(i), {double{scales[i]} / twice}, attrs,
                                         DType::kI32, 0, StrCat("part", i)));
  }
  ONCILLA_ASSIGN(const ValueId sum, b.Add(op, {}, {parts[0], parts[1]}, "sum"));
  const float steps = static_cast<float>(1 << kBits) * b.output_tensor().quantization.scale[0];
  return One(TfliteRequantised(b, sum, {twice / double{steps}}, activation));
}

Result<Values> AddIntegerProduct(TfliteLowering& b, int64_t activation) {
  ValueId parts[2];
  for (size_t i = 0; i < 2; ++i) {
    ONCILLA_ASSIGN(parts[i], b.Cast(b.in(i), DType::kI32, StrCat("wide", i)));
    const auto zero = static_cast<double>(TfliteZeroOf(b.tensor(i)));
    ONCILLA_ASSIGN(const ValueId point, b.Scalar(DType::kI32, zero));
    ONCILLA_ASSIGN(parts[i], b.Add("Sub", {}, {parts[i], point}, StrCat("part", i)));
  }
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {parts[0], parts[1]}, "product"));
  const float factor = b.tensor(0).quantization.scale[0] * b.tensor(1).quantization.scale[0] /
                       b.output_tensor().quantization.scale[0];
  return One(TfliteRequantised(b, product, {double{factor}}, activation));
}

// With an activation behind it. ADD and SUB also have an option for 16-bit integers.
template <const char* kCanonical>
Result<Values> LowerArithmetic(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  b.Ignore(1);
  if (b.any_quantised()) {
    ONCILLA_TRY(CheckTfliteBytes(b, 2));
    const std::string_view op = kCanonical;
    if (op == kMul) return AddIntegerProduct(b, activation);
    return AddIntegerSum(b, op, activation);
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(kCanonical, {}, {b.in(0), b.in(1)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// 1 is RELU, 3 is RELU6, as behind other ops; integers are brought to the output's scale as well.
template <int kActivation>
Result<Values> LowerRelu(TfliteLowering& b) {
  if (!b.any_quantised()) return One(b.Add(kActivation == 1 ? "Relu" : "Relu6", {}, {b.in(0)}));
  ONCILLA_TRY(CheckTfliteBytes(b, 1));
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteActivated(to, b.output_type(), kActivation));
  RequantizeAttrs attrs;
  attrs.x_zero = TfliteZeroOf(from);
  attrs.least = static_cast<int64_t>(range.least);
  attrs.most = static_cast<int64_t>(range.most);
  const float factor = from.quantization.scale[0] / to.quantization.scale[0];
  return One(
      TfliteFixed(b, b.in(0), {double{factor}}, attrs, b.output_type(), TfliteZeroOf(to), ""));
}

Result<Values> LowerCast(TfliteLowering& b) {
  b.Ignore(0), b.Ignore(1);  // the types of the tensors decide
  return One(b.Add(CastAttrs{b.output_type()}, {b.in(0)}));
}

Result<Values> LowerLeakyRelu(TfliteLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float(0));
  return One(b.Add("LeakyRelu", AlphaAttrs{.alpha = alpha}, {b.in(0)}));
}

Result<Values> LowerGelu(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool approximate, b.Flag(0));
  return One(b.Add(GeluAttrs{.approximate = approximate}, {b.in(0)}));
}

Result<Values> LowerElu(TfliteLowering& b) {
  return One(b.Add("Elu", AlphaAttrs{.alpha = 1}, {b.in(0)}));
}

Result<Values> LowerRange(TfliteLowering& b, double least, double most) {
  ONCILLA_ASSIGN(const ValueId low, b.Scalar(b.dtype(), least));
  ONCILLA_ASSIGN(const ValueId high, b.Scalar(b.dtype(), most));
  return One(b.Add("Clip", {}, {b.in(0), low, high}));
}
Result<Values> LowerReluN1To1(TfliteLowering& b) { return LowerRange(b, -1, 1); }
Result<Values> LowerRelu0To1(TfliteLowering& b) { return LowerRange(b, 0, 1); }

Result<Values> LowerBitcast(TfliteLowering& b) {
  return One(b.Add(BitcastAttrs{.to = b.output_type()}, {b.in(0)}));
}

Result<Values> LowerZeros(TfliteLowering& b) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  return One(b.Add("Fill", {}, {shape, zero}));
}

Result<Values> LowerSelect(TfliteLowering& b) { return LowerSelectRows(b); }

Result<Values> LowerSelectV2(TfliteLowering& b) { return One(b.Add("Where", {}, b.all_inputs())); }

Result<Values> LowerAddN(TfliteLowering& b) { return LowerSum(b); }

Result<Values> LowerEqual(TfliteLowering& b) {
  const bool equal = b.op() == "EQUAL";
  if (b.dtype() != DType::kString) {
    return One(b.Add(equal ? "Equal" : "NotEqual", {}, {b.in(0), b.in(1)}));
  }
  ONCILLA_ASSIGN(const ValueId same,
                 b.Add("EqualStrings", {}, {b.in(0), b.in(1)}, equal ? "" : "same"));
  return equal ? Values{same} : One(b.Add("Not", {}, {same}));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    // one input
    {"ABS", 1, Options::kNone, "Abs"},
    {"BITCAST", 1, Options::kNone, "", LowerBitcast},
    {"CAST", 1, Options::kCast, "", LowerCast},
    {"CEIL", 1, Options::kNone, "Ceil"},
    {"COS", 1, Options::kNone, "Cos"},
    {"ELU", 1, Options::kNone, "", LowerElu},
    {"EXP", 1, Options::kNone, "Exp"},
    {"FLOOR", 1, Options::kNone, "Floor"},
    {"GELU", 1, Options::kGelu, "", LowerGelu},
    {"HARD_SWISH", 1, Options::kNone, "HardSwish"},
    {"LEAKY_RELU", 1, Options::kLeakyRelu, "", LowerLeakyRelu},
    {"LOG", 1, Options::kNone, "Log"},
    {"LOGICAL_NOT", 1, Options::kNone, "Not"},
    {"LOGISTIC", 1, Options::kNone, "Sigmoid"},
    {"NEG", 1, Options::kNone, "Neg"},
    {"RELU", 1, Options::kNone, "", LowerRelu<1>, TfliteQuantised::kTaken},
    {"RELU6", 1, Options::kNone, "", LowerRelu<3>, TfliteQuantised::kTaken},
    {"RELU_0_TO_1", 1, Options::kNone, "", LowerRelu0To1},
    {"RELU_N1_TO_1", 1, Options::kNone, "", LowerReluN1To1},
    {"ROUND", 1, Options::kNone, "Round"},
    {"RSQRT", 1, Options::kNone, "Rsqrt"},
    {"SIGN", 1, Options::kNone, "Sign"},
    {"SIN", 1, Options::kNone, "Sin"},
    {"SQRT", 1, Options::kNone, "Sqrt"},
    {"SQUARE", 1, Options::kNone, "Square"},
    {"TANH", 1, Options::kNone, "Tanh"},
    {"ZEROS_LIKE", 1, Options::kNone, "", LowerZeros},
    // two inputs
    {"ADD", 2, Options::kAdd, "", LowerArithmetic<kAdd>, TfliteQuantised::kTaken},
    {"ATAN2", 2, Options::kNone, "Atan2"},
    {"BITWISE_XOR", 2, Options::kNone, "BitXor"},
    {"DIV", 2, Options::kDiv, "", LowerArithmetic<kDiv>},
    {"EQUAL", 2, Options::kNone, "", LowerEqual},
    {"FLOOR_DIV", 2, Options::kNone, "FloorDiv"},
    {"FLOOR_MOD", 2, Options::kNone, "FloorMod"},
    {"GREATER", 2, Options::kNone, "Greater"},
    {"GREATER_EQUAL", 2, Options::kNone, "GreaterEqual"},
    {"LESS", 2, Options::kNone, "Less"},
    {"LESS_EQUAL", 2, Options::kNone, "LessEqual"},
    {"LOGICAL_AND", 2, Options::kNone, "And"},
    {"LOGICAL_OR", 2, Options::kNone, "Or"},
    {"MAXIMUM", 2, Options::kNone, "Max", nullptr, TfliteQuantised::kMoved},
    {"MINIMUM", 2, Options::kNone, "Min", nullptr, TfliteQuantised::kMoved},
    {"MUL", 2, Options::kMul, "", LowerArithmetic<kMul>, TfliteQuantised::kTaken},
    {"NOT_EQUAL", 2, Options::kNone, "", LowerEqual},
    {"POW", 2, Options::kNone, "Pow"},
    {"PRELU", 2, Options::kNone, "PRelu"},
    {"RIGHT_SHIFT", 2, Options::kNone, "ShiftRight"},
    {"SQUARED_DIFFERENCE", 2, Options::kNone, "SquaredDifference"},
    {"SUB", 2, Options::kSub, "", LowerArithmetic<kSub>, TfliteQuantised::kTaken},
    // the rest
    {"ADD_N", 1, Options::kNone, "", LowerAddN},
    {"SELECT", 3, Options::kNone, "", LowerSelect},
    {"SELECT_V2", 3, Options::kNone, "", LowerSelectV2},
};

}  // namespace

std::span<const TfliteOpRow> TfliteElementwiseRows() { return kRows; }

}  // namespace oncilla
