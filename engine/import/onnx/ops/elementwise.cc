// ONNX's arithmetic, comparisons and conversions; most are renames into the table of expressions.
#include <cmath>
#include <limits>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/tensor.h"
#include "engine/ops/math/quantize.h"

namespace oncilla {
namespace {

// Before opset 7 the second operand was broadcast only on request, aligned at an axis. This
// reshapes it so that NumPy's rule gives the same result.
Result<ValueId> OldBroadcast(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool stretch, b.Flag("broadcast", false));
  if (!b.HasAttr("axis") || !stretch) return b.in(1);
  ONCILLA_ASSIGN(int64_t axis, b.Int("axis", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const int other, b.Rank(1, "the second input"));
  if (axis < 0) axis += rank;
  if (axis < 0 || axis + other > rank) {
    return InvalidArgument("axis ", axis, " does not fit ranks ", rank, " and ", other);
  }
  std::vector<int64_t> axes;
  for (int64_t i = other; i < rank - axis; ++i) axes.push_back(i);
  return b.Unsqueeze(b.in(1), std::move(axes), "aligned");
}

Result<ValueId> SecondOperand(OnnxLowering& b) {
  return b.version() < 7 ? OldBroadcast(b) : Result<ValueId>(b.in(1));
}

std::string_view CanonicalName(std::string_view op) {
  if (op == "GreaterOrEqual") return "GreaterEqual";
  if (op == "LessOrEqual") return "LessEqual";
  if (op == "BitwiseAnd") return "BitAnd";
  if (op == "BitwiseOr") return "BitOr";
  if (op == "BitwiseXor") return "BitXor";
  return op;
}

Result<Values> LowerBinary(OnnxLowering& b) {
  if (b.op() == "Equal" && b.version() >= 19 && b.dtype() == DType::kString) {
    return One(b.Add("EqualStrings", {}, {b.in(0), b.in(1)}));
  }
  ONCILLA_ASSIGN(const ValueId y, SecondOperand(b));
  return One(b.Add(CanonicalName(b.op()), {}, {b.in(0), y}));
}

// Base and exponent may have different types; the result has the base's.
Result<Values> LowerPow(OnnxLowering& b) {
  ONCILLA_ASSIGN(ValueId y, SecondOperand(b));
  ValueId x = b.in(0);
  const DType base = b.dtype(0), exponent = b.dtype(1);
  DType compute = base;
  if (base != exponent && !IsFloat(base)) {
    // A fractional exponent of an integer is respected, and powers wrap around in the base's type.
    compute = IsFloat(exponent) ? DType::kF64 : DType::kI64;
  }
  ONCILLA_ASSIGN(x, b.Cast(x, compute, "base"));
  ONCILLA_ASSIGN(y, b.Cast(y, compute, "exponent"));
  ONCILLA_ASSIGN(const ValueId power, b.Add("Pow", {}, {x, y}, compute == base ? "" : "power"));
  return One(b.Cast(power, base, ""));
}

// Sum, Mean, Max and Min of any number of inputs.
Result<Values> LowerVariadic(OnnxLowering& b) {
  const bool mean = b.op() == "Mean";
  const std::string_view op = mean || b.op() == "Sum" ? "Add" : b.op();
  ValueId y = b.in(0);
  if (b.inputs() == 1) return One(b.Add("Identity", {}, {y}));
  for (size_t i = 1; i < b.inputs(); ++i) {
    const bool last = i + 1 == b.inputs() && !mean;
    ONCILLA_ASSIGN(y, b.Add(op, {}, {y, b.in(i)}, last ? "" : StrCat("first", i + 1)));
  }
  if (!mean) return Values{y};
  ONCILLA_ASSIGN(const ValueId count, b.Scalar(b.dtype(), static_cast<double>(b.inputs())));
  return One(b.Add("Div", {}, {y, count}));
}

Result<Values> LowerMod(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool as_c, b.Flag("fmod", false));
  if (!as_c && IsFloat(b.dtype()) && b.version() < 28) {
    return InvalidArgument("floats need the attribute fmod");
  }
  return One(b.Add(as_c ? "TruncMod" : "FloorMod", {}, b.all_inputs()));
}

// Shifts of signed numbers, from opset 28 on: a right shift keeps the sign, and a count outside the
// type's width (including negative ones) leaves only sign bits.
Result<Values> LowerBitShift(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string direction, b.String("direction", ""));
  if (direction != "LEFT" && direction != "RIGHT") {
    return InvalidArgument("direction is '", direction, "'");
  }
  return One(b.Add(direction == "LEFT" ? "ShiftLeft" : "ShiftRight", {}, b.all_inputs()));
}

