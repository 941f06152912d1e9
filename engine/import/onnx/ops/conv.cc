// ONNX's convolutions: channels-first, filters [out, in/groups, spatial..]. The canonical ops are
// channels-last, so there are transposes around them, which passes move, cancel and fold.
#include <algorithm>

#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/ops/window.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla {
namespace {

// The rank of x and the filter, from whichever has a known one.
Result<int> ConvRank(OnnxLowering& b, int most) {
  auto rank = b.Rank(0);
  if (!rank.ok()) rank = b.Rank(1);
  if (rank.ok() && (*rank < 3 || *rank > most)) {
    return Unsupported("with ", *rank - 2, " spatial axes");
  }
  return rank;
}

// kernel_shape repeats the filter's shape; if both are known they must agree.
Status CheckKernelShape(OnnxLowering& b, int spatial) {
  ONCILLA_ASSIGN(const auto kernel, OnnxSpatialList(b, "kernel_shape", spatial));
  const PartialShape filter = b.in_fact(1).shape;
  if (!filter.ranked() || filter.rank() != spatial + 2) return {};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim& size = filter[static_cast<int>(i) + 2];
    if (size.known() && size.size != kernel[i]) {
      return InvalidArgument("kernel_shape says ", kernel[i], " and the filter is ", filter);
    }
  }
  return {};
}

// Transposes [a, b, spatial..] to [spatial.., b, a].
Result<ValueId> FilterLast(OnnxLowering& b, ValueId filter, int rank, std::string_view role) {
  std::vector<int64_t> perm;
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  perm.push_back(0);
  return b.Transpose(filter, std::move(perm), role);
}

// The first of four spatial axes: the size of its result, and the padding before and after it.
struct FirstAxis {
  int64_t out = 0, before = 0, behind = 0, stride = 1, dilation = 1;
};

