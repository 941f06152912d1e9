// TFLite's recurrent layers. Their states are variable tensors, which persist from run to run.
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

// The state at an input: a fed value, or what the last run stored.
Result<ValueId> State(TfliteLowering& b, size_t input) {
  return b.has(input) ? Result<ValueId>(b.in(input)) : b.ReadState(input);
}

// Stores the last step of [steps, batch, units] as the state, unless the state is fed.
Status Keep(TfliteLowering& b, size_t input, ValueId all_steps) {
  if (b.has(input)) return {};
  const std::string role = StrCat("last", input);
  ONCILLA_ASSIGN(const ValueId last, b.Add("Gather", GatherAttrs{.axis = 0},
                                           {all_steps, b.Constant(Tensor::ScalarInt64(-1))}, role));
  return b.AssignState(input, last);
}

// Moves steps to the front, as the canonical ops have them.
Result<ValueId> StepsFirst(TfliteLowering& b, ValueId x, bool time_major, std::string_view role) {
  if (time_major) return x;
  return b.Transpose(x, {1, 0, 2}, role);
}

// Weights and biases as f32. 8-bit weights are dequantised; LiteRT in addition rounds the values
// that they are multiplied with to 8 bits, in each step.
Result<ValueId> Weights(TfliteLowering& b, size_t i, const std::string& role) {
  if (!b.has(i)) return Unsupported("without its input ", i);
  if (b.dtype(i) == DType::kF32) return b.in(i);
  if (b.dtype(i) != DType::kI8 || !IsQuantised(b.tensor(i))) {
    return Unsupported("weights of ", b.dtype(i));
  }
  ONCILLA_TRY(CheckTfliteHybrid(b, i));
  return TfliteDequantised(b, i, DType::kF32, role);
}

// Four inputs from `first` on, for the input, forget, cell and output gates, concatenated.
Result<ValueId> Gates(TfliteLowering& b, size_t first, const std::string& role) {
  Values gates;
  for (size_t i = 0; i < 4; ++i) {
    ONCILLA_ASSIGN(const ValueId gate, Weights(b, first + i, StrCat(role, i)));
    gates.push_back(gate);
  }
  return b.Add(ConcatAttrs{.axis = 0}, std::move(gates), role);
}

// The input indices of an LSTM: the first of each group of four weights, three peepholes, four
// biases, and so on.
struct LstmInputs {
  size_t weights, recurrent, peepholes, biases, projection, output_state, cell_state;
};

// Processes all steps of x[steps, batch, width], from the last to the first if `reverse`.
Result<ValueId> AddLstm(TfliteLowering& b, const LstmInputs& at, ValueId x, float cell_clip,
                        bool reverse, const std::string& prefix, std::string_view last) {
  for (size_t i = 0; i < 4; ++i) {
    if (!b.has(at.weights + i) || !b.has(at.recurrent + i)) {
      return Unsupported(i == 0 ? "without an input gate" : "with some of the weights");
    }
  }
  if (b.has(at.projection) || b.has(at.projection + 1)) return Unsupported("with a projection");
  const auto role = [&](std::string_view name) { return StrCat(prefix, name); };
  if (reverse) {
    ONCILLA_ASSIGN(x, b.Add("Reverse", {}, {x, b.Ints({0})}, role("steps_reversed")));
  }
  ONCILLA_ASSIGN(const ValueId weights, Gates(b, at.weights, role("weights")));
  ONCILLA_ASSIGN(const ValueId rows, Gates(b, at.recurrent, role("recurrent_rows")));
  ONCILLA_ASSIGN(const ValueId recurrent, b.Transpose(rows, {1, 0}, role("recurrent")));
  ONCILLA_ASSIGN(const ValueId bias, Gates(b, at.biases, role("biases")));
  ONCILLA_ASSIGN(const ValueId gates,
                 b.Add(MatMulAttrs{.transpose_b = true}, {x, weights, bias}, role("gates")));
  ONCILLA_ASSIGN(const ValueId count, b.Sizes(x, 0, 1, role("count")));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Reshape", {}, {count, b.Ints({})}, role("steps")));
  ONCILLA_ASSIGN(const ValueId h0, State(b, at.output_state));
  ONCILLA_ASSIGN(const ValueId c0, State(b, at.cell_state));
  Values in = {gates, recurrent, steps, h0, c0};
  const size_t p = at.peepholes;
  if (b.has(p) || b.has(p + 1) || b.has(p + 2)) {
    Values given;
    for (size_t i = p; i < p + 3; ++i) {
      if (!b.has(i)) return Unsupported("with some of the peepholes");
      ONCILLA_ASSIGN(const ValueId peephole, Weights(b, i, role(StrCat("peephole", i))));
      given.push_back(peephole);
    }
    ONCILLA_ASSIGN(const ValueId peepholes,
                   b.Add(ConcatAttrs{.axis = 0}, std::move(given), role("peepholes")));
    in.push_back(peepholes);
  }
  const std::string layer = reverse || !last.empty() ? role("layer") : "";
  ONCILLA_ASSIGN(const Values out,
                 b.AddAll(BlockLstmAttrs{.clip = cell_clip}, std::move(in), layer));
  ONCILLA_TRY(Keep(b, at.output_state, out[6]));
  ONCILLA_TRY(Keep(b, at.cell_state, out[1]));
  if (!reverse) return out[6];
  return b.Add("Reverse", {}, {out[6], b.Ints({0})}, role("layer_reversed"));
}

