// Arithmetic and comparisons of two quantised inputs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/import/tflite/ops/quantize_fixed.h"
#include "engine/import/tflite/ops/quantize_lookup.h"
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

float ScaleOf(const TfliteTensor& tensor) { return tensor.quantization.scale[0]; }

// Both operands in units of twice the larger scale, with `bits` additional fractional bits.
struct Parts {
  ValueId values[2] = {kNoValue, kNoValue};
  double scale = 0;  // twice the larger scale
};
Result<Parts> AddParts(TfliteLowering& b, int bits) {
  Parts out;
  out.scale = 2 * double{std::max(ScaleOf(b.tensor(0)), ScaleOf(b.tensor(1)))};
  for (size_t i = 0; i < 2; ++i) {
    RequantizeAttrs attrs;
    attrs.x_zero = TfliteZeroOf(b.tensor(i));
    attrs.left_shift = bits;
    ONCILLA_ASSIGN(out.values[i],
                   TfliteFixed(b, b.in(i), {double{ScaleOf(b.tensor(i))} / out.scale}, attrs,
                               DType::kI32, 0, StrCat("part", i)));
  }
  return out;
}

// 16-bit integers whose scales are powers of two: the operand with the smaller scale is shifted to
// the scale of the other operand, which is also the output's.
Result<Values> AddShiftedSum(TfliteLowering& b, std::string_view canonical, const int* exponents,
                             int64_t activation) {
  ValueId parts[2];
  int moved = 0;
  for (size_t i = 0; i < 2; ++i) {
    const int by = exponents[2] - exponents[i];
    if (by < 0 || by > 31) return Unsupported("with scales that are powers of two and differ so");
    moved += by > 0 ? 1 : 0;
    if (by == 0) {
      ONCILLA_ASSIGN(parts[i], b.Cast(b.in(i), DType::kI32, StrCat("part", i)));
      continue;
    }
    ONCILLA_ASSIGN(Tensor table, TfliteTableOf(b.dtype(i), DType::kI32, [&](int64_t x) {
                     return DivideByPowerOfTwo(x, by);
                   }));
    ONCILLA_ASSIGN(parts[i], TfliteLookup(b, b.in(i), std::move(table), StrCat("part", i)));
  }
  if (moved > 1) return Unsupported("with scales that are powers of two and all differ");
  ONCILLA_ASSIGN(const ValueId sum, b.Add(canonical, {}, {parts[0], parts[1]}, "sum"));
  ONCILLA_ASSIGN(const TfliteIntegers range,
                 TfliteActivated(b.output_tensor(), b.output_type(), activation));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kI32, range.least));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kI32, range.most));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {sum, least, most}, "cut"));
  return One(b.Cast(cut, b.output_type(), ""));
}

// The number of leading bits equal to the sign, not counting the sign bit itself.
int HeadroomOf(int32_t x) { return std::countl_zero(static_cast<uint32_t>(x < 0 ? ~x : x)) - 1; }

// x / y of stored integers minus their zero points, where y is not zero.
int64_t Quotient(int32_t x, int32_t y, const TfliteFixedPoint& factor) {
  if (y < 0) {
    x = -x;
    y = -y;
  }
  const FixedReciprocal inverse = ReciprocalOf(y, 31);
  const int room = HeadroomOf(x);
  const int32_t fine = MultiplyFixed(x, inverse.raw, room);
  const int shift = factor.shift - inverse.bits - room;
  const int32_t high = MultiplyFixed(fine, factor.multiplier, 0);
  // A left shift, for which LiteRT leaves overflow undefined, saturates here.
  if (shift > 0)
    return std::clamp<int64_t>(int64_t{high} << std::min(shift, 31), -1 << 30, 1 << 30);
  return DivideByPowerOfTwo(high, std::min(-shift, 62));
}

}  // namespace

