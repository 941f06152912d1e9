// Images of quantised integers: resizing in fixed point, and transposed convolutions.
#include <algorithm>

#include "engine/import/tflite/ops/quantize.h"
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

// The source positions along one axis: the two neighbours, and the weight of the second one in
// 1/1024.
struct Neighbours {
  std::vector<int64_t> first, second, weight;
};

// The step is rounded to 1/1024 of a pixel, so errors grow along the axis. This reproduces LiteRT
// rather than the exact result.
Neighbours NeighboursOf(int64_t from, int64_t to, bool corners, bool centres) {
  constexpr int64_t kOne = 1024;
  int64_t scale = (kOne * from + to / 2) / to;
  if (corners && to > 1) scale = (kOne * (from - 1) + (to - 1) / 2) / (to - 1);
  Neighbours out;
  for (int64_t i = 0; i < to; ++i) {
    const int64_t at = i * scale + (centres ? scale / 2 - kOne / 2 : 0);
    const int64_t first = std::max<int64_t>(at / kOne, 0);
    out.first.push_back(std::min(first, from - 1));
    out.second.push_back(std::min((at + kOne - 1) / kOne, from - 1));
    out.weight.push_back(at - kOne * first);
  }
  return out;
}

// Interpolates x along `axis` between neighbours; the result is multiplied by 1024.
Result<ValueId> Between(TfliteLowering& b, ValueId x, const Neighbours& n, int axis,
                        std::string_view role) {
  const DType type = b.fact(x).dtype;
  const auto count = std::ssize(n.first);
  const auto weights = [&](bool second) {
    std::vector<int64_t> values;
    for (int64_t w : n.weight) values.push_back(second ? w : 1024 - w);
    const Shape shape = axis == 1 ? Shape{count, 1, 1} : Shape{count, 1};
    if (type == DType::kI64) return b.Constant(Tensor::Of<int64_t>(type, shape, values));
    const std::vector<int32_t> narrow(values.begin(), values.end());
    return b.Constant(Tensor::Of<int32_t>(type, shape, narrow));
  };
  ValueId parts[2];
  for (const bool second : {false, true}) {
    const std::string part = StrCat(role, second ? "_second" : "_first");
    ONCILLA_ASSIGN(const ValueId taken, b.Add(GatherAttrs{.axis = axis},
                                              {x, b.Ints(second ? n.second : n.first)}, part));
    ONCILLA_ASSIGN(parts[second], b.Add("Mul", {}, {taken, weights(second)}, part + "_part"));
  }
  return b.Add("Add", {}, {parts[0], parts[1]}, role);
}

// LiteRT interpolates unsigned bytes in float.
Result<Values> AddRealBilinear(TfliteLowering& b, const ResizeAttrs& attrs) {
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(0), DType::kF32, "wide"));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {wide, b.in(1)}, "real"));
  ONCILLA_ASSIGN(const ValueId half, b.Scalar(DType::kF32, 0.5));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Add", {}, {y, half}, "above"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Floor", {}, {above}, "whole"));
  return One(b.Cast(whole, b.output_type(), ""));
}

}  // namespace

