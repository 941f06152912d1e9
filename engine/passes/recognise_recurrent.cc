// Loops that step through a recurrent layer, as Keras writes LSTM, GRU and SimpleRNN, become Lstm,
// Gru or Rnn after one product of all inputs. The loop yields weights and biases
// (recurrent_loop.h). Which gate each block of them belongs to is proved numerically: one step of
// the body and of each possible layer are evaluated at random points.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/ops/control.h"
#include "engine/ops/nn/recurrent.h"
#include "engine/passes/pass.h"
#include "engine/passes/recurrent_loop.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

using Floats = std::vector<float>;

Floats FloatsOf(const Tensor& tensor) {  // may be unaligned in a mapped file
  Floats out(static_cast<size_t>(tensor.elements()));
  std::memcpy(out.data(), tensor.bytes().data(), tensor.bytes().size());
  return out;
}

Tensor Matrix(int64_t rows, int64_t columns, const Floats& values) {
  return Tensor::Of<float>(DType::kF32, Shape{rows, columns}, values);
}

// One way to interpret a loop: block order[k] of the weights' columns is gate k of the op.
struct Layer {
  std::string_view op;
  AttrMap attrs;
  std::vector<int> order;
  Floats bias, candidate_bias;  // gates in the op's order
};

// Reorders columns in blocks of `units`: block order[k] moves to k.
Floats Ordered(const Floats& values, const std::vector<int>& order, int64_t units) {
  const size_t block = static_cast<size_t>(units), width = order.size() * block;
  Floats out(values.size());
  for (size_t row = 0; row < values.size() / width; ++row) {
    for (size_t k = 0; k < order.size(); ++k) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>(
                                             row * width + static_cast<size_t>(order[k]) * block);
      std::copy_n(from, units, out.begin() + static_cast<std::ptrdiff_t>(row * width + k * block));
    }
  }
  return out;
}

Floats Sum(const std::vector<Floats>& vectors, int64_t width) {
  Floats sum(static_cast<size_t>(width));
  for (const Floats& v : vectors) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += v[i];
  }
  return sum;
}

// Adds the layer to a graph or a patch: add(op, attrs, inputs), constant(tensor).
// x[T, N, F], h0[N, H], c0[N, H] (Lstm) -> y[T, N, H], h[N, H], c[N, H].
template <class Add, class Constant>
Result<std::vector<ValueId>> AddLayer(const RecurrentLoop& loop, const Layer& layer, ValueId x,
                                      ValueId h0, ValueId c0, Add&& add, Constant&& constant) {
  const int64_t width = loop.gates * loop.units;
  auto ordered = [&](const Tensor& weights) {
    const Floats values = Ordered(FloatsOf(weights), layer.order, loop.units);
    return constant(Matrix(weights.shape()[0], width, values));
  };
  const ValueId weights = ordered(loop.input_weights);
  const ValueId bias = constant(Tensor::Of<float>(DType::kF32, Shape{width}, layer.bias));
  ONCILLA_ASSIGN(const auto gates, add("MatMul", AttrMap(), {x, weights, bias}));
  std::vector<ValueId> in = {gates[0], ordered(loop.recurrent_weights), kNoValue, h0};
  if (layer.op == "Lstm") in.push_back(c0);
  if (!layer.candidate_bias.empty()) {
    in.push_back(constant(Tensor::Of<float>(DType::kF32, Shape{loop.units}, layer.candidate_bias)));
  }
  return add(layer.op, layer.attrs, std::move(in));
}

// All interpretations of a loop, the usual ones first.
class Readings {
 public:
  explicit Readings(const RecurrentLoop& loop) : loop_(loop) {}

  std::vector<Layer> All() {
    if (loop_.gates == 1 && loop_.states.size() == 1) Add("Rnn", {0});
    if (loop_.gates == 4 && loop_.states.size() == 2) AddLstms();
    if (loop_.gates == 3 && loop_.states.size() == 1) AddGrus();
    return std::move(layers_);
  }

 private:
  Layer& Add(std::string_view op, const std::vector<int>& order) {
    const Floats bias = Sum(loop_.biases, loop_.gates * loop_.units);
    Layer layer;
    layer.op = op;
    layer.order = order;
    layer.bias = Ordered(bias, order, loop_.units);
    layers_.push_back(std::move(layer));
    return layers_.back();
  }

