// Experimental ops that ONNX removed with version 10. Files of that time, converted from Core ML
// and CNTK, still contain them. Their definition here is that of ONNX Runtime's kernels.
#include <limits>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

constexpr int64_t kLast = 9;  // the last version that has them

// x * factor
Result<ValueId> Times(OnnxLowering& b, ValueId x, float factor, std::string_view role) {
  ONCILLA_ASSIGN(const ValueId number, b.Scalar(b.dtype(), double{factor}));
  return b.Add("Mul", {}, {x, number}, role);
}

// alpha * x + beta
Result<Values> LowerAffine(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 0));
  ONCILLA_ASSIGN(const ValueId scaled, Times(b, b.in(0), alpha, "scaled"));
  ONCILLA_ASSIGN(const ValueId offset, b.Scalar(b.dtype(), double{beta}));
  return One(b.Add("Add", {}, {scaled, offset}));
}

// alpha * f(beta * x), of ScaledTanh and ParametricSoftplus.
Result<Values> LowerScaledCurve(OnnxLowering& b) {
  for (const char* name : {"alpha", "beta"}) {
    if (!b.HasAttr(name)) return DataLoss("attribute '", name, "' is missing");
  }
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 1));
  ONCILLA_ASSIGN(const ValueId x, Times(b, b.in(0), beta, "scaled"));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(b.op() == "ScaledTanh" ? "Tanh" : "Softplus", {}, {x}, "curve"));
  return One(Times(b, y, alpha, ""));
}

Result<Values> LowerScale(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 1));
  return One(Times(b, b.in(0), scale, ""));
}

// x * scale + bias, with one bias per channel.
Result<Values> LowerImageScaler(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 1));
  ONCILLA_ASSIGN(const std::vector<float> bias, b.FloatList("bias"));
  if (bias.empty()) return DataLoss("attribute 'bias' is missing");
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 4) return Unsupported("of an image of rank ", rank);
  ONCILLA_ASSIGN(const ValueId scaled, Times(b, b.in(0), scale, "scaled"));
  const int64_t channels = std::ssize(bias);
  const std::vector<int64_t> any = {-1, channels, -1, -1};
  ONCILLA_ASSIGN(const ValueId image, b.Add(EnsureShapeAttrs{any}, {scaled}, "image"));
  ONCILLA_ASSIGN(
      ValueId offset,
      b.Cast(b.Constant(Tensor::Of<float>(DType::kF32, {channels}, bias)), b.dtype(), "bias"));
  ONCILLA_ASSIGN(offset, b.PerChannel(offset, rank, "bias_of_channels"));
  return One(b.Add("Add", {}, {image, offset}));
}

// Crops the borders (left, top, right, bottom) off an image. If `scale` gives a height and a width,
// the result has this size and only the left and top borders count.
Result<Values> LowerCrop(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> border, b.IntList("border"));
  ONCILLA_ASSIGN(const std::vector<int64_t> size, b.IntList("scale"));
  if (border.size() != 4 || (!size.empty() && size.size() != 2)) {
    return DataLoss("a border of ", border.size(), " numbers and a scale of ", size.size());
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const auto* list : {&border, &size}) {
    for (int64_t number : *list) {
      if (number < 0 || number > kMost) return InvalidArgument("a border or scale of ", number);
    }
  }
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 4) return Unsupported("of an image of rank ", rank);
  const int64_t left = border[0], top = border[1];
  const auto from_end = [](int64_t n) { return n == 0 ? kMost : -n; };
  std::vector<int64_t> ends = {from_end(border[3]), from_end(border[2])};
  if (!size.empty()) ends = {top + size[0], left + size[1]};
  ONCILLA_ASSIGN(
      const ValueId y,
      b.Add("Slice", {}, {b.in(0), b.Ints({top, left}), b.Ints(std::move(ends)), b.Ints({2, 3})},
            size.empty() ? "" : "cropped"));
  if (size.empty()) return Values{y};
  return One(b.Add(EnsureShapeAttrs{{-1, -1, size[0], size[1]}}, {y}));
}

constexpr OnnxOpRow kRows[] = {
    {"Affine", 1, kLast, 1, "", LowerAffine},
    {"Crop", 1, kLast, 1, "", LowerCrop},
    {"DynamicSlice", 1, kLast, 3, "Slice"},
    {"ImageScaler", 1, kLast, 1, "", LowerImageScaler},
    {"ParametricSoftplus", 1, kLast, 1, "", LowerScaledCurve},
    {"Scale", 1, kLast, 1, "", LowerScale},
    {"ScaledTanh", 1, kLast, 1, "", LowerScaledCurve},
};

}  // namespace

std::span<const OnnxOpRow> OnnxExperimentalRows() { return kRows; }

}  // namespace oncilla
