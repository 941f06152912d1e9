// Ops on sequences (recurrences of TensorFlow, CTC decoding, audio): inference and rows.
#include "engine/ops/nn/sequence.h"

#include <cmath>

#include "engine/ops/nn/audio.h"
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

Status RequireRate(const Fact& fact) {
  if (fact.dtype != DType::kI32) return InvalidArgument("the rate must be i32, not ", fact.dtype);
  const Dim count = fact.shape.elements();
  if (!count.known() || count.size == 1) return Status();
  return InvalidArgument("Input sample_rate should be a scalar tensor, not ", fact.shape);
}

Status RequireSound(const Fact& fact, int rank, std::string_view what) {
  if (fact.dtype != DType::kF32) return InvalidArgument(what, " must be f32, not ", fact.dtype);
  return RequireRank(fact, rank, what);
}

Result<Facts> InferDecodeWav(const DecodeWavAttrs& attrs, std::span<const Fact> in) {
  if (in[0].dtype != DType::kString) {
    return InvalidArgument("a file must be a string, not ", in[0].dtype);
  }
  ONCILLA_TRY(RequireRank(in[0], 0, "contents"));
  if (attrs.channels < -1 || attrs.channels == 0 || attrs.channels > 0x7FFF || attrs.samples < -1) {
    return InvalidArgument(attrs.samples, " samples of ", attrs.channels, " channels");
  }
  const auto dim = [](int64_t size) { return size < 0 ? Dim() : Dim(size); };
  return Facts{Fact::Of(DType::kF32, PartialShape({dim(attrs.samples), dim(attrs.channels)})),
               Fact::Of(DType::kI32, PartialShape(Shape{}))};
}

Result<Facts> InferEncodeWav(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSound(in[0], 2, "audio"));
  ONCILLA_TRY(RequireRate(in[1]));
  return Facts{Fact::Of(DType::kString, PartialShape(Shape{}))};
}

Result<Facts> InferSpectrogram(const SpectrogramAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSound(in[0], 2, "input"));
  if (attrs.window < 2) return InvalidArgument("Window length too short: ", attrs.window);
  if (attrs.stride < 1) return InvalidArgument("stride must be positive, not ", attrs.stride);
  if (attrs.window > kMostWindow) return Unsupported("a window of ", attrs.window);
  Dim frames, channels;
  if (in[0].shape.ranked()) {
    channels = in[0].shape[1];
    const Dim& samples = in[0].shape[0];
    if (samples.known()) {
      const int64_t more = samples.size - attrs.window;
      frames = Dim(more < 0 ? 0 : 1 + more / attrs.stride);
    }
  }
  const Dim bins(SpectrumPoints(attrs.window) / 2 + 1);
  return Facts{Fact::Of(DType::kF32, PartialShape({channels, frames, bins}))};
}

Result<Facts> InferMfcc(const MfccAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSound(in[0], 3, "spectrogram"));
  ONCILLA_TRY(RequireRate(in[1]));
  if (!std::isfinite(attrs.upper) || !(attrs.lower >= 0) || !(attrs.upper > attrs.lower)) {
    return InvalidArgument("the frequencies reach from ", attrs.lower, " to ", attrs.upper);
  }
  if (attrs.bands < 1 || attrs.coefficients < 1 || attrs.coefficients > attrs.bands) {
    return InvalidArgument(attrs.coefficients, " coefficients of ", attrs.bands, " bands");
  }
  if (attrs.bands > (1 << 16)) return Unsupported(attrs.bands, " bands");
  PartialShape out = in[0].shape.ranked() ? in[0].shape : PartialShape::OfRank(3);
  out[2] = Dim(attrs.coefficients);
  return Facts{Fact::Of(DType::kF32, std::move(out))};
}

Result<Facts> InferWarpPath(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireRank(in[0], 2, "costs"));
  if (in[0].dtype != DType::kF32) return InvalidArgument("costs are ", in[0].dtype, ", not f32");
  return Facts{Fact::Of(DType::kI32, PartialShape({Dim(2), Dim()}))};
}

constexpr OpDef kSequenceOps[] = {
    Op<InferCtcBeam>("CtcBeam", {.inputs = {2, 2}, .data_dependent = true}),
    Op<InferBlockLstm>("BlockLstm", {.inputs = {5, 6}, .storage = StorageRule::kState}),
    Op<InferCtcGreedy>("CtcGreedy", {.inputs = {2, 2}, .data_dependent = true}),
    Op<InferDecodeWav>("DecodeWav", {.inputs = {1, 1}, .host_only = true, .data_dependent = true}),
    Op<InferEncodeWav>("EncodeWav", {.inputs = {2, 2}, .host_only = true}),
    Op<InferSpectrogram>("Spectrogram", {}),
    Op<InferMfcc>("Mfcc", {.inputs = {2, 2}}),
    Op<InferWarpPath>("WarpPath", {.inputs = {1, 1}, .host_only = true, .data_dependent = true}),
};

}  // namespace

std::span<const OpDef> SequenceOps() { return kSequenceOps; }

}  // namespace oncilla