Result<Values> LowerQuantisedSum(TfliteLowering& b, std::string_view canonical, bool powers_of_two,
                                 int64_t activation) {
  ONCILLA_TRY(CheckTfliteIntegers(b, 2));
  const bool wide = b.output_type() == DType::kI16;
  int exponents[3] = {};
  bool powers = wide && powers_of_two;
  for (size_t i = 0; i < 3; ++i) {
    const TfliteTensor& tensor = i < 2 ? b.tensor(i) : b.output_tensor();
    powers &= std::frexp(ScaleOf(tensor), &exponents[i]) == 0.5f;
  }
  if (powers) return AddShiftedSum(b, canonical, exponents, activation);
  const int bits = wide ? 15 : 20;
  ONCILLA_ASSIGN(const Parts parts, AddParts(b, bits));
  ONCILLA_ASSIGN(const ValueId sum,
                 b.Add(canonical, {}, {parts.values[0], parts.values[1]}, "sum"));
  const float steps = static_cast<float>(1 << bits) * ScaleOf(b.output_tensor());
  return One(TfliteRequantised(b, sum, {parts.scale / double{steps}}, activation));
}

Result<Values> LowerQuantisedProduct(TfliteLowering& b, int64_t activation) {
  ONCILLA_TRY(CheckTfliteIntegers(b, 2));
  ONCILLA_ASSIGN(const ValueId x, TfliteMoved(b, 0));
  ONCILLA_ASSIGN(const ValueId y, TfliteMoved(b, 1));
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {x, y}, "product"));
  const float factor = ScaleOf(b.tensor(0)) * ScaleOf(b.tensor(1)) / ScaleOf(b.output_tensor());
  return One(TfliteRequantised(b, product, {double{factor}}, activation));
}

namespace {

// Quotient() as graph nodes, for 16-bit integers: its steps that depend on one operand become
// tables, the others are 64-bit arithmetic.
class WideQuotient {
 public:
  explicit WideQuotient(TfliteLowering& b) : b_(b) {}

  Result<ValueId> Of(ValueId x, ValueId y, const TfliteFixedPoint& factor) {
    ONCILLA_TRY(FillTables(factor.shift));
    const auto at = [&](const char* role, const std::vector<int64_t>& table, ValueId place) {
      const ValueId list = b_.Ints(table);
      return b_.Add(GatherAttrs{.negative_indices = false}, {list, place}, role);
    };
    ONCILLA_ASSIGN(const ValueId middle, Number(1 << 15));
    ONCILLA_ASSIGN(const ValueId y_place, b_.Add("Add", {}, {y, middle}, "y_place"));
    ONCILLA_ASSIGN(const ValueId sign, at("y_sign", y_sign_, y_place));
    ONCILLA_ASSIGN(const ValueId inverse, at("y_inverse", y_inverse_, y_place));
    ONCILLA_ASSIGN(const ValueId y_shift, at("y_shift", y_shift_, y_place));
    ONCILLA_ASSIGN(const ValueId turned, b_.Add("Mul", {}, {x, sign}, "turned"));
    ONCILLA_ASSIGN(const ValueId x_place, b_.Add("Add", {}, {turned, middle}, "x_place"));
    ONCILLA_ASSIGN(const ValueId full, at("x_full", x_full_, x_place));
    ONCILLA_ASSIGN(const ValueId x_room, at("x_room", x_room_, x_place));
    ONCILLA_ASSIGN(const ValueId fine, Times(full, inverse, "fine"));
    ONCILLA_ASSIGN(const ValueId multiplier, Number(factor.multiplier));
    ONCILLA_ASSIGN(const ValueId high, Times(fine, multiplier, "high"));
    ONCILLA_ASSIGN(const ValueId shift, b_.Add("Sub", {}, {y_shift, x_room}, "shift"));
    return Shifted(high, shift);
  }

 private:
  // With larger shifts, nothing remains of 32 bits.
  static constexpr int64_t kMostRight = 40, kMostLeft = 31;

  Result<ValueId> Number(int64_t value) {
    return b_.Scalar(DType::kI64, static_cast<double>(value));
  }

