// TensorFlow's fused recurrent cells and layers, and decoders of their results.
#include "engine/import/tf/lowering.h"
#include "engine/ops/nn/audio.h"

namespace oncilla {
namespace {

// Reorders columns from i, c, f, o to i, f, c, o.
Result<ValueId> Reordered(TfLowering& b, ValueId x, std::string_view role) {
  const std::string name(role);
  ONCILLA_ASSIGN(const Values parts,
                 b.AddAll(SplitAttrs{.axis = -1, .parts = 4}, {x}, name + "_gates"));
  return b.Add(ConcatAttrs{.axis = -1}, {parts[0], parts[2], parts[1], parts[3]}, role);
}

// LSTMBlockCell is a single step of BlockLSTM.
Result<Values> LowerLstm(TfLowering& b) {
  const bool cell = b.op() == "LSTMBlockCell", second = b.op() == "BlockLSTMV2";
  ONCILLA_ASSIGN(const float clip, b.attrs().Float("cell_clip"));
  ONCILLA_ASSIGN(const bool peeps, b.attrs().Bool("use_peephole"));
  BlockLstmAttrs attrs = {.clip = clip};
  if (!second) {
    ONCILLA_ASSIGN(attrs.forget, b.attrs().Float("forget_bias"));
  }
  const size_t first = cell ? 0 : 1;
  ValueId x = b.in(first), w = b.in(first + 3), bias = b.in(first + 7);
  const ValueId c0 = b.in(first + 1), h0 = b.in(first + 2);
  const PartialShape& state = b.fact(h0).shape;
  const Dim rows = b.fact(w).shape.ranked() ? b.fact(w).shape[0] : Dim();
  Dim hidden = state.ranked() && state.rank() == 2 ? state[1] : Dim();
  if (!hidden.known() && b.fact(w).shape.ranked() && b.fact(w).shape[1].known()) {
    hidden = Dim(b.fact(w).shape[1].size / 4);
  }
  if (!rows.known() || !hidden.known() || hidden.size > rows.size) {
    return Unsupported("the number of its units is not known");
  }
  if (!second) {
    ONCILLA_ASSIGN(w, Reordered(b, w, "w"));
    ONCILLA_ASSIGN(bias, Reordered(b, bias, "b"));
  }
  const int64_t inputs = rows.size - hidden.size;
  ONCILLA_ASSIGN(const ValueId w_in,
                 b.Add("Slice", {}, {w, b.Ints({0}), b.Ints({inputs}), b.Ints({0})}, "w_in"));
  ONCILLA_ASSIGN(
      const ValueId w_state,
      b.Add("Slice", {}, {w, b.Ints({inputs}), b.Ints({rows.size}), b.Ints({0})}, "w_state"));
  if (cell) {
    ONCILLA_ASSIGN(x, b.Add("Unsqueeze", {}, {x, b.Ints({0})}, "step"));
  }
  ONCILLA_ASSIGN(ValueId gates, b.Add("MatMul", {}, {x, w_in}, "product"));
  ONCILLA_ASSIGN(gates, b.Add("Add", {}, {gates, bias}, "gates"));
  const ValueId steps = cell ? b.Constant(Tensor::ScalarInt64(1)) : b.in(0);
  Values in = {gates, w_state, steps, h0, c0};
  if (peeps) {
    ONCILLA_ASSIGN(const ValueId peepholes,
                   b.Add(ConcatAttrs{.axis = 0},
                         {b.in(first + 4), b.in(first + 5), b.in(first + 6)}, "peepholes"));
    in.push_back(peepholes);
  }
  ONCILLA_ASSIGN(Values out, b.AddAll(attrs, std::move(in), cell ? "cell" : ""));
  for (size_t i = 0; cell && i < out.size(); ++i) {
    ONCILLA_ASSIGN(out[i], b.Add("Squeeze", {}, {out[i], b.Ints({0})}, StrCat("output", i)));
  }
  return out;
}

Result<Values> LowerGruCell(TfLowering& b) {
  const ValueId x = b.in(0), h = b.in(1);
  const auto gate = [&](ValueId state, size_t w, size_t bias, std::string_view activation,
                        const std::string& role) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId both, b.Add(ConcatAttrs{.axis = 1}, {x, state}, role + "_in"));
    ONCILLA_ASSIGN(ValueId y, b.Add("MatMul", {}, {both, b.in(w)}, role + "_product"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(bias)}, role + "_sum"));
    return b.Add(activation, {}, {y}, role);
  };
  ONCILLA_ASSIGN(const ValueId ru, gate(h, 2, 4, "Sigmoid", "ru"));
  ONCILLA_ASSIGN(const Values parts, b.AddAll(SplitAttrs{.axis = 1, .parts = 2}, {ru}, "parts"));
  ONCILLA_ASSIGN(const ValueId reset, b.Add("Mul", {}, {h, parts[0]}, "reset"));
  ONCILLA_ASSIGN(const ValueId c, gate(reset, 3, 5, "Tanh", "c"));
  // The new state (1 - u) c + u h.
  ONCILLA_ASSIGN(const ValueId change, b.Add("Sub", {}, {h, c}, "change"));
  ONCILLA_ASSIGN(const ValueId kept, b.Add("Mul", {}, {parts[1], change}, "kept"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Add", {}, {c, kept}));
  return Values{parts[0], parts[1], c, y};
}

Result<Values> LowerCtcGreedy(TfLowering& b) {
  ONCILLA_ASSIGN(const bool merge, b.attrs().Bool("merge_repeated"));
  ONCILLA_ASSIGN(const int64_t blank, b.attrs().Int("blank_index"));
  return b.AddAll(CtcGreedyAttrs{.blank = blank, .merge = merge}, {b.in(0), b.in(1)});
}

Result<Values> LowerCtcBeam(TfLowering& b) {
  CtcBeamAttrs attrs;
  ONCILLA_ASSIGN(attrs.beam, b.attrs().Int("beam_width"));
  ONCILLA_ASSIGN(attrs.paths, b.attrs().Int("top_paths"));
  ONCILLA_ASSIGN(attrs.merge, b.attrs().Bool("merge_repeated"));
  return b.AddAll("CtcBeam", WriteAttrs(attrs), {b.in(0), b.in(1)});
}

Result<Values> LowerDecodeWav(TfLowering& b) {
  DecodeWavAttrs attrs;
  ONCILLA_ASSIGN(attrs.channels, b.attrs().Int("desired_channels"));
  ONCILLA_ASSIGN(attrs.samples, b.attrs().Int("desired_samples"));
  return b.AddAll("DecodeWav", attrs, {b.in(0)});
}

Result<Values> LowerSpectrogram(TfLowering& b) {
  SpectrogramAttrs attrs;
  ONCILLA_ASSIGN(attrs.window, b.attrs().Int("window_size"));
  ONCILLA_ASSIGN(attrs.stride, b.attrs().Int("stride"));
  ONCILLA_ASSIGN(attrs.squared, b.attrs().Bool("magnitude_squared"));
  return One(b.Add("Spectrogram", attrs, {b.in(0)}));
}

Result<Values> LowerMfcc(TfLowering& b) {
  MfccAttrs attrs;
  ONCILLA_ASSIGN(attrs.upper, b.attrs().Float("upper_frequency_limit"));
  ONCILLA_ASSIGN(attrs.lower, b.attrs().Float("lower_frequency_limit"));
  ONCILLA_ASSIGN(attrs.bands, b.attrs().Int("filterbank_channel_count"));
  ONCILLA_ASSIGN(attrs.coefficients, b.attrs().Int("dct_coefficient_count"));
  return One(b.Add("Mfcc", attrs, {b.in(0), b.in(1)}));
}

constexpr TfOpRow kRows[] = {
    {"AudioSpectrogram", 1, "", LowerSpectrogram},
    {"BlockLSTM", 9, "", LowerLstm},
    {"BlockLSTMV2", 9, "", LowerLstm},
    {"CTCBeamSearchDecoder", 2, "", LowerCtcBeam},
    {"CTCGreedyDecoder", 2, "", LowerCtcGreedy},
    {"DecodeWav", 1, "", LowerDecodeWav},
    {"EncodeWav", 2, "EncodeWav"},
    {"GRUBlockCell", 6, "", LowerGruCell},
    {"LSTMBlockCell", 8, "", LowerLstm},
    {"Mfcc", 2, "", LowerMfcc},
};

}  // namespace

std::span<const TfOpRow> TfRecurrentRows() { return kRows; }

}  // namespace oncilla
