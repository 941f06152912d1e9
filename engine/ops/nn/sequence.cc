// Ops that go through sequences: inference and rows.
#include "engine/ops/nn/sequence.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferBlockLstm(const BlockLstmAttrs&, std::span<const Fact> in) {
  const DType dtype = in[0].dtype;
  ONCILLA_TRY(RequireFloat(in[0], "gates"));
  ONCILLA_TRY(RequireInteger(in[2], "steps"));
  ONCILLA_TRY(RequireRank(in[0], 3, "gates"));
  std::vector<Dim> gates(3);
  if (in[0].shape.ranked()) gates = in[0].shape.dims();
  Dim hidden;
  if (gates[2].known()) {
    if (gates[2].size % 4 != 0) return InvalidArgument("gates have ", gates[2].size, " columns");
    hidden = Dim(gates[2].size / 4);
  }
  const auto fits = [&](size_t i, PartialShape shape, std::string_view what) -> Status {
    if (in[i].absent()) return {};
    if (in[i].dtype != dtype) return InvalidArgument(what, " is ", in[i].dtype, ", not ", dtype);
    const auto merged = MergeShapes(in[i].shape, shape);
    return merged.ok() ? Status() : In(merged.status(), what);
  };
  const Dim three = hidden.known() ? Dim(3 * hidden.size) : Dim();
  ONCILLA_TRY(fits(1, PartialShape({hidden, gates[2]}), "recurrent"));
  ONCILLA_TRY(fits(3, PartialShape({gates[1], hidden}), "h0"));
  ONCILLA_TRY(fits(4, PartialShape({gates[1], hidden}), "c0"));
  if (in.size() > 5) ONCILLA_TRY(fits(5, PartialShape({three}), "peepholes"));
  const Dim steps = in[2].shape.elements();
  if (steps.known() && steps.size != 1)
    return InvalidArgument("steps has ", steps.size, " numbers");
  return Facts(7, Fact::Of(dtype, PartialShape({gates[0], gates[1], hidden})));
}

Result<Facts> InferCtcGreedy(const CtcGreedyAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "inputs"));
  ONCILLA_TRY(RequireInteger(in[1], "sequence_length"));
  ONCILLA_TRY(RequireRank(in[0], 3, "inputs"));
  ONCILLA_TRY(RequireRank(in[1], 1, "sequence_length"));
  Dim batch;
  if (in[0].shape.ranked()) {
    batch = in[0].shape[1];
    const Dim classes = in[0].shape[2];
    if (classes.known() && (attrs.blank >= classes.size || attrs.blank < -classes.size)) {
      return InvalidArgument("blank_index ", attrs.blank, " is out of range for ", classes.size,
                             " classes");
    }
  }
  const auto merged = MergeShapes(in[1].shape, PartialShape({batch}));
  if (!merged.ok()) return In(merged.status(), "sequence_length");
  return Facts{Fact::Of(DType::kI64, PartialShape({Dim(), Dim(2)})),
               Fact::Of(DType::kI64, PartialShape::OfRank(1)),
               Fact::Of(DType::kI64, PartialShape({Dim(2)})),
               Fact::Of(in[0].dtype, PartialShape({batch, Dim(1)}))};
}

Result<Facts> InferCtcBeam(const CtcBeamAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "inputs"));
  ONCILLA_TRY(RequireInteger(in[1], "sequence_length"));
  ONCILLA_TRY(RequireRank(in[0], 3, "inputs"));
  ONCILLA_TRY(RequireRank(in[1], 1, "sequence_length"));
  if (attrs.paths < 1 || attrs.beam < attrs.paths || attrs.beam > (int64_t{1} << 20)) {
    return InvalidArgument("a beam of ", attrs.beam, " for ", attrs.paths, " paths");
  }
  const Dim batch = in[0].shape.ranked() ? in[0].shape[1] : Dim();
  if (in[0].shape.ranked() && in[0].shape[2].size == 0) return InvalidArgument("no classes");
  const auto merged = MergeShapes(in[1].shape, PartialShape({batch}));
  if (!merged.ok()) return In(merged.status(), "sequence_length");
  const auto paths = static_cast<size_t>(attrs.paths);
  Facts out(paths, Fact::Of(DType::kI64, PartialShape({Dim(), Dim(2)})));
  out.insert(out.end(), paths, Fact::Of(DType::kI64, PartialShape::OfRank(1)));
  out.insert(out.end(), paths, Fact::Of(DType::kI64, PartialShape({Dim(2)})));
  out.push_back(Fact::Of(in[0].dtype, PartialShape({batch, Dim(attrs.paths)})));
  return out;
}

constexpr OpDef kSequenceOps[] = {
    Op<InferCtcBeam>("CtcBeam", {.inputs = {2, 2}, .data_dependent = true}),
    Op<InferBlockLstm>("BlockLstm", {.inputs = {5, 6}, .storage = StorageRule::kState}),
    Op<InferCtcGreedy>("CtcGreedy", {.inputs = {2, 2}, .data_dependent = true}),
};

}  // namespace

std::span<const OpDef> SequenceOps() { return kSequenceOps; }

}  // namespace oncilla