// Bounds are attributes before opset 11, and inputs since then.
Result<Values> LowerClip(OnnxLowering& b) {
  ValueId bounds[2] = {b.in(1), b.in(2)};
  if (b.version() < 11) {
    constexpr const char* kNames[] = {"min", "max"};
    // The default bound is the largest finite float, so infinities are clipped.
    constexpr float kLast = std::numeric_limits<float>::max();
    for (int i = 0; i < 2; ++i) {
      ONCILLA_ASSIGN(const float value, b.Float(kNames[i], i == 0 ? -kLast : kLast));
      ONCILLA_ASSIGN(bounds[i], b.Scalar(b.dtype(), static_cast<double>(value)));
    }
  }
  return One(b.Add("Clip", {}, {b.in(0), bounds[0], bounds[1]}));
}

Result<Values> AddCast(OnnxLowering& b, DType to) {
  const DType from = b.dtype();
  if (from == to) return One(b.Add("Identity", {}, {b.in(0)}));
  const auto stored = [](DType t) { return IsSmallInteger(t) || IsSmallFloat(t); };
  if (to == DType::kString) {
    ValueId x = b.in(0);
    if (stored(from)) {
      // Numbers of few bits are formatted as those of a wider type that holds them all.
      const DType wide = IsSmallFloat(from)                         ? DType::kF32
                         : from == DType::kU4 || from == DType::kU2 ? DType::kU8
                                                                    : DType::kI8;
      ONCILLA_ASSIGN(x, b.Add("CastStored", CastStoredAttrs{.to = wide}, {x}, "wide"));
    }
    return One(b.Add("FormatNumbers", {}, {x}));
  }
  ValueId x = b.in(0);
  if (from == DType::kString) {
    if (to != DType::kBool && !stored(to)) {
      return One(b.Add(ParseNumbersAttrs{.to = to}, {x}));
    }
    // A bool is true if the number is not 0, as in ONNX Runtime.
    ONCILLA_ASSIGN(x, b.Add(ParseNumbersAttrs{.to = DType::kF32}, {x}, "numbers"));
  }
  if (!stored(from) && !stored(to)) return One(b.Add(CastAttrs{to}, {x}));
  CastStoredAttrs attrs;
  attrs.to = to;
  ONCILLA_ASSIGN(attrs.saturate, b.Flag("saturate", true));
  if (b.version() >= 24) {
    ONCILLA_ASSIGN(attrs.round, b.String("round_mode", "up"));
  }
  return One(b.Add("CastStored", attrs, {x}));
}

Result<Values> LowerCast(OnnxLowering& b) {
  b.Ignore("saturate");  // both only concern floats of 8 and 4 bits
  if (b.version() >= 24) b.Ignore("round_mode");
  if (!b.HasAttr("to")) return DataLoss("attribute 'to' is missing");
  if (b.version() < 6) {  // a name instead of a number
    ONCILLA_ASSIGN(const std::string name, b.String("to", ""));
    constexpr int64_t kTypesThen = 16;
    for (int64_t type = 1; type <= kTypesThen; ++type) {
      if (OnnxTypeName(type) == name) return AddCast(b, DTypeFromOnnx(type));
    }
    return Unsupported("to ", name);
  }
  ONCILLA_ASSIGN(const DType to, b.Type("to", DType::kInvalid));
  return AddCast(b, to);
}

Result<Values> LowerCastLike(OnnxLowering& b) {
  b.Ignore("saturate");
  if (b.version() >= 24) b.Ignore("round_mode");
  return AddCast(b, b.dtype(1));
}

