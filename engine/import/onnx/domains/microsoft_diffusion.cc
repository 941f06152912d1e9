// com.microsoft's ops that ONNX Runtime's transformers tool leaves in diffusion models:
// channels-last images, and the ops fused around their normalisations.
#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

// Input, result and filter are channels-last: [M, kH, kW, C / group].
Result<Values> LowerNhwcConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  b.Ignore("kernel_shape");  // repeats the filter's shape
  std::vector<int64_t> perm;
  for (int i = 1; i < rank; ++i) perm.push_back(i);
  perm.push_back(0);
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), std::move(perm), "filter"));
  return One(b.Add(attrs, {b.in(0), filter, b.in(2)}));
}

// The group norm of x, channels-last, followed by x * sigmoid(x) if the node says so. Scale and
// offset are f32 even if x is not.
Result<Values> AddGroupNorm(OnnxLowering& b, ValueId x) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const int64_t groups, b.NeedInt("groups"));
  ONCILLA_ASSIGN(const int64_t activation, b.NeedInt("activation"));
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", true));
  if (activation != 0 && activation != 1) return InvalidArgument("activation is ", activation);
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 4) return Unsupported("of an input of rank ", rank);
  const DType dtype = b.fact(x).dtype;
  ONCILLA_ASSIGN(const ValueId scale, b.Cast(b.in(1), dtype, "scale"));
  ONCILLA_ASSIGN(const ValueId offset, b.Cast(b.in(2), dtype, "offset"));
  if (!last) {
    ONCILLA_ASSIGN(x, b.ChannelsLast(x, rank));
  }
  const GroupNormAttrs attrs = {.groups = groups, .epsilon = epsilon};
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {x, scale, offset}, activation == 1 ? "norm" : "inner"));
  if (activation == 1) {
    ONCILLA_ASSIGN(y, b.Add("Silu", {}, {y}, "inner"));
  }
  return One(last ? b.Add("Identity", {}, {y}) : b.ChannelsFirst(y, rank));
}

Result<Values> LowerGroupNorm(OnnxLowering& b) { return AddGroupNorm(b, b.in(0)); }

// The group norm of input + skip (+ bias), and that sum.
Result<Values> LowerSkipGroupNorm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(3, "the skip"));
  ValueId skip = b.in(3);
  if (rank == 2) {  // one number for each channel of a sample
    ONCILLA_ASSIGN(skip, b.Unsqueeze(skip, {1, 2}, "skip_of_all"));
  }
  ONCILLA_ASSIGN(ValueId sum, b.Add("Add", {}, {b.in(0), skip}, b.has(4) ? "skipped" : "sum"));
  if (b.has(4)) {
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(4)}, "sum"));
  }
  ONCILLA_ASSIGN(Values y, AddGroupNorm(b, sum));
  y.push_back(sum);
  return y;
}

Result<Values> LowerBiasAdd(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId biased, b.Add("Add", {}, {b.in(0), b.in(1)}, "biased"));
  return One(b.Add("Add", {}, {biased, b.in(2)}));
}

// The left half of x + bias, times Gelu of its right half.
Result<Values> LowerBiasSplitGelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, b.Add("Add", {}, {b.in(0), b.in(1)}, "biased"));
  ONCILLA_ASSIGN(const Values halves, b.AddAll(SplitAttrs{.axis = -1, .parts = 2}, {x}, "halves"));
  ONCILLA_ASSIGN(const ValueId gate, b.Add(GeluAttrs{}, {halves[1]}, "gate"));
  return One(b.Add("Mul", {}, {halves[0], gate}));
}

constexpr OnnxOpRow kRows[] = {
    {"BiasAdd", 1, kNewestOnnxMicrosoft, 3, "", LowerBiasAdd},
    {"BiasSplitGelu", 1, kNewestOnnxMicrosoft, 2, "", LowerBiasSplitGelu},
    {"GroupNorm", 1, kNewestOnnxMicrosoft, 3, "", LowerGroupNorm},
    {"NhwcConv", 1, kNewestOnnxMicrosoft, 2, "", LowerNhwcConv},
    {"SkipGroupNorm", 1, kNewestOnnxMicrosoft, 4, "", LowerSkipGroupNorm},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftDiffusionRows() { return kRows; }

}  // namespace oncilla
