// Elementwise ops of StableHLO.
#include <algorithm>
#include <array>

#include "engine/import/stablehlo/builder.h"
#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

struct Same {
  std::string_view op, canonical, truth;  // of numbers, and of truth values
};
// Ops that are one canonical op.
constexpr Same kSame[] = {
    {"abs", "Abs", ""},
    {"add", "Add", "Or"},
    {"and", "BitAnd", "And"},
    {"atan2", "Atan2", ""},
    {"ceil", "Ceil", ""},
    {"cosine", "Cos", ""},
    {"exponential", "Exp", ""},
    {"exponential_minus_one", "Expm1", ""},
    {"floor", "Floor", ""},
    {"is_finite", "IsFinite", ""},
    {"log", "Log", ""},
    {"log_plus_one", "Log1p", ""},
    {"logistic", "Sigmoid", ""},
    {"maximum", "Max", "Or"},
    {"minimum", "Min", "And"},
    {"multiply", "Mul", "And"},
    {"negate", "Neg", ""},
    {"not", "BitNot", "Not"},
    {"or", "BitOr", "Or"},
    {"power", "Pow", ""},
    {"round_nearest_afz", "RoundAway", ""},
    {"round_nearest_even", "Round", ""},
    {"rsqrt", "Rsqrt", ""},
    {"select", "Where", "Where"},
    {"shift_left", "ShiftLeft", ""},
    {"sign", "Sign", ""},
    {"sine", "Sin", ""},
    {"sqrt", "Sqrt", ""},
    {"subtract", "Sub", ""},
    {"tan", "Tan", ""},
    {"tanh", "Tanh", ""},
    {"xor", "BitXor", "Xor"},
};

// Functions that are written as calls of this name, with "mhlo." or "chlo." before it.
constexpr Same kCalled[] = {
    {"acos", "Acos", ""}, {"acosh", "Acosh", ""}, {"asin", "Asin", ""},     {"asinh", "Asinh", ""},
    {"atan", "Atan", ""}, {"atanh", "Atanh", ""}, {"cosh", "Cosh", ""},     {"erf", "Erf", ""},
    {"erfc", "Erfc", ""}, {"sinh", "Sinh", ""},   {"square", "Square", ""}, {"tan", "Tan", ""},
};

// Ops that take several nodes.
constexpr std::string_view kComposed[] = {"cbrt",
                                          "clamp",
                                          "compare",
                                          "convert",
                                          "count_leading_zeros",
                                          "divide",
                                          "popcnt",
                                          "reduce_precision",
                                          "remainder",
                                          "shift_right_arithmetic",
                                          "shift_right_logical"};

const Same* FindSame(std::string_view op) {
  for (const Same& row : kSame) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

std::string_view CalledName(const HloOp& op, const HloModule& source) {
  const std::string_view attr = op.name == "custom_call" ? "call_target_name" : "name";
  if (op.name != "custom_call" && op.name != "composite") return "";
  const Result<std::string_view> name = source.Text(op, attr);
  if (!name.ok()) return "";
  if (name->starts_with("mhlo.") || name->starts_with("chlo.")) return name->substr(5);
  return "";
}

const Same* FindCalled(const HloOp& op, const HloModule& source) {
  const std::string_view name = CalledName(op, source);
  if (name.empty() || op.operands.size() != 1) return nullptr;
  for (const Same& row : kCalled) {
    if (row.op == name) return &row;
  }
  return nullptr;
}

DType Unsigned(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return DType::kU8;
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return DType::kU16;
    case DType::kI32:
    case DType::kF32:
      return DType::kU32;
    case DType::kI64:
    case DType::kF64:
      return DType::kU64;
    default:
      return dtype;
  }
}
DType Signed(DType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return DType::kI8;
    case 16:
      return DType::kI16;
    case 32:
      return DType::kI32;
    default:
      return DType::kI64;
  }
}

Result<ValueId> As(HloNode& b, ValueId x, DType to, std::string_view role) {
  if (b.fact(x).dtype == to) return x;
  return b.Add(BitcastAttrs{.to = to}, {x}, role);
}

// A number of all the bits of an integer type.
ValueId BitsValue(HloNode& b, DType dtype, uint64_t bits) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(bits >> (8 * i));
  const auto size = static_cast<size_t>(BytesOf(dtype));
  return b.Constant(Tensor::Copy({dtype, {}}, std::span(bytes).first(size)));
}

