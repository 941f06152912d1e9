// ONNX's LSTM, GRU and RNN, and com.microsoft's LSTM with 8-bit weights. For each direction there
// is one product of all inputs with the weights, followed by the canonical op for the recurrence;
// then the directions are concatenated.
#include "engine/import/onnx/ops/recurrent.h"

#include <algorithm>
#include <cmath>

namespace oncilla {
namespace {

// ONNX's activations, with the defaults of alpha and beta; NaN if the activation has no such
// parameter.
struct ActivationRow {
  const char* name;
  const char* canonical;
  double alpha, beta;
};
constexpr ActivationRow kActivations[] = {
    {"affine", "affine", 1, 0},
    {"elu", "elu", 1, NAN},
    {"hardsigmoid", "hard_sigmoid", 0.2f, 0.5f},
    {"leakyrelu", "leaky_relu", 0.01f, NAN},
    {"relu", "relu", NAN, NAN},
    {"scaledtanh", "scaled_tanh", 1, 1},
    {"sigmoid", "sigmoid", NAN, NAN},
    {"softplus", "softplus", NAN, NAN},
    {"softsign", "softsign", NAN, NAN},
    {"tanh", "tanh", NAN, NAN},
    {"thresholdedrelu", "thresholded_relu", 1, NAN},
};

// The names, alphas and betas of all directions are in one list each. Activations without such a
// number are skipped in the lists of numbers.
Status ReadActivations(OnnxLowering& b, RecurrentLayer& layer) {
  ONCILLA_ASSIGN(const std::vector<Bytes> names, b.StringList("activations"));
  ONCILLA_ASSIGN(const std::vector<float> alphas, b.FloatList("activation_alpha"));
  ONCILLA_ASSIGN(const std::vector<float> betas, b.FloatList("activation_beta"));
  if (names.empty()) {
    if (!alphas.empty() || !betas.empty()) {
      return Unsupported("activation_alpha or activation_beta without activations");
    }
    return {};
  }
  const auto each = static_cast<size_t>(RecurrentActivations(layer.op));
  if (names.size() != each * layer.attrs.size()) {
    return InvalidArgument("there are ", names.size(), " activations, not ",
                           each * layer.attrs.size());
  }
  size_t next_alpha = 0, next_beta = 0;
  for (size_t d = 0; d < layer.attrs.size(); ++d) {
    RecurrentAttrs& attrs = layer.attrs[d];
    for (size_t i = d * each; i < (d + 1) * each; ++i) {
      std::string name(names[i]);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const ActivationRow& r) { return name == r.name; });
      if (row == std::end(kActivations)) return Unsupported("the activation ", names[i]);
      attrs.activations.emplace_back(row->canonical);
      const auto number = [](double otherwise, const std::vector<float>& given, size_t& next) {
        if (std::isnan(otherwise)) return 0.0;
        return next < given.size() ? static_cast<double>(given[next++]) : otherwise;
      };
      attrs.alphas.push_back(number(row->alpha, alphas, next_alpha));
      attrs.betas.push_back(number(row->beta, betas, next_beta));
    }
  }
  return {};
}

}  // namespace

