// ONNX's ops on sequences and optional values, which are lists here (../optional.h).
#include <algorithm>

#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/tensor.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status NeedSequence(const OnnxLowering& b) {
  if (b.in_kind(0) == OnnxKind::kSequence) return {};
  return InvalidArgument("input 0 must be a sequence, not ", b.in_fact(0));
}

Status NeedTensor(const OnnxLowering& b, size_t input) {
  if (!b.has(input) || b.in_kind(input) == OnnxKind::kTensor) return {};
  return InvalidArgument("input ", input, " must be a tensor, not ", b.in_fact(input));
}

Result<Values> LowerIdentity(OnnxLowering& b) {
  if (b.in_kind(0) != OnnxKind::kTensor) return Values{b.in(0)};
  return One(b.Add("Identity", {}, {b.in(0)}));
}

Result<Values> LowerEmpty(OnnxLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.Type("dtype", DType::kF32));
  return One(b.EmptyList(Fact::List(dtype, PartialShape()), ""));
}

Result<Values> LowerConstruct(OnnxLowering& b) {
  Fact element = b.in_fact(0);
  for (size_t i = 0; i < b.inputs(); ++i) {
    if (!b.has(i)) return DataLoss("input ", i, " is missing");
    ONCILLA_TRY(NeedTensor(b, i));
    element.shape = CommonShape(element.shape, b.in_fact(i).shape);
  }
  ONCILLA_ASSIGN(ValueId list, b.EmptyList(element, "empty"));
  for (size_t i = 0; i < b.inputs(); ++i) {
    const bool last = i + 1 == b.inputs();
    ONCILLA_ASSIGN(list, b.Add("ListPush", {}, {list, b.in(i)}, last ? "" : StrCat("push", i)));
  }
  return Values{list};
}

Result<Values> LowerAt(OnnxLowering& b) {
  ONCILLA_TRY(NeedSequence(b));
  return One(b.Add(ListGetAttrs{.zeros = false, .from_end = true}, {b.in(0), b.in(1)}));
}

Result<Values> LowerInsert(OnnxLowering& b) {
  ONCILLA_TRY(NeedSequence(b));
  ONCILLA_TRY(NeedTensor(b, 1));
  return One(b.Add("ListInsert", {}, b.all_inputs()));
}

Result<Values> LowerErase(OnnxLowering& b) {
  ONCILLA_TRY(NeedSequence(b));
  return One(b.Add("ListErase", {}, b.all_inputs()));
}

Result<Values> LowerLength(OnnxLowering& b) {
  ONCILLA_TRY(NeedSequence(b));
  ONCILLA_ASSIGN(const ValueId length, b.Add("ListLength", {}, {b.in(0)}, "length"));
  return One(b.Cast(length, DType::kI64, ""));
}

Result<Values> LowerConcatFrom(OnnxLowering& b) {
  ONCILLA_TRY(NeedSequence(b));
  ListJoinAttrs attrs;
  ONCILLA_ASSIGN(attrs.axis, b.NeedInt("axis"));
  ONCILLA_ASSIGN(attrs.stack, b.Flag("new_axis", false));
  return One(b.Add(attrs, {b.in(0)}));
}

