// Activations written as several nodes (x * sigmoid(x), 0.5 * x * (1 + erf(x / sqrt(2))), ...)
// become the op that they compute. A subgraph of elementwise nodes with one input is evaluated at
// points that distinguish the known functions. If it agrees with one of them at all points, it is
// replaced by that function, in whatever form it was written.
#include <cmath>

#include "engine/passes/pass.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

constexpr size_t kMaxNodes = 12;
// About four float roundings: written out, these functions lose some digits to cancellation. The
// two forms of Gelu differ by 5e-4, so they are told apart.
constexpr double kTolerance = 2e-6;
// The tolerance for f16, whose rounding hides the difference between the two forms of Gelu; the
// nearer form is chosen.
constexpr double kHalfTolerance = 2e-3;

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

// The largest difference, absolute below one and relative above; infinite where x is NaN. Written
// out in f16, some functions give infinities where they should not (the logarithm of an
// exponential); with `finite` these are ignored.
double Deviation(std::span<const float> x, std::span<const float> y, bool finite) {
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (finite && !std::isfinite(x[i]) && std::abs(y[i]) > 8) continue;
    const double own = std::abs(double{x[i]} - y[i]) / (1 + std::abs(double{y[i]}));
    if (!(own <= most)) most = std::isnan(own) ? HUGE_VAL : own;
  }
  return most;
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
      if (node.op->name == op) return Takes(graph_.fact(node.outputs[0]).dtype);
    }
    return false;
  }

  static bool Takes(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16; }

  static bool Belongs(const Node& node) {
    return node.op->elementwise != nullptr && node.op->name != "Cast" &&
           node.op->name != "Identity";
  }

  Result<const Activation*> Recognise(const Subgraph& subgraph) {
    const Fact& entry = graph_.fact(subgraph.entry);
    const Fact& exit = graph_.fact(subgraph.exit);
    if (!Takes(entry.dtype) || !entry.shape.ranked() || entry.shape.rank() != exit.shape.rank()) {
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
    // All points are numbers of f16 as well.
    ONCILLA_ASSIGN(const Tensor x, Cast(points_, entry.dtype));
    auto y = ComputeSubgraph(graph_, subgraph, x.Reshaped(shape), cpu_);
    if (!y.ok() || y->elements() != count || y->dtype() != entry.dtype) return nullptr;
    ONCILLA_ASSIGN(const Tensor computed, Cast(*y, DType::kF32));
    const bool half = entry.dtype == DType::kF16;
    const Activation* nearest = nullptr;
    double least = half ? kHalfTolerance : kTolerance;
    for (size_t i = 0; i < known_.size(); ++i) {
      const double own = Deviation(computed.As<float>(), known_[i].As<float>(), half);
      if (own <= least) {
        least = own;
        nearest = &Activations()[i];
      }
    }
    return nearest;
  }

  Result<Tensor> Cast(const Tensor& x, DType to) {
    if (x.dtype() == to) return x;
    const AttrMap attrs = {{"to", to}};
    const Facts in = {Fact::Of(x.desc())}, out = {Fact::Of({to, x.shape()})};
    ONCILLA_ASSIGN(auto y, cpu_.Evaluate({graph_.ops().Find("Cast"), &attrs, in, out, "Cast"},
                                         std::vector<Tensor>{x}));
    return std::move(y[0]);
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