Result<RecurrentLayer> ReadRecurrentLayer(OnnxLowering& b) {
  RecurrentLayer layer;
  layer.op = b.op() == "GRU" ? "Gru" : b.op() == "RNN" ? "Rnn" : "Lstm";
  layer.gates = RecurrentGates(layer.op);
  b.Ignore("output_sequence");  // from opset 1; the outputs that are named are computed
  layer.bytes = b.op() == "DynamicQuantizeLSTM";
  ONCILLA_ASSIGN(const std::string direction, b.String("direction", "forward"));
  if (direction == "bidirectional") {
    layer.directions = 2;
  } else if (direction == "reverse") {
    layer.first_reverse = true;
  } else if (direction != "forward") {
    return InvalidArgument("direction is '", direction, "'");
  }
  layer.attrs.resize(static_cast<size_t>(layer.directions));
  ONCILLA_ASSIGN(layer.batch_first, b.Flag("layout", false));
  ONCILLA_ASSIGN(const float clip, b.Float("clip", 0));
  bool input_forget = false, linear = false;
  if (layer.op == "Lstm") {
    ONCILLA_ASSIGN(input_forget, b.Flag("input_forget", false));
  } else if (layer.op == "Gru") {
    ONCILLA_ASSIGN(linear, b.Flag("linear_before_reset", false));
  }
  ONCILLA_TRY(ReadActivations(b, layer));
  for (size_t d = 0; d < layer.attrs.size(); ++d) {
    layer.attrs[d].reverse = layer.first_reverse || d == 1;
    layer.attrs[d].clip = clip;
    layer.attrs[d].input_forget = input_forget;
    layer.attrs[d].linear_before_reset = linear;
  }
  const PartialShape recurrent = b.in_fact(2).shape;
  ONCILLA_ASSIGN(layer.units, b.Int("hidden_size", -1));
  if (recurrent.ranked() && recurrent.rank() == 3) {
    if (recurrent[0].known() && recurrent[0].size != layer.directions) {
      return InvalidArgument("the weights are for ", recurrent[0], " directions, not ",
                             layer.directions);
    }
    // 8-bit weights are stored transposed: [directions, units, gates * units].
    const Dim given = recurrent[layer.bytes ? 1 : 2];
    if (given.known()) {
      const int64_t units = given.size;
      if (layer.units != -1 && layer.units != units) {
        return InvalidArgument("hidden_size is ", layer.units,
                               " and the recurrent weights are for ", units);
      }
      layer.units = units;
    }
  }
  if (layer.units < 1) return Unsupported("the number of hidden units is not known");
  if (layer.units > (int64_t{1} << 30)) return InvalidArgument("hidden_size is ", layer.units);
  return layer;
}

Result<ValueId> PartOfDirection(OnnxLowering& b, ValueId all, int64_t d, int64_t axis,
                                std::string role) {
  if (all == kNoValue) return kNoValue;
  return b.Add(GatherAttrs{.axis = axis}, {all, b.Constant(Tensor::ScalarInt64(d))}, role);
}

namespace {

Result<ValueId> Slice(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, std::string role) {
  return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({0})}, role);
}

// The part of direction d of the scales or zero points of 8-bit weights: one number, or one per
// column.
Result<ValueId> PartOfScales(OnnxLowering& b, size_t input, int64_t d, const std::string& role) {
  if (!b.has(input)) return DataLoss("input ", input, " is missing, a scale or zero point");
  return PartOfDirection(b, b.in(input), d, 0, role);
}

// The exact product of x with 8-bit weights, scaled: what ONNX Runtime adds to the gates.
Result<ValueId> ByteGates(OnnxLowering& b, const RecurrentLayer& layer, int64_t d, ValueId weights,
                          const std::string& in) {
  ONCILLA_ASSIGN(const ValueId scale, PartOfScales(b, 8, d, in + "weight_scale"));
  ONCILLA_ASSIGN(const ValueId zero, PartOfScales(b, 9, d, in + "weight_zero"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add(MatMulIntegerAttrs{},
                                          {layer.x.x, weights, layer.x.zero, zero}, in + "sums"));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, in + "real"));
  ONCILLA_ASSIGN(const ValueId factor, b.Add("Mul", {}, {layer.x.scale, scale}, in + "factor"));
  return b.Add("Mul", {}, {real, factor}, in + "scaled");
}

// In ONNX Runtime the last state of samples without steps is zero, even if an initial state is
// given.
Status ClearWithoutSteps(OnnxLowering& b, const std::string& in, Values& out) {
  if (!b.has(4)) return {};
  ValueId some = kNoValue;
  for (size_t k = 1; k < out.size(); ++k) {
    if (!b.has(4 + k) || !b.wants(k)) continue;
    if (some == kNoValue) {
      ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(4), 0));
      ONCILLA_ASSIGN(some, b.Add("Greater", {}, {b.in(4), zero}, in + "has_steps"));
      ONCILLA_ASSIGN(some, b.Unsqueeze(some, {1}, in + "rows_with_steps"));
    }
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.fact(out[k]).dtype, 0));
    ONCILLA_ASSIGN(out[k],
                   b.Add("Where", {}, {some, out[k], zero}, StrCat(in, "state_with_steps", k)));
  }
  return {};
}

