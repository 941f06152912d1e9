// ONNX's Resize, its older form Upsample, and ops that sample an image at given points. ONNX may
// resize any axes; the canonical op resizes the spatial axes between batch and channels, so the
// axes are moved there.
#include <algorithm>
#include <cmath>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// The requested change of every axis: a scale, a size (as an i64 vector over all axes), or both;
// for tf_crop_and_resize also a region, as all starts followed by all ends.
struct Target {
  int rank = 0;
  std::vector<double> scales;  // empty if they are unknown
  ValueId sizes = kNoValue;
  ValueId computed_scales = kNoValue;  // over all axes, if the model computes them
  std::vector<double> region;
  ValueId computed_region = kNoValue;
  std::vector<char> resized;  // per axis
};

constexpr const char* kCoordinates[][2] = {
    {"half_pixel", "half_pixel"},
    {"half_pixel_symmetric", "half_pixel_symmetric"},
    {"pytorch_half_pixel", "pytorch_half_pixel"},
    {"align_corners", "align_corners"},
    {"asymmetric", "asymmetric"},
    {"tf_half_pixel_for_nn", "tf_half_pixel"},
    {"tf_crop_and_resize", "crop_and_resize"},
};

// Output sizes from the scales of all axes: the product in float, rounded down. `part` is a prefix
// for the names of the nodes.
Result<ValueId> SizesFromScales(OnnxLowering& b, ValueId scales, int rank, std::string_view part) {
  ONCILLA_ASSIGN(const ValueId old, b.Sizes(b.in(0), 0, rank, StrCat(part, "old_sizes")));
  ONCILLA_ASSIGN(const ValueId as_float, b.Cast(old, DType::kF32, StrCat(part, "float_sizes")));
  ONCILLA_ASSIGN(const ValueId product,
                 b.Add("Mul", {}, {as_float, scales}, StrCat(part, "scaled_sizes")));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Floor", {}, {product}, StrCat(part, "whole_sizes")));
  return b.Cast(whole, DType::kI64, StrCat(part, "sizes"));
}

Result<ValueId> SizesFromScales(OnnxLowering& b, const std::vector<double>& scales,
                                std::string_view part = "") {
  const PartialShape shape = b.in_fact(0).shape;
  std::vector<int64_t> sizes;
  std::vector<float> factors;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto scale = static_cast<float>(scales[i]);
    if (!(scale > 0) || scale > 1e6f) return InvalidArgument("a scale is ", scale);
    factors.push_back(scale);
    if (!shape.ranked() || !shape[static_cast<int>(i)].known()) continue;
    const float size = static_cast<float>(shape[static_cast<int>(i)].size) * scale;
    if (!(size < 1e15f)) return InvalidArgument("a size becomes ", size);
    sizes.push_back(static_cast<int64_t>(size));
  }
  if (sizes.size() == scales.size()) return b.Ints(std::move(sizes));
  const int rank = static_cast<int>(scales.size());
  return SizesFromScales(b, b.Constant(Tensor::Of<float>(DType::kF32, {rank}, factors)), rank,
                         part);
}

// If scales or regions are computed, they are assumed to concern the axes after batch and channels;
// the op refuses others at run time.
void ResizeSpatialAxes(Target& target) {
  target.resized.clear();
  for (int i = 0; i < target.rank; ++i) target.resized.push_back(i >= 2);
}

// Sizes with the input's aspect ratio kept: one scale for all named axes.
Status KeepProportions(OnnxLowering& b, const std::string& policy, const std::vector<int64_t>& axes,
                       std::vector<int64_t> asked, Target& target) {
  const PartialShape shape = b.in_fact(0).shape;
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim size = shape.ranked() ? shape[static_cast<int>(axes[i])] : Dim();
    if (!size.known() || size.size == 0) return Unsupported(policy, " of axes of unknown size");
    const double own = static_cast<double>(asked[i]) / static_cast<double>(size.size);
    if (i == 0) scale = own;
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  std::vector<int64_t> sizes;
  for (int i = 0; i < target.rank; ++i) {
    if (!shape[i].known()) return Unsupported(policy, " of axes of unknown size");
    sizes.push_back(shape[i].size);
  }
  target.scales.assign(static_cast<size_t>(target.rank), 1.0);
  for (int64_t axis : axes) {
    const double size = static_cast<double>(shape[static_cast<int>(axis)].size) * scale;
    sizes[static_cast<size_t>(axis)] = static_cast<int64_t>(std::floor(size + 0.5));
    target.scales[static_cast<size_t>(axis)] = scale;
  }
  target.sizes = b.Ints(std::move(sizes));
  return {};
}