// Moves entry `at` out of the list into `value`, unless the list is empty.
void TakeOut(std::vector<int64_t>& list, size_t at, int64_t& value) {
  if (list.empty()) return;
  value = list[at];
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

Result<FirstAxis> TakeFirstAxis(Window& window, int64_t size, int64_t taps) {
  FirstAxis first;
  TakeOut(window.strides, 0, first.stride);
  TakeOut(window.dilations, 0, first.dilation);
  TakeOut(window.pads, 4, first.behind);
  TakeOut(window.pads, 0, first.before);
  if (first.stride < 1 || first.dilation < 1 || first.before < 0 || first.behind < 0) {
    return InvalidArgument("stride ", first.stride, ", dilation ", first.dilation, ", padding ",
                           first.before, " and ", first.behind);
  }
  const int64_t extent = SaturatingAdd(SaturatingMul(taps - 1, first.dilation), 1);
  if (window.auto_pad.starts_with("same")) {
    const int64_t steps = (size + first.stride - 1) / first.stride - 1;
    const int64_t missing = SaturatingAdd(SaturatingMul(steps, first.stride), extent) - size;
    const int64_t less = std::max<int64_t>(missing, 0) / 2;
    first.before = first.behind = less;
    (window.auto_pad == "same_lower" ? first.before : first.behind) +=
        std::max<int64_t>(missing, 0) - 2 * less;
  }
  const int64_t room = SaturatingAdd(size, SaturatingAdd(first.before, first.behind)) - extent;
  if (room < 0) return InvalidArgument("the window ", extent, " does not fit the axis ", size);
  first.out = room / first.stride + 1;
  return first;
}

// The filter's size along the first of four spatial axes. All sizes but that of the batch must be
// known.
Result<int64_t> TapsOfFour(OnnxLowering& b) {
  const PartialShape x = b.in_fact(0).shape, filter = b.in_fact(1).shape;
  bool known = filter.ranked() && x.ranked() && filter.rank() == 6 && filter.known();
  for (int axis = 1; known && axis < 6; ++axis) known = x[axis].known();
  if (!known) return Unsupported("with 4 spatial axes of unknown sizes");
  const int64_t taps = filter[2].size;
  if (taps < 1 || taps > 1024) return Unsupported("with 4 spatial axes and ", taps, " taps");
  return taps;
}

// The part of the filter at position `tap` of the first spatial axis.
Result<ValueId> FilterOfTap(OnnxLowering& b, int64_t tap, const std::string& name) {
  const ValueId at = b.Constant(Tensor::ScalarInt64(tap));
  ONCILLA_ASSIGN(const ValueId part, b.Add(GatherAttrs{.axis = 2}, {b.in(1), at}, name + "_part"));
  return FilterLast(b, part, 5, name + "_filter");
}

// Convolution with four spatial axes: the sum, over the filter positions (taps) of the first axis,
// of convolutions over the other three; the first axis becomes part of the batch.
Result<Values> LowerConvOfFour(OnnxLowering& b) {
  ONCILLA_TRY(CheckKernelShape(b, 4));
  const PartialShape x_shape = b.in_fact(0).shape;
  ONCILLA_ASSIGN(const int64_t taps, TapsOfFour(b));
  ONCILLA_ASSIGN(Window window, ReadOnnxWindow(b, 4, true));
  ONCILLA_ASSIGN(const FirstAxis first, TakeFirstAxis(window, x_shape[2].size, taps));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(ValueId x, b.Transpose(b.in(0), {0, 2, 1, 3, 4, 5}, "first_axis"));
  if (first.before > 0 || first.behind > 0) {
    const ValueId pads = b.Ints({0, first.before, 0, 0, 0, 0, 0, first.behind, 0, 0, 0, 0});
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, pads}, "padded"));
  }
  ValueId sum = kNoValue;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const std::string name = StrCat("tap", tap);
    const int64_t begin = tap * first.dilation, end = begin + (first.out - 1) * first.stride + 1;
    ONCILLA_ASSIGN(
        ValueId rows,
        b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({1}), b.Ints({first.stride})},
              name + "_rows"));
    const std::vector<int64_t> merged = {-1, x_shape[1].size, x_shape[3].size, x_shape[4].size,
                                         x_shape[5].size};
    ONCILLA_ASSIGN(rows, b.Add("Reshape", {}, {rows, b.Ints(merged)}, name + "_batch"));
    ONCILLA_ASSIGN(rows, b.ChannelsLast(rows, 5, name + "_channels_last"));
    ONCILLA_ASSIGN(const ValueId part, FilterOfTap(b, tap, name));
    ONCILLA_ASSIGN(const ValueId product,
                   b.Add(attrs, {rows, part, tap == 0 ? b.in(2) : kNoValue}, name + "_product"));
    if (sum == kNoValue) {
      sum = product;
    } else {
      ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, product}, name + "_sum"));
    }
  }
  ONCILLA_ASSIGN(const ValueId y, b.ChannelsFirst(sum, 5, "channels_first"));
  const PartialShape made = b.fact(y).shape;
  std::vector<int64_t> apart = {-1, first.out};
  for (int axis = 1; axis < 5; ++axis) {
    if (!made[axis].known()) return Unsupported("with 4 spatial axes of unknown sizes");
    apart.push_back(made[axis].size);
  }
  ONCILLA_ASSIGN(const ValueId six, b.Add("Reshape", {}, {y, b.Ints(std::move(apart))}, "apart"));
  return One(b.Transpose(six, {0, 2, 1, 3, 4, 5}, ""));
}

Result<Values> LowerConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, ConvRank(b, 6));
  if (rank == 6) return LowerConvOfFour(b);
  ONCILLA_TRY(CheckKernelShape(b, rank - 2));
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(const ValueId filter, FilterLast(b, b.in(1), rank, "filter"));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, filter, b.in(2)}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

