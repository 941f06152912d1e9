// TFLite's convolutions of images and volumes: channels-last, followed by a bias and an activation.
#include <algorithm>

#include "engine/import/lowering/window.h"
#include "engine/import/tflite/ops/quantize_hybrid.h"
#include "engine/import/tflite/ops/quantize_ops.h"
#include "engine/import/tflite/ops/window.h"

namespace oncilla {
namespace {

// The field numbers of a convolution's options; -1 if the op lacks the field.
struct Fields {
  int spatial = 2;
  int strides[3];    // of depth, height and width, or height and width
  int dilations[3];  // likewise
  int activation;
};
constexpr Fields kConv = {2, {2, 1, -1}, {5, 4, -1}, 3};
constexpr Fields kDepthwise = {2, {2, 1, -1}, {6, 5, -1}, 4};
constexpr Fields kTransposed = {2, {2, 1, -1}, {-1, -1, -1}, 3};
constexpr Fields kVolume = {3, {1, 3, 2}, {5, 7, 6}, 4};

Result<Window> ReadWindow(const TfliteLowering& b, const Fields& fields) {
  Window window;
  ONCILLA_ASSIGN(window.auto_pad, TflitePadding(b));
  for (int i = 0; i < fields.spatial; ++i) {
    ONCILLA_ASSIGN(const int64_t stride, b.Int(fields.strides[i]));
    window.strides.push_back(stride);
    if (fields.dilations[i] < 0) continue;
    ONCILLA_ASSIGN(const int64_t dilation, b.Int(fields.dilations[i], 1));
    window.dilations.push_back(dilation);
  }
  return window;
}

// Filter and input must have the same floating-point type.
Status CheckTypes(const TfliteLowering& b, size_t x, size_t filter) {
  if (b.dtype(x) == DType::kF32 && b.dtype(filter) == DType::kF32) return {};
  return Unsupported("of ", b.dtype(x), " with a filter of ", b.dtype(filter));
}

// Accepts floats, integers, and 8-bit weights with float inputs (hybrid).
Status CheckOperands(const TfliteLowering& b) {
  if (IsTfliteHybrid(b, 0, 1)) return CheckTfliteHybrid(b, 1);
  return b.any_quantised() ? CheckTfliteProduct(b, 0, 1, 2) : CheckTypes(b, 0, 1);
}

Result<ValueId> AddBias(TfliteLowering& b, size_t input) {
  if (!b.has(input)) return kNoValue;
  return b.Add("Reshape", {}, {b.in(input), b.Ints({-1})}, "bias");
}

// A convolution of quantised integers. Weights may have a scale for each output channel, which is
// the last axis of the sums.
Result<Values> AddIntegerConv(TfliteLowering& b, const ConvAttrs& real, bool depthwise,
                              int64_t activation) {
  const TfliteTensor& weights = b.tensor(1);
  const auto last = depthwise ? 3 : 0;
  if (weights.quantization.scale.size() > 1 && weights.quantization.axis != last) {
    return Unsupported("with scales along axis ", weights.quantization.axis);
  }
  const PartialShape shape = b.in_fact(1).shape;
  if (!shape.known() || shape.rank() != 4) return Unsupported("a filter of the shape ", shape);
  ValueId filter = kNoValue;
  if (depthwise) {
    ONCILLA_ASSIGN(
        filter,
        b.Add("Reshape", {}, {b.in(1), b.Ints({shape[1].size, shape[2].size, 1, shape[3].size})},
              "filter"));
  } else {
    ONCILLA_ASSIGN(filter, b.Transpose(b.in(1), {1, 2, 3, 0}, "filter"));
  }
  ConvIntegerAttrs attrs;
  attrs.strides = real.strides;
  attrs.dilations = real.dilations;
  attrs.auto_pad = real.auto_pad;
  attrs.groups = real.groups;
  if (IsTfliteHybrid(b, 0, 1)) {
    // If all channels have the same scale and there are no groups, LiteRT quantises the input
    // symmetrically.
    const std::vector<float>& scales = weights.quantization.scale;
    const bool alike =
        std::all_of(scales.begin(), scales.end(), [&](float scale) { return scale == scales[0]; });
    ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 2));
    return TfliteHybridConv(b, attrs, filter, bias, depthwise || !alike || real.groups != 1,
                            activation);
  }
  ONCILLA_ASSIGN(const ValueId x_zero, TfliteZero(b, 0));
  ONCILLA_ASSIGN(const ValueId zero, TfliteZero(b, 1));
  ONCILLA_ASSIGN(const ValueId sums,
                 b.Add(attrs, {b.in(0), filter, x_zero, zero, b.in(2)}, "sums"));
  const auto factors = TfliteFactors(b, 0, 1, b.dtype() == DType::kU8);
  return One(TfliteRequantised(b, sums, factors, activation));
}

Result<int64_t> GroupsOf(const Fact& x, const Fact& filter) {
  const int rank = x.shape.rank();
  if (!x.shape.ranked() || !filter.shape.ranked()) return int64_t{1};
  if (rank < 2 || filter.shape.rank() != rank) {
    return InvalidArgument("the input is ", x.shape, " and the filter ", filter.shape);
  }
  const Dim &channels = x.shape[rank - 1], &depth = filter.shape[rank - 1];
  if (!channels.known() || !depth.known()) return int64_t{1};
  if (depth.size <= 0 || channels.size % depth.size != 0) {
    return InvalidArgument("the input has ", channels.size, " channels and the filter ",
                           depth.size);
  }
  return channels.size / depth.size;
}

