// com.microsoft's AttnLSTM: an LSTM that looks into a memory after each step (Bahdanau's attention)
// and reads what it saw there in the next one. Each direction is a loop over the canonical Lstm of
// one step.
#include <limits>

#include "engine/import/onnx/loop.h"
#include "engine/import/onnx/ops/recurrent.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

// The inputs by name.
enum Input : size_t {
  kX = 0,               // [T, N, I]
  kWeights = 1,         // [directions, 4H, I + A]
  kRecurrent = 2,       // [directions, 4H, H]
  kBias = 3,            // [directions, 8H]
  kLengths = 4,         // [N]
  kHidden = 5,          // [directions, N, H]
  kCell = 6,            // [directions, N, H]
  kPeepholes = 7,       // [directions, 3H]
  kQueryWeights = 8,    // [directions, H, K]
  kMemoryWeights = 9,   // [directions, D, K]
  kScoreWeights = 10,   // [directions, K]
  kMemory = 11,         // [N, M, D]
  kMemoryLengths = 12,  // [N]
  kLayerWeights = 13,   // [directions, D + H, A]; without them A is D
};

// One axis of an input, and which size it has.
struct Axis {
  Input input;
  int axis;
};

// Axes that have the same size. Sizes that are not known now are compared in the run, as far as ops
// would stretch one of them.
Status RequireOneSize(OnnxLowering& b, std::initializer_list<Axis> axes) {
  Dim size;
  for (const auto& [input, axis] : axes) {
    if (!b.has(input)) continue;
    const PartialShape shape = b.in_fact(input).shape;
    if (!shape.ranked() || !shape[axis].known()) continue;
    if (size.known() && size.size != shape[axis].size) {
      return InvalidArgument("input ", size_t{input}, " is ", shape, ", with ", size,
                             " along axis ", axis, " in another input");
    }
    size = shape[axis];
  }
  return {};
}

Status CheckInputs(OnnxLowering& b, const RecurrentLayer& layer) {
  constexpr int kRanks[] = {3, 3, 3, 2, 1, 3, 3, 2, 3, 3, 2, 3, 1, 3};
  if (b.inputs() > std::size(kRanks)) return DataLoss("has ", b.inputs(), " inputs");
  for (size_t i = 0; i < std::size(kRanks); ++i) {
    if (!b.has(i)) {
      const bool needed = i < kBias || (i >= kQueryWeights && i <= kMemory);
      if (needed) return DataLoss("input ", i, " is missing");
      continue;
    }
    const Fact& fact = b.in_fact(i);
    const DType dtype = i == kLengths || i == kMemoryLengths ? DType::kI32 : DType::kF32;
    if (b.in_kind(i) != OnnxKind::kTensor || fact.dtype != dtype) {
      return Unsupported("input ", i, " is ", fact, ", not ", dtype);
    }
    if (fact.shape.ranked() && fact.shape.rank() != kRanks[i]) {
      return InvalidArgument("input ", i, " has the rank ", fact.shape.rank(), ", not ", kRanks[i]);
    }
    const bool each = kRanks[i] > 1 && i != kX && i != kMemory;
    if (each && fact.shape.ranked() && fact.shape[0].known() &&
        fact.shape[0].size != layer.directions) {
      return InvalidArgument("input ", i, " is ", fact.shape, " for ", layer.directions,
                             " directions");
    }
  }
  ONCILLA_TRY(RequireOneSize(
      b, {{kX, 1}, {kLengths, 0}, {kHidden, 1}, {kCell, 1}, {kMemory, 0}, {kMemoryLengths, 0}}));
  ONCILLA_TRY(RequireOneSize(b, {{kQueryWeights, 2}, {kMemoryWeights, 2}, {kScoreWeights, 1}}));
  return RequireOneSize(b, {{kMemoryWeights, 1}, {kMemory, 2}});
}

