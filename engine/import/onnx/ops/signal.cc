// ONNX's window functions and Fourier transforms, the latter as products with a constant matrix:
// exact up to rounding, and suited to the few thousand points that models transform.
#include <cmath>
#include <limits>
#include <numbers>

#include "engine/import/lowering/fourier.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n below `size`, where N is size for a periodic
// window, and size - 1 for a symmetric one.
Result<Values> LowerWindow(OnnxLowering& b) {
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  if (b.op() == "HammingWindow") a0 = 25.0 / 46, a1 = 1 - a0;
  if (b.op() == "BlackmanWindow") a0 = 0.42, a1 = 0.5, a2 = 0.08;
  ONCILLA_ASSIGN(const bool periodic, b.Flag("periodic", true));
  ONCILLA_ASSIGN(const DType to, b.Type("output_datatype", DType::kF32));
  ONCILLA_ASSIGN(const ValueId size, b.Cast(b.in(0), DType::kI64, "size"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Range", {}, {none, size, one}, "places"));
  ValueId period = size;
  if (!periodic) {
    ONCILLA_ASSIGN(period, b.Add("Sub", {}, {size, one}, "period"));
  }
  const DType compute = to == DType::kF64 ? to : DType::kF32;
  ONCILLA_ASSIGN(const ValueId n, b.Cast(places, compute, "n"));
  ONCILLA_ASSIGN(const ValueId whole, b.Cast(period, compute, "whole"));
  const auto wave = [&](double turns, double factor, const std::string& name) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId step, b.Scalar(compute, turns * 2 * std::numbers::pi));
    ONCILLA_ASSIGN(ValueId angle, b.Add("Mul", {}, {n, step}, name + "_turns"));
    ONCILLA_ASSIGN(angle, b.Add("Div", {}, {angle, whole}, name + "_angle"));
    ONCILLA_ASSIGN(const ValueId cosine, b.Add("Cos", {}, {angle}, name + "_cosine"));
    ONCILLA_ASSIGN(const ValueId height, b.Scalar(compute, factor));
    return b.Add("Mul", {}, {cosine, height}, name);
  };
  ONCILLA_ASSIGN(const ValueId base, b.Scalar(compute, a0));
  ONCILLA_ASSIGN(const ValueId first, wave(1, -a1, "first"));
  const bool last = a2 == 0 && to == compute;
  ONCILLA_ASSIGN(ValueId y, b.Add("Add", {}, {first, base}, last ? "" : "raised"));
  if (a2 != 0) {
    ONCILLA_ASSIGN(const ValueId second, wave(2, a2, "second"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, second}, to == compute ? "" : "sum"));
  }
  return One(b.Cast(y, to, ""));
}

// Windows of more points than this are gathered and transformed; shorter ones are a convolution.
constexpr int64_t kManyPoints = 1023;

// The type in which waves are computed before they are converted to the signal's.
DType WavesType(DType signal) { return signal == DType::kF64 ? signal : DType::kF32; }

// The number of parts in the last axis: 1 for real numbers, 2 for complex ones.
Result<int64_t> PartsOf(OnnxLowering& b, int rank) {
  const PartialShape shape = b.in_fact(0).shape;
  if (!shape.ranked() || !shape[rank - 1].known()) return Unsupported("the last axis is unknown");
  const int64_t parts = shape[rank - 1].size;
  if (parts == 1 || parts == 2) return parts;
  return InvalidArgument("the last axis has ", parts, " parts");
}

// The angles 2 pi n m / period for all pairs of the integers [n] and [m].
Result<ValueId> Angles(OnnxLowering& b, ValueId rows, ValueId columns, ValueId period,
                       DType dtype) {
  ONCILLA_ASSIGN(const ValueId upright, b.Unsqueeze(rows, {1}, "points_upright"));
  ONCILLA_ASSIGN(ValueId turn, b.Add("Mul", {}, {upright, columns}, "products"));
  // Whole turns are removed while the numbers are still exact integers.
  ONCILLA_ASSIGN(turn, b.Add("FloorMod", {}, {turn, period}, "parts"));
  ONCILLA_ASSIGN(turn, b.Cast(turn, dtype, "parts_real"));
  ONCILLA_ASSIGN(const ValueId whole, b.Cast(period, dtype, "period_real"));
  ONCILLA_ASSIGN(const ValueId circle, b.Scalar(dtype, 2 * std::numbers::pi));
  ONCILLA_ASSIGN(turn, b.Add("Mul", {}, {turn, circle}, "turns"));
  return b.Add("Div", {}, {turn, whole}, "angles");
}