// Inputs: x, input weights (1 to 4), recurrent weights (5 to 8), peepholes (9 to 11), biases (12 to
// 15), a projection (16, 17), states (18, 19), and layer norm coefficients (20 to 23).
Result<Values> LowerLstm(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(0));
  ONCILLA_ASSIGN(const float cell_clip, b.Float(1));
  b.Ignore(2);  // the limit of a projection
  ONCILLA_ASSIGN(const bool time_major, b.Flag(3));
  b.Ignore(4);  // concerns quantised weights
  ONCILLA_ASSIGN(const bool diagonal, b.Flag(5));
  if (activation != 4) return Unsupported("with the activation ", activation, "; tanh is");
  if (diagonal) return Unsupported("with diagonal recurrent weights");
  for (size_t i = 20; i < 24; ++i) {
    if (b.has(i)) return Unsupported("with layer norms");
  }
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  ONCILLA_ASSIGN(const ValueId x, StepsFirst(b, b.in(0), time_major, "steps_first"));
  constexpr LstmInputs kAt = {1, 5, 9, 12, 16, 18, 19};
  ONCILLA_ASSIGN(const ValueId y,
                 AddLstm(b, kAt, x, cell_clip, false, "", time_major ? "" : "layer"));
  return One(StepsFirst(b, y, time_major, ""));
}

// The results of both directions for all steps: concatenated in one output, or as two outputs.
Result<Values> Both(TfliteLowering& b, ValueId forward, ValueId backward, bool merge,
                    bool time_major) {
  if (merge) {
    ONCILLA_ASSIGN(const ValueId all,
                   b.Add(ConcatAttrs{.axis = 2}, {forward, backward}, time_major ? "" : "merged"));
    return One(StepsFirst(b, all, time_major, ""));
  }
  if (b.outputs() != 2) return DataLoss("has ", b.outputs(), " outputs");
  ONCILLA_ASSIGN(const ValueId first, StepsFirst(b, forward, time_major, "forward"));
  ONCILLA_ASSIGN(const ValueId second, StepsFirst(b, backward, time_major, "backward"));
  return Values{first, second};
}

// Inputs: those of one direction, 1 to 17 forward and 18 to 34 backward, then the states (35 to
// 38), and the auxiliary inputs of stacked layers (39 and on).
Result<Values> LowerBidirectionalLstm(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(0));
  ONCILLA_ASSIGN(const float cell_clip, b.Float(1));
  b.Ignore(2);
  ONCILLA_ASSIGN(const bool merge, b.Flag(3));
  ONCILLA_ASSIGN(const bool time_major, b.Flag(4, true));
  b.Ignore(5);
  if (activation != 4) return Unsupported("with the activation ", activation, "; tanh is");
  for (size_t i = 39; i < b.inputs(); ++i) {
    if (b.has(i)) return Unsupported("with an auxiliary input");
  }
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  ONCILLA_ASSIGN(const ValueId x, StepsFirst(b, b.in(0), time_major, "steps_first"));
  constexpr LstmInputs kForward = {1, 5, 9, 12, 16, 35, 36};
  constexpr LstmInputs kBackward = {18, 22, 26, 29, 33, 37, 38};
  ONCILLA_ASSIGN(const ValueId forward,
                 AddLstm(b, kForward, x, cell_clip, false, "forward_", "layer"));
  ONCILLA_ASSIGN(const ValueId backward,
                 AddLstm(b, kBackward, x, cell_clip, true, "backward_", "layer"));
  return Both(b, forward, backward, merge, time_major);
}

