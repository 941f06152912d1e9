// XLA's ops in TensorFlow graphs: attributes and constant inputs to what engine/import/xla lowers.
#include <algorithm>

#include "engine/import/lowering/einsum.h"
#include "engine/import/tf/lowering.h"
#include "engine/import/wire/wire.h"
#include "engine/import/xla/conv.h"
#include "engine/import/xla/dot.h"
#include "engine/import/xla/gather.h"
#include "engine/import/xla/reduce.h"
#include "engine/import/xla/shape.h"
#include "engine/import/xla/sort.h"
#include "engine/import/xla/window.h"

namespace oncilla {
namespace {

// The numbers of one field of a message of dimension numbers.
Result<std::vector<int64_t>> Numbers(const std::string& message, uint32_t field) {
  std::vector<int64_t> numbers;
  try {
    WireMessage wire(message);
    while (wire.Next()) {
      if (wire.field() == field) wire.EachInt([&](int64_t number) { numbers.push_back(number); });
    }
  } catch (const protozero::exception& error) {
    return DataLoss("its dimension numbers are damaged: ", error.what());
  }
  if (numbers.size() > 2 * static_cast<size_t>(kMaxRank)) {
    return DataLoss("its dimension numbers name ", numbers.size(), " axes");
  }
  return numbers;
}
// A field with one number, which is zero when it is missing.
Result<int64_t> Number(const std::string& message, uint32_t field) {
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, Numbers(message, field));
  return numbers.empty() ? 0 : numbers.back();
}

// The type that the result shall have; older forms of an op have no such attribute.
Result<DType> ResultType(const TfLowering& b) {
  if (!b.attrs().Has("preferred_element_type")) return b.dtype();
  return b.attrs().Type("preferred_element_type");
}

Result<Values> LowerXlaDotOp(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string numbers, b.attrs().String("dimension_numbers"));
  XlaDotAxes axes;
  ONCILLA_ASSIGN(axes.lhs_summed, Numbers(numbers, 1));
  ONCILLA_ASSIGN(axes.rhs_summed, Numbers(numbers, 2));
  ONCILLA_ASSIGN(axes.lhs_batch, Numbers(numbers, 3));
  ONCILLA_ASSIGN(axes.rhs_batch, Numbers(numbers, 4));
  ONCILLA_ASSIGN(const DType to, ResultType(b));
  return One(LowerXlaDot(b, b.in(0), b.in(1), axes, to));
}

// Pairs of numbers before and after, one pair per axis.
Status ReadPadding(const TfLowering& b, size_t input, std::vector<int64_t>& low,
                   std::vector<int64_t>& high) {
  ONCILLA_ASSIGN(const std::vector<int64_t> pairs, ToInt64s(b.in_fact(input).value));
  if (pairs.size() % 2 != 0) return DataLoss("padding that is not pairs");
  for (size_t i = 0; i < pairs.size(); i += 2) {
    low.push_back(pairs[i]);
    high.push_back(pairs[i + 1]);
  }
  return {};
}
Status NeedPadding(const TfLowering& b, size_t input) {
  if (b.has(input) && b.in_fact(input).has_value()) return {};
  return Unsupported("the padding is computed while running; it must be a constant");
}

Result<Values> LowerXlaConvOp(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string numbers, b.attrs().String("dimension_numbers"));
  XlaConvolution conv;
  ONCILLA_ASSIGN(conv.filter_input, Number(numbers, 3));
  ONCILLA_ASSIGN(conv.filter_output, Number(numbers, 4));
  ONCILLA_ASSIGN(conv.filter_spatial, Numbers(numbers, 6));
  ONCILLA_ASSIGN(conv.input_batch, Number(numbers, 7));
  ONCILLA_ASSIGN(conv.input_feature, Number(numbers, 8));
  ONCILLA_ASSIGN(conv.output_batch, Number(numbers, 9));
  ONCILLA_ASSIGN(conv.output_feature, Number(numbers, 10));
  ONCILLA_ASSIGN(conv.input_spatial, Numbers(numbers, 11));
  ONCILLA_ASSIGN(conv.output_spatial, Numbers(numbers, 12));
  ONCILLA_ASSIGN(conv.strides, b.KnownInts(2, "the strides"));
  ONCILLA_TRY(NeedPadding(b, 3));
  ONCILLA_TRY(ReadPadding(b, 3, conv.low, conv.high));
  ONCILLA_ASSIGN(conv.input_dilation, b.KnownInts(4, "the dilation of the input"));
  ONCILLA_ASSIGN(conv.filter_dilation, b.KnownInts(5, "the dilation of the filter"));
  ONCILLA_ASSIGN(conv.feature_groups, b.KnownInt(6, "the number of groups"));
  if (b.attrs().Has("batch_group_count")) {
    ONCILLA_ASSIGN(conv.batch_groups, b.attrs().Int("batch_group_count"));
  }
  ONCILLA_ASSIGN(const DType to, ResultType(b));
  return One(LowerXlaConv(b, b.in(0), b.in(1), std::move(conv), to));
}