// Splits x along `axis` into a list with one element per index.
Result<Values> Apart(OnnxLowering& b, int rank, int axis) {
  std::vector<int64_t> perm = {axis};
  for (int i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  ONCILLA_ASSIGN(const ValueId moved, b.Transpose(b.in(0), std::move(perm), "axis_first"));
  return One(b.Add("ListFromTensor", {}, {moved}));
}

// The lengths of parts of equal size; the last part may be shorter.
Result<ValueId> EqualLengths(OnnxLowering& b, ValueId size, ValueId part) {
  ONCILLA_ASSIGN(const ValueId whole, b.ToScalar(size, "whole"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId starts, b.Add("Range", {}, {zero, whole, part}, "starts"));
  ONCILLA_ASSIGN(const ValueId left, b.Add("Sub", {}, {whole, starts}, "left"));
  return b.Add("Min", {}, {left, part}, "lengths");
}

Result<Values> LowerSplitTo(OnnxLowering& b) {
  ONCILLA_TRY(NeedTensor(b, 0));
  ONCILLA_ASSIGN(const int64_t given, b.Int("axis", 0));
  ONCILLA_ASSIGN(const bool keep, b.Flag("keepdims", true));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(given, rank));
  if (!b.has(1) && !keep) return Apart(b, rank, axis);
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(b.in(0), axis, axis + 1, "size"));
  ValueId lengths = kNoValue;
  if (!b.has(1)) {
    ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
    ONCILLA_ASSIGN(lengths, EqualLengths(b, size, one));
  } else {
    ONCILLA_TRY(NeedTensor(b, 1));
    if (!b.in_fact(1).shape.ranked()) return Unsupported("the rank of its split is not known");
    ONCILLA_ASSIGN(lengths, b.Cast(b.in(1), DType::kI64, "split"));
    if (b.in_fact(1).shape.rank() == 0) {
      ONCILLA_ASSIGN(lengths, EqualLengths(b, size, lengths));
    }
  }
  return One(b.Add(ListSplitAttrs{.axis = axis}, {b.in(0), lengths}));
}

Result<Values> LowerOptional(OnnxLowering& b) {
  if (b.has(0)) {
    b.Ignore("type");
    return One(b.Wrap(b.in(0), ""));
  }
  ONCILLA_ASSIGN(const OnnxType type, b.TypeAttr("type"));
  const DType dtype = DTypeFromOnnx(type.element_type);
  const bool sequence = type.kind == OnnxKind::kSequence;
  if ((!sequence && type.kind != OnnxKind::kTensor) || dtype == DType::kInvalid) {
    return Unsupported("of this type");
  }
  ONCILLA_ASSIGN(const ValueId none, b.EmptyList(Fact::List(dtype, type.shape), ""));
  return Values{b.Mark(none, sequence ? OnnxKind::kOptionalSequence : OnnxKind::kOptional)};
}

bool IsOptional(OnnxKind kind) {
  return kind == OnnxKind::kOptional || kind == OnnxKind::kOptionalSequence;
}

Result<Values> LowerHasElement(OnnxLowering& b) {
  if (!b.has(0) || !IsOptional(b.in_kind(0))) {
    return One(b.Scalar(DType::kBool, b.has(0) ? 1 : 0));
  }
  ONCILLA_ASSIGN(const ValueId length, b.Add("ListLength", {}, {b.in(0)}, "length"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI32, 0));
  return One(b.Add("Greater", {}, {length, zero}));
}

Result<Values> LowerGetElement(OnnxLowering& b) {
  if (!IsOptional(b.in_kind(0))) return Values{b.in(0)};
  return One(b.Unwrap(b.in(0), ""));
}

constexpr OnnxOpRow kRows[] = {
    {"ConcatFromSequence", 11, kNewestOnnxOpset, 1, "", LowerConcatFrom, true},
    {"Identity", 1, kNewestOnnxOpset, 1, "", LowerIdentity, true},
    {"Optional", 15, kNewestOnnxOpset, 0, "", LowerOptional, true},
    {"OptionalGetElement", 15, kNewestOnnxOpset, 1, "", LowerGetElement, true},
    {"OptionalHasElement", 15, kNewestOnnxOpset, 0, "", LowerHasElement, true},
    {"SequenceAt", 11, kNewestOnnxOpset, 2, "", LowerAt, true},
    {"SequenceConstruct", 11, kNewestOnnxOpset, 1, "", LowerConstruct, true},
    {"SequenceEmpty", 11, kNewestOnnxOpset, 0, "", LowerEmpty, true},
    {"SequenceErase", 11, kNewestOnnxOpset, 1, "", LowerErase, true},
    {"SequenceInsert", 11, kNewestOnnxOpset, 2, "", LowerInsert, true},
    {"SequenceLength", 11, kNewestOnnxOpset, 1, "", LowerLength, true},
    {"SplitToSequence", 11, kNewestOnnxOpset, 1, "", LowerSplitTo, true},
};

}  // namespace

std::span<const OnnxOpRow> OnnxSequenceRows() { return kRows; }

}  // namespace oncilla
