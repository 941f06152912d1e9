// Gradients of elementwise ops, slices, paddings and resizes. Saved functions contain them if a
// model trains, or explains its results by gradients. Each follows TensorFlow's formula in
// canonical ops. Those of convolutions, pools and normalisations are in gradient_window.cc.
#include <algorithm>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/ops/formula.h"

namespace oncilla {
namespace {

// The gradient where `x > 0` (and, for Relu6, below 6), elsewhere zero times the gradient, so that
// NaN stays NaN.
Result<Values> LowerReluGrad(TfLowering& b) {
  TfFormula f(b);
  const DType dtype = b.dtype();
  ValueId open = f("Greater", {b.in(1), f.Number(dtype, 0)});
  if (b.op() == "Relu6Grad") {
    open = f("And", {open, f("Less", {b.in(1), f.Number(dtype, 6)})});
  }
  return f.Last("Mul", {b.in(0), f.Cast(open, dtype)});
}

Result<Values> LowerLeakyReluGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  TfFormula f(b);
  const DType dtype = b.dtype();
  const ValueId open = f("Greater", {b.in(1), f.Number(dtype, 0)});
  return f.Last("Where", {open, b.in(0), f("Mul", {b.in(0), f.Number(dtype, double{alpha})})});
}

// The second input of EluGrad and SeluGrad is the output of the activation.
Result<Values> LowerEluGrad(TfLowering& b) {
  constexpr double kScale = 1.0507009873554804934193349852946;
  constexpr double kScaleAlpha = 1.7580993408473768599402175208123;
  const bool selu = b.op() == "SeluGrad";
  TfFormula f(b);
  const DType dtype = b.dtype();
  const ValueId shut = f("Less", {b.in(1), f.Number(dtype, 0)});
  const ValueId slope = f("Add", {b.in(1), f.Number(dtype, selu ? kScaleAlpha : 1)});
  const ValueId below = f("Mul", {b.in(0), slope});
  const ValueId above = selu ? f("Mul", {b.in(0), f.Number(dtype, kScale)}) : b.in(0);
  return f.Last("Where", {shut, below, above});
}

// dy / (exp(-x) + 1)
Result<Values> LowerSoftplusGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId decay = f("Exp", {f("Neg", {b.in(1)})});
  return f.Last("Div", {b.in(0), f("Add", {decay, f.Number(b.dtype(), 1)})});
}

// dy / (1 + |x|)^2
Result<Values> LowerSoftsignGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId size = f("Add", {f("Abs", {b.in(1)}), f.Number(b.dtype(), 1)});
  return f.Last("Div", {b.in(0), f("Square", {size})});
}

// Computed from the function's result y, which is the first input.
Result<Values> LowerTanhGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId slope = f("Sub", {f.Number(b.dtype(), 1), f("Square", {b.in(0)})});
  return f.Last("Mul", {b.in(1), slope});
}
Result<Values> LowerSigmoidGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId rest = f("Sub", {f.Number(b.dtype(), 1), b.in(0)});
  return f.Last("Mul", {f("Mul", {b.in(1), b.in(0)}), rest});
}
Result<Values> LowerSqrtGrad(TfLowering& b) {
  TfFormula f(b);
  return f.Last("Div", {f("Mul", {f.Number(b.dtype(), 0.5), b.in(1)}), b.in(0)});
}
Result<Values> LowerRsqrtGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId cube = f("Mul", {f("Square", {b.in(0)}), b.in(0)});
  return f.Last("Mul", {f("Mul", {b.in(1), f.Number(b.dtype(), -0.5)}), cube});
}
Result<Values> LowerReciprocalGrad(TfLowering& b) {
  TfFormula f(b);
  return f.Last("Mul", {f("Neg", {b.in(1)}), f("Square", {b.in(0)})});
}

// Sums over all axes but the channels.
Result<Values> LowerBiasAddGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  TfFormula f(b);
  if (layout.channels_first) {
    ONCILLA_ASSIGN(const int rank, b.Rank(0, "the gradient"));
    if (rank < 2) return InvalidArgument("Input tensor must be at least 2D");
    std::vector<int64_t> axes = {0};
    for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
    return f.Last("ReduceSum", {b.in(0), f.Ints(axes)});
  }
  const PartialShape shape = b.in_fact(0).shape;
  if (shape.ranked() && shape.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", shape);
  }
  const ValueId channels = f(ShapeAttrs{.start = -1}, {b.in(0)});
  const ValueId others = f("Div", {f(SizeAttrs{}, {b.in(0)}), channels});
  // Without channels the sum is empty.
  if (shape.ranked() && shape[shape.rank() - 1].known() && shape[shape.rank() - 1].size == 0) {
    return f.Last("Fill", {channels, f.Number(b.dtype(), 0)});
  }
  const ValueId sizes = f(ConcatAttrs{.axis = 0}, {others, channels});
  return f.Last("ReduceSum", {f("Reshape", {b.in(0), sizes}), f.Ints({0})});
}