// Fails the run unless all lengths are from 1 to the size of x along an axis.
Status CheckLengths(OnnxLowering& b, Input lengths, Input x, int axis, const std::string& name) {
  if (!b.has(lengths)) return {};
  ONCILLA_ASSIGN(ValueId most, b.Sizes(b.in(x), axis, axis + 1, name + "_most"));
  ONCILLA_ASSIGN(most, b.Cast(most, DType::kI32, name + "_most_i32"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI32, 0));
  ONCILLA_ASSIGN(const ValueId some, b.Add("Greater", {}, {b.in(lengths), zero}, name + "_some"));
  ONCILLA_ASSIGN(const ValueId less, b.Add("LessEqual", {}, {b.in(lengths), most}, name + "_less"));
  ONCILLA_ASSIGN(ValueId fits, b.Add("And", {}, {some, less}, name + "_each_fits"));
  ONCILLA_ASSIGN(fits, b.Add("ReduceAll", ReduceAttrs{.keep_dims = false}, {fits, b.Ints({0})},
                             name + "_fit"));
  const ValueId text =
      b.Constant(Tensor::Strings({}, {StrCat(name, " are not from 1 to the number of steps:")}));
  return b.AddAll(AssertAttrs{}, {fits, text, b.in(lengths), most}, name + "_check").status();
}

