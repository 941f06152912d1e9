// Constant factors and terms move into the weights of the convolution that reads them:
//   conv(x * s, w, b)  ->  conv(x, w * s, b)
//   conv(x + t, w, b)  ->  conv(x, w, b + sum(w * t))     without padding: zeros have no t
// s and t are scalars or per input channel. Constants that could move into the weights of the node
// before have done so already (fold_scales.cc). float32 and float64 only.
#include <algorithm>

#include "engine/ops/nn/conv.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class ScaleFolderAhead {
 public:
  ScaleFolderAhead(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.node(NodeId{n}).op->name == "Conv") ONCILLA_TRY(Fold(NodeId{n}));
    }
    return Status();
  }

 private:
  Status Fold(NodeId conv_id) {
    const Node& conv = graph_.node(conv_id);
    const NodeId inner_id = graph_.value(conv.inputs[0]).producer;
    if (inner_id == kNoNode || !uses_.Single(conv.inputs[0])) return Status();
    const Node& inner = graph_.node(inner_id);
    // Only the convolution may read the product or sum, since the node before it disappears.
    const bool is_mul = inner.op->name == "Mul", is_add = inner.op->name == "Add";
    if (!is_mul && !is_add) return Status();
    const int c = ConstantInput(graph_, inner);
    if (c < 0) return Status();
    const ValueId constant = inner.inputs[c], x = inner.inputs[1 - c];
    const Fact &w = graph_.fact(conv.inputs[1]), &in = graph_.fact(x);
    const bool biased = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
    if (!graph_.value(conv.inputs[1]).is_constant() ||
        (biased && !graph_.value(conv.inputs[2]).is_constant()) ||
        (in.dtype != DType::kF32 && in.dtype != DType::kF64) || !in.shape.ranked() ||
        in.shape.rank() != w.shape.rank() || !IsPerChannel(graph_.fact(constant).shape, in.shape)) {
      return Status();
    }
    ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(conv.attrs));
    // A term cannot move over padding: the zeros outside of x do not have it.
    const bool pads =
        attrs.auto_pad != "valid" &&
        (attrs.auto_pad != "explicit" ||
         std::any_of(attrs.pads.begin(), attrs.pads.end(), [](int64_t p) { return p != 0; }));
    if (is_add && pads) return Status();
    // The filter is [spatial.., input channels of a group, output channels]. A factor per input
    // channel is a column there; if each channel is its own group (depthwise), it aligns with the
    // outputs.
    const int64_t count = graph_.fact(constant).shape.elements().size;
    const int rank = w.shape.rank();
    std::vector<int64_t> sizes = {count};
    if (count > 1 && attrs.groups == 1) {
      sizes.push_back(1);
    } else if (count > 1 && (attrs.groups != count || w.shape[rank - 1].size != count)) {
      return Status();
    }
    // Scale the filter, or add the sum of filter * term over taps and input channels to the bias.
    const std::vector<NodeId> from = {inner_id};
    const ValueId shape = patch_.AddConstant(Tensor::Int64s(sizes));
    ONCILLA_ASSIGN(const ValueId factor, patch_.Add("Reshape", {}, {constant, shape}, from));
    ONCILLA_ASSIGN(const ValueId product, patch_.Add("Mul", {}, {conv.inputs[1], factor}, from));
    std::vector<ValueId> inputs = conv.inputs;
    inputs[0] = x;
    // A factor replaces the filter; a term only changes the bias.
    if (is_mul) {
      inputs[1] = product;
    } else {
      std::vector<int64_t> axes;
      for (int i = 0; i + 1 < rank; ++i) axes.push_back(i);
      const ValueId all = patch_.AddConstant(Tensor::Int64s(axes));
      ONCILLA_ASSIGN(ValueId bias, patch_.Add("ReduceSum", {}, {product, all}, from));
      if (biased) {
        ONCILLA_ASSIGN(bias, patch_.Add("Add", {}, {conv.inputs[2], bias}, from));
      }
      inputs.resize(std::max<size_t>(inputs.size(), 3), kNoValue);
      inputs[2] = bias;
    }
    ONCILLA_ASSIGN(const ValueId out,
                   patch_.Add("Conv", conv.attrs, std::move(inputs), {conv_id, inner_id}));
    return patch_.Replace(conv.outputs[0], out);
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status FoldScalesAhead(const Graph& graph, const PassContext&, Patch& patch) {
  return ScaleFolderAhead(graph, patch).Run();
}

}  // namespace oncilla
