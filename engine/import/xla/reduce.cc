// Reductions as those of one op, as ArgMax, or by halves.
#include "engine/import/xla/reduce.h"

#include <algorithm>

#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

// Reductions of one op; "" if there is none.
std::string_view ReductionOf(XlaFold fold, bool truth) {
  switch (fold) {
    case XlaFold::kAdd:
      return truth ? "ReduceAny" : "ReduceSum";
    case XlaFold::kMul:
      return truth ? "ReduceAll" : "ReduceProd";
    case XlaFold::kMax:
      return truth ? "ReduceAny" : "ReduceMax";
    case XlaFold::kMin:
      return truth ? "ReduceAll" : "ReduceMin";
    case XlaFold::kAnd:
      return truth ? "ReduceAll" : "";
    case XlaFold::kOr:
      return truth ? "ReduceAny" : "";
    default:
      return "";
  }
}

Result<Values> ReduceByFold(Lowering& b, XlaFold fold, ValueId x, ValueId init,
                            const std::vector<int64_t>& axes) {
  const std::string_view op = ReductionOf(fold, b.fact(x).dtype == DType::kBool);
  const bool neutral = IsNeutral(fold, b.fact(init));
  if (axes.empty() && neutral) return Values{x};
  ONCILLA_ASSIGN(const ValueId reduced, b.Add(op, ReduceAttrs{.empty_axes_is_all = false},
                                              {x, b.Ints(axes)}, neutral ? "" : "reduced"));
  if (neutral) return Values{reduced};
  return One(AddFold(b, fold, reduced, init, ""));
}

// The largest or smallest value along an axis with its index, if the indices are those of the axis.
Result<Values> ReduceByPick(Lowering& b, XlaPick pick, const Values& operands, int64_t axis) {
  const bool largest = pick == XlaPick::kLargest;
  const DType index = b.fact(operands[1]).dtype;
  const bool small = index == DType::kI32;
  ONCILLA_ASSIGN(const ValueId best,
                 b.Add(largest ? "ReduceMax" : "ReduceMin", ReduceAttrs{.empty_axes_is_all = false},
                       {operands[0], b.Ints({axis})}));
  const ArgAttrs attrs = {.axis = axis, .to = small ? DType::kI32 : DType::kI64};
  ONCILLA_ASSIGN(ValueId at, b.Add(largest ? "ArgMax" : "ArgMin", attrs, {operands[0]}, "index"));
  ONCILLA_ASSIGN(at, b.Cast(at, index, "index_type"));
  return Values{best, at};
}

Result<ValueId> Span(Lowering& b, ValueId x, int64_t axis, int64_t from, int64_t to,
                     const std::string& role) {
  return b.Add("Slice", AttrMap(), {x, b.Ints({from}), b.Ints({to}), b.Ints({axis})}, role);
}

// Folds one half of an axis with the other until one element is left.
Result<Values> ReduceByHalves(Lowering& b, Values operands, int64_t axis, const Graph& body) {
  const Dim dim = b.fact(operands[0]).shape[static_cast<int>(axis)];
  if (!dim.known()) return Unsupported("a reduction by a body of its own along an open axis");
  if (dim.size == 0) return Unsupported("a reduction by a body of its own of nothing");
  int64_t size = dim.size;
  for (int round = 0; size > 1; ++round) {
    const int64_t half = size / 2;
    Values arguments;
    for (const int64_t from : {int64_t{0}, half}) {
      for (size_t i = 0; i < operands.size(); ++i) {
        ONCILLA_ASSIGN(const ValueId part,
                       Span(b, operands[i], axis, from, from + half,
                            StrCat("half", axis, "_", round, "_", from, "_", i)));
        arguments.push_back(part);
      }
    }
    ONCILLA_ASSIGN(Values folded, ApplyBody(b, body, arguments, StrCat("fold", axis, "_", round)));
    for (size_t i = 0; size % 2 != 0 && i < operands.size(); ++i) {
      ONCILLA_ASSIGN(const ValueId rest, Span(b, operands[i], axis, size - 1, size,
                                              StrCat("rest", axis, "_", round, "_", i)));
      ONCILLA_ASSIGN(folded[i], b.Add(ConcatAttrs{.axis = axis}, {folded[i], rest},
                                      StrCat("with_rest", axis, "_", round, "_", i)));
    }
    operands = std::move(folded);
    size = half + size % 2;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    ONCILLA_ASSIGN(operands[i], b.Add("Squeeze", AttrMap(), {operands[i], b.Ints({axis})},
                                      StrCat("last", axis, "_", i)));
  }
  return operands;
}

}  // namespace

Result<Values> LowerXlaReduce(Lowering& b, const Values& operands, const Values& inits,
                              std::vector<int64_t> axes, const Graph& body) {
  if (operands.empty() || operands.size() != inits.size()) {
    return DataLoss("a reduction of ", operands.size(), " operands with ", inits.size(), " inits");
  }
  const PartialShape shape = b.fact(operands[0]).shape;
  if (!shape.ranked()) return Unsupported("a reduction of a tensor of unknown rank");
  ONCILLA_TRY(CheckAxes(axes, shape.rank(), "the reduced axes"));
  for (ValueId operand : operands) {
    if (b.fact(operand).shape.rank() != shape.rank()) return DataLoss("operands of several ranks");
  }
  if (operands.size() == 1) {
    const std::optional<XlaFold> fold = FoldOf(body);
    const bool truth = b.fact(operands[0]).dtype == DType::kBool;
    if (fold.has_value() && !ReductionOf(*fold, truth).empty()) {
      return ReduceByFold(b, *fold, operands[0], inits[0], axes);
    }
  }
  if (operands.size() == 2 && axes.size() == 1) {
    const std::optional<XlaPick> pick = PickOf(body);
    const XlaFold fold = pick == XlaPick::kLargest ? XlaFold::kMax : XlaFold::kMin;
    if (pick.has_value() && IsNeutral(fold, b.fact(inits[0])) &&
        IsCountAlong(b.graph(), operands[1], static_cast<int>(axes[0]))) {
      return ReduceByPick(b, *pick, operands, axes[0]);
    }
  }
  std::sort(axes.rbegin(), axes.rend());
  Values reduced = operands;
  for (const int64_t axis : axes) {
    ONCILLA_ASSIGN(reduced, ReduceByHalves(b, std::move(reduced), axis, body));
  }
  Values arguments = inits;
  arguments.insert(arguments.end(), reduced.begin(), reduced.end());
  return ApplyBody(b, body, arguments, "fold");
}

}  // namespace oncilla
