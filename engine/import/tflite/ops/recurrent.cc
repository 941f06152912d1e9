// TFLite's recurrent layers, whose states are variable tensors: they go on from run to run.
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

// The state that an input holds: what was fed, or what the last run left.
Result<ValueId> State(TfliteLowering& b, size_t input) {
  return b.has(input) ? Result<ValueId>(b.in(input)) : b.ReadState(input);
}

// The last step of [steps, batch, units] becomes the state, unless that was fed.
Status Keep(TfliteLowering& b, size_t input, ValueId all_steps) {
  if (b.has(input)) return {};
  const std::string role = StrCat("last", input);
  ONCILLA_ASSIGN(const ValueId last, b.Add("Gather", GatherAttrs{.axis = 0},
                                           {all_steps, b.Constant(Tensor::ScalarInt64(-1))}, role));
  return b.AssignState(input, last);
}

// Steps first, as the canonical ops have them.
Result<ValueId> StepsFirst(TfliteLowering& b, ValueId x, bool time_major, std::string_view role) {
  if (time_major) return x;
  return b.Transpose(x, {1, 0, 2}, role);
}

// Weights and biases are of f32. Weights of bytes are taken as the real numbers that they stand
// for: LiteRT also rounds what they are multiplied with to bytes, at each step.
Result<ValueId> Weights(TfliteLowering& b, size_t i, const std::string& role) {
  if (!b.has(i)) return Unsupported("without its input ", i);
  if (b.dtype(i) == DType::kF32) return b.in(i);
  if (b.dtype(i) != DType::kI8 || !IsQuantised(b.tensor(i))) {
    return Unsupported("weights of ", b.dtype(i));
  }
  ONCILLA_TRY(CheckTfliteHybrid(b, i));
  return TfliteDequantised(b, i, DType::kF32, role);
}

// Four inputs from `first` on (of the input, forget, cell and output gate) behind each other.
Result<ValueId> Gates(TfliteLowering& b, size_t first, const std::string& role) {
  Values gates;
  for (size_t i = 0; i < 4; ++i) {
    ONCILLA_ASSIGN(const ValueId gate, Weights(b, first + i, StrCat(role, i)));
    gates.push_back(gate);
  }
  return b.Add(ConcatAttrs{.axis = 0}, std::move(gates), role);
}