Result<Values> LowerQuantisedBilinear(TfliteLowering& b) {
  b.Ignore(0), b.Ignore(1);
  ONCILLA_ASSIGN(const bool corners, b.Flag(2));
  ONCILLA_ASSIGN(const bool centres, b.Flag(3));
  if (corners && centres) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  ONCILLA_TRY(CheckTfliteIntegers(b, 1));
  if (!SameQuantisation(b.tensor(0), b.output_tensor())) {
    return Unsupported("of quantised tensors whose scales differ");
  }
  if (b.dtype() == DType::kU8) {
    ResizeAttrs attrs;
    attrs.mode = "linear";
    attrs.coordinates = centres ? "half_pixel" : corners ? "align_corners" : "asymmetric";
    return AddRealBilinear(b, attrs);
  }
  const PartialShape shape = b.in_fact(0).shape;
  if (!shape.ranked() || shape.rank() != 4 || !shape[1].known() || !shape[2].known()) {
    return Unsupported("of an image ", shape);
  }
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, b.KnownInts(1, "the size"));
  constexpr int64_t kMost = 1 << 20;
  const bool fits = sizes.size() == 2 && std::min(sizes[0], sizes[1]) >= 1 &&
                    std::max({sizes[0], sizes[1], shape[1].size, shape[2].size}) <= kMost &&
                    std::min(shape[1].size, shape[2].size) >= 1;
  if (!fits) return InvalidArgument("of an image ", shape, " to ", sizes.size(), " sizes");
  // Sums of bytes times two 10-bit weights fit in 32 bits.
  const DType wide = b.dtype() == DType::kI16 ? DType::kI64 : DType::kI32;
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), wide, "wide"));
  const Neighbours rows = NeighboursOf(shape[1].size, sizes[0], corners, centres);
  const Neighbours columns = NeighboursOf(shape[2].size, sizes[1], corners, centres);
  ONCILLA_ASSIGN(const ValueId tall, Between(b, x, rows, 1, "rows"));
  ONCILLA_ASSIGN(const ValueId sum, Between(b, tall, columns, 2, "columns"));
  // Round with ties away from zero.
  if (wide == DType::kI32) {
    // Twice the sum times a half is the sum, which is then divided by 2^20.
    RequantizeAttrs attrs;
    attrs.left_shift = 1;
    return One(TfliteFixedBy(b, sum, {{1 << 30, -20}}, attrs, b.output_type(), 0, ""));
  }
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(wide, 0));
  ONCILLA_ASSIGN(const ValueId up, b.Scalar(wide, 1 << 19));
  ONCILLA_ASSIGN(const ValueId down, b.Scalar(wide, -(1 << 19)));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(wide, 1 << 20));
  ONCILLA_ASSIGN(const ValueId positive, b.Add("Greater", {}, {sum, none}, "positive"));
  ONCILLA_ASSIGN(const ValueId half, b.Add("Where", {}, {positive, up, down}, "half"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {sum, half}, "moved"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Div", {}, {moved, one}, "whole"));
  return One(b.Cast(whole, b.output_type(), ""));
}

// Floats represent integers exactly as long as sums stay below 2^24 (2^53 in f64). The channels are
// therefore processed in parts small enough for that, and the parts are added as integers.
Result<Values> LowerQuantisedConvTranspose(TfliteLowering& b, const ConvTransposeAttrs& attrs,
                                           ValueId sizes, int64_t activation) {
  ONCILLA_TRY(CheckTfliteProduct(b, 2, 1, 3));
  const TfliteQuantization& weights = b.tensor(1).quantization;
  if (weights.scale.size() > 1 && weights.axis != 0) {
    return Unsupported("with scales along axis ", weights.axis);
  }
  const PartialShape shape = b.in_fact(1).shape;
  if (!shape.known() || shape.rank() != 4) return Unsupported("a filter of the shape ", shape);
  const bool wide = b.dtype(2) == DType::kI16;
  const DType whole = b.has(3) ? b.dtype(3) : wide ? DType::kI64 : DType::kI32;
  // The number of taps that contribute to one pixel, and the largest product of two operands.
  int64_t taps = 1;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = attrs.strides[i], size = shape[static_cast<int>(i) + 1].size;
    if (stride < 1 || size > 4096) return Unsupported("a filter ", shape, " in steps of ", stride);
    taps *= std::max<int64_t>(1, (size + stride - 1) / stride);
  }
  const int64_t channels = shape[3].size;
  const int64_t bytes = b.dtype(2) == DType::kU8 ? 255 * 255 : 255 * 128;
  const int64_t product = SaturatingMul(taps, wide ? int64_t{1} << 24 : bytes);
  constexpr int64_t kMostParts = 64;
  const int64_t in_f32 = std::max<int64_t>(1, (int64_t{1} << 24) / product);
  const bool narrow = !wide && channels / in_f32 < kMostParts && product <= int64_t{1} << 24;
  const int64_t each = narrow ? in_f32 : std::max<int64_t>(1, (int64_t{1} << 53) / product);
  if (!narrow && (product > int64_t{1} << 53 || channels / each > kMostParts)) {
    return Unsupported("a filter of the shape ", shape);
  }
  const DType real = narrow ? DType::kF32 : DType::kF64;
  ONCILLA_ASSIGN(const ValueId x, TfliteMoved(b, 2, real));
  ONCILLA_ASSIGN(const ValueId moved, TfliteMoved(b, 1, real));
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(moved, {1, 2, 0, 3}, "filter"));
  ValueId sum = kNoValue;
  for (int64_t begin = 0; begin < channels; begin += each) {
    const int64_t end = std::min(channels, begin + each);
    ValueId part_x = x, part_filter = filter;
    const std::string part = StrCat("part", begin / each);
    if (each < channels) {
      const auto cut = [&](ValueId v, const char* what) {
        return b.Add("Slice", {}, {v, b.Ints({begin}), b.Ints({end}), b.Ints({-1})}, part + what);
      };
      ONCILLA_ASSIGN(part_x, cut(x, "_x"));
      ONCILLA_ASSIGN(part_filter, cut(filter, "_filter"));
    }
    ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {part_x, part_filter, kNoValue, sizes}, part));
    ONCILLA_ASSIGN(const ValueId integers, b.Cast(y, whole, part + "_sums"));
    if (sum == kNoValue) {
      sum = integers;
    } else {
      ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, integers}, part + "_total"));
    }
  }
  if (sum == kNoValue) return Unsupported("a filter of the shape ", shape);
  if (b.has(3)) {
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(3)}, "biased"));
  }
  const auto factors = TfliteFactors(b, 2, 1, b.dtype(2) == DType::kU8);
  return One(TfliteRequantised(b, sum, factors, activation));
}

}  // namespace oncilla