Result<XlaGatherAxes> ReadGatherAxes(const TfLowering& b) {
  ONCILLA_ASSIGN(const std::string numbers, b.attrs().String("dimension_numbers"));
  XlaGatherAxes axes;
  ONCILLA_ASSIGN(axes.offset_axes, Numbers(numbers, 1));
  ONCILLA_ASSIGN(axes.collapsed_axes, Numbers(numbers, 2));
  ONCILLA_ASSIGN(axes.index_map, Numbers(numbers, 3));
  ONCILLA_ASSIGN(axes.index_vector_axis, Number(numbers, 4));
  ONCILLA_ASSIGN(axes.operand_batch, Numbers(numbers, 5));
  ONCILLA_ASSIGN(axes.index_batch, Numbers(numbers, 6));
  return axes;
}

Result<Values> LowerXlaGatherOp(TfLowering& b) {
  ONCILLA_ASSIGN(XlaGatherAxes axes, ReadGatherAxes(b));
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, b.KnownInts(2, "the slice sizes"));
  return One(LowerXlaGather(b, b.in(0), b.in(1), std::move(axes), sizes));
}

// A function of numbers of the types of these values: all of the first, then all of the second, or
// two of each in turn.
Result<Graph> BodyOf(TfLowering& b, const Values& values, bool in_turn) {
  Facts facts;
  for (ValueId value : values) {
    facts.push_back(Fact::Of(b.fact(value).dtype, Shape()));
    if (in_turn) facts.push_back(facts.back());
  }
  if (!in_turn) {
    const Facts once = facts;
    facts.insert(facts.end(), once.begin(), once.end());
  }
  return b.Body(0, facts);
}

Result<Values> LowerXlaScatterOp(TfLowering& b) {
  ONCILLA_ASSIGN(XlaGatherAxes axes, ReadGatherAxes(b));
  ONCILLA_ASSIGN(const Graph body, BodyOf(b, {b.in(0)}, false));
  return One(LowerXlaScatter(b, b.in(0), b.in(1), b.in(2), std::move(axes), body));
}

// Operands, and as many first values.
Result<Values> LowerXlaReduceOp(TfLowering& b) {
  const auto count = static_cast<ptrdiff_t>(b.inputs() / 2);
  const Values operands(b.all_inputs().begin(), b.all_inputs().begin() + count);
  const Values inits(b.all_inputs().begin() + count, b.all_inputs().end());
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, b.attrs().Ints("dimensions_to_reduce"));
  ONCILLA_ASSIGN(const Graph body, BodyOf(b, operands, false));
  return LowerXlaReduce(b, operands, inits, axes, body);
}

bool AllOnes(const TfLowering& b, size_t input) {
  const auto known = KnownInts(b.in_fact(input));
  return known.has_value() &&
         std::all_of(known->begin(), known->end(), [](const Dim& dim) { return dim.size == 1; });
}

Result<Values> LowerXlaWindowOp(TfLowering& b) {
  XlaWindow window;
  if (!AllIntsKnown(b.in_fact(2)) && AllOnes(b, 3) && AllOnes(b, 4) && AllOnes(b, 5)) {
    ONCILLA_ASSIGN(const Graph body, BodyOf(b, {b.in(0)}, false));
    return LowerXlaRunning(b, b.in(0), b.in(1), b.in(2), b.in(6), body);
  }
  ONCILLA_ASSIGN(window.size, b.KnownInts(2, "the windows' size"));
  ONCILLA_ASSIGN(window.strides, b.KnownInts(3, "the strides"));
  ONCILLA_ASSIGN(window.base_dilation, b.KnownInts(4, "the dilation of the operand"));
  ONCILLA_ASSIGN(window.dilation, b.KnownInts(5, "the windows' dilation"));
  ONCILLA_TRY(NeedPadding(b, 6));
  ONCILLA_TRY(ReadPadding(b, 6, window.low, window.high));
  ONCILLA_ASSIGN(const Graph body, BodyOf(b, {b.in(0)}, false));
  return LowerXlaReduceWindow(b, {b.in(0)}, {b.in(1)}, std::move(window), body);
}

Result<Values> LowerXlaVariadicSort(TfLowering& b) {
  Values operands = b.all_inputs();
  const size_t last = operands.size() - 1;
  operands.pop_back();
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(last, "the axis"));
  ONCILLA_ASSIGN(const Graph body, BodyOf(b, operands, true));
  return LowerXlaSort(b, operands, axis, body);
}

