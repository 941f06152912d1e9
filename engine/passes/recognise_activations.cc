// Activations written as several nodes (x * sigmoid(x), 0.5 * x * (1 + erf(x / sqrt(2))), ...)
// become the op that they compute. A subgraph of elementwise nodes with one input is evaluated on
// points that tell the known functions apart; if it agrees with one everywhere, it is that
// function, however it was written.
#include <cmath>

#include "engine/passes/pass.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

constexpr size_t kMaxNodes = 12;
// About four float roundings: written out, these functions lose some digits to cancellation. The
// two forms of Gelu differ by 5e-4, so they are told apart.
constexpr double kTolerance = 2e-6;

struct Activation {
  std::string_view op;
  AttrMap attrs;
};

const std::vector<Activation>& Activations() {
  static const auto* list = new std::vector<Activation>{
      {"Relu6", {}},     {"Silu", {}}, {"HardSigmoid", {{"alpha", 1.0 / 6}, {"beta", 0.5}}},
      {"HardSwish", {}}, {"Gelu", {}}, {"Gelu", {{"approximate", true}}},
      {"Sigmoid", {}},   {"Mish", {}}, {"Softplus", {}},
  };
  return *list;
}

// A fine grid where the functions bend, and powers of two in the range where they are straight.
Tensor Points() {
  std::vector<float> points;
  for (int i = -192; i <= 192; ++i) points.push_back(static_cast<float>(i) / 16);
  for (int e = -20; e <= 12; ++e) {
    points.push_back(std::ldexp(1.0f, e));
    points.push_back(-std::ldexp(1.0f, e));
  }
  return Tensor::Of<float>(DType::kF32, {static_cast<int64_t>(points.size())}, points);
}

class Recogniser {
 public:
  Recogniser(const Graph& graph, Device& cpu, Patch& patch)
      : graph_(graph), cpu_(cpu), uses_(graph), patch_(patch) {}

  Status Run() {
    std::vector<bool> taken(graph_.nodes().size());
    for (uint32_t n = static_cast<uint32_t>(graph_.nodes().size()); n-- > 0;) {
      const Node& node = graph_.node(NodeId{n});
      if (taken[n] || !CanEnd(node)) continue;
      for (const Subgraph& subgraph :
           SubgraphsBefore(graph_, uses_, node.outputs[0], &Belongs, kMaxNodes)) {
        if (subgraph.nodes.size() < 2) continue;
        ONCILLA_ASSIGN(const Activation* activation, Recognise(subgraph));
        if (activation == nullptr) continue;
        std::vector<NodeId> from = {NodeId{n}};
        for (uint32_t member : subgraph.nodes) {
          taken[member] = true;
          if (member != n) from.push_back(NodeId{member});
        }
        ONCILLA_ASSIGN(const ValueId y,
                       patch_.Add(activation->op, activation->attrs, {subgraph.entry}, from));
        ONCILLA_TRY(patch_.Replace(node.outputs[0], y));
        break;
      }
    }
    return Status();
  }

 private:
  // The ops that such an expression can end in; nothing else is examined.
  bool CanEnd(const Node& node) const {
    for (std::string_view op : {"Mul", "Div", "Min", "Max", "Clip", "Log", "Reciprocal"}) {
      if (node.op->name == op) return graph_.fact(node.outputs[0]).dtype == DType::kF32;
    }
    return false;
  }

  static bool Belongs(const Node& node) {
    return node.op->elementwise != nullptr && node.op->name != "Cast" &&
           node.op->name != "Identity";
  }

  Result<const Activation*> Recognise(const Subgraph& subgraph) {
    const Fact& entry = graph_.fact(subgraph.entry);
    const Fact& exit = graph_.fact(subgraph.exit);
    if (entry.dtype != DType::kF32 || !entry.shape.ranked() ||
        entry.shape.rank() != exit.shape.rank()) {
      return nullptr;
    }
    for (uint32_t n : subgraph.nodes) {
      for (ValueId id : graph_.node(NodeId{n}).inputs) {
        if (id == kNoValue || !graph_.value(id).is_constant()) continue;
        if (graph_.fact(id).shape.elements().size != 1) return nullptr;
      }
    }
    if (known_.empty()) ONCILLA_TRY(ComputeKnown());
    // A constant of rank above 1 would raise the rank of the points.
    const int64_t count = points_.elements();
    Shape shape{count};
    while (shape.rank() < exit.shape.rank()) shape.Insert(0, 1);
    auto y = ComputeSubgraph(graph_, subgraph, points_.Reshaped(shape), cpu_);
    if (!y.ok() || y->elements() != count) return nullptr;
    const Tensor flat = y->Reshaped({count});
    for (size_t i = 0; i < known_.size(); ++i) {
      if (Agree(flat, known_[i], kTolerance)) return &Activations()[i];
    }
    return nullptr;
  }

  Status ComputeKnown() {
    points_ = Points();
    for (const Activation& activation : Activations()) {
      const OpDef* op = graph_.ops().Find(activation.op);
      const Facts in = {Fact::Of(points_.desc())};
      const std::vector<Tensor> x = {points_};
      ONCILLA_ASSIGN(auto y, cpu_.Evaluate({op, &activation.attrs, in, in, activation.op}, x));
      known_.push_back(std::move(y[0]));
    }
    return Status();
  }

  const Graph& graph_;
  Device& cpu_;
  const Uses uses_;
  Patch& patch_;
  Tensor points_;
  std::vector<Tensor> known_;
};

}  // namespace

Status RecogniseActivations(const Graph& graph, const PassContext& context, Patch& patch) {
  return Recogniser(graph, *context.devices[0], patch).Run();
}

}  // namespace oncilla