// A number of rank 0 and type i64, from an input that holds one.
Result<ValueId> Whole(OnnxLowering& b, size_t input, std::string_view role) {
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(input), DType::kI64, StrCat(role, "_i64")));
  return b.Add("Reshape", {}, {wide, b.Ints({})}, role);
}

Result<ValueId> CountTo(OnnxLowering& b, ValueId limit, std::string_view role) {
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  return b.Add("Range", {}, {none, limit, one}, role);
}

// The permutation that moves axis `at` (a number of rank 0) before the last of `rank` axes, and the
// one that moves it back.
struct Orders {
  ValueId there, back;
};
Result<Orders> OrdersOf(OnnxLowering& b, ValueId at, int rank) {
  std::vector<int64_t> first, all;
  for (int64_t i = 0; i < rank - 1; ++i) {
    if (i < rank - 2) first.push_back(i);
    all.push_back(i);
  }
  const ValueId others = b.Ints(std::move(first)), places = b.Ints(std::move(all));
  const ValueId last = b.Ints({rank - 1});
  ONCILLA_ASSIGN(const ValueId axis, b.Unsqueeze(at, {0}, "axis_vector"));
  ONCILLA_ASSIGN(ValueId later, b.Add("GreaterEqual", {}, {others, axis}, "from_axis"));
  ONCILLA_ASSIGN(later, b.Cast(later, DType::kI64, "skips"));
  ONCILLA_ASSIGN(const ValueId kept, b.Add("Add", {}, {others, later}, "other_axes"));
  Orders orders;
  ONCILLA_ASSIGN(orders.there, b.Add(ConcatAttrs{.axis = 0}, {kept, axis, last}, "order"));
  ONCILLA_ASSIGN(ValueId behind, b.Add("Greater", {}, {places, axis}, "behind_axis"));
  ONCILLA_ASSIGN(behind, b.Cast(behind, DType::kI64, "moved_up"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Sub", {}, {places, behind}, "moved_places"));
  ONCILLA_ASSIGN(const ValueId own, b.Add("Equal", {}, {places, axis}, "own_place"));
  const ValueId end = b.Constant(Tensor::ScalarInt64(rank - 2));
  ONCILLA_ASSIGN(const ValueId placed, b.Add("Where", {}, {own, end, moved}, "back_places"));
  ONCILLA_ASSIGN(orders.back, b.Add(ConcatAttrs{.axis = 0}, {placed, last}, "back_order"));
  return orders;
}

// x [.., n, parts] with `points` elements in its second-to-last axis: cut, or padded with zeros.
Result<ValueId> WithPoints(OnnxLowering& b, ValueId x, int rank, ValueId points) {
  ONCILLA_ASSIGN(const ValueId own, b.Sizes(x, rank - 2, rank - 1, "own_points"));
  ONCILLA_ASSIGN(const ValueId wanted, b.Unsqueeze(points, {0}, "wanted_points"));
  ONCILLA_ASSIGN(ValueId more, b.Add("Sub", {}, {wanted, own}, "points_lacking"));
  ONCILLA_ASSIGN(more, b.Add("Max", {}, {more, b.Ints({0})}, "points_added"));
  const ValueId before = b.Ints(std::vector<int64_t>(static_cast<size_t>(2 * rank - 2), 0));
  ONCILLA_ASSIGN(const ValueId pads,
                 b.Add(ConcatAttrs{.axis = 0}, {before, more, b.Ints({0})}, "point_pads"));
  ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, pads}, "filled"));
  return b.Add("Slice", {}, {x, b.Ints({0}), wanted, b.Ints({rank - 2})}, "of_points");
}