// The filter is [out, height, width, in].
Result<Values> LowerConv(TfliteLowering& b) {
  b.Ignore(6);  // the type of a quantised bias
  const bool integers = b.any_quantised();
  ONCILLA_TRY(CheckOperands(b));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(kConv.activation));
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, kConv));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, GroupsOf(b.in_fact(0), b.in_fact(1)));
  if (integers) return AddIntegerConv(b, attrs, false, activation);
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), {1, 2, 3, 0}, "filter"));
  ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 2));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), filter, bias}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// The filter is [1, height, width, in * multiplier]: one group per channel.
Result<Values> LowerDepthwise(TfliteLowering& b) {
  const bool integers = b.any_quantised();
  ONCILLA_TRY(CheckOperands(b));
  ONCILLA_ASSIGN(const int64_t multiplier, b.Int(3));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(kDepthwise.activation));
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, kDepthwise));
  const PartialShape shape = b.in_fact(1).shape;
  if (!shape.known() || shape.rank() != 4 || shape[0].size != 1) {
    return Unsupported("the filter's shape ", shape,
                       " is not known as [1, height, width, channels]");
  }
  const int64_t channels = shape[3].size;
  if (multiplier < 1 || channels % multiplier != 0) {
    return InvalidArgument("the filter has ", channels, " channels, ", multiplier, " for each one");
  }
  auto attrs = window.As<ConvAttrs>();
  attrs.groups = channels / multiplier;
  if (integers) return AddIntegerConv(b, attrs, true, activation);
  ONCILLA_ASSIGN(const ValueId filter,
                 b.Add("Reshape", {},
                       {b.in(1), b.Ints({shape[1].size, shape[2].size, 1, channels})}, "filter"));
  ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 2));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), filter, bias}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// Inputs: x, then the filter [depth, height, width, in, out].
Result<Values> LowerConv3D(TfliteLowering& b) {
  ONCILLA_TRY(CheckTypes(b, 0, 1));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(kVolume.activation));
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, kVolume));
  ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 2));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(window.As<ConvAttrs>(), {b.in(0), b.in(1), bias}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// Inputs: the shape of the result, the filter, x, and the bias. The filter is [out, height, width,
// in] for images and [depth, height, width, out, in] for volumes.
Result<Values> LowerConvTranspose(TfliteLowering& b) {
  const bool volume = b.op() == "CONV_3D_TRANSPOSE";
  const Fields& fields = volume ? kVolume : kTransposed;
  if (!volume) b.Ignore(4);  // the type of a quantised bias
  const bool hybrid = !volume && IsTfliteHybrid(b, 2, 1);
  const bool integers = b.any_quantised() && !hybrid;
  if (hybrid) ONCILLA_TRY(CheckTfliteHybrid(b, 1));
  if (!integers && !hybrid) ONCILLA_TRY(CheckTypes(b, 2, 1));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(fields.activation));
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, fields));
  auto attrs = window.As<ConvTransposeAttrs>();
  attrs.exact_size = attrs.auto_pad == "same_upper";
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add("Slice", {}, {b.in(0), b.Ints({1}), b.Ints({1 + fields.spatial})}, "sizes"));
  if (integers) return LowerQuantisedConvTranspose(b, attrs, sizes, activation);
  if (hybrid) {
    if (b.tensor(1).quantization.scale.size() > 1 && b.tensor(1).quantization.axis != 0) {
      return Unsupported("with scales along axis ", b.tensor(1).quantization.axis);
    }
    ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 3));
    return TfliteHybridConvTranspose(b, attrs, sizes, bias, activation);
  }
  ValueId filter = b.in(1);
  if (!volume) {
    ONCILLA_ASSIGN(filter, b.Transpose(filter, {1, 2, 0, 3}, "filter"));
  }
  ONCILLA_ASSIGN(const ValueId bias, AddBias(b, 3));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(attrs, {b.in(2), filter, bias, sizes}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"CONV_2D", 2, Options::kConv2D, "", LowerConv, TfliteQuantised::kTaken},
    {"CONV_3D", 2, Options::kConv3D, "", LowerConv3D},
    {"CONV_3D_TRANSPOSE", 3, Options::kConv3D, "", LowerConvTranspose},
    {"DEPTHWISE_CONV_2D", 2, Options::kDepthwiseConv2D, "", LowerDepthwise,
     TfliteQuantised::kTaken},
    {"TRANSPOSE_CONV", 3, Options::kTransposeConv, "", LowerConvTranspose, TfliteQuantised::kTaken},
};

}  // namespace

Result<std::string> TflitePadding(const TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t padding, b.Enum(0));
  if (padding != 0 && padding != 1) return Unsupported("padding ", padding);
  return std::string(padding == 0 ? "same_upper" : "valid");
}

std::span<const TfliteOpRow> TfliteConvRows() { return kRows; }

}  // namespace oncilla
