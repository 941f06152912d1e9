// Simplifies single nodes and pairs: transposes of transposes become one, transposes that only move
// axes of size 1 become reshapes, of consecutive reshapes only the last one remains, and a Clip
// with the bounds of an activation becomes that activation.
#include <cmath>
#include <limits>
#include <optional>

#include "engine/passes/axis_order.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class Simplifier {
 public:
  Simplifier(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name == "Transpose") ONCILLA_TRY(SimplifyTranspose(NodeId{n}));
      if (node.op->name == "Reshape") ONCILLA_TRY(SimplifyReshape(NodeId{n}));
      if (node.op->name == "MatMul") ONCILLA_TRY(SimplifyMatMul(NodeId{n}));
      if (node.op->name == "Clip") ONCILLA_TRY(SimplifyClip(NodeId{n}));
    }
    return Status();
  }

 private:
  Status SimplifyTranspose(NodeId id) {
    const Node& node = graph_.node(id);
    auto order = OrderOf(graph_, node);
    if (!order) return Status();
    ValueId x = node.inputs[0];
    std::vector<NodeId> from = {id};
    while (const Node* inner = ProducerIf(graph_, x, "Transpose")) {
      const auto first = OrderOf(graph_, *inner);
      if (!first) break;
      AxisOrder both = Compose(*first, *order);
      // A view of a transposed value is free already.
      if (KeepsBytes(graph_.fact(x).shape, *order) &&
          !KeepsBytes(graph_.fact(inner->inputs[0]).shape, both)) {
        break;
      }
      from.insert(from.begin(), IdOf(graph_, x));
      x = inner->inputs[0];
      order = std::move(both);
    }
    const PartialShape& shape = graph_.fact(x).shape;
    if (from.size() == 1 && !IsSameOrder(*order) && !KeepsBytes(shape, *order)) return Status();
    ONCILLA_ASSIGN(const ValueId now, AddTranspose(patch_, x, *order, from));
    return patch_.Replace(node.outputs[0], now);
  }

  // Reshape(view(x)) is Reshape(x), unless the shape copies sizes from its input.
  Status SimplifyReshape(NodeId id) {
    const Node& node = graph_.node(id);
    const NodeId producer = graph_.value(node.inputs[0]).producer;
    if (producer == kNoNode) return Status();
    const Node& inner = graph_.node(producer);
    const std::string_view op = inner.op->name;
    if (op != "Reshape" && op != "Squeeze" && op != "Unsqueeze" && op != "Flatten") return Status();
    if (BoolAttr(node, "zero_copies", false)) {
      const auto sizes = KnownInts(graph_.fact(node.inputs[1]));
      if (!sizes) return Status();
      for (const Dim& size : *sizes) {
        if (!size.known() || size.size == 0) return Status();
      }
    }
    std::vector<ValueId> inputs = {inner.inputs[0], node.inputs[1]};
    ONCILLA_ASSIGN(const ValueId now, patch_.Add("Reshape", node.attrs, inputs, {producer, id}));
    // Sizes that only the inner reshape states must not be lost.
    const PartialShape &was = graph_.fact(node.outputs[0]).shape, &is = patch_.fact(now).shape;
    if (was.ranked() != is.ranked() || was.rank() != is.rank()) return Status();
    for (int i = 0; i < was.rank(); ++i) {
      if ((was[i].known() || !was[i].name.empty()) && !was[i].Same(is[i])) return Status();
    }
    return patch_.Replace(node.outputs[0], now);
  }

  // A MatMul reads a transposed matrix in its original layout, by its attributes transpose_a and
  // transpose_b. If the transpose also moves other axes, a transpose that keeps rows whole remains,
  // which moves the same bytes in longer runs.
  Status SimplifyMatMul(NodeId id) {
    const Node& node = graph_.node(id);
    AttrMap attrs = node.attrs;
    std::vector<ValueId> inputs = node.inputs;
    std::vector<NodeId> from = {id};
    for (size_t i = 0; i < 2; ++i) {
      const Node* inner = ProducerIf(graph_, inputs[i], "Transpose");
      if (inner == nullptr || !uses_.Single(inputs[i])) continue;
      auto order = OrderOf(graph_, *inner);
      if (!order || order->size() < 2) continue;
      const int last = static_cast<int>(order->size()) - 1;
      std::swap(order->back(), (*order)[order->size() - 2]);
      if (order->back() != last) continue;
      const char* name = i == 0 ? "transpose_a" : "transpose_b";
      attrs[name] = !BoolAttr(node, name, false);
      const NodeId inner_id = IdOf(graph_, inputs[i]);
      from.push_back(inner_id);
      ONCILLA_ASSIGN(inputs[i], AddTranspose(patch_, inner->inputs[0], *order, {inner_id}));
    }
    if (from.size() == 1) return Status();
    ONCILLA_ASSIGN(const ValueId now, patch_.Add("MatMul", std::move(attrs), inputs, from));
    return patch_.Replace(node.outputs[0], now);
  }

  // Recognises the bounds of the two activations that kernels of other ops can apply to their
  // results.
  Status SimplifyClip(NodeId id) {
    const Node& node = graph_.node(id);
    const PartialShape& x = graph_.fact(node.inputs[0]).shape;
    const auto bound = [&](size_t i) -> std::optional<double> {
      const double none = i == 1 ? -std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::infinity();
      if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return none;
      const Fact& fact = graph_.fact(node.inputs[i]);
      // A bound of higher rank than x would raise the result's rank.
      if (!fact.has_value() || fact.value.elements() != 1 || !x.ranked() ||
          fact.shape.rank() > x.rank()) {
        return {};
      }
      const auto numbers = ToDoubles(fact.value);
      return numbers.ok() ? std::optional((*numbers)[0]) : std::nullopt;
    };
    const auto low = bound(1), high = bound(2);
    if (!low || !high || *low != 0 || (*high != 6 && !std::isinf(*high))) return Status();
    ONCILLA_ASSIGN(const ValueId now,
                   patch_.Add(*high == 6 ? "Relu6" : "Relu", {}, {node.inputs[0]}, {id}));
    return patch_.Replace(node.outputs[0], now);
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status Simplify(const Graph& graph, const PassContext&, Patch& patch) {
  return Simplifier(graph, patch).Run();
}

}  // namespace oncilla
