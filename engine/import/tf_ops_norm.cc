// TensorFlow's normalisations.
#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerSoftmax(TfLowering& b) {
  return One(b.Add("Softmax", {{"log", b.op() == "LogSoftmax"}}, {b.in(0)}));
}

// Inference form: the running mean and variance are inputs, and come out again. The reserve spaces
// are only for gradients.
Result<Values> LowerBatchNorm(TfLowering& b) {
  ONCILLA_ASSIGN(const bool training, b.attrs().Bool("is_training"));
  if (training) return Unsupported("is_training is true: batch statistics are not computed");
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("epsilon"));
  const int64_t axis = layout.channels_first ? 1 : -1;
  ONCILLA_ASSIGN(const ValueId y, b.Add("BatchNorm", {{"axis", axis}, {"epsilon", double{epsilon}}},
                                        {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4)}));
  return Values{y, b.in(3), b.in(4), kNoValue, kNoValue, kNoValue};
}

// y = x / (bias + alpha * sum of squares over 2 * depth_radius + 1 channels) ^ beta; the canonical
// op divides alpha by the window's size first.
Result<Values> LowerLRN(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t radius, b.attrs().Int("depth_radius"));
  ONCILLA_ASSIGN(const float bias, b.attrs().Float("bias"));
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  ONCILLA_ASSIGN(const float beta, b.attrs().Float("beta"));
  if (radius < 0 || radius > (1 << 20)) return InvalidArgument("depth_radius is ", radius);
  const int64_t size = 2 * radius + 1;
  return One(b.Add("LRN",
                   {{"size", size},
                    {"bias", double{bias}},
                    {"alpha", double{alpha} * static_cast<double>(size)},
                    {"beta", double{beta}}},
                   {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"FusedBatchNorm", 5, "", LowerBatchNorm},   {"FusedBatchNormV2", 5, "", LowerBatchNorm},
    {"FusedBatchNormV3", 5, "", LowerBatchNorm}, {"LRN", 1, "", LowerLRN},
    {"LogSoftmax", 1, "", LowerSoftmax},         {"Softmax", 1, "", LowerSoftmax},
};

}  // namespace

std::span<const TfOpRow> TfNormRows() { return kRows; }

}  // namespace oncilla