// Whether each of so many places is before a row's length: [N, places].
Result<ValueId> Within(OnnxLowering& b, ValueId lengths, ValueId count, const std::string& name) {
  const ValueId zero = b.Constant(Tensor::ScalarInt64(0)), one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId end, b.ToScalar(count, name + "_end"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Range", {}, {zero, end, one}, name + "_places"));
  ONCILLA_ASSIGN(ValueId upright, b.Cast(lengths, DType::kI64, name + "_lengths"));
  ONCILLA_ASSIGN(upright, b.Unsqueeze(upright, {1}, name + "_upright"));
  return b.Add("Less", {}, {places, upright}, name);
}

// What each step of a direction reads. kNoValue where there is none.
struct Reads {
  ValueId gates = kNoValue;       // [T, N, 4H]: the input's part of them
  ValueId alive = kNoValue;       // [T, N, 1]: the sample has this step
  ValueId recurrent = kNoValue;   // [H, 4H]
  ValueId seen = kNoValue;        // [A, 4H]: of what was seen
  ValueId peepholes = kNoValue;   // [3H]
  ValueId query = kNoValue;       // [H, K]
  ValueId keys = kNoValue;        // [N, M, K]
  ValueId score = kNoValue;       // [K]
  ValueId mask = kNoValue;        // [N, M]: the place is in the memory
  ValueId memory = kNoValue;      // [N, M, D]
  ValueId from_state = kNoValue;  // [H, A]
  ValueId from_seen = kNoValue;   // [D, A]
  static constexpr size_t kCount = 12;
  std::array<ValueId*, kCount> all() {
    return {&gates, &alive, &recurrent, &seen,   &peepholes,  &query,
            &keys,  &score, &mask,      &memory, &from_state, &from_seen};
  }
};

Result<ValueId> Turned(OnnxLowering& b, ValueId x, ValueId lengths, const std::string& name) {
  if (lengths == kNoValue) return b.Add("Reverse", {}, {x, b.Ints({0})}, name);
  return b.Add(ReverseSequenceAttrs{.time_axis = 0, .batch_axis = 1}, {x, lengths}, name);
}

Result<Reads> PrepareReads(OnnxLowering& b, const RecurrentLayer& layer, int64_t d,
                           const std::string& in) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const auto part = [&](Input input, const char* name) {
    return PartOfDirection(b, b.in(input), d, 0, in + name);
  };
  const auto slice = [&](ValueId x, ValueId begin, ValueId end, int64_t axis, const char* name) {
    return b.Add("Slice", {}, {x, begin, end, b.Ints({axis})}, in + name);
  };
  Reads reads;
  ONCILLA_ASSIGN(const ValueId weights, part(kWeights, "weights"));
  ONCILLA_ASSIGN(const ValueId width, b.Sizes(b.in(kX), 2, 3, in + "input_size"));
  ONCILLA_ASSIGN(const ValueId own, slice(weights, b.Ints({0}), width, 1, "input_weights"));
  ONCILLA_ASSIGN(reads.seen, slice(weights, width, b.Ints({kEnd}), 1, "seen_rows"));
  ONCILLA_ASSIGN(reads.seen, b.Transpose(reads.seen, {1, 0}, in + "seen_weights"));
  ONCILLA_ASSIGN(reads.gates,
                 b.Add(MatMulAttrs{.transpose_b = true}, {b.in(kX), own}, in + "input_gates"));
  if (b.has(kBias)) {
    ONCILLA_ASSIGN(const ValueId biases, part(kBias, "biases"));
    ONCILLA_ASSIGN(const ValueId two, b.Add(ReshapeAttrs{}, {biases, b.Ints({2, 4 * layer.units})},
                                            in + "two_biases"));
    ONCILLA_ASSIGN(const ValueId bias, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                             {two, b.Ints({0})}, in + "bias"));
    ONCILLA_ASSIGN(reads.gates, b.Add("Add", {}, {reads.gates, bias}, in + "gates"));
  }
  if (layer.attrs[static_cast<size_t>(d)].reverse) {
    ONCILLA_ASSIGN(reads.gates, Turned(b, reads.gates, b.in(kLengths), in + "gates_turned"));
  }
  if (b.has(kLengths)) {
    ONCILLA_ASSIGN(const ValueId steps, b.Sizes(b.in(kX), 0, 1, in + "steps"));
    ONCILLA_ASSIGN(reads.alive, Within(b, b.in(kLengths), steps, in + "alive"));
    ONCILLA_ASSIGN(reads.alive, b.Transpose(reads.alive, {1, 0}, in + "alive_steps"));
    ONCILLA_ASSIGN(reads.alive, b.Unsqueeze(reads.alive, {2}, in + "alive_rows"));
  }
  ONCILLA_ASSIGN(reads.recurrent, part(kRecurrent, "recurrent_rows"));
  ONCILLA_ASSIGN(reads.recurrent, b.Transpose(reads.recurrent, {1, 0}, in + "recurrent"));
  ONCILLA_ASSIGN(reads.peepholes, part(kPeepholes, "peepholes"));
  ONCILLA_ASSIGN(reads.query, part(kQueryWeights, "query"));
  ONCILLA_ASSIGN(const ValueId memory_weights, part(kMemoryWeights, "memory_weights"));
  reads.memory = b.in(kMemory);
  ONCILLA_ASSIGN(reads.keys, b.Add(MatMulAttrs{}, {reads.memory, memory_weights}, in + "keys"));
  ONCILLA_ASSIGN(reads.score, part(kScoreWeights, "score"));
  if (b.has(kMemoryLengths)) {
    ONCILLA_ASSIGN(const ValueId places, b.Sizes(reads.memory, 1, 2, in + "memory_size"));
    ONCILLA_ASSIGN(reads.mask, Within(b, b.in(kMemoryLengths), places, in + "mask"));
  }
  if (b.has(kLayerWeights)) {
    const ValueId units = b.Ints({layer.units});
    ONCILLA_ASSIGN(const ValueId both, part(kLayerWeights, "layer_weights"));
    ONCILLA_ASSIGN(reads.from_state, slice(both, b.Ints({0}), units, 0, "from_state"));
    ONCILLA_ASSIGN(reads.from_seen, slice(both, units, b.Ints({kEnd}), 0, "from_seen"));
  }
  return reads;
}