  Status FillTables(int factor_shift) {
    constexpr int64_t kLeast = -(1 << 15), kMost = 1 << 15;
    for (int64_t v = kLeast; v <= kMost; ++v) {
      const auto narrow = static_cast<int32_t>(v);
      const FixedReciprocal inverse =
          v == 0 ? FixedReciprocal() : ReciprocalOf(std::abs(narrow), 31);
      y_sign_.push_back(v < 0 ? -1 : 1);
      y_inverse_.push_back(inverse.raw);
      y_shift_.push_back(factor_shift - inverse.bits);
      const int room = HeadroomOf(narrow);
      x_full_.push_back(static_cast<int32_t>(static_cast<uint32_t>(narrow) << room));
      x_room_.push_back(room);
    }
    return {};
  }

  // The upper half of twice a product, rounded.
  Result<ValueId> Times(ValueId x, ValueId y, const std::string& role) {
    ONCILLA_ASSIGN(const ValueId half, Number(1 << 30));
    ONCILLA_ASSIGN(const ValueId by, Number(int64_t{1} << 31));
    ONCILLA_ASSIGN(const ValueId product, b_.Add("Mul", {}, {x, y}, role + "_product"));
    ONCILLA_ASSIGN(const ValueId moved, b_.Add("Add", {}, {product, half}, role + "_moved"));
    return b_.Add("FloorDiv", {}, {moved, by}, role);
  }

  // x * 2^shift. Left shifts saturate; right shifts round, with ties away from zero.
  Result<ValueId> Shifted(ValueId x, ValueId shift) {
    std::vector<int64_t> left, right;
    for (int64_t by = -kMostRight; by <= kMostLeft; ++by) {
      left.push_back(int64_t{1} << std::max<int64_t>(by, 0));
      right.push_back(int64_t{1} << std::max<int64_t>(-by, 0));
    }
    ONCILLA_ASSIGN(const ValueId least, Number(-kMostRight));
    ONCILLA_ASSIGN(const ValueId most, Number(kMostLeft));
    ONCILLA_ASSIGN(const ValueId cut, b_.Add("Clip", {}, {shift, least, most}, "shift_cut"));
    ONCILLA_ASSIGN(const ValueId place, b_.Add("Sub", {}, {cut, least}, "shift_place"));
    const GatherAttrs gather = {.negative_indices = false};
    ONCILLA_ASSIGN(const ValueId up, b_.Add(gather, {b_.Ints(left), place}, "up"));
    ONCILLA_ASSIGN(const ValueId down, b_.Add(gather, {b_.Ints(right), place}, "down"));
    ONCILLA_ASSIGN(const ValueId sign, b_.Add("Sign", {}, {x}, "sign"));
    ONCILLA_ASSIGN(const ValueId size, b_.Add("Abs", {}, {x}, "size"));
    ONCILLA_ASSIGN(const ValueId large, b_.Add("Mul", {}, {size, up}, "large"));
    ONCILLA_ASSIGN(const ValueId one, Number(1 << 30));
    ONCILLA_ASSIGN(const ValueId held, b_.Add("Min", {}, {large, one}, "held"));
    // (2 |x| + 2^by) / 2^(by + 1), which is |x| if `by` is 0.
    ONCILLA_ASSIGN(const ValueId two, Number(2));
    ONCILLA_ASSIGN(const ValueId twice, b_.Add("Mul", {}, {size, two}, "twice"));
    ONCILLA_ASSIGN(const ValueId above, b_.Add("Add", {}, {twice, down}, "above"));
    ONCILLA_ASSIGN(const ValueId steps, b_.Add("Mul", {}, {down, two}, "steps"));
    ONCILLA_ASSIGN(const ValueId small, b_.Add("FloorDiv", {}, {above, steps}, "small"));
    ONCILLA_ASSIGN(const ValueId none, Number(0));
    ONCILLA_ASSIGN(const ValueId grows, b_.Add("Greater", {}, {shift, none}, "grows"));
    ONCILLA_ASSIGN(const ValueId moved, b_.Add("Where", {}, {grows, held, small}, "moved"));
    return b_.Add("Mul", {}, {moved, sign}, "quotient");
  }