Result<Values> LowerStridedSliceGrad(TfLowering& b) {
  TfFormula f(b);
  const ValueId zeros = f("Fill", {b.in(0), f.Number(b.dtype(4), 0)});
  ONCILLA_TRY(f.status());
  return One(UpdateTfSlice(b, zeros, b.in(4), ""));
}

// Pads the indices of the elements in the same way; they then state where to add each gradient.
Result<Values> LowerMirrorPadGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, b.attrs().String("mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") return Unsupported("mode ", mode);
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, 1));
  TfFormula f(b);
  const ValueId both = f("ReduceSum", {f.Cast(b.in(1), DType::kI64), f.Ints({1})});
  const ValueId sizes = f("Sub", {f("Shape", {b.in(0)}), both});
  const ValueId count = f("ReduceProd", {sizes});
  const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
  const ValueId places = f("Reshape", {f("Range", {zero, count, one}), sizes});
  const ValueId from = f(
      PadAttrs{.mode = mode == "REFLECT" ? "reflect" : "symmetric", .once = true}, {places, pads});
  const ValueId list = f("Reshape", {from, f.Ints({-1, 1})});
  const ValueId updates = f("Reshape", {b.in(0), f.Ints({-1})});
  const ValueId flat = f("Fill", {f("Reshape", {count, f.Ints({1})}), f.Number(b.dtype(), 0)});
  const ValueId sums = f(ScatterNDAttrs{.reduction = "add"}, {flat, list, updates});
  return f.Last("Reshape", {sums, sizes});
}

// The matrix [size, to] of a resize from one column of `size` pixels to `to` pixels: the weight of
// each source pixel in each result pixel. Resizing is linear, so resizing the unit columns gives
// it.
ValueId ResizeParts(TfFormula& f, const ResizeAttrs& attrs, ValueId size, ValueId to) {
  const ValueId square = f(ConcatAttrs{.axis = 0}, {size, size});
  const ValueId ones = f("Fill", {square, f.Number(DType::kF32, 1)});
  const ValueId unit = f(TriluAttrs{.upper = false}, {f(TriluAttrs{.upper = true}, {ones})});
  const ValueId columns = f("Unsqueeze", {unit, f.Ints({2, 3})});
  const ValueId sizes = f(ConcatAttrs{.axis = 0}, {to, f.Ints({1})});
  const ValueId resized = f(attrs, {columns, sizes});
  return f("Squeeze", {resized, f.Ints({2, 3})});
}

// Inputs: the gradient, and the original image or its height and width.
Result<Values> LowerResizeGrad(TfLowering& b) {
  const bool nearest = b.op() == "ResizeNearestNeighborGrad";
  ONCILLA_ASSIGN(const bool corners, b.attrs().Bool("align_corners"));
  ONCILLA_ASSIGN(const bool centers, b.attrs().Bool("half_pixel_centers"));
  if (corners && centers) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  ResizeAttrs attrs;
  attrs.coordinates = corners ? "align_corners" : centers ? "half_pixel" : "asymmetric";
  attrs.mode = nearest ? "nearest" : b.op() == "ResizeBicubicGrad" ? "cubic" : "linear";
  if (nearest) {
    if (centers) attrs.coordinates = "tf_half_pixel";
    attrs.nearest = corners ? "round" : "floor";
  }
  if (attrs.mode == "cubic") {
    attrs.cubic_steps = 1024;
    if (centers) attrs.cubic_a = -0.5;
    attrs.exclude_outside = centers;
  }
  const DType to = nearest ? b.dtype(0) : b.dtype(1);
  const DType inner = b.dtype(0) == DType::kF64 || to == DType::kF64 ? DType::kF64 : DType::kF32;
  TfFormula f(b);
  const ValueId sizes =
      nearest ? f.Cast(b.in(1), DType::kI64) : f(ShapeAttrs{.start = 1, .end = 3}, {b.in(1)});
  const auto part = [&](ValueId list, int64_t i) {
    return f("Slice", {list, f.Ints({i}), f.Ints({i + 1})});
  };
  const ValueId out = f(ShapeAttrs{.start = 1, .end = 3}, {b.in(0)});
  const ValueId rows = f.Cast(ResizeParts(f, attrs, part(sizes, 0), part(out, 0)), inner);
  const ValueId columns = f.Cast(ResizeParts(f, attrs, part(sizes, 1), part(out, 1)), inner);
  const ValueId dy = f("Transpose", {f.Cast(b.in(0), inner), f.Ints({0, 3, 1, 2})});
  const ValueId high = f("MatMul", {rows, dy});
  const ValueId wide = f(MatMulAttrs{.transpose_b = true}, {high, columns});
  const ValueId dx = f("Transpose", {wide, f.Ints({0, 2, 3, 1})});
  return f.Last(CastAttrs{to}, {dx});
}

