// Requantisation moves into the integer product that computes its sums, so that the 32-bit sums
// need no memory. So do the steps that convert sums to real numbers, Add(Mul(Cast(sums), scale),
// term), with or without the addition. A node moves only if the device accepts the fused node.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/ops/nn/integer.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class RequantizeFuser {
 public:
  RequantizeFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), patch_(patch) {
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ValueId id : graph.node(NodeId{n}).inputs) {
        if (id != kNoValue) readers_[id] = NodeId{n};
      }
    }
  }

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      const bool requantises = node.op->name == "Requantize";
      if (!requantises && node.op->name != "Cast") continue;
      if (!uses_.Single(node.inputs[0])) continue;
      const NodeId product = graph_.value(node.inputs[0]).producer;
      if (product == kNoNode || graph_.node(product).device != node.device) continue;
      const std::string_view op = graph_.node(product).op->name;
      if (op == "ConvInteger") ONCILLA_TRY(Fuse<ConvIntegerAttrs>(NodeId{n}, product, requantises));
      if (op == "MatMulInteger") {
        ONCILLA_TRY(Fuse<MatMulIntegerAttrs>(NodeId{n}, product, requantises));
      }
    }
    return Status();
  }

 private:
  // The steps after the sums: the epilogue, its inputs, and the nodes that it replaces.
  struct End {
    IntegerEpilogue epilogue;
    std::vector<ValueId> inputs;
    std::vector<NodeId> nodes;
  };

  template <class Attrs>
  Status Fuse(NodeId first, NodeId product, bool requantises) {
    const Node& inner = graph_.node(product);
    ONCILLA_ASSIGN(auto attrs, ReadAttrs<Attrs>(inner.attrs));
    if (!attrs.epilogue.none()) return Status();
    std::optional<End> end;
    if (requantises) {
      ONCILLA_ASSIGN(end, RequantizedEnd(first));
    } else if (MakesReal(attrs)) {
      end = RealEnd(first);
    }
    if (!end) return Status();
    attrs.epilogue = end->epilogue;
    std::vector<ValueId> inputs = inner.inputs;
    inputs.resize(5, kNoValue);
    inputs.insert(inputs.end(), end->inputs.begin(), end->inputs.end());
    const AttrMap map = WriteAttrs(attrs);
    Facts in;
    for (const ValueId id : inputs) {
      in.push_back(id == kNoValue ? Fact::Absent() : graph_.fact(id));
    }
    const ValueId result = graph_.node(end->nodes.back()).outputs[0];
    const Facts out = {graph_.fact(result)};
    const NodeView view{inner.op, &map, in, out, inner.name};
    if (!context_.devices[inner.device]->CanRun(view).ok()) return Status();
    std::vector<NodeId> from = {product};
    from.insert(from.end(), end->nodes.begin(), end->nodes.end());
    ONCILLA_ASSIGN(const ValueId fused, patch_.Add(inner.op->name, map, inputs, from));
    return patch_.Replace(result, fused);
  }

  Result<std::optional<End>> RequantizedEnd(NodeId id) const {
    const Node& node = graph_.node(id);
    ONCILLA_ASSIGN(const auto rule, ReadAttrs<RequantizeAttrs>(node.attrs));
    if (rule.x_zero != 0 || rule.left_shift != 0 || !AlongLastAxis(node, rule)) {
      return std::optional<End>();
    }
    return std::optional<End>({{rule.mode, rule.to, rule.least, rule.most},
                               {node.inputs.begin() + 1, node.inputs.end()},
                               {id}});
  }

  // Depthwise products have no fast code for real results.
  static bool MakesReal(const ConvIntegerAttrs& attrs) { return attrs.groups == 1; }
  static bool MakesReal(const MatMulIntegerAttrs&) { return true; }

  std::optional<End> RealEnd(NodeId cast) const {
    const Node& node = graph_.node(cast);
    const PartialShape& sums = graph_.fact(node.inputs[0]).shape;
    if (graph_.fact(node.outputs[0]).dtype != DType::kF32 || !sums.ranked()) return std::nullopt;
    const auto scaled = StepAfter(cast, "Mul", sums);
    if (!scaled) return std::nullopt;
    End end = {{.requantize = "real", .to = DType::kF32}, {scaled->number}, {cast, scaled->node}};
    if (const auto moved = StepAfter(scaled->node, "Add", sums)) {
      end.inputs.push_back(moved->number);
      end.nodes.push_back(moved->node);
    }
    return end;
  }

  struct Step {
    NodeId node = kNoNode;
    ValueId number = kNoValue;  // the other operand: f32, one for all sums or one per column
  };
  // The only reader of a node's result, on the same device, if it is such an `op`.
  std::optional<Step> StepAfter(NodeId before, std::string_view op,
                                const PartialShape& sums) const {
    const ValueId value = graph_.node(before).outputs[0];
    const auto reader = readers_.find(value);
    if (!uses_.Single(value) || reader == readers_.end()) return std::nullopt;
    const Node& node = graph_.node(reader->second);
    if (node.op->name != op || node.device != graph_.node(before).device) return std::nullopt;
    const ValueId other = node.inputs[node.inputs[0] == value ? 1 : 0];
    const PartialShape& given = graph_.fact(other).shape;
    if (other == value || graph_.fact(other).dtype != DType::kF32 || !given.ranked() ||
        given.rank() > std::min(1, sums.rank())) {
      return std::nullopt;
    }
    if (given.rank() == 1) {
      const Dim &places = sums[sums.rank() - 1], &count = given[0];
      const bool one = count.known() && count.size == 1;
      const bool each = count.known() && places.known() && count.size == places.size;
      if (!one && !each) return std::nullopt;
    }
    return Step{reader->second, other};
  }

  // Whether there is one factor for all sums or one for each column.
  bool AlongLastAxis(const Node& node, const RequantizeAttrs& rule) const {
    const PartialShape& scale = graph_.fact(node.inputs[1]).shape;
    if (!scale.ranked()) return false;
    const Dim factors = scale.elements();
    if (factors.known() && factors.size == 1) return true;
    const PartialShape& x = graph_.fact(node.inputs[0]).shape;
    return factors.known() && x.ranked() && (rule.axis == -1 || rule.axis == x.rank() - 1);
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  std::unordered_map<ValueId, NodeId> readers_;  // the last one of each value
  Patch& patch_;
};

}  // namespace

Status FuseRequantize(const Graph& graph, const PassContext& context, Patch& patch) {
  return RequantizeFuser(graph, context, patch).Run();
}

}  // namespace oncilla
