// TensorFlow's image resizing. There are three rules for the source position of a result's pixel:
// half-pixel centres, aligned corners, or the legacy rule with neither.
#include "engine/import/tf/ops/formula.h"

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

// The result is float for images of any type.
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
  attrs.nearest = attrs.coordinates == "align_corners" ? "round" : "floor";
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

// The source positions on both sides of each result position along an axis, and the distance from
// the lower one, in steps of 2^-bits.
struct Between {
  ValueId lower, upper, steps;
  ValueId same;  // the axis keeps its size
};
Between BetweenOf(TfFormula& f, const TfLowering& b, int64_t axis, bool corners, bool centers,
                  DType wide, int bits) {
  const auto number = [&](double v) { return f.Number(DType::kF32, v); };
  const ValueId in = f(ShapeAttrs{.start = axis, .end = axis + 1}, {b.in(0)});
  const ValueId out =
      f("Slice", {f.Cast(b.in(1), DType::kI64), f.Ints({axis - 1}), f.Ints({axis})});
  const ValueId from = f.Cast(in, DType::kF32), onto = f.Cast(out, DType::kF32);
  ValueId scale = f("Div", {from, onto});
  if (corners) {
    const ValueId inner = f("Div", {f("Sub", {from, number(1)}), f("Sub", {onto, number(1)})});
    scale = f("Where", {f("Greater", {onto, number(1)}), inner, scale});
  }
  const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
  const ValueId count = f("Reshape", {out, f.Ints({})});
  ValueId place = f.Cast(f("Range", {zero, count, one}), DType::kF32);
  if (centers) place = f("Add", {place, number(0.5)});
  place = f("Mul", {place, scale});
  if (centers) place = f("Sub", {place, number(0.5)});
  const ValueId floor = f("Floor", {place});
  const ValueId last = f("Sub", {in, one});
  const ValueId upper = f("Min", {f.Cast(f("Ceil", {place}), DType::kI64), last});
  const ValueId least = f("Max", {f.Cast(floor, DType::kI64), zero});
  const ValueId part = f("Mul", {f("Sub", {place, floor}), number(1 << bits)});
  const ValueId shape = axis == 1 ? f.Ints({-1, 1, 1}) : f.Ints({-1, 1});
  const ValueId same = f("Equal", {f("Reshape", {in, f.Ints({})}), count});
  return {f("Min", {least, upper}), upper, f("Reshape", {f.Cast(part, wide), shape}), same};
}

// Resizes integers to integers in fixed point; the quantised range stays. Input 1 is `size`.
Result<Values> LowerQuantized(TfLowering& b) {
  ONCILLA_ASSIGN(const bool corners, b.attrs().Bool("align_corners"));
  ONCILLA_ASSIGN(const bool centers, b.attrs().Bool("half_pixel_centers"));
  const DType dtype = b.dtype();
  if (dtype == DType::kF32) {
    if (corners && centers) return Unsupported("with corners aligned and half-pixel centers");
    ONCILLA_ASSIGN(const ResizeAttrs attrs, Rule(b, "linear", "half_pixel"));
    ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), b.in(1)}));
    return Values{y, b.in(2), b.in(3)};
  }
  const bool bytes = dtype == DType::kU8;
  if (!bytes && dtype != DType::kI32) return Unsupported("of ", dtype);
  const int bits = bytes ? 7 : 30;
  const DType wide = bytes ? DType::kI32 : DType::kI64;
  TfFormula f(b);
  const ValueId one = f.Number(wide, 1 << bits);
  ValueId half = f.Number(wide, 1 << (bits - 1));
  const Between rows = BetweenOf(f, b, 1, corners, centers, wide, bits);
  const Between columns = BetweenOf(f, b, 2, corners, centers, wide, bits);
  const auto at = [&](ValueId x, ValueId places, int64_t axis) {
    return f(GatherAttrs{.axis = axis}, {x, places});
  };
  ValueId x = f.Cast(b.in(0), wide);
  if (!bytes) {
    // TensorFlow converts 32-bit integers to the nearest floats and rounds negative ones up, unless
    // the image keeps its size.
    const ValueId same = f("And", {rows.same, columns.same});
    x = f("Where", {same, x, f.Cast(f.Cast(b.in(0), DType::kF32), wide)});
    half = f("Where", {same, f.Number(wide, 0), half});
  }
  const auto across = [&](ValueId places) {
    const ValueId row = at(x, places, 1);
    const ValueId left = at(row, columns.lower, 2), right = at(row, columns.upper, 2);
    const ValueId beyond = f("Mul", {f("Sub", {right, left}), columns.steps});
    return f("Add", {f("Mul", {left, one}), beyond});
  };
  const ValueId top = across(rows.lower), bottom = across(rows.upper);
  const ValueId down = f("Mul", {f("Div", {f("Sub", {bottom, top}), one}), rows.steps});
  const ValueId sum = f("Add", {f("Add", {top, down}), half});
  const ValueId mean = f("Div", {sum, one});
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const ValueId y, b.Cast(mean, dtype, ""));
  return Values{y, b.in(2), b.in(3)};
}

constexpr TfOpRow kRows[] = {
    {"QuantizedResizeBilinear", 4, "", LowerQuantized},
    {"ResizeArea", 2, "", LowerArea},
    {"ResizeBicubic", 2, "", LowerBicubic},
    {"ResizeBilinear", 2, "", LowerBilinear},
    {"ResizeNearestNeighbor", 2, "", LowerNearest},
};

}  // namespace

std::span<const TfOpRow> TfResizeRows() { return kRows; }

}  // namespace oncilla
