// TensorFlow's convolutions and pools of images and volumes. The canonical ops are channels-last;
// channels-first nodes get transposes around them, which a pass moves and cancels.
#include "engine/import/tf/ops/window.h"
#include "engine/ops/known_ints.h"

namespace oncilla {

Result<std::vector<int64_t>> SpatialOf(const std::vector<int64_t>& all, std::string_view name,
                                       const TfLayout& layout) {
  if (static_cast<int>(all.size()) != layout.rank) {
    return InvalidArgument(name, " has ", all.size(), " entries for rank ", layout.rank);
  }
  std::vector<int64_t> out;
  for (int axis = 0; axis < layout.rank; ++axis) {
    const int64_t v = all[static_cast<size_t>(axis)];
    if (axis == 0 || axis == layout.channel_axis()) {
      if (v != 1) return Unsupported(name, " is ", v, " for the batch or the channels");
    } else {
      out.push_back(v);
    }
  }
  return out;
}

Result<std::vector<int64_t>> SpatialInts(const TfLowering& b, std::string_view name,
                                         const TfLayout& layout) {
  ONCILLA_ASSIGN(const std::vector<int64_t> all, b.attrs().Ints(name));
  return SpatialOf(all, name, layout);
}

Status AddPadding(const TfLowering& b, const TfLayout& layout, Window& window) {
  ONCILLA_ASSIGN(const std::string padding, b.attrs().String("padding"));
  if (padding == "SAME") {
    window.auto_pad = "same_upper";
  } else if (padding == "VALID") {
    window.auto_pad = "valid";
  } else if (padding == "EXPLICIT") {
    // Pairs (before, after) per axis, in the order of data_format.
    ONCILLA_ASSIGN(const std::vector<int64_t> pairs, b.attrs().Ints("explicit_paddings"));
    if (static_cast<int>(pairs.size()) != 2 * layout.rank) {
      return InvalidArgument("explicit_paddings has ", pairs.size(), " entries");
    }
    for (size_t end = 0; end < 2; ++end) {
      for (int axis = 0; axis < layout.rank; ++axis) {
        const int64_t pad = pairs[2 * static_cast<size_t>(axis) + end];
        if (axis != 0 && axis != layout.channel_axis()) {
          window.pads.push_back(pad);
        } else if (pad != 0) {
          return InvalidArgument("explicit_paddings pad the batch or the channels by ", pad);
        }
      }
    }
  } else {
    return Unsupported("padding ", padding);
  }
  return Status();
}

Result<Window> ReadWindow(const TfLowering& b, const TfLayout& layout, bool dilations) {
  Window window;
  ONCILLA_ASSIGN(window.strides, SpatialInts(b, "strides", layout));
  if (dilations) {
    ONCILLA_ASSIGN(window.dilations, SpatialInts(b, "dilations", layout));
  }
  ONCILLA_TRY(AddPadding(b, layout, window));
  return window;
}

Result<PoolWindow> ReadPoolWindow(const TfLowering& b, const TfLayout& layout,
                                  std::string_view kernel) {
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, false));
  auto pool = window.As<PoolWindow>();
  ONCILLA_ASSIGN(pool.kernel, SpatialInts(b, kernel, layout));
  return pool;
}

Result<ValueId> ToChannelsLast(TfLowering& b, ValueId x, const TfLayout& layout) {
  return layout.channels_first ? b.ChannelsLast(x, layout.rank) : Result<ValueId>(x);
}

Result<int64_t> GroupsOf(const Fact& x, const Fact& filter, int rank) {
  if (!x.shape.ranked() || !filter.shape.ranked()) return int64_t{1};
  if (x.shape.rank() != rank || filter.shape.rank() != rank) {
    return InvalidArgument("the input is ", x.shape, " and the filter ", filter.shape);
  }
  const Dim &channels = x.shape[rank - 1], &depth = filter.shape[rank - 2];
  if (!channels.known() || !depth.known()) return int64_t{1};
  if (depth.size <= 0 || channels.size % depth.size != 0) {
    return InvalidArgument("the input has ", channels.size, " channels and the filter ",
                           depth.size);
  }
  return channels.size / depth.size;
}

namespace {

// Integer convolution: the matrix product of the patches of x with the filter.
Result<ValueId> AddIntegerConv(TfLowering& b, ValueId x, const Window& window,
                               const TfLayout& layout, std::string_view role) {
  const PartialShape filter = b.in_fact(1).shape;
  if (!filter.known()) {
    return Unsupported("a convolution of ", b.in_fact(0).dtype, " by a filter of unknown size");
  }
  auto attrs = window.As<ExtractPatchesAttrs>();
  int64_t taps = filter[layout.rank - 2].size;
  for (int axis = 0; axis < layout.rank - 2; ++axis) {
    attrs.kernel.push_back(filter[axis].size);
    taps = SaturatingMul(taps, filter[axis].size);
  }
  ONCILLA_ASSIGN(const ValueId patches, b.Add(attrs, {x}, "patches"));
  ONCILLA_ASSIGN(
      const ValueId matrix,
      b.Add("Reshape", {}, {b.in(1), b.Ints({taps, filter[layout.rank - 1].size})}, "matrix"));
  return AddChannelsLast(b, MatMulAttrs(), {patches, matrix}, layout, role);
}

// A convolution of b.in(0) with b.in(1) whose result is channels-last; `layout` describes x.
Result<ValueId> AddConv(TfLowering& b, const TfLayout& layout, std::string_view role) {
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, true));
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, GroupsOf(b.fact(x), b.in_fact(1), layout.rank));
  if (IsInteger(b.in_fact(0).dtype) && attrs.groups == 1) {
    return AddIntegerConv(b, x, window, layout, role);
  }
  return AddChannelsLast(b, attrs, {x, b.in(1)}, layout, role);
}

