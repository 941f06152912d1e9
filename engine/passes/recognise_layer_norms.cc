// Layer norms written as several nodes (two means, a difference, a root, scale and offset) become
// LayerNorm, and those by the root of the mean square alone (one mean, a root, scale) RmsNorm. A
// subgraph with as many means over the last axis and one input yields the candidates for epsilon,
// scale and offset among its constants; evaluating it then proves which is which. That covers every
// form that frameworks write, in any order.
#include <cmath>

#include "engine/passes/pass.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

constexpr size_t kMaxNodes = 16;
constexpr double kTolerance = 1e-4;

// The ops to recognise. A layer norm contains an RMS norm of its differences, so it comes first.
struct Norm {
  const char* op;
  int means;
  size_t most_vectors;
};
constexpr Norm kNorms[] = {{"LayerNorm", 2, 2}, {"RmsNorm", 1, 1}};

struct Candidates {
  std::vector<double> epsilons;
  std::vector<ValueId> vectors;  // one number for each index of the last axis
};

class LayerNormRecogniser {
 public:
  LayerNormRecogniser(const Graph& graph, Device& cpu, Patch& patch)
      : graph_(graph), cpu_(cpu), uses_(graph), patch_(patch) {}

  Status Run() {
    std::vector<bool> taken(graph_.nodes().size());
    auto belongs = [this](const Node& node) { return Belongs(node); };
    for (uint32_t n = static_cast<uint32_t>(graph_.nodes().size()); n-- > 0;) {
      const Node& node = graph_.node(NodeId{n});
      if (taken[n] || node.op->elementwise == nullptr) continue;
      const auto subgraphs = SubgraphsBefore(graph_, uses_, node.outputs[0], belongs, kMaxNodes);
      ONCILLA_ASSIGN(const Subgraph* replaced, ReplaceOne(subgraphs));
      if (replaced == nullptr) continue;
      for (uint32_t member : replaced->nodes) taken[member] = true;
    }
    return Status();
  }

 private:
  // The subgraph that became a norm, if any.
  Result<const Subgraph*> ReplaceOne(const std::vector<Subgraph>& subgraphs) {
    for (const Norm& norm : kNorms) {
      for (const Subgraph& subgraph : subgraphs) {
        ONCILLA_ASSIGN(const bool replaced, Replace(subgraph, norm));
        if (replaced) return &subgraph;
      }
    }
    return nullptr;
  }

  bool Belongs(const Node& node) const {
    if (node.outputs.empty()) return false;
    const Fact& out = graph_.fact(node.outputs[0]);
    return out.dtype == DType::kF32 && (IsMean(node) || node.op->elementwise != nullptr);
  }

  bool IsMean(const Node& node) const {
    if (node.op->name != "ReduceMean" || !BoolAttr(node, "keep_dims", false) ||
        node.inputs.size() < 2 || node.inputs[1] == kNoValue) {
      return false;
    }
    const Fact& x = graph_.fact(node.inputs[0]);
    auto axes = NeedInts(graph_.fact(node.inputs[1]), "axes");
    return x.shape.ranked() && axes.ok() && axes->size() == 1 &&
           ((*axes)[0] == -1 || (*axes)[0] == x.shape.rank() - 1);
  }

  Candidates CandidatesOf(const Subgraph& subgraph, int64_t size) const {
    Candidates out;
    for (uint32_t n : subgraph.nodes) {
      const Node& node = graph_.node(NodeId{n});
      if (IsMean(node)) continue;
      for (ValueId id : node.inputs) {
        if (id == kNoValue || !graph_.value(id).is_constant()) continue;
        const Fact& fact = graph_.fact(id);
        const int64_t elements = fact.shape.elements().size;
        if (elements == 1) {
          auto value = ToDoubles(fact.value);  // of any type, perhaps unaligned in a mapped file
          if (value.ok() && (*value)[0] > 0 && (*value)[0] < 0.1)
            out.epsilons.push_back((*value)[0]);
        } else if (elements == size && fact.shape[fact.shape.rank() - 1].size == size) {
          out.vectors.push_back(id);
        }
      }
    }
    return out;
  }