// Sums x [.., n, parts], multiplied by waves, over the points n (the rows of `angle`). The result
// is complex, or with `real_only` only its real part; `sign` is that of the exponent.
Result<ValueId> SumWaves(OnnxLowering& b, ValueId x, int rank, int64_t parts, ValueId angle,
                         double sign, bool real_only) {
  ONCILLA_ASSIGN(const ValueId cosine, b.Add("Cos", {}, {angle}, "cosine"));
  ONCILLA_ASSIGN(ValueId sine, b.Add("Sin", {}, {angle}, "sine"));
  if (sign < 0) {
    ONCILLA_ASSIGN(sine, b.Add("Neg", {}, {sine}, "minus_sine"));
  }
  const auto part = [&](int64_t i, const std::string& name) {
    return b.Add(GatherAttrs{.axis = rank - 1}, {x, b.Constant(Tensor::ScalarInt64(i))}, name);
  };
  ONCILLA_ASSIGN(const ValueId even, part(0, "real_part"));
  ONCILLA_ASSIGN(ValueId real, b.Add("MatMul", {}, {even, cosine}, "real"));
  ValueId odd = kNoValue;
  if (parts == 2) {
    ONCILLA_ASSIGN(odd, part(1, "imaginary_part"));
    ONCILLA_ASSIGN(const ValueId less, b.Add("MatMul", {}, {odd, sine}, "real_less"));
    ONCILLA_ASSIGN(real, b.Add("Sub", {}, {real, less}, "real_sum"));
  }
  ONCILLA_ASSIGN(real, b.Unsqueeze(real, {rank - 1}, "real_apart"));
  if (real_only) return real;
  ONCILLA_ASSIGN(ValueId imaginary, b.Add("MatMul", {}, {even, sine}, "imaginary"));
  if (parts == 2) {
    ONCILLA_ASSIGN(const ValueId more, b.Add("MatMul", {}, {odd, cosine}, "imaginary_more"));
    ONCILLA_ASSIGN(imaginary, b.Add("Add", {}, {imaginary, more}, "imaginary_sum"));
  }
  ONCILLA_ASSIGN(imaginary, b.Unsqueeze(imaginary, {rank - 1}, "imaginary_apart"));
  return b.Add(ConcatAttrs{.axis = rank - 1}, {real, imaginary}, "pairs");
}

// The weight of each bin of a one-sided transform: the first bin, and the last one of an even
// number of points, count once; the others also stand for their mirror images.
Result<ValueId> MirrorWeights(OnnxLowering& b, ValueId bin, ValueId points, DType dtype) {
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId two = b.Constant(Tensor::ScalarInt64(2));
  ONCILLA_ASSIGN(ValueId twice, b.Add("Mul", {}, {bin, two}, "mirror"));
  ONCILLA_ASSIGN(twice, b.Add("FloorMod", {}, {twice, points}, "mirror_place"));
  ONCILLA_ASSIGN(const ValueId single, b.Add("Equal", {}, {twice, none}, "single"));
  ONCILLA_ASSIGN(const ValueId once, b.Scalar(dtype, 1));
  ONCILLA_ASSIGN(const ValueId both, b.Scalar(dtype, 2));
  ONCILLA_ASSIGN(const ValueId weight, b.Add("Where", {}, {single, once, both}, "weight"));
  return b.Unsqueeze(weight, {1}, "weight_upright");
}