// Reinterprets the bits as a type of the same width.
Result<Values> LowerBitCast(OnnxLowering& b) {
  if (!b.HasAttr("to")) return DataLoss("attribute 'to' is missing");
  ONCILLA_ASSIGN(const DType to, b.Type("to", DType::kInvalid));
  const DType from = b.dtype();
  if (from == DType::kString || to == DType::kString || BitsOf(from) != BitsOf(to)) {
    return InvalidArgument("the bits of ", from, " are not those of ", to);
  }
  if (from == to) return One(b.Add("Identity", {}, {b.in(0)}));
  // The bits of a bool are 0 or 1, so this is a cast.
  if (from == DType::kBool) return One(b.Add(CastAttrs{to}, {b.in(0)}));
  if (to == DType::kBool) return Unsupported("to bool");
  return One(b.Add(BitcastAttrs{to}, {b.in(0)}));
}

// The input in a type that ops can compute with: 8-bit floats are widened.
Result<ValueId> Computable(OnnxLowering& b) {
  if (!IsSmallFloat(b.dtype())) return b.in(0);
  return b.Add("CastStored", CastStoredAttrs{.to = DType::kF32}, {b.in(0)}, "wide");
}

Result<Values> LowerIsInf(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool negative, b.Flag("detect_negative", true));
  ONCILLA_ASSIGN(const bool positive, b.Flag("detect_positive", true));
  ONCILLA_ASSIGN(const ValueId x, Computable(b));
  return One(b.Add(IsInfAttrs{.negative = negative, .positive = positive}, {x}));
}

Result<Values> LowerIsNan(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, Computable(b));
  return One(b.Add("IsNaN", {}, {x}));
}

// Moves x towards zero by `bias`; zero within [-lambd, lambd].
Result<Values> LowerShrink(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float lambd, b.Float("lambd", 0.5f));
  ONCILLA_ASSIGN(const float bias, b.Float("bias", 0));
  const DType dtype = b.dtype(), compute = IsFloat(dtype) ? dtype : DType::kF64;
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), compute, "x"));
  ONCILLA_ASSIGN(const ValueId low, b.Scalar(compute, -static_cast<double>(lambd)));
  ONCILLA_ASSIGN(const ValueId high, b.Scalar(compute, static_cast<double>(lambd)));
  ONCILLA_ASSIGN(const ValueId offset, b.Scalar(compute, static_cast<double>(bias)));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(compute, 0));
  ONCILLA_ASSIGN(const ValueId below, b.Add("Less", {}, {x, low}, "below"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {x, high}, "above"));
  ONCILLA_ASSIGN(const ValueId raised, b.Add("Add", {}, {x, offset}, "raised"));
  ONCILLA_ASSIGN(const ValueId lowered, b.Add("Sub", {}, {x, offset}, "lowered"));
  ONCILLA_ASSIGN(const ValueId upper, b.Add("Where", {}, {above, lowered, zero}, "upper"));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add("Where", {}, {below, raised, upper}, compute == dtype ? "" : "y"));
  return One(b.Cast(y, dtype, ""));
}

// Types without arithmetic are selected as bytes, or as a wider type that holds them.
Result<Values> LowerWhere(OnnxLowering& b) {
  const DType dtype = b.dtype(1);
  if (!IsSmallInteger(dtype) && !IsSmallFloat(dtype)) {
    return One(Choose(b, b.in(0), b.in(1), b.in(2)));
  }
  if (b.dtype(2) != dtype) return InvalidArgument("of ", dtype, " and ", b.dtype(2));
  const bool packed = IsPacked(dtype);
  DType held = DType::kU8;
  if (IsSmallInteger(dtype)) held = DType::kI8;
  if (packed && IsSmallFloat(dtype)) held = DType::kF32;
  const auto as = [&](ValueId x, DType to, const char* role) {
    return packed ? b.Add("CastStored", CastStoredAttrs{.to = to}, {x}, role)
                  : b.Add(BitcastAttrs{to}, {x}, role);
  };
  ONCILLA_ASSIGN(const ValueId x, as(b.in(1), held, "x"));
  ONCILLA_ASSIGN(const ValueId y, as(b.in(2), held, "y"));
  ONCILLA_ASSIGN(const ValueId chosen, b.Add("Where", {}, {b.in(0), x, y}, "chosen"));
  return One(as(chosen, dtype, ""));
}