// The same for sizes that are computed at run time.
Status KeepComputedProportions(OnnxLowering& b, const std::string& policy,
                               const std::vector<int64_t>& axes, Target& target) {
  const auto count = std::ssize(axes);
  const ValueId places = b.Ints(axes);
  ONCILLA_ASSIGN(const ValueId all, b.Sizes(b.in(0), 0, target.rank, "old_sizes"));
  ONCILLA_ASSIGN(ValueId own, b.Add("Gather", {}, {all, places}, "own_sizes"));
  ONCILLA_ASSIGN(own, b.Cast(own, DType::kF32, "own_float"));
  ONCILLA_ASSIGN(const ValueId asked, b.Cast(b.in(3), DType::kF32, "asked_float"));
  ONCILLA_ASSIGN(const ValueId ratios, b.Add("Div", {}, {asked, own}, "ratios"));
  ONCILLA_ASSIGN(const ValueId scale, b.Add(policy == "not_larger" ? "ReduceMin" : "ReduceMax",
                                            ReduceAttrs{.keep_dims = true}, {ratios}, "ratio"));
  ONCILLA_ASSIGN(const ValueId each, b.Add("Expand", {}, {scale, b.Ints({count})}, "each_ratio"));
  const std::vector<float> ones(static_cast<size_t>(target.rank), 1.0f);
  const ValueId kept = b.Constant(Tensor::Of<float>(DType::kF32, {target.rank}, ones));
  ONCILLA_ASSIGN(target.computed_scales,
                 b.Add("ScatterElements", {}, {kept, places, each}, "all_scales"));
  ONCILLA_ASSIGN(const ValueId half, b.Scalar(DType::kF32, 0.5));
  ONCILLA_ASSIGN(ValueId fresh, b.Add("Mul", {}, {own, scale}, "fresh"));
  ONCILLA_ASSIGN(fresh, b.Add("Add", {}, {fresh, half}, "raised"));
  ONCILLA_ASSIGN(fresh, b.Add("Floor", {}, {fresh}, "rounded"));
  ONCILLA_ASSIGN(fresh, b.Cast(fresh, DType::kI64, "fresh_sizes"));
  ONCILLA_ASSIGN(target.sizes, b.Add("ScatterElements", {}, {all, places, fresh}, "sizes"));
  ResizeSpatialAxes(target);
  return {};
}

// The sizes of all axes, where the model gives those of `axes`. They are combined by Concat and
// Gather, which keep single known sizes; these show which axes are resized at all.
Result<ValueId> ForAllAxes(OnnxLowering& b, ValueId some, const std::vector<int64_t>& axes,
                           int rank) {
  ONCILLA_ASSIGN(const ValueId asked, b.Cast(some, DType::kI64, "asked_sizes"));
  const PartialShape shape = b.fact(asked).shape;
  const auto count = std::ssize(axes);
  if (shape.ranked() && shape.rank() == 1 && shape[0].known() && shape[0].size != count) {
    return InvalidArgument("there are ", shape[0].size, " sizes for ", count, " axes");
  }
  std::vector<int64_t> places;
  for (int i = 0; i < rank; ++i) places.push_back(i);
  if (axes == places) return asked;
  for (int64_t i = 0; i < count; ++i) {
    places[static_cast<size_t>(axes[static_cast<size_t>(i)])] = rank + i;
  }
  ONCILLA_ASSIGN(const ValueId all, b.Sizes(b.in(0), 0, rank, "old_sizes"));
  ONCILLA_ASSIGN(const ValueId both,
                 b.Add(ConcatAttrs{.axis = 0}, {all, asked}, "old_and_asked_sizes"));
  return b.Add("Gather", {}, {both, b.Ints(std::move(places))}, "sizes");
}

