// Lowering of ops that TensorFlow and TFLite share.
#include "engine/import/lowering/shared_ops.h"

#include <algorithm>
#include <limits>

namespace oncilla {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// Split by sizes one of which is the remainder of an axis whose size is known only at run time.
Result<Values> SplitRest(Lowering& b, int64_t axis, const std::vector<int64_t>& sizes,
                         ptrdiff_t hole) {
  int64_t others = 0;
  Values list;
  ONCILLA_ASSIGN(const ValueId whole,
                 b.Add(ShapeAttrs{.start = axis, .end = axis + 1}, {b.in(0)}, "whole"));
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(sizes.size()); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    if (i != hole && size < 0) return InvalidArgument("a size is ", size);
    if (i != hole) others = SaturatingAdd(others, size);
  }
  ONCILLA_ASSIGN(const ValueId rest, b.Add("Sub", {}, {whole, b.Ints({others})}, "rest"));
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(sizes.size()); ++i) {
    list.push_back(i == hole ? rest : b.Ints({sizes[static_cast<size_t>(i)]}));
  }
  ONCILLA_ASSIGN(const ValueId all, b.Add(ConcatAttrs{.axis = 0}, list, "sizes"));
  return b.AddAll(SplitAttrs{.axis = axis, .parts = static_cast<int64_t>(sizes.size())},
                  {b.in(0), all});
}

}  // namespace

// Paddings are given as (before, after) per axis; canonically they are all befores, then all
// afters.
Result<ValueId> PadsOf(Lowering& b, size_t i) {
  if (i >= b.inputs()) return DataLoss("input ", i, " is missing");
  if (AllIntsKnown(b.in_fact(i)) || b.in_fact(i).has_value()) {
    ONCILLA_ASSIGN(const std::vector<int64_t> pairs, ToInt64s(b.in_fact(i).value));
    std::vector<int64_t> pads;
    for (size_t end = 0; end < 2; ++end) {
      for (size_t k = end; k < pairs.size(); k += 2) pads.push_back(pairs[k]);
    }
    return b.Ints(std::move(pads));
  }
  ONCILLA_ASSIGN(const ValueId sides, b.Transpose(b.in(i), {1, 0}, "sides"));
  return b.Add("Reshape", {}, {sides, b.Ints({-1})}, "pads");
}

// Slice by begin and size; a size of -1 extends to the end.
Result<Values> LowerSliceBySize(Lowering& b) {
  ValueId ends;
  if (AllIntsKnown(b.in_fact(1)) && AllIntsKnown(b.in_fact(2))) {
    ONCILLA_ASSIGN(std::vector<int64_t> begin, b.KnownInts(1, "begin"));
    ONCILLA_ASSIGN(const std::vector<int64_t> size, b.KnownInts(2, "size"));
    if (begin.size() != size.size()) {
      return InvalidArgument("begin has ", begin.size(), " entries and size ", size.size());
    }
    for (size_t i = 0; i < begin.size(); ++i) {
      if (begin[i] < 0 || size[i] < -1) {
        return InvalidArgument("begin ", begin[i], " and size ", size[i]);
      }
      begin[i] = size[i] == -1 ? kToTheEnd : SaturatingAdd(begin[i], size[i]);
    }
    ends = b.Ints(std::move(begin));
  } else {
    ONCILLA_ASSIGN(const ValueId begin, b.Cast(b.in(1), DType::kI64, "begin"));
    ONCILLA_ASSIGN(const ValueId size, b.Cast(b.in(2), DType::kI64, "size"));
    ONCILLA_ASSIGN(ends, b.Add("Add", {}, {begin, size}, "ends"));
    // No test at run time is needed if the sizes are known not to be -1.
    const auto known = KnownInts(b.in_fact(2));
    const bool tested = known.has_value() && std::all_of(known->begin(), known->end(),
                                                         [](const Dim& d) { return d.size >= 0; });
    if (!tested) {
      ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
      const ValueId end = b.Constant(Tensor::ScalarInt64(kToTheEnd));
      ONCILLA_ASSIGN(const ValueId open, b.Add("Less", {}, {size, zero}, "open"));
      ONCILLA_ASSIGN(ends, b.Add("Where", {}, {open, end, ends}, "open_ends"));
    }
  }
  return One(b.Add("Slice", {}, {b.in(0), b.in(1), ends}));
}