// The transform with a computed axis or length, or back to a real signal. The matrix of waves is
// computed at run time as well.
Result<Values> LowerComputedDft(OnnxLowering& b, bool inverse, bool onesided, ValueId axis,
                                int rank) {
  const DType dtype = DType::kF64;  // so that terms that should cancel leave no residue
  ONCILLA_ASSIGN(const int64_t parts, PartsOf(b, rank));
  const bool to_real = inverse && onesided;
  if (to_real && parts != 2) return InvalidArgument("the inverse of one side takes complex bins");
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  const ValueId two = b.Constant(Tensor::ScalarInt64(2));
  ONCILLA_ASSIGN(const Orders orders, OrdersOf(b, axis, rank));
  ONCILLA_ASSIGN(ValueId x, b.Add("Transpose", {}, {b.in(0), orders.there}, "ordered"));
  ONCILLA_ASSIGN(x, b.Cast(x, dtype, "wide"));
  ValueId points = kNoValue;
  if (b.has(1)) {
    ONCILLA_ASSIGN(points, Whole(b, 1, "points"));
  } else {
    ONCILLA_ASSIGN(points, b.Sizes(x, rank - 2, rank - 1, "size"));
    ONCILLA_ASSIGN(points, b.Add("Squeeze", {}, {points, b.Ints({0})}, "points"));
    if (to_real) {
      ONCILLA_ASSIGN(points, b.Add("Sub", {}, {points, one}, "half"));
      ONCILLA_ASSIGN(points, b.Add("Mul", {}, {points, two}, "real_points"));
    }
  }
  ONCILLA_ASSIGN(ValueId bins, b.Add("FloorDiv", {}, {points, two}, "half_points"));
  ONCILLA_ASSIGN(bins, b.Add("Add", {}, {bins, one}, "side"));
  const ValueId from = to_real ? bins : points;
  const ValueId to = onesided && !inverse ? bins : points;
  ONCILLA_ASSIGN(x, WithPoints(b, x, rank, from));
  ONCILLA_ASSIGN(const ValueId row, CountTo(b, from, "point"));
  ONCILLA_ASSIGN(const ValueId column, CountTo(b, to, "bin"));
  ONCILLA_ASSIGN(const ValueId angle, Angles(b, row, column, points, dtype));
  if (to_real) {
    ONCILLA_ASSIGN(const ValueId weight, MirrorWeights(b, row, points, dtype));
    ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, weight}, "mirrored"));
  }
  ONCILLA_ASSIGN(ValueId y, SumWaves(b, x, rank, parts, angle, inverse ? 1 : -1, to_real));
  if (inverse) {
    ONCILLA_ASSIGN(const ValueId count, b.Cast(points, dtype, "count"));
    ONCILLA_ASSIGN(y, b.Add("Div", {}, {y, count}, "divided"));
  }
  ONCILLA_ASSIGN(y, b.Cast(y, b.dtype(), "narrow"));
  return One(b.Add("Transpose", {}, {y, orders.back}));
}

Result<Values> LowerDft(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool inverse, b.Flag("inverse", false));
  ONCILLA_ASSIGN(const bool onesided, b.Flag("onesided", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  // The axis became an input in opset 20.
  int64_t axis = -2;
  if (b.version() < 20) {
    ONCILLA_ASSIGN(axis, b.Int("axis", 1));
  } else if (b.has(2) && !b.in_fact(2).has_value()) {
    ONCILLA_ASSIGN(ValueId computed, Whole(b, 2, "axis"));
    const ValueId count = b.Constant(Tensor::ScalarInt64(rank));
    ONCILLA_ASSIGN(computed, b.Add("FloorMod", {}, {computed, count}, "axis_from_front"));
    return LowerComputedDft(b, inverse, onesided, computed, rank);
  } else if (b.has(2)) {
    ONCILLA_ASSIGN(axis, b.KnownInt(2, "the axis"));
  }
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, rank));
  if (at == rank - 1) return InvalidArgument("the axis is the one of real and imaginary parts");
  const bool sizes_known = b.in_fact(0).shape.ranked() && b.in_fact(0).shape[at].known() &&
                           (!b.has(1) || b.in_fact(1).has_value());
  if (!sizes_known) {
    return LowerComputedDft(b, inverse, onesided, b.Constant(Tensor::ScalarInt64(at)), rank);
  }
  ONCILLA_ASSIGN(const int64_t parts, PartsOf(b, rank));
  const Dim size = b.in_fact(0).shape[at];
  if (!size.known()) return Unsupported("of an axis of unknown size");
  const bool to_real = inverse && onesided;
  if (to_real && parts != 2) return InvalidArgument("the inverse of one side takes complex bins");
  int64_t points = to_real ? SaturatingMul(2, size.size - 1) : size.size;
  if (b.has(1)) {
    ONCILLA_ASSIGN(points, b.KnownInt(1, "dft_length"));
  }
  if (points < 1) return InvalidArgument("there are ", points, " points");
  const DType dtype = b.dtype();
  const int64_t bins = onesided ? points / 2 + 1 : points;
  // What the transform takes and gives along its axis.
  const int64_t taken = to_real ? bins : points;
  ValueId x = b.in(0);
  if (taken < size.size) {
    ONCILLA_ASSIGN(x, b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({taken}), b.Ints({at})}, "cut"));
  } else if (taken > size.size) {
    std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
    pads[static_cast<size_t>(rank + at)] = taken - size.size;
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, b.Ints(std::move(pads))}, "padded"));
  }
  // The axis is moved next to the axis of parts; both are then merged to one axis of the product.
  std::vector<int64_t> perm, back(static_cast<size_t>(rank)), copied;
  for (int64_t i = 0; i < rank - 1; ++i) {
    if (i != at) perm.push_back(i);
  }
  perm.insert(perm.end(), {at, rank - 1});
  for (int64_t i = 0; i < rank; ++i) back[static_cast<size_t>(perm[static_cast<size_t>(i)])] = i;
  ONCILLA_ASSIGN(x, b.Transpose(x, perm, "ordered"));
  copied.assign(static_cast<size_t>(rank - 2), 0);
  auto with = [&](std::initializer_list<int64_t> last) {
    std::vector<int64_t> shape = copied;
    shape.insert(shape.end(), last);
    return b.Ints(std::move(shape));
  };
  const ReshapeAttrs zeros = {.zero_copies = true};
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, with({SaturatingMul(taken, parts)})}, "points"));
  const DType waves = WavesType(dtype);
  ONCILLA_ASSIGN(ValueId y, to_real
                                ? AddRealInverse(b, x, points, waves, "bins")
                                : AddFourier(b, x, points, parts, bins, inverse, waves, "bins"));
  ONCILLA_ASSIGN(y, b.Add(zeros, {y, to_real ? with({points, 1}) : with({bins, 2})}, "pairs"));
  if (at == rank - 2) return One(b.Add("Identity", {}, {y}));
  return One(b.Transpose(y, std::move(back), ""));
}

