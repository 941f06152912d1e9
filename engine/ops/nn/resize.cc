// Resize: inference, coordinates and weights, row.
#include "engine/ops/nn/resize.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 30;

Status CheckName(const std::string& name, std::initializer_list<std::string_view> known,
                 std::string_view what) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return Status();
  return InvalidArgument("there is no ", what, " '", name, "'");
}

Status CheckAttrs(const ResizeAttrs& attrs) {
  ONCILLA_TRY(CheckName(attrs.mode, {"nearest", "linear", "cubic", "area"}, "mode"));
  ONCILLA_TRY(CheckName(attrs.coordinates,
                        {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                         "tf_half_pixel", "half_pixel_symmetric", "crop_and_resize"},
                        "coordinates"));
  ONCILLA_TRY(CheckName(attrs.nearest,
                        {"round_prefer_floor", "round_prefer_ceil", "round", "floor", "ceil"},
                        "nearest"));
  for (double scale : attrs.scales) {
    const auto used = static_cast<float>(scale);
    if (!(used > 0) || !std::isfinite(used)) return InvalidArgument("scales contains ", scale);
  }
  if (attrs.antialias && attrs.mode != "linear" && attrs.mode != "cubic") {
    return InvalidArgument("antialias needs the mode linear or cubic");
  }
  if (attrs.mode == "area" && attrs.coordinates == "crop_and_resize") {
    return InvalidArgument("mode area has no regions");
  }
  for (double part : attrs.region) {
    if (!std::isfinite(part)) return InvalidArgument("region contains ", part);
  }
  if (attrs.cubic_steps < 0) return InvalidArgument("cubic_steps is ", attrs.cubic_steps);
  return Status();
}

int32_t Bound(int64_t i, int64_t size) {
  return static_cast<int32_t>(std::clamp<int64_t>(i, 0, size - 1));
}

// A coordinate that is a tie in exact arithmetic may miss it by some rounding errors. ONNX Runtime
// treats coordinates this close to a tie as ties.
constexpr float kTie = 1e-6f;

float Nearest(const std::string& rule, float x) {
  if (rule == "floor") return std::floor(x);
  if (rule == "ceil") return std::ceil(x);
  if (rule == "round") return std::round(x);
  const float below = std::floor(x), part = x - below;
  const bool down = rule == "round_prefer_floor" ? part <= 0.5f + kTie : part < 0.5f - kTie;
  return down ? below : below + 1;
}

