// Epilogue fusion: nodes that follow a convolution or matrix product on the same device move into
// it, in the order in which its kernel applies them: bias, residual, activation. A node moves only
// if the device accepts the fused node.
#include "engine/ops/math/activation.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), patch_(patch) {}

  Status Run() {
    std::vector<bool> touched(graph_.nodes().size());
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      for (size_t i = 0; i < node.inputs.size() && i < 2; ++i) {
        if (node.inputs[i] == kNoValue) continue;
        const NodeId producer = graph_.value(node.inputs[i]).producer;
        if (producer == kNoNode || touched[Index(producer)] || touched[n]) continue;
        const Node& target = graph_.node(producer);
        if ((target.op->name != "Conv" && target.op->name != "MatMul") ||
            target.device != node.device || !uses_.Single(node.inputs[i]) ||
            StringAttr(target, "activation", "none") != "none") {
          continue;
        }
        ONCILLA_ASSIGN(const bool fused, TryFuse(NodeId{n}, producer, i));
        if (fused) touched[n] = touched[Index(producer)] = true;
      }
    }
    return Status();
  }

 private:
  // `input` is the index of the input of `outer` that the target computes.
  Result<bool> TryFuse(NodeId outer, NodeId target_id, size_t input) {
    const Node &node = graph_.node(outer), &target = graph_.node(target_id);
    std::vector<ValueId> inputs = target.inputs;
    inputs.resize(4, kNoValue);
    AttrMap attrs = target.attrs;
    const Fact& y = graph_.fact(target.outputs[0]);
    const Activation activation = ActivationOf(node.op->name, node.attrs);
    // An activation becomes an attribute, a per-channel constant the bias, any other addend of the
    // same shape the residual.
    if (activation != Activation::kNone) {
      attrs["activation"] = std::string(Name(activation));
    } else if (node.op->name == "Add") {
      const ValueId other = node.inputs[1 - input];
      const Fact& fact = graph_.fact(other);
      if (fact.dtype != y.dtype || !fact.shape.ranked() || !y.shape.ranked()) return false;
      const bool constant = graph_.value(other).is_constant();
      if (constant && inputs[2] == kNoValue && inputs[3] == kNoValue &&
          IsPerChannel(fact.shape, y.shape) && fact.shape.elements().size > 1) {
        const ValueId shape =
            patch_.AddConstant(Tensor::Int64s(std::vector<int64_t>{fact.shape.elements().size}));
        ONCILLA_ASSIGN(inputs[2], patch_.Add("Reshape", {}, {other, shape}, {outer}));
      } else if (inputs[3] == kNoValue && SameShape(fact.shape, y.shape)) {
        // The residual cannot depend on the target, because the target's value has no other reader.
        inputs[3] = other;
      } else {
        return false;
      }
    } else {
      return false;
    }
    // The device decides whether it has a kernel for the fused node.
    while (inputs.back() == kNoValue) inputs.pop_back();
    Facts in;
    for (ValueId id : inputs) in.push_back(patch_.fact(id));
    const Facts out = {y};
    const NodeView view{target.op, &attrs, in, out, target.name};
    if (!context_.devices[target.device]->CanRun(view).ok()) return false;
    ONCILLA_ASSIGN(const ValueId fused,
                   patch_.Add(target.op->name, attrs, inputs, {target_id, outer}));
    ONCILLA_TRY(patch_.Replace(node.outputs[0], fused));
    return true;
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status FuseEpilogue(const Graph& graph, const PassContext& context, Patch& patch) {
  return EpilogueFuser(graph, context, patch).Run();
}

}  // namespace oncilla