// Inputs: x, input weights (1 to 4), recurrent weights (5 to 8), peepholes (9 to 11), biases (12 to
// 15), a projection (16, 17), states (18, 19), factors of layer norms (20 to 23).
Result<Values> LowerLstm(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(0));
  ONCILLA_ASSIGN(const float cell_clip, b.Float(1));
  b.Ignore(2);  // the limit of a projection
  ONCILLA_ASSIGN(const bool time_major, b.Flag(3));
  b.Ignore(4);  // of quantised weights
  ONCILLA_ASSIGN(const bool diagonal, b.Flag(5));
  if (activation != 4) return Unsupported("with the activation ", activation, "; tanh is");
  if (diagonal) return Unsupported("with diagonal recurrent weights");
  if (!b.has(1) || !b.has(5)) return Unsupported("without an input gate");
  if (b.has(16) || b.has(17)) return Unsupported("with a projection");
  for (size_t i = 20; i < 24; ++i) {
    if (b.has(i)) return Unsupported("with layer norms");
  }
  for (size_t i = 1; i < 9; ++i) {
    if (!b.has(i)) return Unsupported("with some of the weights");
  }
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  ONCILLA_ASSIGN(const ValueId x, StepsFirst(b, b.in(0), time_major, "steps_first"));
  ONCILLA_ASSIGN(const ValueId weights, Gates(b, 1, "weights"));
  ONCILLA_ASSIGN(const ValueId rows, Gates(b, 5, "recurrent_rows"));
  ONCILLA_ASSIGN(const ValueId recurrent, b.Transpose(rows, {1, 0}, "recurrent"));
  ONCILLA_ASSIGN(const ValueId bias, Gates(b, 12, "biases"));
  ONCILLA_ASSIGN(const ValueId gates,
                 b.Add(MatMulAttrs{.transpose_b = true}, {x, weights, bias}, "gates"));
  ONCILLA_ASSIGN(const ValueId count, b.Sizes(x, 0, 1, "count"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Reshape", {}, {count, b.Ints({})}, "steps"));
  ONCILLA_ASSIGN(const ValueId h0, State(b, 18));
  ONCILLA_ASSIGN(const ValueId c0, State(b, 19));
  Values in = {gates, recurrent, steps, h0, c0};
  if (b.has(9) || b.has(10) || b.has(11)) {
    if (!b.has(9) || !b.has(10) || !b.has(11)) return Unsupported("with some of the peepholes");
    Values given;
    for (size_t i = 9; i < 12; ++i) {
      ONCILLA_ASSIGN(const ValueId peephole, Weights(b, i, StrCat("peephole", i)));
      given.push_back(peephole);
    }
    ONCILLA_ASSIGN(const ValueId peepholes,
                   b.Add(ConcatAttrs{.axis = 0}, std::move(given), "peepholes"));
    in.push_back(peepholes);
  }
  ONCILLA_ASSIGN(const Values out, b.AddAll(BlockLstmAttrs{.clip = cell_clip}, std::move(in),
                                            time_major ? "" : "layer"));
  ONCILLA_TRY(Keep(b, 18, out[6]));
  ONCILLA_TRY(Keep(b, 19, out[1]));
  return One(StepsFirst(b, out[6], time_major, ""));
}

// Inputs: x, its weights, recurrent weights, bias, the state.
Result<Values> LowerRnn(TfliteLowering& b) {
  const bool sequence = b.op() == "UNIDIRECTIONAL_SEQUENCE_RNN";
  bool time_major = true;
  if (sequence) {
    ONCILLA_ASSIGN(time_major, b.Flag(0));
  }
  const int field = sequence ? 1 : 0;
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(field));
  b.Ignore(field + 1);  // of quantised weights
  if (activation != 1 && activation != 4) return Unsupported("with the activation ", activation);
  for (size_t i : {0, 3}) {
    if (!b.has(i) || b.dtype(i) != DType::kF32) return Unsupported("of ", b.dtype(i));
  }
  ONCILLA_ASSIGN(const ValueId weights, Weights(b, 1, "weights"));
  ONCILLA_ASSIGN(const ValueId rows, Weights(b, 2, "recurrent_rows"));
  ValueId x = b.in(0);
  if (!sequence) {
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {0}, "step"));
  }
  ONCILLA_ASSIGN(x, StepsFirst(b, x, time_major, "steps_first"));
  ONCILLA_ASSIGN(const ValueId gates,
                 b.Add(MatMulAttrs{.transpose_b = true}, {x, weights, b.in(3)}, "gates"));
  ONCILLA_ASSIGN(const ValueId recurrent, b.Transpose(rows, {1, 0}, "recurrent"));
  ONCILLA_ASSIGN(const ValueId h0, State(b, 4));
  RecurrentAttrs attrs;
  attrs.activations = {activation == 1 ? "relu" : "tanh"};
  const bool inner = !sequence || !time_major;
  ONCILLA_ASSIGN(const Values out,
                 b.AddAll("Rnn", attrs, {gates, recurrent, kNoValue, h0}, inner ? "layer" : ""));
  ONCILLA_TRY(Keep(b, 4, out[0]));
  if (!sequence) return One(b.Add("Squeeze", {}, {out[0], b.Ints({0})}));
  return One(StepsFirst(b, out[0], time_major, ""));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"RNN", 4, Options::kRnn, "", LowerRnn, TfliteQuantised::kTaken},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", 1, Options::kUnidirectionalSequenceLstm, "", LowerLstm,
     TfliteQuantised::kTaken},
    {"UNIDIRECTIONAL_SEQUENCE_RNN", 4, Options::kSequenceRnn, "", LowerRnn,
     TfliteQuantised::kTaken},
};

}  // namespace

std::span<const TfliteOpRow> TfliteRecurrentRows() { return kRows; }

}  // namespace oncilla