// Shifts of signed numbers as if they had no sign, and of others as if they had one.
Result<Values> LowerShift(HloNode& b) {
  const DType dtype = b.dtype(),
              as = b.op().name == "shift_right_logical" ? Unsigned(dtype) : Signed(dtype);
  ONCILLA_ASSIGN(const ValueId x, As(b, b.in(0), as, "bits"));
  ONCILLA_ASSIGN(ValueId count, As(b, b.in(1), as, "count"));
  if (b.op().name == "shift_right_arithmetic") {
    // A count beyond the width leaves nothing but the sign.
    ONCILLA_ASSIGN(const ValueId wide, As(b, b.in(1), Unsigned(dtype), "wide_count"));
    ONCILLA_ASSIGN(const ValueId most, b.Scalar(Unsigned(dtype), BitsOf(dtype) - 1));
    ONCILLA_ASSIGN(const ValueId cut, b.Add("Min", AttrMap(), {wide, most}, "count_cut"));
    ONCILLA_ASSIGN(count, As(b, cut, as, "count"));
  }
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add("ShiftRight", AttrMap(), {x, count}, as == dtype ? "" : "shifted"));
  return One(As(b, y, dtype, ""));
}

bool HasNoZero(const Fact& divisor) {
  if (!divisor.has_value()) return false;
  const Result<std::vector<int64_t>> values = ToInt64s(divisor.value);
  return values.ok() && std::find(values->begin(), values->end(), 0) == values->end();
}

// Division of integers by zero gives -1, and the remainder is the dividend.
Result<Values> LowerDivide(HloNode& b) {
  const bool divides = b.op().name == "divide";
  const std::string_view op = divides ? "Div" : "TruncMod";
  const DType dtype = b.dtype();
  if (!IsInteger(dtype) || HasNoZero(b.in_fact(1))) {
    return One(b.Add(op, AttrMap(), {b.in(0), b.in(1)}));
  }
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(dtype, 1));
  ONCILLA_ASSIGN(const ValueId none, b.Add("Equal", AttrMap(), {b.in(1), zero}, "zero"));
  ONCILLA_ASSIGN(const ValueId by, b.Add("Where", AttrMap(), {none, one, b.in(1)}, "by"));
  ONCILLA_ASSIGN(const ValueId y, b.Add(op, AttrMap(), {b.in(0), by}, "quotient"));
  const ValueId instead = divides ? BitsValue(b, dtype, ~uint64_t{0}) : b.in(0);
  return One(b.Add("Where", AttrMap(), {none, instead, y}));
}

// The bits of floats as integers in the order of the floats: NaNs at the ends, -0 before 0.
Result<ValueId> TotalOrder(HloNode& b, ValueId x, std::string_view role) {
  const DType as = Signed(b.fact(x).dtype);
  const std::string name(role);
  ONCILLA_ASSIGN(const ValueId bits, As(b, x, as, name + "_bits"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(as, 0));
  ONCILLA_ASSIGN(const ValueId negative,
                 b.Add("Less", AttrMap(), {bits, zero}, name + "_negative"));
  const uint64_t most = ~uint64_t{0} >> (65 - BitsOf(as));
  ONCILLA_ASSIGN(const ValueId turned,
                 b.Add("BitXor", AttrMap(), {bits, BitsValue(b, as, most)}, name + "_turned"));
  return b.Add("Where", AttrMap(), {negative, turned, bits}, name + "_order");
}

// Whether a float is one of which all NaNs have been made the same.
bool HasOneNaN(const Graph& graph, ValueId x) {
  const NodeId producer = graph.value(x).producer;
  if (producer == kNoNode) return false;
  const Node& choice = graph.node(producer);
  if (choice.op->name != "Where") return false;
  const NodeId test = graph.value(choice.inputs[0]).producer;
  if (test == kNoNode) return false;
  const Node& node = graph.node(test);
  return node.op->name == "IsNaN" ||
         (node.op->name == "NotEqual" && node.inputs[0] == node.inputs[1]);
}

constexpr std::string_view kDirections[] = {"Equal",   "NotEqual",  "GreaterEqual",
                                            "Greater", "LessEqual", "Less"};

Result<Values> LowerCompare(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t direction, b.Int("comparison_direction"));
  if (direction < 0 || direction >= 6) return DataLoss("comparison ", direction);
  const std::string_view op = kDirections[direction];
  const HloAttr* type = b.source().Find(b.op(), "compare_type");
  constexpr int64_t kTotalOrder = 2;
  ValueId x = b.in(0), y = b.in(1);
  // Within the body of a sort, which treats equal numbers and NaNs as a sort does, the plain
  // comparison says the same (engine/import/xla/sort.h).
  const bool plain = b.sorts() && HasOneNaN(b.graph(), x) && HasOneNaN(b.graph(), y);
  if (type != nullptr && type->number == kTotalOrder && IsFloat(b.dtype()) && !plain) {
    ONCILLA_ASSIGN(x, TotalOrder(b, x, "x"));
    ONCILLA_ASSIGN(y, TotalOrder(b, y, "y"));
  } else if (b.dtype() == DType::kBool && direction > 1) {
    ONCILLA_ASSIGN(x, b.Cast(x, DType::kU8, "x"));
    ONCILLA_ASSIGN(y, b.Cast(y, DType::kU8, "y"));
  }
  return One(b.Add(op, AttrMap(), {x, y}));
}

