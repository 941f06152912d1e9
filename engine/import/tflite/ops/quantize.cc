// TFLite's quantisation: integers that represent real numbers, real = scale * (stored -
// zero_point).
#include "engine/import/tflite/ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/tensor/dispatch.h"

namespace oncilla {

Result<ValueId> TfliteAlong(TfliteLowering& b, Tensor numbers, int32_t axis, int rank) {
  if (numbers.elements() == 1) return b.Constant(numbers.Reshaped({}));
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, rank));
  Shape shape = {numbers.elements()};
  for (int i = at + 1; i < rank; ++i) shape.push_back(1);
  return b.Constant(numbers.Reshaped(shape));
}

Status CheckTfliteScales(const TfliteTensor& tensor, bool zero_too) {
  const TfliteQuantization& q = tensor.quantization;
  if (q.block != 0) return Unsupported("weights with a scale for each block of a row");
  if (q.details != 0) return Unsupported("a quantisation of kind ", q.details);
  if (q.scale.empty()) return DataLoss("a quantised tensor without a scale");
  if (!q.zero_point.empty() && q.zero_point.size() != q.scale.size()) {
    return DataLoss("a tensor has ", q.scale.size(), " scales and ", q.zero_point.size(),
                    " zero points");
  }
  for (float scale : q.scale) {
    const bool valid = scale > 0 || (zero_too && scale == 0);
    if (!valid || !std::isfinite(scale)) return DataLoss("a scale is ", scale);
  }
  for (int64_t zero : q.zero_point) {
    if (zero < -65536 || zero > 65536) return DataLoss("a zero point is ", zero);
  }
  if (q.scale.size() == 1) return {};
  const auto rank = std::ssize(tensor.shape);
  if (q.axis < 0 || q.axis >= rank ||
      tensor.shape[static_cast<size_t>(q.axis)] != std::ssize(q.scale)) {
    return DataLoss(q.scale.size(), " scales along axis ", q.axis);
  }
  return {};
}

Result<TfliteIntegers> TfliteIntegersOf(DType dtype) {
  if (!IsInteger(dtype) || BitsOf(dtype) > 32) return Unsupported("quantised to ", dtype);
  TfliteIntegers out;
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      out.least = static_cast<double>(std::numeric_limits<T>::min());
      out.most = static_cast<double>(std::numeric_limits<T>::max());
    }
  });
  return out;
}

namespace {

// Converts from one scale to another.
Result<Values> LowerRequantize(TfliteLowering& b) {
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  ONCILLA_TRY(CheckTfliteScales(from));
  if (from.quantization.scale.size() != 1 || to.quantization.scale.size() != 1) {
    return Unsupported("from ", b.dtype(), " with a scale for each channel");
  }
  const double factor = double{from.quantization.scale[0]} / double{to.quantization.scale[0]};
  RequantizeAttrs attrs;
  attrs.x_zero = TfliteZeroOf(from);
  return One(TfliteFixed(b, b.in(0), {factor}, attrs, b.output_type(), TfliteZeroOf(to), ""));
}

Result<Values> LowerQuantize(TfliteLowering& b) {
  const TfliteTensor& to = b.output_tensor();
  ONCILLA_TRY(CheckTfliteScales(to));
  if (IsInteger(b.dtype()) && IsQuantised(b.tensor(0))) return LowerRequantize(b);
  if (b.dtype() != DType::kF32) return Unsupported("from ", b.dtype(), " to ", b.output_type());
  if (b.output_type() == DType::kI32) return Unsupported("to ", b.output_type());
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.output_type()));
  ONCILLA_ASSIGN(const TfliteParameters p, TfliteParametersOf(b, to));
  // Multiplies by the reciprocal and rounds ties to even, like the vectorised part of LiteRT's
  // kernels. For the last elements, which do not fill a vector, those kernels round ties away from
  // zero, which would make the result depend on the tensor's size.
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {b.in(0), p.per_scale}, "scaled"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Round", {}, {scaled}, "steps"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {steps, p.zero}, "moved"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, range.least));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kF32, range.most));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {moved, least, most}, "cut"));
  return One(b.Cast(cut, b.output_type(), ""));
}

// 16-bit floats are only widened.
Result<Values> LowerDequantize(TfliteLowering& b) {
  if (IsFloat(b.dtype())) return One(b.Add(CastAttrs{b.output_type()}, {b.in(0)}));
  const TfliteTensor& from = b.tensor(0);
  ONCILLA_TRY(CheckTfliteScales(from));
  if (BitsOf(b.dtype()) > 16) return Unsupported("of ", b.dtype());
  return One(TfliteDequantised(b, 0, b.output_type(), ""));
}

