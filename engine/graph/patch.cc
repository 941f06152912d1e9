// Applying a patch: follow replacements, keep what the outputs need, put it in order.
#include "engine/graph/patch.h"

#include <algorithm>

namespace oncilla {
namespace {

// Adds to a fact what another one says about the same value; true when that was anything new.
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
    fact.elements.reset();  // the value says all
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
  ONCILLA_ASSIGN(Facts facts, InferNode(base_.ops(), node.name, op, attrs, in));
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

Result<Graph> Patch::Apply() const {
  const size_t base_values = base_.values().size(), base_nodes = base_.nodes().size();
  auto old_value = [&](uint32_t i) -> const Value& {
    return i < base_values ? base_.value(ValueId{i}) : values_[i - base_values];
  };
  auto old_node = [&](uint32_t i) -> const Node& {
    return i < base_nodes ? base_.node(NodeId{i}) : nodes_[i - base_nodes];
  };

  // Where each value goes, replacements of replacements followed to the end.
  std::vector<ValueId> target(base_values + values_.size());
  for (uint32_t i = 0; i < target.size(); ++i) target[i] = ValueId{i};
  for (const auto& [from, to] : replaced_) target[Index(from)] = to;
  auto resolve = [&](ValueId id) -> Result<ValueId> {
    for (size_t hops = 0; id != kNoValue && target[Index(id)] != id; ++hops) {
      if (hops > replaced_.size()) return Internal("replacements of a patch form a circle");
      id = target[Index(id)];
    }
    return id;
  };
  // A replaced value hands its source name to what replaces it, unless that has one. Names that are
  // fetched reach their outputs in any case: outputs carry names of their own.
  std::vector<std::string> names(target.size());
  for (const auto& [from, to] : replaced_) {
    ONCILLA_ASSIGN(const ValueId end, resolve(from));
    std::string& name = names[Index(end)];
    if (old_value(Index(end)).name.empty() && name.empty()) name = old_value(Index(from)).name;
  }

  Graph out(base_.shared_ops());
  // Values of which more is known than when their readers were made.
  std::vector<bool> refined;
  std::vector<ValueId> placed(target.size(), kNoValue);
  for (const NamedValue& in : base_.inputs()) {
    placed[Index(in.value)] = out.AddInput(in.name, base_.fact(in.value));
  }
  auto name_of = [&](uint32_t i) {
    return old_value(i).name.empty() ? names[i] : old_value(i).name;
  };

  // Depth-first from the outputs, without recursion: a deep net must not exhaust the stack.
  enum Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(base_nodes + nodes_.size(), kNew);
  std::vector<std::pair<uint32_t, size_t>> stack;  // node, next input to look at
  auto emit = [&](uint32_t n) -> Status {
    const Node& node = old_node(n);
    Node copy = node;
    bool learn = false;
    for (ValueId& id : copy.inputs) {
      if (id == kNoValue) continue;
      const ValueId was = id;
      ONCILLA_ASSIGN(id, resolve(id));
      if (placed[Index(id)] == kNoValue) {
        placed[Index(id)] = out.AddConstant(old_value(Index(id)).fact.value, name_of(Index(id)));
      }
      learn |= id != was;
      id = placed[Index(id)];
      learn |= Index(id) < refined.size() && refined[Index(id)];
    }
    const NodeId id{static_cast<uint32_t>(out.nodes_.size())};
    Facts facts;
    // What inference refuses now may stand on a branch that never matters; it fails if it is run.
    if (auto now = learn ? node.op->infer(node.attrs, out.FactsOf(copy.inputs)) : Facts();
        now.ok()) {
      facts = *std::move(now);
    }
    for (size_t i = 0; i < copy.outputs.size(); ++i) {
      const uint32_t old = Index(copy.outputs[i]);
      Value value = old_value(old);
      value.producer = id;
      value.name = name_of(old);
      refined.resize(out.values_.size() + 1);
      if (i < facts.size()) refined.back() = Refine(value.fact, facts[i]);
      copy.outputs[i] = ValueId{static_cast<uint32_t>(out.values_.size())};
      placed[old] = copy.outputs[i];
      out.values_.push_back(std::move(value));
    }
    out.nodes_.push_back(std::move(copy));
    return Status();
  };
  auto visit = [&](uint32_t root) -> Status {
    if (marks[root] == kDone) return Status();
    stack.emplace_back(root, 0);
    marks[root] = kOpen;
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      const Node& node = old_node(n);
      if (next == node.inputs.size()) {
        ONCILLA_TRY(emit(n));
        marks[n] = kDone;
        stack.pop_back();
        continue;
      }
      const ValueId raw = node.inputs[next++];
      if (raw == kNoValue) continue;
      ONCILLA_ASSIGN(const ValueId in, resolve(raw));
      const NodeId producer = old_value(Index(in)).producer;
      if (producer == kNoNode || marks[Index(producer)] == kDone) continue;
      if (marks[Index(producer)] == kOpen) {
        return Internal("a patch makes node '", node.name, "' depend on itself");
      }
      marks[Index(producer)] = kOpen;
      stack.emplace_back(Index(producer), 0);
    }
    return Status();
  };

  // Effects first, in the order they stood; then whatever else the outputs need.
  for (uint32_t n = 0; n < base_nodes; ++n) {
    const bool dropped = std::find(dropped_.begin(), dropped_.end(), NodeId{n}) != dropped_.end();
    if (old_node(n).op->traits.has_effects && !dropped) ONCILLA_TRY(visit(n));
  }
  for (const NamedValue& output : base_.outputs()) {
    ONCILLA_ASSIGN(const ValueId id, resolve(output.value));
    const NodeId producer = old_value(Index(id)).producer;
    if (producer != kNoNode) ONCILLA_TRY(visit(Index(producer)));
    if (placed[Index(id)] == kNoValue) {
      placed[Index(id)] = out.AddConstant(old_value(Index(id)).fact.value, name_of(Index(id)));
    }
    out.AddOutput(output.name, placed[Index(id)]);
  }
  return out;
}

}  // namespace oncilla