// The cubic convolution kernel (Keys, 1981) with parameter a, at distance x >= 0.
double Cubic(double a, double x) {
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

void CubicTaps(const ResizeAttrs& attrs, float x, int64_t in, int32_t* index, float* weight) {
  const float floor = std::floor(x);
  double t = static_cast<double>(x - floor), sum = 0, w[4];
  if (attrs.cubic_steps > 0) {
    const auto steps = static_cast<double>(attrs.cubic_steps);
    t = std::nearbyint(t * steps) / steps;
  }
  for (int k = 0; k < 4; ++k) {
    const int64_t i = static_cast<int64_t>(floor) - 1 + k;
    index[k] = Bound(i, in);
    const bool outside = attrs.exclude_outside && i != index[k];
    w[k] = outside ? 0 : Cubic(attrs.cubic_a, std::fabs(t - (k - 1)));
    sum += w[k];
  }
  const bool normalize = attrs.exclude_outside && sum != 0;
  for (int k = 0; k < 4; ++k) weight[k] = static_cast<float>(normalize ? w[k] / sum : w[k]);
}

// The linear or cubic filter, widened by the factor by which the axis shrinks. Pixels outside count
// as the edge pixel, or with exclude_outside not at all.
ResizeTaps AntialiasTaps(const ResizeAttrs& attrs, const ResizeAxis& positions, double scale,
                         int64_t in, int64_t out) {
  scale = std::min(scale, 1.0);
  const double reach = (attrs.mode == "linear" ? 1 : 2) / scale;
  const auto first = static_cast<int64_t>(std::floor(-reach)) + 1;
  ResizeTaps table;
  table.taps = 2 - 2 * first;
  table.index.resize(static_cast<size_t>(out * table.taps));
  table.weight.resize(table.index.size());
  std::vector<double> weights(static_cast<size_t>(table.taps));
  for (int64_t o = 0; o < out; ++o) {
    const float far = static_cast<float>(in) + 2;
    const double x = static_cast<double>(std::clamp(positions.At(o), -far, 2 * far));
    // The pixel to the left is the reference even if x falls exactly on a pixel.
    const double left = std::ceil(x) - 1;
    double sum = 0;
    for (int64_t t = 0; t < table.taps; ++t) {
      const int64_t i = static_cast<int64_t>(left) + first + t;
      const double distance = std::fabs(static_cast<double>(i) - x) * scale;
      double weight =
          attrs.mode == "linear" ? std::max(0.0, 1 - distance) : Cubic(attrs.cubic_a, distance);
      if (attrs.exclude_outside && (i < 0 || i >= in)) weight = 0;
      weights[static_cast<size_t>(t)] = weight;
      sum += weight;
      table.index[static_cast<size_t>(o * table.taps + t)] = Bound(i, in);
    }
    for (int64_t t = 0; t < table.taps; ++t) {
      const double weight = weights[static_cast<size_t>(t)];
      table.weight[static_cast<size_t>(o * table.taps + t)] =
          static_cast<float>(sum != 0 ? weight / sum : weight);
    }
  }
  return table;
}

// Each output is the mean over the interval of input that it covers (TensorFlow's ResizeArea).
ResizeTaps AreaTaps(float ratio, int64_t in, int64_t out) {
  ResizeTaps table;
  table.taps = 1;
  auto ends = [&](int64_t o) {
    const float begin = static_cast<float>(o) * ratio, end = static_cast<float>(o + 1) * ratio;
    const auto first = static_cast<int64_t>(std::floor(begin));
    return std::pair(first, std::max(first + 1, static_cast<int64_t>(std::ceil(end))));
  };
  for (int64_t o = 0; o < out; ++o) {
    const auto [first, last] = ends(o);
    table.taps = std::max(table.taps, last - first);
  }
  table.index.resize(static_cast<size_t>(out * table.taps));
  table.weight.resize(table.index.size());
  for (int64_t o = 0; o < out; ++o) {
    const float begin = static_cast<float>(o) * ratio, end = static_cast<float>(o + 1) * ratio;
    const auto [first, last] = ends(o);
    for (int64_t t = 0; t < table.taps; ++t) {
      const int64_t i = std::min(first + t, last - 1);
      const float from = std::max(static_cast<float>(i), begin);
      const float to = std::min(static_cast<float>(i + 1), end);
      const auto at = static_cast<size_t>(o * table.taps + t);
      table.index[at] = Bound(i, in);
      const float covered = end > begin ? (to - from) / ratio : 1;
      // An interval shorter than the longest one repeats its last pixel and divides that pixel's
      // weight. Padding with weight 0 instead would turn an infinite pixel into NaN.
      const int64_t repeated = i == last - 1 ? table.taps - (last - 1 - first) : 1;
      table.weight[at] = covered / static_cast<float>(repeated);
    }
  }
  return table;
}

// Of a list with one number per axis of x: checks that those of batch and channels are `kept`, and
// returns the others.
Result<std::vector<double>> SpatialPart(std::span<const double> all, double kept,
                                        std::string_view what) {
  if (all.front() != kept || all.back() != kept) {
    return InvalidArgument(what, " of batch and channels must be ", kept, ", not ", all.front(),
                           " and ", all.back());
  }
  return std::vector<double>(all.begin() + 1, all.end() - 1);
}

// The numbers of an optional plan input; empty while they are unknown.
Result<std::vector<double>> NumbersOf(std::span<const Fact> in, size_t i, int count,
                                      std::string_view what) {
  if (i >= in.size() || in[i].absent()) return std::vector<double>();
  ONCILLA_TRY(RequireFloat(in[i], what));
  if (!in[i].has_value()) return std::vector<double>();
  ONCILLA_ASSIGN(auto numbers, ToDoubles(in[i].value));
  if (static_cast<int>(numbers.size()) != count) {
    return InvalidArgument(what, " has ", numbers.size(), " numbers, not ", count);
  }
  return numbers;
}

Result<Facts> InferResize(const ResizeAttrs& given, std::span<const Fact> in) {
  const Fact &x = in[0], &sizes = in[1];
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, in));
  ONCILLA_TRY(CheckAttrs(attrs));
  if (attrs.mode != "nearest") ONCILLA_TRY(RequireNumber(x, "input"));
  ONCILLA_TRY(RequireInteger(sizes, "sizes"));
  const auto asked = KnownInts(sizes);
  if (asked && sizes.has_value()) {
    for (const Dim& d : *asked) {
      if (d.size < 0) return InvalidArgument("sizes contains ", d.size);
    }
  }
  if (!x.shape.ranked()) {
    return Facts{Fact::Of(x.dtype, asked ? PartialShape::OfRank(static_cast<int>(asked->size()) + 2)
                                         : PartialShape())};
  }
  const int spatial = x.shape.rank() - 2;
  if (spatial < 1) return InvalidArgument("input must have spatial axes, not shape ", x.shape);
  if (asked && static_cast<int>(asked->size()) != spatial) {
    return InvalidArgument("sizes has ", asked->size(), " numbers for ", spatial, " spatial axes");
  }
  if (!attrs.scales.empty() && static_cast<int>(attrs.scales.size()) != spatial) {
    return InvalidArgument("scales has ", attrs.scales.size(), " numbers for ", spatial,
                           " spatial axes");
  }
  if (!attrs.region.empty() && static_cast<int>(attrs.region.size()) != 2 * spatial) {
    return InvalidArgument("region has ", attrs.region.size(), " numbers for ", spatial,
                           " spatial axes");
  }
  PartialShape shape = x.shape;
  for (int i = 0; i < spatial; ++i) {
    shape[1 + i] = asked ? (*asked)[static_cast<size_t>(i)] : Dim();
    if (x.shape[1 + i].size == 0 && shape[1 + i].size > 0) {
      return InvalidArgument("cannot resize an empty axis to ", shape[1 + i].size);
    }
  }
  return Facts{Fact::Of(x.dtype, std::move(shape))};
}

