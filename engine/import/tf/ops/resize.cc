// TensorFlow's image resizing. There are three rules for the source position of a result's pixel:
// half-pixel centres, aligned corners, or the legacy rule with neither.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

// The attributes for one mode and its rule for positions; `half_pixel` is the mode's name for
// half-pixel centres.
Result<ResizeAttrs> Rule(const TfLowering& b, const char* mode, const char* half_pixel) {
  ONCILLA_ASSIGN(const bool corners, b.attrs().Bool("align_corners"));
  ONCILLA_ASSIGN(const bool centers, b.attrs().Bool("half_pixel_centers"));
  if (corners && centers) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  ResizeAttrs attrs;
  attrs.mode = mode;
  attrs.coordinates = centers ? half_pixel : corners ? "align_corners" : "asymmetric";
  return attrs;
}

// The result is float whatever the type of the image is.
Result<Values> AddFloat(TfLowering& b, const ResizeAttrs& attrs) {
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF32, "float"));
  return One(b.Add(attrs, {x, b.in(1)}));
}

Result<Values> LowerBilinear(TfLowering& b) {
  ONCILLA_ASSIGN(const ResizeAttrs attrs, Rule(b, "linear", "half_pixel"));
  return AddFloat(b, attrs);
}

Result<Values> LowerNearest(TfLowering& b) {
  ONCILLA_ASSIGN(ResizeAttrs attrs, Rule(b, "nearest", "tf_half_pixel"));
  attrs.nearest = attrs.coordinates == "align_corners" ? "round_prefer_ceil" : "floor";
  return One(b.Add(attrs, {b.in(0), b.in(1)}));
}

// Keys' cubic kernel, sampled in steps of 1/1024. With half-pixel centres its sharper form (a =
// -0.5) is used, without pixels beyond the edge.
Result<Values> LowerBicubic(TfLowering& b) {
  ONCILLA_ASSIGN(ResizeAttrs attrs, Rule(b, "cubic", "half_pixel"));
  attrs.cubic_steps = 1024;
  if (attrs.coordinates == "half_pixel") {
    attrs.cubic_a = -0.5;
    attrs.exclude_outside = true;
  }
  return AddFloat(b, attrs);
}

// The mean over the area that each pixel of the result covers.
Result<Values> LowerArea(TfLowering& b) {
  ResizeAttrs attrs;
  attrs.mode = "area";
  ONCILLA_ASSIGN(const bool align_corners, b.attrs().Bool("align_corners"));
  attrs.coordinates = align_corners ? "align_corners" : "asymmetric";
  return AddFloat(b, attrs);
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
