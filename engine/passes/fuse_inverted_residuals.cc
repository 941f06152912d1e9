// Inverted residual blocks become one node: a convolution to many channels (expand), a depthwise
// convolution, and a convolution to few channels (project). The tensor in between is the largest of
// such a network, and then never reaches memory. In squeeze-and-excitation blocks, where gates are
// computed from channel means before `project`, the first two and the mean become one node.
//
// This is done only where the device has the fused op, which requires constant f32 filters, and
// where the saved memory traffic is worth more than the rows that are computed twice.
#include <algorithm>

#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// A smaller expanded tensor stays in a core's second-level cache from one kernel to the next.
constexpr int64_t kKeptBytes = int64_t{1} << 20;
// The most input channels of a convolution with a larger window that may act as `expand`: those of
// a first layer. With more channels, separate kernels are faster.
constexpr int64_t kFewChannels = 4;

// A pointwise (1x1) convolution with stride 1 and a constant filter, which is a matrix product over
// the channels.
bool IsPixelByPixel(const Graph& graph, const Node& conv) {
  const auto all = [&](std::string_view name, int64_t wanted) {
    const auto it = conv.attrs.find(name);
    if (it == conv.attrs.end()) return true;
    const auto* list = std::get_if<std::vector<int64_t>>(&it->second);
    return list != nullptr && std::ranges::all_of(*list, [&](int64_t i) { return i == wanted; });
  };
  if (!graph.value(conv.inputs[1]).is_constant()) return false;
  const Shape filter = graph.fact(conv.inputs[1]).desc().shape;
  return IntAttr(conv, "groups", 1) == 1 && all("strides", 1) && all("pads", 0) &&
         std::all_of(filter.begin(), filter.end() - 2, [](int64_t size) { return size == 1; });
}

// The bytes of one f32 sample; all its sizes are known.
int64_t BytesOf(const PartialShape& shape) {
  int64_t bytes = 4;
  for (int i = 1; i < shape.rank(); ++i) bytes = SaturatingMul(bytes, shape[i].size);
  return bytes;
}

