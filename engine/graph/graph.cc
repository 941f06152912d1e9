// Building graphs: inference runs on every node as it is added.
#include "engine/graph/graph.h"

#include <algorithm>

#include "engine/base/work_limits.h"
#include "engine/graph/at_node.h"

namespace oncilla {

namespace {

// Whether everything that an op's sizes depend on is known, as it is when a node is about to run.
bool DeterminesSizes(const OpDef& op, std::span<const Fact> inputs) {
  if (op.traits.plan_inputs == 0 || op.traits.data_dependent || op.traits.host_only) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].absent()) continue;
    if (!inputs[i].fixed()) return false;
    if (op.traits.IsPlanInput(i) && !inputs[i].has_value()) return false;
  }
  return true;
}

// For messages: "input 1 is i64[4,1], input 2 is i64[2]".
std::string PlanInputs(const OpDef& op, std::span<const Fact> inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!op.traits.IsPlanInput(i) || inputs[i].absent()) continue;
    text += StrCat(text.empty() ? "" : ", ", "input ", i, " is ", inputs[i].desc());
  }
  return text;
}

}  // namespace

Result<Facts> InferNode(const OpSet& ops, std::string_view name, std::string_view op_name,
                        const AttrMap& attrs, std::span<const Fact> inputs) {
  auto fail = [&](Status status) { return AtNode(std::move(status), name, op_name); };
  const OpDef* op = ops.Find(op_name);
  if (op == nullptr) return fail(Unsupported("there is no such op"));
  const Arity arity = op->traits.inputs;
  const int count = static_cast<int>(inputs.size());
  if (count < arity.min || count > arity.max) {
    if (arity.min == arity.max) {
      return fail(InvalidArgument("takes ", arity.min, " inputs, got ", count));
    }
    return fail(InvalidArgument("takes at least ", arity.min, " inputs, got ", count));
  }
  const int needed = arity.max >= kVariadic ? count : arity.min;  // lists of inputs have no gaps
  for (int i = 0; i < needed; ++i) {
    if (inputs[i].absent()) return fail(InvalidArgument("input ", i, " is missing"));
  }
  Result<Facts> out = op->infer(attrs, inputs);
  if (!out.ok()) return fail(out.status());
  if (DeterminesSizes(*op, inputs) &&
      !std::all_of(out->begin(), out->end(), [](const Fact& fact) { return fact.fixed(); })) {
    return fail(InvalidArgument("an input that determines its sizes has an unsuitable shape: ",
                                PlanInputs(*op, inputs)));
  }
  return out;
}

ValueId Graph::AddInput(std::string name, Fact fact) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  Value value;
  value.fact = std::move(fact);
  value.name = name;
  value.is_input = true;
  values_.push_back(std::move(value));
  inputs_.push_back({std::move(name), id});
  return id;
}

ValueId Graph::AddConstant(Tensor tensor, std::string name) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  Value value;
  value.fact = Fact::Constant(std::move(tensor));
  value.name = std::move(name);
  values_.push_back(std::move(value));
  return id;
}

namespace {

// Charges a node to the memory account of the work at hand, which returns the bytes when that work
// is over.
Status CountNode(std::string_view name, size_t inputs, size_t outputs, size_t sources) {
  const std::shared_ptr<HostAccount>& account = WorkScope::Current().memory;
  if (account == nullptr) return Status();
  const size_t bytes = sizeof(Node) + name.size() * (1 + (sources == 0 ? 1 : sources)) +
                       inputs * sizeof(ValueId) + outputs * (sizeof(Value) + sizeof(ValueId));
  return In(account->Take(static_cast<int64_t>(bytes)), "the graph");
}

}  // namespace

Result<std::vector<ValueId>> Graph::AddNode(std::string name, std::string_view op, AttrMap attrs,
                                            std::vector<ValueId> inputs,
                                            std::vector<std::string> sources) {
  ONCILLA_ASSIGN(Facts facts, InferNode(*ops_, sources.size() == 1 ? sources[0] : name, op, attrs,
                                        FactsOf(inputs)));
  ONCILLA_TRY(CountNode(name, inputs.size(), facts.size(), sources.size()));
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  Node node;
  node.op = ops_->Find(op);
  if (sources.empty()) sources.push_back(name);
  node.name = std::move(name);
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.sources = std::move(sources);
  for (size_t i = 0; i < facts.size(); ++i) {
    Value value;
    value.fact = std::move(facts[i]);
    value.producer = id;
    value.output = static_cast<int>(i);
    node.outputs.push_back(ValueId{static_cast<uint32_t>(values_.size())});
    values_.push_back(std::move(value));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

Result<ValueId> Graph::Add(std::string name, std::string_view op, AttrMap attrs,
                           std::vector<ValueId> inputs) {
  ONCILLA_ASSIGN(auto outputs, AddNode(std::move(name), op, std::move(attrs), std::move(inputs)));
  return outputs[0];
}

const Fact& Graph::fact(ValueId id) const {
  static const Fact kAbsent = Fact::Absent();
  return id == kNoValue ? kAbsent : values_[Index(id)].fact;
}

Facts Graph::FactsOf(std::span<const ValueId> ids) const {
  Facts out;
  out.reserve(ids.size());
  for (ValueId id : ids) out.push_back(fact(id));
  return out;
}

std::vector<std::vector<NodeId>> Consumers(const Graph& graph) {
  std::vector<std::vector<NodeId>> out(graph.values().size());
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    for (ValueId id : graph.node(NodeId{n}).inputs) {
      if (id != kNoValue) out[Index(id)].push_back(NodeId{n});
    }
  }
  return out;
}

}  // namespace oncilla
