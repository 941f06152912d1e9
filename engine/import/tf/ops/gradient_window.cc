// Gradients of convolutions, pools and normalisations. The filter gradient of a convolution is a
// matrix product; pools propagate gradients by transposed convolutions or by indices.
#include "engine/import/tf/ops/formula.h"
#include "engine/import/tf/ops/window.h"

namespace oncilla {
namespace {

// Returns x after a check that its batch and spatial sizes are those of y: x is broadcast to y,
// which fails if the sizes are incompatible, and reshaped to its own sizes, which fails if the
// broadcast enlarged it.
ValueId SizedLike(TfFormula& f, ValueId x, ValueId y) {
  const ValueId own = f("Shape", {x});
  const ValueId channels = f(ShapeAttrs{.start = -1}, {x});
  const ValueId pixels = f(ShapeAttrs{.start = 0, .end = -1}, {y});
  const ValueId sizes = f(ConcatAttrs{.axis = 0}, {pixels, channels});
  return f("Reshape", {f("Expand", {x, sizes}), own});
}

// The gradient's channels of one group are adjacent. Each group is a separate product: [taps *
// depth, pixels] times [pixels, outputs].
struct FilterGroups {
  int64_t taps = 1, depth = 1, groups = 1, outputs = 1;
};

ValueId FilterProduct(TfFormula& f, const FilterGroups& g, ValueId patches, ValueId dy) {
  const ValueId x = f("Reshape", {patches, f.Ints({-1, g.taps, g.groups, g.depth})});
  const ValueId by_group = f("Transpose", {x, f.Ints({2, 1, 3, 0})});
  const ValueId columns =
      f(ReshapeAttrs{.zero_copies = true}, {by_group, f.Ints({0, g.taps * g.depth, -1})});
  const ValueId pixels = f("Reshape", {dy, f.Ints({-1, g.groups, g.outputs})});
  const ValueId rows = f("Transpose", {pixels, f.Ints({1, 0, 2})});
  const ValueId sums = f("MatMul", {columns, rows});
  const ValueId parts = f("Reshape", {sums, f.Ints({g.groups, g.taps, g.depth, g.outputs})});
  return f("Transpose", {parts, f.Ints({1, 2, 0, 3})});
}

// Inputs: x, the filter's sizes, and the gradient.
Result<Values> LowerFilterGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const std::vector<int64_t> filter, b.KnownInts(1, "filter_sizes"));
  if (static_cast<int>(filter.size()) != layout.rank) {
    return InvalidArgument("filter_sizes has ", filter.size(), " entries for rank ", layout.rank);
  }
  for (int64_t size : filter) {
    if (size < 1 || size > (int64_t{1} << 31)) return Unsupported("a filter with the size ", size);
  }
  const bool depthwise = b.op().starts_with("Depthwise");
  const auto n = static_cast<size_t>(layout.spatial());
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, true));
  auto attrs = window.As<ExtractPatchesAttrs>();
  attrs.kernel.assign(filter.begin(), filter.begin() + static_cast<long>(n));
  FilterGroups g;
  for (int64_t size : attrs.kernel) g.taps = SaturatingMul(g.taps, size);
  if (depthwise) {
    g.groups = filter[n];
    g.outputs = filter[n + 1];
  } else {
    // One group is assumed if the number is unknown. If the input has more channels, the product
    // then fails, because the input has more elements than the gradient has pixels for.
    const PartialShape& x = b.in_fact(0).shape;
    const bool known = x.ranked() && x.rank() == layout.rank && x[layout.channel_axis()].known();
    const int64_t channels = known ? x[layout.channel_axis()].size : filter[n];
    if (channels < 1 || channels % filter[n] != 0 || filter[n + 1] % (channels / filter[n]) != 0) {
      return InvalidArgument("the input has ", channels, " channels and the filter ", filter[n],
                             " by ", filter[n + 1]);
    }
    g.depth = filter[n];
    g.groups = channels / filter[n];
    g.outputs = filter[n + 1] / g.groups;
  }
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  ValueId dy = b.in(2);
  if (layout.channels_first) {
    ONCILLA_ASSIGN(dy, b.ChannelsLast(dy, layout.rank, "gradient"));
  }
  TfFormula f(b);
  const ValueId patches = f(attrs, {x});
  const ValueId product = FilterProduct(f, g, patches, SizedLike(f, dy, patches));
  return f.Last("Reshape", {product, f.Ints(filter)});
}

