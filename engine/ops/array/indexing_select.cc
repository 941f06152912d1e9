// Ops that select elements by a mask, a triangle or a rule on the data: inference and rows.
#include "engine/ops/array/indexing.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferNonZero(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype == DType::kString) return InvalidArgument("strings cannot be compared with zero");
  const Dim rank = in[0].shape.ranked() ? Dim(in[0].shape.rank()) : Dim();
  return Facts{Fact::Of(DType::kI64, PartialShape({rank, Dim()}))};
}

Result<Facts> InferCompress(const CompressAttrs& attrs, std::span<const Fact> in) {
  if (in[1].dtype != DType::kBool) {
    return InvalidArgument("condition must be bool, not ", in[1].dtype);
  }
  ONCILLA_TRY(RequireRank(in[1], 1, "condition"));
  const PartialShape& from = in[0].shape;
  if (attrs.axis == kFlatAxis) return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(1))};
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, from.rank()));
  PartialShape shape = from;
  shape[axis] = Dim();
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferTrilu(const TriluAttrs&, std::span<const Fact> in) {
  if (in[0].shape.ranked() && in[0].shape.rank() < 2) {
    return InvalidArgument("x must have rank 2 or more, not shape ", in[0].shape);
  }
  if (Given(in, 1)) {
    ONCILLA_TRY(RequireInteger(in[1], "k"));
    const Dim count = in[1].shape.elements();
    if (count.known() && count.size != 1) return InvalidArgument("k has ", count.size, " elements");
  }
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferUnique(const UniqueAttrs& attrs, std::span<const Fact> in) {
  const PartialShape& from = in[0].shape;
  PartialShape shape = PartialShape::OfRank(1);
  Dim places = from.elements();
  if (attrs.axis != kFlatAxis) {
    shape = from;
    places = Dim();
    if (from.ranked()) {
      ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, from.rank()));
      places = from[axis];
      shape[axis] = Dim();
    }
  }
  const Fact count = Fact::Of(DType::kI64, PartialShape::OfRank(1));
  return Facts{Fact::Of(in[0].dtype, std::move(shape)), count,
               Fact::Of(DType::kI64, PartialShape({places})), count};
}

Result<Facts> InferEyeLike(const EyeLikeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireRank(in[0], 2, "x"));
  const DType dtype = attrs.to == DType::kInvalid ? in[0].dtype : attrs.to;
  if (dtype == DType::kString) return InvalidArgument("strings have no one");
  return Facts{Fact::Of(dtype, in[0].shape.ranked() ? in[0].shape : PartialShape::OfRank(2))};
}

Result<Facts> InferNonMaxSuppression(const NonMaxSuppressionAttrs&, std::span<const Fact> in) {
  static constexpr std::string_view kNames[] = {"boxes", "scores", "max", "iou", "score"};
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    if (i == 2) {
      ONCILLA_TRY(RequireInteger(in[i], kNames[i]));
    } else if (in[i].dtype != DType::kF32) {
      return InvalidArgument(kNames[i], " must be f32, not ", in[i].dtype);
    }
    if (i < 2) {
      ONCILLA_TRY(RequireRank(in[i], 3, kNames[i]));
    } else if (const Dim count = in[i].shape.elements(); count.known() && count.size != 1) {
      return InvalidArgument(kNames[i], " has ", count.size, " elements");
    }
  }
  const PartialShape &boxes = in[0].shape, &scores = in[1].shape;
  if (boxes.ranked() && boxes[2].known() && boxes[2].size != 4) {
    return InvalidArgument("a box is 4 numbers, not ", boxes[2].size);
  }
  if (boxes.ranked() && scores.ranked()) {
    auto differ = [](const Dim& a, const Dim& b) {
      return a.known() && b.known() && a.size != b.size;
    };
    if (differ(boxes[0], scores[0]) || differ(boxes[1], scores[2])) {
      return InvalidArgument("boxes ", boxes, " do not fit scores ", scores);
    }
  }
  return Facts{Fact::Of(DType::kI64, PartialShape({Dim(), Dim(3)}))};
}

constexpr OpDef kSelectOps[] = {
    Op<InferNonZero>("NonZero", {.inputs = {1, 1}, .data_dependent = true}),
    Op<InferCompress>("Compress", {.inputs = {2, 2}, .data_dependent = true}),
    Op<InferTrilu>("Trilu",
                   {.inputs = {1, 2}, .plan_inputs = 0b10, .axes = AxesBy(AxisRule::kLastTwo)}),
    Op<InferUnique>("Unique", {.inputs = {1, 1}, .data_dependent = true}),
    Op<InferEyeLike>("EyeLike", {}),
    Op<InferNonMaxSuppression>("NonMaxSuppression", {.inputs = {2, 5},
                                                     .plan_inputs = 0b100,
                                                     .data_dependent = true,
                                                     .storage = StorageRule::kCoordinates}),
};

}  // namespace

std::span<const OpDef> SelectOps() { return kSelectOps; }

}  // namespace oncilla