// Sorts ascending along the last axis (keys and values: along the first): the order of `keys`.
Result<Values> SortBy(TfLowering& b, ValueId keys, const Values& operands, int axis) {
  ONCILLA_ASSIGN(const ValueId count, b.Sizes(keys, axis, axis + 1, "count"));
  const TopKAttrs attrs = {.axis = axis, .largest = false, .sorted = true};
  ONCILLA_ASSIGN(const Values sorted, b.AddAll(attrs, {keys, count}));
  Values results = {sorted[0]};
  for (ValueId operand : operands) {
    ONCILLA_ASSIGN(const ValueId moved,
                   b.Add(GatherElementsAttrs{.axis = axis}, {operand, sorted[1]}, "values"));
    results.push_back(moved);
  }
  return results;
}
Result<Values> LowerXlaSortOp(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank == 0) return Values{b.in(0)};
  return SortBy(b, b.in(0), {}, rank - 1);
}
Result<Values> LowerXlaKeyValueSort(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank == 0) return Values{b.in(0), b.in(1)};
  return SortBy(b, b.in(0), {b.in(1)}, rank - 1);
}

Result<Values> LowerXlaPadOp(TfLowering& b) {
  XlaPadding padding;
  ONCILLA_ASSIGN(padding.low, b.KnownInts(2, "the padding before"));
  ONCILLA_ASSIGN(padding.high, b.KnownInts(3, "the padding after"));
  ONCILLA_ASSIGN(padding.interior, b.KnownInts(4, "the padding between"));
  return One(LowerXlaPad(b, b.in(0), b.in(1), padding));
}

Result<Values> LowerXlaEinsum(TfLowering& b) {
  ONCILLA_ASSIGN(std::string equation, b.attrs().String("equation"));
  return LowerEinsum(b, std::move(equation), LabelSizes::kEqual);
}

// What is only said about values: where they are, or how large they can be.
Result<Values> LowerPassOne(TfLowering& b) { return Values{b.in(0)}; }
Result<Values> LowerPassAll(TfLowering& b) { return b.all_inputs(); }

// Adds axes of size one to the operand of the lower rank, so that both broadcast: its axes are
// those of the other that are named.
Result<Values> LowerBroadcastHelper(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, b.KnownInts(2, "the axes"));
  ONCILLA_ASSIGN(const int left, b.Rank(0));
  ONCILLA_ASSIGN(const int right, b.Rank(1));
  if (axes.empty() || left == right) return Values{b.in(0), b.in(1)};
  const int rank = std::max(left, right);
  const ValueId lower = left < right ? b.in(0) : b.in(1);
  ONCILLA_TRY(CheckAxes(axes, rank, "the broadcast axes"));
  if (static_cast<int>(axes.size()) != std::min(left, right) ||
      !std::is_sorted(axes.begin(), axes.end())) {
    return InvalidArgument("broadcast axes for another rank, or out of order");
  }
  ONCILLA_ASSIGN(const ValueId wide, b.Unsqueeze(lower, OtherAxes(rank, axes), "axes"));
  return left < right ? Values{wide, b.in(1)} : Values{b.in(0), wide};
}

Result<Values> LowerReducePrecision(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t exponent, b.attrs().Int("exponent_bits"));
  ONCILLA_ASSIGN(const int64_t mantissa, b.attrs().Int("mantissa_bits"));
  return One(LowerXlaPrecision(b, b.in(0), exponent, mantissa));
}

constexpr TfOpRow kRows[] = {
    {"XlaBroadcastHelper", 3, "", LowerBroadcastHelper},
    {"XlaConv", 7, "", LowerXlaConvOp},
    {"XlaConvV2", 7, "", LowerXlaConvOp},
    {"XlaDot", 2, "", LowerXlaDotOp},
    {"XlaDotV2", 2, "", LowerXlaDotOp},
    {"XlaEinsum", 2, "", LowerXlaEinsum},
    {"XlaGather", 3, "", LowerXlaGatherOp},
    {"XlaKeyValueSort", 2, "", LowerXlaKeyValueSort},
    {"XlaOptimizationBarrier", 1, "", LowerPassAll},
    {"XlaPad", 5, "", LowerXlaPadOp},
    {"XlaReduce", 2, "", LowerXlaReduceOp},
    {"XlaReducePrecision", 1, "", LowerReducePrecision},
    {"XlaReduceWindow", 7, "", LowerXlaWindowOp},
    {"XlaScatter", 3, "", LowerXlaScatterOp},
    {"XlaSetBound", 2, "", LowerPassOne},
    {"XlaSharding", 1, "", LowerPassOne},
    {"XlaSort", 1, "", LowerXlaSortOp},
    {"XlaVariadicReduce", 2, "", LowerXlaReduceOp},
    {"XlaVariadicReduceV2", 2, "", LowerXlaReduceOp},
    {"XlaVariadicSort", 2, "", LowerXlaVariadicSort},
};

}  // namespace

std::span<const TfOpRow> TfXlaRows() { return kRows; }

}  // namespace oncilla
