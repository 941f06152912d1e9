// ONNX's normalisations and softmaxes. Canonical ops that work on channels have them last.
#include "engine/import/onnx/ops/norm.h"

#include <algorithm>
#include <limits>

namespace oncilla {
namespace {

// Softmax, LogSoftmax or Hardmax along one axis.
Result<ValueId> AddSoftmax(OnnxLowering& b, ValueId x, int64_t axis, std::string_view role) {
  if (b.op() != "Hardmax") {
    return b.Add(SoftmaxAttrs{.axis = axis, .log = b.op() == "LogSoftmax"}, {x}, role);
  }
  // Hardmax: one at the first maximum, zero elsewhere.
  const PartialShape shape = b.fact(x).shape;
  if (!shape.ranked()) return Unsupported("the rank of the input is not known");
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, shape.rank()));
  if (shape[at].known() && shape[at].size == 0) return b.Add("Identity", {}, {x}, role);
  ValueId choices = x;
  if (!shape[at].known()) {
    // The axis may turn out to be empty, and ArgMax needs at least one element. One more number,
    // minus infinity at the end, never is the first maximum of others.
    std::vector<int64_t> pads(2 * static_cast<size_t>(shape.rank()), 0);
    pads[static_cast<size_t>(shape.rank() + at)] = 1;
    ONCILLA_ASSIGN(const ValueId least,
                   b.Scalar(b.fact(x).dtype, -std::numeric_limits<double>::infinity()));
    ONCILLA_ASSIGN(choices, b.Add("Pad", {}, {x, b.Ints(std::move(pads)), least}, "choices"));
  }
  ONCILLA_ASSIGN(const ValueId place, b.Add("ArgMax", ArgAttrs{.axis = axis}, {choices}, "place"));
  ONCILLA_ASSIGN(const ValueId depth, b.Sizes(x, at, at + 1, "depth"));
  ONCILLA_ASSIGN(const ValueId values,
                 b.Cast(b.Constant(Tensor::Of<float>(DType::kF32, {2}, std::array{0.0f, 1.0f})),
                        b.fact(x).dtype, "values"));
  return b.Add(OneHotAttrs{.axis = axis}, {place, depth, values}, role);
}

// Before opset 13 the axes from `axis` on were treated as one.
Result<Values> LowerSoftmax(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", b.version() < 13 ? 1 : -1));
  if (b.version() >= 13) return One(AddSoftmax(b, b.in(0), axis, ""));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (axis == -1 || axis == rank - 1) return One(AddSoftmax(b, b.in(0), -1, ""));
  ONCILLA_ASSIGN(const ValueId flat, b.Add(FlattenAttrs{.axis = axis}, {b.in(0)}, "flat"));
  ONCILLA_ASSIGN(const ValueId y, AddSoftmax(b, flat, -1, "inner"));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(b.in(0), 0, rank, "shape"));
  return One(b.Add("Reshape", {}, {y, shape}));
}

std::vector<int64_t> AxesBut(int64_t left_out, int rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != left_out) axes.push_back(i);
  }
  return axes;
}

// x minus its mean over the axes, and the mean of the square of this difference.
struct Centred {
  ValueId mean, difference, variance;
};
Result<Centred> Centre(OnnxLowering& b, ValueId x, std::vector<int64_t> axes) {
  Centred out;
  const ValueId over = b.Ints(std::move(axes));
  ONCILLA_ASSIGN(out.mean, b.Add("ReduceMean", ReduceAttrs{.keep_dims = true}, {x, over}, "mean"));
  ONCILLA_ASSIGN(out.difference, b.Add("Sub", {}, {x, out.mean}, "centred"));
  ONCILLA_ASSIGN(const ValueId square, b.Add("Square", {}, {out.difference}, "square"));
  ONCILLA_ASSIGN(out.variance,
                 b.Add("ReduceMean", ReduceAttrs{.keep_dims = true}, {square, over}, "variance"));
  return out;
}

