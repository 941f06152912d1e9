// Quantisation next to elementwise nodes becomes elementwise nodes with the same rounding, so that
// fusion makes a single kernel of all of them, which reads and writes integers:
//   Quantize(x)    ->  Cast(Clip(Round(x / scale) + zero))
//   Dequantize(q)  ->  (Cast(q) - zero) * scale
// Parameters must be scalar.
//
// Average pools between Dequantize and Quantize often give results halfway between two integers.
// These are rounded as in ONNX Runtime's quantised pools, which add the zero point first:
//   Quantize(pool(Dequantize(q)))  ->  Cast(Clip(Round(pool(Dequantize(q)) / scale + zero)))
// Transposes may be in between. If padding counts and windows extend beyond it, ONNX Runtime's pool
// divides by a different count, and nothing is changed.
#include "engine/ops/nn/pool.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

// QuantizeLinear as elementwise nodes; `zero_first` adds the zero point before rounding.
Result<ValueId> AddQuantised(const Graph& graph, NodeId id, const LinearParameters& p, Patch& patch,
                             bool zero_first) {
  const auto number = [&](auto v) {
    return patch.AddConstant(Tensor::Scalar(static_cast<float>(v)));
  };
  const std::vector<NodeId> from = {id};
  const IntegerLimits limits = LimitsOf(p.dtype);
  const auto add_zero = [&](ValueId x) -> Result<ValueId> {
    if (p.zeros[0] == 0) return x;
    return patch.Add("Add", {}, {x, number(p.zeros[0])}, from);
  };
  ONCILLA_ASSIGN(ValueId y,
                 patch.Add("Div", {}, {graph.node(id).inputs[0], number(p.scales[0])}, from));
  if (zero_first) {
    ONCILLA_ASSIGN(y, add_zero(y));
  }
  ONCILLA_ASSIGN(y, patch.Add("Round", {}, {y}, from));
  if (!zero_first) {
    ONCILLA_ASSIGN(y, add_zero(y));
  }
  ONCILLA_ASSIGN(y, patch.Add("Clip", {}, {y, number(limits.least), number(limits.most)}, from));
  return patch.Add("Cast", {{"to", p.dtype}}, {y}, from);
}

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
        ONCILLA_ASSIGN(const ValueId y, quantises
                                            ? AddQuantised(graph_, NodeId{n}, *p, patch_, false)
                                            : Dequantise(NodeId{n}, *p));
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

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

// The AveragePool of bytes that computes the value, if nothing else reads it.
bool IsPoolOfBytes(const Graph& graph, const Uses& uses, ValueId value, DType bytes) {
  while (uses.Single(value)) {
    if (const Node* move = ProducerIf(graph, value, "Transpose")) {
      value = move->inputs[0];
      continue;
    }
    const Node* pool = ProducerIf(graph, value, "AveragePool");
    if (pool == nullptr) return false;
    const auto attrs = ReadAttrs<AveragePoolAttrs>(pool->attrs);
    if (!attrs.ok() || (attrs->ceil && attrs->count_pads)) return false;
    const auto x = DequantisedBefore(graph, pool->inputs[0]);
    return x && x->parameters.single() && x->parameters.dtype == bytes;
  }
  return false;
}

}  // namespace

Status LowerQuantisation(const Graph& graph, const PassContext&, Patch& patch) {
  return Lowering(graph, patch).Run();
}

Status RoundPools(const Graph& graph, const PassContext&, Patch& patch) {
  const Uses uses(graph);
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    if (node.op->name != "QuantizeLinear") continue;
    const auto to = ParametersOf(graph, node);
    if (!to || !to->single() || !IsByte(to->dtype)) continue;
    if (!IsPoolOfBytes(graph, uses, node.inputs[0], to->dtype)) continue;
    ONCILLA_ASSIGN(const ValueId y, AddQuantised(graph, NodeId{n}, *to, patch, true));
    ONCILLA_TRY(patch.Replace(node.outputs[0], y));
  }
  return Status();
}

}  // namespace oncilla