// Adds each element of the gradient to the element that was the maximum of its window.
Result<Values> ScatterToPlaces(TfFormula& f, const TfLayout& layout, ValueId x, ValueId places,
                               ValueId dy, DType dtype) {
  const ValueId sizes = f("Shape", {x});
  const ValueId count = f("Reshape", {f("Size", {x}), f.Ints({1})});
  const ValueId zeros = f("Fill", {count, f.Number(dtype, 0)});
  const ValueId to = f("Reshape", {places, f.Ints({-1, 1})});
  const ValueId updates = f("Reshape", {dy, f.Ints({-1})});
  const ValueId sums = f(ScatterNDAttrs{.reduction = "add"}, {zeros, to, updates});
  if (!layout.channels_first) return f.Last("Reshape", {sums, sizes});
  const ValueId inner = f("Reshape", {sums, sizes});
  std::vector<int64_t> perm = {0, layout.rank - 1};
  for (int64_t i = 1; i < layout.rank - 1; ++i) perm.push_back(i);
  return f.Last("Transpose", {inner, f.Ints(perm)});
}

// Inputs: x, the pool's result, and the gradient; MaxPoolGradV2 has the windows as further inputs.
Result<Values> LowerMaxPoolGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  PoolWindow window;
  if (b.op() == "MaxPoolGradV2") {
    ONCILLA_ASSIGN(const std::vector<int64_t> ksize, b.KnownInts(3, "ksize"));
    ONCILLA_ASSIGN(const std::vector<int64_t> strides, b.KnownInts(4, "strides"));
    Window sides;
    ONCILLA_ASSIGN(sides.strides, SpatialOf(strides, "strides", layout));
    ONCILLA_TRY(AddPadding(b, layout, sides));
    window = sides.As<PoolWindow>();
    ONCILLA_ASSIGN(window.kernel, SpatialOf(ksize, "ksize", layout));
  } else {
    ONCILLA_ASSIGN(window, ReadPoolWindow(b, layout, "ksize"));
  }
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  ValueId dy = b.in(2);
  if (layout.channels_first) {
    ONCILLA_ASSIGN(dy, b.ChannelsLast(dy, layout.rank, "gradient"));
  }
  TfFormula f(b);
  const Values pooled = f.All("MaxPool", MaxPoolAttrs{window, true}, {x}, 2);
  return ScatterToPlaces(f, layout, x, pooled[1], SizedLike(f, dy, pooled[1]), b.dtype(2));
}

// Inputs: x, the gradient, and the indices that MaxPoolWithArgmax found.
Result<Values> LowerMaxPoolGradWithArgmax(TfLowering& b) {
  ONCILLA_ASSIGN(const bool whole, b.attrs().Bool("include_batch_in_index"));
  TfFormula f(b);
  ValueId places = f.Cast(b.in(2), DType::kI64);
  if (!whole) {
    // The indices count from the start of each sample, so the offset of the sample is added.
    const ValueId sample = f("ReduceProd", {f(ShapeAttrs{.start = 1}, {b.in(0)})});
    const ValueId batch = f("Squeeze", {f(ShapeAttrs{.start = 0, .end = 1}, {b.in(0)})});
    const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
    const ValueId starts = f("Mul", {f("Range", {zero, batch, one}), sample});
    places = f("Add", {places, f("Reshape", {starts, f.Ints({-1, 1, 1, 1})})});
  }
  return ScatterToPlaces(f, TfLayout(), b.in(0), places, b.in(1), b.dtype(1));
}