// The outputs of one direction: y[T, N, H], h[N, H] and for an Lstm c[N, H].
Result<Values> LowerDirection(OnnxLowering& b, const RecurrentLayer& layer, int64_t d, ValueId x) {
  const std::string in = layer.directions == 2 ? (d == 0 ? "forward_" : "backward_") : "";
  const int64_t width = layer.gates * layer.units;
  ONCILLA_ASSIGN(const ValueId weights, PartOfDirection(b, b.in(1), d, 0, in + "weights"));
  ONCILLA_ASSIGN(ValueId recurrent, PartOfDirection(b, b.in(2), d, 0, in + "recurrent_rows"));
  // 8-bit weights are stored transposed.
  if (!layer.bytes) {
    ONCILLA_ASSIGN(recurrent, b.Transpose(recurrent, {1, 0}, in + "recurrent"));
  }
  ONCILLA_ASSIGN(const ValueId biases, PartOfDirection(b, b.in(3), d, 0, in + "biases"));
  const bool linear = layer.attrs[0].linear_before_reset;
  ValueId bias = kNoValue, candidate = kNoValue;
  if (biases != kNoValue) {
    ONCILLA_ASSIGN(const ValueId own, Slice(b, biases, 0, width, in + "input_bias"));
    if (linear) {
      // The reset gate scales the recurrent term including the candidate's recurrent bias.
      const int64_t first = 2 * layer.units;
      ONCILLA_ASSIGN(const ValueId added,
                     Slice(b, biases, width, width + first, in + "recurrent_bias"));
      ONCILLA_ASSIGN(candidate, Slice(b, biases, width + first, 2 * width, in + "candidate_bias"));
      ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.fact(biases).dtype, 0));
      ONCILLA_ASSIGN(const ValueId padded,
                     b.Add("Pad", {}, {added, b.Ints({0, layer.units}), zero}, in + "padded_bias"));
      ONCILLA_ASSIGN(bias, b.Add("Add", {}, {own, padded}, in + "bias"));
    } else {
      ONCILLA_ASSIGN(const ValueId added,
                     Slice(b, biases, width, 2 * width, in + "recurrent_bias"));
      ONCILLA_ASSIGN(bias, b.Add("Add", {}, {own, added}, in + "bias"));
    }
  }
  ValueId gates = kNoValue;
  if (layer.bytes) {
    ONCILLA_ASSIGN(gates, ByteGates(b, layer, d, weights, in));
    if (bias != kNoValue) {
      ONCILLA_ASSIGN(gates, b.Add("Add", {}, {gates, bias}, in + "gates"));
    }
  } else {
    ONCILLA_ASSIGN(gates,
                   b.Add(MatMulAttrs{.transpose_b = true}, {x, weights, bias}, in + "gates"));
  }
  const int64_t state_axis = layer.batch_first ? 1 : 0;
  ONCILLA_ASSIGN(const ValueId h0, PartOfDirection(b, b.in(5), d, state_axis, in + "h0"));
  Values inputs = {gates, recurrent, b.in(4), h0};
  if (layer.op == "Lstm") {
    ONCILLA_ASSIGN(const ValueId c0, PartOfDirection(b, b.in(6), d, state_axis, in + "c0"));
    ONCILLA_ASSIGN(const ValueId peepholes, PartOfDirection(b, b.in(7), d, 0, in + "peepholes"));
    inputs.insert(inputs.end(), {c0, peepholes});
    if (layer.bytes) {
      ONCILLA_ASSIGN(const ValueId scale, PartOfScales(b, 10, d, in + "recurrent_scale"));
      ONCILLA_ASSIGN(const ValueId zero, PartOfScales(b, 11, d, in + "recurrent_zero"));
      inputs.insert(inputs.end(), {scale, zero});
    }
  } else if (layer.op == "Gru") {
    inputs.push_back(candidate);
  }
  const std::string op = layer.bytes ? "ByteLstm" : layer.op;
  ONCILLA_ASSIGN(Values out, b.AddAll(op, layer.attrs[static_cast<size_t>(d)], std::move(inputs),
                                      in + "layer"));
  ONCILLA_TRY(ClearWithoutSteps(b, in, out));
  return out;
}

