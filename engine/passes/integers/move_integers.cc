// Nodes that only move elements between DequantizeLinear and QuantizeLinear move the integers
// instead:
//   Quantize(move(Dequantize(q)))  ->  move(q)
// if both have the same parameters. If a node joins several tensors (Concat), those with other
// parameters are first converted to the result's, by a table. Max pooling counts as moving
// elements, too, since the larger integer is the larger number, and the padding is the least one.
// So does Resize with the mode nearest.
#include <algorithm>

#include "engine/ops/nn/resize.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

// No real model nests movements deeper than this; the bound protects against hostile ones.
constexpr int kDeepest = 32;

class Mover {
 public:
  Mover(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name != "QuantizeLinear") continue;
      const auto to = ParametersOf(graph_, node);
      if (!to || !to->single() || !Reaches(node.inputs[0], *to, false, 0)) continue;
      ONCILLA_ASSIGN(const ValueId y, Integers(node.inputs[0], NodeId{n}, *to));
      ONCILLA_TRY(patch_.Replace(node.outputs[0], y));
    }
    return Status();
  }

 private:
  // The integers from which the value was dequantised; kNoValue unless they have these parameters.
  ValueId Same(ValueId value, const LinearParameters& to) const {
    const Node* node = ProducerIf(graph_, value, "DequantizeLinear");
    if (node == nullptr) return kNoValue;
    const auto from = ParametersOf(graph_, *node);
    return from && from->SameAs(to) ? node->inputs[0] : kNoValue;
  }

  bool IsDequantised(ValueId value) const {
    const Node* node = ProducerIf(graph_, value, "DequantizeLinear");
    if (node == nullptr) return false;
    const auto from = ParametersOf(graph_, *node);
    return from && from->single() && BitsOf(from->dtype) == 8;
  }

  // Whether a Resize only takes pixels: outside the region of crop_and_resize it gives a number
  // instead.
  static bool TakesPixels(const Node& node) {
    if (node.op->name != "Resize") return false;
    const auto attrs = ReadAttrs<ResizeAttrs>(node.attrs);
    return attrs.ok() && attrs->mode == "nearest" && attrs->coordinates != "crop_and_resize";
  }

  static bool Moves(const Node& node) {
    return node.outputs.size() == 1 &&
           (OnlyMoves(*node.op) || node.op->name == "MaxPool" || TakesPixels(node));
  }

  static size_t MovedInputs(const Node& node) {
    return node.op->traits.axes.all_inputs ? node.inputs.size() : 1;
  }

  // Whether integers with these parameters reach the value through movements alone. Below a node
  // that joins several tensors (`any`), all parameters are accepted.
  bool Reaches(ValueId value, const LinearParameters& to, bool any, int depth) const {
    if (Same(value, to) != kNoValue || (any && IsDequantised(value))) return true;
    const NodeId id = graph_.value(value).producer;
    if (id == kNoNode || depth > kDeepest || !uses_.Single(value)) return false;
    const Node& node = graph_.node(id);
    if (!Moves(node)) return false;
    const size_t moved = MovedInputs(node);
    return std::all_of(
        node.inputs.begin(), node.inputs.begin() + static_cast<ptrdiff_t>(moved),
        [&](ValueId from) { return Reaches(from, to, any || moved > 1, depth + 1); });
  }

  Result<ValueId> Integers(ValueId value, NodeId quantise, const LinearParameters& to) {
    if (const ValueId same = Same(value, to); same != kNoValue) return same;
    const NodeId id = graph_.value(value).producer;
    const Node& node = graph_.node(id);
    if (!Moves(node)) {
      std::vector<ValueId> inputs = graph_.node(quantise).inputs;
      inputs[0] = value;
      return patch_.Add("QuantizeLinear", graph_.node(quantise).attrs, inputs, {quantise});
    }
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < MovedInputs(node); ++i) {
      ONCILLA_ASSIGN(inputs[i], Integers(inputs[i], quantise, to));
    }
    return patch_.Add(node.op->name, node.attrs, inputs, {id});
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status MoveIntegers(const Graph& graph, const PassContext&, Patch& patch) {
  return Mover(graph, patch).Run();
}

}  // namespace oncilla