// Whether all elements are one known number.
std::optional<double> Number(const HloNode& b, size_t i) {
  const Fact& fact = b.in_fact(i);
  if (!fact.has_value() || fact.value.elements() != 1) return std::nullopt;
  const Result<std::vector<double>> values = ToDoubles(fact.value);
  return values.ok() ? std::optional<double>((*values)[0]) : std::nullopt;
}

// What an operand is the larger one of, it and zero; or kNoValue.
ValueId RectifiedInput(const HloNode& b, size_t i) {
  const NodeId producer = b.graph().value(b.in(i)).producer;
  if (producer == kNoNode) return kNoValue;
  const Node& node = b.graph().node(producer);
  return node.op->name == "Relu" ? node.inputs[0] : kNoValue;
}

Result<Values> LowerClamp(HloNode& b) {
  const std::optional<double> low = Number(b, 0), high = Number(b, 2);
  if (low == 0 && high == 6 && IsFloat(b.dtype(1))) {
    return One(b.Add("Relu6", AttrMap(), {b.in(1)}));
  }
  ONCILLA_ASSIGN(const ValueId above, b.Add("Max", AttrMap(), {b.in(1), b.in(0)}, "above"));
  return One(b.Add("Min", AttrMap(), {above, b.in(2)}));
}

Result<Values> LowerCbrt(HloNode& b) {
  ONCILLA_ASSIGN(const ValueId size, b.Add("Abs", AttrMap(), {b.in(0)}, "size"));
  ONCILLA_ASSIGN(const ValueId third, b.Scalar(b.dtype(), 1.0 / 3));
  ONCILLA_ASSIGN(const ValueId root, b.Add("Pow", AttrMap(), {size, third}, "root"));
  ONCILLA_ASSIGN(const ValueId sign, b.Add("Sign", AttrMap(), {b.in(0)}, "sign"));
  return One(b.Add("Mul", AttrMap(), {root, sign}));
}

// Counts bits in pairs, then in fours, and so on.
Result<ValueId> CountBits(HloNode& b, ValueId x, std::string_view role) {
  const DType dtype = b.fact(x).dtype;
  const auto masked = [&](ValueId value, int shift, uint64_t mask,
                          const std::string& name) -> Result<ValueId> {
    if (shift > 0) {
      ONCILLA_ASSIGN(const ValueId count, b.Scalar(dtype, shift));
      ONCILLA_ASSIGN(value, b.Add("ShiftRight", AttrMap(), {value, count}, name + "_shifted"));
    }
    return b.Add("BitAnd", AttrMap(), {value, BitsValue(b, dtype, mask)}, name);
  };
  constexpr uint64_t kMasks[] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
                                 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  int width = 1;
  for (uint64_t mask : kMasks) {
    if (width >= BitsOf(dtype)) break;
    const std::string name = StrCat(role, "_", width);
    ONCILLA_ASSIGN(const ValueId low, masked(x, 0, mask, name + "_low"));
    ONCILLA_ASSIGN(const ValueId high, masked(x, width, mask, name + "_high"));
    ONCILLA_ASSIGN(x, b.Add("Add", AttrMap(), {low, high}, name + "_sums"));
    width *= 2;
  }
  return x;
}

