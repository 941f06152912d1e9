// TensorFlow's rarer window ops: pools with sizes as inputs or with indices, patches, morphological
// dilation, and convolutions fused with padding or resizing of their input.
#include "engine/import/tf/ops/window.h"

#include "engine/import/lowering/shared_ops.h"

namespace oncilla {
namespace {

// MaxPoolV2 has the window and its strides as inputs.
Result<Values> LowerMaxPoolV2(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const std::vector<int64_t> ksize, b.KnownInts(1, "ksize"));
  ONCILLA_ASSIGN(const std::vector<int64_t> all_strides, b.KnownInts(2, "strides"));
  Window window;
  ONCILLA_ASSIGN(std::vector<int64_t> kernel, SpatialOf(ksize, "ksize", layout));
  ONCILLA_ASSIGN(window.strides, SpatialOf(all_strides, "strides", layout));
  ONCILLA_TRY(AddPadding(b, layout, window));
  auto attrs = window.As<MaxPoolAttrs>();
  attrs.kernel = std::move(kernel);
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  return One(AddChannelsLast(b, attrs, {x}, layout));
}

// Indices count from the start of the whole batch, or of each sample; in the latter case the
// sample's offset must be subtracted.
Result<Values> LowerMaxPoolWithArgmax(TfLowering& b) {
  const TfLayout layout;
  ONCILLA_ASSIGN(const PoolWindow window, ReadPoolWindow(b, layout, "ksize"));
  ONCILLA_ASSIGN(const bool whole, b.attrs().Bool("include_batch_in_index"));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("Targmax"));
  ONCILLA_ASSIGN(const Values pooled, b.AddAll(MaxPoolAttrs{window, true}, {b.in(0)}));
  ValueId places = pooled[1];
  if (!whole) {
    ONCILLA_ASSIGN(const ValueId sizes, b.Add(ShapeAttrs{.start = 1}, {b.in(0)}, "sizes"));
    ONCILLA_ASSIGN(const ValueId sample, b.Add("ReduceProd", {}, {sizes}, "sample"));
    ONCILLA_ASSIGN(places, b.Add("FloorMod", {}, {places, sample}, "in_sample"));
  }
  ONCILLA_ASSIGN(places, b.Cast(places, to, "argmax"));
  return Values{pooled[0], places};
}

Result<Values> LowerPatches(TfLowering& b) {
  const bool volume = b.op() == "ExtractVolumePatches";
  const TfLayout layout{false, volume ? 5 : 4};
  Window window;
  ONCILLA_ASSIGN(window.strides, SpatialInts(b, "strides", layout));
  ONCILLA_ASSIGN(std::vector<int64_t> kernel, SpatialInts(b, "ksizes", layout));
  if (!volume) {
    ONCILLA_ASSIGN(window.dilations, SpatialInts(b, "rates", layout));
  }
  ONCILLA_TRY(AddPadding(b, layout, window));
  auto attrs = window.As<ExtractPatchesAttrs>();
  attrs.kernel = std::move(kernel);
  return One(b.Add(attrs, {b.in(0)}));
}

Result<Values> LowerDilation(TfLowering& b) {
  const TfLayout layout;
  Window window;
  ONCILLA_ASSIGN(window.strides, SpatialInts(b, "strides", layout));
  ONCILLA_ASSIGN(window.dilations, SpatialInts(b, "rates", layout));
  ONCILLA_TRY(AddPadding(b, layout, window));
  if (b.op() == "Dilation2D") {
    return One(b.Add(window.As<DilationAttrs>(), {b.in(0), b.in(1)}));
  }
  auto attrs = window.As<DilationGradAttrs>();
  attrs.of_filter = b.op() == "Dilation2DBackpropFilter";
  return One(b.Add("DilationGrad", attrs, {b.in(0), b.in(1), b.in(2)}));
}

Result<ValueId> MirrorPadded(TfLowering& b, ValueId x, size_t paddings) {
  ONCILLA_ASSIGN(const std::string mode, b.attrs().String("mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") return Unsupported("mode ", mode);
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, paddings));
  return b.Add(PadAttrs{.mode = mode == "REFLECT" ? "reflect" : "symmetric", .once = true},
               {x, pads}, "padded");
}

Result<Values> ConvOf(TfLowering& b, ValueId x, size_t filter) {
  const TfLayout layout;
  ONCILLA_ASSIGN(const Window window, ReadWindow(b, layout, false));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, GroupsOf(b.fact(x), b.in_fact(filter), layout.rank));
  return One(b.Add(attrs, {x, b.in(filter)}));
}

Result<Values> LowerPadConv(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, MirrorPadded(b, b.in(0), 1));
  return ConvOf(b, x, 2);
}

Result<Values> LowerResizePadConv(TfLowering& b) {
  ONCILLA_ASSIGN(const bool corners, b.attrs().Bool("resize_align_corners"));
  ResizeAttrs attrs;
  attrs.mode = "linear";
  attrs.coordinates = corners ? "align_corners" : "asymmetric";
  ONCILLA_ASSIGN(ValueId x, b.Add(attrs, {b.in(0), b.in(1)}, "resized"));
  ONCILLA_ASSIGN(x, MirrorPadded(b, x, 2));
  return ConvOf(b, x, 3);
}

Result<Values> LowerFractional(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<float> ratios, b.attrs().Floats("pooling_ratio"));
  if (ratios.size() != 4) return InvalidArgument("pooling_ratio has ", ratios.size(), " numbers");
  if (ratios[0] != 1 || ratios[3] != 1) {
    return Unsupported("fractional pooling along the batch or the channels");
  }
  FractionalPoolAttrs attrs;
  attrs.mode = b.op() == "FractionalMaxPool" ? "max" : "average";
  attrs.ratios = {ratios[1], ratios[2]};
  ONCILLA_ASSIGN(attrs.pseudo_random, b.attrs().Bool("pseudo_random"));
  ONCILLA_ASSIGN(attrs.overlapping, b.attrs().Bool("overlapping"));
  ONCILLA_ASSIGN(attrs.seed, b.attrs().Int("seed"));
  ONCILLA_ASSIGN(attrs.seed2, b.attrs().Int("seed2"));
  return b.AddAll(attrs, {b.in(0)});
}

constexpr TfOpRow kRows[] = {
    {"Dilation2D", 2, "", LowerDilation},
    {"Dilation2DBackpropFilter", 3, "", LowerDilation},
    {"Dilation2DBackpropInput", 3, "", LowerDilation},
    {"ExtractImagePatches", 1, "", LowerPatches},
    {"ExtractVolumePatches", 1, "", LowerPatches},
    {"FractionalAvgPool", 1, "", LowerFractional},
    {"FractionalMaxPool", 1, "", LowerFractional},
    {"FusedPadConv2D", 3, "", LowerPadConv},
    {"FusedResizeAndPadConv2D", 4, "", LowerResizePadConv},
    {"MaxPoolV2", 3, "", LowerMaxPoolV2},
    {"MaxPoolWithArgmax", 1, "", LowerMaxPoolWithArgmax},
};

}  // namespace

std::span<const TfOpRow> TfWindowRows() { return kRows; }

}  // namespace oncilla