  Result<bool> Replace(const Subgraph& subgraph, const Norm& norm) {
    int means = 0;
    for (uint32_t n : subgraph.nodes) means += IsMean(graph_.node(NodeId{n}));
    const Fact& x = graph_.fact(subgraph.entry);
    const PartialShape& y = graph_.fact(subgraph.exit).shape;
    if (means != norm.means || x.dtype != DType::kF32 || !x.shape.ranked() || !y.ranked() ||
        x.shape.rank() < 1 || x.shape.rank() != y.rank()) {
      return false;
    }
    const Dim last = x.shape[x.shape.rank() - 1];
    if (!last.known() || last.size < 2 || !last.Same(y[y.rank() - 1])) return false;
    const Candidates candidates = CandidatesOf(subgraph, last.size);
    if (candidates.vectors.size() > norm.most_vectors) return false;
    for (double epsilon : candidates.epsilons) {
      const Tensor probe = Rows(last.size, epsilon, x.shape.rank());
      auto wanted = ComputeSubgraph(graph_, subgraph, probe, cpu_);
      if (!wanted.ok() || wanted->desc() != probe.desc()) return false;
      for (const auto& [scale, offset] : Roles(candidates.vectors)) {
        if (offset != kNoValue && norm.most_vectors < 2) continue;
        const AttrMap attrs = {{"axis", int64_t{-1}}, {"epsilon", epsilon}};
        ONCILLA_ASSIGN(const bool same,
                       Matches(norm.op, attrs, probe, *wanted, last.size, scale, offset));
        if (!same) continue;
        ONCILLA_TRY(Put(norm.op, attrs, subgraph, last.size, scale, offset));
        return true;
      }
    }
    return false;
  }

  // The ways to assign scale and offset to the vectors.
  static std::vector<std::pair<ValueId, ValueId>> Roles(const std::vector<ValueId>& vectors) {
    if (vectors.empty()) return {{kNoValue, kNoValue}};
    if (vectors.size() == 1) return {{vectors[0], kNoValue}, {kNoValue, vectors[0]}};
    return {{vectors[0], vectors[1]}, {vectors[1], vectors[0]}};
  }

  // Rows of noise: large ones, ones with an offset, and ones as small as epsilon, where it matters.
  static Tensor Rows(int64_t size, double epsilon, int rank) {
    const double spreads[] = {1, 3, std::sqrt(epsilon), 0.25 * std::sqrt(epsilon)};
    const double centres[] = {0, 2, 0, 0};
    std::vector<float> values;
    uint32_t state = 1;
    for (int row = 0; row < 4; ++row) {
      for (int64_t i = 0; i < size; ++i) {
        state = state * 1664525u + 1013904223u;
        const double noise = static_cast<double>(state >> 8) / (1 << 23) - 1;
        values.push_back(static_cast<float>(centres[row] + spreads[row] * noise));
      }
    }
    Shape shape{size};
    if (rank > 1) shape.Insert(0, 4);
    while (shape.rank() < rank) shape.Insert(0, 1);
    values.resize(static_cast<size_t>(shape.elements()));
    return Tensor::Of<float>(DType::kF32, shape, values);
  }

  Result<bool> Matches(const char* name, const AttrMap& attrs, const Tensor& probe,
                       const Tensor& wanted, int64_t size, ValueId scale, ValueId offset) {
    const OpDef* op = graph_.ops().Find(name);
    std::vector<Tensor> in = {probe, Tensor(), Tensor()};
    Facts facts = {Fact::Of(probe.desc()), Fact::Absent(), Fact::Absent()};
    const ValueId vectors[] = {scale, offset};
    for (size_t i = 0; i < 2; ++i) {
      if (vectors[i] == kNoValue) continue;
      in[i + 1] = graph_.fact(vectors[i]).value.Reshaped({size});
      facts[i + 1] = Fact::Constant(in[i + 1]);
    }
    while (facts.back().absent()) facts.pop_back(), in.pop_back();
    const Facts out = {facts[0]};
    ONCILLA_ASSIGN(const auto y, cpu_.Evaluate({op, &attrs, facts, out, name}, in));
    return Agree(y[0], wanted, kTolerance);
  }

  Status Put(const char* name, const AttrMap& attrs, const Subgraph& subgraph, int64_t size,
             ValueId scale, ValueId offset) {
    const NodeId exit = graph_.value(subgraph.exit).producer;
    std::vector<NodeId> from = {exit};
    for (uint32_t n : subgraph.nodes) {
      if (NodeId{n} != exit) from.push_back(NodeId{n});
    }
    std::vector<ValueId> inputs = {subgraph.entry, scale, offset};
    for (size_t i = 1; i < 3; ++i) {
      if (inputs[i] == kNoValue) continue;
      inputs[i] = patch_.AddConstant(graph_.fact(inputs[i]).value.Reshaped({size}));
    }
    while (inputs.back() == kNoValue) inputs.pop_back();
    ONCILLA_ASSIGN(const ValueId y, patch_.Add(name, attrs, inputs, from));
    return patch_.Replace(subgraph.exit, y);
  }

  const Graph& graph_;
  Device& cpu_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status RecogniseLayerNorms(const Graph& graph, const PassContext& context, Patch& patch) {
  return LayerNormRecogniser(graph, *context.devices[0], patch).Run();
}

}  // namespace oncilla