// Zeros of the sizes N (a vector of one) and `width`.
Result<ValueId> Zeros(OnnxLowering& b, ValueId samples, ValueId width, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add(ConcatAttrs{.axis = 0}, {samples, width}, name + "_sizes"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  return b.Add("Expand", {}, {zero, sizes}, name);
}

// What the state h [N, H] sees in the memory: [N, A].
Result<ValueId> LookIntoMemory(OnnxLowering& b, const Reads& reads, ValueId h) {
  ONCILLA_ASSIGN(ValueId query, b.Add(MatMulAttrs{}, {h, reads.query}, "query"));
  ONCILLA_ASSIGN(query, b.Unsqueeze(query, {1}, "query_row"));
  ONCILLA_ASSIGN(ValueId score, b.Add("Add", {}, {reads.keys, query}, "compared"));
  ONCILLA_ASSIGN(score, b.Add("Tanh", {}, {score}, "bent"));
  ONCILLA_ASSIGN(score, b.Add(MatMulAttrs{}, {score, reads.score}, "scores"));
  if (reads.mask != kNoValue) {
    ONCILLA_ASSIGN(const ValueId none,
                   b.Scalar(DType::kF32, -std::numeric_limits<double>::infinity()));
    ONCILLA_ASSIGN(score, b.Add("Where", {}, {reads.mask, score, none}, "masked"));
  }
  ONCILLA_ASSIGN(score, b.Add(SoftmaxAttrs{.axis = -1}, {score}, "weights"));
  ONCILLA_ASSIGN(score, b.Unsqueeze(score, {1}, "weights_row"));
  ONCILLA_ASSIGN(ValueId seen, b.Add(MatMulAttrs{}, {score, reads.memory}, "seen_row"));
  ONCILLA_ASSIGN(seen, b.Add("Squeeze", {}, {seen, b.Ints({1})}, "seen"));
  if (reads.from_state == kNoValue) return seen;
  ONCILLA_ASSIGN(const ValueId own, b.Add(MatMulAttrs{}, {h, reads.from_state}, "state_part"));
  ONCILLA_ASSIGN(seen, b.Add(MatMulAttrs{}, {seen, reads.from_seen}, "seen_part"));
  return b.Add("Add", {}, {own, seen}, "layer");
}

// One step: carried are h, c [N, H] and what was seen after the last step [N, A].
Result<OnnxRound> Step(OnnxLowering& b, const RecurrentAttrs& attrs, const Reads& reads,
                       ValueId number, std::span<const ValueId> carried) {
  const GatherAttrs by_step = {.axis = 0};
  ONCILLA_ASSIGN(ValueId gates, b.Add(by_step, {reads.gates, number}, "gates_of_step"));
  ONCILLA_ASSIGN(const ValueId more, b.Add(MatMulAttrs{}, {carried[2], reads.seen}, "seen_gates"));
  ONCILLA_ASSIGN(gates, b.Add("Add", {}, {gates, more}, "gates"));
  ONCILLA_ASSIGN(gates, b.Unsqueeze(gates, {0}, "one_step"));
  RecurrentAttrs forward = attrs;
  forward.reverse = false;
  ONCILLA_ASSIGN(Values state, b.AddAll("Lstm", forward,
                                        {gates, reads.recurrent, kNoValue, carried[0], carried[1],
                                         reads.peepholes},
                                        "cell"));
  ValueId h = state[1], c = state[2], y = h;
  if (reads.alive != kNoValue) {
    ONCILLA_ASSIGN(const ValueId alive, b.Add(by_step, {reads.alive, number}, "alive"));
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
    ONCILLA_ASSIGN(y, b.Add("Where", {}, {alive, h, zero}, "y"));
    ONCILLA_ASSIGN(h, b.Add("Where", {}, {alive, h, carried[0]}, "h"));
    ONCILLA_ASSIGN(c, b.Add("Where", {}, {alive, c, carried[1]}, "c"));
  }
  ONCILLA_ASSIGN(const ValueId seen, LookIntoMemory(b, reads, h));
  return OnnxRound{kNoValue, {h, c, seen}, {y}};
}

// y [T, N, H], h and c [N, H] of direction d.
Result<Values> LowerDirection(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b,
                              const RecurrentLayer& layer, int64_t d) {
  const std::string in = layer.directions == 1 ? "" : d == 0 ? "forward_" : "backward_";
  const RecurrentAttrs& attrs = layer.attrs[static_cast<size_t>(d)];
  ONCILLA_ASSIGN(Reads reads, PrepareReads(b, layer, d, in));
  OnnxLoopSpec spec;
  spec.name = StrCat(b.name(), "/", in, "steps");
  ONCILLA_ASSIGN(const ValueId steps, b.Sizes(b.in(kX), 0, 1, in + "step_count"));
  ONCILLA_ASSIGN(spec.limit, b.ToScalar(steps, in + "step_limit"));
  ONCILLA_ASSIGN(const ValueId samples, b.Sizes(b.in(kX), 1, 2, in + "samples"));
  for (const auto& [input, name] : {std::pair{kHidden, "h0"}, std::pair{kCell, "c0"}}) {
    ValueId state = kNoValue;
    if (b.has(input)) {
      ONCILLA_ASSIGN(state, PartOfDirection(b, b.in(input), d, 0, in + name));
    } else {
      ONCILLA_ASSIGN(state, Zeros(b, samples, b.Ints({layer.units}), in + name));
    }
    spec.carried.push_back(state);
  }
  ONCILLA_ASSIGN(const ValueId width, b.Sizes(reads.seen, 0, 1, in + "seen_size"));
  ONCILLA_ASSIGN(const ValueId nothing, Zeros(b, samples, width, in + "nothing_seen"));
  spec.carried.push_back(nothing);
  for (ValueId* value : reads.all()) {
    if (*value != kNoValue) spec.read.push_back(*value);
  }
  spec.round = [&](const OnnxRoundInputs& round) -> Result<OnnxRound> {
    Reads inner = reads;
    size_t next = 0;
    for (ValueId* value : inner.all()) {
      if (*value != kNoValue) *value = round.read[next++];
    }
    OnnxLowering body(round.body.graph, builder.state().context, node, spec.name, b.version(), {},
                      {nullptr, &round.body.optionals});
    return Step(body, attrs, inner, round.number, round.carried);
  };
  ONCILLA_ASSIGN(const OnnxLoopResults results,
                 AddOnnxLoop(builder.state(), builder.scope().target, spec));
  ONCILLA_ASSIGN(ValueId y, StackOnnxRounds(builder.graph(), results.lists[0], 0, OnnxType(),
                                            StrCat(spec.name, "/y")));
  if (attrs.reverse) {
    ONCILLA_ASSIGN(y, Turned(b, y, b.in(kLengths), in + "y_turned"));
  }
  return Values{y, results.carried[0], results.carried[1]};
}

}  // namespace

