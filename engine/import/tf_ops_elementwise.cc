// TensorFlow's elementwise ops: most are renames into the table of expressions.
#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerCast(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("DstT"));
  ONCILLA_ASSIGN(const bool truncate, b.attrs().Bool("Truncate"));
  if (truncate && IsFloat(to) && IsFloat(b.in_fact(0).dtype)) {
    return Unsupported("a cast that truncates the mantissa instead of rounding");
  }
  return One(b.Add("Cast", {{"to", to}}, {b.in(0)}));
}

Result<Values> LowerLeakyRelu(TfLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  return One(b.Add("LeakyRelu", {{"alpha", double{alpha}}}, {b.in(0)}));
}

// The condition of the old Select may be a vector that picks whole rows.
Result<Values> LowerSelect(TfLowering& b) {
  ValueId condition = b.in(0);
  ONCILLA_ASSIGN(const int condition_rank, b.KnownRank(0, "the condition"));
  if (condition_rank == 1) {
    ONCILLA_ASSIGN(const int rank, b.KnownRank(1, "the values"));
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < rank; ++axis) axes.push_back(axis);
    if (!axes.empty()) {
      ONCILLA_ASSIGN(condition, b.Add("Unsqueeze", {}, {condition, b.Ints(axes)}, "condition"));
    }
  }
  return One(b.Add("Where", {}, {condition, b.in(1), b.in(2)}));
}

Result<Values> LowerSelectV2(TfLowering& b) { return One(b.Add("Where", {}, b.all_inputs())); }

Result<Values> LowerClip(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId below, b.Add("Min", {}, {b.in(0), b.in(2)}, "max"));
  return One(b.Add("Max", {}, {below, b.in(1)}));
}

Result<Values> LowerAddN(TfLowering& b) {
  ValueId sum = b.in(0);
  if (b.inputs() == 1) return One(b.Add("Identity", {}, {sum}));
  for (size_t i = 1; i < b.inputs(); ++i) {
    const bool last = i + 1 == b.inputs();
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(i)}, last ? "" : StrCat("sum", i)));
  }
  return Values{sum};
}

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

// A bias runs along the channels: the last axis, or the second of channel-first images.
Result<Values> LowerBiasAdd(TfLowering& b) {
  ValueId bias = b.in(1);
  if (b.op() == "BiasAdd") {
    ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
    if (layout.channels_first) {
      ONCILLA_ASSIGN(const int rank, b.KnownRank(0, "the input"));
      std::vector<int64_t> axes;
      for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
      if (!axes.empty()) {
        ONCILLA_ASSIGN(bias, b.Add("Unsqueeze", {}, {bias, b.Ints(axes)}, "bias"));
      }
    }
  }
  return One(b.Add("Add", {}, {b.in(0), bias}));
}

constexpr TfOpRow kRows[] = {
    // one input
    {"Abs", 1, "Abs"},
    {"Acos", 1, "Acos"},
    {"Acosh", 1, "Acosh"},
    {"Asin", 1, "Asin"},
    {"Asinh", 1, "Asinh"},
    {"Atan", 1, "Atan"},
    {"Atanh", 1, "Atanh"},
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
    // two inputs
    {"Add", 2, "Add"},
    {"AddV2", 2, "Add"},
    {"Atan2", 2, "Atan2"},
    {"BitwiseAnd", 2, "BitAnd"},
    {"BitwiseOr", 2, "BitOr"},
    {"BitwiseXor", 2, "BitXor"},
    {"Div", 2, "Div"},
    {"DivNoNan", 2, "DivNoNan"},
    {"Equal", 2, "Equal"},
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
    {"NotEqual", 2, "NotEqual"},
    {"Polygamma", 2, "Polygamma"},
    {"Pow", 2, "Pow"},
    {"RealDiv", 2, "Div"},
    {"RightShift", 2, "ShiftRight"},
    {"SquaredDifference", 2, "SquaredDifference"},
    {"Sub", 2, "Sub"},
    {"TruncateDiv", 2, "Div"},
    {"TruncateMod", 2, "TruncMod"},
    {"Xdivy", 2, "Xdivy"},
    {"Xlog1py", 2, "Xlog1py"},
    {"Xlogy", 2, "Xlogy"},
    {"Zeta", 2, "Zeta"},
    // the rest
    {"Betainc", 3, "Betainc"},
    {"AddN", 1, "", LowerAddN},
    {"BiasAdd", 2, "", LowerBiasAdd},
    {"BiasAddV1", 2, "", LowerBiasAdd},
    {"Cast", 1, "", LowerCast},
    {"ClipByValue", 3, "", LowerClip},
    {"L2Loss", 1, "", LowerSquareSum},
    {"LeakyRelu", 1, "", LowerLeakyRelu},
    {"OnesLike", 1, "", LowerLike},
    {"Select", 3, "", LowerSelect},
    {"SelectV2", 3, "", LowerSelectV2},
    {"ZerosLike", 1, "", LowerLike},
};

}  // namespace

std::span<const TfOpRow> TfElementwiseRows() { return kRows; }

}  // namespace oncilla
