// Collects layers by planning a model, or from tables of known nets.
#include "tools/oncilla/commands/tune_layers.h"

#include "engine/compile/plan.h"
#include "engine/ops/op_set.h"
#include "engine/run/executor.h"
#include "tools/oncilla/commands/feeds.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

using Ints = std::vector<int64_t>;

class Layers {
 public:
  // A convolution of a square image of `size`, padded so that the size stays the same.
  Status Conv(int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
              const char* activation, bool residual = false, int64_t groups = 1, int count = 1) {
    const int64_t pixels = (size + stride - 1) / stride, pad = (kernel - 1) / 2;
    OwnedNode node;
    node.attrs = {{"strides", Ints{stride, stride}},
                  {"pads", Ints{pad, pad, pad, pad}},
                  {"groups", groups},
                  {"activation", std::string(activation)}};
    node.inputs = {Data({1, size, size, in}), Weights({kernel, kernel, in / groups, out}),
                   Weights({out})};
    if (residual) node.inputs.push_back(Data({1, pixels, pixels, out}));
    return Add("Conv", std::move(node), count);
  }
  Status Product(int64_t rows, int64_t columns, int64_t depth, const char* activation,
                 bool residual, int count) {
    OwnedNode node;
    node.attrs = {{"activation", std::string(activation)}};
    node.inputs = {Data({rows, depth}), Weights({depth, columns}), Weights({columns})};
    if (residual) node.inputs.push_back(Data({rows, columns}));
    return Add("MatMul", std::move(node), count);
  }
  std::vector<OwnedNode> Take() { return std::move(nodes_); }

 private:
  static Fact Data(const Shape& shape) { return Fact::Of(TensorDesc{DType::kF32, shape}); }
  static Fact Weights(const Shape& shape) {
    Fact fact = Data(shape);
    fact.constant = true;
    return fact;
  }
  Status Add(std::string_view op, OwnedNode node, int count) {
    node.op = ops_->Find(op);
    if (node.op == nullptr) return Internal("no op ", op);
    node.count = count;
    ONCILLA_ASSIGN(node.outputs, node.op->infer(node.attrs, node.inputs));
    node.operations = WorkOf({node.op, &node.attrs, node.inputs, node.outputs, ""}).operations;
    nodes_.push_back(std::move(node));
    return Status();
  }

  const std::shared_ptr<const OpSet> ops_ = OpSet::Builtin();
  std::vector<OwnedNode> nodes_;
};

Status ResNet50(Layers& layers) {
  ONCILLA_TRY(layers.Conv(224, 3, 64, 7, 2, "relu"));
  int64_t in = 64, size = 56, wide = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    const int64_t out = 4 * wide, stride = wide == 64 ? 1 : 2, half = size / stride;
    // The first block: a narrowing, a 3x3 and a widening convolution, and the shortcut.
    ONCILLA_TRY(layers.Conv(size, in, wide, 1, 1, "relu"));
    ONCILLA_TRY(layers.Conv(size, wide, wide, 3, stride, "relu"));
    ONCILLA_TRY(layers.Conv(size, in, out, 1, stride, "none"));
    ONCILLA_TRY(layers.Conv(half, wide, out, 1, 1, "relu", true, 1, blocks));
    ONCILLA_TRY(layers.Conv(half, out, wide, 1, 1, "relu", false, 1, blocks - 1));
    ONCILLA_TRY(layers.Conv(half, wide, wide, 3, 1, "relu", false, 1, blocks - 1));
    in = out, size = half, wide *= 2;
  }
  return layers.Product(1, 1000, 2048, "none", false, 1);
}

Status MobileNetV2(Layers& layers) {
  ONCILLA_TRY(layers.Conv(224, 3, 32, 3, 2, "relu6"));
  struct Stage {
    int64_t expand, out;
    int blocks;
    int64_t stride;
  };
  int64_t in = 32, size = 112;
  for (const Stage& stage :
       {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
        Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (int block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 ? stage.stride : 1, wide = stage.expand * in;
      if (stage.expand > 1) ONCILLA_TRY(layers.Conv(size, in, wide, 1, 1, "relu6"));
      ONCILLA_TRY(layers.Conv(size, wide, wide, 3, stride, "relu6", false, wide));
      size /= stride;
      ONCILLA_TRY(layers.Conv(size, wide, stage.out, 1, 1, "none", block > 0));
      in = stage.out;
    }
  }
  ONCILLA_TRY(layers.Conv(7, 320, 1280, 1, 1, "relu6"));
  return layers.Product(1, 1000, 1280, "none", false, 1);
}

// The projections in the layers of a transformer.
Status Encoder(Layers& layers, int64_t words, int64_t width, int64_t inner, int count) {
  ONCILLA_TRY(layers.Product(words, 3 * width, width, "none", false, count));
  ONCILLA_TRY(layers.Product(words, width, width, "none", true, count));
  ONCILLA_TRY(layers.Product(words, inner, width, "gelu", false, count));
  return layers.Product(words, width, inner, "none", true, count);
}

}  // namespace

Result<std::vector<OwnedNode>> LayersOfNets() {
  Layers layers;
  ONCILLA_TRY(ResNet50(layers));
  ONCILLA_TRY(MobileNetV2(layers));
  ONCILLA_TRY(Encoder(layers, 128, 384, 1536, 6));
  ONCILLA_TRY(Encoder(layers, 128, 768, 3072, 12));
  ONCILLA_TRY(Encoder(layers, 1, 576, 1536, 30));
  return layers.Take();
}

Result<std::vector<OwnedNode>> LayersOfModel(const OpenedModel& opened, const InputFlags& flags) {
  ONCILLA_ASSIGN(const auto executor, CompileModel(opened, {}, {}));
  const CompiledGraph& compiled = executor->compiled();
  ONCILLA_ASSIGN(const PlanFeeds made, FeedsForPlan(opened, compiled, flags));
  if (!made.open_sizes.empty()) {
    return WithStage(InvalidArgument(made.open_sizes), Stage::kOptions);
  }
  std::shared_ptr<const Plan> plan;
  {
    const Progress progress("planning");
    ONCILLA_ASSIGN(plan, executor->PlanFor(made.feeds));
  }
  const int device = opened.session->device_set().preferred();
  Facts facts;
  for (const Tensor& feed : made.feeds) facts.push_back(Fact::Of(feed.desc()));
  std::vector<OwnedNode> nodes;
  uint32_t at = 0;
  VisitNodes(compiled.graph, facts, *opened.session->device_set().devices()[0],
             [&](const NodeView& node, bool known) {
               const NodeId id{at++};
               if (!known || plan->fates[Index(id)] != NodeFate::kStep ||
                   compiled.graph.node(id).device != device) {
                 return;
               }
               OwnedNode owned{node.op, *node.attrs, {}, {}, std::string(node.name)};
               owned.inputs.assign(node.inputs.begin(), node.inputs.end());
               owned.outputs.assign(node.outputs.begin(), node.outputs.end());
               owned.operations = WorkOf(node).operations;
               nodes.push_back(std::move(owned));
             });
  return nodes;
}

}  // namespace oncilla::tool