// Inputs: the sizes of x, and the gradient. Each element is divided by the number of elements in
// its window and distributed to all of them: a depthwise transposed convolution with ones.
Result<Values> LowerAvgPoolGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const PoolWindow window, ReadPoolWindow(b, layout, "ksize"));
  TfFormula f(b);
  const DType dtype = b.dtype(1);
  ValueId dy = b.in(1);
  if (!layout.channels_first) dy = f.Keep(b.ChannelsFirst(dy, layout.rank, "channels_first"));
  const int64_t first = layout.channels_first ? 2 : 1;
  const ValueId all = f.Cast(b.in(0), DType::kI64);
  const ValueId sizes = f("Slice", {all, f.Ints({first}), f.Ints({first + layout.spatial()})});
  const ValueId out = f(ShapeAttrs{.start = 2}, {dy});
  const auto single = [&](ValueId spatial) {
    return f(ConcatAttrs{.axis = 0}, {f.Ints({-1}), spatial, f.Ints({1})});
  };
  const ValueId planes = f("Reshape", {dy, single(out)});
  const ValueId one = f.Number(dtype, 1);
  ConvAttrs conv;
  conv.strides = window.strides;
  conv.pads = window.pads;
  conv.auto_pad = window.auto_pad;
  std::vector<int64_t> filter_sizes = window.kernel;
  filter_sizes.insert(filter_sizes.end(), {1, 1});
  const ValueId filter = f("Fill", {f.Ints(filter_sizes), one});
  const ValueId plane = f(ConcatAttrs{.axis = 0}, {f.Ints({1}), sizes, f.Ints({1})});
  const ValueId seen = f(conv, {f("Fill", {plane, one}), filter});
  ConvTransposeAttrs spread;
  spread.strides = window.strides;
  spread.pads = window.pads;
  spread.auto_pad = window.auto_pad;
  spread.exact_size = window.auto_pad == "same_upper";
  // If the gradient's sizes are not those of the pool's result, this reshape fails.
  const ValueId shares = f("Reshape", {f("Div", {planes, seen}), f("Shape", {planes})});
  const ValueId dx = f(spread, {shares, filter, kNoValue, sizes});
  if (layout.channels_first) return f.Last("Reshape", {dx, all});
  const ValueId outer = f(ShapeAttrs{.start = 0, .end = 2}, {dy});
  const ValueId inner = f("Reshape", {dx, f(ConcatAttrs{.axis = 0}, {outer, sizes})});
  std::vector<int64_t> perm = {0};
  for (int64_t i = 2; i < layout.rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return f.Last("Transpose", {inner, f.Ints(perm)});
}

// Inputs: dy, x, scale, mean and variance (of the batch in training, else the running ones).
// Results: the gradients of x, scale and offset.
Result<Values> LowerBatchNormGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const bool training, b.attrs().Bool("is_training"));
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("epsilon"));
  const DType to = b.dtype(0), dtype = b.dtype(2);
  std::vector<int64_t> axes;
  std::vector<int64_t> wide(static_cast<size_t>(layout.rank), 1);
  for (int axis = 0; axis < layout.rank; ++axis) {
    if (axis != layout.channel_axis()) axes.push_back(axis);
  }
  wide[static_cast<size_t>(layout.channel_axis())] = -1;
  TfFormula f(b);
  const auto spread = [&](ValueId x) { return f("Reshape", {x, f.Ints(wide)}); };
  const ValueId over = f.Ints(axes);
  const ValueId dy = f.Cast(b.in(0), dtype), x = f.Cast(b.in(1), dtype);
  const ValueId centred = f("Sub", {x, spread(b.in(3))});
  const ValueId variance = f("Add", {b.in(4), f.Number(dtype, double{epsilon})});
  const ValueId rate = f("Rsqrt", {variance});
  const ValueId sum = f("ReduceSum", {dy, over});
  const ValueId dot = f("ReduceSum", {f("Mul", {dy, centred}), over});
  const ValueId factor = spread(f("Mul", {rate, b.in(2)}));
  ValueId inner = dy;
  if (training) {
    const ValueId size = f("Size", {b.in(1)});
    const ValueId channels = f("Max", {f("Size", {b.in(2)}), f.Number(DType::kI64, 1)});
    const ValueId n =
        f.Cast(f("Max", {f("Div", {size, channels}), f.Number(DType::kI64, 1)}), dtype);
    const ValueId mean = spread(f("Div", {sum, n}));
    const ValueId slope = spread(f("Div", {f("Div", {dot, n}), variance}));
    inner = f("Sub", {f("Sub", {dy, mean}), f("Mul", {centred, slope})});
  }
  const ValueId dx = f.Cast(f("Mul", {inner, factor}), to);
  return f.Done({dx, f("Mul", {dot, rate}), sum, kNoValue, kNoValue});
}