Result<Values> LowerRecurrent(OnnxLowering& b) {
  ONCILLA_ASSIGN(RecurrentLayer layer, ReadRecurrentLayer(b));
  ValueId x = b.in(0);
  if (layer.bytes) {
    // Steps that no sample has do not count for the range.
    ValueId used = x;
    if (b.has(4)) {
      ONCILLA_ASSIGN(ValueId longest, b.Add("ReduceMax", ReduceAttrs{.keep_dims = true},
                                            {b.in(4), b.Ints({0})}, "longest"));
      ONCILLA_ASSIGN(longest, b.Cast(longest, DType::kI64, "longest_i64"));
      ONCILLA_ASSIGN(longest, b.Add("Max", {}, {longest, b.Ints({1})}, "used_steps"));
      ONCILLA_ASSIGN(used, b.Add("Slice", {}, {x, b.Ints({0}), longest, b.Ints({0})}, "x_used"));
    }
    ONCILLA_ASSIGN(layer.x, AddDynamicBytes(b, x, "x_bytes", used));
  }
  if (layer.batch_first) {
    ONCILLA_ASSIGN(x, b.Transpose(x, {1, 0, 2}, "steps_first"));
  }
  std::vector<Values> parts;
  for (int64_t d = 0; d < layer.directions; ++d) {
    ONCILLA_ASSIGN(Values part, LowerDirection(b, layer, d, x));
    parts.push_back(std::move(part));
  }
  Values out;
  constexpr const char* kNames[] = {"y", "h", "c"};
  for (size_t k = 0; k < parts[0].size(); ++k) {
    out.push_back(kNoValue);
    if (!b.wants(k)) continue;
    // The axis of directions comes before the samples or after them.
    const std::string name = kNames[k];
    const int64_t axis = (k == 0 ? 1 : 0) + (layer.batch_first ? 1 : 0);
    const bool whole = layer.directions == 1 && !(k == 0 && layer.batch_first);
    ValueId side_by_side = kNoValue;
    Values with_axis;
    for (size_t d = 0; d < parts.size(); ++d) {
      ONCILLA_ASSIGN(const ValueId one,
                     b.Unsqueeze(parts[d][k], {axis}, whole ? name : StrCat(name, d)));
      with_axis.push_back(one);
    }
    side_by_side = with_axis[0];
    if (with_axis.size() > 1) {
      ONCILLA_ASSIGN(side_by_side, b.Add(ConcatAttrs{.axis = axis}, with_axis, name));
    }
    if (k == 0 && layer.batch_first) {
      // Here y is [T, N, directions, H].
      ONCILLA_ASSIGN(side_by_side, b.Transpose(side_by_side, {1, 0, 2, 3}, "samples_first"));
    }
    out.back() = side_by_side;
  }
  return out;
}

constexpr OnnxOpRow kRows[] = {
    {"GRU", 1, kNewestOnnxOpset, 3, "", LowerRecurrent},
    {"LSTM", 1, kNewestOnnxOpset, 3, "", LowerRecurrent},
    {"RNN", 1, kNewestOnnxOpset, 3, "", LowerRecurrent},
};

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"DynamicQuantizeLSTM", 1, kNewestOnnxMicrosoft, 3, "", LowerRecurrent},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftRecurrentRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxRecurrentRows() { return kRows; }

}  // namespace oncilla
