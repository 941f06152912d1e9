// Gives means and products back the axes that were dropped around them, so that the passes behind
// find layer norms and attention in the form that they know. Exporters to TFLite write
//   mean over [1, rows, size] -> [rows], some arithmetic on that, Reshape to [1, rows, 1]
//   Reshape(q) x Reshape(k) of [heads, ..], Reshape to [1, heads, ..], Softmax, Reshape, and so on.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "engine/ops/math/reduce.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// How many nodes may lie between a mean, or a product, and what it is looked at for.
constexpr int kMostBetween = 8;

class AxisRestorer {
 public:
  AxisRestorer(const Graph& graph, Patch& patch)
      : graph_(graph), uses_(graph), readers_(Consumers(graph)), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.outputs.size() != 1 || !ShapeOf(node.outputs[0]).known()) continue;
      if (node.op->name == "ReduceMean") ONCILLA_TRY(RestoreMean(NodeId{n}));
      if (node.op->name == "MatMul") ONCILLA_TRY(RestoreProduct(NodeId{n}));
      if (node.op->name == "Reshape") ONCILLA_TRY(EndAt(node));
      if (node.op->elementwise != nullptr) ONCILLA_TRY(Follow(NodeId{n}));
    }
    return Status();
  }

 private:
  const PartialShape& ShapeOf(ValueId id) const { return graph_.fact(id).shape; }
  bool IsNumber(ValueId id) const {
    return id != kNoValue && graph_.value(id).is_constant() && ShapeOf(id).known() &&
           ShapeOf(id).elements().size == 1;
  }

  // The shape of the node's result with the reduced axes as 1, if it is a mean over the last axis
  // alone (axes of size 1 aside) that has dropped it.
  std::optional<PartialShape> WithAxes(const Node& node) const {
    const PartialShape& x = ShapeOf(node.inputs[0]);
    if (BoolAttr(node, "keep_dims", false) || node.inputs.size() < 2 ||
        node.inputs[1] == kNoValue || !x.known() || x.rank() < 2) {
      return std::nullopt;
    }
    const auto axes = NeedInts(graph_.fact(node.inputs[1]), "axes");
    if (!axes.ok()) return std::nullopt;
    bool last = false;
    for (const int64_t axis : *axes) {
      const auto at = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
      if (at < 0 || at >= x.rank()) return std::nullopt;
      last = last || at == x.rank() - 1;
      if (at < x.rank() - 1 && x[at].size != 1) return std::nullopt;
    }
    if (!last) return std::nullopt;
    PartialShape kept = x;
    kept[x.rank() - 1] = Dim(1);
    return kept;
  }

  // Whether a Reshape to this shape lies behind the value, with only elementwise nodes between.
  bool Returns(ValueId value, const PartialShape& kept, int depth) const {
    for (const NodeId id : readers_[Index(value)]) {
      const Node& reader = graph_.node(id);
      const ValueId y = reader.outputs.empty() ? kNoValue : reader.outputs[0];
      if (y == kNoValue) continue;
      if (reader.op->name == "Reshape" && SameShape(ShapeOf(y), kept)) return true;
      if (reader.op->elementwise != nullptr && depth < kMostBetween &&
          SameShape(ShapeOf(y), ShapeOf(value)) && Returns(y, kept, depth + 1)) {
        return true;
      }
    }
    return false;
  }

  Status RestoreMean(NodeId id) {
    const Node& node = graph_.node(id);
    const auto kept = WithAxes(node);
    if (!kept || !Returns(node.outputs[0], *kept, 0)) return Status();
    const ValueId axis = patch_.AddConstant(Tensor::Int64s(std::vector<int64_t>{-1}));
    ONCILLA_ASSIGN(const ValueId y,
                   patch_.Add("ReduceMean", WriteAttrs(ReduceAttrs{.keep_dims = true}),
                              {node.inputs[0], axis}, {id}));
    return Restored(node.outputs[0], y, id);
  }

  Result<ValueId> Divided(ValueId value, const std::vector<int64_t>& sizes, NodeId from) {
    return patch_.Add("Reshape", {}, {value, patch_.AddConstant(Tensor::Int64s(sizes))}, {from});
  }

  // Notes that `y` has the elements of `value`, with its axes.
  Status Restored(ValueId value, ValueId y, NodeId from) {
    restored_[value] = y;
    std::vector<int64_t> sizes;
    for (const Dim& dim : ShapeOf(value).dims()) sizes.push_back(dim.size);
    ONCILLA_ASSIGN(const ValueId plain, Divided(y, sizes, from));
    return patch_.Replace(value, plain);
  }

  // Computes an elementwise node on restored values if all its operands are such, or numbers.
  Status Follow(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    std::optional<PartialShape> kept;
    for (const ValueId input : node.inputs) {
      const auto restored = restored_.find(input);
      inputs.push_back(restored == restored_.end() ? input : restored->second);
      if (restored == restored_.end()) {
        if (!IsNumber(input) || ShapeOf(input).rank() > ShapeOf(node.outputs[0]).rank()) {
          return Status();
        }
        continue;
      }
      const PartialShape& shape = patch_.fact(restored->second).shape;
      if (kept && !SameShape(*kept, shape)) return Status();
      kept = shape;
    }
    if (!kept || kept->elements().size != ShapeOf(node.outputs[0]).elements().size) return Status();
    ONCILLA_ASSIGN(const ValueId y, patch_.Add(node.op->name, node.attrs, inputs, {id}));
    return Restored(node.outputs[0], y, id);
  }

  // A Reshape of a restored value to the shape that this has anyway.
  Status EndAt(const Node& node) {
    const auto restored = restored_.find(node.inputs[0]);
    if (restored == restored_.end()) return Status();
    if (!SameShape(ShapeOf(node.outputs[0]), patch_.fact(restored->second).shape)) return Status();
    return patch_.Replace(node.outputs[0], restored->second);
  }

  // Whether the scores become weights by a softmax, with only elementwise nodes between.
  bool IsWeighed(ValueId scores) const {
    const PartialShape& shape = ShapeOf(scores);
    for (int i = 0; i < kMostBetween; ++i) {
      const Node* reader = uses_.OnlyReader(scores);
      if (reader == nullptr || reader->outputs.size() != 1) return false;
      scores = reader->outputs[0];
      if (!SameShape(ShapeOf(scores), shape)) return false;
      if (reader->op->name == "Softmax") return true;
      if (reader->op->elementwise == nullptr) return false;
    }
    return false;
  }

  // Whether the operand was made of the weights of a softmax by merging axes.
  bool IsOfWeights(ValueId operand) const {
    const Node* reshape = ProducerIf(graph_, operand, "Reshape");
    return reshape != nullptr && ProducerIf(graph_, reshape->inputs[0], "Softmax") != nullptr;
  }

  // Multiplies with all leading axes where they were merged, and the only reader of the result
  // divides them again: a Reshape, or, where all of them but one are 1, a node that broadcasts the
  // result to them.
  Status RestoreProduct(NodeId id) {
    const Node& node = graph_.node(id);
    const PartialShape& merged = ShapeOf(node.outputs[0]);
    const Node* reader = uses_.OnlyReader(node.outputs[0]);
    if (node.inputs.size() != 2 || merged.rank() != 3 || reader == nullptr ||
        reader->outputs.size() != 1) {
      return Status();
    }
    const bool reshapes = reader->op->name == "Reshape";
    const PartialShape& y = ShapeOf(reader->outputs[0]);
    if ((!reshapes && reader->op->elementwise == nullptr) || !y.known() || y.rank() <= 3 ||
        y.elements().size != merged.elements().size) {
      return Status();
    }
    for (int i = 1; i <= (reshapes ? 2 : 3); ++i) {
      if (y[y.rank() - i].size != merged[3 - i].size) return Status();
    }
    if (!IsOfWeights(node.inputs[0]) && !IsWeighed(reader->outputs[0])) return Status();
    std::vector<ValueId> operands;
    for (const ValueId operand : node.inputs) {
      const PartialShape& shape = ShapeOf(operand);
      if (!shape.known() || shape.rank() != 3 || shape[0].size != merged[0].size) return Status();
      std::vector<int64_t> sizes;
      for (int i = 0; i < y.rank() - 2; ++i) sizes.push_back(y[i].size);
      for (int i = 1; i < 3; ++i) sizes.push_back(shape[i].size);
      ONCILLA_ASSIGN(const ValueId divided, Divided(operand, sizes, id));
      operands.push_back(divided);
    }
    const NodeId end = IdOf(graph_, reader->outputs[0]);
    ONCILLA_ASSIGN(ValueId made, patch_.Add("MatMul", node.attrs, operands, {id}));
    if (!reshapes) {
      std::vector<ValueId> inputs = reader->inputs;
      std::ranges::replace(inputs, node.outputs[0], made);
      ONCILLA_ASSIGN(made, patch_.Add(reader->op->name, reader->attrs, inputs, {end}));
    }
    return patch_.Replace(reader->outputs[0], made);
  }

  const Graph& graph_;
  const Uses uses_;
  const std::vector<std::vector<NodeId>> readers_;
  Patch& patch_;
  std::unordered_map<ValueId, ValueId> restored_;  // by value: the same numbers, with all axes
};

}  // namespace

Status RestoreAxes(const Graph& graph, const PassContext&, Patch& patch) {
  return AxisRestorer(graph, patch).Run();
}

}  // namespace oncilla
