// TensorFlow's resizing of images. Three rules for where a result's pixel lies in the source:
// centres at half pixels, corners aligned, or the old one without either.
#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

struct Rule {
  bool align_corners = false;
  bool half_pixel_centers = false;
};

Result<Rule> ReadRule(const TfLowering& b) {
  Rule rule;
  ONCILLA_ASSIGN(rule.align_corners, b.attrs().Bool("align_corners"));
  ONCILLA_ASSIGN(rule.half_pixel_centers, b.attrs().Bool("half_pixel_centers"));
  if (rule.align_corners && rule.half_pixel_centers) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  return rule;
}

// The result is float whatever the image is.
Result<Values> LowerBilinear(TfLowering& b) {
  ONCILLA_ASSIGN(const Rule rule, ReadRule(b));
  ValueId x = b.in(0);
  if (b.fact(x).dtype != DType::kF32) {
    ONCILLA_ASSIGN(x, b.Add("Cast", {{"to", DType::kF32}}, {x}, "float"));
  }
  const std::string coordinates = rule.half_pixel_centers ? "half_pixel"
                                  : rule.align_corners    ? "align_corners"
                                                          : "asymmetric";
  return One(b.Add("Resize", {{"mode", std::string("linear")}, {"coordinates", coordinates}},
                   {x, b.in(1)}));
}

Result<Values> LowerNearest(TfLowering& b) {
  ONCILLA_ASSIGN(const Rule rule, ReadRule(b));
  const std::string coordinates = rule.half_pixel_centers ? "tf_half_pixel"
                                  : rule.align_corners    ? "align_corners"
                                                          : "asymmetric";
  const std::string nearest = rule.align_corners ? "round_prefer_ceil" : "floor";
  return One(
      b.Add("Resize",
            {{"mode", std::string("nearest")}, {"coordinates", coordinates}, {"nearest", nearest}},
            {b.in(0), b.in(1)}));
}

// Keys' cubic in steps of 1/1024; with half-pixel centres its sharper form, without pixels beyond
// the edge.
Result<Values> LowerBicubic(TfLowering& b) {
  ONCILLA_ASSIGN(const Rule rule, ReadRule(b));
  ValueId x = b.in(0);
  if (b.fact(x).dtype != DType::kF32) {
    ONCILLA_ASSIGN(x, b.Add("Cast", {{"to", DType::kF32}}, {x}, "float"));
  }
  AttrMap attrs = {{"mode", std::string("cubic")}, {"cubic_steps", int64_t{1024}}};
  if (rule.half_pixel_centers) {
    attrs.insert({{"cubic_a", -0.5}, {"exclude_outside", true}});
  }
  attrs.emplace("coordinates", std::string(rule.half_pixel_centers ? "half_pixel"
                                           : rule.align_corners    ? "align_corners"
                                                                   : "asymmetric"));
  return One(b.Add("Resize", std::move(attrs), {x, b.in(1)}));
}

// The mean of what each pixel of the result covers.
Result<Values> LowerArea(TfLowering& b) {
  ONCILLA_ASSIGN(const bool align_corners, b.attrs().Bool("align_corners"));
  ValueId x = b.in(0);
  if (b.fact(x).dtype != DType::kF32) {
    ONCILLA_ASSIGN(x, b.Add("Cast", {{"to", DType::kF32}}, {x}, "float"));
  }
  const std::string coordinates = align_corners ? "align_corners" : "asymmetric";
  return One(
      b.Add("Resize", {{"mode", std::string("area")}, {"coordinates", coordinates}}, {x, b.in(1)}));
}

constexpr TfOpRow kRows[] = {
    {"ResizeArea", 2, "", LowerArea},
    {"ResizeBicubic", 2, "", LowerBicubic},
    {"ResizeBilinear", 2, "", LowerBilinear},
    {"ResizeNearestNeighbor", 2, "", LowerNearest},
};

}  // namespace

std::span<const TfOpRow> TfResizeRows() { return kRows; }

}  // namespace oncilla