// Clips real numbers to a range and rounds them to its steps; zero is one of the steps.
Result<Values> LowerFakeQuant(TfliteLowering& b) {
  ONCILLA_ASSIGN(const float least, b.Float(0));
  ONCILLA_ASSIGN(const float most, b.Float(1));
  ONCILLA_ASSIGN(const int64_t bits, b.Int(2));
  ONCILLA_ASSIGN(const bool narrow, b.Flag(3));
  if (bits < 2 || bits > 16) return InvalidArgument("num_bits is ", bits);
  if (narrow) return Unsupported("with a narrow range");
  if (!(least < most)) return InvalidArgument("the range is from ", least, " to ", most);
  const float lowest = 0, highest = static_cast<float>((1 << bits) - 1);
  const float scale = (most - least) / (highest - lowest);
  const float from_least = lowest - least / scale;
  const float zero = from_least < lowest    ? lowest
                     : from_least > highest ? highest
                                            : std::round(from_least);
  const float low = (lowest - zero) * scale, high = (highest - zero) * scale;
  const auto number = [&](float value) { return b.Scalar(DType::kF32, double{value}); };
  ONCILLA_ASSIGN(const ValueId begin, number(low));
  ONCILLA_ASSIGN(const ValueId end, number(high));
  ONCILLA_ASSIGN(const ValueId step, number(scale));
  ONCILLA_ASSIGN(const ValueId per_step, number(1.0f / scale));
  ONCILLA_ASSIGN(ValueId y, b.Add("Clip", {}, {b.in(0), begin, end}, "cut"));
  ONCILLA_ASSIGN(y, b.Add("Sub", {}, {y, begin}, "above"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, per_step}, "steps"));
  ONCILLA_ASSIGN(y, b.Add("Round", {}, {y}, "whole"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, step}, "scaled"));
  return One(b.Add("Add", {}, {y, begin}));
}

using Options = TfliteOptions;
constexpr auto kTaken = TfliteQuantised::kTaken;
constexpr TfliteOpRow kRows[] = {
    {"DEQUANTIZE", 1, Options::kNone, "", LowerDequantize, kTaken},
    {"FAKE_QUANT", 1, Options::kFakeQuant, "", LowerFakeQuant},
    {"QUANTIZE", 1, Options::kNone, "", LowerQuantize, kTaken},
};

}  // namespace

Result<TfliteParameters> TfliteParametersOf(TfliteLowering& b, const TfliteTensor& tensor) {
  const TfliteQuantization& q = tensor.quantization;
  const auto along = [&](const std::vector<float>& numbers) {
    return TfliteAlong(b, Tensor::Of<float>(DType::kF32, {std::ssize(numbers)}, numbers), q.axis,
                       static_cast<int>(tensor.shape.size()));
  };
  std::vector<float> inverse, zeros(q.zero_point.begin(), q.zero_point.end());
  for (float scale : q.scale) inverse.push_back(1.0f / scale);
  zeros.resize(q.scale.size(), 0);
  TfliteParameters out;
  ONCILLA_ASSIGN(out.scale, along(q.scale));
  ONCILLA_ASSIGN(out.per_scale, along(inverse));
  ONCILLA_ASSIGN(out.zero, along(zeros));
  return out;
}

int64_t TfliteZeroOf(const TfliteTensor& tensor) {
  const std::vector<int64_t>& zeros = tensor.quantization.zero_point;
  return zeros.empty() ? 0 : zeros[0];
}

Status CheckTfliteProduct(const TfliteLowering& b, size_t x, size_t weights, size_t bias,
                          bool any_zero) {
  const DType type = b.dtype(x);
  const bool known = type == DType::kU8 || type == DType::kI8 || type == DType::kI16;
  const DType with = type == DType::kU8 ? DType::kU8 : DType::kI8;
  if (!known || b.dtype(weights) != with || b.output_type() != type || !IsQuantised(b.tensor(x)) ||
      !IsQuantised(b.tensor(weights)) || !IsQuantised(b.output_tensor())) {
    return Unsupported("arithmetic on quantised tensors (", b.QuantisedTypes(), ")");
  }
  for (const TfliteTensor* tensor : {&b.tensor(x), &b.tensor(weights), &b.output_tensor()}) {
    ONCILLA_TRY(CheckTfliteScales(*tensor, tensor == &b.tensor(weights)));
  }
  if (b.tensor(x).quantization.scale.size() != 1 ||
      b.output_tensor().quantization.scale.size() != 1) {
    return Unsupported("with a scale for each channel of the input or output");
  }
  if (type != DType::kU8 && !(any_zero && b.tensor(weights).quantization.scale.size() == 1)) {
    for (int64_t zero : b.tensor(weights).quantization.zero_point) {
      if (zero != 0) return Unsupported("weights with the zero point ", zero);
    }
  } else if (type == DType::kU8 && b.tensor(weights).quantization.scale.size() != 1) {
    return Unsupported("weights of u8 with a scale for each channel");
  }
  if (!b.has(bias) || b.dtype(bias) == DType::kI32) return {};
  if (type == DType::kI16 && b.dtype(bias) == DType::kI64) return {};
  return Unsupported("a bias of ", b.dtype(bias));
}

