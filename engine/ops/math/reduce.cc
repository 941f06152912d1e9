// Reductions, cumulations and selections along axes: inference and rows.
#include "engine/ops/math/reduce.h"

#include <algorithm>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

enum class Takes { kNumbers, kBools };

template <Takes takes>
Result<Facts> InferReduce(const ReduceAttrs& attrs, std::span<const Fact> in) {
  if (takes == Takes::kNumbers) ONCILLA_TRY(RequireNumber(in[0], "input"));
  if (takes == Takes::kBools && in[0].dtype != DType::kBool) {
    return InvalidArgument("input must be bool, not ", in[0].dtype);
  }
  const Fact* axes = in.size() > 1 && !in[1].absent() ? &in[1] : nullptr;
  if (axes != nullptr) ONCILLA_TRY(RequireInteger(*axes, "axes"));
  PartialShape out;
  if (in[0].shape.ranked()) {
    const int rank = in[0].shape.rank();
    if (axes != nullptr && !AllIntsKnown(*axes)) {
      const auto count = KnownInts(*axes);
      if (attrs.keep_dims) {
        out = PartialShape::OfRank(rank);
      } else if (count.has_value() && !count->empty() && static_cast<int>(count->size()) <= rank) {
        out = PartialShape::OfRank(rank - static_cast<int>(count->size()));
      }
    } else {
      ONCILLA_ASSIGN(const auto reduced, ReducedAxes(attrs, axes, rank));
      std::vector<Dim> dims;
      for (int i = 0; i < rank; ++i) {
        if (!std::binary_search(reduced.begin(), reduced.end(), i)) {
          dims.push_back(in[0].shape[i]);
        } else if (attrs.keep_dims) {
          dims.push_back(Dim(1));
        }
      }
      out = PartialShape(std::move(dims));
    }
  } else if (axes == nullptr && attrs.empty_axes_is_all && !attrs.keep_dims) {
    out = PartialShape(Shape());
  }
  return Facts{Fact::Of(in[0].dtype, std::move(out))};
}

Status RequireIndexType(DType to) {
  if (to == DType::kI64 || to == DType::kI32 || to == DType::kI16 || to == DType::kU16) {
    return Status();
  }
  return InvalidArgument("attribute 'to' must be i64, i32, i16 or u16, not ", to);
}

Result<Facts> InferArg(const ArgAttrs& attrs, std::span<const Fact> in) {
  if (in[0].dtype != DType::kBool) ONCILLA_TRY(RequireNumber(in[0], "input"));
  ONCILLA_TRY(RequireIndexType(attrs.to));
  if (!in[0].shape.ranked()) return Facts{Fact::Of(attrs.to, PartialShape())};
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, in[0].shape.rank()));
  std::vector<Dim> dims = in[0].shape.dims();
  if (dims[axis].size == 0)
    return InvalidArgument("axis ", axis, " has no elements to choose from");
  if (attrs.keep_dims) {
    dims[axis] = Dim(1);
  } else {
    dims.erase(dims.begin() + axis);
  }
  return Facts{Fact::Of(attrs.to, PartialShape(std::move(dims)))};
}

Status RequireOneElement(const Fact& fact, std::string_view what) {
  ONCILLA_TRY(RequireInteger(fact, what));
  const Dim count = fact.shape.elements();
  if (!count.known() || count.size == 1) return Status();
  return InvalidArgument(what, " must be one number, not shape ", fact.shape);
}

Result<Facts> InferCumulative(const CumulativeAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "input"));
  ONCILLA_TRY(RequireOneElement(in[1], "axis"));
  if (in[0].shape.ranked() && AllIntsKnown(in[1])) {
    ONCILLA_ASSIGN(const auto axis, NeedInts(in[1], "axis"));
    ONCILLA_TRY(NormalizeAxis(axis[0], in[0].shape.rank()).status());
  }
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferCumLogSumExp(const CumulativeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  return InferCumulative(attrs, in);
}

Result<Facts> InferTopK(const TopKAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "input"));
  ONCILLA_TRY(RequireIndexType(attrs.to));
  ONCILLA_TRY(RequireOneElement(in[1], "k"));
  PartialShape shape = in[0].shape;
  if (shape.ranked()) {
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
    const Dim size = shape[axis];
    shape[axis] = Dim();
    if (AllIntsKnown(in[1])) {
      ONCILLA_ASSIGN(const auto k, NeedInts(in[1], "k"));
      if (k[0] < 0 || (size.known() && k[0] > size.size)) {
        return InvalidArgument("k is ", k[0], " but axis ", axis, " has ", size, " elements");
      }
      shape[axis] = Dim(k[0]);
    }
  }
  return Facts{Fact::Of(in[0].dtype, shape), Fact::Of(attrs.to, shape)};
}

