// Ops of StableHLO that combine elements: products, convolutions, reductions, sorts, factors.
#include <algorithm>

#include "engine/import/stablehlo/builder.h"
#include "engine/import/xla/conv.h"
#include "engine/import/xla/dot.h"
#include "engine/import/xla/reduce.h"
#include "engine/import/xla/shape.h"
#include "engine/import/xla/sort.h"
#include "engine/import/xla/window.h"

namespace oncilla {
namespace {

Result<Values> LowerDotGeneral(HloNode& b) {
  XlaDotAxes axes;
  ONCILLA_ASSIGN(axes.lhs_batch, b.List("lhs_batching_dimensions"));
  ONCILLA_ASSIGN(axes.rhs_batch, b.List("rhs_batching_dimensions"));
  ONCILLA_ASSIGN(axes.lhs_summed, b.List("lhs_contracting_dimensions"));
  ONCILLA_ASSIGN(axes.rhs_summed, b.List("rhs_contracting_dimensions"));
  return One(LowerXlaDot(b, b.in(0), b.in(1), axes, b.result_type().dtype));
}

// The last axis of the left operand with the first of the right one.
Result<Values> LowerDot(HloNode& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  const XlaDotAxes axes = {{}, {}, {rank - 1}, {0}};
  return One(LowerXlaDot(b, b.in(0), b.in(1), axes, b.result_type().dtype));
}

Result<Values> LowerConvolution(HloNode& b) {
  XlaConvolution conv;
  ONCILLA_ASSIGN(conv.input_batch, b.Int("input_batch_dimension"));
  ONCILLA_ASSIGN(conv.input_feature, b.Int("input_feature_dimension"));
  ONCILLA_ASSIGN(conv.input_spatial, b.List("input_spatial_dimensions"));
  ONCILLA_ASSIGN(conv.filter_input, b.Int("kernel_input_feature_dimension"));
  ONCILLA_ASSIGN(conv.filter_output, b.Int("kernel_output_feature_dimension"));
  ONCILLA_ASSIGN(conv.filter_spatial, b.List("kernel_spatial_dimensions"));
  ONCILLA_ASSIGN(conv.output_batch, b.Int("output_batch_dimension"));
  ONCILLA_ASSIGN(conv.output_feature, b.Int("output_feature_dimension"));
  ONCILLA_ASSIGN(conv.output_spatial, b.List("output_spatial_dimensions"));
  ONCILLA_ASSIGN(conv.strides, b.List("window_strides"));
  ONCILLA_ASSIGN(conv.input_dilation, b.List("lhs_dilation"));
  ONCILLA_ASSIGN(conv.filter_dilation, b.List("rhs_dilation"));
  ONCILLA_ASSIGN(conv.reversal, b.List("window_reversal"));
  ONCILLA_ASSIGN(conv.feature_groups, b.Int("feature_group_count"));
  ONCILLA_ASSIGN(conv.batch_groups, b.Int("batch_group_count"));
  if (b.op().name == "dynamic_conv") {
    if (!b.has(2)) return DataLoss("lacks padding");
    ONCILLA_ASSIGN(const std::vector<int64_t> pairs, b.KnownInts(2, "the padding"));
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      conv.low.push_back(pairs[i]);
      conv.high.push_back(pairs[i + 1]);
    }
  } else {
    ONCILLA_TRY(b.Padding("padding", conv.low, conv.high));
  }
  return One(LowerXlaConv(b, b.in(0), b.in(1), std::move(conv), b.result_type().dtype));
}

// Operands, and as many first values.
Status Halves(const HloNode& b, Values& operands, Values& inits) {
  const size_t count = b.inputs() / 2;
  if (b.inputs() != 2 * count) return DataLoss("takes ", b.inputs(), " operands");
  operands.assign(b.all_inputs().begin(), b.all_inputs().begin() + static_cast<ptrdiff_t>(count));
  inits.assign(b.all_inputs().begin() + static_cast<ptrdiff_t>(count), b.all_inputs().end());
  return {};
}

Result<Values> LowerReduce(HloNode& b) {
  Values operands, inits;
  ONCILLA_TRY(Halves(b, operands, inits));
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.List("dimensions"));
  ONCILLA_ASSIGN(const Graph body, b.Body(0));
  return LowerXlaReduce(b, operands, inits, std::move(axes), body);
}

Result<Values> LowerReduceWindow(HloNode& b) {
  Values operands, inits;
  ONCILLA_TRY(Halves(b, operands, inits));
  XlaWindow window;
  ONCILLA_ASSIGN(window.size, b.List("window_dimensions"));
  ONCILLA_ASSIGN(window.strides, b.List("window_strides"));
  ONCILLA_ASSIGN(window.base_dilation, b.List("base_dilations"));
  ONCILLA_ASSIGN(window.dilation, b.List("window_dilations"));
  ONCILLA_TRY(b.Padding("padding", window.low, window.high));
  ONCILLA_ASSIGN(const Graph body, b.Body(0));
  return LowerXlaReduceWindow(b, operands, inits, std::move(window), body);
}

Result<Values> LowerSort(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("dimension"));
  ONCILLA_ASSIGN(const Graph body, b.Body(0));
  return LowerXlaSort(b, b.all_inputs(), axis, body);
}

// A body applied to each element.
Result<Values> LowerMap(HloNode& b) {
  ONCILLA_ASSIGN(const Graph body, b.Body(0));
  return ApplyBody(b, body, b.all_inputs(), "map");
}

