// ai.onnx.preview's FlexAttention without functions of the model's own on scores or weights.
#include <cmath>

#include "engine/import/onnx/ops/attention.h"

namespace oncilla {
namespace {

Result<Values> LowerFlexAttention(OnnxLowering& b) {
  for (const char* name : {"score_mod", "prob_mod"}) {
    if (b.HasAttr(name)) return Unsupported("with ", name);
  }
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
  ONCILLA_ASSIGN(const ValueId v, ShareHeads(b, b.in(2), heads, "v"));
  ONCILLA_ASSIGN(const ValueId q, b.Cast(b.in(0), precision, "q"));
  ONCILLA_ASSIGN(k, b.Cast(k, precision, "keys"));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(v, precision, "values"));
  ONCILLA_ASSIGN(const ValueId y, AddAttention(b, q, k, wide, kNoValue, scale));
  if (precision == dtype) return One(b.Add("Identity", {}, {y}));
  return One(b.Cast(y, dtype, ""));
}

constexpr OnnxOpRow kRows[] = {
    {"FlexAttention", 1, kNewestOnnxPreview, 3, "", LowerFlexAttention},
};

}  // namespace

std::span<const OnnxOpRow> OnnxFlexRows() { return kRows; }

}  // namespace oncilla
