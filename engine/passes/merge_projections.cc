// The projections of queries, keys and values of one input become one product, whose columns
// Attention reads where they lie: the input goes through the caches once. The weights are joined
// side by side; the single ones go with the nodes that read them.
#include <optional>

#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class ProjectionMerger {
 public:
  ProjectionMerger(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name != "Attention" || node.attrs.contains("columns")) continue;
      ONCILLA_TRY(TryMerge(NodeId{n}));
    }
    return Status();
  }

 private:
  // x W + b with constant W and b, perhaps under another shape.
  struct Projection {
    ValueId x = kNoValue, weights = kNoValue, bias = kNoValue;
    int64_t depth = 0, width = 0;
    std::vector<int64_t> shape;  // rows of the result: two sizes before its columns; empty: as is
    std::vector<NodeId> nodes;   // the last one first
  };

  std::optional<Projection> ProjectionOf(ValueId id) const {
    Projection p;
    const PartialShape& result = graph_.fact(id).shape;
    if (!result.ranked() || result.rank() != 3 || !result[2].known()) return {};
    p.width = result[2].size;
    const Node* node = Next(id, p);
    if (node != nullptr && node->op->name == "Reshape") {
      const auto shape = NeedInts(graph_.fact(node->inputs[1]), "shape");
      const PartialShape& from = graph_.fact(node->inputs[0]).shape;
      // A zero among the leading sizes would be copied from rows, which stay what they are, but
      // only where the rows had as many axes.
      if (!shape.ok() || shape->size() != 3 || (*shape)[0] == 0 || (*shape)[1] == 0 ||
          !from.ranked() || from.rank() < 2 || !from[from.rank() - 1].Same(result[2])) {
        return {};
      }
      p.shape = {(*shape)[0], (*shape)[1]};
      if (p.shape[0] < 0 && p.shape[1] < 0) return {};
      node = Next(node->inputs[0], p);
    }
    if (node != nullptr && node->op->name == "Add") {
      const int constant = ConstantInput(graph_, *node);
      if (constant < 0) return {};
      p.bias = node->inputs[static_cast<size_t>(constant)];
      const ValueId product = node->inputs[static_cast<size_t>(1 - constant)];
      const Fact& bias = graph_.fact(p.bias);
      if (!bias.shape.known() || bias.shape.elements().size != p.width ||
          !IsPerChannel(bias.shape, graph_.fact(product).shape) || !bias.has_value()) {
        return {};
      }
      node = Next(product, p);
    }
    if (node == nullptr || node->op->name != "MatMul" || node->inputs.size() != 2 ||
        BoolAttr(*node, "transpose_a", false) || BoolAttr(*node, "transpose_b", false) ||
        StringAttr(*node, "activation", "none") != "none" ||
        !graph_.value(node->inputs[1]).is_constant()) {
      return {};
    }
    p.x = node->inputs[0], p.weights = node->inputs[1];
    const Fact& weights = graph_.fact(p.weights);
    if (!weights.shape.known() || weights.shape.rank() != 2 || !weights.has_value() ||
        !uses_.Single(p.weights) || weights.shape[1].size != p.width ||
        graph_.fact(p.x).shape.rank() < 2) {
      return {};
    }
    p.depth = weights.shape[0].size;
    return p;
  }

  // The node that computes a value which nobody else reads.
  const Node* Next(ValueId id, Projection& p) const {
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNoNode || !uses_.Single(id)) return nullptr;
    p.nodes.push_back(producer);
    return &graph_.node(producer);
  }

  static bool SameInput(const Projection& a, const Projection& b) {
    return a.x == b.x && a.depth == b.depth && a.shape == b.shape;
  }

  Status TryMerge(NodeId id) {
    const Node& node = graph_.node(id);
    std::optional<Projection> parts[3];
    for (size_t i = 0; i < 3; ++i) parts[i] = ProjectionOf(node.inputs[i]);
    // All three of one input, or those of keys and values.
    std::vector<size_t> merged;
    for (size_t first = 0; first < 2 && merged.size() < 2; ++first) {
      merged.clear();
      for (size_t i = first; i < 3 && parts[first]; ++i) {
        if (parts[i] && SameInput(*parts[first], *parts[i])) merged.push_back(i);
      }
    }
    if (merged.size() < 2) return Status();
    return Merge(id, parts, merged);
  }

  // Constants side by side along their last axis.
  Result<Tensor> Joined(const std::vector<Tensor>& tensors) const {
    const AttrMap attrs = {{"axis", int64_t{-1}}};
    Facts facts;
    for (const Tensor& tensor : tensors) facts.push_back(Fact::Constant(tensor));
    ONCILLA_ASSIGN(const Facts out, InferNode(graph_.ops(), "weights", "Concat", attrs, facts));
    const OpDef* op = graph_.ops().Find("Concat");
    ONCILLA_ASSIGN(auto made,
                   context_.devices[0]->Evaluate({op, &attrs, facts, out, "weights"}, tensors));
    return std::move(made[0]);
  }

  Status Merge(NodeId id, const std::optional<Projection> (&parts)[3],
               const std::vector<size_t>& merged) {
    const Node& node = graph_.node(id);
    const Projection& one = *parts[merged[0]];
    std::vector<Tensor> weights, biases;
    std::vector<NodeId> from;
    std::vector<int64_t> columns(3, 0);
    int64_t width = 0, bytes = 0;
    bool biased = false;
    for (size_t i : merged) biased |= parts[i]->bias != kNoValue;
    for (size_t i : merged) {
      const Projection& p = *parts[i];
      weights.push_back(graph_.fact(p.weights).value);
      bytes += weights.back().desc().bytes();
      if (weights.back().dtype() != weights[0].dtype()) return Status();
      if (p.bias != kNoValue) {
        biases.push_back(graph_.fact(p.bias).value.Reshaped({p.width}));
      } else if (biased) {
        ONCILLA_ASSIGN(Tensor zeros, Tensor::Allocate({weights[0].dtype(), Shape{p.width}}));
        std::fill(zeros.mutable_bytes().begin(), zeros.mutable_bytes().end(), std::byte{0});
        biases.push_back(std::move(zeros));
      }
      from.insert(from.end(), p.nodes.begin(), p.nodes.end());
      columns[i] = width;
      width += p.width;
    }
    if (bytes > context_.max_folded_bytes) return Status();
    ONCILLA_ASSIGN(Tensor all, Joined(weights));
    const ValueId w = patch_.AddConstant(std::move(all), graph_.value(one.weights).name);
    ONCILLA_ASSIGN(ValueId y, patch_.Add("MatMul", {}, {one.x, w}, from));
    if (biased) {
      ONCILLA_ASSIGN(Tensor bias, Joined(biases));
      ONCILLA_ASSIGN(y, patch_.Add("Add", {}, {y, patch_.AddConstant(std::move(bias))}, from));
    }
    if (!one.shape.empty()) {
      const ValueId shape = patch_.AddConstant(
          Tensor::Int64s(std::vector<int64_t>{one.shape[0], one.shape[1], width}));
      ONCILLA_ASSIGN(y, patch_.Add("Reshape", {}, {y, shape}, from));
    }
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i : merged) inputs[i] = y;
    AttrMap attrs = node.attrs;
    const int64_t heads = IntAttr(node, "heads", 0), shared = IntAttr(node, "kv_heads", 0);
    const auto size_of = [&](size_t i) -> int64_t {
      const PartialShape& shape = graph_.fact(node.inputs[i]).shape;
      const int64_t own = i == 0 || shared == 0 ? heads : shared;
      const Dim& last = shape[shape.rank() - 1];
      return shape.rank() == 4 ? last.size : last.known() && own > 0 ? last.size / own : 0;
    };
    const int64_t size = size_of(1), value_size = size_of(2);
    if (size <= 0 || value_size <= 0) return Status();
    attrs["size"] = size;
    attrs["value_size"] = value_size;
    attrs["columns"] = columns;
    if (!Accepted(attrs, inputs, id)) return Status();
    ONCILLA_ASSIGN(const ValueId result, patch_.Add("Attention", attrs, inputs, {id}));
    return patch_.Replace(node.outputs[0], result);
  }

  bool Accepted(const AttrMap& attrs, std::span<const ValueId> inputs, NodeId id) const {
    const Node& node = graph_.node(id);
    Facts in;
    for (ValueId value : inputs) in.push_back(patch_.fact(value));
    const auto out = InferNode(graph_.ops(), node.name, node.op->name, attrs, in);
    if (!out.ok()) return false;
    for (Device* device : context_.devices) {
      if (!device->CanRun({node.op, &attrs, in, *out, node.name}).ok()) return false;
    }
    return true;
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status MergeProjections(const Graph& graph, const PassContext& context, Patch& patch) {
  return ProjectionMerger(graph, context, patch).Run();
}

}  // namespace oncilla