  TfliteLowering& b_;
  // Tables by the operand plus 2^15.
  std::vector<int64_t> y_sign_, y_inverse_, y_shift_, x_full_, x_room_;
};

Result<Values> LowerWideQuotient(TfliteLowering& b, int64_t activation) {
  ONCILLA_TRY(CheckTfliteIntegers(b, 2));
  const TfliteTensor& to = b.output_tensor();
  const float scale = ScaleOf(b.tensor(0)) / (ScaleOf(b.tensor(1)) * ScaleOf(to));
  ONCILLA_ASSIGN(const TfliteFixedPoint factor, TfliteFixedPointOf(double{scale}));
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteActivated(to, b.output_type(), activation));
  ONCILLA_TRY(TfliteRequireNotZero(b, 1));
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kI64, "x"));
  ONCILLA_ASSIGN(const ValueId y, b.Cast(b.in(1), DType::kI64, "y"));
  ONCILLA_ASSIGN(const ValueId quotient, WideQuotient(b).Of(x, y, factor));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kI64, range.least));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kI64, range.most));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {quotient, least, most}, "cut"));
  return One(b.Cast(cut, b.output_type(), ""));
}

}  // namespace

// A table with the quotient of every pair of bytes.
Result<Values> LowerQuantisedQuotient(TfliteLowering& b, int64_t activation) {
  if (b.output_type() == DType::kI16) return LowerWideQuotient(b, activation);
  ONCILLA_TRY(CheckTfliteBytes(b, 2));
  const TfliteTensor &x = b.tensor(0), &y = b.tensor(1), &to = b.output_tensor();
  ONCILLA_ASSIGN(const TfliteFixedPoint factor,
                 TfliteFixedPointOf(double{ScaleOf(x) / (ScaleOf(y) * ScaleOf(to))}));
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteActivated(to, b.output_type(), activation));
  const int64_t x_zero = TfliteZeroOf(x), y_zero = TfliteZeroOf(y), zero = TfliteZeroOf(to);
  const bool is_signed = IsSigned(b.dtype());
  const auto stored = [&](int64_t bits) { return is_signed && bits > 127 ? bits - 256 : bits; };
  ONCILLA_ASSIGN(Tensor table, Tensor::Allocate({b.output_type(), {65536}}));
  const std::span<std::byte> cells = table.mutable_bytes();
  for (int64_t at = 0; at < 65536; ++at) {
    const int64_t above = stored(at >> 8) - x_zero, below = stored(at & 255) - y_zero;
    int64_t value = zero;  // kept for a divisor of zero, which fails the run
    if (below != 0) {
      value += Quotient(static_cast<int32_t>(above), static_cast<int32_t>(below), factor);
    }
    value = std::clamp(value, static_cast<int64_t>(range.least), static_cast<int64_t>(range.most));
    cells[static_cast<size_t>(at)] = static_cast<std::byte>(value & 255);
  }
  ValueId bits[2];
  for (size_t i = 0; i < 2; ++i) {
    bits[i] = b.in(i);
    if (is_signed) {
      ONCILLA_ASSIGN(bits[i], b.Add(BitcastAttrs{.to = DType::kU8}, {b.in(i)}, StrCat("bits", i)));
    }
    ONCILLA_ASSIGN(bits[i], b.Cast(bits[i], DType::kI32, StrCat("wide", i)));
  }
  ONCILLA_ASSIGN(const ValueId row, b.Scalar(DType::kI32, 256));
  ONCILLA_ASSIGN(const ValueId begin, b.Add("Mul", {}, {bits[0], row}, "row"));
  ONCILLA_ASSIGN(const ValueId place, b.Add("Add", {}, {begin, bits[1]}, "place"));
  ONCILLA_TRY(TfliteRequireNotZero(b, 1));
  return One(b.Add(GatherAttrs{.negative_indices = false}, {b.Constant(std::move(table)), place}));
}