Status FromScales(OnnxLowering& b, size_t input, const std::vector<int64_t>& axes, Target& target) {
  if (b.has(input) && !b.in_fact(input).has_value()) {
    ONCILLA_ASSIGN(target.computed_scales, b.Cast(b.in(input), DType::kF32, "scales"));
    if (static_cast<int>(axes.size()) != target.rank || !std::is_sorted(axes.begin(), axes.end())) {
      const std::vector<float> ones(static_cast<size_t>(target.rank), 1.0f);
      const ValueId kept = b.Constant(Tensor::Of<float>(DType::kF32, {target.rank}, ones));
      ONCILLA_ASSIGN(
          target.computed_scales,
          b.Add("ScatterElements", {}, {kept, b.Ints(axes), target.computed_scales}, "all_scales"));
    }
    ResizeSpatialAxes(target);
    ONCILLA_ASSIGN(target.sizes, SizesFromScales(b, target.computed_scales, target.rank, ""));
    return {};
  }
  ONCILLA_ASSIGN(const auto given, b.KnownNumbers(input, "the list of scales"));
  if (given.size() != axes.size()) {
    return InvalidArgument("there are ", given.size(), " scales for ", axes.size(), " axes");
  }
  target.scales.assign(static_cast<size_t>(target.rank), 1.0);
  for (size_t i = 0; i < axes.size(); ++i) target.scales[static_cast<size_t>(axes[i])] = given[i];
  for (double scale : target.scales) target.resized.push_back(scale != 1);
  ONCILLA_ASSIGN(target.sizes, SizesFromScales(b, target.scales));
  return {};
}

Status FromSizes(OnnxLowering& b, const std::vector<int64_t>& axes, Target& target) {
  ONCILLA_ASSIGN(const std::string policy, b.String("keep_aspect_ratio_policy", "stretch"));
  const bool keeps = policy == "not_larger" || policy == "not_smaller";
  if (keeps && !b.in_fact(3).has_value()) return KeepComputedProportions(b, policy, axes, target);
  if (keeps) {
    ONCILLA_ASSIGN(auto asked, b.KnownInts(3, "the list of sizes"));
    if (asked.size() != axes.size()) return InvalidArgument("there are ", asked.size(), " sizes");
    ONCILLA_TRY(KeepProportions(b, policy, axes, std::move(asked), target));
  } else if (policy == "stretch") {
    ONCILLA_ASSIGN(target.sizes, ForAllAxes(b, b.in(3), axes, target.rank));
  } else {
    return InvalidArgument("keep_aspect_ratio_policy is '", policy, "'");
  }
  // An axis that certainly keeps its size is not resized. A batch of unknown size is assumed to
  // keep it: batches are not resized in practice, and exporters write the size as a number.
  const PartialShape shape = b.in_fact(0).shape;
  const auto sizes = KnownInts(b.fact(target.sizes));
  if (sizes && static_cast<int>(sizes->size()) != target.rank) {
    return InvalidArgument("there are ", sizes->size(), " sizes for rank ", target.rank);
  }
  for (int i = 0; i < target.rank; ++i) {
    const Dim old = shape.ranked() ? shape[i] : Dim();
    const Dim now = sizes ? (*sizes)[static_cast<size_t>(i)] : Dim();
    const bool same = old.Same(now) || (i == 0 && !(old.known() && now.known()));
    target.resized.push_back(!same);
  }
  if (!target.scales.empty() || !sizes) return {};
  for (int i = 0; i < target.rank; ++i) {
    const Dim old = shape.ranked() ? shape[i] : Dim();
    const Dim& now = (*sizes)[static_cast<size_t>(i)];
    if (target.resized[static_cast<size_t>(i)] == 0) {
      target.scales.push_back(1);
    } else if (old.known() && now.known() && old.size > 0 && now.size > 0) {
      const float scale = static_cast<float>(now.size) / static_cast<float>(old.size);
      target.scales.push_back(double{scale});
    } else {
      target.scales.clear();
      break;
    }
  }
  return {};
}