// The frames [N, frames, length, parts] of a signal x [N, size, parts], gathered and multiplied by
// the window if there is one. `step` and `length` are numbers of rank 0.
Result<ValueId> Frames(OnnxLowering& b, ValueId x, ValueId step, ValueId length) {
  const DType dtype = b.fact(x).dtype;
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId room, b.Sizes(x, 1, 2, "signal_size"));
  ONCILLA_ASSIGN(room, b.Add("Squeeze", {}, {room, b.Ints({0})}, "signal_length"));
  ONCILLA_ASSIGN(room, b.Add("Sub", {}, {room, length}, "room"));
  ONCILLA_ASSIGN(room, b.Add("FloorDiv", {}, {room, step}, "steps"));
  ONCILLA_ASSIGN(const ValueId frames, b.Add("Add", {}, {room, one}, "frames"));
  ONCILLA_ASSIGN(ValueId start, CountTo(b, frames, "frame"));
  ONCILLA_ASSIGN(start, b.Add("Mul", {}, {start, step}, "start"));
  ONCILLA_ASSIGN(start, b.Unsqueeze(start, {1}, "start_upright"));
  ONCILLA_ASSIGN(const ValueId point, CountTo(b, length, "point"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Add", {}, {start, point}, "places"));
  const GatherAttrs along = {.axis = 1, .negative_indices = false};
  ONCILLA_ASSIGN(const ValueId cut, b.Add(along, {x, places}, "cut"));
  if (!b.has(2)) return cut;
  ONCILLA_ASSIGN(ValueId window, b.Unsqueeze(b.in(2), {1}, "window_upright"));
  ONCILLA_ASSIGN(window, b.Cast(window, dtype, "window"));
  return b.Add("Mul", {}, {cut, window}, "windowed");
}

// STFT with a computed step or length: the waves are computed at run time.
Result<Values> LowerComputedStft(OnnxLowering& b, bool onesided) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 2 && rank != 3) return InvalidArgument("the signal has rank ", rank);
  const DType dtype = DType::kF64;  // so that terms that should cancel leave no residue
  int64_t parts = 1;
  ValueId x = b.in(0);
  if (rank == 2) {
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {2}, "signal"));
  } else {
    ONCILLA_ASSIGN(parts, PartsOf(b, rank));
  }
  ONCILLA_ASSIGN(x, b.Cast(x, dtype, "wide"));
  ONCILLA_ASSIGN(const ValueId step, Whole(b, 1, "step"));
  ValueId length = kNoValue;
  if (b.has(3)) {
    ONCILLA_ASSIGN(length, Whole(b, 3, "length"));
  } else if (b.has(2)) {
    ONCILLA_ASSIGN(const ValueId size, b.Sizes(b.in(2), 0, 1, "window_size"));
    ONCILLA_ASSIGN(length, b.Add("Squeeze", {}, {size, b.Ints({0})}, "length"));
  } else {
    return Unsupported("the length of a frame is not known");
  }
  ONCILLA_ASSIGN(const ValueId cut, Frames(b, x, step, length));
  ValueId bins = length;
  if (onesided) {
    const ValueId two = b.Constant(Tensor::ScalarInt64(2));
    ONCILLA_ASSIGN(bins, b.Add("FloorDiv", {}, {length, two}, "half"));
    ONCILLA_ASSIGN(bins, b.Add("Add", {}, {bins, b.Constant(Tensor::ScalarInt64(1))}, "bin_count"));
  }
  ONCILLA_ASSIGN(const ValueId point, CountTo(b, length, "row"));
  ONCILLA_ASSIGN(const ValueId bin, CountTo(b, bins, "bin"));
  ONCILLA_ASSIGN(const ValueId angle, Angles(b, point, bin, length, dtype));
  ONCILLA_ASSIGN(const ValueId y, SumWaves(b, cut, 4, parts, angle, -1, false));
  if (b.dtype() == dtype) return One(b.Add("Identity", {}, {y}));
  return One(b.Cast(y, b.dtype(), ""));
}

