// Replaces computations on bytes by table look-ups. A subgraph of elementwise nodes that computes
// bytes from one tensor of bytes, such as one between DequantizeLinear and QuantizeLinear, has 256
// possible inputs. Its results are therefore computed now, by the CPU's reference kernels, and
// stored in a table.
#include "engine/ops/op_set.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

constexpr size_t kMaxNodes = 24;

class TableMaker {
 public:
  TableMaker(const Graph& graph, Device& cpu, Patch& patch)
      : graph_(graph), cpu_(cpu), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (MakesBytes(node)) ONCILLA_TRY(Look(NodeId{n}));
    }
    return Status();
  }

 private:
  // Whether the node converts numbers to bytes: a QuantizeLinear, the nodes that byte_arithmetic.cc
  // writes in its place, or a Requantize.
  bool MakesBytes(const Node& node) const {
    if (node.op->name == "QuantizeLinear") return true;
    const bool requantize = node.op->name == "Requantize";
    if (!requantize && node.op->name != "Cast") return false;
    if (!requantize && ProducerIf(graph_, node.inputs[0], "Clip") == nullptr) {
      return false;
    }
    const DType dtype = graph_.fact(node.outputs[0]).dtype;
    return dtype == DType::kU8 || dtype == DType::kI8;
  }

  bool Belongs(const Node& node) const {
    if (node.op->name == "QuantizeLinear" || node.op->name == "DequantizeLinear") {
      const auto parameters = ParametersOf(graph_, node);
      return parameters && parameters->single();
    }
    if (node.op->name == "ByteTable") return graph_.value(node.inputs[1]).is_constant();
    const bool one_by_one = node.op->elementwise != nullptr || node.op->name == "Requantize";
    if (!one_by_one || node.op->traits.is_random) return false;
    // A constant with several elements would make a result depend on its position.
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !graph_.value(id).is_constant()) continue;
      const Dim count = graph_.fact(id).shape.elements();
      if (!count.known() || count.size != 1) return false;
    }
    return true;
  }

  Status Look(NodeId quantise) {
    const Node& node = graph_.node(quantise);
    const Subgraph* best = nullptr;
    const auto found = SubgraphsBefore(
        graph_, uses_, node.outputs[0], [this](const Node& n) { return Belongs(n); }, kMaxNodes);
    for (const Subgraph& subgraph : found) {
      const DType entry = graph_.fact(subgraph.entry).dtype;
      if (entry == DType::kU8 || entry == DType::kI8) best = &subgraph;
    }
    if (best == nullptr) return Status();
    const Fact &x = graph_.fact(best->entry), &y = graph_.fact(node.outputs[0]);
    // A constant of higher rank would raise the result's rank.
    if (!x.shape.ranked() || !y.shape.ranked() || x.shape.rank() != y.shape.rank()) return Status();
    std::vector<uint8_t> codes;
    for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint8_t>(i));
    const Tensor entry = Tensor::Of<uint8_t>(x.dtype, {256}, codes);
    const auto results = ComputeSubgraph(graph_, *best, entry, cpu_);
    // A failure is ignored here: the nodes may be on a branch that is never taken. If they are run,
    // they fail again.
    if (!results.ok() || results->elements() != 256) return Status();
    std::vector<NodeId> from = {quantise};
    for (const uint32_t member : best->nodes) {
      if (NodeId{member} != quantise) from.push_back(NodeId{member});
    }
    const ValueId table = patch_.AddConstant(results->Reshaped({256}));
    ONCILLA_ASSIGN(const ValueId out, patch_.Add("ByteTable", {}, {best->entry, table}, from));
    return patch_.Replace(node.outputs[0], out);
  }

  const Graph& graph_;
  Device& cpu_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status MakeByteTables(const Graph& graph, const PassContext& context, Patch& patch) {
  return TableMaker(graph, *context.devices[0], patch).Run();
}

}  // namespace oncilla