Result<Values> LowerConv(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  return One(AddConv(b, layout, ""));
}

// Reshapes the depthwise filter [h, w, in, multiplier] to one for `in` groups: [h, w, 1, in *
// multiplier]. The height and width of a computed filter may be unknown until the run.
Result<ValueId> GroupFilter(TfLowering& b, int64_t& groups) {
  const PartialShape filter = b.in_fact(1).shape;
  if (!filter.ranked() || filter.rank() != 4 || !filter[2].known()) {
    return Unsupported("the channels of the filter's shape ", filter, " are not known");
  }
  groups = filter[2].size;
  if (filter.known()) {
    const Shape shape = filter.ToShape();
    const int64_t columns = SaturatingMul(shape[2], shape[3]);
    return b.Add("Reshape", {}, {b.in(1), b.Ints({shape[0], shape[1], 1, columns})}, "filter");
  }
  ONCILLA_ASSIGN(const ValueId spatial, b.Add(ShapeAttrs{.end = 2}, {b.in(1)}, "filter_sizes"));
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add(ConcatAttrs{0}, {spatial, b.Ints({1, -1})}, "grouped_sizes"));
  return b.Add("Reshape", {}, {b.in(1), sizes}, "filter");
}

Result<ValueId> AddDepthwise(TfLowering& b, const TfLayout& layout, std::string_view role) {
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, true));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(const ValueId grouped, GroupFilter(b, attrs.groups));
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  return AddChannelsLast(b, attrs, {x, grouped}, layout, role);
}

Result<Values> LowerDepthwise(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  return One(AddDepthwise(b, layout, ""));
}

// Refuses sizes that are known at import and contradict each other. A spatial size that is only
// known later is checked at plan time. Returns the number of groups, 0 if it is unknown.
Result<int64_t> CheckInputSizes(const TfLowering& b, const TfLayout& layout, bool depthwise) {
  const auto sizes = ReadKnownInts(b.in_fact(0));
  if (!sizes.has_value()) return int64_t{0};
  if (static_cast<int>(sizes->size()) != layout.rank) {
    return InvalidArgument("input_sizes has ", sizes->size(), " entries for rank ", layout.rank);
  }
  const PartialShape &gradient = b.in_fact(2).shape, &filter = b.in_fact(1).shape;
  const auto batch = sizes->front().value;
  if (batch && gradient.ranked() && gradient.rank() == layout.rank && gradient[0].known() &&
      gradient[0].size != *batch) {
    return InvalidArgument("input_sizes has a batch of ", *batch, " and the gradient one of ",
                           gradient[0].size);
  }
  const auto channels = (*sizes)[static_cast<size_t>(layout.channel_axis())].value;
  if (!channels || !filter.ranked() || filter.rank() != layout.rank) return int64_t{0};
  const Dim depth = filter[layout.rank - 2];
  if (!depth.known()) return int64_t{0};
  if (depth.size == *channels) return int64_t{1};
  if (!depthwise && depth.size > 0 && *channels % depth.size == 0) return *channels / depth.size;
  return InvalidArgument("input_sizes has ", *channels, " channels and the filter ", depth.size);
}

// Inputs: the shape of the result, the filter [spatial.., out, in], and x.
Result<Values> LowerConvTranspose(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  if (IsInteger(b.in_fact(2).dtype)) return Unsupported("of ", b.in_fact(2).dtype);
  const bool depthwise = b.op().starts_with("Depthwise");
  ONCILLA_ASSIGN(const int64_t groups, CheckInputSizes(b, layout, depthwise));
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, true));
  auto attrs = window.As<ConvTransposeAttrs>();
  attrs.exact_size = attrs.auto_pad == "same_upper";
  const int64_t first = layout.channels_first ? 2 : 1;
  ONCILLA_ASSIGN(
      const ValueId sizes,
      b.Add("Slice", {}, {b.in(0), b.Ints({first}), b.Ints({first + layout.spatial()})}, "sizes"));
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(2), layout));
  ValueId filter = b.in(1);
  if (depthwise) {
    ONCILLA_ASSIGN(filter, GroupFilter(b, attrs.groups));
  } else {
    attrs.groups = std::max<int64_t>(groups, 1);
  }
  if (groups > 0) return One(AddChannelsLast(b, attrs, {x, filter, kNoValue, sizes}, layout));
  // One group is assumed; the run fails if input_sizes turns out to have more channels.
  ONCILLA_ASSIGN(const ValueId y,
                 AddChannelsLast(b, attrs, {x, filter, kNoValue, sizes}, layout, "one_group"));
  return One(b.Add("Reshape", {}, {y, b.in(0)}));
}

