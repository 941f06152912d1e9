// Pools: inference, geometry and rows.
#include "engine/ops/nn/pool.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<WindowSpec> Spec(const PoolWindow& window) {
  ONCILLA_ASSIGN(WindowSpec spec,
                 MakeWindowSpec(static_cast<int>(std::min<size_t>(window.kernel.size(), 99)),
                                window.strides, window.dilations, window.pads, window.auto_pad));
  spec.ceil = window.ceil;
  return spec;
}

Result<PartialShape> OutputShape(const PoolWindow& window, const Fact& x) {
  ONCILLA_ASSIGN(const WindowSpec spec, Spec(window));
  for (int64_t k : window.kernel) {
    if (k < 1) return InvalidArgument("kernel contains ", k);
  }
  ONCILLA_TRY(RequireRank(x, spec.spatial + 2, "input"));
  if (!x.shape.ranked()) return PartialShape::OfRank(spec.spatial + 2);
  PartialShape shape = x.shape;
  for (int i = 0; i < spec.spatial; ++i) {
    ONCILLA_ASSIGN(shape[1 + i],
                   SlideDim(spec, i, x.shape[1 + i], window.kernel[static_cast<size_t>(i)]));
  }
  return shape;
}

// A window that lies entirely in the padding has no maximum and no mean. ONNX Runtime and
// TensorFlow refuse such paddings too.
Result<PartialShape> PooledShape(const PoolWindow& window, const Fact& x) {
  ONCILLA_ASSIGN(PartialShape shape, OutputShape(window, x));
  ONCILLA_ASSIGN(const WindowSpec spec, Spec(window));
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t extent = SaturatingAdd(SaturatingMul(window.kernel[i] - 1, spec.dilation[i]), 1);
    const int64_t pad = std::max(spec.pad_begin[i], spec.pad_end[i]);
    if (pad >= extent) {
      return InvalidArgument("the padding ", pad, " is not below the window's size ", extent);
    }
  }
  return shape;
}

Result<Facts> InferMaxPool(const MaxPoolAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "input"));
  if (attrs.index_order != "nhwc" && attrs.index_order != "nchw") {
    return InvalidArgument("there is no index_order '", attrs.index_order, "'");
  }
  ONCILLA_ASSIGN(PartialShape shape, PooledShape(attrs, in[0]));
  Facts out{Fact::Of(in[0].dtype, shape)};
  if (attrs.with_indices) out.push_back(Fact::Of(DType::kI64, shape));
  return out;
}