constexpr OpTraits Reduces(StorageRule storage) {
  return {.inputs = {1, 2},
          .plan_inputs = 0b10,
          .axes = AxesBy(AxisRule::kReduce, 1),
          .storage = storage,
          .work = Work::kPerInput};
}
constexpr auto kNumberReduce = &InferReduce<Takes::kNumbers>;
constexpr auto kBoolReduce = &InferReduce<Takes::kBools>;

constexpr OpDef kReduceOps[] = {
    Op<kNumberReduce>("ReduceSum", Reduces(StorageRule::kSums)),
    Op<kNumberReduce>("ReduceMean", Reduces(StorageRule::kCarries)),
    Op<kNumberReduce>("ReduceMax", Reduces(StorageRule::kCarries)),
    Op<kNumberReduce>("ReduceMin", Reduces(StorageRule::kCarries)),
    Op<kNumberReduce>("ReduceProd", Reduces(StorageRule::kGrows)),
    Op<kBoolReduce>("ReduceAll", Reduces(StorageRule::kUnknown)),
    Op<kBoolReduce>("ReduceAny", Reduces(StorageRule::kUnknown)),
    Op<kNumberReduce>("ReduceL1", Reduces(StorageRule::kSums)),
    Op<kNumberReduce>("ReduceL2", Reduces(StorageRule::kSums)),
    Op<kNumberReduce>("ReduceLogSum", Reduces(StorageRule::kSums)),
    Op<kNumberReduce>("ReduceLogSumExp", Reduces(StorageRule::kSums)),
    Op<kNumberReduce>("ReduceSumSquare", Reduces(StorageRule::kSums)),
    Op<InferArg>(
        "ArgMax",
        {.axes = AxesBy(AxisRule::kArg), .storage = StorageRule::kSteps, .work = Work::kPerInput}),
    Op<InferArg>(
        "ArgMin",
        {.axes = AxesBy(AxisRule::kArg), .storage = StorageRule::kSteps, .work = Work::kPerInput}),
    Op<InferCumulative>("CumSum", {.inputs = {2, 2},
                                   .plan_inputs = 0b10,
                                   .axes = AxesBy(AxisRule::kAxisInput, 1),
                                   .storage = StorageRule::kSums,
                                   .work = Work::kPerInput}),
    Op<InferCumulative>("CumProd", {.inputs = {2, 2},
                                    .plan_inputs = 0b10,
                                    .axes = AxesBy(AxisRule::kAxisInput, 1),
                                    .storage = StorageRule::kGrows,
                                    .work = Work::kPerInput}),
    Op<InferCumLogSumExp>("CumLogSumExp", {.inputs = {2, 2},
                                           .plan_inputs = 0b10,
                                           .axes = AxesBy(AxisRule::kAxisInput, 1),
                                           .storage = StorageRule::kSums,
                                           .work = Work::kPerInput}),
    Op<InferTopK>("TopK", {.inputs = {2, 2},
                           .plan_inputs = 0b10,
                           .axes = AlongAxis(-1),
                           .storage = StorageRule::kSteps,
                           .work = Work::kPerInput}),
};

}  // namespace

Result<std::vector<int>> ReducedAxes(const ReduceAttrs& attrs, const Fact* axes, int rank) {
  std::vector<int64_t> given;
  if (axes != nullptr) {
    ONCILLA_ASSIGN(given, NeedInts(*axes, "axes"));
  }
  if (given.empty() && attrs.empty_axes_is_all) {
    for (int i = 0; i < rank; ++i) given.push_back(i);
  }
  return NormalizeAxes(given, rank);
}

ReduceLoops MakeReduceLoops(const Shape& shape, std::span<const int> axes) {
  ReduceLoops loops;
  bool last_reduced = false, first = true;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    (reduced ? loops.count : loops.outputs) *= shape[i];
    if (shape[i] == 1) continue;
    auto& list = reduced ? loops.reduced : loops.kept;
    const int64_t stride = shape.Product(i + 1, shape.rank());
    if (!first && reduced == last_reduced) {
      list.back() = {list.back().size * shape[i], stride};
    } else {
      list.push_back({shape[i], stride});
    }
    last_reduced = reduced;
    first = false;
  }
  return loops;
}

std::span<const OpDef> ReduceOps() { return kReduceOps; }

}  // namespace oncilla
