// Ops on lists: inference and rows.
#include "engine/ops/array/list.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireList(const Fact& fact) {
  if (fact.kind == ValueKind::kList) return Status();
  return InvalidArgument("input 0 must be a list, not ", fact);
}

Status RequireElement(const Fact& list, const Fact& x) {
  if (x.kind == ValueKind::kTensor && x.dtype == list.dtype) return Status();
  return InvalidArgument("a ", list, " cannot hold a ", x);
}

// The shape of one element, from the list and from an input that may state it.
Result<PartialShape> ElementShape(std::span<const Fact> in, size_t shape_input) {
  PartialShape shape = in[0].shape;
  if (in.size() <= shape_input || in[shape_input].absent()) return shape;
  ONCILLA_TRY(RequireInteger(in[shape_input], "shape"));
  // A scalar -1 means that even the rank is unknown.
  if (!in[shape_input].shape.ranked() || in[shape_input].shape.rank() == 0) return shape;
  const auto sizes = KnownInts(in[shape_input]);
  if (!sizes.has_value()) return shape;
  std::vector<Dim> dims = *sizes;
  for (Dim& dim : dims) {
    if (!dim.known()) dim = Dim();
  }
  return MergeShapes(shape, PartialShape(std::move(dims)));
}

// The shape [n, element..].
PartialShape Stacked(const PartialShape& element, const Dim& n) {
  if (!element.ranked()) return PartialShape();
  std::vector<Dim> dims = {n};
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  return PartialShape(std::move(dims));
}

PartialShape Row(const PartialShape& shape) {
  if (!shape.ranked() || shape.rank() == 0) return PartialShape();
  return PartialShape(std::vector<Dim>(shape.dims().begin() + 1, shape.dims().end()));
}

Result<Facts> InferListReserve(const ListReserveAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "length"));
  ONCILLA_ASSIGN(Fact list, ParseFact(attrs.type));
  if (list.kind != ValueKind::kList) return InvalidArgument("'", attrs.type, "' is not a list");
  return Facts{std::move(list)};
}

Result<Facts> InferListFromTensor(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].shape.ranked() && in[0].shape.rank() == 0) {
    return InvalidArgument("x must have an axis to split along, not shape ", in[0].shape);
  }
  return Facts{Fact::List(in[0].dtype, Row(in[0].shape))};
}

Result<Facts> InferListGet(const ListGetAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireInteger(in[1], "index"));
  ONCILLA_ASSIGN(PartialShape shape, ElementShape(in, 2));
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferListSet(const ListSetAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireInteger(in[1], "index"));
  ONCILLA_TRY(RequireElement(in[0], in[2]));
  return Facts{in[0]};
}

Result<Facts> InferListPush(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireElement(in[0], in[1]));
  return Facts{in[0]};
}

Result<Facts> InferListPop(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_ASSIGN(PartialShape shape, ElementShape(in, 1));
  return Facts{in[0], Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferListLength(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  return Facts{Fact::Of(DType::kI32, PartialShape::OfRank(0))};
}

Result<Facts> InferListStack(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_ASSIGN(const PartialShape shape, ElementShape(in, 1));
  return Facts{Fact::Of(in[0].dtype, Stacked(shape, Dim()))};
}

Result<Facts> InferListGather(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  ONCILLA_TRY(RequireRank(in[1], 1, "indices"));
  ONCILLA_ASSIGN(const PartialShape shape, ElementShape(in, 2));
  return Facts{
      Fact::Of(in[0].dtype, Stacked(shape, in[1].shape.ranked() ? in[1].shape[0] : Dim()))};
}

Result<Facts> InferListConcat(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_ASSIGN(const PartialShape shape, ElementShape(in, 1));
  if (shape.ranked() && shape.rank() == 0) {
    return InvalidArgument("scalars cannot be joined along an axis");
  }
  const PartialShape joined = shape.ranked() ? Stacked(Row(shape), Dim()) : PartialShape();
  return Facts{Fact::Of(in[0].dtype, joined), Fact::Of(DType::kI64, PartialShape::OfRank(1))};
}

Result<Facts> InferListSplit(const ListSplitAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "lengths"));
  ONCILLA_TRY(RequireRank(in[1], 1, "lengths"));
  PartialShape part = in[0].shape;
  if (!part.ranked()) return Facts{Fact::List(in[0].dtype, part)};
  if (part.rank() == 0) {
    return InvalidArgument("x must have an axis to split along, not shape ", in[0].shape);
  }
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, part.rank()));
  part[axis] = Dim();
  return Facts{Fact::List(in[0].dtype, std::move(part))};
}