// The axes along which each of two known shapes was broadcast.
Status KnownBroadcastAxes(const std::vector<int64_t>& x, const std::vector<int64_t>& y,
                          std::vector<int64_t>& axes_x, std::vector<int64_t>& axes_y) {
  if (x == y) return Status();
  const size_t rank = std::max(x.size(), y.size());
  for (size_t i = 0; i < rank; ++i) {
    const size_t lacks_x = rank - x.size(), lacks_y = rank - y.size();
    const int64_t a = i < lacks_x ? 1 : x[i - lacks_x], c = i < lacks_y ? 1 : y[i - lacks_y];
    if (a != c && a != 1 && c != 1) return InvalidArgument("Incompatible shapes");
    if (a == 1) axes_x.push_back(static_cast<int64_t>(i));
    if (c == 1) axes_y.push_back(static_cast<int64_t>(i));
  }
  return Status();
}

Result<Values> LowerBroadcastAxes(TfLowering& b) {
  const DType dtype = b.dtype();
  TfFormula f(b);
  if (AllIntsKnown(b.in_fact(0)) && AllIntsKnown(b.in_fact(1))) {
    ONCILLA_ASSIGN(const std::vector<int64_t> x, b.KnownInts(0, "the first shape"));
    ONCILLA_ASSIGN(const std::vector<int64_t> y, b.KnownInts(1, "the second shape"));
    std::vector<int64_t> axes_x, axes_y;
    ONCILLA_TRY(KnownBroadcastAxes(x, y, axes_x, axes_y));
    return f.Done({f.Cast(f.Ints(axes_x), dtype), f.Cast(f.Ints(axes_y), dtype)});
  }
  // Pads both shapes with leading ones to the rank of the result. An axis was reduced if its size
  // is one, unless both shapes are equal.
  const ValueId whole = f.Cast(f("BroadcastSizes", {b.in(0), b.in(1)}), DType::kI64);
  const ValueId rank = f(ShapeAttrs{}, {whole});
  const auto longer = [&](size_t i) {
    const ValueId own = f.Cast(b.in(i), DType::kI64);
    const ValueId lacks = f("Sub", {rank, f(ShapeAttrs{}, {own})});
    const ValueId pads = f(ConcatAttrs{.axis = 0}, {lacks, f.Ints({0})});
    return f("Pad", {own, pads, f.Number(DType::kI64, 1)});
  };
  const ValueId x = longer(0), y = longer(1), one = f.Number(DType::kI64, 1);
  const ValueId same_rank = f("Equal", {f(ShapeAttrs{}, {b.in(0)}), f(ShapeAttrs{}, {b.in(1)})});
  const ValueId other = f("ReduceAny", {f("NotEqual", {x, y})});
  const ValueId differ = f("Or", {f("Not", {same_rank}), other});
  const auto axes = [&](ValueId sizes) {
    const ValueId counts = f("And", {f("Equal", {sizes, one}), differ});
    return f.Cast(f("Reshape", {f("NonZero", {counts}), f.Ints({-1})}), dtype);
  };
  return f.Done({axes(x), axes(y)});
}