class ResidualFuser {
 public:
  ResidualFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph),
        context_(context),
        uses_(graph),
        readers_(Consumers(graph)),
        patch_(patch),
        taken_(graph.nodes().size()) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (!taken_[n] && IsDepthwise(graph_.node(NodeId{n}))) ONCILLA_TRY(Try(NodeId{n}));
    }
    return Status();
  }

 private:
  // The nodes that are fused into one; expand, project and mean may be missing.
  struct Block {
    const Node *expand = nullptr, *depthwise = nullptr, *project = nullptr, *mean = nullptr;
  };

  // An image convolution whose sizes and filter are known.
  bool IsConv(const Node& node) const {
    if (node.op->name != "Conv") return false;
    const Fact &x = graph_.fact(node.inputs[0]), &y = graph_.fact(node.outputs[0]);
    const auto known = [](const Fact& fact) {
      return fact.shape.ranked() && fact.shape.rank() == 4 && fact.shape[1].known() &&
             fact.shape[2].known() && fact.shape[3].known();
    };
    return known(x) && known(y) && x.dtype == DType::kF32 &&
           graph_.value(node.inputs[1]).is_constant();
  }
  static bool Has(const Node& node, size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoValue;
  }
  Shape FilterOf(const Node& conv) const { return graph_.fact(conv.inputs[1]).desc().shape; }

  bool IsDepthwise(const Node& node) const {
    if (!IsConv(node) || Has(node, 3)) return false;
    const Shape filter = FilterOf(node);
    return filter[2] == 1 && filter[3] > 1 && IntAttr(node, "groups", 1) == filter[3];
  }

  const Node* ExpandOf(const Node& depthwise) const {
    const Node* conv = ProducerIf(graph_, depthwise.inputs[0], "Conv");
    if (conv == nullptr || taken_[Index(IdOf(graph_, depthwise.inputs[0]))] || !IsConv(*conv) ||
        conv->device != depthwise.device || !uses_.Single(depthwise.inputs[0]) ||
        IntAttr(*conv, "groups", 1) != 1 || Has(*conv, 3)) {
      return nullptr;
    }
    const Shape filter = FilterOf(*conv);
    return (filter[0] == 1 && filter[1] == 1) || filter[2] <= kFewChannels ? conv : nullptr;
  }

  // The only reader of `depthwise`; null if there are several or the value is fetched.
  const Node* ReaderOf(const Node& depthwise) const {
    const auto& readers = readers_[Index(depthwise.outputs[0])];
    return uses_.Single(depthwise.outputs[0]) && readers.size() == 1 ? &graph_.node(readers[0])
                                                                     : nullptr;
  }

  const Node* MeanOf(const Node& depthwise) const {
    for (const NodeId id : readers_[Index(depthwise.outputs[0])]) {
      const Node& node = graph_.node(id);
      if (node.op->name != "ReduceMean" || node.device != depthwise.device ||
          !BoolAttr(node, "keep_dims", false) || !Has(node, 1)) {
        continue;
      }
      const auto axes = NeedInts(graph_.fact(node.inputs[1]), "axes");
      if (axes.ok() &&
          (*axes == std::vector<int64_t>{1, 2} || *axes == std::vector<int64_t>{-3, -2})) {
        return &node;
      }
    }
    return nullptr;
  }

  Status Try(NodeId id) {
    Block block;
    block.depthwise = &graph_.node(id);
    const ValueId y = block.depthwise->outputs[0];
    if (BytesOf(graph_.fact(block.depthwise->inputs[0]).shape) >= kKeptBytes)
      block.expand = ExpandOf(*block.depthwise);
    const Node* reader = ReaderOf(*block.depthwise);
    if (reader != nullptr && reader->op->name == "Conv" && reader->inputs[0] == y &&
        reader->device == block.depthwise->device && IsConv(*reader) &&
        IsPixelByPixel(graph_, *reader) &&
        (block.expand != nullptr || BytesOf(graph_.fact(y).shape) >= kKeptBytes)) {
      block.project = reader;
    }
    if (block.project == nullptr) block.mean = MeanOf(*block.depthwise);
    if (block.expand == nullptr && block.project == nullptr && block.mean == nullptr) {
      return Status();
    }
    return Fuse(block);
  }

  Status Fuse(const Block& block) {
    const Node& depthwise = *block.depthwise;
    const Node& last = block.project != nullptr ? *block.project : depthwise;
    std::vector<ValueId> inputs(8, kNoValue);
    std::vector<NodeId> from;
    AttrMap attrs;
    const auto take = [&](const Node* node, size_t at) {
      if (node == nullptr) return;
      inputs[at] = node->inputs[1];
      if (Has(*node, 2)) inputs[at + 1] = node->inputs[2];
      from.push_back(IdOf(graph_, node->outputs[0]));
    };
    const auto copy = [&](const Node* node, std::string_view name, std::string to) {
      if (node == nullptr) return;
      if (const auto it = node->attrs.find(name); it != node->attrs.end()) attrs[to] = it->second;
    };
    // The inputs of InvertedResidual: x, then filter and bias of expand, depthwise and project, and
    // the residual.
    take(block.project, 5);
    take(&depthwise, 3);
    take(block.expand, 1);
    if (block.mean != nullptr) from.push_back(IdOf(graph_, block.mean->outputs[0]));
    inputs[0] = block.expand != nullptr ? block.expand->inputs[0] : depthwise.inputs[0];
    if (block.project != nullptr && Has(*block.project, 3)) inputs[7] = block.project->inputs[3];
    while (inputs.back() == kNoValue) inputs.pop_back();
    for (const std::string name : {"strides", "dilations", "pads", "auto_pad"}) {
      copy(block.expand, name, "expand_" + name);
      copy(&depthwise, name, name);
    }
    copy(block.expand, "activation", "expand_activation");
    copy(&depthwise, "activation", "depthwise_activation");
    copy(block.project, "activation", "activation");
    if (block.mean != nullptr) attrs["mean"] = true;

    const Facts in = graph_.FactsOf(inputs);
    Facts out = graph_.FactsOf(last.outputs);
    if (block.mean != nullptr) out.push_back(graph_.fact(block.mean->outputs[0]));
    // The device decides whether the fused node is worth it.
    const NodeView view{graph_.ops().Find("InvertedResidual"), &attrs, in, out, last.name};
    if (!context_.devices[last.device]->CanRun(view).ok()) return Status();
    for (const NodeId taken : from) taken_[Index(taken)] = true;
    ONCILLA_ASSIGN(const auto made, patch_.AddNode("InvertedResidual", attrs, inputs, from));
    ONCILLA_TRY(patch_.Replace(last.outputs[0], made[0]));
    if (block.mean != nullptr) ONCILLA_TRY(patch_.Replace(block.mean->outputs[0], made[1]));
    return Status();
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  const std::vector<std::vector<NodeId>> readers_;
  Patch& patch_;
  std::vector<bool> taken_;
};

