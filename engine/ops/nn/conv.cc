// Convolutions: inference, geometry and rows.
#include "engine/ops/nn/conv.h"

#include "engine/ops/math/activation.h"
#include "engine/ops/nn/fused_conv.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The number of spatial axes, from x or the filter, whichever has a known rank; 0 if neither has.
Result<int> SpatialRank(const Fact& x, const Fact& filter) {
  for (const Fact* fact : {&x, &filter}) {
    if (!fact->shape.ranked()) continue;
    const int spatial = fact->shape.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial) {
      return InvalidArgument(fact == &x ? "input" : "filter",
                             " must have rank 3, 4 or 5, not shape ", fact->shape);
    }
    ONCILLA_TRY(RequireRank(x, spatial + 2, "input"));
    ONCILLA_TRY(RequireRank(filter, spatial + 2, "filter"));
    return spatial;
  }
  return 0;
}

Status CheckGroups(int64_t groups, const Dim& channels, std::string_view what) {
  if (groups < 1) return InvalidArgument("groups is ", groups);
  if (channels.known() && channels.size % groups != 0) {
    return InvalidArgument(channels.size, " ", what, " do not divide into ", groups, " groups");
  }
  return Status();
}

Status CheckBias(std::span<const Fact> in, const Dim& channels) {
  if (in.size() < 3 || in[2].absent()) return Status();
  ONCILLA_TRY(RequireRank(in[2], 1, "bias"));
  if (in[2].shape.ranked() && in[2].shape[0].known() && channels.known() &&
      in[2].shape[0].size != channels.size) {
    return InvalidArgument("bias has ", in[2].shape[0].size, " elements for ", channels.size,
                           " channels");
  }
  return Status();
}

Dim At(const PartialShape& shape, int i) { return shape.ranked() ? shape[i] : Dim(); }
Dim Back(const PartialShape& shape, int i) {
  return shape.ranked() ? shape[shape.rank() - i] : Dim();
}

