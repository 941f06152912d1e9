// TFLite's elementwise ops; most are renames into the table of expressions.
#include <limits>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

constexpr char kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul", kDiv[] = "Div";

// Arithmetic followed by an activation. For sums of 16-bit integers, an option states whether
// scales that are powers of two are handled by shifts.
template <const char* kCanonical>
Result<Values> LowerArithmetic(TfliteLowering& b) {
  const std::string_view op = kCanonical;
  const bool sum = op == kAdd || op == kSub;
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  ONCILLA_ASSIGN(const bool powers_of_two, b.Flag(1, true));
  if (b.any_quantised()) {
    if (sum) return LowerQuantisedSum(b, op, powers_of_two, activation);
    if (op == kMul) return LowerQuantisedProduct(b, activation);
    return LowerQuantisedQuotient(b, activation);
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(kCanonical, {}, {b.in(0), b.in(1)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

Result<Values> LowerCast(TfliteLowering& b) {
  b.Ignore(0), b.Ignore(1);  // the tensors' types decide
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

// Clips to the range of an activation.
template <int kLeast, int kMost>
Result<Values> LowerRange(TfliteLowering& b) {
  ONCILLA_ASSIGN(const ValueId low, b.Scalar(b.dtype(), kLeast));
  ONCILLA_ASSIGN(const ValueId high, b.Scalar(b.dtype(), kMost));
  return One(b.Add("Clip", {}, {b.in(0), low, high}));
}
template <int kLeast, int kMost>
Result<Values> LowerStoredRange(TfliteLowering& b) {
  return LowerQuantisedRange(b, kLeast, kMost);
}
Result<Values> LowerStoredRelu(TfliteLowering& b) {
  return LowerQuantisedRange(b, 0, std::numeric_limits<float>::infinity());
}

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
constexpr auto kMoved = TfliteQuantised::kMoved, kTaken = TfliteQuantised::kTaken;
constexpr TfliteOpRow kRows[] = {
    // One input.
    {"ABS", 1, Options::kNone, "Abs", nullptr, kTaken, LowerQuantisedAbs},
    {"BITCAST", 1, Options::kNone, "", LowerBitcast, kMoved},
    {"CAST", 1, Options::kCast, "", LowerCast},
    {"CEIL", 1, Options::kNone, "Ceil"},
    {"COS", 1, Options::kNone, "Cos"},
    {"ELU", 1, Options::kNone, "", LowerElu, kTaken, LowerQuantisedElu},
    {"EXP", 1, Options::kNone, "Exp", nullptr, kTaken, LowerQuantisedExp},
    {"FLOOR", 1, Options::kNone, "Floor"},
    {"GELU", 1, Options::kGelu, "", LowerGelu, kTaken, LowerQuantisedGelu},
    {"HARD_SWISH", 1, Options::kNone, "HardSwish", nullptr, kTaken, LowerQuantisedHardSwish},
    {"LEAKY_RELU", 1, Options::kLeakyRelu, "", LowerLeakyRelu, kTaken, LowerQuantisedLeakyRelu},
    {"LOG", 1, Options::kNone, "Log", nullptr, kTaken, LowerQuantisedLog},
    {"LOGICAL_NOT", 1, Options::kNone, "Not"},
    {"LOGISTIC", 1, Options::kNone, "Sigmoid", nullptr, kTaken, LowerQuantisedLogistic},
    {"NEG", 1, Options::kNone, "Neg"},
    {"RELU", 1, Options::kNone, "Relu", nullptr, kTaken, LowerStoredRelu},
    {"RELU6", 1, Options::kNone, "Relu6", nullptr, kTaken, LowerStoredRange<0, 6>},
    {"RELU_0_TO_1", 1, Options::kNone, "", LowerRange<0, 1>, kTaken, LowerStoredRange<0, 1>},
    {"RELU_N1_TO_1", 1, Options::kNone, "", LowerRange<-1, 1>, kTaken, LowerStoredRange<-1, 1>},
    {"ROUND", 1, Options::kNone, "Round"},
    {"RSQRT", 1, Options::kNone, "Rsqrt", nullptr, kTaken, LowerQuantisedRsqrt},
    {"SIGN", 1, Options::kNone, "Sign"},
    {"SIN", 1, Options::kNone, "Sin"},
    {"SQRT", 1, Options::kNone, "Sqrt", nullptr, kTaken, LowerQuantisedSqrt},
    {"SQUARE", 1, Options::kNone, "Square"},
    {"TANH", 1, Options::kNone, "Tanh", nullptr, kTaken, LowerQuantisedTanh},
    {"ZEROS_LIKE", 1, Options::kNone, "", LowerZeros},
    // Two inputs.
    {"ADD", 2, Options::kAdd, "", LowerArithmetic<kAdd>, kTaken},
    {"ATAN2", 2, Options::kNone, "Atan2"},
    {"BITWISE_XOR", 2, Options::kNone, "BitXor"},
    {"DIV", 2, Options::kDiv, "", LowerArithmetic<kDiv>, kTaken},
    {"EQUAL", 2, Options::kNone, "", LowerEqual, kTaken, LowerQuantisedComparison},
    {"FLOOR_DIV", 2, Options::kNone, "FloorDiv"},
    {"FLOOR_MOD", 2, Options::kNone, "FloorMod"},
    {"GREATER", 2, Options::kNone, "Greater", nullptr, kTaken, LowerQuantisedComparison},
    {"GREATER_EQUAL", 2, Options::kNone, "GreaterEqual", nullptr, kTaken, LowerQuantisedComparison},
    {"LESS", 2, Options::kNone, "Less", nullptr, kTaken, LowerQuantisedComparison},
    {"LESS_EQUAL", 2, Options::kNone, "LessEqual", nullptr, kTaken, LowerQuantisedComparison},
    {"LOGICAL_AND", 2, Options::kNone, "And"},
    {"LOGICAL_OR", 2, Options::kNone, "Or"},
    {"MAXIMUM", 2, Options::kNone, "Max", nullptr, kMoved},
    {"MINIMUM", 2, Options::kNone, "Min", nullptr, kMoved},
    {"MUL", 2, Options::kMul, "", LowerArithmetic<kMul>, kTaken},
    {"NOT_EQUAL", 2, Options::kNone, "", LowerEqual, kTaken, LowerQuantisedComparison},
    {"POW", 2, Options::kNone, "Pow"},
    {"PRELU", 2, Options::kNone, "PRelu", nullptr, kTaken, LowerQuantisedPRelu},
    {"RIGHT_SHIFT", 2, Options::kNone, "ShiftRight"},
    {"SQUARED_DIFFERENCE", 2, Options::kNone, "SquaredDifference", nullptr, kTaken,
     LowerQuantisedSquaredDifference},
    {"SUB", 2, Options::kSub, "", LowerArithmetic<kSub>, kTaken},
    // All others.
    {"ADD_N", 1, Options::kNone, "", LowerAddN},
    {"SELECT", 3, Options::kNone, "", LowerSelect, kMoved},
    {"SELECT_V2", 3, Options::kNone, "", LowerSelectV2, kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteElementwiseRows() { return kRows; }

}  // namespace oncilla
