// ONNX's ops on columns of windows (im2col), and the sampling grids of GridSample.
#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

Result<Values> LowerCol2Im(OnnxLowering& b) {
  FoldColumnsAttrs attrs;
  ONCILLA_ASSIGN(attrs.strides, b.IntList("strides"));
  ONCILLA_ASSIGN(attrs.dilations, b.IntList("dilations"));
  ONCILLA_ASSIGN(attrs.pads, b.IntList("pads"));
  return One(b.Add(attrs, {b.in(0), b.in(1), b.in(2)}));
}

Result<Values> LowerDeformConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 4) return Unsupported("with ", rank - 2, " spatial axes");
  DeformConvAttrs attrs;
  ONCILLA_ASSIGN(attrs.strides, OnnxSpatialList(b, "strides", 2));
  ONCILLA_ASSIGN(attrs.dilations, OnnxSpatialList(b, "dilations", 2));
  ONCILLA_ASSIGN(attrs.pads, OnnxSpatialList(b, "pads", 4));
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(attrs.offset_groups, b.Int("offset_group", 1));
  ONCILLA_ASSIGN(const auto kernel, OnnxSpatialList(b, "kernel_shape", 2));
  const PartialShape weight = b.in_fact(1).shape;
  for (size_t i = 0; i < kernel.size() && weight.ranked() && weight.rank() == 4; ++i) {
    const Dim& size = weight[static_cast<int>(i) + 2];
    if (size.known() && size.size != kernel[i]) {
      return InvalidArgument("kernel_shape says ", kernel[i], " and the filter is ", weight);
    }
  }
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), 4));
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), {2, 3, 1, 0}, "filter"));
  ONCILLA_ASSIGN(const ValueId offset, b.Transpose(b.in(2), {0, 2, 3, 1}, "offset"));
  Values inputs = {x, filter, offset, b.in(3)};
  if (b.has(4)) {
    ONCILLA_ASSIGN(const ValueId mask, b.Transpose(b.in(4), {0, 2, 3, 1}, "mask"));
    inputs.push_back(mask);
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, std::move(inputs), "inner"));
  return One(b.ChannelsFirst(y, 4));
}

// The coordinates of the pixels along an axis, from -1 to 1: the pixels' centres, or with
// align_corners from the first pixel to the last; -1 if there is only one pixel.
Result<ValueId> Middles(OnnxLowering& b, ValueId size, bool align, DType dtype,
                        const std::string& name) {
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId place, b.Add("Range", {}, {none, size, one}, name + "_places"));
  ONCILLA_ASSIGN(place, b.Cast(place, dtype, name + "_real"));
  ONCILLA_ASSIGN(const ValueId two, b.Scalar(dtype, 2));
  ONCILLA_ASSIGN(const ValueId unit, b.Scalar(dtype, 1));
  ONCILLA_ASSIGN(place, b.Add("Mul", {}, {place, two}, name + "_doubled"));
  ValueId span = size;
  if (align) {
    ONCILLA_ASSIGN(span, b.Add("Sub", {}, {span, one}, name + "_steps"));
    ONCILLA_ASSIGN(span, b.Add("Max", {}, {span, one}, name + "_span"));
  } else {
    ONCILLA_ASSIGN(place, b.Add("Add", {}, {place, unit}, name + "_middle"));
  }
  ONCILLA_ASSIGN(span, b.Cast(span, dtype, name + "_real_span"));
  ONCILLA_ASSIGN(place, b.Add("Div", {}, {place, span}, name + "_part"));
  return b.Add("Sub", {}, {place, unit}, name);
}

// theta [N, n, n + 1] times the homogeneous coordinates (last axis first, then 1) of each pixel.
Result<Values> LowerAffineGrid(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool align, b.Flag("align_corners", false));
  const PartialShape theta = b.in_fact(0).shape;
  if (!theta.ranked() || theta.rank() != 3 || !theta[1].known()) {
    return Unsupported("the sizes of theta are not known");
  }
  const auto axes = static_cast<int>(std::min<int64_t>(theta[1].size, 4));
  if (axes != 2 && axes != 3) return InvalidArgument("theta has ", theta[1].size, " rows");
  const DType dtype = b.dtype();
  ONCILLA_ASSIGN(const ValueId sizes, b.Cast(b.in(1), DType::kI64, "sizes"));
  // Coordinates along each axis, broadcast over all pixels.
  ONCILLA_ASSIGN(const ValueId pixels,
                 b.Add("Slice", {}, {sizes, b.Ints({2}), b.Ints({2 + axes})}, "pixels"));
  Values coordinates;
  for (int i = axes; i-- > 0;) {
    const std::string name = StrCat("axis", i);
    ONCILLA_ASSIGN(
        const ValueId size,
        b.Add("Gather", {}, {sizes, b.Constant(Tensor::ScalarInt64(2 + i))}, name + "_size"));
    ONCILLA_ASSIGN(ValueId line, Middles(b, size, align, dtype, name));
    std::vector<int64_t> others;
    for (int64_t k = 0; k <= axes; ++k) {
      if (k != i) others.push_back(k);
    }
    ONCILLA_ASSIGN(line, b.Unsqueeze(line, std::move(others), name + "_upright"));
    ONCILLA_ASSIGN(const ValueId shape,
                   b.Add(ConcatAttrs{.axis = 0}, {pixels, b.Ints({1})}, name + "_shape"));
    ONCILLA_ASSIGN(line, b.Add("Expand", {}, {line, shape}, name + "_everywhere"));
    coordinates.push_back(line);
  }
  ONCILLA_ASSIGN(ValueId flat, b.Add(ConcatAttrs{.axis = axes}, coordinates, "places"));
  ONCILLA_ASSIGN(flat, b.Add("Reshape", {}, {flat, b.Ints({1, -1, axes})}, "flat"));
  // The last column of theta is added as a translation.
  ONCILLA_ASSIGN(const ValueId turn,
                 b.Add("Slice", {}, {b.in(0), b.Ints({0}), b.Ints({axes}), b.Ints({2})}, "turn"));
  ONCILLA_ASSIGN(
      ValueId shift,
      b.Add("Slice", {}, {b.in(0), b.Ints({axes}), b.Ints({axes + 1}), b.Ints({2})}, "shift"));
  ONCILLA_ASSIGN(shift, b.Transpose(shift, {0, 2, 1}, "shift_row"));
  ONCILLA_ASSIGN(const ValueId turned,
                 b.Add(MatMulAttrs{.transpose_b = true}, {flat, turn}, "turned"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {turned, shift}, "moved"));
  ONCILLA_ASSIGN(const ValueId samples, b.Sizes(b.in(0), 0, 1, "samples"));
  ONCILLA_ASSIGN(const ValueId shape,
                 b.Add(ConcatAttrs{.axis = 0}, {samples, pixels, b.Ints({axes})}, "shape"));
  return One(b.Add("Reshape", {}, {moved, shape}));
}

constexpr OnnxOpRow kRows[] = {
    {"AffineGrid", 20, kNewestOnnxOpset, 2, "", LowerAffineGrid},
    {"Col2Im", 18, kNewestOnnxOpset, 3, "", LowerCol2Im},
    {"DeformConv", 19, kNewestOnnxOpset, 3, "", LowerDeformConv},
};

}  // namespace

std::span<const OnnxOpRow> OnnxColumnsRows() { return kRows; }

}  // namespace oncilla
