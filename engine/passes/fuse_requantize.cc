// Requantisation moves into the integer product that computes its sums, so that the 32-bit sums
// need no memory. Only where the device accepts the fused node.
#include "engine/ops/nn/integer.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class RequantizeFuser {
 public:
  RequantizeFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name != "Requantize" || !uses_.Single(node.inputs[0])) continue;
      const NodeId product = graph_.value(node.inputs[0]).producer;
      if (product == kNoNode || graph_.node(product).device != node.device) continue;
      const std::string_view op = graph_.node(product).op->name;
      if (op == "ConvInteger") ONCILLA_TRY(Fuse<ConvIntegerAttrs>(NodeId{n}, product));
      if (op == "MatMulInteger") ONCILLA_TRY(Fuse<MatMulIntegerAttrs>(NodeId{n}, product));
    }
    return Status();
  }

 private:
  template <class Attrs>
  Status Fuse(NodeId requantize, NodeId product) {
    const Node &outer = graph_.node(requantize), &inner = graph_.node(product);
    ONCILLA_ASSIGN(const auto rule, ReadAttrs<RequantizeAttrs>(outer.attrs));
    ONCILLA_ASSIGN(auto attrs, ReadAttrs<Attrs>(inner.attrs));
    if (!attrs.epilogue.none() || rule.x_zero != 0 || rule.left_shift != 0) return Status();
    if (!AlongLastAxis(outer, rule)) return Status();
    attrs.epilogue = {rule.mode, rule.to, rule.least, rule.most};
    std::vector<ValueId> inputs = inner.inputs;
    inputs.resize(5, kNoValue);
    inputs.insert(inputs.end(), outer.inputs.begin() + 1, outer.inputs.end());
    const AttrMap map = WriteAttrs(attrs);
    Facts in;
    for (const ValueId id : inputs) {
      in.push_back(id == kNoValue ? Fact::Absent() : graph_.fact(id));
    }
    const Facts out = {graph_.fact(outer.outputs[0])};
    const NodeView view{inner.op, &map, in, out, inner.name};
    if (!context_.devices[inner.device]->CanRun(view).ok()) return Status();
    ONCILLA_ASSIGN(const ValueId fused,
                   patch_.Add(inner.op->name, map, inputs, {product, requantize}));
    return patch_.Replace(outer.outputs[0], fused);
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
  Patch& patch_;
};

}  // namespace

Status FuseRequantize(const Graph& graph, const PassContext& context, Patch& patch) {
  return RequantizeFuser(graph, context, patch).Run();
}

}  // namespace oncilla
