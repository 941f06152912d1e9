// TensorFlow's lists of tensors: TensorList*, a variant that is passed from op to op, and
// TensorArray*, a resource. Every op on an array also takes and returns a number, "flow", which
// orders them. Here the flow is the list itself, and the handle has no meaning. Arrays of the first
// two versions are created without a flow; ../graph/raise_arrays.cc adds it.
#include "engine/ops/array/list.h"

#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

std::string ListType(DType dtype, const PartialShape& element) {
  return StrCat(Fact::List(dtype, element));
}

// The shape of elements that an input states, as far as it is known at import.
PartialShape KnownElement(const TfLowering& b, size_t input) {
  if (input >= b.inputs() || !AllIntsKnown(b.in_fact(input)) || !b.in_fact(input).shape.ranked() ||
      b.in_fact(input).shape.rank() == 0) {
    return PartialShape();
  }
  const auto sizes = NeedInts(b.in_fact(input), "element_shape");
  if (!sizes.ok() || sizes->size() > kMaxRank) return PartialShape();
  std::vector<Dim> dims;
  for (int64_t size : *sizes) dims.push_back(size < 0 ? Dim() : Dim(size));
  return PartialShape(std::move(dims));
}

Result<ValueId> Reserve(TfLowering& b, DType dtype, const PartialShape& element, ValueId length,
                        std::string_view role) {
  return b.Add("ListReserve", WriteAttrs(ListReserveAttrs{ListType(dtype, element)}), {length},
               role);
}

Result<Values> LowerReserve(TfLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.attrs().Type("element_dtype"));
  const bool empty = b.op() == "EmptyTensorList";
  ValueId length = empty ? kNoValue : b.in(1);
  if (empty) {
    ONCILLA_ASSIGN(length, b.Scalar(DType::kI32, 0));
  }
  return One(Reserve(b, dtype, KnownElement(b, 0), length, ""));
}

Result<Values> LowerSet(TfLowering& b) {
  ONCILLA_ASSIGN(const bool grow, b.attrs().Bool("resize_if_index_out_of_bounds"));
  return One(b.Add("ListSet", WriteAttrs(ListSetAttrs{grow}), b.all_inputs()));
}

Result<Values> LowerPop(TfLowering& b) { return b.AddAll("ListPop", {}, b.all_inputs()); }

Result<Values> LowerStack(TfLowering& b) { return One(b.Add("ListStack", {}, {b.in(0), b.in(1)})); }

Result<Values> LowerConcat(TfLowering& b) {
  Values inputs = {b.in(0)};
  if (b.inputs() > 1) inputs.push_back(b.in(1));
  return b.AddAll("ListConcat", {}, std::move(inputs));
}

Result<Values> LowerFromTensor(TfLowering& b) {
  return One(b.Add("ListFromTensor", {}, {b.in(0)}));
}

Result<Values> LowerSplit(TfLowering& b) { return One(b.Add("ListSplit", {}, {b.in(0), b.in(2)})); }

// Scatters into a new list, whose length is one more than the largest index, or num_elements.
Result<Values> LowerScatter(TfLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.attrs().Type("element_dtype"));
  ONCILLA_ASSIGN(ValueId length, b.Scalar(DType::kI32, 0));
  // With a length of -1, the indices determine the length.
  if (b.inputs() > 3) {
    ONCILLA_ASSIGN(length, b.Add("Max", {}, {b.in(3), length}, "length"));
  }
  ONCILLA_ASSIGN(const ValueId list, Reserve(b, dtype, KnownElement(b, 2), length, "empty"));
  return One(b.Add("ListScatter", {}, {list, b.in(1), b.in(0)}));
}

Result<Values> LowerScatterInto(TfLowering& b) {
  return One(b.Add("ListScatter", {}, {b.in(0), b.in(2), b.in(1)}));
}

Result<Values> LowerElementShape(TfLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.attrs().Type("shape_type"));
  const PartialShape& shape = b.in_fact(0).shape;
  if (!shape.known()) return Unsupported("the shape of the elements is not known");
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape.dims()) sizes.push_back(dim.size);
  return One(b.Add(CastAttrs{dtype}, {b.Ints(std::move(sizes))}));
}

// Results: {handle, flow}. The handle is a number that nothing reads.
Result<Values> LowerArray(TfLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.attrs().Type("dtype"));
  ONCILLA_ASSIGN(const PartialShape element, b.attrs().Shape("element_shape"));
  ONCILLA_ASSIGN(const ValueId handle, b.Scalar(DType::kI32, 0));
  ONCILLA_ASSIGN(const ValueId list, Reserve(b, dtype, element, b.in(0), ""));
  return Values{handle, list};
}

// The list that comes in as the flow, which is the last input.
Result<ValueId> Flow(const TfLowering& b) {
  const size_t last = b.inputs() - 1;
  if (b.in(last) != kNoValue && b.in_fact(last).kind == ValueKind::kList) return b.in(last);
  return Unsupported("its flow does not begin with its array");
}

Result<Values> LowerArrayWrite(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  return One(b.Add("ListSet", WriteAttrs(ListSetAttrs{true}), {flow, b.in(1), b.in(2)}));
}

Result<Values> LowerArrayRead(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  return One(b.Add("ListGet", WriteAttrs(ListGetAttrs{false}), {flow, b.in(1)}));
}