namespace {

// Element i of a list of integers, as a list of one.
Result<ValueId> Element(Lowering& b, ValueId list, int64_t i, std::string_view role) {
  return b.Add("Slice", {}, {list, b.Ints({i}), b.Ints({i + 1})}, role);
}

// The flat indices in `whole` of the elements of `part`, which begins at `start`; in the shape of
// `part`. The terms that do not depend on `start` are added first, so that they are folded if the
// sizes are known.
Result<ValueId> PlacesOf(Lowering& b, int rank, ValueId whole, ValueId part, ValueId start) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ValueId places = b.Ints({0}), step = b.Ints({1});
  Values steps(static_cast<size_t>(rank));
  for (int axis = rank - 1; axis >= 0; --axis) {
    const auto role = [axis](std::string_view name) { return StrCat(name, axis); };
    ONCILLA_ASSIGN(const ValueId size, Element(b, part, axis, role("size")));
    ONCILLA_ASSIGN(const ValueId count, b.Add("Reshape", {}, {size, b.Ints({})}, role("count")));
    ONCILLA_ASSIGN(ValueId at, b.Add("Range", {}, {zero, count, one}, role("range")));
    ONCILLA_ASSIGN(at, b.Add("Mul", {}, {at, step}, role("way")));
    std::vector<int64_t> trailing;
    for (int k = axis + 1; k < rank; ++k) trailing.push_back(k - axis);
    if (!trailing.empty()) {
      ONCILLA_ASSIGN(at, b.Unsqueeze(at, trailing, role("along")));
    }
    ONCILLA_ASSIGN(places, b.Add("Add", {}, {at, places}, role("places")));
    steps[static_cast<size_t>(axis)] = step;
    ONCILLA_ASSIGN(const ValueId extent, Element(b, whole, axis, role("extent")));
    ONCILLA_ASSIGN(step, b.Add("Mul", {}, {step, extent}, role("step")));
  }
  if (rank == 0) return places;
  ONCILLA_ASSIGN(const ValueId all, b.Add(ConcatAttrs{0}, std::move(steps), "steps"));
  ONCILLA_ASSIGN(const ValueId ways, b.Add("Mul", {}, {start, all}, "ways"));
  ONCILLA_ASSIGN(const ValueId first,
                 b.Add("ReduceSum", ReduceAttrs{.keep_dims = true}, {ways, b.Ints({0})}, "first"));
  return b.Add("Add", {}, {places, first}, "from_start");
}

// The flat places in `whole` of a part of size `part`, from `start` on, which is moved until the
// part fits. Unless `fits` says that the part is known not to be larger than the whole, all places
// of one that turns out to be are so low that they are refused; otherwise they would be wrong ones.
Result<ValueId> PlacesInside(Lowering& b, int rank, ValueId whole, ValueId part, ValueId start,
                             bool fits) {
  ONCILLA_ASSIGN(const ValueId most, b.Add("Sub", {}, {whole, part}, "most"));
  ONCILLA_ASSIGN(start, b.Cast(start, DType::kI64, "start"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(start, b.Add("Min", {}, {start, most}, "start_cut"));
  ONCILLA_ASSIGN(start, b.Add("Max", {}, {start, zero}, "start_inside"));
  ONCILLA_ASSIGN(const ValueId places, PlacesOf(b, rank, whole, part, start));
  if (fits) return places;
  ONCILLA_ASSIGN(ValueId wrong,
                 b.Add("ReduceMin", ReduceAttrs{.keep_dims = true}, {most, b.Ints({0})}, "least"));
  ONCILLA_ASSIGN(wrong, b.Add("Min", {}, {wrong, zero}, "lacking"));
  ONCILLA_ASSIGN(wrong, b.Add("Max", {}, {wrong, b.Ints({-1})}, "lacks"));
  ONCILLA_ASSIGN(wrong, b.Add("Mul", {}, {wrong, b.Ints({int64_t{1} << 62})}, "refused"));
  return b.Add("Add", {}, {places, wrong}, "checked");
}

}  // namespace

Result<Values> LowerDynamicUpdateSlice(Lowering& b) {
  return One(DynamicUpdateSlice(b, b.in(0), b.in(1), b.in(2)));
}

Result<ValueId> DynamicUpdateSlice(Lowering& b, ValueId x, ValueId values, ValueId start) {
  const PartialShape operand = b.fact(x).shape, update = b.fact(values).shape;
  if (!operand.ranked() || !update.ranked()) return Unsupported("of tensors of unknown rank");
  const int rank = operand.rank();
  if (update.rank() != rank) return InvalidArgument("of ranks that differ");
  for (int axis = 0; axis < rank; ++axis) {
    if (operand[axis].known() && update[axis].known() && update[axis].size > operand[axis].size) {
      return InvalidArgument("an update ", update, " of ", operand);
    }
  }
  ONCILLA_ASSIGN(const ValueId whole, b.Add(ShapeAttrs(), {x}, "whole"));
  ONCILLA_ASSIGN(const ValueId part, b.Add(ShapeAttrs(), {values}, "part"));
  ONCILLA_ASSIGN(const ValueId places,
                 PlacesInside(b, rank, whole, part, start, operand.known() && update.known()));
  ONCILLA_ASSIGN(const ValueId indices, b.Add("Reshape", {}, {places, b.Ints({-1, 1})}, "indices"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {x, b.Ints({-1})}, "flat"));
  ONCILLA_ASSIGN(const ValueId parts, b.Add("Reshape", {}, {values, b.Ints({-1})}, "values"));
  ONCILLA_ASSIGN(const ValueId written, b.Add(ScatterNDAttrs(), {flat, indices, parts}, "written"));
  return b.Add("Reshape", {}, {written, whole});
}

// Elements are gathered by their places, so that the result's shape follows from the sizes alone,
// and a loop that moves the start keeps its plan.
Result<Values> LowerDynamicSlice(Lowering& b) {
  if (!b.in_fact(0).shape.ranked()) return Unsupported("of a tensor of unknown rank");
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, b.KnownInts(2, "the sizes"));
  return One(DynamicSlice(b, b.in(0), b.in(1), sizes));
}