// Places the rows of one tap in the result along the first axis: a stride apart, from `shift` on.
// `rows` is [batch, size, the rest]. Returns kNoValue if all of them fall outside the result.
Result<ValueId> SpreadRows(OnnxLowering& b, ValueId rows, const WindowAxis& axis, int64_t rest,
                           int64_t shift, const std::string& name) {
  int64_t size = axis.out;
  if (axis.stride > 1) {
    ONCILLA_ASSIGN(rows, b.Add("Reshape", {}, {rows, b.Ints({-1, size, 1, rest})}, name + "_each"));
    const ValueId zeros = b.Ints({0, 0, 0, 0, 0, 0, axis.stride - 1, 0});
    ONCILLA_ASSIGN(rows, b.Add("Pad", {}, {rows, zeros}, name + "_apart"));
    size *= axis.stride;
    ONCILLA_ASSIGN(rows, b.Add("Reshape", {}, {rows, b.Ints({-1, size, rest})}, name + "_spread"));
  }
  const int64_t begin = std::max<int64_t>(-shift, 0), end = std::min(size, axis.in - shift);
  if (begin >= end) return kNoValue;
  if (begin > 0 || end < size) {
    ONCILLA_ASSIGN(rows, b.Add("Slice", {}, {rows, b.Ints({begin}), b.Ints({end}), b.Ints({1})},
                               name + "_cut"));
  }
  const int64_t before = std::max<int64_t>(shift, 0), behind = axis.in - before - (end - begin);
  if (before == 0 && behind == 0) return rows;
  return b.Add("Pad", {}, {rows, b.Ints({0, before, 0, 0, behind, 0})}, name + "_placed");
}

// Transposed convolution with four spatial axes: a transposed convolution over the other three axes
// for each tap of the first axis, which becomes part of the batch; rows that coincide are added up.
Result<Values> LowerConvTransposeOfFour(OnnxLowering& b, ConvTransposeAttrs attrs,
                                        std::vector<int64_t> output_shape) {
  ONCILLA_ASSIGN(const int64_t taps, TapsOfFour(b));
  const PartialShape x_shape = b.in_fact(0).shape;
  int64_t stride = 1, dilation = 1, before = 0, behind = 0, output_pad = 0, asked = -1;
  TakeOut(attrs.strides, 0, stride);
  TakeOut(attrs.dilations, 0, dilation);
  TakeOut(attrs.pads, 4, behind);
  TakeOut(attrs.pads, 0, before);
  TakeOut(attrs.output_pads, 0, output_pad);
  TakeOut(output_shape, 0, asked);
  if (output_pad < 0 || output_pad >= std::max(stride, dilation)) {
    return InvalidArgument("output_padding contains ", output_pad,
                           ", which is not below stride or dilation");
  }
  const int64_t strides[] = {stride}, dilations[] = {dilation}, pads[] = {before, behind};
  ONCILLA_ASSIGN(const WindowSpec spec,
                 MakeWindowSpec(1, strides, dilations, pads, attrs.auto_pad));
  ONCILLA_ASSIGN(const WindowAxis axis,
                 SpreadAxis(spec, 0, x_shape[2].size, taps, output_pad, asked));
  const ValueId sizes = output_shape.empty() ? kNoValue : b.Ints(std::move(output_shape));
  ONCILLA_ASSIGN(ValueId x, b.Transpose(b.in(0), {0, 2, 1, 3, 4, 5}, "first_axis"));
  const std::vector<int64_t> merged = {-1, x_shape[1].size, x_shape[3].size, x_shape[4].size,
                                       x_shape[5].size};
  ONCILLA_ASSIGN(x, b.Add("Reshape", {}, {x, b.Ints(merged)}, "batch"));
  ONCILLA_ASSIGN(x, b.ChannelsLast(x, 5, "channels_last"));
  ValueId sum = kNoValue;
  std::vector<int64_t> apart;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const std::string name = StrCat("tap", tap);
    ONCILLA_ASSIGN(const ValueId part, FilterOfTap(b, tap, name));
    ONCILLA_ASSIGN(const ValueId product,
                   b.Add(attrs, {x, part, kNoValue, sizes}, name + "_product"));
    const PartialShape made = b.fact(product).shape;
    apart = {-1, axis.in};
    int64_t rest = 1;
    for (int i = 1; i < 5; ++i) {
      if (!made[i].known()) return Unsupported("with 4 spatial axes of unknown sizes");
      apart.push_back(made[i].size);
      rest = SaturatingMul(rest, made[i].size);
    }
    if (rest == 0 || axis.in == 0 || axis.out == 0) return Unsupported("with an empty axis of 4");
    ONCILLA_ASSIGN(ValueId rows,
                   b.Add("Reshape", {}, {product, b.Ints({-1, axis.out, rest})}, name + "_rows"));
    ONCILLA_ASSIGN(rows, SpreadRows(b, rows, axis, rest, tap * dilation - axis.pad_begin, name));
    if (rows == kNoValue) continue;
    if (sum == kNoValue) {
      sum = rows;
    } else {
      ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, rows}, name + "_sum"));
    }
  }
  if (sum == kNoValue) return Unsupported("whose result is padding alone");
  ONCILLA_ASSIGN(ValueId y, b.Add("Reshape", {}, {sum, b.Ints(std::move(apart))}, "apart"));
  if (b.has(2)) {
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(2)}, "biased"));
  }
  return One(b.Transpose(y, {0, 5, 1, 2, 3, 4}, ""));
}