// Reads the region of tf_crop_and_resize.
Status FromRegion(OnnxLowering& b, const std::vector<int64_t>& axes, Target& target) {
  const auto rank = static_cast<size_t>(target.rank);
  if (!b.has(1)) return DataLoss("tf_crop_and_resize has no region");
  if (!b.in_fact(1).has_value()) {
    ONCILLA_ASSIGN(target.computed_region, b.Cast(b.in(1), DType::kF32, "region"));
    if (axes.size() != rank || !std::is_sorted(axes.begin(), axes.end())) {
      std::vector<float> whole(2 * rank, 0.0f);
      std::fill_n(whole.begin() + target.rank, rank, 1.0f);
      const ValueId all = b.Constant(Tensor::Of<float>(DType::kF32, {2 * target.rank}, whole));
      std::vector<int64_t> places = axes;
      for (int64_t axis : axes) places.push_back(axis + target.rank);
      ONCILLA_ASSIGN(target.computed_region,
                     b.Add("ScatterElements", {},
                           {all, b.Ints(std::move(places)), target.computed_region}, "all_region"));
    }
    ResizeSpatialAxes(target);
    return {};
  }
  ONCILLA_ASSIGN(const auto given, b.KnownNumbers(1, "the region"));
  if (given.size() != 2 * axes.size()) {
    return InvalidArgument("the region has ", given.size(), " numbers for ", axes.size(), " axes");
  }
  target.region.assign(2 * rank, 0.0);
  std::fill_n(target.region.begin() + target.rank, rank, 1.0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    target.region[axis] = given[i];
    target.region[rank + axis] = given[axes.size() + i];
    if (given[i] != 0 || given[axes.size() + i] != 1) target.resized[axis] = 1;
  }
  return {};
}

// A computed list over all axes, in the order that the op expects: batch, resized axes, channels.
Result<ValueId> AroundAxes(OnnxLowering& b, ValueId all, const std::vector<int64_t>& axes, int rank,
                           bool region, std::string_view role) {
  // Any two axes that are not resized can serve as batch and channels, since their scale is 1 and
  // their region 0..1.
  std::vector<int64_t> others;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) others.push_back(i);
  }
  if (others.size() != 2) return Unsupported("axes and numbers that are computed while running");
  std::vector<int64_t> places = {others[0]};
  places.insert(places.end(), axes.begin(), axes.end());
  places.push_back(others[1]);
  for (size_t i = 0, count = places.size(); region && i < count; ++i) {
    places.push_back(places[i] + rank);
  }
  return b.Add("Gather", {}, {all, b.Ints(std::move(places))}, role);
}

// Resizes the axes first..last of x, which are between batch and channels; `axes` are their
// positions in the target.
Result<ValueId> AddResize(OnnxLowering& b, ResizeAttrs attrs, ValueId x, const Target& target,
                          const std::vector<int64_t>& axes, std::string_view role,
                          const std::string& part) {
  if (!target.scales.empty()) {
    for (int64_t axis : axes) attrs.scales.push_back(target.scales[static_cast<size_t>(axis)]);
  }
  if (!target.region.empty()) {
    for (size_t first : {size_t{0}, target.region.size() / 2}) {
      for (int64_t axis : axes) {
        attrs.region.push_back(target.region[first + static_cast<size_t>(axis)]);
      }
    }
  }
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add("Gather", {}, {target.sizes, b.Ints(axes)}, part + "spatial_sizes"));
  ValueId scales = kNoValue, region = kNoValue;
  if (target.computed_scales != kNoValue) {
    ONCILLA_ASSIGN(
        scales, AroundAxes(b, target.computed_scales, axes, target.rank, false, "spatial_scales"));
  }
  if (target.computed_region != kNoValue) {
    ONCILLA_ASSIGN(
        region, AroundAxes(b, target.computed_region, axes, target.rank, true, "spatial_region"));
  }
  return b.Add(attrs, {x, sizes, scales, region}, role);
}