// Inputs: dy, x, y. The window over channels is a product with a band matrix of ones.
Result<Values> LowerLrnGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t radius, b.attrs().Int("depth_radius"));
  ONCILLA_ASSIGN(const float bias, b.attrs().Float("bias"));
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  ONCILLA_ASSIGN(const float beta, b.attrs().Float("beta"));
  if (radius < 0 || radius > (1 << 20)) return InvalidArgument("depth_radius is ", radius);
  TfFormula f(b);
  const DType dtype = b.dtype();
  const ValueId channels = f(ShapeAttrs{.start = -1}, {b.in(1)});
  const ValueId square = f(ConcatAttrs{.axis = 0}, {channels, channels});
  const ValueId ones = f("Fill", {square, f.Number(dtype, 1)});
  const ValueId upper = f(TriluAttrs{.upper = true},
                          {ones, f.Keep(b.Scalar(DType::kI64, static_cast<double>(-radius)))});
  const ValueId band = f(TriluAttrs{.upper = false},
                         {upper, f.Keep(b.Scalar(DType::kI64, static_cast<double>(radius)))});
  const ValueId sums = f("MatMul", {f("Square", {b.in(1)}), band});
  const ValueId norm =
      f("Add", {f("Mul", {sums, f.Number(dtype, double{alpha})}), f.Number(dtype, double{bias})});
  const ValueId own = f("Mul", {b.in(0), f("Pow", {norm, f.Number(dtype, -double{beta})})});
  const ValueId terms = f("Div", {f("Mul", {b.in(0), b.in(2)}), norm});
  const ValueId others = f("Mul", {b.in(1), f("MatMul", {terms, band})});
  const double share = -2.0 * double{alpha} * double{beta};
  return f.Last("Add", {own, f("Mul", {others, f.Number(dtype, share)})});
}

constexpr TfOpRow kRows[] = {
    {"AvgPool3DGrad", 2, "", LowerAvgPoolGrad},
    {"AvgPoolGrad", 2, "", LowerAvgPoolGrad},
    {"Conv2DBackpropFilter", 3, "", LowerFilterGrad},
    {"Conv3DBackpropFilterV2", 3, "", LowerFilterGrad},
    {"DepthwiseConv2dNativeBackpropFilter", 3, "", LowerFilterGrad},
    {"FusedBatchNormGrad", 5, "", LowerBatchNormGrad},
    {"FusedBatchNormGradV2", 5, "", LowerBatchNormGrad},
    {"FusedBatchNormGradV3", 5, "", LowerBatchNormGrad},
    {"LRNGrad", 3, "", LowerLrnGrad},
    {"MaxPool3DGrad", 3, "", LowerMaxPoolGrad},
    {"MaxPoolGrad", 3, "", LowerMaxPoolGrad},
    {"MaxPoolGradV2", 5, "", LowerMaxPoolGrad},
    {"MaxPoolGradWithArgmax", 3, "", LowerMaxPoolGradWithArgmax},
};

}  // namespace

std::span<const TfOpRow> TfWindowGradientRows() { return kRows; }

}  // namespace oncilla