Result<ValueId> DynamicSlice(Lowering& b, ValueId x, ValueId start,
                             const std::vector<int64_t>& sizes) {
  const PartialShape operand = b.fact(x).shape;
  if (!operand.ranked()) return Unsupported("of a tensor of unknown rank");
  const int rank = operand.rank();
  if (static_cast<int>(sizes.size()) != rank) {
    return InvalidArgument(sizes.size(), " sizes for ", operand);
  }
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t size = sizes[static_cast<size_t>(axis)];
    if (size < 0 || (operand[axis].known() && size > operand[axis].size)) {
      return InvalidArgument("size ", size, " of axis ", axis, " of ", operand);
    }
  }
  ONCILLA_ASSIGN(const ValueId whole, b.Add(ShapeAttrs(), {x}, "whole"));
  const ValueId part = b.Ints(sizes);
  ONCILLA_ASSIGN(const ValueId places, PlacesInside(b, rank, whole, part, start, operand.known()));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {x, b.Ints({-1})}, "flat"));
  ONCILLA_ASSIGN(const ValueId picked,
                 b.Add(GatherAttrs{.negative_indices = false}, {flat, places}, "picked"));
  return b.Add("Reshape", {}, {picked, part});
}

// One of the sizes may be -1, which stands for the remainder.
Result<Values> LowerSplitSizes(Lowering& b) {
  ONCILLA_ASSIGN(const int64_t asked_axis, b.KnownInt(2, "the axis"));
  ONCILLA_ASSIGN(std::vector<int64_t> sizes, b.KnownInts(1, "the list of sizes"));
  const auto hole = std::find(sizes.begin(), sizes.end(), -1);
  if (hole != sizes.end()) {
    ONCILLA_ASSIGN(const int rank, b.Rank(0, "the input"));
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(asked_axis, rank));
    const Dim& whole = b.in_fact(0).shape[axis];
    if (!whole.known()) return SplitRest(b, axis, sizes, hole - sizes.begin());
    int64_t rest = whole.size;
    for (int64_t size : sizes) {
      if (size < -1) return InvalidArgument("a size is ", size);
      if (size >= 0) rest = size > rest ? -1 : rest - size;
    }
    if (rest < 0) return InvalidArgument("the sizes exceed ", whole.size);
    *hole = rest;
  }
  return b.AddAll(SplitAttrs{.axis = asked_axis}, {b.in(0), b.Ints(sizes)});
}

// A negative axis counts from the end of the result, for both ops that a Pack becomes.
Result<Values> LowerPackParts(Lowering& b, int64_t axis) {
  Values parts;
  for (size_t i = 0; i < b.inputs(); ++i) {
    ONCILLA_ASSIGN(const ValueId part,
                   b.Add("Unsqueeze", {}, {b.in(i), b.Ints({axis})}, "part" + std::to_string(i)));
    parts.push_back(part);
  }
  return One(b.Add(ConcatAttrs{.axis = axis}, std::move(parts)));
}

Result<Values> LowerUnpackParts(Lowering& b, int64_t axis, int64_t count) {
  Values out;
  if (count == 0) return out;
  ONCILLA_ASSIGN(const Values parts,
                 b.AddAll(SplitAttrs{.axis = axis, .parts = count}, {b.in(0)}, "split"));
  for (size_t i = 0; i < parts.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId part, b.Add("Squeeze", {}, {parts[i], b.Ints({axis})},
                                             i == 0 ? "" : "part" + std::to_string(i)));
    out.push_back(part);
  }
  return out;
}