// The whole op on x, of up to three axes; `part` begins the names of its parts where the node has
// more than one such.
Result<ValueId> PlaceAxes(OnnxLowering& b, ResizeAttrs attrs, const Target& target, ValueId given,
                          const std::string& part) {
  const int rank = target.rank;
  const std::string last = part.empty() ? "" : part + "whole";
  if (rank == 0) return InvalidArgument("a scalar has no axes to resize");
  std::vector<int64_t> axes;
  const auto resized = [&](int axis) { return target.resized[static_cast<size_t>(axis)] != 0; };
  if (rank >= 3 && rank <= 5 && !resized(0) && !resized(1)) {
    for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
    ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(given, rank, part + "channels_last"));
    ONCILLA_ASSIGN(const ValueId y,
                   AddResize(b, std::move(attrs), x, target, axes, part + "inner", part));
    return b.ChannelsFirst(y, rank, last);
  }
  if (rank >= 3 && rank <= 5 && !resized(0) && !resized(rank - 1)) {
    for (int64_t i = 1; i + 1 < rank; ++i) axes.push_back(i);
    return AddResize(b, std::move(attrs), given, target, axes, last, part);
  }
  // Any other choice of axes: all axes that are not resized are merged into one batch axis in
  // front, and a channel axis of size one is added at the end.
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    if (resized(i)) axes.push_back(i);
    if (!resized(i)) perm.push_back(i);
  }
  if (axes.empty()) axes.push_back(perm.back()), perm.pop_back();
  const int others = static_cast<int>(perm.size());
  perm.insert(perm.end(), axes.begin(), axes.end());
  for (int i = 0; i < rank; ++i) back[static_cast<size_t>(perm[static_cast<size_t>(i)])] = i;
  ONCILLA_ASSIGN(const ValueId ordered, b.Transpose(given, perm, part + "ordered"));
  // The product of the batch axes. If it is unknown, -1 lets Reshape infer it, which works unless a
  // resized axis is empty.
  int64_t batch = 1;
  for (int i = 0; i < others; ++i) {
    const Dim size = b.fact(ordered).shape[i];
    batch = batch >= 0 && size.known() ? SaturatingMul(batch, size.size) : -1;
  }
  const ValueId one = b.Ints({1});
  ONCILLA_ASSIGN(const ValueId old_sizes,
                 b.Sizes(ordered, others, rank, part + "spatial_old_sizes"));
  ONCILLA_ASSIGN(
      const ValueId batched,
      b.Add(ConcatAttrs{.axis = 0}, {b.Ints({batch}), old_sizes, one}, part + "batched_sizes"));
  ONCILLA_ASSIGN(const ValueId x, b.Add("Reshape", {}, {ordered, batched}, part + "batched"));
  ONCILLA_ASSIGN(const ValueId y,
                 AddResize(b, std::move(attrs), x, target, axes, part + "inner", part));
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add("Gather", {}, {target.sizes, b.Ints(perm)}, part + "ordered_sizes"));
  ONCILLA_ASSIGN(const ValueId unfolded, b.Add("Reshape", {}, {y, sizes}, part + "unfolded"));
  return b.Transpose(unfolded, std::move(back), last);
}

// More than three axes: three after the other, as each is resized for itself.
Result<ValueId> Place(OnnxLowering& b, const ResizeAttrs& attrs, const Target& target, ValueId x,
                      const std::string& part = "") {
  constexpr int kAtOnce = 3;
  std::vector<size_t> axes;
  for (size_t i = 0; i < target.resized.size(); ++i) {
    if (target.resized[i] != 0) axes.push_back(i);
  }
  if (axes.size() <= kAtOnce) return PlaceAxes(b, attrs, target, x, part);
  if (target.computed_scales != kNoValue || target.computed_region != kNoValue) {
    return Unsupported("of ", axes.size(), " axes by numbers that are computed while running");
  }
  const auto rank = static_cast<size_t>(target.rank);
  for (size_t first = 0; first < axes.size(); first += kAtOnce) {
    const size_t end = std::min(first + kAtOnce, axes.size());
    const std::string name = end == axes.size() ? part : StrCat(part, "axes", first, "_");
    Target some = target;
    std::vector<int64_t> places;
    for (size_t i = 0; i < rank; ++i) {
      const bool now = target.resized[i] != 0 && i >= axes[first] && i <= axes[end - 1];
      places.push_back(static_cast<int64_t>(now ? rank + i : i));
      if (now) continue;
      some.resized[i] = 0;
      if (!some.scales.empty()) some.scales[i] = 1;
      if (!some.region.empty()) some.region[i] = 0, some.region[rank + i] = 1;
    }
    ONCILLA_ASSIGN(const ValueId own, b.Sizes(x, 0, target.rank, name + "own_sizes"));
    ONCILLA_ASSIGN(const ValueId both,
                   b.Add(ConcatAttrs{.axis = 0}, {own, target.sizes}, name + "both_sizes"));
    ONCILLA_ASSIGN(some.sizes,
                   b.Add("Gather", {}, {both, b.Ints(std::move(places))}, name + "some_sizes"));
    ONCILLA_ASSIGN(x, PlaceAxes(b, attrs, some, x, name));
  }
  return x;
}

