// TensorFlow's rarer window ops: pools with sizes as inputs or with places, patches, morphological
// dilation, and convolutions fused with what pads or resizes their input.
#include "engine/import/tf_window.h"

namespace oncilla {
namespace {

// MaxPoolV2: the window and its strides are inputs.
Result<Values> LowerMaxPoolV2(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const std::vector<int64_t> ksize, b.KnownInts(1, "ksize"));
  ONCILLA_ASSIGN(const std::vector<int64_t> all_strides, b.KnownInts(2, "strides"));
  ONCILLA_ASSIGN(std::vector<int64_t> kernel, SpatialOf(ksize, "ksize", layout));
  ONCILLA_ASSIGN(std::vector<int64_t> strides, SpatialOf(all_strides, "strides", layout));
  AttrMap attrs = {{"kernel", std::move(kernel)}, {"strides", std::move(strides)}};
  ONCILLA_TRY(AddPadding(b, layout, attrs));
  ONCILLA_ASSIGN(const ValueId x, ToChannelsLast(b, b.in(0), layout));
  return One(AddChannelsLast(b, "MaxPool", std::move(attrs), {x}, layout));
}

// Places are counted from the start of the whole batch, or of each sample: then the sizes of a
// sample must be taken off.
Result<Values> LowerMaxPoolWithArgmax(TfLowering& b) {
  const TfLayout layout;
  ONCILLA_ASSIGN(AttrMap attrs, WindowAttrs(b, layout, false));
  ONCILLA_ASSIGN(std::vector<int64_t> kernel, SpatialInts(b, "ksize", layout));
  ONCILLA_ASSIGN(const bool whole, b.attrs().Bool("include_batch_in_index"));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("Targmax"));
  attrs.emplace("kernel", std::move(kernel));
  attrs.emplace("with_indices", true);
  ONCILLA_ASSIGN(const Values pooled, b.AddAll("MaxPool", std::move(attrs), {b.in(0)}));
  ValueId places = pooled[1];
  if (!whole) {
    ONCILLA_ASSIGN(const ValueId sizes,
                   b.Add("Shape", {{"start", int64_t{1}}}, {b.in(0)}, "sizes"));
    ONCILLA_ASSIGN(const ValueId sample, b.Add("ReduceProd", {}, {sizes}, "sample"));
    ONCILLA_ASSIGN(places, b.Add("FloorMod", {}, {places, sample}, "in_sample"));
  }
  if (to != DType::kI64) {
    ONCILLA_ASSIGN(places, b.Add("Cast", {{"to", to}}, {places}, "argmax"));
  }
  return Values{pooled[0], places};
}

Result<Values> LowerPatches(TfLowering& b) {
  const bool volume = b.op() == "ExtractVolumePatches";
  const TfLayout layout{false, volume ? 5 : 4};
  ONCILLA_ASSIGN(AttrMap attrs, [&]() -> Result<AttrMap> {
    AttrMap map;
    ONCILLA_ASSIGN(std::vector<int64_t> strides, SpatialInts(b, "strides", layout));
    map.emplace("strides", std::move(strides));
    ONCILLA_ASSIGN(std::vector<int64_t> kernel, SpatialInts(b, "ksizes", layout));
    map.emplace("kernel", std::move(kernel));
    if (!volume) {
      ONCILLA_ASSIGN(std::vector<int64_t> rates, SpatialInts(b, "rates", layout));
      map.emplace("dilations", std::move(rates));
    }
    ONCILLA_TRY(AddPadding(b, layout, map));
    return map;
  }());
  return One(b.Add("ExtractPatches", std::move(attrs), {b.in(0)}));
}

Result<Values> LowerDilation(TfLowering& b) {
  const TfLayout layout;
  AttrMap attrs;
  ONCILLA_ASSIGN(std::vector<int64_t> strides, SpatialInts(b, "strides", layout));
  ONCILLA_ASSIGN(std::vector<int64_t> rates, SpatialInts(b, "rates", layout));
  attrs.emplace("strides", std::move(strides));
  attrs.emplace("dilations", std::move(rates));
  ONCILLA_TRY(AddPadding(b, layout, attrs));
  return One(b.Add("Dilation", std::move(attrs), {b.in(0), b.in(1)}));
}

Result<ValueId> MirrorPadded(TfLowering& b, ValueId x, size_t paddings) {
  ONCILLA_ASSIGN(const std::string mode, b.attrs().String("mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") return Unsupported("mode ", mode);
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, paddings));
  return b.Add("Pad", {{"mode", std::string(mode == "REFLECT" ? "reflect" : "symmetric")}},
               {x, pads}, "padded");
}

Result<Values> ConvOf(TfLowering& b, ValueId x, size_t filter) {
  const TfLayout layout;
  ONCILLA_ASSIGN(AttrMap attrs, WindowAttrs(b, layout, false));
  ONCILLA_ASSIGN(const int64_t groups, GroupsOf(b.fact(x), b.in_fact(filter), layout.rank));
  if (groups != 1) attrs.emplace("groups", groups);
  return One(b.Add("Conv", std::move(attrs), {x, b.in(filter)}));
}

Result<Values> LowerPadConv(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, MirrorPadded(b, b.in(0), 1));
  return ConvOf(b, x, 2);
}

Result<Values> LowerResizePadConv(TfLowering& b) {
  ONCILLA_ASSIGN(const bool corners, b.attrs().Bool("resize_align_corners"));
  ONCILLA_ASSIGN(ValueId x,
                 b.Add("Resize",
                       {{"mode", std::string("linear")},
                        {"coordinates", std::string(corners ? "align_corners" : "asymmetric")}},
                       {b.in(0), b.in(1)}, "resized"));
  ONCILLA_ASSIGN(x, MirrorPadded(b, x, 2));
  return ConvOf(b, x, 3);
}

Result<Values> LowerFractional(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<float> ratios, b.attrs().Floats("pooling_ratio"));
  if (ratios.size() != 4) return InvalidArgument("pooling_ratio has ", ratios.size(), " numbers");
  if (ratios[0] != 1 || ratios[3] != 1) {
    return Unsupported("fractional pooling along the batch or the channels");
  }
  AttrMap attrs = {{"mode", std::string(b.op() == "FractionalMaxPool" ? "max" : "average")},
                   {"ratios", std::vector<double>{ratios[1], ratios[2]}}};
  for (const char* flag : {"pseudo_random", "overlapping"}) {
    ONCILLA_ASSIGN(const bool value, b.attrs().Bool(flag));
    attrs.emplace(flag, value);
  }
  for (const char* seed : {"seed", "seed2"}) {
    ONCILLA_ASSIGN(const int64_t value, b.attrs().Int(seed));
    attrs.emplace(seed, value);
  }
  return b.AddAll("FractionalPool", std::move(attrs), {b.in(0)});
}

constexpr TfOpRow kRows[] = {
    {"Dilation2D", 2, "", LowerDilation},
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