// Training mode: normalises by the statistics of this batch, and updates the running ones. Before
// version 14 the batch's own statistics are results too.
Result<Values> TrainBatchNorm(OnnxLowering& b, int rank, double epsilon, float momentum) {
  ONCILLA_ASSIGN(const Centred batch, Centre(b, b.in(0), AxesBut(1, rank)));
  ValueId statistics[2] = {batch.mean, batch.variance}, running[2];
  constexpr const char* kNames[] = {"mean", "variance"};
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = kNames[i];
    ONCILLA_ASSIGN(statistics[i],
                   b.Add("Reshape", {}, {statistics[i], b.Ints({-1})}, "batch_" + name));
    const DType dtype = b.dtype(3 + i);
    ONCILLA_ASSIGN(const ValueId fresh, b.Cast(statistics[i], dtype, "fresh_" + name));
    ONCILLA_ASSIGN(const ValueId keep, b.Scalar(dtype, double{momentum}));
    ONCILLA_ASSIGN(const ValueId take, b.Scalar(dtype, double{1.0f - momentum}));
    ONCILLA_ASSIGN(const ValueId old, b.Add("Mul", {}, {b.in(3 + i), keep}, "old_" + name));
    ONCILLA_ASSIGN(const ValueId part, b.Add("Mul", {}, {fresh, take}, "new_" + name));
    ONCILLA_ASSIGN(running[i], b.Add("Add", {}, {old, part}, "running_" + name));
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(BatchNormAttrs{.axis = 1, .epsilon = epsilon},
                                        {b.in(0), b.in(1), b.in(2), statistics[0], statistics[1]}));
  if (b.version() >= 14) return Values{y, running[0], running[1]};
  return Values{y, running[0], running[1], statistics[0], statistics[1]};
}

// Statistics, scale and bias for each element of a sample, which version 7 still allowed.
Result<Values> AddBatchNormOfElements(OnnxLowering& b, double epsilon) {
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(b.dtype(), epsilon));
  ONCILLA_ASSIGN(ValueId factor, b.Add("Add", {}, {b.in(4), least}, "raised"));
  ONCILLA_ASSIGN(factor, b.Add("Rsqrt", {}, {factor}, "inverse"));
  ONCILLA_ASSIGN(factor, b.Add("Mul", {}, {factor, b.in(1)}, "factor"));
  ONCILLA_ASSIGN(const ValueId centred, b.Add("Sub", {}, {b.in(0), b.in(3)}, "centred"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {centred, factor}, "scaled"));
  return One(b.Add("Add", {}, {scaled, b.in(2)}));
}

Result<Values> LowerBatchNorm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const float momentum, b.Float("momentum", 0.9f));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  bool spatial = true;
  if (b.version() < 9) {
    ONCILLA_ASSIGN(spatial, b.Flag("spatial", true));
    if (b.version() < 7) b.Ignore("is_test");
  }
  ONCILLA_ASSIGN(bool training, b.Flag("training_mode", false));
  // Before version 14, a node with results besides y is in training mode.
  for (size_t i = 1; i < b.outputs() && b.version() < 14; ++i) training |= b.wants(i);
  if (!spatial) {
    if (training) return Unsupported("with statistics per element (spatial = 0) in training");
    return AddBatchNormOfElements(b, double{epsilon});
  }
  if (training) return TrainBatchNorm(b, rank, double{epsilon}, momentum);
  if (rank < 2) return Unsupported("of a tensor without channels");
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(BatchNormAttrs{.epsilon = epsilon}, {x, b.in(1), b.in(2), b.in(3), b.in(4)},
                       rank > 2 ? "inner" : ""));
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerInstanceNorm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(InstanceNormAttrs{.epsilon = epsilon},
                                        {x, b.in(1), b.in(2)}, rank > 2 ? "inner" : ""));
  return One(b.ChannelsFirst(y, rank));
}