// The slope has the type of x, or 8 bits if x has 16.
Result<Values> LowerQuantisedPRelu(TfliteLowering& b) {
  const TfliteTensor &from = b.tensor(0), &slope = b.tensor(1), &to = b.output_tensor();
  const DType type = b.output_type(), with = type == DType::kI16 ? DType::kI8 : type;
  if (b.dtype(0) != type || b.dtype(1) != with || !IsQuantised(from) || !IsQuantised(slope) ||
      !IsQuantised(to)) {
    return Unsupported("of ", b.dtype(0), " with slopes of ", b.dtype(1));
  }
  for (const TfliteTensor* tensor : {&from, &slope, &to}) {
    ONCILLA_TRY(CheckTfliteScales(*tensor));
    if (tensor->quantization.scale.size() != 1) return Unsupported("with a scale for each channel");
  }
  ONCILLA_ASSIGN(const ValueId x, TfliteMoved(b, 0));
  ONCILLA_ASSIGN(const ValueId alpha, TfliteMoved(b, 1));
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {x, alpha}, "product"));
  const float above = ScaleOf(from) / ScaleOf(to);
  const float below = ScaleOf(from) * ScaleOf(slope) / ScaleOf(to);
  const int64_t zero = TfliteZeroOf(to);
  ONCILLA_ASSIGN(const ValueId high, TfliteFixed(b, x, {double{above}}, {}, type, zero, "above"));
  ONCILLA_ASSIGN(const ValueId low,
                 TfliteFixed(b, product, {double{below}}, {}, type, zero, "below"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kI32, 0));
  ONCILLA_ASSIGN(const ValueId positive, b.Add("GreaterEqual", {}, {x, none}, "positive"));
  return One(b.Add("Where", {}, {positive, high, low}));
}

Result<Values> LowerQuantisedSquaredDifference(TfliteLowering& b) {
  ONCILLA_TRY(CheckTfliteBytes(b, 2));
  if (b.dtype() != DType::kI8) return Unsupported("of ", b.dtype());
  constexpr int kBits = 7;
  ONCILLA_ASSIGN(const Parts parts, AddParts(b, kBits));
  ONCILLA_ASSIGN(const ValueId difference,
                 b.Add("Sub", {}, {parts.values[0], parts.values[1]}, "difference"));
  ONCILLA_ASSIGN(const ValueId square, b.Add("Mul", {}, {difference, difference}, "square"));
  const float steps = static_cast<float>(1 << (2 * kBits)) * ScaleOf(b.output_tensor());
  return One(TfliteRequantised(b, square, {parts.scale * parts.scale / double{steps}}, 0));
}

// Compares integers in units of 2^-8 of a real number, as LiteRT does for bytes.
Result<Values> LowerQuantisedComparison(TfliteLowering& b) {
  constexpr struct {
    std::string_view op, canonical;
  } kOps[] = {{"EQUAL", "Equal"}, {"GREATER", "Greater"},      {"GREATER_EQUAL", "GreaterEqual"},
              {"LESS", "Less"},   {"LESS_EQUAL", "LessEqual"}, {"NOT_EQUAL", "NotEqual"}};
  const auto* row =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& r) { return r.op == b.op(); });
  const bool bytes = b.dtype() == DType::kI8 || b.dtype() == DType::kU8;
  if (row == std::end(kOps) || b.dtype(0) != b.dtype(1) || !(bytes || b.dtype() == DType::kI16) ||
      !IsQuantised(b.tensor(0)) || !IsQuantised(b.tensor(1))) {
    return Unsupported("of quantised tensors (", b.QuantisedTypes(), ")");
  }
  for (size_t i = 0; i < 2; ++i) {
    ONCILLA_TRY(CheckTfliteScales(b.tensor(i)));
    if (b.tensor(i).quantization.scale.size() != 1) {
      return Unsupported("with a scale for each channel of a tensor");
    }
  }
  const bool same = SameQuantisation(b.tensor(0), b.tensor(1));
  if (!bytes) {
    if (!same) return Unsupported("of 16 bits whose scales differ");
    return One(b.Add(row->canonical, {}, {b.in(0), b.in(1)}));
  }
  ValueId parts[2];
  for (size_t i = 0; i < 2; ++i) {
    RequantizeAttrs attrs;
    attrs.x_zero = TfliteZeroOf(b.tensor(i));
    attrs.left_shift = 8;
    ONCILLA_ASSIGN(parts[i], TfliteFixed(b, b.in(i), {double{ScaleOf(b.tensor(i))}}, attrs,
                                         DType::kI32, 0, StrCat("part", i)));
  }
  return One(b.Add(row->canonical, {}, {parts[0], parts[1]}));
}

}  // namespace oncilla