// Adds the attribute element_shape as an input, if it states anything.
Result<Values> WithElementShape(TfLowering& b, Values inputs, std::string_view attr) {
  ONCILLA_ASSIGN(const PartialShape element, b.attrs().Shape(attr));
  if (!element.ranked()) return inputs;
  std::vector<int64_t> sizes;
  if (attr == "element_shape_except0") sizes.push_back(-1);
  for (const Dim& dim : element.dims()) sizes.push_back(dim.size);
  inputs.push_back(b.Ints(std::move(sizes)));
  return inputs;
}

Result<Values> LowerArrayGather(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  ONCILLA_ASSIGN(Values inputs, WithElementShape(b, {flow, b.in(1)}, "element_shape"));
  return One(b.Add("ListGather", {}, std::move(inputs)));
}

Result<Values> LowerArrayConcat(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  ONCILLA_ASSIGN(Values inputs, WithElementShape(b, {flow}, "element_shape_except0"));
  return b.AddAll("ListConcat", {}, std::move(inputs));
}

Result<Values> LowerArrayScatter(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  return One(b.Add("ListScatter", {}, {flow, b.in(1), b.in(2)}));
}

Result<Values> LowerArraySplit(TfLowering& b) {
  return One(b.Add("ListSplit", {}, {b.in(1), b.in(2)}));
}

Result<Values> LowerArrayPack(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  ONCILLA_ASSIGN(Values inputs, WithElementShape(b, {flow}, "element_shape"));
  return One(b.Add("ListStack", {}, std::move(inputs)));
}

Result<Values> LowerArrayUnpack(TfLowering& b) {
  return One(b.Add("ListFromTensor", {}, {b.in(1)}));
}

Result<Values> LowerArraySize(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId flow, Flow(b));
  return One(b.Add("ListLength", {}, {flow}));
}

Result<Values> LowerNothing(TfLowering&) { return Values{}; }

constexpr TfOpRow kRows[] = {
    {"EmptyTensorList", 1, "", LowerReserve},
    {"TensorArray", 1, "", LowerArray},
    {"TensorArrayClose", 1, "", LowerNothing, true},
    {"TensorArrayCloseV2", 1, "", LowerNothing, true},
    {"TensorArrayCloseV3", 1, "", LowerNothing, true},
    {"TensorArrayConcat", 2, "", LowerArrayConcat, true},
    {"TensorArrayConcatV2", 2, "", LowerArrayConcat, true},
    {"TensorArrayConcatV3", 2, "", LowerArrayConcat, true},
    {"TensorArrayGather", 3, "", LowerArrayGather, true},
    {"TensorArrayGatherV2", 3, "", LowerArrayGather, true},
    {"TensorArrayGatherV3", 3, "", LowerArrayGather, true},
    {"TensorArrayPack", 2, "", LowerArrayPack, true},
    {"TensorArrayRead", 3, "", LowerArrayRead, true},
    {"TensorArrayReadV2", 3, "", LowerArrayRead, true},
    {"TensorArrayReadV3", 3, "", LowerArrayRead, true},
    {"TensorArrayScatter", 4, "", LowerArrayScatter, true},
    {"TensorArrayScatterV2", 4, "", LowerArrayScatter, true},
    {"TensorArrayScatterV3", 4, "", LowerArrayScatter, true},
    {"TensorArraySize", 2, "", LowerArraySize, true},
    {"TensorArraySizeV2", 2, "", LowerArraySize, true},
    {"TensorArraySizeV3", 2, "", LowerArraySize, true},
    {"TensorArraySplit", 4, "", LowerArraySplit, true},
    {"TensorArraySplitV2", 4, "", LowerArraySplit, true},
    {"TensorArraySplitV3", 4, "", LowerArraySplit, true},
    {"TensorArrayUnpack", 3, "", LowerArrayUnpack, true},
    {"TensorArrayV2", 1, "", LowerArray},
    {"TensorArrayV3", 1, "", LowerArray},
    {"TensorArrayWrite", 4, "", LowerArrayWrite, true},
    {"TensorArrayWriteV2", 4, "", LowerArrayWrite, true},
    {"TensorArrayWriteV3", 4, "", LowerArrayWrite, true},
    {"TensorListConcat", 1, "", LowerConcat},
    {"TensorListConcatLists", 2, "ListExtend"},
    {"TensorListConcatV2", 2, "", LowerConcat},
    {"TensorListElementShape", 1, "", LowerElementShape},
    {"TensorListFromTensor", 1, "", LowerFromTensor},
    {"TensorListGather", 3, "ListGather"},
    {"TensorListGetItem", 3, "ListGet"},
    {"TensorListLength", 1, "ListLength"},
    {"TensorListPopBack", 2, "", LowerPop},
    {"TensorListPushBack", 2, "ListPush"},
    {"TensorListReserve", 2, "", LowerReserve},
    {"TensorListResize", 2, "ListResize"},
    {"TensorListScatter", 3, "", LowerScatter},
    {"TensorListScatterIntoExistingList", 3, "", LowerScatterInto},
    {"TensorListScatterV2", 4, "", LowerScatter},
    {"TensorListSetItem", 3, "", LowerSet},
    {"TensorListSplit", 3, "", LowerSplit},
    {"TensorListStack", 2, "", LowerStack},
};

}  // namespace

std::span<const TfOpRow> TfListRows() { return kRows; }

}  // namespace oncilla