// Scale and bias are per group before opset 21, and per channel since then.
Result<Values> LowerGroupNorm(OnnxLowering& b) {
  b.Ignore("stash_type");  // statistics are always kept in at least float
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const int64_t groups, b.NeedInt("num_groups"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ValueId factors[2] = {b.in(1), b.in(2)};
  if (b.version() < 21) {
    const PartialShape shape = b.in_fact(0).shape;
    if (!shape.ranked() || rank < 2 || !shape[1].known() || groups <= 0) {
      return Unsupported("the number of channels is not known");
    }
    const int64_t each = shape[1].size / groups;
    for (int i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "scale" : "bias";
      ONCILLA_ASSIGN(const ValueId column, b.Unsqueeze(factors[i], {1}, name + "_column"));
      ONCILLA_ASSIGN(const ValueId rows,
                     b.Add("Expand", {}, {column, b.Ints({groups, each})}, name + "_rows"));
      ONCILLA_ASSIGN(factors[i], b.Add("Reshape", {}, {rows, b.Ints({-1})}, name));
    }
  }
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(GroupNormAttrs{.groups = groups, .epsilon = epsilon},
                                        {x, factors[0], factors[1]}, rank > 2 ? "inner" : ""));
  return One(b.ChannelsFirst(y, rank));
}

// The norm, times scale plus offset. These belong to the normalised axes; in some files they
// broadcast to the whole input instead.
Result<ValueId> AddScaledNorm(OnnxLowering& b, const char* op, int64_t axis, double epsilon) {
  const LayerNormAttrs attrs = {.axis = axis, .epsilon = epsilon};
  const PartialShape x = b.in_fact(0).shape;
  bool whole = false;
  for (size_t i = 1; i < 3 && x.ranked(); ++i) {
    if (!b.has(i) || !b.in_fact(i).shape.ranked()) continue;
    ONCILLA_ASSIGN(const int first, NormalizeAxis(axis, x.rank()));
    whole |= b.in_fact(i).shape.rank() > x.rank() - first;
  }
  if (!whole) {
    Values inputs = {b.in(0), b.in(1)};
    if (b.has(2)) inputs.push_back(b.in(2));
    return b.Add(op, attrs, std::move(inputs));
  }
  ONCILLA_ASSIGN(ValueId y, b.Add(op, attrs, {b.in(0)}, "norm"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, b.in(1)}, b.has(2) ? "scaled" : ""));
  return b.has(2) ? b.Add("Add", {}, {y, b.in(2)}) : Result<ValueId>(y);
}

}  // namespace

Result<NormStatistics> AddNormStatistics(OnnxLowering& b, ValueId x, int rank, int64_t axis,
                                         double epsilon, bool centred) {
  ONCILLA_ASSIGN(const int first, NormalizeAxis(axis, rank));
  std::vector<int64_t> axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(x, DType::kF32, "x"));
  NormStatistics out;
  ValueId variance = kNoValue;
  if (centred) {
    ONCILLA_ASSIGN(const Centred parts, Centre(b, wide, std::move(axes)));
    out.mean = parts.mean, variance = parts.variance;
  } else {
    ONCILLA_ASSIGN(const ValueId square, b.Add("Square", {}, {wide}, "square"));
    ONCILLA_ASSIGN(variance, b.Add("ReduceMean", ReduceAttrs{.keep_dims = true},
                                   {square, b.Ints(std::move(axes))}, "mean_square"));
  }
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, epsilon));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("Add", {}, {variance, least}, "raised"));
  ONCILLA_ASSIGN(out.inverse, b.Add("Rsqrt", {}, {sum}, "inverse"));
  return out;
}

namespace {

// Further outputs are the mean and the reciprocal of the standard deviation.
Result<Values> LowerLayerNorm(OnnxLowering& b) {
  b.Ignore("stash_type");
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const ValueId y, AddScaledNorm(b, "LayerNorm", axis, double{epsilon}));
  if (!b.wants(1) && !b.wants(2)) return Values{y, kNoValue, kNoValue};
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const NormStatistics found,
                 AddNormStatistics(b, b.in(0), rank, axis, double{epsilon}, true));
  return Values{y, found.mean, found.inverse};
}

