// Quantisation next to elementwise nodes becomes elementwise nodes with the same rounding, so that
// fusion makes one kernel of all of it, which reads and writes integers:
//   Quantize(x)    ->  Cast(Clip(Round(x / scale) + zero))
//   Dequantize(q)  ->  (Cast(q) - zero) * scale
// Parameters must be scalar.
#include "engine/passes/pass.h"
#include "engine/passes/quantised.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, Patch& patch)
      : graph_(graph), patch_(patch), readers_(graph.values().size()) {}

  Status Run() {
    for (const Node& node : graph_.nodes()) {
      for (const ValueId id : node.inputs) {
        if (id == kNoValue) continue;
        int& state = readers_[Index(id)];
        if (node.op->elementwise == nullptr) state = -1;
        if (state >= 0) state = 1;
      }
    }
    for (const NamedValue& output : graph_.outputs()) readers_[Index(output.value)] = -1;
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      const bool quantises = node.op->name == "QuantizeLinear";
      if (!quantises && node.op->name != "DequantizeLinear") continue;
      const auto p = ParametersOf(graph_, node);
      // A float represents integers exactly only up to 24 bits.
      if (!p || !p->single() || BitsOf(p->dtype) > 16) continue;
      if (quantises ? FollowsElementwise(node) : readers_[Index(node.outputs[0])] == 1) {
        ONCILLA_ASSIGN(const ValueId y,
                       quantises ? Quantise(NodeId{n}, *p) : Dequantise(NodeId{n}, *p));
        ONCILLA_TRY(patch_.Replace(node.outputs[0], y));
      }
    }
    return Status();
  }

 private:
  bool FollowsElementwise(const Node& node) const {
    const NodeId producer = graph_.value(node.inputs[0]).producer;
    return producer != kNoNode && graph_.node(producer).op->elementwise != nullptr &&
           graph_.node(producer).device == node.device;
  }

  ValueId Number(float value) { return patch_.AddConstant(Tensor::Scalar(value)); }

  Result<ValueId> Quantise(NodeId id, const LinearParameters& p) {
    const std::vector<NodeId> from = {id};
    const IntegerLimits limits = LimitsOf(p.dtype);
    const ValueId x = graph_.node(id).inputs[0];
    ONCILLA_ASSIGN(ValueId y, patch_.Add("Div", {}, {x, Number(p.scales[0])}, from));
    ONCILLA_ASSIGN(y, patch_.Add("Round", {}, {y}, from));
    if (p.zeros[0] != 0) {
      const ValueId zero = Number(static_cast<float>(p.zeros[0]));
      ONCILLA_ASSIGN(y, patch_.Add("Add", {}, {y, zero}, from));
    }
    const ValueId least = Number(static_cast<float>(limits.least));
    const ValueId most = Number(static_cast<float>(limits.most));
    ONCILLA_ASSIGN(y, patch_.Add("Clip", {}, {y, least, most}, from));
    return patch_.Add("Cast", {{"to", p.dtype}}, {y}, from);
  }

  Result<ValueId> Dequantise(NodeId id, const LinearParameters& p) {
    const std::vector<NodeId> from = {id};
    const ValueId q = graph_.node(id).inputs[0];
    ONCILLA_ASSIGN(ValueId y, patch_.Add("Cast", {{"to", DType::kF32}}, {q}, from));
    if (p.zeros[0] != 0) {
      const ValueId zero = Number(static_cast<float>(p.zeros[0]));
      ONCILLA_ASSIGN(y, patch_.Add("Sub", {}, {y, zero}, from));
    }
    return patch_.Add("Mul", {}, {y, Number(p.scales[0])}, from);
  }

  const Graph& graph_;
  Patch& patch_;
  // By value: 1 if only elementwise nodes read it, -1 if others do.
  std::vector<int> readers_;
};

}  // namespace

Status LowerQuantisation(const Graph& graph, const PassContext&, Patch& patch) {
  return Lowering(graph, patch).Run();
}

}  // namespace oncilla
