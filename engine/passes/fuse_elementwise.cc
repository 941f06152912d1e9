// Chains and trees of elementwise nodes become one FusedElementwise node, so that intermediate
// values never reach memory.
//
// A group grows backwards from a node. An elementwise node on the same device joins if all its
// readers are in the group already and its shape is the group's, so that nothing is computed twice.
// The group ends at fetched values, at values that determine shapes (which planning must see), and
// at nodes that the device does not accept in fused form.
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/graph/shape_fixers.h"
#include "engine/ops/math/elementwise_program.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// The value of a one-element constant that can be written as a number in the program.
std::optional<double> NumberIn(const Fact& fact) {
  if (!fact.has_value() || fact.value.elements() != 1 || fact.shape.rank() != 0) return {};
  if (fact.dtype == DType::kString || fact.dtype == DType::kBool) return {};
  auto values = ToDoubles(fact.value);
  // Above 2^53 a double does not represent every integer.
  if (!values.ok() || !std::isfinite((*values)[0]) || std::abs((*values)[0]) > 0x1p53) return {};
  return (*values)[0];
}

class ElementwiseFuser {
 public:
  ElementwiseFuser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph),
        context_(context),
        patch_(patch),
        uses_(graph),
        fixes_shapes_(FindShapeFixers(graph)),
        taken_(graph.nodes().size()) {}

  Status Run() {
    for (uint32_t n = static_cast<uint32_t>(graph_.nodes().size()); n-- > 0;) {
      if (taken_[n] || !CanJoin(graph_.node(NodeId{n}))) continue;
      std::set<uint32_t> group = Grow(n);
      if (group.size() < 2) continue;
      ONCILLA_ASSIGN(const bool fused, Fuse(group));
      if (!fused) continue;
      for (uint32_t member : group) taken_[member] = true;
    }
    return Status();
  }

 private:
  bool CanJoin(const Node& node) const {
    if (node.op->elementwise == nullptr || node.op->name == "Identity") return false;
    const Fact& out = graph_.fact(node.outputs[0]);
    return out.shape.ranked() && out.dtype != DType::kString &&
           !fixes_shapes_[Index(node.outputs[0])];
  }

  // Whether a member of the group reads the value together with inputs that cannot broadcast it to
  // a larger shape. The value then has the member's shape, even if sizes are unknown.
  bool IsUnstretched(ValueId id, const std::set<uint32_t>& group) const {
    const PartialShape& shape = graph_.fact(id).shape;
    const auto stretches = [&](const Node& node, int axis) {
      for (ValueId other : node.inputs) {
        if (other == kNoValue || other == id) continue;
        const PartialShape& beside = graph_.fact(other).shape;
        if (!beside.ranked()) return true;
        const int at = axis - (shape.rank() - beside.rank());
        if (at >= 0 && beside[at].size != 1) return true;
      }
      return false;
    };
    for (uint32_t n : group) {
      const Node& node = graph_.node(NodeId{n});
      if (std::find(node.inputs.begin(), node.inputs.end(), id) == node.inputs.end()) continue;
      const PartialShape& out = graph_.fact(node.outputs[0]).shape;
      bool same = out.rank() == shape.rank();
      for (int i = 0; same && i < out.rank(); ++i) {
        same =
            shape[i].Same(out[i]) || (!shape[i].known() && !out[i].known() && !stretches(node, i));
      }
      if (same) return true;
    }
    return false;
  }

  // The number of values that the group reads from memory; numbers are part of the program.
  size_t CountInputs(const std::set<uint32_t>& group) const {
    std::set<uint32_t> inputs;
    for (uint32_t n : group) {
      for (ValueId id : graph_.node(NodeId{n}).inputs) {
        if (id == kNoValue || NumberIn(graph_.fact(id))) continue;
        const NodeId producer = graph_.value(id).producer;
        if (producer == kNoNode || !group.contains(Index(producer))) inputs.insert(Index(id));
      }
    }
    return inputs.size();
  }

  std::set<uint32_t> Grow(uint32_t root) const {
    std::set<uint32_t> group = {root};
    const Node& last = graph_.node(NodeId{root});
    const PartialShape& shape = graph_.fact(last.outputs[0]).shape;
    for (bool grown = true; grown && group.size() < kMaxProgramSteps;) {
      grown = false;
      // How often the group reads each outside producer; later ones first, so that readers join
      // before what they read.
      std::map<uint32_t, int, std::greater<>> reads;
      for (uint32_t n : group) {
        for (ValueId id : graph_.node(NodeId{n}).inputs) {
          if (id == kNoValue || graph_.value(id).producer == kNoNode) continue;
          const uint32_t producer = Index(graph_.value(id).producer);
          if (!group.contains(producer)) ++reads[producer];
        }
      }
      for (const auto& [n, count] : reads) {
        const Node& node = graph_.node(NodeId{n});
        if (taken_[n] || node.device != last.device || !CanJoin(node) ||
            uses_.Count(node.outputs[0]) != count ||
            !(SameShape(graph_.fact(node.outputs[0]).shape, shape) ||
              IsUnstretched(node.outputs[0], group))) {
          continue;
        }
        group.insert(n);
        if (CountInputs(group) > kMaxProgramInputs) {
          group.erase(n);
          continue;
        }
        grown = true;
        break;
      }
    }
    return group;
  }

  Result<bool> Fuse(const std::set<uint32_t>& group) {
    std::vector<std::string> program;
    std::vector<ValueId> inputs;
    std::vector<NodeId> from;
    std::map<uint32_t, int> step_of;  // by value id
    for (uint32_t n : group) {
      const Node& node = graph_.node(NodeId{n});
      ElementwiseStep step;
      ONCILLA_ASSIGN(step.call, ReadElementwise(*node.op->elementwise, node.attrs));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        step.operands.push_back(OperandFor(node, i, step_of, inputs));
      }
      step_of[Index(node.outputs[0])] = static_cast<int>(program.size());
      program.push_back(ToString(step));
      from.push_back(NodeId{n});
    }
    if (inputs.empty() || inputs.size() > kMaxProgramInputs) return false;
    const Node& last = graph_.node(from.back());
    const AttrMap attrs = {{"program", program}};
    const Facts in = graph_.FactsOf(inputs);
    const OpDef* op = graph_.ops().Find("FusedElementwise");
    auto out = InferNode(graph_.ops(), last.name, op->name, attrs, in);
    if (!out.ok()) return In(out.status(), StrCat("fusing into node '", last.name, "'"));
    const NodeView view{op, &attrs, in, *out, last.name};
    if (!context_.devices[last.device]->CanRun(view).ok()) return false;
    // The node that computes the result comes first: the fused node takes its name.
    std::reverse(from.begin(), from.end());
    ONCILLA_ASSIGN(const ValueId fused, patch_.Add(op->name, attrs, inputs, from));
    ONCILLA_TRY(patch_.Replace(last.outputs[0], fused));
    return true;
  }

  ElementwiseOperand OperandFor(const Node& node, size_t i, const std::map<uint32_t, int>& step_of,
                                std::vector<ValueId>& inputs) const {
    using Kind = ElementwiseOperand::Kind;
    const ValueId id = node.inputs[i];
    if (id == kNoValue) return {};
    if (auto it = step_of.find(Index(id)); it != step_of.end()) {
      return {Kind::kStep, it->second, 0};
    }
    // A number takes the dtype of the other operands, so at least one of them must not be a number.
    bool others = false;
    for (size_t k = FirstTyped(node); k < node.inputs.size(); ++k) {
      others |= k != i && node.inputs[k] != kNoValue && !NumberIn(graph_.fact(node.inputs[k]));
    }
    if (const auto number = NumberIn(graph_.fact(id)); number && others && i >= FirstTyped(node)) {
      return {Kind::kNumber, 0, *number};
    }
    auto it = std::find(inputs.begin(), inputs.end(), id);
    if (it == inputs.end()) it = inputs.insert(inputs.end(), id);
    return {Kind::kInput, static_cast<int>(it - inputs.begin()), 0};
  }

  // The first operand that has the dtype of the computation; a condition comes before it.
  static size_t FirstTyped(const Node& node) {
    return (node.op->elementwise->flags & kConditionFirst) != 0 ? 1 : 0;
  }

  const Graph& graph_;
  const PassContext& context_;
  Patch& patch_;
  const Uses uses_;
  const std::vector<bool> fixes_shapes_;
  std::vector<bool> taken_;
};

}  // namespace

Status FuseElementwise(const Graph& graph, const PassContext& context, Patch& patch) {
  return ElementwiseFuser(graph, context, patch).Run();
}

}  // namespace oncilla