Result<ValueId> Swapped(HloNode& b, ValueId x, std::string_view role) {
  const int rank = b.fact(x).shape.rank();
  if (rank < 2) return DataLoss("of rank ", rank);
  std::vector<int64_t> perm = OtherAxes(rank, {});
  std::swap(perm[static_cast<size_t>(rank - 1)], perm[static_cast<size_t>(rank - 2)]);
  return b.Transpose(x, perm, role);
}

Result<Values> LowerCholesky(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t lower, b.Int("lower"));
  if (lower != 0) return One(b.Add("Cholesky", AttrMap(), {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId x, Swapped(b, b.in(0), "turned"));
  ONCILLA_ASSIGN(const ValueId factor, b.Add("Cholesky", AttrMap(), {x}, "factor"));
  return One(Swapped(b, factor, ""));
}

Result<Values> LowerTriangularSolve(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t left, b.Int("left_side"));
  ONCILLA_ASSIGN(const int64_t lower, b.Int("lower"));
  ONCILLA_ASSIGN(const int64_t unit, b.Int("unit_diagonal"));
  ONCILLA_ASSIGN(const int64_t transpose, b.Int("transpose_a"));
  // Real matrices are the same whether they are conjugated or not.
  const bool turned = transpose == 2 || transpose == 3;
  const TriangularSolveAttrs attrs = {
      .lower = lower != 0, .transpose = left != 0 ? turned : !turned, .unit_diagonal = unit != 0};
  if (left != 0) return One(b.Add(attrs, {b.in(0), b.in(1)}));
  // x a = b is the same as a^T x^T = b^T.
  ONCILLA_ASSIGN(const ValueId y, Swapped(b, b.in(1), "turned"));
  ONCILLA_ASSIGN(const ValueId solved, b.Add(attrs, {b.in(0), y}, "solved"));
  return One(Swapped(b, solved, ""));
}

constexpr HloOpRow kRows[] = {
    {"cholesky", 1, LowerCholesky},
    {"convolution", 2, LowerConvolution},
    {"dot", 2, LowerDot},
    {"dot_general", 2, LowerDotGeneral},
    {"dynamic_conv", 3, LowerConvolution},
    {"map", 1, LowerMap},
    {"reduce", 2, LowerReduce},
    {"reduce_window", 2, LowerReduceWindow},
    {"sort", 1, LowerSort},
    {"triangular_solve", 2, LowerTriangularSolve},
};

// The k largest elements along the last axis, with their indices.
Result<Values> LowerTopK(HloNode& b) {
  const HloAttr* attrs = b.source().Find(b.op(), "mhlo.attributes");
  if (attrs == nullptr) attrs = b.source().Find(b.op(), "composite_attributes");
  const HloAttr* k = attrs == nullptr ? nullptr : b.source().Entry(*attrs, "k");
  const HloAttr* largest = attrs == nullptr ? nullptr : b.source().Entry(*attrs, "largest");
  ValueId count = kNoValue;
  if (k != nullptr && k->kind == HloAttr::Kind::kNumber) {
    count = b.Ints({k->number});
  } else if (b.has(1)) {
    ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(1), DType::kI64, "k"));
    ONCILLA_ASSIGN(count, b.Add(ReshapeAttrs(), {wide, b.Ints({1})}, "k_list"));
  } else {
    return DataLoss("lacks the number of elements");
  }
  const bool small = b.op().result_types.size() == 2 && b.result_type(1).dtype == DType::kI32;
  return b.AddAll(TopKAttrs{.axis = -1,
                            .largest = largest == nullptr || largest->number != 0,
                            .sorted = true,
                            .to = small ? DType::kI32 : DType::kI64},
                  {b.in(0), count});
}

bool AllOnes(const HloNode& b, size_t input) {
  const auto known = KnownInts(b.in_fact(input));
  return known.has_value() &&
         std::all_of(known->begin(), known->end(), [](const Dim& dim) { return dim.size == 1; });
}

// A reduction over windows whose sizes a run computes.
Result<Values> LowerOpenWindow(HloNode& b) {
  if (b.inputs() != 7) return Unsupported("of several operands, or with other operands");
  ONCILLA_ASSIGN(const Graph body, b.CalledBody());
  if (!AllOnes(b, 3) || !AllOnes(b, 4) || !AllOnes(b, 5)) {
    return Unsupported("windows of open size with strides or dilations");
  }
  return LowerXlaRunning(b, b.in(0), b.in(1), b.in(2), b.in(6), body);
}

}  // namespace

std::span<const HloOpRow> HloContractionRows() { return kRows; }

Result<Values> LowerHloCustomCall(HloNode& b) {
  ONCILLA_ASSIGN(const std::string_view target, b.source().Text(b.op(), "call_target_name"));
  if (b.inputs() == 0) return Unsupported("a call of '", target, "'");
  if (target == "mhlo.topk" || target == "chlo.top_k" || target == "stablehlo.dynamic_top_k") {
    return LowerTopK(b);
  }
  if (target == "stablehlo.dynamic_reduce_window") return LowerOpenWindow(b);
  return Unsupported("a call of '", target, "', which is not part of the model");
}

const HloOpRow* FindHloOp(std::string_view op) {
  for (std::span<const HloOpRow> rows : {HloMovementRows(), HloContractionRows()}) {
    for (const HloOpRow& row : rows) {
      if (row.op == op) return &row;
    }
  }
  return nullptr;
}

}  // namespace oncilla