constexpr OpDef kResizeOps[] = {
    Op<InferResize>("Resize", {.inputs = {2, 4},
                               .plan_inputs = 0b1110,
                               .axes = Samples(),
                               .storage = StorageRule::kCarries}),
};

}  // namespace

Result<ResizeAttrs> SettledResize(ResizeAttrs attrs, std::span<const Fact> inputs) {
  const PartialShape& shape = inputs[0].shape;
  if (!shape.ranked() || shape.rank() < 3) return attrs;
  const int rank = shape.rank();
  ONCILLA_ASSIGN(const auto scales, NumbersOf(inputs, 2, rank, "scales"));
  if (!scales.empty()) {
    ONCILLA_ASSIGN(attrs.scales, SpatialPart(scales, 1, "scales"));
  }
  ONCILLA_ASSIGN(const auto region, NumbersOf(inputs, 3, 2 * rank, "region"));
  if (!region.empty()) {
    const auto ends = std::span(region).subspan(static_cast<size_t>(rank));
    ONCILLA_ASSIGN(attrs.region, SpatialPart(std::span(region).first(ends.size()), 0, "begins"));
    ONCILLA_ASSIGN(const auto spatial_ends, SpatialPart(ends, 1, "ends"));
    attrs.region.insert(attrs.region.end(), spatial_ends.begin(), spatial_ends.end());
  }
  return attrs;
}

