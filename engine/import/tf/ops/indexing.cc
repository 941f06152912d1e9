// TensorFlow's constants, shapes, ranges, gathers and one-hot encodings.
#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/computed_axis.h"
#include "engine/import/tf/messages.h"

namespace oncilla {
namespace {

Result<Values> LowerConst(TfLowering& b) {
  ONCILLA_ASSIGN(Tensor value, b.ConstantValue());
  return Values{b.Constant(std::move(value))};
}

// A placeholder that is an input of the graph is handled elsewhere; this one was not fed.
Result<Values> LowerPlaceholder(TfLowering& b) {
  const DType dtype = b.attrs().Type("dtype").value_or(DType::kInvalid);
  const PartialShape shape = b.attrs().Shape("shape").value_or(PartialShape());
  return WithStage(InvalidArgument(tf_messages::PlaceholderNotFed(b.name(), dtype, shape),
                                   "; it is not among the inputs"),
                   Stage::kOptions);
}

Result<Values> LowerShape(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  Values out;
  for (size_t i = 0; i < b.inputs(); ++i) {
    ONCILLA_ASSIGN(const ValueId shape, b.Add(ShapeAttrs{.to = to}, {b.in(i)},
                                              i == 0 ? "" : "shape" + std::to_string(i)));
    out.push_back(shape);
  }
  return out;
}

Result<Values> LowerSize(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add(SizeAttrs{.to = to}, {b.in(0)}));
}

Result<Values> LowerRank(TfLowering& b) {
  return One(b.Add(RankAttrs{.to = DType::kI32}, {b.in(0)}));
}

Result<Values> LowerGatherV2(TfLowering& b) {
  ONCILLA_ASSIGN(int64_t batch_dims, b.attrs().Int("batch_dims"));
  if (batch_dims < 0) {
    ONCILLA_ASSIGN(const int rank, b.Rank(1, "the indices"));
    batch_dims += rank;
    if (batch_dims < 0) return InvalidArgument("batch_dims is ", batch_dims - rank);
  }
  if (IsComputed(b, 2)) return GatherAlong(b, b.in(0), b.in(1), b.in(2), batch_dims);
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(2, "the axis"));
  return One(b.Add(GatherAttrs{.axis = axis, .batch_dims = batch_dims, .negative_indices = false},
                   {b.in(0), b.in(1)}));
}

// Gathers along the first axis; ResourceGather may have batch axes before it.
Result<Values> LowerGather(TfLowering& b) {
  int64_t batch_dims = 0;
  if (b.op() == "ResourceGather") {
    ONCILLA_ASSIGN(batch_dims, b.attrs().Int("batch_dims"));
  }
  return One(
      b.Add(GatherAttrs{.axis = batch_dims, .batch_dims = batch_dims, .negative_indices = false},
            {b.in(0), b.in(1)}));
}

Result<Values> LowerOneHot(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  return LowerOneHotRows(b, axis);
}

Result<Values> LowerWhere(TfLowering& b) { return LowerPlaces(b); }

// Checks the attribute that says what an index out of range does; by default the run fails.
Status CheckBadIndices(const TfLowering& b) {
  if (!b.attrs().Has("bad_indices_policy")) return Status();
  ONCILLA_ASSIGN(const std::string policy, b.attrs().String("bad_indices_policy"));
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") return Status();
  return Unsupported("bad_indices_policy ", policy);
}

Result<Values> LowerScatterNd(TfLowering& b) {
  ONCILLA_TRY(CheckBadIndices(b));
  const bool truths = b.in_fact(1).dtype == DType::kBool;  // true if any update of an element is
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(truths ? DType::kI32 : b.in_fact(1).dtype, 0));
  ONCILLA_ASSIGN(const ValueId zeros, b.Add("Fill", {}, {b.in(2), zero}, "zeros"));
  ValueId updates = b.in(1);
  if (truths) {
    ONCILLA_ASSIGN(updates, b.Cast(updates, DType::kI32, "updates"));
  }
  ONCILLA_ASSIGN(const ValueId sums,
                 b.Add(ScatterNDAttrs{.reduction = "add", .negative_indices = false},
                       {zeros, b.in(0), updates}, truths ? "sums" : ""));
  if (!truths) return Values{sums};
  return One(b.Add(CastAttrs{DType::kBool}, {sums}));
}

Result<Values> LowerGatherNd(TfLowering& b) {
  if (b.op() == "GatherNd") ONCILLA_TRY(CheckBadIndices(b));
  return One(b.Add(GatherNDAttrs{.negative_indices = false}, {b.in(0), b.in(1)}));
}

template <const char* kReduction>
Result<Values> LowerTensorScatter(TfLowering& b) {
  ONCILLA_TRY(CheckBadIndices(b));
  return One(b.Add(ScatterNDAttrs{.reduction = std::string(kReduction), .negative_indices = false},
                   {b.in(0), b.in(1), b.in(2)}));
}

Result<Values> LowerTensorScatterSub(TfLowering& b) {
  ONCILLA_TRY(CheckBadIndices(b));
  ONCILLA_ASSIGN(const ValueId updates, b.Add("Neg", {}, {b.in(2)}, "updates"));
  return One(b.Add(ScatterNDAttrs{.reduction = "add", .negative_indices = false},
                   {b.in(0), b.in(1), updates}));
}

constexpr char kNone[] = "none", kAdd[] = "add", kMax[] = "max", kMin[] = "min";

constexpr TfOpRow kRows[] = {
    {"Const", 0, "", LowerConst},
    {"Fill", 2, "Fill"},
    {"Gather", 2, "", LowerGather},
    {"GatherNd", 2, "", LowerGatherNd},
    {"GatherV2", 3, "", LowerGatherV2},
    {"OneHot", 4, "", LowerOneHot},
    {"Placeholder", 0, "", LowerPlaceholder},
    {"PlaceholderV2", 0, "", LowerPlaceholder},
    {"Range", 3, "Range"},
    {"Rank", 1, "", LowerRank},
    {"ResourceGather", 2, "", LowerGather},
    {"ResourceGatherNd", 2, "", LowerGatherNd},
    {"ScatterNd", 3, "", LowerScatterNd},
    {"ScatterNdNonAliasingAdd", 3, "", LowerTensorScatter<kAdd>},
    {"Shape", 1, "", LowerShape},
    {"ShapeN", 1, "", LowerShape},
    {"Size", 1, "", LowerSize},
    {"TensorScatterAdd", 3, "", LowerTensorScatter<kAdd>},
    {"TensorScatterMax", 3, "", LowerTensorScatter<kMax>},
    {"TensorScatterMin", 3, "", LowerTensorScatter<kMin>},
    {"TensorScatterSub", 3, "", LowerTensorScatterSub},
    {"TensorScatterUpdate", 3, "", LowerTensorScatter<kNone>},
    {"VariableShape", 1, "", LowerShape},
    {"Where", 1, "", LowerWhere},
};

}  // namespace

std::span<const TfOpRow> TfIndexingRows() { return kRows; }

}  // namespace oncilla
