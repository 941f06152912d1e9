// The projections of queries, keys and values of one input become one product, whose columns
// Attention reads in place: the input passes through the caches once. The weights are concatenated;
// the old ones disappear with the nodes that read them.
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
  // x W + b with constant W and b. On the way its rows may be split into batch and positions, and
  // its columns into heads.
  struct Projection {
    ValueId x = kNoValue, weights = kNoValue, bias = kNoValue;
    int64_t depth = 0, width = 0;
    // The sizes that the rows of x are split into: two numbers, or a value that begins with them;
    // neither if the rows are not split.
    std::vector<int64_t> shape;
    ValueId sizes = kNoValue;
    std::vector<NodeId> nodes;  // the last one first
  };

  std::optional<Projection> ProjectionOf(ValueId id) const {
    Projection p;
    const PartialShape& result = graph_.fact(id).shape;
    if (!result.ranked() || result.rank() != 3 || !result[2].known()) return {};
    p.width = result[2].size;
    const Node* node = Next(id, p);
    if (node != nullptr && node->op->name == "Reshape" && JoinsColumns(*node)) {
      node = Next(node->inputs[0], p);
    }
    if (!ReadBias(node, p)) return {};
    if (node != nullptr && node->op->name == "Reshape") {
      if (!ReadSizes(*node, p)) return {};
      node = Next(node->inputs[0], p);
    }
    if (p.bias == kNoValue && !ReadBias(node, p)) return {};
    if (node == nullptr || node->op->name != "MatMul" || node->inputs.size() != 2 ||
        BoolAttr(*node, "transpose_a", false) || BoolAttr(*node, "transpose_b", false) ||
        StringAttr(*node, "activation", "none") != "none" ||
        !graph_.value(node->inputs[1]).is_constant()) {
      return {};
    }
    p.x = node->inputs[0], p.weights = node->inputs[1];
    const Fact& weights = graph_.fact(p.weights);
    const PartialShape& x = graph_.fact(p.x).shape;
    if (!weights.shape.known() || weights.shape.rank() != 2 || !weights.has_value() ||
        !uses_.Single(p.weights) || weights.shape[1].size != p.width || !x.ranked() ||
        x.rank() != (p.shape.empty() && p.sizes == kNoValue ? 3 : 2)) {
      return {};
    }
    p.depth = weights.shape[0].size;
    return p;
  }

  // Whether it reshapes [B, L, heads, size] to [B, L, columns].
  bool JoinsColumns(const Node& node) const {
    const PartialShape& from = graph_.fact(node.inputs[0]).shape;
    const PartialShape& to = graph_.fact(node.outputs[0]).shape;
    return from.ranked() && from.rank() == 4 && to.rank() == 3 && from[0].Same(to[0]) &&
           from[1].Same(to[1]);
  }

  // If a constant with one number per column (perhaps reshaped) is added, it is the bias, and
  // `node` becomes the node that it is added to. False if something else is added.
  bool ReadBias(const Node*& node, Projection& p) const {
    if (node == nullptr || node->op->name != "Add") return true;
    const int constant = ConstantInput(graph_, *node);
    if (constant < 0) return false;
    p.bias = node->inputs[static_cast<size_t>(constant)];
    const ValueId product = node->inputs[static_cast<size_t>(1 - constant)];
    const Fact& bias = graph_.fact(p.bias);
    const PartialShape& sums = graph_.fact(product).shape;
    if (!bias.has_value() || !bias.shape.known() || bias.shape.elements().size != p.width ||
        !sums.ranked() || bias.shape.rank() > sums.rank()) {
      return false;
    }
    int64_t columns = 1;
    for (int i = 1; i <= bias.shape.rank() && columns < p.width; ++i) {
      const Dim& own = bias.shape[bias.shape.rank() - i];
      if (!own.Same(sums[sums.rank() - i])) return false;
      columns *= own.size;
    }
    node = Next(product, p);
    return true;
  }

  // Reads how rows [N, columns] are split.
  bool ReadSizes(const Node& node, Projection& p) const {
    const PartialShape& from = graph_.fact(node.inputs[0]).shape;
    const PartialShape& to = graph_.fact(node.outputs[0]).shape;
    if (!from.ranked() || from.rank() != 2 || !from[1].known() || from[1].size != p.width ||
        !to.ranked() || (to.rank() != 3 && to.rank() != 4)) {
      return false;
    }
    const Fact& sizes = graph_.fact(node.inputs[1]);
    const auto known = NeedInts(sizes, "shape");
    if (known.ok()) {
      // A zero would copy a size from a tensor whose axes are different ones.
      p.shape = {(*known)[0], (*known)[1]};
      return p.shape[0] != 0 && p.shape[1] != 0 && (p.shape[0] > 0 || p.shape[1] > 0);
    }
    p.sizes = node.inputs[1];
    return sizes.dtype == DType::kI64 && !BoolAttr(node, "zero_copies", false);
  }

  // The node that computes a value with no other reader.
  const Node* Next(ValueId id, Projection& p) const {
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNoNode || !uses_.Single(id)) return nullptr;
    p.nodes.push_back(producer);
    return &graph_.node(producer);
  }

  static bool SameInput(const Projection& a, const Projection& b) {
    return a.x == b.x && a.depth == b.depth && a.shape == b.shape && a.sizes == b.sizes;
  }

  Status TryMerge(NodeId id) {
    const Node& node = graph_.node(id);
    std::optional<Projection> parts[3];
    for (size_t i = 0; i < 3; ++i) parts[i] = ProjectionOf(node.inputs[i]);
    // Merge all three if they read the same input, or else keys and values.
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

  // Concatenates constants along their last axis.
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
    // Concatenate the weights, and the biases with zeros where one has none.
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
    // One product, split as the single ones were.
    ONCILLA_ASSIGN(Tensor all, Joined(weights));
    const ValueId w = patch_.AddConstant(std::move(all), graph_.value(one.weights).name);
    ONCILLA_ASSIGN(ValueId y, patch_.Add("MatMul", {}, {one.x, w}, from));
    if (biased) {
      ONCILLA_ASSIGN(Tensor bias, Joined(biases));
      ONCILLA_ASSIGN(y, patch_.Add("Add", {}, {y, patch_.AddConstant(std::move(bias))}, from));
    }
    ONCILLA_ASSIGN(y, TakenApart(y, one, width, from));
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i : merged) inputs[i] = y;
    // Attention finds each operand by its first column; the sizes of heads can no longer be derived
    // from shapes, so they become attributes.
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
    if (!AcceptedEverywhere(graph_, context_, patch_, "Attention", attrs, inputs)) return Status();
    ONCILLA_ASSIGN(const ValueId result, patch_.Add("Attention", attrs, inputs, {id}));
    return patch_.Replace(node.outputs[0], result);
  }

  // Splits the rows of the joined product in the same way as those of the single products.
  Result<ValueId> TakenApart(ValueId y, const Projection& one, int64_t width,
                             const std::vector<NodeId>& from) {
    const auto ints = [&](std::vector<int64_t> values) {
      return patch_.AddConstant(Tensor::Int64s(values));
    };
    if (!one.shape.empty()) {
      return patch_.Add("Reshape", {}, {y, ints({one.shape[0], one.shape[1], width})}, from);
    }
    if (one.sizes == kNoValue) return y;
    ONCILLA_ASSIGN(const ValueId rows,
                   patch_.Add("Slice", {}, {one.sizes, ints({0}), ints({2})}, from));
    ONCILLA_ASSIGN(const ValueId sizes,
                   patch_.Add("Concat", {{"axis", int64_t{0}}}, {rows, ints({width})}, from));
    return patch_.Add("Reshape", {}, {y, sizes}, from);
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
