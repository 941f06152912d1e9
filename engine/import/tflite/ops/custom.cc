// Custom ops by name: those of MediaPipe's models whose meaning is published. Their options are not
// tables but the bytes of a struct: 32-bit integers.
#include <algorithm>
#include <cstring>

#include "engine/import/tflite/lowering.h"

namespace oncilla {
namespace {

// The options as integers; at least `count` must be there.
Result<std::vector<int64_t>> Struct(const TfliteLowering& b, size_t count) {
  const std::string_view bytes = b.custom_options();
  if (bytes.size() / 4 < count) return DataLoss("has options of ", bytes.size(), " bytes");
  std::vector<int64_t> out;
  for (size_t i = 0; i < count; ++i) {
    int32_t value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    out.push_back(value);
  }
  return out;
}

// A transposed convolution with a bias: the filter is [out, height, width, in], and the sizes follow
// from the padding (1: same, 2: valid) and the strides of width and height behind it.
Result<Values> LowerTransposeBias(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> options, Struct(b, 3));
  const PartialShape &x = b.in_fact(0).shape, &filter = b.in_fact(1).shape;
  if (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kF32) return Unsupported("of ", b.dtype());
  if (!x.ranked() || x.rank() != 4 || !filter.known() || filter.rank() != 4) {
    return Unsupported("of an image ", x, " and a filter ", filter);
  }
  if (options[0] != 1 && options[0] != 2) return Unsupported("padding ", options[0]);
  ConvTransposeAttrs attrs;
  attrs.strides = {options[2], options[1]};
  attrs.pads.assign(4, 0);
  for (size_t i = 0; i < 2 && options[0] == 1; ++i) {
    const Dim &size = x[static_cast<int>(i) + 1], &taps = filter[static_cast<int>(i) + 1];
    const int64_t stride = attrs.strides[i];
    if (!size.known() || stride < 1) return Unsupported("of an image ", x, " in steps of ", stride);
    const int64_t rest = size.size < 1 ? 0 : (size.size - 1) % stride;
    const int64_t pad = std::max<int64_t>(0, taps.size - rest - 1);
    attrs.pads[i] = pad / 2;
    attrs.pads[i + 2] = pad - pad / 2;
  }
  ONCILLA_ASSIGN(const ValueId weights, b.Transpose(b.in(1), {1, 2, 0, 3}, "filter"));
  return One(b.Add(attrs, {b.in(0), weights, b.in(2)}));
}

constexpr TfliteOpRow kRows[] = {
    {"Convolution2DTransposeBias", 3, TfliteOptions::kNone, "", LowerTransposeBias},
};

}  // namespace

std::span<const TfliteOpRow> TfliteCustomRows() { return kRows; }

}  // namespace oncilla