Status CheckTfliteIntegers(const TfliteLowering& b, size_t count) {
  const DType type = b.output_type();
  bool same = (type == DType::kU8 || type == DType::kI8 || type == DType::kI16) &&
              IsQuantised(b.output_tensor());
  for (size_t i = 0; i < count; ++i) same &= b.dtype(i) == type && IsQuantised(b.tensor(i));
  if (!same) return Unsupported("arithmetic on quantised tensors (", b.QuantisedTypes(), ")");
  const auto check = [&](const TfliteTensor& tensor) {
    ONCILLA_TRY(CheckTfliteScales(tensor));
    if (tensor.quantization.scale.size() != 1) {
      return Unsupported("with a scale for each channel of a tensor");
    }
    if (type == DType::kI16 && TfliteZeroOf(tensor) != 0) {
      return Unsupported("integers of 16 bits with the zero point ", TfliteZeroOf(tensor));
    }
    return Status();
  };
  for (size_t i = 0; i < count; ++i) ONCILLA_TRY(check(b.tensor(i)));
  return check(b.output_tensor());
}

Status CheckTfliteBytes(const TfliteLowering& b, size_t count) {
  if (b.output_type() == DType::kI16) {
    return Unsupported("arithmetic on quantised tensors (", b.QuantisedTypes(), ")");
  }
  return CheckTfliteIntegers(b, count);
}

Result<ValueId> TfliteBlocksDequantised(TfliteLowering& b, size_t i, ValueId x, ValueId of,
                                        std::string_view role) {
  const TfliteTensor& tensor = b.tensor(i);
  const TfliteQuantization& q = tensor.quantization;
  Shape shape;
  for (const int32_t size : tensor.shape) shape.push_back(size);
  shape[shape.rank() - 1] = (shape.back() + q.block - 1) / q.block;
  ValueId scales = b.Constant(Tensor::Of<float>(DType::kF32, shape, q.block_scales));
  if (of != kNoValue) {
    ONCILLA_ASSIGN(scales, b.Add(GatherAttrs{.negative_indices = false}, {scales, of}, "scales"));
  }
  const int64_t rank = b.fact(x).shape.ranked() ? b.fact(x).shape.rank() : shape.rank();
  return b.Add("DequantizeLinear", DequantizeLinearAttrs{.axis = rank - 1, .block_size = q.block},
               {x, scales}, role);
}

Result<ValueId> TfliteDequantised(TfliteLowering& b, size_t i, DType to, std::string_view role) {
  const TfliteQuantization& q = b.tensor(i).quantization;
  ONCILLA_TRY(CheckTfliteScales(b.tensor(i), true));
  const auto count = std::ssize(q.scale);
  const Shape shape = count == 1 ? Shape{} : Shape{count};
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype(i)));
  ONCILLA_ASSIGN(Tensor zeros, Tensor::Allocate({b.dtype(i), shape}));
  Status status;
  DispatchDType(b.dtype(i), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) {
      for (size_t c = 0; c < static_cast<size_t>(count); ++c) {
        const int64_t zero = q.zero_point.empty() ? 0 : q.zero_point[c];
        const auto number = static_cast<double>(zero);
        if (number < range.least || number > range.most) {
          status = DataLoss("a zero point is ", zero);
        } else {
          zeros.MutableAs<T>()[c] = static_cast<T>(zero);
        }
      }
    }
  });
  ONCILLA_TRY(status);
  const ValueId scale = b.Constant(Tensor::Of<float>(DType::kF32, shape, q.scale));
  return b.Add("DequantizeLinear", DequantizeLinearAttrs{.axis = q.axis, .to = to},
               {b.in(i), scale, b.Constant(std::move(zeros))}, role);
}

Result<ValueId> TfliteMoved(TfliteLowering& b, size_t i, DType to) {
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(i), to, StrCat("wide", i)));
  const int64_t zero = TfliteZeroOf(b.tensor(i));
  if (zero == 0) return wide;
  // A zero point outside the type's range would make sums larger than the code that adds them
  // assumes.
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype(i)));
  const auto number = static_cast<double>(zero);
  if (number < range.least || number > range.most) return DataLoss("a zero point is ", zero);
  ONCILLA_ASSIGN(const ValueId point, b.Scalar(to, number));
  return b.Add("Sub", {}, {wide, point}, StrCat("moved", i));
}

