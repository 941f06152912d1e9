// TFLite's elementwise ops: most are renames into the table of expressions.
#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/lowering.h"

namespace oncilla {
namespace {

constexpr char kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul", kDiv[] = "Div";

// With an activation behind it. ADD and SUB also have an option for 16-bit integers.
template <const char* kCanonical>
Result<Values> LowerArithmetic(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  b.Ignore(1);
  ONCILLA_ASSIGN(const ValueId y, b.Add(kCanonical, {}, {b.in(0), b.in(1)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
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
    {"RELU", 1, Options::kNone, "Relu"},
    {"RELU6", 1, Options::kNone, "Relu6"},
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
    {"ADD", 2, Options::kAdd, "", LowerArithmetic<kAdd>},
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
    {"MAXIMUM", 2, Options::kNone, "Max"},
    {"MINIMUM", 2, Options::kNone, "Min"},
    {"MUL", 2, Options::kMul, "", LowerArithmetic<kMul>},
    {"NOT_EQUAL", 2, Options::kNone, "", LowerEqual},
    {"POW", 2, Options::kNone, "Pow"},
    {"PRELU", 2, Options::kNone, "PRelu"},
    {"RIGHT_SHIFT", 2, Options::kNone, "ShiftRight"},
    {"SQUARED_DIFFERENCE", 2, Options::kNone, "SquaredDifference"},
    {"SUB", 2, Options::kSub, "", LowerArithmetic<kSub>},
    // the rest
    {"ADD_N", 1, Options::kNone, "", LowerAddN},
    {"SELECT", 3, Options::kNone, "", LowerSelect},
    {"SELECT_V2", 3, Options::kNone, "", LowerSelectV2},
};

}  // namespace

std::span<const TfliteOpRow> TfliteElementwiseRows() { return kRows; }

}  // namespace oncilla