constexpr OnnxOpRow kRows[] = {
    // One input.
    {"Abs", 1, kNewestOnnxOpset, 1, "Abs"},
    {"Acos", 7, kNewestOnnxOpset, 1, "Acos"},
    {"Acosh", 9, kNewestOnnxOpset, 1, "Acosh"},
    {"Asin", 7, kNewestOnnxOpset, 1, "Asin"},
    {"Asinh", 9, kNewestOnnxOpset, 1, "Asinh"},
    {"Atan", 7, kNewestOnnxOpset, 1, "Atan"},
    {"Atanh", 9, kNewestOnnxOpset, 1, "Atanh"},
    {"BitCast", 26, kNewestOnnxOpset, 1, "", LowerBitCast},
    {"BitwiseNot", 18, kNewestOnnxOpset, 1, "BitNot"},
    {"Ceil", 1, kNewestOnnxOpset, 1, "Ceil"},
    {"Cos", 7, kNewestOnnxOpset, 1, "Cos"},
    {"Cosh", 9, kNewestOnnxOpset, 1, "Cosh"},
    {"Erf", 9, kNewestOnnxOpset, 1, "Erf"},
    {"Exp", 1, kNewestOnnxOpset, 1, "Exp"},
    {"Floor", 1, kNewestOnnxOpset, 1, "Floor"},
    {"IsInf", 10, kNewestOnnxOpset, 1, "", LowerIsInf},
    {"IsNaN", 9, kNewestOnnxOpset, 1, "", LowerIsNan},
    {"Log", 1, kNewestOnnxOpset, 1, "Log"},
    {"Neg", 1, kNewestOnnxOpset, 1, "Neg"},
    {"Not", 1, kNewestOnnxOpset, 1, "Not"},
    {"Reciprocal", 1, kNewestOnnxOpset, 1, "Reciprocal"},
    {"Round", 11, kNewestOnnxOpset, 1, "Round"},
    {"Shrink", 9, kNewestOnnxOpset, 1, "", LowerShrink},
    {"Sign", 9, kNewestOnnxOpset, 1, "Sign"},
    {"Sin", 7, kNewestOnnxOpset, 1, "Sin"},
    {"Sinh", 9, kNewestOnnxOpset, 1, "Sinh"},
    {"Sqrt", 1, kNewestOnnxOpset, 1, "Sqrt"},
    {"Tan", 7, kNewestOnnxOpset, 1, "Tan"},
    // Two inputs.
    {"Add", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"And", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"BitShift", 11, kNewestOnnxOpset, 2, "", LowerBitShift},
    {"BitwiseAnd", 18, kNewestOnnxOpset, 2, "", LowerBinary},
    {"BitwiseOr", 18, kNewestOnnxOpset, 2, "", LowerBinary},
    {"BitwiseXor", 18, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Div", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Equal", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Greater", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"GreaterOrEqual", 12, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Less", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"LessOrEqual", 12, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Mod", 10, kNewestOnnxOpset, 2, "", LowerMod},
    {"Mul", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Or", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Pow", 1, kNewestOnnxOpset, 2, "", LowerPow},
    {"Sub", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    {"Xor", 1, kNewestOnnxOpset, 2, "", LowerBinary},
    // All others.
    {"Cast", 1, kNewestOnnxOpset, 1, "", LowerCast},
    {"CastLike", 15, kNewestOnnxOpset, 2, "", LowerCastLike},
    {"Clip", 1, kNewestOnnxOpset, 1, "", LowerClip},
    {"Max", 1, kNewestOnnxOpset, 1, "", LowerVariadic},
    {"Mean", 1, kNewestOnnxOpset, 1, "", LowerVariadic},
    {"Min", 1, kNewestOnnxOpset, 1, "", LowerVariadic},
    {"Sum", 1, kNewestOnnxOpset, 1, "", LowerVariadic},
    {"Where", 9, kNewestOnnxOpset, 3, "", LowerWhere},
};

}  // namespace

std::span<const OnnxOpRow> OnnxElementwiseRows() { return kRows; }

}  // namespace oncilla