Result<ValueId> TfliteZero(TfliteLowering& b, size_t i) {
  const int64_t zero = TfliteZeroOf(b.tensor(i));
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype(i)));
  const auto number = static_cast<double>(zero);
  if (number < range.least || number > range.most) return DataLoss("a zero point is ", zero);
  if (zero == 0) return kNoValue;
  return b.Scalar(b.dtype(i), number);
}

std::vector<double> TfliteFactors(const TfliteLowering& b, size_t x, size_t weights,
                                  bool in_float) {
  const float from = b.tensor(x).quantization.scale[0];
  const auto to = double{b.output_tensor().quantization.scale[0]};
  std::vector<double> out;
  for (float scale : b.tensor(weights).quantization.scale) {
    const double product = in_float ? double{from * scale} : double{from} * double{scale};
    out.push_back(product / to);
  }
  return out;
}

Result<TfliteFixedPoint> TfliteFixedPointOf(double factor) {
  TfliteFixedPoint out;
  if (factor == 0) return out;
  if (!std::isfinite(factor)) return Unsupported("scales whose quotient is ", factor);
  int exponent = 0;
  auto whole = static_cast<int64_t>(std::round(std::frexp(factor, &exponent) * 2147483648.0));
  if (whole == int64_t{1} << 31) whole /= 2, ++exponent;
  // Factors too small for a 31-bit shift count as zero.
  if (exponent < -31) return out;
  if (exponent > 30) return Unsupported("scales whose quotient is ", factor);
  out.multiplier = static_cast<int32_t>(whole);
  out.shift = exponent;
  return out;
}

Result<TfliteIntegers> TfliteActivated(const TfliteTensor& output, DType dtype,
                                       int64_t activation) {
  if (activation == 4) return Unsupported("tanh after integers");
  ONCILLA_ASSIGN(TfliteIntegers out, TfliteIntegersOf(dtype));
  const auto zero = static_cast<double>(TfliteZeroOf(output));
  const auto steps = [&](float real) {
    return zero + double{std::round(real / output.quantization.scale[0])};
  };
  if (activation == 1 || activation == 3) out.least = std::max(out.least, zero);
  if (activation == 2) out.least = std::max(out.least, steps(-1));
  if (activation == 2) out.most = std::min(out.most, steps(1));
  if (activation == 3) out.most = std::min(out.most, steps(6));
  return out;
}

Result<ValueId> TfliteFixed(TfliteLowering& b, ValueId x, const std::vector<double>& factors,
                            RequantizeAttrs attrs, DType to, int64_t zero, std::string_view role) {
  std::vector<TfliteFixedPoint> points;
  for (double factor : factors) {
    ONCILLA_ASSIGN(const TfliteFixedPoint point, TfliteFixedPointOf(factor));
    points.push_back(point);
  }
  return TfliteFixedBy(b, x, points, attrs, to, zero, role);
}

Result<ValueId> TfliteFixedBy(TfliteLowering& b, ValueId x,
                              const std::vector<TfliteFixedPoint>& factors, RequantizeAttrs attrs,
                              DType to, int64_t zero, std::string_view role) {
  std::vector<int32_t> multipliers, shifts;
  for (const TfliteFixedPoint& point : factors) {
    if (b.fact(x).dtype == DType::kI64 && point.shift > 14) {
      return Unsupported("scales whose quotient is above 2^", point.shift - 1);
    }
    multipliers.push_back(point.multiplier);
    shifts.push_back(point.shift);
  }
  const Shape shape = factors.size() == 1 ? Shape{} : Shape{std::ssize(factors)};
  const ValueId scale = b.Constant(Tensor::Of<int32_t>(DType::kI32, shape, multipliers));
  const ValueId shift = b.Constant(Tensor::Of<int32_t>(DType::kI32, shape, shifts));
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(to));
  const auto number = static_cast<double>(zero);
  if (number < range.least || number > range.most) return DataLoss("a zero point is ", zero);
  ONCILLA_ASSIGN(const ValueId point, b.Scalar(to, number));
  attrs.mode = "fixed";
  attrs.to = to;
  return b.Add(attrs, {x, scale, point, shift}, role);
}

Result<ValueId> TfliteRequantised(TfliteLowering& b, ValueId sums,
                                  const std::vector<double>& factors, int64_t activation) {
  const TfliteTensor& output = b.output_tensor();
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteActivated(output, b.output_type(), activation));
  RequantizeAttrs attrs;
  attrs.least = static_cast<int64_t>(range.least);
  attrs.most = static_cast<int64_t>(range.most);
  return TfliteFixed(b, sums, factors, attrs, b.output_type(), TfliteZeroOf(output), "");
}

std::span<const TfliteOpRow> TfliteQuantRows() { return kRows; }

}  // namespace oncilla
