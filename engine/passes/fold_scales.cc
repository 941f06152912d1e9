// Constant factors and terms move into weights. A factor on each output channel of a convolution or
// matrix product is multiplied into its filter and bias; a term is added to its bias. To reach the
// product, additions of constants move after multiplications, and constants merge:
//   (x + b) * s  ->  x * s + b * s        (x + a) + b  ->  x + (a + b)
//   conv(x, w, b) * s  ->  conv(x, w * s, b * s)        conv(x, w, b) + t  ->  conv(x, w, b + t)
// The new factors are nodes on constants, which constant folding then computes. float32 and float64
// only.
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class ScaleFolder {
 public:
  ScaleFolder(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    touched_.resize(graph_.nodes().size());
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      const bool is_mul = node.op->name == "Mul", is_add = node.op->name == "Add";
      if (!is_mul && !is_add) continue;
      const DType dtype = graph_.fact(node.outputs[0]).dtype;
      if (dtype != DType::kF32 && dtype != DType::kF64) continue;
      const int c = ConstantInput(graph_, node);
      if (c < 0) continue;
      const ValueId constant = node.inputs[c], x = node.inputs[1 - c];
      const NodeId producer = graph_.value(x).producer;
      // One rewrite per node and round; the next round sees its result.
      if (producer == kNoNode || !uses_.Single(x) || touched_[Index(producer)]) continue;
      if (is_mul) {
        ONCILLA_TRY(FoldMul(NodeId{n}, producer, constant));
      } else {
        ONCILLA_TRY(MergeAdds(NodeId{n}, producer, constant));
      }
    }
    return Status();
  }

 private:
  void Touch(NodeId a, NodeId b) { touched_[Index(a)] = touched_[Index(b)] = true; }

  // The sum or product of the two constants must not have more elements than the activations.
  bool SameShapeAs(const Fact& value, ValueId a, ValueId b) const {
    auto shape = BroadcastShapes(graph_.fact(a).shape, graph_.fact(b).shape);
    return shape.ok() && shape->ranked() && value.shape.ranked() &&
           shape->rank() <= value.shape.rank();
  }

  Status FoldMul(NodeId mul, NodeId producer, ValueId s) {
    const Node &node = graph_.node(mul), &inner = graph_.node(producer);
    const Fact& y = graph_.fact(inner.outputs[0]);
    const std::vector<NodeId> both = {producer, mul};
    if (inner.op->name == "Add") {
      const int c = ConstantInput(graph_, inner);
      if (c < 0 || !SameShapeAs(y, inner.inputs[c], s)) return Status();
      ONCILLA_ASSIGN(const ValueId scaled, patch_.Add("Mul", {}, {inner.inputs[1 - c], s}, {mul}));
      ONCILLA_ASSIGN(const ValueId shift, patch_.Add("Mul", {}, {inner.inputs[c], s}, {producer}));
      ONCILLA_ASSIGN(const ValueId sum, patch_.Add("Add", {}, {scaled, shift}, {producer}));
      Touch(mul, producer);
      return patch_.Replace(node.outputs[0], sum);
    }
    if (!TakesPerChannel(inner, s)) return Status();
    const bool matmul = inner.op->name == "MatMul", turned = inner.op->name == "ConvTranspose";
    const Fact& w = graph_.fact(inner.inputs[1]);
    // The filter's last axis must be the output channels.
    if (matmul && (BoolAttr(inner, "transpose_b", false) || w.shape.rank() < 2 ||
                   graph_.fact(inner.inputs[0]).shape.rank() < 2)) {
      return Status();
    }
    if (turned && IntAttr(inner, "groups", 1) != 1) return Status();
    ONCILLA_ASSIGN(const ValueId flat, Flat(s, false, mul));
    // ConvTranspose has the output channels before the input channels in its filter.
    ONCILLA_ASSIGN(const ValueId factor, turned ? Flat(s, true, mul) : Result<ValueId>(flat));
    std::vector<ValueId> inputs = inner.inputs;
    ONCILLA_ASSIGN(inputs[1], patch_.Add("Mul", {}, {inner.inputs[1], factor}, {mul}));
    if (HasBias(inner)) {
      ONCILLA_ASSIGN(inputs[2], patch_.Add("Mul", {}, {inputs[2], flat}, {mul}));
    }
    ONCILLA_ASSIGN(const ValueId out, patch_.Add(inner.op->name, inner.attrs, inputs, both));
    Touch(mul, producer);
    return patch_.Replace(node.outputs[0], out);
  }

  Status MergeAdds(NodeId add, NodeId producer, ValueId b) {
    const Node &node = graph_.node(add), &inner = graph_.node(producer);
    if (TakesPerChannel(inner, b)) return AddToBias(add, producer, b);
    if (inner.op->name != "Add") return Status();
    const int c = ConstantInput(graph_, inner);
    if (c < 0 || !SameShapeAs(graph_.fact(inner.outputs[0]), inner.inputs[c], b)) return Status();
    ONCILLA_ASSIGN(const ValueId sum, patch_.Add("Add", {}, {inner.inputs[c], b}, {add}));
    ONCILLA_ASSIGN(const ValueId out,
                   patch_.Add("Add", {}, {inner.inputs[1 - c], sum}, {producer, add}));
    Touch(add, producer);
    return patch_.Replace(node.outputs[0], out);
  }

  static bool HasBias(const Node& node) {
    return node.inputs.size() > 2 && node.inputs[2] != kNoValue;
  }

  // Whether the node's weights can absorb a factor or term per output channel.
  bool TakesPerChannel(const Node& node, ValueId constant) const {
    const std::string_view op = node.op->name;
    if (op != "Conv" && op != "MatMul" && op != "ConvTranspose") return false;
    if (!graph_.value(node.inputs[1]).is_constant() ||
        (HasBias(node) && !graph_.value(node.inputs[2]).is_constant()) ||
        (op != "ConvTranspose" && node.inputs.size() > 3) ||
        StringAttr(node, "activation", "none") != "none") {
      return false;
    }
    return IsPerChannel(graph_.fact(constant).shape, graph_.fact(node.outputs[0]).shape);
  }

  // Reshapes a per-channel or scalar constant to [n] or [n, 1].
  Result<ValueId> Flat(ValueId constant, bool column, NodeId from) {
    std::vector<int64_t> sizes = {graph_.fact(constant).shape.elements().size};
    if (column) sizes.push_back(1);
    const ValueId shape = patch_.AddConstant(Tensor::Int64s(sizes));
    return patch_.Add("Reshape", {}, {constant, shape}, {from});
  }

  Status AddToBias(NodeId add, NodeId producer, ValueId term) {
    const Node &node = graph_.node(add), &inner = graph_.node(producer);
    std::vector<ValueId> inputs = inner.inputs;
    if (HasBias(inner)) {
      ONCILLA_ASSIGN(const ValueId flat, Flat(term, false, add));
      ONCILLA_ASSIGN(inputs[2], patch_.Add("Add", {}, {inputs[2], flat}, {add}));
    } else {
      // A matrix product gets its first bias in epilogue fusion, where the device is asked whether
      // it takes one.
      const PartialShape& y = graph_.fact(inner.outputs[0]).shape;
      const Dim channels = y[y.rank() - 1];
      if (inner.op->name == "MatMul" || !channels.known()) return Status();
      ONCILLA_ASSIGN(const ValueId flat, Flat(term, false, add));
      const ValueId size = patch_.AddConstant(Tensor::Int64s(std::vector{channels.size}));
      inputs.resize(std::max<size_t>(inputs.size(), 3), kNoValue);
      ONCILLA_ASSIGN(inputs[2], patch_.Add("Expand", {}, {flat, size}, {add}));
    }
    ONCILLA_ASSIGN(const ValueId out,
                   patch_.Add(inner.op->name, inner.attrs, std::move(inputs), {producer, add}));
    Touch(add, producer);
    return patch_.Replace(node.outputs[0], out);
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
  std::vector<bool> touched_;
};

}  // namespace

Status FoldScales(const Graph& graph, const PassContext&, Patch& patch) {
  return ScaleFolder(graph, patch).Run();
}

}  // namespace oncilla