Result<Values> LowerOnnxAttnLstm(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b) {
  if (!b.has(kRecurrent)) return DataLoss("input ", size_t{kRecurrent}, " is missing");
  ONCILLA_ASSIGN(const RecurrentLayer layer, ReadRecurrentLayer(b));
  ONCILLA_TRY(CheckInputs(b, layer));
  ONCILLA_TRY(CheckLengths(b, kLengths, kX, 0, "lengths"));
  ONCILLA_TRY(CheckLengths(b, kMemoryLengths, kMemory, 1, "memory_lengths"));
  std::vector<Values> parts;
  for (int64_t d = 0; d < layer.directions; ++d) {
    ONCILLA_ASSIGN(Values part, LowerDirection(builder, node, b, layer, d));
    parts.push_back(std::move(part));
  }
  Values out;
  constexpr const char* kNames[] = {"y", "h", "c"};
  for (size_t k = 0; k < 3; ++k) {
    const int64_t axis = k == 0 ? 1 : 0;
    Values with_axis;
    for (size_t d = 0; d < parts.size(); ++d) {
      ONCILLA_ASSIGN(const ValueId one,
                     b.Unsqueeze(parts[d][k], {axis}, StrCat(kNames[k], "_of_direction", d)));
      with_axis.push_back(one);
    }
    out.push_back(with_axis[0]);
    if (parts.size() > 1) {
      ONCILLA_ASSIGN(out.back(), b.Add(ConcatAttrs{.axis = axis}, with_axis, kNames[k]));
    }
  }
  return out;
}

}  // namespace oncilla