Result<Facts> InferConv(const ConvAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_TRY(RequireSameDType(in));
  ONCILLA_TRY(ActivationFromName(attrs.activation).status());
  ONCILLA_ASSIGN(PartialShape shape, ConvShape(attrs, in.first(std::min<size_t>(in.size(), 3))));
  if (shape.ranked() && in.size() > 3 && !in[3].absent()) {
    auto merged = MergeShapes(shape, in[3].shape);
    if (!merged.ok()) return In(merged.status(), "residual and output differ in shape");
    shape = *std::move(merged);
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferGatedConv(const ConvAttrs& attrs, std::span<const Fact> in) {
  using In = GatedConvInput;
  if (in.size() <= In::kGate || in[In::kGate].absent()) {
    return InvalidArgument("the gate is missing");
  }
  ONCILLA_TRY(RequireFloat(in[In::kGate], "gate"));
  ONCILLA_ASSIGN(Facts out, InferConv(attrs, in));  // this also checks that all dtypes agree
  const PartialShape &x = in[In::kX].shape, &gate = in[In::kGate].shape;
  if (!gate.ranked() || !x.ranked()) return out;
  ONCILLA_TRY(RequireRank(in[In::kGate], x.rank(), "gate"));
  for (int i = 0; i < gate.rank(); ++i) {
    const Dim wanted = i == 0 || i == gate.rank() - 1 ? x[i] : Dim(1);
    if (gate[i].known() && wanted.known() && gate[i].size != wanted.size) {
      return InvalidArgument("gate of shape ", gate, " does not fit an input of shape ", x);
    }
  }
  return out;
}

// The result of one of the three convolutions; `in` holds its filter and bias.
Result<Fact> StageOf(const ConvAttrs& attrs, const Fact& x, std::span<const Fact> in,
                     std::string_view what) {
  const Fact facts[] = {x, in[0], in.size() > 1 ? in[1] : Fact::Absent()};
  auto shape = ConvShape(attrs, facts);
  if (!shape.ok()) return In(shape.status(), what);
  return Fact::Of(x.dtype, *std::move(shape));
}

Result<Facts> InferInvertedResidual(const InvertedResidualAttrs& attrs, std::span<const Fact> in) {
  using Place = InvertedResidualInput;
  const auto has = [&](size_t i) { return i < in.size() && !in[i].absent(); };
  const auto stage = [&](size_t i) { return in.subspan(i, std::min<size_t>(2, in.size() - i)); };
  if (!has(Place::kX) || !has(Place::kDepthwise)) {
    return InvalidArgument("input or filter is missing");
  }
  ONCILLA_TRY(RequireFloat(in[Place::kX], "input"));
  ONCILLA_TRY(RequireSameDType(in));
  ONCILLA_TRY(RequireRank(in[Place::kX], 4, "input"));
  for (size_t i : {size_t{Place::kExpand}, size_t{Place::kDepthwise}, size_t{Place::kProject}}) {
    if (has(i)) ONCILLA_TRY(RequireRank(in[i], 4, "filter"));
  }
  for (const std::string& name :
       {attrs.expand_activation, attrs.depthwise_activation, attrs.activation}) {
    ONCILLA_TRY(ActivationFromName(name).status());
  }
  Fact y = in[Place::kX];
  if (has(Place::kExpand)) {
    ONCILLA_ASSIGN(y, StageOf(attrs.Expand(), y, stage(Place::kExpand), "expand"));
  } else if (has(Place::kExpandBias)) {
    return InvalidArgument("a bias without expand");
  }
  const PartialShape& filter = in[Place::kDepthwise].shape;
  if (Back(filter, 2).known() && Back(filter, 2).size != 1) {
    return InvalidArgument("depthwise has filters over ", Back(filter, 2), " channels, not one");
  }
  Dim channels = Back(filter, 1);
  if (!channels.known()) channels = Back(y.shape, 1);
  if (channels.known()) {
    ONCILLA_ASSIGN(
        y, StageOf(attrs.Depthwise(channels.size), y, stage(Place::kDepthwise), "depthwise"));
  } else {
    y = Fact::Of(y.dtype, PartialShape({At(y.shape, 0), Dim(), Dim(), Dim()}));
  }
  const bool projects = has(Place::kProject);
  if (!projects &&
      (has(Place::kProjectBias) || has(Place::kResidual) || attrs.activation != "none")) {
    return InvalidArgument("a bias, a residual or an activation without project");
  }
  if (projects && attrs.mean) return InvalidArgument("mean cannot be combined with project");
  if (projects) {
    const PartialShape& one = in[Place::kProject].shape;
    for (int i = 0; one.ranked() && i < 2; ++i) {
      if (one[i].known() && one[i].size != 1) {
        return InvalidArgument("project has a window of shape ", one, ", not 1x1");
      }
    }
    ONCILLA_ASSIGN(y, StageOf({}, y, stage(Place::kProject), "project"));
  }
  if (has(Place::kResidual)) {
    auto merged = MergeShapes(y.shape, in[Place::kResidual].shape);
    if (!merged.ok()) return In(merged.status(), "residual and output differ in shape");
    y.shape = *std::move(merged);
  }
  Facts out = {Fact::Of(y.dtype, y.shape)};
  if (attrs.mean) {
    out.push_back(
        Fact::Of(y.dtype, PartialShape({At(y.shape, 0), Dim(1), Dim(1), Back(y.shape, 1)})));
  }
  return out;
}

Result<std::vector<int64_t>> OutputPads(const ConvTransposeAttrs& attrs, const WindowSpec& spec) {
  const auto count = static_cast<size_t>(spec.spatial);
  std::vector<int64_t> pads = attrs.output_pads;
  if (pads.empty()) pads.assign(count, 0);
  if (pads.size() != count) {
    return InvalidArgument("output_pads has ", pads.size(), " numbers, not ", count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (pads[i] < 0 || pads[i] >= std::max(spec.stride[i], spec.dilation[i])) {
      return InvalidArgument("output_pads contains ", pads[i],
                             ", which is not below stride or dilation");
    }
  }
  return pads;
}

Status CheckExact(const WindowSpec& spec, int axis, int64_t small, int64_t asked) {
  const int64_t stride = spec.stride[static_cast<size_t>(axis)];
  const int64_t fits = asked / stride + (asked % stride != 0 ? 1 : 0);
  if (fits == small) return Status();
  return InvalidArgument("an output of ", asked, " with stride ", stride, " has a gradient of ",
                         fits, ", not ", small);
}

Result<Facts> InferConvTranspose(const ConvTransposeAttrs& attrs, std::span<const Fact> in) {
  const Fact &x = in[0], &filter = in[1];
  ONCILLA_TRY(RequireFloat(x, "input"));
  ONCILLA_TRY(RequireSameDType(in.first(std::min<size_t>(in.size(), 3))));
  ONCILLA_ASSIGN(const int spatial, SpatialRank(x, filter));
  ONCILLA_TRY(CheckGroups(attrs.groups, Dim(), "channels"));
  if (in.size() > 3 && !in[3].absent()) ONCILLA_TRY(RequireInteger(in[3], "output_size"));
  if (spatial == 0) return Facts{Fact::Of(x.dtype, PartialShape())};
  ONCILLA_ASSIGN(const WindowSpec spec, MakeWindowSpec(spatial, attrs.strides, attrs.dilations,
                                                       attrs.pads, attrs.auto_pad));
  ONCILLA_ASSIGN(const auto output_pads, OutputPads(attrs, spec));
  const Dim channels = Back(x.shape, 1), per_group = Back(filter.shape, 2);
  ONCILLA_TRY(CheckGroups(attrs.groups, channels, "input channels"));
  if (!MergeShapes(PartialShape(std::vector<Dim>{channels}),
                   PartialShape(std::vector<Dim>{Back(filter.shape, 1)}))
           .ok()) {
    return InvalidArgument("input has ", channels, " channels, filter wants ",
                           Back(filter.shape, 1));
  }
  const Dim out_channels =
      per_group.known() ? Dim(SaturatingMul(per_group.size, attrs.groups)) : Dim();
  ONCILLA_TRY(CheckBias(in, out_channels));
  std::vector<Dim> asked(static_cast<size_t>(spatial));
  bool asks = false;
  if (in.size() > 3 && !in[3].absent()) {
    asks = true;
    if (auto ints = KnownInts(in[3])) {
      if (ints->size() != asked.size()) {
        return InvalidArgument("output_size has ", ints->size(), " numbers, not ", spatial);
      }
      asked = *std::move(ints);
      for (const Dim& d : asked) {
        if (in[3].has_value() && d.size < 0) {
          return InvalidArgument("output_size contains ", d.size);
        }
      }
    }
  }
  std::vector<Dim> dims{At(x.shape, 0)};
  for (int i = 0; i < spatial; ++i) {
    const Dim& want = asked[static_cast<size_t>(i)];
    if (asks && !want.known()) {
      dims.push_back(want);
      continue;
    }
    if (attrs.exact_size && want.known() && At(x.shape, 1 + i).known()) {
      ONCILLA_TRY(CheckExact(spec, i, At(x.shape, 1 + i).size, want.size));
    }
    ONCILLA_ASSIGN(Dim d, SpreadDim(spec, i, At(x.shape, 1 + i), At(filter.shape, i),
                                    output_pads[static_cast<size_t>(i)], want));
    dims.push_back(std::move(d));
  }
  dims.push_back(out_channels);
  return Facts{Fact::Of(x.dtype, PartialShape(std::move(dims)))};
}

constexpr OpDef kConvOps[] = {
    Op<InferConv>("Conv", {.inputs = {2, 4},
                           .axes = Samples(0b1001),
                           .storage = StorageRule::kStarts,
                           .work = Work::kTaps}),
    Op<InferGatedConv>("GatedConv", {.inputs = {2, 5},
                                     .axes = Samples(0b11001),
                                     .storage = StorageRule::kStarts,
                                     .work = Work::kTaps}),
    Op<InferInvertedResidual>(
        "InvertedResidual",
        {.inputs = {1, 8}, .axes = Samples(0b10000001), .storage = StorageRule::kStarts}),
    Op<InferConvTranspose>("ConvTranspose", {.inputs = {2, 4},
                                             .plan_inputs = 0b1000,
                                             .axes = Samples(),
                                             .storage = StorageRule::kStarts,
                                             .work = Work::kTapsBackwards}),
};

}  // namespace

Result<PartialShape> ConvShape(const ConvAttrs& attrs, std::span<const Fact> in) {
  const Fact &x = in[0], &filter = in[1];
  ONCILLA_ASSIGN(const int spatial, SpatialRank(x, filter));
  ONCILLA_TRY(CheckGroups(attrs.groups, Dim(), "channels"));
  if (spatial == 0) return PartialShape();
  ONCILLA_ASSIGN(const WindowSpec spec, MakeWindowSpec(spatial, attrs.strides, attrs.dilations,
                                                       attrs.pads, attrs.auto_pad));
  const Dim channels = Back(x.shape, 1), per_group = Back(filter.shape, 2);
  const Dim out_channels = Back(filter.shape, 1);
  ONCILLA_TRY(CheckGroups(attrs.groups, channels, "input channels"));
  ONCILLA_TRY(CheckGroups(attrs.groups, out_channels, "output channels"));
  if (channels.known() && per_group.known() &&
      channels.size != SaturatingMul(per_group.size, attrs.groups)) {
    return InvalidArgument("input has ", channels.size, " channels, filter and groups want ",
                           SaturatingMul(per_group.size, attrs.groups));
  }
  ONCILLA_TRY(CheckBias(in, out_channels));
  std::vector<Dim> dims{At(x.shape, 0)};
  for (int i = 0; i < spatial; ++i) {
    ONCILLA_ASSIGN(Dim d, SlideDim(spec, i, At(x.shape, 1 + i), At(filter.shape, i)));
    dims.push_back(std::move(d));
  }
  dims.push_back(out_channels);
  return PartialShape(std::move(dims));
}

ConvAttrs InvertedResidualAttrs::Expand() const {
  ConvAttrs conv;
  conv.strides = expand_strides;
  conv.dilations = expand_dilations;
  conv.pads = expand_pads;
  conv.auto_pad = expand_auto_pad;
  conv.activation = expand_activation;
  return conv;
}

ConvAttrs InvertedResidualAttrs::Depthwise(int64_t channels) const {
  ConvAttrs conv;
  conv.strides = strides;
  conv.dilations = dilations;
  conv.pads = pads;
  conv.auto_pad = auto_pad;
  conv.groups = channels;
  conv.activation = depthwise_activation;
  return conv;
}

Result<InvertedResidualGeometry> GeometryOf(const InvertedResidualAttrs& attrs,
                                            const NodeView& node) {
  using In = InvertedResidualInput;
  InvertedResidualGeometry g;
  Shape x = node.inputs[In::kX].shape.ToShape();
  if (node.has_input(In::kExpand)) {
    ONCILLA_ASSIGN(g.expand,
                   ConvGeometry(attrs.Expand(), x, node.inputs[In::kExpand].shape.ToShape()));
    g.expands = true;
    x = Shape{x[0], g.expand.axis[1].out, g.expand.axis[2].out, g.expand.out_channels};
  }
  ONCILLA_ASSIGN(g.depthwise, ConvGeometry(attrs.Depthwise(x.back()), x,
                                           node.inputs[In::kDepthwise].shape.ToShape()));
  if (node.has_input(In::kProject)) g.columns = node.inputs[In::kProject].shape.ToShape().back();
  return g;
}

Result<WindowGeometry> ConvGeometry(const ConvAttrs& attrs, const NodeView& node) {
  return ConvGeometry(attrs, node.inputs[0].shape.ToShape(), node.inputs[1].shape.ToShape());
}

Result<WindowGeometry> ConvGeometry(const ConvAttrs& attrs, const Shape& x, const Shape& filter) {
  const int spatial = x.rank() - 2;
  ONCILLA_ASSIGN(const WindowSpec spec, MakeWindowSpec(spatial, attrs.strides, attrs.dilations,
                                                       attrs.pads, attrs.auto_pad));
  WindowGeometry g;
  g.batch = x[0];
  g.in_channels = x.back();
  g.out_channels = filter.back();
  g.groups = attrs.groups;
  for (int i = 0; i < spatial; ++i) {
    ONCILLA_ASSIGN(g.axis[static_cast<size_t>(kMaxSpatial - spatial + i)],
                   SlideAxis(spec, i, x[1 + i], filter[i]));
  }
  return g;
}

Result<WindowGeometry> ConvTransposeGeometry(const ConvTransposeAttrs& attrs,
                                             const NodeView& node) {
  const Shape x = node.inputs[0].shape.ToShape(), filter = node.inputs[1].shape.ToShape();
  const int spatial = x.rank() - 2;
  ONCILLA_ASSIGN(const WindowSpec spec, MakeWindowSpec(spatial, attrs.strides, attrs.dilations,
                                                       attrs.pads, attrs.auto_pad));
  ONCILLA_ASSIGN(const auto output_pads, OutputPads(attrs, spec));
  std::vector<int64_t> asked(static_cast<size_t>(spatial), -1);
  if (node.has_input(3)) {
    ONCILLA_ASSIGN(asked, NeedInts(node.inputs[3], "output_size"));
  }
  WindowGeometry g;
  g.batch = x[0];
  g.in_channels = x.back();
  g.out_channels = filter[spatial] * attrs.groups;
  g.groups = attrs.groups;
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    ONCILLA_ASSIGN(g.axis[static_cast<size_t>(kMaxSpatial - spatial + i)],
                   SpreadAxis(spec, i, x[1 + i], filter[i], output_pads[k], asked[k]));
  }
  return g;
}

std::span<const OpDef> ConvOps() { return kConvOps; }

}  // namespace oncilla
