// Ops along an axis that is computed at run time: the axis is moved to the front, or the shape is
// merged to three axes with this one in the middle.
#include "engine/import/tf/computed_axis.h"

#include <limits>

#include "engine/import/tf/ops/formula.h"

namespace oncilla {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// An axis of x as a number in [0, rank), with values derived from it.
class Axis {
 public:
  Axis(TfFormula& f, ValueId x, ValueId axis) : f_(f) {
    zero_ = f.Number(DType::kI64, 0);
    one_ = f.Number(DType::kI64, 1);
    rank_ = f(RankAttrs{.to = DType::kI64}, {x});
    const ValueId places = Places(zero_, rank_);
    const ValueId scalar = f("Reshape", {axis, f.Ints({})});
    number_ = f(GatherAttrs{.axis = 0}, {places, scalar});
    next_ = f("Add", {number_, one_});
  }

  ValueId number() const { return number_; }
  ValueId next() const { return next_; }
  // Converts a number to a vector of one element.
  ValueId List(ValueId number) { return f_("Reshape", {number, f_.Ints({1})}); }
  ValueId Places(ValueId from, ValueId to) { return f_("Range", {from, to, one_}); }
  ValueId Join(Values lists) { return f_(ConcatAttrs{.axis = 0}, std::move(lists)); }

  // The permutation that moves the axis to the front; Back() is the inverse permutation.
  ValueId ToFront() { return Join({List(number_), Places(zero_, number_), Places(next_, rank_)}); }
  ValueId Back() { return Join({Places(one_, next_), f_.Ints({0}), Places(next_, rank_)}); }
  // The axis number, checked at run time to be in [least, rank).
  ValueId AtLeast(int64_t least) {
    if (least == 0) return number_;
    const ValueId first = f_.Number(DType::kI64, static_cast<double>(least));
    const ValueId behind = f_("Sub", {number_, first});
    return f_(GatherAttrs{.axis = 0, .negative_indices = false}, {Places(first, rank_), behind});
  }

 private:
  TfFormula& f_;
  ValueId zero_ = kNoValue, one_ = kNoValue, rank_ = kNoValue, number_ = kNoValue, next_ = kNoValue;
};

// The sizes of x before the axis, on it and after it.
struct Around {
  ValueId shape, before, size, behind;
};
Around SizesAround(TfFormula& f, Axis& axis, ValueId x) {
  const ValueId shape = f("Shape", {x});
  return {shape, f("Slice", {shape, f.Ints({0}), axis.List(axis.number())}),
          f(GatherAttrs{.axis = 0}, {shape, axis.List(axis.number())}),
          f("Slice", {shape, axis.List(axis.next()), f.Ints({kToTheEnd})})};
}

// The product of sizes, as a vector of one element.
ValueId Product(TfFormula& f, ValueId sizes) {
  return f("ReduceProd", ReduceAttrs{.keep_dims = true, .empty_axes_is_all = false},
           {sizes, f.Ints({0})});
}

}  // namespace

Result<Values> ConcatAlong(TfLowering& b, const Values& parts, ValueId axis) {
  if (parts.empty()) return DataLoss("has no parts to join");
  TfFormula f(b);
  Axis at(f, parts[0], axis);
  const ValueId perm = at.ToFront();
  Values fronts;
  for (const ValueId part : parts) fronts.push_back(f("Transpose", {part, perm}));
  const ValueId joined = f(ConcatAttrs{.axis = 0}, std::move(fronts));
  return f.Last("Transpose", {joined, at.Back()});
}

Result<ValueId> EqualSizes(TfLowering& b, ValueId x, int64_t axis, int64_t parts) {
  if (parts < 1) return InvalidArgument("there are ", parts, " parts");
  ONCILLA_ASSIGN(const ValueId whole,
                 b.Add(ShapeAttrs{.start = axis, .end = axis + 1}, {x}, "whole"));
  ONCILLA_ASSIGN(const ValueId size, b.Add("FloorDiv", {}, {whole, b.Ints({parts})}, "size"));
  return b.Add("Expand", {}, {size, b.Ints({parts})}, "sizes");
}

Result<Values> SplitAlong(TfLowering& b, ValueId x, ValueId sizes, ValueId axis, int64_t parts) {
  TfFormula f(b);
  Axis at(f, x, axis);
  const ValueId front = f("Transpose", {x, at.ToFront()});
  const ValueId back = at.Back();
  if (sizes == kNoValue) sizes = f.Keep(EqualSizes(b, front, 0, parts));
  ONCILLA_TRY(f.status());
  ONCILLA_ASSIGN(const Values pieces,
                 b.AddAll(SplitAttrs{.axis = 0, .parts = parts}, {front, sizes}, "pieces"));
  Values out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId piece, b.Add("Transpose", {}, {pieces[i], back},
                                              i == 0 ? "" : "piece" + std::to_string(i)));
    out.push_back(piece);
  }
  return out;
}

Result<Values> ArgAlong(TfLowering& b, std::string_view op, ArgAttrs attrs, ValueId x,
                        ValueId axis) {
  TfFormula f(b);
  Axis at(f, x, axis);
  const Around sizes = SizesAround(f, at, x);
  const ValueId three = at.Join({Product(f, sizes.before), sizes.size, Product(f, sizes.behind)});
  attrs.axis = 1;
  attrs.keep_dims = false;
  const ValueId found = f(op, attrs, {f("Reshape", {x, three})});
  return f.Last("Reshape", {found, at.Join({sizes.before, sizes.behind})});
}

Result<Values> GatherAlong(TfLowering& b, ValueId x, ValueId indices, ValueId axis,
                           int64_t batch_dims) {
  if (batch_dims >= kMaxRank) return InvalidArgument("batch_dims is ", batch_dims);
  TfFormula f(b);
  Axis at(f, x, axis);
  const Around sizes = SizesAround(f, at, x);
  const ValueId number = at.List(at.AtLeast(batch_dims));
  const ValueId batches = f("Slice", {sizes.shape, f.Ints({0}), f.Ints({batch_dims})});
  const ValueId middle = Product(f, f("Slice", {sizes.shape, f.Ints({batch_dims}), number}));
  const ValueId flat = at.Join({batches, middle, sizes.size, Product(f, sizes.behind)});
  const GatherAttrs attrs = {
      .axis = batch_dims + 1, .batch_dims = batch_dims, .negative_indices = false};
  const ValueId found = f(attrs, {f("Reshape", {x, flat}), indices});
  const ValueId own = f(ShapeAttrs{.start = batch_dims}, {indices});
  return f.Last("Reshape", {found, at.Join({sizes.before, own, sizes.behind})});
}

}  // namespace oncilla