Result<Values> LowerBits(HloNode& b) {
  const DType dtype = b.dtype();
  if (!IsInteger(dtype) || BitsOf(dtype) < 8) return Unsupported("of ", dtype);
  ONCILLA_ASSIGN(ValueId x, As(b, b.in(0), Unsigned(dtype), "bits"));
  if (b.op().name == "count_leading_zeros") {
    // All bits below the highest one are set; those that are not set are the leading ones.
    for (int shift = 1; shift < BitsOf(dtype); shift *= 2) {
      ONCILLA_ASSIGN(const ValueId count, b.Scalar(Unsigned(dtype), shift));
      ONCILLA_ASSIGN(const ValueId moved,
                     b.Add("ShiftRight", AttrMap(), {x, count}, StrCat("moved", shift)));
      ONCILLA_ASSIGN(x, b.Add("BitOr", AttrMap(), {x, moved}, StrCat("filled", shift)));
    }
    ONCILLA_ASSIGN(x, b.Add("BitNot", AttrMap(), {x}, "leading"));
  }
  ONCILLA_ASSIGN(const ValueId count, CountBits(b, x, "count"));
  return One(As(b, count, dtype, ""));
}

Result<Values> LowerConvert(HloNode& b) {
  const DType to = b.result_type().dtype;
  if (b.dtype() == to) return Values{b.in(0)};
  return One(b.Cast(b.in(0), to, ""));
}

Result<Values> LowerPrecision(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t exponent, b.Int("exponent_bits"));
  ONCILLA_ASSIGN(const int64_t mantissa, b.Int("mantissa_bits"));
  return One(LowerXlaPrecision(b, b.in(0), exponent, mantissa));
}

}  // namespace

bool IsHloElementwise(const HloOp& op, const HloModule& source) {
  return FindSame(op.name) != nullptr || FindCalled(op, source) != nullptr ||
         std::find(std::begin(kComposed), std::end(kComposed), op.name) != std::end(kComposed);
}

Result<Values> LowerHloElementwise(HloNode& b) {
  const std::string_view op = b.op().name;
  for (size_t i = 0; i < b.inputs(); ++i) {
    if (!b.has(i)) return DataLoss("reads a token");
  }
  const Same* same = FindSame(op);
  if (same == nullptr) same = FindCalled(b.op(), b.source());
  if (same != nullptr) {
    const bool truth = b.dtype(b.inputs() - 1) == DType::kBool;
    const std::string_view name = truth ? same->truth : same->canonical;
    if (name.empty()) return Unsupported("of truth values");
    if (b.inputs() != 1 && b.inputs() != 2 && name != "Where")
      return DataLoss("takes other operands");
    // The larger of a number and zero.
    if (name == "Max" && IsFloat(b.dtype())) {
      if (Number(b, 1) == 0) return One(b.Add("Relu", AttrMap(), {b.in(0)}));
      if (Number(b, 0) == 0) return One(b.Add("Relu", AttrMap(), {b.in(1)}));
    }
    if (name == "Min" && IsFloat(b.dtype())) {
      for (size_t i = 0; i < 2; ++i) {
        const ValueId rectified = RectifiedInput(b, 1 - i);
        if (Number(b, i) != 6 || rectified == kNoValue) continue;
        return One(b.Add("Relu6", AttrMap(), {rectified}));
      }
    }
    return One(b.Add(name, AttrMap(), b.all_inputs()));
  }
  const size_t needed =
      op == "clamp"                                                                       ? 3
      : op == "compare" || op == "divide" || op == "remainder" || op.starts_with("shift") ? 2
                                                                                          : 1;
  if (b.inputs() != needed) return DataLoss("takes other operands");
  if (op == "clamp") return LowerClamp(b);
  if (op == "compare") return LowerCompare(b);
  if (op == "convert") return LowerConvert(b);
  if (op == "divide" || op == "remainder") return LowerDivide(b);
  if (op == "popcnt" || op == "count_leading_zeros") return LowerBits(b);
  if (op == "cbrt") return LowerCbrt(b);
  if (op == "reduce_precision") return LowerPrecision(b);
  return LowerShift(b);
}

}  // namespace oncilla
