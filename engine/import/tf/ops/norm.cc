// TensorFlow's normalisations.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerSoftmax(TfLowering& b) {
  return One(b.Add(SoftmaxAttrs{.log = b.op() == "LogSoftmax"}, {b.in(0)}));
}

// With is_training, the statistics are those of the batch. The running ones are returned as a blend
// of old and new, with the weight `factor` for the new ones (1 by default). The new variance in it
// is the unbiased one.
Result<Values> BatchStatistics(TfLowering& b, const TfLayout& layout, float epsilon) {
  ONCILLA_ASSIGN(const float factor, b.attrs().Float("exponential_avg_factor"));
  ValueId x = b.in(0);
  const DType dtype = b.fact(b.in(1)).dtype;
  ONCILLA_ASSIGN(x, b.Cast(x, dtype, "float"));
  std::vector<int64_t> axes;
  for (int axis = 0; axis < layout.rank; ++axis) {
    if (axis != layout.channel_axis()) axes.push_back(axis);
  }
  const ValueId over = b.Ints(axes);
  ONCILLA_ASSIGN(const ValueId centre,
                 b.Add("ReduceMean", ReduceAttrs{.keep_dims = true}, {x, over}, "centre"));
  ONCILLA_ASSIGN(const ValueId squares, b.Add("SquaredDifference", {}, {x, centre}, "squares"));
  ONCILLA_ASSIGN(const ValueId mean, b.Add("Reshape", {}, {centre, b.Ints({-1})}, "mean"));
  ONCILLA_ASSIGN(const ValueId variance, b.Add("ReduceMean", {}, {squares, over}, "variance"));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(BatchNormAttrs{.axis = layout.channel_axis(), .epsilon = epsilon},
                       {b.in(0), b.in(1), b.in(2), mean, variance}));
  // variance * n / (n - 1), where n is the number of elements per channel.
  ONCILLA_ASSIGN(const ValueId size, b.Add("Size", {}, {b.in(0)}, "size"));
  ONCILLA_ASSIGN(const ValueId channels, b.Add("Size", {}, {b.in(1)}, "channels"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId at_least, b.Add("Max", {}, {channels, one}, "at_least"));
  ONCILLA_ASSIGN(const ValueId n, b.Add("Div", {}, {size, at_least}, "n"));
  ONCILLA_ASSIGN(const ValueId less, b.Add("Sub", {}, {n, one}, "n_less_one"));
  ONCILLA_ASSIGN(const ValueId rest, b.Add("Max", {}, {less, one}, "rest"));
  ONCILLA_ASSIGN(const ValueId up, b.Cast(n, dtype, "n_float"));
  ONCILLA_ASSIGN(const ValueId down, b.Cast(rest, dtype, "rest_float"));
  ONCILLA_ASSIGN(const ValueId ratio, b.Add("Div", {}, {up, down}, "ratio"));
  ONCILLA_ASSIGN(ValueId new_variance, b.Add("Mul", {}, {variance, ratio}, "unbiased"));
  // Only GPUs use the third reserve space; here it is a number that nothing reads.
  ONCILLA_ASSIGN(const ValueId reserve, b.Scalar(DType::kF32, 0));
  ValueId new_mean = mean;
  if (factor != 1) {
    ONCILLA_ASSIGN(const ValueId part, b.Scalar(dtype, double{factor}));
    ONCILLA_ASSIGN(const ValueId old_part, b.Scalar(dtype, double{1 - factor}));
    auto blend = [&](ValueId before, ValueId now, const std::string& role) -> Result<ValueId> {
      ONCILLA_ASSIGN(const ValueId kept, b.Add("Mul", {}, {before, old_part}, role + "_old"));
      ONCILLA_ASSIGN(const ValueId added, b.Add("Mul", {}, {now, part}, role + "_new"));
      return b.Add("Add", {}, {kept, added}, role);
    };
    ONCILLA_ASSIGN(new_mean, blend(b.in(3), mean, "running_mean"));
    ONCILLA_ASSIGN(new_variance, blend(b.in(4), new_variance, "running_variance"));
  }
  return Values{y, new_mean, new_variance, mean, variance, reserve};
}

// The form for inference: the running mean and variance are inputs and are returned. The reserve
// spaces only matter for gradients.
Result<Values> LowerBatchNorm(TfLowering& b) {
  ONCILLA_ASSIGN(const bool training, b.attrs().Bool("is_training"));
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("epsilon"));
  if (training) return BatchStatistics(b, layout, epsilon);
  const int64_t axis = layout.channels_first ? 1 : -1;
  ONCILLA_ASSIGN(const ValueId y, b.Add(BatchNormAttrs{.axis = axis, .epsilon = epsilon},
                                        {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4)}));
  ONCILLA_ASSIGN(const ValueId reserve, b.Scalar(DType::kF32, 0));
  return Values{y, b.in(3), b.in(4), b.in(3), b.in(4), reserve};
}

// The first version of batch normalisation: mean and variance precede offset and scale, and the
// scale is optional.
Result<Values> LowerOldBatchNorm(TfLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.attrs().Float("variance_epsilon"));
  ONCILLA_ASSIGN(const bool scaled, b.attrs().Bool("scale_after_normalization"));
  ValueId scale = b.in(4);
  if (!scaled) {
    ONCILLA_ASSIGN(const ValueId one, b.Scalar(b.in_fact(0).dtype, 1));
    ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(2)}, "shape"));
    ONCILLA_ASSIGN(scale, b.Add("Fill", {}, {shape, one}, "scale"));
  }
  return One(b.Add(BatchNormAttrs{.axis = -1, .epsilon = epsilon},
                   {b.in(0), scale, b.in(3), b.in(1), b.in(2)}));
}

// y = x / (bias + alpha * sum of squares over 2 * depth_radius + 1 channels) ^ beta. The canonical
// op divides alpha by the window's size first.
Result<Values> LowerLRN(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t radius, b.attrs().Int("depth_radius"));
  ONCILLA_ASSIGN(const float bias, b.attrs().Float("bias"));
  ONCILLA_ASSIGN(const float alpha, b.attrs().Float("alpha"));
  ONCILLA_ASSIGN(const float beta, b.attrs().Float("beta"));
  if (radius < 0 || radius > (1 << 20)) return InvalidArgument("depth_radius is ", radius);
  const int64_t size = 2 * radius + 1;
  return One(b.Add(LrnAttrs{.size = size,
                            .alpha = double{alpha} * static_cast<double>(size),
                            .beta = beta,
                            .bias = bias},
                   {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"BatchNormWithGlobalNormalization", 5, "", LowerOldBatchNorm},
    {"FusedBatchNorm", 5, "", LowerBatchNorm},
    {"FusedBatchNormV2", 5, "", LowerBatchNorm},
    {"FusedBatchNormV3", 5, "", LowerBatchNorm},
    {"LRN", 1, "", LowerLRN},
    {"LogSoftmax", 1, "", LowerSoftmax},
    {"Softmax", 1, "", LowerSoftmax},
};

}  // namespace

std::span<const TfOpRow> TfNormRows() { return kRows; }

}  // namespace oncilla