// Processes all steps of x[steps, batch, width] with the weights, recurrent weights, bias and state
// from input `first` on.
Result<ValueId> AddRnn(TfliteLowering& b, size_t first, ValueId x, int64_t activation, bool reverse,
                       const std::string& prefix, std::string_view role) {
  if (activation != 1 && activation != 4) return Unsupported("with the activation ", activation);
  for (const size_t i : {size_t{0}, first + 2}) {
    if (!b.has(i) || b.dtype(i) != DType::kF32) return Unsupported("without numbers of f32");
  }
  if (reverse) {
    ONCILLA_ASSIGN(x, b.Add("Reverse", {}, {x, b.Ints({0})}, prefix + "steps_reversed"));
  }
  ONCILLA_ASSIGN(const ValueId weights, Weights(b, first, prefix + "weights"));
  ONCILLA_ASSIGN(const ValueId rows, Weights(b, first + 1, prefix + "recurrent_rows"));
  ONCILLA_ASSIGN(const ValueId gates, b.Add(MatMulAttrs{.transpose_b = true},
                                            {x, weights, b.in(first + 2)}, prefix + "gates"));
  ONCILLA_ASSIGN(const ValueId recurrent, b.Transpose(rows, {1, 0}, prefix + "recurrent"));
  ONCILLA_ASSIGN(const ValueId h0, State(b, first + 3));
  RecurrentAttrs attrs;
  attrs.activations = {activation == 1 ? "relu" : "tanh"};
  ONCILLA_ASSIGN(const Values out, b.AddAll("Rnn", attrs, {gates, recurrent, kNoValue, h0}, role));
  ONCILLA_TRY(Keep(b, first + 3, out[0]));
  if (!reverse) return out[0];
  return b.Add("Reverse", {}, {out[0], b.Ints({0})}, prefix + "layer_reversed");
}

// Inputs: x, its weights, recurrent weights, bias, and the state.
Result<Values> LowerRnn(TfliteLowering& b) {
  const bool sequence = b.op() == "UNIDIRECTIONAL_SEQUENCE_RNN";
  bool time_major = true;
  if (sequence) {
    ONCILLA_ASSIGN(time_major, b.Flag(0));
  }
  const int field = sequence ? 1 : 0;
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(field));
  b.Ignore(field + 1);  // concerns quantised weights
  ValueId x = b.in(0);
  if (!sequence) {
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {0}, "step"));
  }
  ONCILLA_ASSIGN(x, StepsFirst(b, x, time_major, "steps_first"));
  const bool inner = !sequence || !time_major;
  ONCILLA_ASSIGN(const ValueId y, AddRnn(b, 1, x, activation, false, "", inner ? "layer" : ""));
  if (!sequence) return One(b.Add("Squeeze", {}, {y, b.Ints({0})}));
  return One(StepsFirst(b, y, time_major, ""));
}

// Inputs: x, those of each direction (1 to 4, 5 to 8), and the auxiliary inputs of stacked layers
// (9 to 11).
Result<Values> LowerBidirectionalRnn(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool time_major, b.Flag(0));
  ONCILLA_ASSIGN(const int64_t activation, b.Enum(1));
  ONCILLA_ASSIGN(const bool merge, b.Flag(2));
  b.Ignore(3);  // concerns quantised weights
  for (size_t i = 9; i < b.inputs(); ++i) {
    if (b.has(i)) return Unsupported("with an auxiliary input");
  }
  ONCILLA_ASSIGN(const ValueId x, StepsFirst(b, b.in(0), time_major, "steps_first"));
  ONCILLA_ASSIGN(const ValueId forward,
                 AddRnn(b, 1, x, activation, false, "forward_", "forward_layer"));
  ONCILLA_ASSIGN(const ValueId backward,
                 AddRnn(b, 5, x, activation, true, "backward_", "backward_layer"));
  return Both(b, forward, backward, merge, time_major);
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"BIDIRECTIONAL_SEQUENCE_LSTM", 1, Options::kBidirectionalSequenceLstm, "",
     LowerBidirectionalLstm, TfliteQuantised::kTaken},
    {"BIDIRECTIONAL_SEQUENCE_RNN", 4, Options::kBidirectionalSequenceRnn, "", LowerBidirectionalRnn,
     TfliteQuantised::kTaken},
    {"RNN", 4, Options::kRnn, "", LowerRnn, TfliteQuantised::kTaken},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", 1, Options::kUnidirectionalSequenceLstm, "", LowerLstm,
     TfliteQuantised::kTaken},
    {"UNIDIRECTIONAL_SEQUENCE_RNN", 4, Options::kSequenceRnn, "", LowerRnn,
     TfliteQuantised::kTaken},
};

}  // namespace

std::span<const TfliteOpRow> TfliteRecurrentRows() { return kRows; }

}  // namespace oncilla
