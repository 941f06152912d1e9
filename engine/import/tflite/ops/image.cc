// TFLite's image resizing, and its selection of boxes.
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

// The rule for source positions; the flags are two fields of the options.
Result<ResizeAttrs> Rule(const TfliteLowering& b, int field, const char* mode,
                         const char* half_pixel) {
  ONCILLA_ASSIGN(const bool corners, b.Flag(field));
  ONCILLA_ASSIGN(const bool centers, b.Flag(field + 1));
  if (corners && centers) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  ResizeAttrs attrs;
  attrs.mode = mode;
  attrs.coordinates = centers ? half_pixel : corners ? "align_corners" : "asymmetric";
  return attrs;
}

Result<Values> LowerBilinear(TfliteLowering& b) {
  b.Ignore(0), b.Ignore(1);  // sizes in very old files; now they are an input
  ONCILLA_ASSIGN(const ResizeAttrs attrs, Rule(b, 2, "linear", "half_pixel"));
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  return One(b.Add(attrs, {b.in(0), b.in(1)}));
}

Result<Values> LowerNearest(TfliteLowering& b) {
  ONCILLA_ASSIGN(ResizeAttrs attrs, Rule(b, 0, "nearest", "tf_half_pixel"));
  attrs.nearest = attrs.coordinates == "align_corners" ? "round" : "floor";
  return One(b.Add(attrs, {b.in(0), b.in(1)}));
}

// Results are padded to the requested number.
Result<Values> LowerSuppression(TfliteLowering& b) {
  const bool soft = b.op() == "NON_MAX_SUPPRESSION_V5";
  if (soft) {
    // LiteRT's soft suppression lowers scores differently from TensorFlow's, which the canonical op
    // implements.
    ONCILLA_ASSIGN(const std::vector<double> sigma, b.KnownNumbers(5, "sigma"));
    if (sigma.size() != 1 || sigma[0] != 0) return Unsupported("with scores that overlaps lower");
  }
  ONCILLA_ASSIGN(const ValueId sigma, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const Values out, b.AddAll(SelectBoxesAttrs{.pad = true},
                                            {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4), sigma}));
  return soft ? out : Values{out[0], out[2]};
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"NON_MAX_SUPPRESSION_V4", 5, Options::kNone, "", LowerSuppression},
    {"NON_MAX_SUPPRESSION_V5", 6, Options::kNone, "", LowerSuppression},
    {"RESIZE_BILINEAR", 2, Options::kResizeBilinear, "", LowerBilinear, TfliteQuantised::kTaken,
     LowerQuantisedBilinear},
    {"RESIZE_NEAREST_NEIGHBOR", 2, Options::kResizeNearest, "", LowerNearest,
     TfliteQuantised::kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteImageRows() { return kRows; }

}  // namespace oncilla