// STFT of long frames of known length, of x [N, size, parts].
Result<Values> LowerLongStft(OnnxLowering& b, ValueId x, int64_t step, int64_t points,
                             int64_t parts, int64_t bins) {
  ONCILLA_ASSIGN(x, Frames(b, x, b.Constant(Tensor::ScalarInt64(step)),
                           b.Constant(Tensor::ScalarInt64(points))));
  const ReshapeAttrs zeros = {.zero_copies = true};
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, b.Ints({0, 0, SaturatingMul(points, parts)})}, "points"));
  ONCILLA_ASSIGN(x, AddFourier(b, x, points, parts, bins, false, WavesType(b.dtype()), "bins"));
  return One(b.Add(zeros, {x, b.Ints({0, 0, bins, 2})}));
}

// Transforms each window of the signal: a convolution with the waves.
Result<Values> LowerStft(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool onesided, b.Flag("onesided", true));
  const bool computed = !b.in_fact(1).has_value() || (b.has(3) && !b.in_fact(3).has_value());
  if (computed) return LowerComputedStft(b, onesided);
  ONCILLA_ASSIGN(const int64_t step, b.KnownInt(1, "frame_step"));
  int64_t points = 0;
  if (b.has(3)) {
    ONCILLA_ASSIGN(points, b.KnownInt(3, "frame_length"));
  } else if (b.has(2) && b.in_fact(2).shape.elements().known()) {
    points = b.in_fact(2).shape.elements().size;
  } else {
    return Unsupported("the length of a frame is not known");
  }
  if (points < 1 || step < 1) return InvalidArgument("frames of ", points, " every ", step);
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ValueId x = b.in(0);
  int64_t parts = 1;
  if (rank == 2) {
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {2}, "signal"));
  } else if (rank == 3) {
    ONCILLA_ASSIGN(parts, PartsOf(b, rank));
  } else {
    return InvalidArgument("the signal has rank ", rank);
  }
  const int64_t bins = onesided ? points / 2 + 1 : points;
  if (points > kManyPoints) return LowerLongStft(b, x, step, points, parts, bins);
  const Tensor matrix = FourierMatrix(WavesType(b.dtype()), points, parts, bins, false);
  ONCILLA_ASSIGN(ValueId filter, b.Cast(b.Constant(matrix.Reshaped({points, parts, bins * 2})),
                                        b.dtype(), "waves"));
  if (b.has(2)) {
    ONCILLA_ASSIGN(const ValueId window, b.Unsqueeze(b.in(2), {1, 2}, "window"));
    ONCILLA_ASSIGN(filter, b.Add("Mul", {}, {filter, window}, "windowed_waves"));
  }
  ConvAttrs attrs;
  attrs.strides = {step};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, filter}, "frames"));
  return One(b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, bins, 2})}));
}