// Inputs: the gradient of the segments, the indices of the rows, the segment of each, and the
// number of rows. A mean divides by the number of rows in the segment, SqrtN by its square root.
Result<Values> LowerSegmentGrad(TfLowering& b) {
  const DType dtype = b.dtype();
  TfFormula f(b);
  const ScatterNDAttrs add = {.reduction = "add", .negative_indices = false};
  const GatherAttrs pick = {.axis = 0, .negative_indices = false};
  const ValueId segments = f("Shape", {b.in(0)});
  const ValueId rows = f("Slice", {segments, f.Ints({0}), f.Ints({1})});
  const ValueId ids = f("Unsqueeze", {b.in(2), f.Ints({1})});
  ValueId updates = f(pick, {b.in(0), b.in(2)});
  if (b.op() != "SparseSegmentSumGrad") {
    ONCILLA_ASSIGN(const int rank, b.Rank(0, "the gradient"));
    const ValueId one = f.Number(dtype, 1);
    const ValueId ones = f("Fill", {f("Shape", {b.in(2)}), one});
    const ValueId counts = f(add, {f("Fill", {rows, f.Number(dtype, 0)}), ids, ones});
    const ValueId least = f("Max", {counts, one});
    const bool root = b.op() == "SparseSegmentSqrtNGrad";
    const ValueId share = f("Div", {one, root ? f("Sqrt", {least}) : least});
    std::vector<int64_t> column(static_cast<size_t>(std::max(rank, 1)), 1);
    column[0] = -1;
    updates = f("Mul", {updates, f("Reshape", {f(pick, {share, b.in(2)}), f.Ints(column)})});
  }
  const ValueId inner = f("Slice", {segments, f.Ints({1}), f.Ints({int64_t{1} << 40})});
  const ValueId count = f("Reshape", {f.Cast(b.in(3), DType::kI64), f.Ints({1})});
  const ValueId sizes = f(ConcatAttrs{.axis = 0}, {count, inner});
  const ValueId zeros = f("Fill", {sizes, f.Number(dtype, 0)});
  return f.Last(add, {zeros, f("Unsqueeze", {b.in(1), f.Ints({1})}), updates});
}

// Inputs: the position to which each value was moved, and the gradient of the whole result.
// Results: the gradient of the values, and that of the default value, which is the sum over all
// other positions.
Result<Values> LowerFillRowsGrad(TfLowering& b) {
  const DType dtype = b.dtype(1);
  TfFormula f(b);
  const ValueId values = f(GatherAttrs{.axis = 0, .negative_indices = false}, {b.in(1), b.in(0)});
  const ValueId zero = f.Number(dtype, 0);
  const ValueId zeros = f("Fill", {f("Shape", {b.in(0)}), zero});
  const ValueId rest = f(ScatterNDAttrs{.reduction = "none", .negative_indices = false},
                         {b.in(1), f("Unsqueeze", {b.in(0), f.Ints({1})}), zeros});
  return f.Done({values, f("ReduceSum", {rest})});
}

constexpr TfOpRow kRows[] = {
    {"BiasAddGrad", 1, "", LowerBiasAddGrad},
    {"BroadcastGradientArgs", 2, "", LowerBroadcastAxes},
    {"EluGrad", 2, "", LowerEluGrad},
    {"InvGrad", 2, "", LowerReciprocalGrad},
    {"LeakyReluGrad", 2, "", LowerLeakyReluGrad},
    {"MirrorPadGrad", 2, "", LowerMirrorPadGrad},
    {"ReciprocalGrad", 2, "", LowerReciprocalGrad},
    {"Relu6Grad", 2, "", LowerReluGrad},
    {"ReluGrad", 2, "", LowerReluGrad},
    {"ResizeBicubicGrad", 2, "", LowerResizeGrad},
    {"ResizeBilinearGrad", 2, "", LowerResizeGrad},
    {"ResizeNearestNeighborGrad", 2, "", LowerResizeGrad},
    {"RsqrtGrad", 2, "", LowerRsqrtGrad},
    {"SeluGrad", 2, "", LowerEluGrad},
    {"SigmoidGrad", 2, "", LowerSigmoidGrad},
    {"SoftplusGrad", 2, "", LowerSoftplusGrad},
    {"SoftsignGrad", 2, "", LowerSoftsignGrad},
    {"SparseFillEmptyRowsGrad", 2, "", LowerFillRowsGrad},
    {"SparseSegmentMeanGrad", 4, "", LowerSegmentGrad},
    {"SparseSegmentSqrtNGrad", 4, "", LowerSegmentGrad},
    {"SparseSegmentSumGrad", 4, "", LowerSegmentGrad},
    {"SqrtGrad", 2, "", LowerSqrtGrad},
    {"StridedSliceGrad", 5, "", LowerStridedSliceGrad},
    {"TanhGrad", 2, "", LowerTanhGrad},
};

}  // namespace

std::span<const TfOpRow> TfGradientRows() { return kRows; }

}  // namespace oncilla