  // Keras stores i, f, c, o; TensorFlow 1 stores i, c, f, o and adds a number to f.
  void AddLstms() {
    std::vector<double> forget = {0};
    forget.insert(forget.end(), loop_.scalars.begin(), loop_.scalars.end());
    for (const std::vector<int>& order :
         {std::vector<int>{0, 3, 1, 2}, std::vector<int>{0, 3, 2, 1},
          std::vector<int>{0, 1, 2, 3}}) {
      for (double more : forget) {
        Layer& layer = Add("Lstm", order);
        for (int64_t j = 0; j < loop_.units; ++j) {
          layer.bias[static_cast<size_t>(2 * loop_.units + j)] += static_cast<float>(more);
        }
      }
    }
  }

  // Keras stores z, r, h; TensorFlow 1 stores r, z, h. If r resets after the product and there are
  // two biases, one of them belongs to that product.
  void AddGrus() {
    const size_t candidate = static_cast<size_t>(2 * loop_.units);
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, std::vector<int>{1, 0, 2}}) {
      const size_t inside = loop_.resets_before ? 0 : loop_.biases.size();
      for (size_t k = 0; k <= inside; ++k) {  // which bias is inside; past the end: none
        Layer& layer = Add("Gru", order);
        if (loop_.resets_before) continue;
        layer.attrs["linear_before_reset"] = true;
        if (k == inside) continue;
        const Floats& bias = loop_.biases[inside - 1 - k];
        layer.candidate_bias.assign(bias.begin() + static_cast<std::ptrdiff_t>(candidate),
                                    bias.end());
        for (size_t j = 0; j < layer.candidate_bias.size(); ++j) {
          layer.bias[candidate + j] -= layer.candidate_bias[j];
        }
      }
    }
  }

  const RecurrentLoop& loop_;
  std::vector<Layer> layers_;
};

// Points at which the arguments of the gates are about 1, where no activation is flat.
class Points {
 public:
  Tensor Draw(int64_t rows, int64_t columns, const Tensor& weights) {
    double squares = 0;
    for (float w : FloatsOf(weights)) squares += double{w} * w;
    const double spread = std::sqrt(squares / static_cast<double>(weights.shape()[1]));
    const double scale = spread > 0 ? std::min(1.7 / spread, 1e4) : 1;
    Floats values(static_cast<size_t>(rows * columns));
    for (float& v : values) v = static_cast<float>(scale * (2 * random_() / 4294967295.0 - 1));
    return Matrix(rows, columns, values);
  }

 private:
  std::mt19937 random_{1};
};