Result<ResizeAxis> AxisOf(const ResizeAttrs& attrs, int axis, int64_t in, int64_t out) {
  ONCILLA_TRY(CheckAttrs(attrs));
  if (in > kMaxSize || out > kMaxSize) {
    return InvalidArgument("cannot resize ", in, " to ", out, ": out of range");
  }
  ResizeAxis a;
  a.in = in;
  a.out = out;
  if (out == 0) return a;
  const auto from = static_cast<float>(in), to = static_cast<float>(out);
  const bool onnx = !attrs.scales.empty();
  const std::string& kind = attrs.coordinates;
  if (kind == "crop_and_resize") {
    const auto at = static_cast<size_t>(axis);
    if (attrs.region.size() < 2 * at + 2) return InvalidArgument("the region is missing");
    const auto begin = static_cast<float>(attrs.region[at]);
    const auto end = static_cast<float>(attrs.region[attrs.region.size() / 2 + at]);
    a.multiply = out > 1 ? (end - begin) * (from - 1) : 0;
    a.divide = out > 1 ? to - 1 : 0;
    a.offset = out > 1 ? begin * (from - 1) : 0.5f * (begin + end) * (from - 1);
    return a;
  }
  const bool align = kind == "align_corners";
  a.ratio = align && out > 1 ? (from - 1) / (to - 1) : from / to;
  if (align && onnx) {
    a.multiply = out == 1 ? 0 : from - 1;
    a.divide = out == 1 ? 0 : to - 1;
    return a;
  }
  const float scale = onnx ? static_cast<float>(attrs.scales[static_cast<size_t>(axis)]) : 0;
  if (onnx) {
    a.divide = scale;
  } else {
    a.multiply = a.ratio;
  }
  if (align || kind == "asymmetric") return a;
  a.before = 0.5f;
  if (kind == "tf_half_pixel") return a;
  a.after = -0.5f;
  if (kind == "pytorch_half_pixel" && out == 1) a = {.in = in, .out = out, .multiply = 0};
  if (kind == "half_pixel_symmetric" && onnx) {
    // The part that a fractional scale cuts off the output is taken from both ends equally.
    const float adjustment = to / (scale * from);
    a.offset = from / 2 * (1 - adjustment);
  }
  return a;
}

Result<ResizeTaps> TapsOf(const ResizeAttrs& attrs, int axis, int64_t in, int64_t out) {
  ONCILLA_ASSIGN(const ResizeAxis positions, AxisOf(attrs, axis, in, out));
  if (out == 0) return ResizeTaps();
  if (attrs.mode == "area") return AreaTaps(positions.ratio, in, out);
  if (attrs.antialias) {
    const auto given = static_cast<size_t>(axis);
    const double scale = given < attrs.scales.size()
                             ? attrs.scales[given]
                             : static_cast<double>(out) / static_cast<double>(in);
    // With consistent sizes and scales the table is at most a few times as large as the input.
    constexpr double kMostWeights = 1 << 28;
    if (!(static_cast<double>(out) * (2 + 4 / std::min(scale, 1.0)) <= kMostWeights)) {
      return InvalidArgument("an axis of ", in, " becomes ", out, " at a scale of ", scale);
    }
    return AntialiasTaps(attrs, positions, scale, in, out);
  }
  ResizeTaps table;
  table.taps = attrs.mode == "nearest" ? 1 : attrs.mode == "linear" ? 2 : 4;
  table.index.resize(static_cast<size_t>(out * table.taps));
  table.weight.resize(table.index.size());
  for (int64_t o = 0; o < out; ++o) {
    int32_t* index = table.index.data() + o * table.taps;
    float* weight = table.weight.data() + o * table.taps;
    // Far outside, all modes see only the edge; clamping keeps the conversion to integers defined.
    const float far = static_cast<float>(in) + 2;
    float x = positions.At(o);
    x = std::isnan(x) ? 0 : std::clamp(x, -far, 2 * far);
    if (attrs.mode == "nearest") {
      index[0] = Bound(static_cast<int64_t>(Nearest(attrs.nearest, x)), in);
      weight[0] = 1;
    } else if (attrs.mode == "linear") {
      const float inside = std::clamp(x, 0.0f, static_cast<float>(in - 1));
      index[0] = Bound(static_cast<int64_t>(inside), in);
      index[1] = Bound(index[0] + int64_t{1}, in);
      weight[1] = inside - static_cast<float>(index[0]);
      weight[0] = 1 - weight[1];
    } else {
      CubicTaps(attrs, x, in, index, weight);
    }
  }
  return table;
}

std::span<const OpDef> ResizeOps() { return kResizeOps; }

}  // namespace oncilla