Result<Values> LowerConvTranspose(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, ConvRank(b, 6));
  const int spatial = rank - 2;
  ONCILLA_TRY(CheckKernelShape(b, spatial));
  ONCILLA_ASSIGN(Window window, ReadOnnxWindow(b, spatial, true));
  const bool listed = b.op() == "ConvTransposeWithDynamicPads";
  const ValueId bias = b.in(listed ? 3 : 2);
  if (listed && b.has(2)) {
    ONCILLA_ASSIGN(window.pads, b.KnownInts(2, "the list of pads"));
    if (rank == 6 || static_cast<int>(window.pads.size()) != 2 * spatial) {
      return Unsupported("with ", window.pads.size(), " pads of ", spatial, " spatial axes");
    }
  }
  auto attrs = window.As<ConvTransposeAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(attrs.output_pads, OnnxSpatialList(b, "output_padding", spatial));
  ONCILLA_ASSIGN(std::vector<int64_t> output_shape, b.IntList("output_shape"));
  if (!output_shape.empty()) {
    // Some files list all axes of the result.
    if (static_cast<int>(output_shape.size()) == rank) {
      output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    }
    if (static_cast<int>(output_shape.size()) != spatial) {
      return InvalidArgument("output_shape has ", output_shape.size(), " entries, not ", spatial);
    }
    // The padding follows from the sizes. If it is odd, the additional element goes to the
    // beginning, unless SAME_UPPER is given.
    if (attrs.auto_pad != "same_upper") attrs.auto_pad = "same_lower";
    attrs.pads.clear();
  }
  if (rank == 6) return LowerConvTransposeOfFour(b, std::move(attrs), std::move(output_shape));
  const ValueId sizes = output_shape.empty() ? kNoValue : b.Ints(std::move(output_shape));
  ONCILLA_ASSIGN(const ValueId filter, FilterLast(b, b.in(1), rank, "filter"));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, filter, bias, sizes}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

constexpr OnnxOpRow kRows[] = {
    {"Conv", 1, kNewestOnnxOpset, 2, "", LowerConv},
    {"ConvTranspose", 1, kNewestOnnxOpset, 2, "", LowerConvTranspose},
};

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"ConvTransposeWithDynamicPads", 1, kNewestOnnxMicrosoft, 2, "", LowerConvTranspose},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftConvRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxConvRows() { return kRows; }

}  // namespace oncilla
