// Applying a patch: replacements are followed, nodes that the outputs need are kept and put in
// order.
#include "engine/graph/patch.h"

#include <algorithm>
#include <utility>

#include "engine/graph/at_node.h"

namespace oncilla {
namespace {

// Adds to a fact what another fact says about the same value. Returns true if that added anything.
bool Refine(Fact& fact, const Fact& other) {
  if (fact.kind != other.kind || fact.dtype != other.dtype) return false;
  bool learnt = false;
  if (auto shape = MergeShapes(fact.shape, other.shape); shape.ok()) {
    learnt = StrCat(*shape) != StrCat(fact.shape);
    fact.shape = *std::move(shape);
  }
  if (!fact.has_value() && other.has_value()) {
    learnt = true;
    fact.value = other.value;
    fact.elements.reset();  // the whole value makes its elements redundant
  } else if (!fact.has_value() && other.elements.has_value()) {
    const auto told = [](const Fact& f) {
      size_t count = 0;
      for (const Dim& d : f.elements.value_or(std::vector<Dim>())) {
        count += d.known() ? 2 : !d.name.empty();
      }
      return count;
    };
    if (told(other) > told(fact)) {
      learnt = true;
      fact.elements = other.elements;
    }
  }
  return learnt;
}

}  // namespace

const Fact& Patch::fact(ValueId id) const {
  if (id == kNoValue || Index(id) < base_.values().size()) return base_.fact(id);
  return values_[Index(id) - base_.values().size()].fact;
}

ValueId Patch::AddConstant(Tensor tensor, std::string name) {
  Value value;
  value.fact = Fact::Constant(std::move(tensor));
  value.name = std::move(name);
  values_.push_back(std::move(value));
  return ValueId{static_cast<uint32_t>(base_.values().size() + values_.size() - 1)};
}

Result<std::vector<ValueId>> Patch::AddNode(std::string_view op, AttrMap attrs,
                                            std::vector<ValueId> inputs, std::vector<NodeId> from) {
  Node node;
  for (NodeId id : from) {
    const Node& old = base_.node(id);
    if (node.name.empty()) node.name = old.name;
    if (node.device == kUnplaced) node.device = old.device;
    for (const std::string& s : old.sources) {
      if (std::find(node.sources.begin(), node.sources.end(), s) == node.sources.end()) {
        node.sources.push_back(s);
      }
    }
  }
  Facts in;
  for (ValueId id : inputs) in.push_back(fact(id));
  ONCILLA_ASSIGN(Facts facts, InferNode(base_.ops(), NameInModel(node), op, attrs, in));
  const NodeId id{static_cast<uint32_t>(base_.nodes().size() + nodes_.size())};
  node.op = base_.ops().Find(op);
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  for (size_t i = 0; i < facts.size(); ++i) {
    Value value;
    value.fact = std::move(facts[i]);
    value.producer = id;
    value.output = static_cast<int>(i);
    node.outputs.push_back(ValueId{static_cast<uint32_t>(base_.values().size() + values_.size())});
    values_.push_back(std::move(value));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

Result<ValueId> Patch::Add(std::string_view op, AttrMap attrs, std::vector<ValueId> inputs,
                           std::vector<NodeId> from) {
  ONCILLA_ASSIGN(auto outputs, AddNode(op, std::move(attrs), std::move(inputs), std::move(from)));
  return outputs[0];
}

Status Patch::Replace(ValueId old_value, ValueId new_value) {
  const Fact &was = fact(old_value), &is = fact(new_value);
  if (was.dtype != is.dtype || was.kind != is.kind) {
    return Internal("a patch replaces ", was, " by ", is);
  }
  if (auto merged = MergeShapes(was.shape, is.shape); !merged.ok()) {
    return Internal("a patch replaces ", was, " by ", is, ": ", Message(merged.status()));
  }
  replaced_.emplace_back(old_value, new_value);
  return Status();
}

// One application of a patch. Values and nodes are numbered through the base graph and then the
// patch, and are copied to a new graph as the outputs need them.
class Patch::Rebuild {
 public:
  explicit Rebuild(const Patch& patch)
      : patch_(patch),
        base_(patch.base_),
        target_(base_.values().size() + patch.values_.size()),
        names_(target_.size()),
        marks_(base_.nodes().size() + patch.nodes_.size(), kNew),
        placed_(target_.size(), kNoValue),
        out_(base_.shared_ops()) {}

  Result<Graph> Run() {
    for (uint32_t i = 0; i < target_.size(); ++i) target_[i] = ValueId{i};
    for (const auto& [from, to] : patch_.replaced_) target_[Index(from)] = to;
    ONCILLA_TRY(HandOnNames());
    for (const NamedValue& in : base_.inputs()) {
      if (Has(patch_.dropped_inputs_, in.value)) continue;
      placed_[Index(in.value)] = out_.AddInput(in.name, base_.fact(in.value));
    }
    // Nodes with effects come first, in their original order, then the other nodes that the outputs
    // need.
    for (uint32_t n = 0; n < base_.nodes().size(); ++n) {
      if (!NodeAt(n).op->traits.has_effects || Has(patch_.dropped_, NodeId{n})) continue;
      ONCILLA_TRY(CopyWithInputs(n));
    }
    for (const NamedValue& output : base_.outputs()) {
      ONCILLA_ASSIGN(const ValueId id, Resolve(output.value));
      const NodeId producer = ValueAt(id).producer;
      if (producer != kNoNode) ONCILLA_TRY(CopyWithInputs(Index(producer)));
      ONCILLA_ASSIGN(const ValueId placed, Placed(id));
      out_.AddOutput(output.name, placed);
    }
    return std::move(out_);
  }

 private:
  enum Mark : uint8_t { kNew, kOpen, kDone };

  template <class Id>
  static bool Has(const std::vector<Id>& list, Id id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  }
  const Value& ValueAt(ValueId id) const {
    const size_t i = Index(id), base = base_.values().size();
    return i < base ? base_.value(id) : patch_.values_[i - base];
  }
  const Node& NodeAt(uint32_t i) const {
    const size_t base = base_.nodes().size();
    return i < base ? base_.node(NodeId{i}) : patch_.nodes_[i - base];
  }

  // The value that takes a value's place: replacements of replacements are followed to the end.
  // Those on the way are then pointed there directly (path compression), so a long chain is
  // followed once.
  Result<ValueId> Resolve(ValueId id) {
    ValueId end = id;
    for (size_t hops = 0; end != kNoValue && target_[Index(end)] != end; ++hops) {
      if (hops > patch_.replaced_.size()) return Internal("replacements of a patch form a cycle");
      end = target_[Index(end)];
    }
    while (id != end) id = std::exchange(target_[Index(id)], end);
    return end;
  }

  // A replaced value hands its source name to its replacement, unless that has a name. Fetched
  // names reach their outputs in any case, because outputs carry names of their own.
  Status HandOnNames() {
    for (const auto& [from, to] : patch_.replaced_) {
      ONCILLA_ASSIGN(const ValueId end, Resolve(from));
      std::string& name = names_[Index(end)];
      if (ValueAt(end).name.empty() && name.empty()) name = ValueAt(from).name;
    }
    return Status();
  }
  const std::string& NameOf(ValueId id) const {
    const std::string& own = ValueAt(id).name;
    return own.empty() ? names_[Index(id)] : own;
  }

  // The id of a resolved value in the new graph; a constant is copied there on first use.
  Result<ValueId> Placed(ValueId id) {
    ValueId& placed = placed_[Index(id)];
    if (placed != kNoValue) return placed;
    if (Has(patch_.dropped_inputs_, id)) return Internal("a patch drops an input that is read");
    return placed = out_.AddConstant(ValueAt(id).fact.value, NameOf(id));
  }

  // Copies a node and everything it reads. The traversal is depth-first with an explicit stack,
  // since recursion over a deep network could exhaust the thread's stack.
  Status CopyWithInputs(uint32_t root) {
    if (marks_[root] == kDone) return Status();
    std::vector<std::pair<uint32_t, size_t>> stack = {{root, 0}};  // node, next input to look at
    marks_[root] = kOpen;
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      const Node& node = NodeAt(n);
      if (next == node.inputs.size()) {
        ONCILLA_TRY(Copy(n));
        marks_[n] = kDone;
        stack.pop_back();
        continue;
      }
      const ValueId raw = node.inputs[next++];
      if (raw == kNoValue) continue;
      ONCILLA_ASSIGN(const ValueId in, Resolve(raw));
      const NodeId producer = ValueAt(in).producer;
      if (producer == kNoNode || marks_[Index(producer)] == kDone) continue;
      if (marks_[Index(producer)] == kOpen) {
        return Internal("a patch makes node '", node.name, "' depend on itself");
      }
      marks_[Index(producer)] = kOpen;
      stack.emplace_back(Index(producer), 0);
    }
    return Status();
  }

  // Copies a node whose inputs are already copied. If it reads replaced values, or values of which
  // more is known now, its outputs are inferred again.
  Status Copy(uint32_t n) {
    Node copy = NodeAt(n);
    bool learn = false;
    for (ValueId& id : copy.inputs) {
      if (id == kNoValue) continue;
      const ValueId was = id;
      ONCILLA_ASSIGN(const ValueId now, Resolve(was));
      ONCILLA_ASSIGN(id, Placed(now));
      learn |= now != was || (Index(id) < refined_.size() && refined_[Index(id)]);
    }
    Facts facts;
    // A node that inference refuses now may stand on a branch that is never taken. It is kept, and
    // fails if it is run.
    if (auto now = learn ? copy.op->infer(copy.attrs, out_.FactsOf(copy.inputs)) : Facts();
        now.ok()) {
      facts = *std::move(now);
    }
    const NodeId id{static_cast<uint32_t>(out_.nodes_.size())};
    for (size_t i = 0; i < copy.outputs.size(); ++i) {
      const ValueId old = copy.outputs[i];
      Value value = ValueAt(old);
      value.producer = id;
      value.name = NameOf(old);
      refined_.resize(out_.values_.size() + 1);
      if (i < facts.size()) refined_.back() = Refine(value.fact, facts[i]);
      copy.outputs[i] = ValueId{static_cast<uint32_t>(out_.values_.size())};
      placed_[Index(old)] = copy.outputs[i];
      out_.values_.push_back(std::move(value));
    }
    out_.nodes_.push_back(std::move(copy));
    return Status();
  }

  const Patch& patch_;
  const Graph& base_;
  std::vector<ValueId> target_;     // of each value: itself, or what replaces it
  std::vector<std::string> names_;  // handed on by replaced values
  std::vector<Mark> marks_;         // of each node
  std::vector<ValueId> placed_;     // of each value: its id in the new graph
  Graph out_;
  std::vector<bool> refined_;  // of each new value: more is known than when its readers were made
};

Result<Graph> Patch::Apply() const { return Rebuild(*this).Run(); }

Result<Graph> WithoutUnusedInputs(Graph graph) {
  const auto readers = Consumers(graph);
  std::vector<bool> is_output(graph.values().size(), false);
  for (const NamedValue& output : graph.outputs()) is_output[Index(output.value)] = true;
  Patch patch(graph);
  bool all_used = true;
  for (const NamedValue& input : graph.inputs()) {
    const bool used = !readers[Index(input.value)].empty() || is_output[Index(input.value)];
    if (!used) patch.DropInput(input.value);
    all_used &= used;
  }
  if (all_used) return graph;
  return patch.Apply();
}

}  // namespace oncilla