// A factor per sample and channel moves into the pointwise convolution that reads the product:
// Conv(x * gate) becomes GatedConv, which multiplies as it reads.
class GateFuser {
 public:
  GateFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) ONCILLA_TRY(Try(NodeId{n}));
    return Status();
  }

 private:
  Status Try(NodeId id) {
    const Node& conv = graph_.node(id);
    if (conv.op->name != "Conv" || !IsPixelByPixel(graph_, conv)) return Status();
    const Node* mul = ProducerIf(graph_, conv.inputs[0], "Mul");
    if (mul == nullptr || mul->device != conv.device || !uses_.Single(conv.inputs[0])) {
      return Status();
    }
    for (size_t i = 0; i < 2; ++i) {
      const ValueId x = mul->inputs[1 - i], gate = mul->inputs[i];
      if (!IsGate(graph_.fact(gate).shape, graph_.fact(x).shape)) continue;
      std::vector<ValueId> inputs = conv.inputs;
      inputs.resize(5, kNoValue);
      inputs[0] = x;
      inputs[4] = gate;
      const Facts in = graph_.FactsOf(inputs), out = graph_.FactsOf(conv.outputs);
      const NodeView view{graph_.ops().Find("GatedConv"), &conv.attrs, in, out, conv.name};
      if (!context_.devices[conv.device]->CanRun(view).ok()) return Status();
      const NodeId from = graph_.value(conv.inputs[0]).producer;
      ONCILLA_ASSIGN(const ValueId fused, patch_.Add("GatedConv", conv.attrs, inputs, {id, from}));
      return patch_.Replace(conv.outputs[0], fused);
    }
    return Status();
  }

  // Whether `gate` is a factor per sample and channel of an x that is large. A smaller x is
  // multiplied in the second-level cache faster than tile by tile inside the convolution.
  static bool IsGate(const PartialShape& gate, const PartialShape& x) {
    if (!gate.ranked() || !x.ranked() || gate.rank() != x.rank() || gate.rank() < 3) return false;
    const int last = gate.rank() - 1;
    for (int i = 1; i < last; ++i) {
      if (!gate[i].known() || gate[i].size != 1 || !x[i].known()) return false;
    }
    return gate[0].Same(x[0]) && gate[last].Same(x[last]) && x[last].known() &&
           BytesOf(x) >= kKeptBytes;
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status FuseInvertedResiduals(const Graph& graph, const PassContext& context, Patch& patch) {
  return ResidualFuser(graph, context, patch).Run();
}

Status FuseGates(const Graph& graph, const PassContext& context, Patch& patch) {
  return GateFuser(graph, context, patch).Run();
}

}  // namespace oncilla
