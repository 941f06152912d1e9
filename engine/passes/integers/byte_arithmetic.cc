// Sums and products of two tensors of bytes between DequantizeLinear and QuantizeLinear, computed
// in fewer steps, and rounded as in the ops that ONNX Runtime fuses them to (QLinearAdd and
// QLinearMul):
//   Quantize(Dequantize(a) + Dequantize(b))
//     ->  Cast(Clip(Round(Fma(Cast(a), a_scale / scale, Fma(Cast(b), b_scale / scale, offset)))))
//   Quantize(Dequantize(a) * Dequantize(b))
//     ->  Cast(Clip(Round((Cast(a) - a_zero) * (Cast(b) - b_zero) * factor + zero)))
// All tensors have one type, and one scale and zero point each. A Relu before the QuantizeLinear is
// dropped if the lowest integer represents zero.
#include <cmath>

#include "engine/passes/integers/byte_expression.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

class ByteArithmetic {
 public:
  ByteArithmetic(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name == "QuantizeLinear") ONCILLA_TRY(Look(NodeId{n}));
    }
    return Status();
  }

 private:
  Status Look(NodeId id) {
    const Node& quantize = graph_.node(id);
    const auto to = ParametersOf(graph_, quantize);
    if (!to || !to->single() || BitsOf(to->dtype) != 8) return Status();
    const IntegerLimits limits = LimitsOf(to->dtype);
    from_ = {id};
    ValueId result = quantize.inputs[0];
    const Node* relu = ProducerIf(graph_, result, "Relu");
    if (relu != nullptr && uses_.Single(result) &&
        static_cast<double>(to->zeros[0]) == static_cast<double>(limits.least)) {
      from_.push_back(graph_.value(result).producer);
      result = relu->inputs[0];
    }
    const Node* add = ProducerIf(graph_, result, "Add");
    const Node* node = add != nullptr ? add : ProducerIf(graph_, result, "Mul");
    if (node == nullptr || !uses_.Single(result)) return Status();
    from_.push_back(graph_.value(result).producer);
    const auto a = DequantisedBefore(graph_, node->inputs[0]);
    const auto b = DequantisedBefore(graph_, node->inputs[1]);
    for (const auto& operand : {a, b}) {
      if (!operand || !operand->order.empty() || !operand->parameters.single() ||
          operand->parameters.dtype != to->dtype) {
        return Status();
      }
    }
    ByteExpression bytes(patch_, from_);
    ONCILLA_ASSIGN(ValueId y,
                   add != nullptr ? Sum(bytes, *a, *b, *to) : Product(bytes, *a, *b, *to));
    if (y == kNoValue) return Status();
    ONCILLA_ASSIGN(y, bytes.Bytes(y, to->dtype, static_cast<float>(limits.least),
                                  static_cast<float>(limits.most)));
    return patch_.Replace(quantize.outputs[0], y);
  }

  // Returns kNoValue if a factor is not finite.
  static Result<ValueId> Sum(ByteExpression& bytes, const Dequantised& a, const Dequantised& b,
                             const LinearParameters& to) {
    const float a_factor = a.parameters.scales[0] / to.scales[0];
    const float b_factor = b.parameters.scales[0] / to.scales[0];
    const float b_offset = b_factor * Zero(b.parameters);
    const float offset = Zero(to) - std::fma(a_factor, Zero(a.parameters), b_offset);
    if (!std::isfinite(a_factor) || !std::isfinite(b_factor) || !std::isfinite(offset)) {
      return kNoValue;
    }
    return bytes.Sum(a.integers, a_factor, b.integers, b_factor, offset);
  }

  static Result<ValueId> Product(ByteExpression& bytes, const Dequantised& a, const Dequantised& b,
                                 const LinearParameters& to) {
    const float factor = a.parameters.scales[0] * b.parameters.scales[0] / to.scales[0];
    if (!std::isfinite(factor)) return kNoValue;
    return bytes.Product(a.integers, Zero(a.parameters), b.integers, Zero(b.parameters), factor,
                         Zero(to));
  }

  static float Zero(const LinearParameters& p) { return static_cast<float>(p.zeros[0]); }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
  std::vector<NodeId> from_;  // the nodes that are replaced, the last one first
};

}  // namespace

Status AddAndMultiplyBytes(const Graph& graph, const PassContext&, Patch& patch) {
  return ByteArithmetic(graph, patch).Run();
}

}  // namespace oncilla