Result<Facts> InferAveragePool(const AveragePoolAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_ASSIGN(PartialShape shape, PooledShape(attrs, in[0]));
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferLpPool(const LpPoolAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  if (attrs.p < 1) return InvalidArgument("p is ", attrs.p);
  ONCILLA_ASSIGN(PartialShape shape, PooledShape(attrs, in[0]));
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferExtractPatches(const ExtractPatchesAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(PartialShape shape, OutputShape(attrs, in[0]));
  if (!in[0].shape.ranked()) return Facts{Fact::Of(in[0].dtype, std::move(shape))};
  Dim& channels = shape[shape.rank() - 1];
  int64_t taps = 1;
  for (int64_t k : attrs.kernel) taps = SaturatingMul(taps, k);
  channels = channels.known() ? Dim(SaturatingMul(channels.size, taps)) : Dim();
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferDilation(const DilationAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "input"));
  ONCILLA_TRY(RequireSameDType(in));
  if (!attrs.kernel.empty()) return InvalidArgument("the filter gives the kernel");
  const PartialShape &x = in[0].shape, &filter = in[1].shape;
  if (!filter.known()) {
    const int rank = x.ranked() ? x.rank() : filter.ranked() ? filter.rank() + 1 : -1;
    PartialShape shape = rank < 0 ? PartialShape() : PartialShape::OfRank(rank);
    if (x.ranked()) {
      shape[0] = x[0];
      shape[rank - 1] = x[rank - 1];
    }
    return Facts{Fact::Of(in[0].dtype, std::move(shape))};
  }
  const Shape sizes = filter.ToShape();
  if (sizes.rank() < 1) return InvalidArgument("the filter has no axes");
  PoolWindow window = attrs;
  window.kernel.assign(sizes.begin(), sizes.end() - 1);
  ONCILLA_ASSIGN(PartialShape shape, OutputShape(window, in[0]));
  if (x.ranked() && x[x.rank() - 1].known() && x[x.rank() - 1].size != sizes.back()) {
    return InvalidArgument("the filter has ", sizes.back(), " channels and the input ",
                           x[x.rank() - 1].size);
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferDilationGrad(const DilationGradAttrs& attrs, std::span<const Fact> in) {
  DilationAttrs forward;
  static_cast<PoolWindow&>(forward) = attrs;
  ONCILLA_ASSIGN(const Facts y, InferDilation(forward, in.first(2)));
  if (in[2].dtype != in[0].dtype) {
    return InvalidArgument("the input is ", in[0].dtype, " and the gradient ", in[2].dtype);
  }
  const auto merged = MergeShapes(y[0].shape, in[2].shape);
  if (!merged.ok()) {
    return InvalidArgument("the gradient is ", in[2].shape, " for a dilation of ", y[0].shape);
  }
  const Fact& of = in[attrs.of_filter ? 1 : 0];
  return Facts{Fact::Of(of.dtype, of.shape)};
}

Result<Facts> InferFractionalPool(const FractionalPoolAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "input"));
  ONCILLA_TRY(RequireRank(in[0], 4, "input"));
  if (attrs.mode != "max" && attrs.mode != "average") {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  if (attrs.ratios.size() != 2 || !(attrs.ratios[0] >= 1) || !(attrs.ratios[1] >= 1)) {
    return InvalidArgument("the ratios of height and width must be two numbers from 1 on");
  }
  PartialShape shape = in[0].shape.ranked() ? in[0].shape : PartialShape::OfRank(4);
  Facts out(1);
  for (int i = 1; i < 3; ++i) {
    const Dim size = shape[i];
    shape[i] = Dim();
    if (size.known()) {
      const auto ratio = static_cast<float>(attrs.ratios[static_cast<size_t>(i - 1)]);
      shape[i] = Dim(static_cast<int64_t>(static_cast<float>(size.size) / ratio));
      if (shape[i].size == 0) return InvalidArgument("axis ", i, " has ", size.size, " elements");
    }
    out.push_back(
        Fact::Of(DType::kI64, PartialShape({shape[i].known() ? Dim(shape[i].size + 1) : Dim()})));
  }
  out[0] = Fact::Of(in[0].dtype, std::move(shape));
  return out;
}

constexpr OpDef kPoolOps[] = {
    Op<InferMaxPool>(
        "MaxPool", {.axes = Samples(), .storage = StorageRule::kCarries, .work = Work::kPerInput}),
    Op<InferAveragePool>(
        "AveragePool",
        {.axes = Samples(), .storage = StorageRule::kCarries, .work = Work::kPerInput}),
    Op<InferLpPool>("LpPool",
                    {.axes = Samples(), .storage = StorageRule::kSums, .work = Work::kPerInput}),
    Op<InferExtractPatches>("ExtractPatches",
                            {.axes = Samples(), .storage = StorageRule::kCarries}),
    Op<InferDilation>("Dilation", {.inputs = {2, 2}, .axes = Samples()}),
    Op<InferDilationGrad>("DilationGrad", {.inputs = {3, 3}}),
    Op<InferFractionalPool>("FractionalPool",
                            {.inputs = {1, 1}, .is_random = true, .work = Work::kPerInput}),
};

}  // namespace

Result<WindowGeometry> PoolGeometry(const PoolWindow& window, const NodeView& node) {
  const Shape x = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const WindowSpec spec, Spec(window));
  WindowGeometry g;
  g.batch = x[0];
  g.in_channels = g.out_channels = g.groups = x.back();
  for (int i = 0; i < spec.spatial; ++i) {
    ONCILLA_ASSIGN(g.axis[static_cast<size_t>(kMaxSpatial - spec.spatial + i)],
                   SlideAxis(spec, i, x[1 + i], window.kernel[static_cast<size_t>(i)]));
  }
  return g;
}

std::span<const OpDef> PoolOps() { return kPoolOps; }

}  // namespace oncilla
