// Batch normalisation with known statistics becomes one multiplication and one addition per
// channel:
//   y = x * s + t,  s = scale / sqrt(variance + epsilon),  t = offset - mean * s
// s and t are built as nodes on constants, which constant folding then computes.
#include "engine/ops/nn/norm.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

Status Lower(const Graph& graph, NodeId id, const BatchNormAttrs& attrs, Patch& patch) {
  const Node& node = graph.node(id);
  const Fact& x = graph.fact(node.inputs[0]);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.shape.rank()));
  const std::vector<NodeId> from = {id};
  ONCILLA_ASSIGN(Tensor eps, Tensor::Allocate({x.dtype, {}}));
  if (x.dtype == DType::kF64) {
    eps.MutableAs<double>()[0] = attrs.epsilon;
  } else {
    eps.MutableAs<float>()[0] = static_cast<float>(attrs.epsilon);
  }
  const ValueId epsilon = patch.AddConstant(std::move(eps));
  ONCILLA_ASSIGN(const ValueId spread, patch.Add("Add", {}, {node.inputs[4], epsilon}, from));
  ONCILLA_ASSIGN(const ValueId root, patch.Add("Sqrt", {}, {spread}, from));
  ONCILLA_ASSIGN(ValueId s, patch.Add("Div", {}, {node.inputs[1], root}, from));
  ONCILLA_ASSIGN(const ValueId shift, patch.Add("Mul", {}, {node.inputs[3], s}, from));
  ONCILLA_ASSIGN(ValueId t, patch.Add("Sub", {}, {node.inputs[2], shift}, from));
  // To broadcast [C] along the channel axis: append a size of 1 for each later axis.
  std::vector<int64_t> sizes(static_cast<size_t>(x.shape.rank() - axis), 1);
  sizes[0] = -1;
  if (sizes.size() > 1) {
    const ValueId shape = patch.AddConstant(Tensor::Int64s(sizes));
    ONCILLA_ASSIGN(s, patch.Add("Reshape", {}, {s, shape}, from));
    ONCILLA_ASSIGN(t, patch.Add("Reshape", {}, {t, shape}, from));
  }
  ONCILLA_ASSIGN(const ValueId scaled, patch.Add("Mul", {}, {node.inputs[0], s}, from));
  ONCILLA_ASSIGN(const ValueId y, patch.Add("Add", {}, {scaled, t}, from));
  return patch.Replace(node.outputs[0], y);
}

}  // namespace

Status LowerBatchNorm(const Graph& graph, const PassContext&, Patch& patch) {
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    if (node.op->name != "BatchNorm") continue;
    const Fact& x = graph.fact(node.inputs[0]);
    // Half precision would round the products, while the op's own kernel computes in float.
    if (!x.shape.ranked() || (x.dtype != DType::kF32 && x.dtype != DType::kF64)) continue;
    bool known = true;
    for (size_t i = 1; i < 5; ++i) {
      known &=
          graph.value(node.inputs[i]).is_constant() && graph.fact(node.inputs[i]).dtype == x.dtype;
    }
    if (!known) continue;
    ONCILLA_ASSIGN(const auto attrs, ReadAttrs<BatchNormAttrs>(node.attrs));
    // Multiplication and addition would broadcast a parameter of the wrong length where the op
    // refuses it.
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.shape.rank()));
    if (!x.shape[axis].known()) continue;
    ONCILLA_TRY(Lower(graph, NodeId{n}, attrs, patch));
  }
  return Status();
}

}  // namespace oncilla