class RecurrentRecogniser {
 public:
  RecurrentRecogniser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), cpu_(*context.devices[0]), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.node(NodeId{n}).op->name == "While") ONCILLA_TRY(Recognise(NodeId{n}));
    }
    return Status();
  }

 private:
  Status Recognise(NodeId id) {
    const Node& node = graph_.node(id);
    ONCILLA_ASSIGN(const auto attrs, ReadAttrs<WhileAttrs>(node.attrs));
    const auto cond = context_.functions->find(attrs.cond);
    const auto found = context_.functions->find(attrs.body);
    if (cond == context_.functions->end() || found == context_.functions->end()) return Status();
    // First fold the constants that the body computes.
    static constexpr Pass kFolding[] = {{"remove no-ops", &RemoveNoOps},
                                        {"fold constants", &FoldConstants}};
    ONCILLA_ASSIGN(const Graph body, RunPasses(found->second, kFolding, context_, {}));
    const auto loop = ReadRecurrentLoop(cond->second, body, graph_.FactsOf(node.inputs));
    if (!loop.has_value() || !FitsAround(node, *loop)) return Status();
    for (const Layer& layer : Readings(*loop).All()) {
      ONCILLA_ASSIGN(const bool same, Matches(*loop, layer));
      if (same) return Replace(id, *loop, layer);
    }
    return Status();
  }

  // Whether the nodes around the loop give it as many steps as there are inputs, and take as many
  // results.
  bool FitsAround(const Node& node, const RecurrentLoop& loop) {
    const Node* list = ProducerIf(graph_, Input(node, loop.inputs), "ListFromTensor");
    if (list == nullptr) return false;
    x_ = list->inputs[0];
    const Fact& x = graph_.fact(x_);
    if (x.dtype != DType::kF32 || !x.shape.ranked() || x.shape.rank() != 3 ||
        x.shape[2].size != loop.features) {
      return false;
    }
    // A state of one sample that the first step broadcasts to all samples does not fit the layer.
    for (int n : loop.states) {
      const PartialShape& state = graph_.fact(Input(node, n)).shape;
      if (!state.ranked() || state.rank() != 2) return false;
      const bool one = state[0].known() && state[0].size == 1;
      if (one != (x.shape[1].known() && x.shape[1].size == 1) ||
          !MergeShapes(state, PartialShape({x.shape[1], Dim(loop.units)})).ok()) {
        return false;
      }
    }
    steps_ = x.shape[0];
    limit_ = kNoValue;
    for (int64_t limit : loop.limits) {
      if (!Dim(limit).Same(steps_)) return false;
    }
    for (int value : loop.limit_values) {
      limit_ = Input(node, value);
      if (!IsSteps(limit_)) return false;
    }
    // Whether the number of steps is available as a value, which readers of the counters need.
    const bool told = steps_.known() || limit_ != kNoValue;
    for (int n : loop.counters) {
      if (uses_.Count(Output(node, n)) > 0 && !told) return false;
    }
    for (int n : loop.results) {
      const Node* reserve = ProducerIf(graph_, Input(node, n), "ListReserve");
      if (reserve == nullptr || !IsSteps(reserve->inputs[0])) return false;
    }
    return loop.lasts.empty() || told;
  }

  static ValueId Input(const Node& node, int n) { return node.inputs[static_cast<size_t>(n)]; }
  static ValueId Output(const Node& node, int n) { return node.outputs[static_cast<size_t>(n)]; }

  bool IsSteps(ValueId number) const {
    const auto ints = KnownInts(graph_.fact(number));
    return ints.has_value() && ints->size() == 1 && ints->front().Same(steps_);
  }

  // Whether one step of the loop and of the layer agree at some points.
  Result<bool> Matches(const RecurrentLoop& loop, const Layer& layer) {
    const Graph& body = *loop.body;
    const Dim& rows = body.fact(body.inputs()[static_cast<size_t>(loop.states[0])].value).shape[0];
    const int64_t samples = rows.known() ? rows.size : 2;
    if (samples == 0) return false;
    // A graph with the layer alone, for a sequence of one step.
    Graph probe(body.shared_ops());
    const auto state = Shape{samples, loop.units};
    std::vector<ValueId> in = {
        probe.AddInput("x", Fact::Of(DType::kF32, Shape{1, samples, loop.features}))};
    for (size_t i = 0; i < loop.states.size(); ++i) {
      in.push_back(probe.AddInput(StrCat("state", i), Fact::Of(DType::kF32, state)));
    }
    ONCILLA_ASSIGN(const auto layer_outputs,
                   AddLayer(
                       loop, layer, in[0], in[1], in.back(),
                       [&](std::string_view op, AttrMap attrs, std::vector<ValueId> inputs) {
                         return probe.AddNode(std::string(op), op, std::move(attrs),
                                              std::move(inputs));
                       },
                       [&](Tensor value) { return probe.AddConstant(std::move(value)); }));
    const std::vector<ValueId> wanted(layer_outputs.begin() + 1, layer_outputs.end());
    Points points;
    for (int round = 0; round < 2; ++round) {
      // Both are computed on the same inputs and states.
      const Tensor x = points.Draw(samples, loop.features, loop.input_weights);
      std::map<uint32_t, Tensor> in_body = {{Index(loop.step), x}};
      std::map<uint32_t, Tensor> in_probe = {
          {Index(in[0]), x.Reshaped(Shape{1, samples, loop.features})}};
      for (size_t i = 0; i < loop.states.size(); ++i) {
        const Tensor value = points.Draw(samples, loop.units, loop.recurrent_weights);
        in_body[Index(body.inputs()[static_cast<size_t>(loop.states[i])].value)] = value;
        in_probe[Index(in[i + 1])] = value;
      }
      const auto theirs = ComputeValues(body, std::move(in_body), loop.next, cpu_);
      if (!theirs.ok()) return false;  // the body refuses these shapes
      ONCILLA_ASSIGN(const auto ours, ComputeValues(probe, std::move(in_probe), wanted, cpu_));
      for (size_t i = 0; i < ours.size(); ++i) {
        if (!Agree(ours[i], (*theirs)[i], 1e-4)) return false;
      }
    }
    return true;
  }

  Status Replace(NodeId id, const RecurrentLoop& loop, const Layer& layer) {
    const Node& node = graph_.node(id);
    auto add = [&](std::string_view op, AttrMap attrs, std::vector<ValueId> inputs) {
      return patch_.AddNode(op, std::move(attrs), std::move(inputs), {id});
    };
    ONCILLA_ASSIGN(
        const auto outputs,
        AddLayer(loop, layer, x_, Input(node, loop.states[0]), Input(node, loop.states.back()), add,
                 [&](Tensor value) { return patch_.AddConstant(std::move(value)); }));
    // The results of the loop are replaced by kind: states, constants, counters, lists of all
    // steps, lists of the last one.
    for (size_t i = 0; i < loop.states.size(); ++i) {
      ONCILLA_TRY(patch_.Replace(Output(node, loop.states[i]), outputs[i + 1]));
    }
    for (int n : loop.unchanged) ONCILLA_TRY(patch_.Replace(Output(node, n), Input(node, n)));
    for (int n : loop.counters) {
      if (uses_.Count(Output(node, n)) == 0) continue;
      ONCILLA_ASSIGN(const ValueId steps, Steps(graph_.fact(Output(node, n)).dtype, id));
      ONCILLA_TRY(patch_.Replace(Output(node, n), steps));
    }
    for (int n : loop.results) {
      ONCILLA_ASSIGN(const auto list, add("ListFromTensor", {}, {outputs[0]}));
      ONCILLA_TRY(patch_.Replace(Output(node, n), list[0]));
    }
    for (int n : loop.lasts) {
      ONCILLA_ASSIGN(const ValueId last, Last(outputs[1], id));
      const ValueId first = patch_.AddConstant(Tensor::ScalarInt64(0));
      ONCILLA_ASSIGN(const auto list, add("ListSet", {}, {Input(node, n), first, last}));
      ONCILLA_TRY(patch_.Replace(Output(node, n), list[0]));
    }
    patch_.DropEffects(id);
    return Status();
  }

  Result<ValueId> Steps(DType dtype, NodeId id) {
    const ValueId steps =
        steps_.known() ? patch_.AddConstant(Tensor::ScalarInt64(steps_.size)) : limit_;
    if (patch_.fact(steps).dtype == dtype) return steps;
    return patch_.Add("Cast", {{"to", dtype}}, {steps}, {id});
  }

  // The last result. A loop of no steps does not write its list's element, which then reads as
  // zeros.
  Result<ValueId> Last(ValueId h, NodeId id) {
    if (steps_.known() && steps_.size > 0) return h;
    ONCILLA_ASSIGN(const ValueId steps, Steps(DType::kI64, id));
    const ValueId none = patch_.AddConstant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(const ValueId any, patch_.Add("Greater", {}, {steps, none}, {id}));
    const ValueId zero = patch_.AddConstant(Tensor::Scalar(0));
    return patch_.Add("Where", {}, {any, h, zero}, {id});
  }

  const Graph& graph_;
  const PassContext& context_;
  Device& cpu_;
  const Uses uses_;
  Patch& patch_;
  // For the loop at hand: its inputs in the order of steps, the number of steps, and the value that
  // the counter is compared with.
  ValueId x_ = kNoValue;
  Dim steps_;
  ValueId limit_ = kNoValue;
};

}  // namespace

Status RecogniseRecurrent(const Graph& graph, const PassContext& context, Patch& patch) {
  if (context.functions == nullptr || !context.devices[0]->info().can_evaluate) return Status();
  return RecurrentRecogniser(graph, context, patch).Run();
}

}  // namespace oncilla