// Checks a position in a list, which may be absent.
Status RequirePosition(std::span<const Fact> in, size_t at) {
  if (in.size() <= at || in[at].absent()) return Status();
  return RequireInteger(in[at], "position");
}

Result<Facts> InferListInsert(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireElement(in[0], in[1]));
  ONCILLA_TRY(RequirePosition(in, 2));
  return Facts{Fact::List(in[0].dtype, CommonShape(in[0].shape, in[1].shape))};
}

Result<Facts> InferListErase(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequirePosition(in, 1));
  return Facts{in[0]};
}

// The shape that elements of this shape have when they are joined.
Result<PartialShape> Joined(const ListJoinAttrs& attrs, const PartialShape& element) {
  if (!element.ranked()) return PartialShape();
  if (element.rank() == 0 && !attrs.stack) {
    return InvalidArgument("scalars cannot be joined along an axis");
  }
  if (attrs.stack && element.rank() == kMaxRank) {
    return Unsupported("elements of rank ", element.rank(), " stacked");
  }
  const int rank = element.rank() + (attrs.stack ? 1 : 0);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, rank));
  std::vector<Dim> dims(element.dims().begin(), element.dims().end());
  if (attrs.stack) {
    dims.insert(dims.begin() + axis, Dim());
  } else {
    dims[static_cast<size_t>(axis)] = Dim();
  }
  return PartialShape(std::move(dims));
}

Result<Facts> InferListJoin(const ListJoinAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  if (in.size() > 1 && !in[1].absent()) ONCILLA_TRY(RequireInteger(in[1], "shape"));
  ONCILLA_ASSIGN(PartialShape joined, Joined(attrs, in[0].shape));
  return Facts{Fact::Of(in[0].dtype, std::move(joined))};
}

Result<Facts> InferListScatter(const ListScatterAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  ONCILLA_TRY(RequireRank(in[1], 1, "indices"));
  ONCILLA_TRY(RequireElement(in[0], in[2]));
  return Facts{Fact::List(in[0].dtype, CommonShape(in[0].shape, Row(in[2].shape)))};
}

Result<Facts> InferListResize(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  ONCILLA_TRY(RequireInteger(in[1], "length"));
  return Facts{in[0]};
}

// The result holds the elements of the first list, followed by those of the second.
Result<Facts> InferListExtend(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireList(in[0]));
  if (in[1].kind != ValueKind::kList || in[1].dtype != in[0].dtype) {
    return InvalidArgument("a ", in[0], " cannot be extended by a ", in[1]);
  }
  return Facts{Fact::List(in[0].dtype, CommonShape(in[0].shape, in[1].shape))};
}

constexpr OpTraits Host(int min_inputs, int max_inputs) {
  OpTraits traits;
  traits.inputs = {min_inputs, max_inputs};
  traits.host_only = true;
  return traits;
}

constexpr OpDef kListOps[] = {
    Op<InferListConcat>("ListConcat", Host(1, 2)),
    Op<InferListErase>("ListErase", Host(1, 2)),
    Op<InferListExtend>("ListExtend", Host(2, 2)),
    Op<InferListFromTensor>("ListFromTensor", Host(1, 1)),
    Op<InferListGather>("ListGather", Host(2, 3)),
    Op<InferListGet>("ListGet", Host(2, 3)),
    Op<InferListInsert>("ListInsert", Host(2, 3)),
    Op<InferListJoin>("ListJoin", Host(1, 2)),
    Op<InferListLength>("ListLength", Host(1, 1)),
    Op<InferListPop>("ListPop", Host(1, 2)),
    Op<InferListPush>("ListPush", Host(2, 2)),
    Op<InferListReserve>("ListReserve", Host(1, 1)),
    Op<InferListResize>("ListResize", Host(2, 2)),
    Op<InferListScatter>("ListScatter", Host(3, 3)),
    Op<InferListSet>("ListSet", Host(3, 3)),
    Op<InferListSplit>("ListSplit", Host(2, 2)),
    Op<InferListStack>("ListStack", Host(1, 2)),
};

}  // namespace

std::span<const OpDef> ListOps() { return kListOps; }

}  // namespace oncilla