// The mel value of a frequency: the inverse of hertz = 700 * (10^(mel / 2595) - 1).
Result<ValueId> MelOf(OnnxLowering& b, size_t input, const std::string& name) {
  const DType dtype = DType::kF64;
  ONCILLA_ASSIGN(ValueId x, b.Cast(b.in(input), dtype, name));
  ONCILLA_ASSIGN(x, b.Add("Reshape", {}, {x, b.Ints({})}, name + "_number"));
  ONCILLA_ASSIGN(const ValueId unit, b.Scalar(dtype, 700));
  ONCILLA_ASSIGN(x, b.Add("Div", {}, {x, unit}, name + "_units"));
  ONCILLA_ASSIGN(x, b.Add("Log1p", {}, {x}, name + "_log"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(dtype, 2595 / std::numbers::ln10));
  return b.Add("Mul", {}, {x, factor}, name + "_mel");
}

// The bins of the spectrum where the triangles of the bands begin and end: [bands + 2].
Result<ValueId> BandEdges(OnnxLowering& b, ValueId bands) {
  const DType dtype = DType::kF64;
  const ValueId two = b.Constant(Tensor::ScalarInt64(2));
  ONCILLA_ASSIGN(const ValueId low, MelOf(b, 3, "low"));
  ONCILLA_ASSIGN(const ValueId high, MelOf(b, 4, "high"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("Add", {}, {bands, two}, "edge_count"));
  ONCILLA_ASSIGN(ValueId edge, CountTo(b, count, "edge"));
  ONCILLA_ASSIGN(edge, b.Cast(edge, dtype, "edge_real"));
  ONCILLA_ASSIGN(const ValueId parts, b.Cast(count, dtype, "parts"));
  ONCILLA_ASSIGN(ValueId step, b.Add("Sub", {}, {high, low}, "span"));
  ONCILLA_ASSIGN(step, b.Add("Div", {}, {step, parts}, "mel_step"));
  ONCILLA_ASSIGN(edge, b.Add("Mul", {}, {edge, step}, "above_low"));
  ONCILLA_ASSIGN(edge, b.Add("Add", {}, {edge, low}, "edge_mel"));
  ONCILLA_ASSIGN(const ValueId scale, b.Scalar(dtype, std::numbers::ln10 / 2595));
  ONCILLA_ASSIGN(edge, b.Add("Mul", {}, {edge, scale}, "edge_log"));
  ONCILLA_ASSIGN(edge, b.Add("Expm1", {}, {edge}, "edge_units"));
  ONCILLA_ASSIGN(const ValueId unit, b.Scalar(dtype, 700));
  ONCILLA_ASSIGN(edge, b.Add("Mul", {}, {edge, unit}, "edge_hertz"));
  // (dft_length + 1) * hertz / sample rate, rounded down.
  ONCILLA_ASSIGN(ValueId points, Whole(b, 1, "points"));
  ONCILLA_ASSIGN(points, b.Add("Add", {}, {points, b.Constant(Tensor::ScalarInt64(1))}, "more"));
  ONCILLA_ASSIGN(points, b.Cast(points, dtype, "points_real"));
  ONCILLA_ASSIGN(ValueId rate, Whole(b, 2, "rate"));
  ONCILLA_ASSIGN(rate, b.Cast(rate, dtype, "rate_real"));
  ONCILLA_ASSIGN(edge, b.Add("Mul", {}, {edge, points}, "edge_scaled"));
  ONCILLA_ASSIGN(edge, b.Add("FloorDiv", {}, {edge, rate}, "edge_bin"));
  return edge;
}

// Triangular windows over the bins of a spectrum, one for each band: [bins, bands].
Result<Values> LowerMelWeightMatrix(OnnxLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.Type("output_datatype", DType::kF32));
  const ValueId two = b.Constant(Tensor::ScalarInt64(2));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId bands, Whole(b, 0, "bands"));
  ONCILLA_ASSIGN(const ValueId edges, BandEdges(b, bands));
  const auto part = [&](int64_t begin, int64_t end, const char* name) {
    return b.Add("Slice", {}, {edges, b.Ints({begin}), b.Ints({end}), b.Ints({0})}, name);
  };
  ONCILLA_ASSIGN(const ValueId lower, part(0, -2, "lower"));
  ONCILLA_ASSIGN(const ValueId centre, part(1, -1, "centre"));
  ONCILLA_ASSIGN(const ValueId upper, part(2, std::numeric_limits<int64_t>::max(), "upper"));
  ONCILLA_ASSIGN(ValueId bins, Whole(b, 1, "length"));
  ONCILLA_ASSIGN(bins, b.Add("FloorDiv", {}, {bins, two}, "half"));
  ONCILLA_ASSIGN(bins, b.Add("Add", {}, {bins, one}, "bins"));
  ONCILLA_ASSIGN(ValueId bin, CountTo(b, bins, "bin"));
  ONCILLA_ASSIGN(bin, b.Cast(bin, DType::kF64, "bin_real"));
  ONCILLA_ASSIGN(bin, b.Unsqueeze(bin, {1}, "bin_upright"));
  const auto op = [&](const char* name, ValueId x, ValueId y, const char* role) {
    return b.Add(name, {}, {x, y}, role);
  };
  // Rises from the lower edge to the centre, both included; if both are the same bin, only the
  // centre is one.
  ONCILLA_ASSIGN(const ValueId rise, op("Sub", centre, lower, "rise"));
  ONCILLA_ASSIGN(const ValueId risen, op("Sub", bin, lower, "risen"));
  ONCILLA_ASSIGN(const ValueId slope, op("DivNoNan", risen, rise, "slope"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF64, 0));
  ONCILLA_ASSIGN(const ValueId unit, b.Scalar(DType::kF64, 1));
  ONCILLA_ASSIGN(const ValueId from, op("GreaterEqual", bin, lower, "from_lower"));
  ONCILLA_ASSIGN(const ValueId until, op("LessEqual", bin, centre, "to_centre"));
  ONCILLA_ASSIGN(const ValueId left, op("And", from, until, "left_side"));
  ONCILLA_ASSIGN(ValueId y, b.Add("Where", {}, {left, slope, zero}, "left"));
  ONCILLA_ASSIGN(const ValueId top, op("Equal", bin, centre, "top"));
  ONCILLA_ASSIGN(y, b.Add("Where", {}, {top, unit, y}, "peak"));
  // Falls to the upper edge, which is excluded.
  ONCILLA_ASSIGN(const ValueId fall, op("Sub", upper, centre, "fall"));
  ONCILLA_ASSIGN(const ValueId left_over, op("Sub", upper, bin, "left_over"));
  ONCILLA_ASSIGN(const ValueId down, op("DivNoNan", left_over, fall, "down"));
  ONCILLA_ASSIGN(const ValueId behind, op("Greater", bin, centre, "behind_centre"));
  ONCILLA_ASSIGN(const ValueId before, op("Less", bin, upper, "before_upper"));
  ONCILLA_ASSIGN(const ValueId right, op("And", behind, before, "right_side"));
  ONCILLA_ASSIGN(y, b.Add("Where", {}, {right, down, y}, to == DType::kF64 ? "" : "weights"));
  return One(b.Cast(y, to, ""));
}

constexpr OnnxOpRow kRows[] = {
    {"BlackmanWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"DFT", 17, kNewestOnnxOpset, 1, "", LowerDft},
    {"HammingWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"HannWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"MelWeightMatrix", 17, kNewestOnnxOpset, 5, "", LowerMelWeightMatrix},
    {"STFT", 17, kNewestOnnxOpset, 2, "", LowerStft},
};

}  // namespace

std::span<const OnnxOpRow> OnnxSignalRows() { return kRows; }

}  // namespace oncilla