// The maximum over each `window` adjacent channels.
Result<Values> LowerDepthPool(TfLowering& b, int64_t window) {
  ONCILLA_ASSIGN(const std::vector<int64_t> ksize, b.attrs().Ints("ksize"));
  ONCILLA_ASSIGN(const std::vector<int64_t> strides, b.attrs().Ints("strides"));
  const std::vector<int64_t> expected = {1, 1, 1, window};
  if (window < 1 || ksize != expected || strides != expected) {
    return Unsupported("a window over channels and anything else, or one that overlaps");
  }
  const PartialShape& shape = b.in_fact(0).shape;
  if (shape.ranked() && shape.rank() != 4) return InvalidArgument("the input is ", shape);
  ONCILLA_ASSIGN(const ValueId groups, b.Add(ReshapeAttrs{.zero_copies = true},
                                             {b.in(0), b.Ints({0, 0, 0, -1, window})}, "groups"));
  return One(b.Add("ReduceMax", {}, {groups, b.Ints({-1})}));
}

Result<Values> LowerPool(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  if (b.op() == "MaxPool" && !layout.channels_first) {
    ONCILLA_ASSIGN(const std::vector<int64_t> ksize, b.attrs().Ints("ksize"));
    if (ksize.size() == 4 && ksize[3] != 1) return LowerDepthPool(b, ksize[3]);
  }
  ONCILLA_ASSIGN(const PoolWindow window, ReadPoolWindow(b, layout, "ksize"));
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  if (b.op().starts_with("Max")) return One(AddChannelsLast(b, MaxPoolAttrs{window}, {x}, layout));
  return One(AddChannelsLast(b, AveragePoolAttrs{window}, {x}, layout));
}

// A convolution with what TensorFlow's own optimizer fused after it: a bias, then an activation.
Result<Values> LowerFusedConv(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const std::vector<std::string> fused, b.attrs().Strings("fused_ops"));
  if (layout.channels_first) return Unsupported("fused and channels first");
  const std::string_view inner = fused.empty() ? "" : "conv";
  ONCILLA_ASSIGN(ValueId y, b.op() == "_FusedDepthwiseConv2dNative" ? AddDepthwise(b, layout, inner)
                                                                    : AddConv(b, layout, inner));
  size_t arg = 2;
  for (size_t i = 0; i < fused.size(); ++i) {
    const std::string role = i + 1 == fused.size() ? "" : "fused" + std::to_string(i);
    if (fused[i] == "BiasAdd" || fused[i] == "Add") {
      if (arg >= b.inputs()) return DataLoss("the input for ", fused[i], " is missing");
      ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(arg++)}, role));
    } else if (fused[i] == "FusedBatchNorm") {
      if (arg + 4 > b.inputs()) return DataLoss("an input for ", fused[i], " is missing");
      ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("epsilon"));
      ONCILLA_ASSIGN(y, b.Add(BatchNormAttrs{.axis = -1, .epsilon = epsilon},
                              {y, b.in(arg), b.in(arg + 1), b.in(arg + 2), b.in(arg + 3)}, role));
      arg += 4;
    } else if (fused[i] == "Relu" || fused[i] == "Relu6" || fused[i] == "Elu" ||
               fused[i] == "Sigmoid" || fused[i] == "Tanh") {
      ONCILLA_ASSIGN(y, b.Add(fused[i], {}, {y}, role));
    } else if (fused[i] == "LeakyRelu") {
      ONCILLA_ASSIGN(const float alpha, b.attrs().Float("leakyrelu_alpha"));
      ONCILLA_ASSIGN(y, b.Add("LeakyRelu", AlphaAttrs{.alpha = alpha}, {y}, role));
    } else {
      return Unsupported("the fused op ", fused[i]);
    }
  }
  return Values{y};
}

constexpr TfOpRow kRows[] = {
    {"AvgPool", 1, "", LowerPool},
    {"AvgPool3D", 1, "", LowerPool},
    {"Conv2D", 2, "", LowerConv},
    {"Conv2DBackpropInput", 3, "", LowerConvTranspose},
    {"Conv3D", 2, "", LowerConv},
    {"Conv3DBackpropInputV2", 3, "", LowerConvTranspose},
    {"DepthwiseConv2dNative", 2, "", LowerDepthwise},
    {"DepthwiseConv2dNativeBackpropInput", 3, "", LowerConvTranspose},
    {"MaxPool", 1, "", LowerPool},
    {"MaxPool3D", 1, "", LowerPool},
    {"_FusedConv2D", 2, "", LowerFusedConv},
    {"_FusedDepthwiseConv2dNative", 2, "", LowerFusedConv},
};

}  // namespace

std::span<const TfOpRow> TfConvRows() { return kRows; }

}  // namespace oncilla