Result<Values> LowerRmsNorm(OnnxLowering& b) {
  b.Ignore("stash_type");
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  return One(AddScaledNorm(b, "RmsNorm", axis, double{epsilon}));
}

Result<Values> LowerLrn(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1e-4f));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 0.75f));
  ONCILLA_ASSIGN(const float bias, b.Float("bias", 1));
  ONCILLA_ASSIGN(const int64_t size, b.NeedInt("size"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(LrnAttrs{.size = size, .alpha = alpha, .beta = beta, .bias = bias}, {x},
                       rank > 2 ? "inner" : ""));
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerLpNormalize(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const int64_t p, b.Int("p", 2));
  return One(b.Add(LpNormalizeAttrs{.axis = axis, .p = p}, {b.in(0)}));
}

// Version 1: subtracts the mean of each channel of a sample, or of the whole batch, and divides by
// the standard deviation if `normalize_variance` is set.
Result<Values> LowerFirstMeanVariance(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool across, b.Flag("across_channels", false));
  ONCILLA_ASSIGN(const bool scaled, b.Flag("normalize_variance", true));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 4) return Unsupported("of an image of rank ", rank);
  std::vector<int64_t> axes = {0, 2, 3};
  if (across) axes = {0, 1, 2, 3};
  ONCILLA_ASSIGN(const Centred centred, Centre(b, b.in(0), std::move(axes)));
  if (!scaled) return One(b.Add("Identity", {}, {centred.difference}));
  ONCILLA_ASSIGN(const ValueId root, b.Add("Sqrt", {}, {centred.variance}, "deviation"));
  return One(b.Add("Div", {}, {centred.difference, root}));
}

// (x - mean) / (deviation + 1e-9)
Result<Values> LowerMeanVariance(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.IntList("axes"));
  if (axes.empty()) axes = {0, 2, 3};
  ONCILLA_ASSIGN(const Centred centred, Centre(b, b.in(0), std::move(axes)));
  ONCILLA_ASSIGN(const ValueId root, b.Add("Sqrt", {}, {centred.variance}, "deviation"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(b.dtype(), 1e-9));
  ONCILLA_ASSIGN(const ValueId divisor, b.Add("Add", {}, {root, least}, "divisor"));
  return One(b.Add("Div", {}, {centred.difference, divisor}));
}

constexpr OnnxOpRow kRows[] = {
    {"BatchNormalization", 1, kNewestOnnxOpset, 5, "", LowerBatchNorm},
    {"GroupNormalization", 18, kNewestOnnxOpset, 3, "", LowerGroupNorm},
    {"Hardmax", 1, kNewestOnnxOpset, 1, "", LowerSoftmax},
    {"InstanceNormalization", 1, kNewestOnnxOpset, 3, "", LowerInstanceNorm},
    {"LRN", 1, kNewestOnnxOpset, 1, "", LowerLrn},
    // ONNX Runtime's optimiser also writes it into files of earlier opsets.
    {"LayerNormalization", 1, kNewestOnnxOpset, 2, "", LowerLayerNorm},
    {"LogSoftmax", 1, kNewestOnnxOpset, 1, "", LowerSoftmax},
    {"LpNormalization", 1, kNewestOnnxOpset, 1, "", LowerLpNormalize},
    {"MeanVarianceNormalization", 1, 8, 1, "", LowerFirstMeanVariance},
    {"MeanVarianceNormalization", 9, kNewestOnnxOpset, 1, "", LowerMeanVariance},
    {"RMSNormalization", 23, kNewestOnnxOpset, 2, "", LowerRmsNorm},
    {"Softmax", 1, kNewestOnnxOpset, 1, "", LowerSoftmax},
};

}  // namespace

std::span<const OnnxOpRow> OnnxNormRows() { return kRows; }

}  // namespace oncilla