Result<Values> LowerResize(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "nearest"));
  ONCILLA_ASSIGN(std::string coordinates, b.String("coordinate_transformation_mode", "half_pixel"));
  ONCILLA_ASSIGN(std::string nearest, b.String("nearest_mode", "round_prefer_floor"));
  ONCILLA_ASSIGN(const float cubic, b.Float("cubic_coeff_a", -0.75f));
  ONCILLA_ASSIGN(const bool exclude, b.Flag("exclude_outside", false));
  ONCILLA_ASSIGN(const bool antialias, b.Flag("antialias", false));
  ONCILLA_ASSIGN(const float outside, b.Float("extrapolation_value", 0));
  b.Ignore("keep_aspect_ratio_policy");
  const auto* known = std::find_if(std::begin(kCoordinates), std::end(kCoordinates),
                                   [&](const auto& row) { return coordinates == row[0]; });
  if (known == std::end(kCoordinates)) {
    return Unsupported("coordinate_transformation_mode ", coordinates);
  }
  Target target;
  ONCILLA_ASSIGN(target.rank, b.Rank(0));
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.IntList("axes"));
  if (!b.HasAttr("axes")) {
    for (int64_t i = 0; i < target.rank; ++i) axes.push_back(i);
  }
  for (int64_t& axis : axes) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, target.rank));
    axis = at;
  }
  // An unused input may be given as an empty tensor.
  const auto used = [&](size_t i) { return b.has(i) && b.in_fact(i).shape.elements().size != 0; };
  if (used(3)) {
    ONCILLA_TRY(FromSizes(b, axes, target));
  } else if (used(2)) {
    ONCILLA_TRY(FromScales(b, 2, axes, target));
  } else {
    return DataLoss("neither scales nor sizes are given");
  }
  const bool crops = coordinates == "tf_crop_and_resize";
  if (crops) ONCILLA_TRY(FromRegion(b, axes, target));
  const bool shrinks =
      target.scales.empty() || std::any_of(target.scales.begin(), target.scales.end(),
                                           [](double scale) { return scale < 1; });
  ResizeAttrs attrs;
  attrs.antialias = antialias && shrinks && mode != "nearest";
  attrs.mode = mode;
  attrs.coordinates = (*known)[1];
  if (crops) attrs.outside = outside;
  if (mode == "nearest") attrs.nearest = nearest;
  if (mode == "cubic") attrs.cubic_a = cubic;
  attrs.exclude_outside = (mode == "cubic" || attrs.antialias) && exclude;
  if (mode == "linear" && exclude && !attrs.antialias)
    return Unsupported("with exclude_outside and mode linear");
  return One(Place(b, std::move(attrs), target, b.in(0)));
}

// Resize of opset 10, and Upsample: only scales, and no choice of coordinates.
Result<Values> LowerOldResize(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "nearest"));
  if (mode == "bilinear") mode = "linear";
  Target target;
  ONCILLA_ASSIGN(target.rank, b.Rank(0));
  if (b.op() == "Upsample" && b.version() < 7) {
    ONCILLA_ASSIGN(const float height, b.Float("height_scale", 0));
    ONCILLA_ASSIGN(const float width, b.Float("width_scale", 0));
    if (target.rank != 4) return InvalidArgument("an input of rank ", target.rank);
    target.scales = {1, 1, double{height}, double{width}};
    for (double scale : target.scales) target.resized.push_back(scale != 1);
    ONCILLA_ASSIGN(target.sizes, SizesFromScales(b, target.scales));
  } else if (b.op() == "Upsample" && b.version() < 9) {
    ONCILLA_ASSIGN(const std::vector<float> scales, b.FloatList("scales"));
    if (static_cast<int>(scales.size()) != target.rank) {
      return InvalidArgument("there are ", scales.size(), " scales for rank ", target.rank);
    }
    target.scales.assign(scales.begin(), scales.end());
    for (double scale : target.scales) target.resized.push_back(scale != 1);
    ONCILLA_ASSIGN(target.sizes, SizesFromScales(b, target.scales));
  } else {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < target.rank; ++i) axes.push_back(i);
    ONCILLA_TRY(FromScales(b, 1, axes, target));
  }
  if (target.computed_scales != kNoValue && mode == "nearest" && b.op() != "Upsample") {
    // The pixel to take depends on whether the axis shrinks or grows.
    return Unsupported("the list of scales is computed while running; it must be a constant");
  }
  ResizeAttrs attrs;
  attrs.mode = mode;
  attrs.coordinates = "asymmetric";
  if (mode != "nearest") return One(Place(b, std::move(attrs), target, b.in(0)));
  // Without a rule in the file, enlarging repeats pixels and shrinking takes the next pixel.
  const auto any = [&](auto test) {
    return std::any_of(target.scales.begin(), target.scales.end(), test);
  };
  const bool shrinks = any([](double s) { return s < 1; });
  const bool grows = any([](double s) { return s > 1; });
  attrs.nearest = shrinks ? "ceil" : "floor";
  if (!shrinks || !grows) return One(Place(b, std::move(attrs), target, b.in(0)));
  if (b.op() == "Upsample") return Unsupported("that enlarges one axis and shrinks another");
  // The axes are independent of each other, so those that shrink are resized first, then the
  // others.
  Target fewer = target;
  for (double& scale : fewer.scales) scale = std::min(scale, 1.0);
  for (size_t i = 0; i < fewer.scales.size(); ++i) fewer.resized[i] = fewer.scales[i] < 1;
  ONCILLA_ASSIGN(fewer.sizes, SizesFromScales(b, fewer.scales, "shrunk_"));
  ONCILLA_ASSIGN(const ValueId shrunk, Place(b, attrs, fewer, b.in(0), "shrunk_"));
  for (double& scale : target.scales) scale = std::max(scale, 1.0);
  for (size_t i = 0; i < target.scales.size(); ++i) target.resized[i] = target.scales[i] > 1;
  attrs.nearest = "floor";
  return One(Place(b, std::move(attrs), target, shrunk));
}

