// ai.onnx.preview's FlexAttention, in which graph attributes modify scores and weights.
#include <cmath>

#include "engine/import/onnx/control.h"
#include "engine/import/onnx/ops/attention.h"

namespace oncilla {
namespace {

// Applies the graph in the attribute `name` to scores or weights x; returns x if there is no such
// graph.
using Change = std::function<Result<ValueId>(std::string_view name, ValueId x)>;

Result<Values> AddFlexAttention(OnnxLowering& b, const Change& change) {
  const DType dtype = b.dtype();
  ONCILLA_ASSIGN(const DType precision,
                 b.Type("softmax_precision", dtype == DType::kF64 ? dtype : DType::kF32));
  if (!IsFloat(precision)) return InvalidArgument("softmax_precision is ", precision);
  for (size_t i = 0; i < 3; ++i) {
    ONCILLA_ASSIGN(const int rank, b.Rank(i));
    if (rank != 4) return InvalidArgument("input ", i, " has rank ", rank, ", not 4");
  }
  ONCILLA_ASSIGN(const int64_t heads, KnownSize(b, b.in(0), 1, "the number of heads"));
  ONCILLA_ASSIGN(const int64_t size, KnownSize(b, b.in(0), 3, "the size of a head"));
  ONCILLA_ASSIGN(const float given, b.Float("scale", 0));
  const double scale =
      b.HasAttr("scale") ? double{given} : 1 / std::sqrt(static_cast<double>(size));
  ONCILLA_ASSIGN(ValueId k, ShareHeads(b, b.in(1), heads, "k"));
  ONCILLA_ASSIGN(ValueId v, ShareHeads(b, b.in(2), heads, "v"));
  ONCILLA_ASSIGN(ValueId q, b.Cast(b.in(0), precision, "q"));
  ONCILLA_ASSIGN(k, b.Cast(k, precision, "keys"));
  ONCILLA_ASSIGN(v, b.Cast(v, precision, "values"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(precision, scale));
  ONCILLA_ASSIGN(q, b.Add("Mul", {}, {q, factor}, "scaled"));
  ONCILLA_ASSIGN(ValueId x, b.Add(MatMulAttrs{.transpose_b = true}, {q, k}, "scores"));
  ONCILLA_ASSIGN(x, change("score_mod", x));
  ONCILLA_ASSIGN(x, b.Add("Softmax", {}, {x}, "weights"));
  ONCILLA_ASSIGN(x, change("prob_mod", x));
  ONCILLA_ASSIGN(const ValueId y, b.Add("MatMul", {}, {x, v}, "by_head"));
  if (precision == dtype) return One(b.Add("Identity", {}, {y}));
  return One(b.Cast(y, dtype, ""));
}

Result<Values> LowerFlexAttention(OnnxLowering& b) {
  return AddFlexAttention(b, [](std::string_view, ValueId x) -> Result<ValueId> { return x; });
}

constexpr OnnxOpRow kRows[] = {
    {"FlexAttention", 1, kNewestOnnxPreview, 3, "", LowerFlexAttention},
};

}  // namespace

Result<Values> LowerOnnxFlexAttention(OnnxBuilder& builder, OnnxLowering& b) {
  if (!b.has(0) || !b.has(1) || !b.has(2)) return DataLoss("needs queries, keys and values");
  return AddFlexAttention(b, [&](std::string_view name, ValueId x) -> Result<ValueId> {
    if (!b.HasAttr(name)) return x;
    ONCILLA_ASSIGN(const OnnxGraph* graph, b.GraphAttr(name));
    if (graph->inputs.size() != 1 || graph->outputs.size() != 1) {
      return DataLoss("its ", name, " takes ", graph->inputs.size(), " tensors and gives ",
                      graph->outputs.size(), ", not one");
    }
    OnnxSubgraphs graphs(builder, StrCat(b.name(), "/", name));
    ONCILLA_TRY(graphs.Capture(*graph));
    const ValueId inputs[] = {x};
    const size_t wanted[] = {0};
    ONCILLA_ASSIGN(const Values results, graphs.LowerHere(*graph, inputs, wanted));
    if (results[0] == kNoValue) return Unsupported(kOnnxGraphFailed);
    const Fact &before = b.fact(x), &after = b.fact(results[0]);
    if (b.kind(results[0]) != OnnxKind::kTensor || before.dtype != after.dtype ||
        !MergeShapes(before.shape, after.shape).ok()) {
      return InvalidArgument("its ", name, " makes ", after, " of ", before);
    }
    return results[0];
  });
}

std::span<const OnnxOpRow> OnnxFlexRows() { return kRows; }

}  // namespace oncilla
