// Lists that are built and read as a whole disappear: a tensor unstacked and stacked again is that
// tensor, and a list of one element is that element with one more axis. TensorFlow 1 scatters and
// gathers by the indices 0, 1, ...
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// True if `numbers` is 0, 1, ... for that many elements.
bool CountsAll(const Graph& graph, ValueId numbers, const Dim& elements) {
  const Node* range = ProducerIf(graph, numbers, "Range");
  const PartialShape& shape = graph.fact(numbers).shape;
  if (range == nullptr || !shape.ranked() || !shape[0].Same(elements)) return false;
  auto is = [&](size_t input, int64_t number) {
    const auto ints = KnownInts(graph.fact(range->inputs[input]));
    return ints.has_value() && ints->size() == 1 && ints->front().size == number;
  };
  return is(0, 0) && is(2, 1);
}

// The length of a reserved list; unknown if the list is not a reserved one.
Dim ReservedLength(const Graph& graph, ValueId list) {
  const Node* reserve = ProducerIf(graph, list, "ListReserve");
  if (reserve == nullptr) return Dim();
  const auto ints = KnownInts(graph.fact(reserve->inputs[0]));
  return ints.has_value() && ints->size() == 1 ? ints->front() : Dim();
}

Dim Rows(const Graph& graph, ValueId x) {
  const PartialShape& shape = graph.fact(x).shape;
  return shape.ranked() && shape.rank() > 0 ? shape[0] : Dim();
}

// The elements stacked to one tensor, if all of the list is known; else kNoValue.
Result<ValueId> Whole(const Graph& graph, NodeId stack, Patch& patch) {
  const Node& node = graph.node(stack);
  const ValueId list = node.inputs[0];
  if (const Node* made = ProducerIf(graph, list, "ListFromTensor")) {
    const ValueId x = made->inputs[0];
    const bool all =
        node.op->name == "ListStack" || CountsAll(graph, node.inputs[1], Rows(graph, x));
    return all ? x : kNoValue;
  }
  const Node* set = ProducerIf(graph, list, "ListSet");
  if (node.op->name != "ListStack" || set == nullptr || BoolAttr(*set, "grow", false) ||
      !ReservedLength(graph, set->inputs[0]).Same(Dim(1)) ||
      !AllIntsKnown(graph.fact(set->inputs[1]))) {
    return kNoValue;
  }
  ONCILLA_ASSIGN(const auto indices, NeedInts(graph.fact(set->inputs[1]), "index"));
  if (indices != std::vector<int64_t>{0}) return kNoValue;
  const ValueId axes = patch.AddConstant(Tensor::Int64s(std::vector<int64_t>{0}));
  return patch.Add("Unsqueeze", {}, {set->inputs[2], axes}, {stack});
}

// Simplifies a reserved list whose elements are all written at once.
Status SimplifyScatter(const Graph& graph, NodeId id, Patch& patch) {
  const Node& node = graph.node(id);
  const Dim rows = Rows(graph, node.inputs[2]);
  if (!ReservedLength(graph, node.inputs[0]).Same(rows) ||
      !CountsAll(graph, node.inputs[1], rows)) {
    return Status();
  }
  ONCILLA_ASSIGN(const ValueId made, patch.Add("ListFromTensor", {}, {node.inputs[2]}, {id}));
  return patch.Replace(node.outputs[0], made);
}

// True if a tensor of this shape certainly has the wanted sizes; otherwise the stack would have to
// check them.
bool Fits(const PartialShape& shape, const PartialShape& wanted) {
  if (!wanted.ranked()) return true;
  if (!shape.ranked() || shape.rank() != wanted.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (wanted[i].known() && !wanted[i].Same(shape[i])) return false;
  }
  return true;
}

}  // namespace

Status SimplifyLists(const Graph& graph, const PassContext&, Patch& patch) {
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    if (node.op->name == "ListScatter") ONCILLA_TRY(SimplifyScatter(graph, NodeId{n}, patch));
    if (node.op->name != "ListStack" && node.op->name != "ListGather") continue;
    ONCILLA_ASSIGN(const ValueId whole, Whole(graph, NodeId{n}, patch));
    if (whole == kNoValue) continue;
    const Fact &now = patch.fact(whole), &then = graph.fact(node.outputs[0]);
    if (now.dtype != then.dtype || !Fits(now.shape, then.shape)) continue;
    ONCILLA_TRY(patch.Replace(node.outputs[0], whole));
  }
  return Status();
}

}  // namespace oncilla