// For any index outside [0, depth) TensorFlow gives a row of `off`. The canonical op counts
// negative indices from the end, so they are replaced by `depth`, which is outside.
Result<Values> LowerOneHotRows(Lowering& b, int64_t axis) {
  ValueId indices = b.in(0);
  const DType dtype = b.fact(indices).dtype;
  if (IsSigned(dtype)) {
    ONCILLA_ASSIGN(const ValueId depth, b.Cast(b.in(1), dtype, "depth"));
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
    ONCILLA_ASSIGN(const ValueId negative, b.Add("Less", {}, {indices, zero}, "negative"));
    ONCILLA_ASSIGN(indices, b.Add("Where", {}, {negative, depth, indices}, "indices"));
  }
  ONCILLA_ASSIGN(const ValueId on, b.Add("Unsqueeze", {}, {b.in(2), b.Ints({0})}, "on"));
  ONCILLA_ASSIGN(const ValueId off, b.Add("Unsqueeze", {}, {b.in(3), b.Ints({0})}, "off"));
  ONCILLA_ASSIGN(const ValueId values, b.Add(ConcatAttrs{.axis = 0}, {off, on}, "values"));
  return One(b.Add(OneHotAttrs{.axis = axis}, {indices, b.in(1), values}));
}

// The coordinates of the elements that are true or not zero, one row for each element; the
// canonical op gives a column for each.
Result<Values> LowerPlaces(Lowering& b) {
  ONCILLA_ASSIGN(const ValueId columns, b.Add("NonZero", {}, {b.in(0)}, "columns"));
  return One(b.Transpose(columns, {1, 0}, ""));
}

Result<ValueId> WithTrailingAxes(Lowering& b, ValueId x, ValueId more, std::string_view role) {
  const std::string name(role);
  ONCILLA_ASSIGN(const ValueId own, b.Add("Shape", {}, {x}, name + "_shape"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("Reshape", {}, {more, b.Ints({1})}, name + "_more"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId ones, b.Add("Fill", {}, {count, one}, name + "_ones"));
  ONCILLA_ASSIGN(const ValueId shape,
                 b.Add(ConcatAttrs{.axis = 0}, {own, ones}, name + "_wide_shape"));
  return b.Add("Reshape", {}, {x, shape}, role);
}

namespace {

// The condition of a Select whose ranks are known only at run time, with trailing axes added up to
// the rank of the values.
Result<ValueId> RowsOfOpenRank(Lowering& b) {
  const RankAttrs wide = {.to = DType::kI64};
  ONCILLA_ASSIGN(const ValueId own, b.Add(wide, {b.in(0)}, "condition_rank"));
  ONCILLA_ASSIGN(const ValueId rank, b.Add(wide, {b.in(1)}, "rank"));
  // Otherwise the condition must have the rank of the values, or be a scalar or vector.
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId same, b.Add("Equal", {}, {own, rank}, "same_rank"));
  ONCILLA_ASSIGN(const ValueId few, b.Add("LessEqual", {}, {own, one}, "vector"));
  ONCILLA_ASSIGN(const ValueId fits, b.Add("Or", {}, {same, few}, "fits"));
  const ValueId text = b.Constant(Tensor::Strings(
      {}, {"the condition must be a vector or have the rank of the values; the ranks are"}));
  ONCILLA_TRY(b.AddAll(AssertAttrs{}, {fits, text, own, rank}, "check").status());
  ONCILLA_ASSIGN(const ValueId more, b.Add("Sub", {}, {rank, own}, "more"));
  return WithTrailingAxes(b, b.in(0), more, "condition");
}

// The condition of the old Select may be a vector that picks whole rows.
Result<ValueId> RowsOf(Lowering& b) {
  const ValueId condition = b.in(0);
  const Result<int> condition_rank = b.Rank(0, "the condition");
  if (condition_rank.ok() && *condition_rank != 1) return condition;
  const Result<int> rank = b.Rank(1, "the values");
  if (!condition_rank.ok() || !rank.ok()) {
    if (b.RanksStayOpen()) return RowsOfOpenRank(b);
    return condition_rank.ok() ? rank.status() : condition_rank.status();
  }
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < *rank; ++axis) axes.push_back(axis);
  if (axes.empty()) return condition;
  return b.Add("Unsqueeze", {}, {condition, b.Ints(axes)}, "condition");
}

}  // namespace

Result<ValueId> Choose(Lowering& b, ValueId condition, ValueId x, ValueId y,
                       std::string_view role) {
  const bool strings = b.fact(x).dtype == DType::kString;
  return b.Add(strings ? "ChooseStrings" : "Where", {}, {condition, x, y}, role);
}

Result<Values> LowerSelectRows(Lowering& b) {
  ONCILLA_ASSIGN(const ValueId condition, RowsOf(b));
  return One(Choose(b, condition, b.in(1), b.in(2)));
}

Result<Values> LowerSum(Lowering& b) {
  ValueId sum = b.in(0);
  if (b.inputs() == 1) return One(b.Add("Identity", {}, {sum}));
  for (size_t i = 1; i < b.inputs(); ++i) {
    const bool last = i + 1 == b.inputs();
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(i)}, last ? "" : StrCat("sum", i)));
  }
  return Values{sum};
}

}  // namespace oncilla
