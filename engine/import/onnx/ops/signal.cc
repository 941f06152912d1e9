// ONNX's window functions and Fourier transforms, the latter as products with a constant matrix:
// exact to rounding, and fit for the few thousand points that models transform.
#include <cmath>
#include <numbers>

#include "engine/import/lowering/fourier.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n below `size`, where N is size, or size - 1 for
// a symmetric window.
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

constexpr int64_t kMostPoints = 2048;

// How many parts the last axis has: 1 of real numbers, 2 of complex ones.
Result<int64_t> PartsOf(OnnxLowering& b, int rank) {
  const PartialShape& shape = b.in_fact(0).shape;
  if (!shape.ranked() || !shape[rank - 1].known()) return Unsupported("the last axis is unknown");
  const int64_t parts = shape[rank - 1].size;
  if (parts == 1 || parts == 2) return parts;
  return InvalidArgument("the last axis has ", parts, " parts");
}

Result<Values> LowerDft(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool inverse, b.Flag("inverse", false));
  ONCILLA_ASSIGN(const bool onesided, b.Flag("onesided", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  // The axis became an input in opset 20.
  int64_t axis = -2;
  if (b.version() < 20) {
    ONCILLA_ASSIGN(axis, b.Int("axis", 1));
  } else if (b.has(2)) {
    ONCILLA_ASSIGN(axis, b.KnownInt(2, "the axis"));
  }
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, rank));
  if (at == rank - 1) return InvalidArgument("the axis is the one of real and imaginary parts");
  if (inverse && onesided) return Unsupported("inverse of one side");
  ONCILLA_ASSIGN(const int64_t parts, PartsOf(b, rank));
  const Dim size = b.in_fact(0).shape[at];
  if (!size.known()) return Unsupported("of an axis of unknown size");
  int64_t points = size.size;
  if (b.has(1)) {
    ONCILLA_ASSIGN(points, b.KnownInt(1, "dft_length"));
  }
  if (points < 1) return InvalidArgument("there are ", points, " points");
  if (points > kMostPoints) return Unsupported("of ", points, " points");
  const DType dtype = b.dtype();
  const int64_t bins = onesided ? points / 2 + 1 : points;
  ValueId x = b.in(0);
  if (points < size.size) {
    ONCILLA_ASSIGN(x, b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({points}), b.Ints({at})}, "cut"));
  } else if (points > size.size) {
    std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
    pads[static_cast<size_t>(rank + at)] = points - size.size;
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, b.Ints(std::move(pads))}, "padded"));
  }
  // The axis next to the parts; both are then one axis of the product.
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
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, with({points * parts})}, "points"));
  const Tensor matrix = FourierMatrix(DType::kF32, points, parts, bins, inverse);
  ONCILLA_ASSIGN(const ValueId waves,
                 b.Cast(b.Constant(matrix.Reshaped({points * parts, bins * 2})), dtype, "waves"));
  ONCILLA_ASSIGN(ValueId y, b.Add("MatMul", {}, {x, waves}, "bins"));
  ONCILLA_ASSIGN(y, b.Add(zeros, {y, with({bins, 2})}, "pairs"));
  if (at == rank - 2) return One(b.Add("Identity", {}, {y}));
  return One(b.Transpose(y, std::move(back), ""));
}

// Windows of the signal, each transformed: a convolution with the waves.
Result<Values> LowerStft(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool onesided, b.Flag("onesided", true));
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
  if (points > kMostPoints) return Unsupported("of ", points, " points");
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
  const Tensor matrix = FourierMatrix(DType::kF32, points, parts, bins, false);
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

constexpr OnnxOpRow kRows[] = {
    {"BlackmanWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"DFT", 17, kNewestOnnxOpset, 1, "", LowerDft},
    {"HammingWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"HannWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"STFT", 17, kNewestOnnxOpset, 2, "", LowerStft},
};

}  // namespace

std::span<const OnnxOpRow> OnnxSignalRows() { return kRows; }

}  // namespace oncilla