// Samples the image between its pixels, at the points of the second input.
Result<Values> LowerGridSample(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "linear"));
  ONCILLA_ASSIGN(std::string padding, b.String("padding_mode", "zeros"));
  ONCILLA_ASSIGN(const bool align, b.Flag("align_corners", false));
  // The names before opset 20.
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 4 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  if (mode == "cubic" && rank != 4) return Unsupported("mode cubic with 3 spatial axes");
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(GridSampleAttrs{.mode = std::move(mode),
                                                        .padding = std::move(padding),
                                                        .align_corners = align},
                                        {x, b.in(1)}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerRoiAlign(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "avg"));
  ONCILLA_ASSIGN(const int64_t height, b.Int("output_height", 1));
  ONCILLA_ASSIGN(const int64_t width, b.Int("output_width", 1));
  ONCILLA_ASSIGN(const int64_t samples, b.Int("sampling_ratio", 0));
  ONCILLA_ASSIGN(const float scale, b.Float("spatial_scale", 1));
  // Before opset 16, regions were not shifted by half a pixel.
  const char* usual = b.version() < 16 ? "output_half_pixel" : "half_pixel";
  ONCILLA_ASSIGN(const std::string way, b.String("coordinate_transformation_mode", usual));
  if (way != "half_pixel" && way != "output_half_pixel") {
    return InvalidArgument("coordinate_transformation_mode is '", way, "'");
  }
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), 4));
  ONCILLA_ASSIGN(const ValueId y, b.Add(RoiAlignAttrs{.mode = std::move(mode),
                                                      .height = height,
                                                      .width = width,
                                                      .samples = samples,
                                                      .scale = scale,
                                                      .half_pixel = way == "half_pixel"},
                                        {x, b.in(1), b.in(2)}, "inner"));
  return One(b.ChannelsFirst(y, 4));
}

Result<Values> LowerMaxRoiPool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> bins, b.IntList("pooled_shape"));
  if (bins.size() != 2) return DataLoss("attribute 'pooled_shape' has ", bins.size(), " numbers");
  ONCILLA_ASSIGN(const float scale, b.Float("spatial_scale", 1));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), 4));
  const MaxRoiPoolAttrs attrs = {.height = bins[0], .width = bins[1], .scale = scale};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, b.in(1)}, "inner"));
  return One(b.ChannelsFirst(y, 4));
}

constexpr OnnxOpRow kRows[] = {
    {"GridSample", 16, kNewestOnnxOpset, 2, "", LowerGridSample},
    {"MaxRoiPool", 1, kNewestOnnxOpset, 2, "", LowerMaxRoiPool},
    {"Resize", 10, 10, 2, "", LowerOldResize},
    {"Resize", 11, kNewestOnnxOpset, 1, "", LowerResize},
    {"RoiAlign", 10, kNewestOnnxOpset, 3, "", LowerRoiAlign},
    {"Upsample", 1, 9, 1, "", LowerOldResize},
};

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"GridSample", 1, kNewestOnnxMicrosoft, 2, "", LowerGridSample},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftSampleRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxResizeRows() { return kRows; }

}  // namespace oncilla
