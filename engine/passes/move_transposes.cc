// Moving transposes: nodes that can compute in any order of axes use the order that leaves the
// fewest bytes to transpose. ONNX networks have a pair of transposes around each convolution; here
// these meet and cancel, and one remains where the channels-first input comes in.
//
// order_regions.cc decides which node uses which order. This file only carries that out: it adds
// the nodes in their new order, with transposes between them, or reshapes where only axes of size 1
// move.
#include <algorithm>
#include <map>

#include "engine/ops/array/indexing.h"
#include "engine/passes/order_regions.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

class TransposeMover {
 public:
  TransposeMover(const Graph& graph, Patch& patch)
      : graph_(graph), patch_(patch), plan_(ChooseOrders(graph)) {}

  Status Run() {
    if (plan_.changes) {
      for (uint32_t i = 0; i < graph_.values().size(); ++i) {
        const Origin& origin = plan_.origins[i];
        if (origin.source != kNoValue && !Changes(origin.source)) {
          have_.emplace(std::pair(origin.source, origin.order), ValueId{i});
        }
      }
      for (const OrderNode& node : plan_.nodes) {
        if (node.chosen != node.frame) ONCILLA_TRY(Move(node));
      }
      ONCILLA_TRY(ReplaceOld());
    }
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) ONCILLA_TRY(MoveShape(NodeId{n}));
    return Status();
  }

 private:
  struct Stored {
    AxisOrder order;  // the value is Transpose(source, order)
    ValueId value = kNoValue;
  };

  // Whether the source will be computed in another order than before.
  bool Changes(ValueId source) const {
    const NodeId producer = graph_.value(source).producer;
    if (producer == kNoNode) return false;
    const int at = plan_.node_of[Index(producer)];
    if (at < 0) return false;
    const OrderNode& node = plan_.nodes[At(at)];
    return node.free.dropped.empty() && node.chosen != node.frame;
  }

  // Transpose(source, order), added once.
  Result<ValueId> Get(ValueId source, const AxisOrder& order, NodeId from) {
    const auto known = have_.find(std::pair(source, order));
    if (known != have_.end()) return known->second;
    Stored stored{SameOrder(static_cast<int>(order.size())), source};
    if (auto made = stored_.find(source); made != stored_.end()) stored = made->second;
    // If a reordered copy of the value exists of which this order is a view, no transpose is
    // needed.
    for (auto it = have_.lower_bound(std::pair(source, AxisOrder()));
         it != have_.end() && it->first.first == source; ++it) {
      if (KeepsBytes(patch_.fact(it->second).shape, Compose(Inverse(it->first.second), order))) {
        stored = {it->first.second, it->second};
      }
    }
    ONCILLA_ASSIGN(
        const ValueId value,
        AddTranspose(patch_, stored.value, Compose(Inverse(stored.order), order), {from}));
    have_.emplace(std::pair(source, order), value);
    return value;
  }

  // Gives an input of lower rank leading axes of size 1 and the new order.
  Result<ValueId> GetBroadcast(ValueId id, const AxisOrder& order, NodeId from) {
    const PartialShape& shape = graph_.fact(id).shape;
    const auto& dims = shape.dims();
    if (std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 1; })) return id;
    std::vector<int64_t> axes;
    for (int i = 0; i < static_cast<int>(order.size()) - shape.rank(); ++i) axes.push_back(i);
    const ValueId leading = patch_.AddConstant(Tensor::Int64s(axes));
    ONCILLA_ASSIGN(const ValueId wide, patch_.Add("Unsqueeze", {}, {id, leading}, {from}));
    return AddTranspose(patch_, wide, order, {from});
  }

  Status Move(const OrderNode& plan) {
    const Node& node = graph_.node(plan.id);
    const AxisOrder change = plan.change();
    std::vector<ValueId> inputs = node.inputs;
    for (int i : plan.free.carried) {
      const Origin& origin = plan_.origins[Index(inputs[At(i)])];
      ONCILLA_ASSIGN(inputs[At(i)], Get(origin.source, Compose(origin.order, change), plan.id));
    }
    for (int i : plan.free.broadcast) {
      ONCILLA_ASSIGN(inputs[At(i)], GetBroadcast(inputs[At(i)], change, plan.id));
    }
    ONCILLA_ASSIGN(const auto outputs,
                   AddReordered(graph_, plan.id, change, std::move(inputs), patch_));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (plan.free.dropped.empty()) {
        stored_[node.outputs[i]] = {change, outputs[i]};
        have_[std::pair(node.outputs[i], change)] = outputs[i];
        continue;
      }
      // The permutation restricted to the axes that remain.
      AxisOrder left;
      for (int axis : change) {
        const auto at = std::lower_bound(plan.free.dropped.begin(), plan.free.dropped.end(), axis);
        if (at != plan.free.dropped.end() && *at == axis) continue;
        left.push_back(axis - static_cast<int>(at - plan.free.dropped.begin()));
      }
      ONCILLA_ASSIGN(const ValueId old, AddTranspose(patch_, outputs[i], Inverse(left), {plan.id}));
      ONCILLA_TRY(patch_.Replace(node.outputs[i], old));
    }
    return Status();
  }

  // Readers of a value whose source is computed in another order now get it from there.
  Status ReplaceOld() {
    for (uint32_t i = 0; i < graph_.values().size(); ++i) {
      const Origin& origin = plan_.origins[i];
      if (origin.source == kNoValue || !stored_.contains(origin.source)) continue;
      const NodeId from = graph_.value(ValueId{i}).producer;
      ONCILLA_ASSIGN(const ValueId now, Get(origin.source, origin.order, from));
      ONCILLA_TRY(patch_.Replace(ValueId{i}, now));
    }
    return Status();
  }

  // The shape of a transposed value is the permuted shape of its source.
  Status MoveShape(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->name != "Shape" || graph_.fact(node.outputs[0]).has_value()) return Status();
    const Origin& origin = plan_.origins[Index(node.inputs[0])];
    if (origin.source == kNoValue) return Status();
    const int rank = static_cast<int>(origin.order.size());
    Stored stored{SameOrder(rank), origin.source};
    if (auto made = stored_.find(origin.source); made != stored_.end()) stored = made->second;
    if (stored.value == node.inputs[0]) return Status();
    ONCILLA_ASSIGN(ShapeAttrs attrs, ReadAttrs<ShapeAttrs>(node.attrs));
    const AxisOrder place = Compose(Inverse(stored.order), origin.order);
    const auto clamp = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    std::vector<int64_t> axes;
    for (int64_t i = clamp(attrs.start); i < clamp(attrs.end); ++i) {
      axes.push_back(place[static_cast<size_t>(i)]);
    }
    attrs.start = ShapeAttrs().start;
    attrs.end = ShapeAttrs().end;
    ONCILLA_ASSIGN(const ValueId sizes,
                   patch_.Add("Shape", WriteAttrs(attrs), {stored.value}, {id}));
    const ValueId which = patch_.AddConstant(Tensor::Int64s(axes));
    ONCILLA_ASSIGN(const ValueId now, patch_.Add("Gather", {}, {sizes, which}, {id}));
    return patch_.Replace(node.outputs[0], now);
  }

  const Graph& graph_;
  Patch& patch_;
  const OrderPlan plan_;
  std::map<std::pair<ValueId, AxisOrder>, ValueId> have_;
  std::map<ValueId, Stored> stored_;  // sources computed in another order than before
};

}  // namespace

Status MoveTransposes(const Graph& graph, const PassContext&, Patch& patch) {
  return TransposeMover(graph, patch).Run();
}

}  // namespace oncilla
