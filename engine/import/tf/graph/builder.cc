// Runs the lowering rows over a flat graph.
#include "engine/import/tf/graph/builder.h"

#include <algorithm>

#include "engine/graph/at_node.h"
#include "engine/import/tf/graph/control.h"
#include "engine/import/tf/op_kinds.h"
#include "engine/ops/control.h"

namespace oncilla {

namespace {

// What a user can do about an op that will not be lowered, or nothing.
std::string HintFor(std::string_view op) {
  if (!op.starts_with("Xla")) return "";
  return "of XLA; jax2tf.convert(.., native_serialization=False, enable_xla=False) exports JAX "
         "without them";
}

SourceNode SourceNodeOf(const TfFlatNode& node) {
  SourceNode out{std::string(node.source->op), std::string(node.device)};
  const Bytes classes = node.source->FindAttr("_class");
  if (classes.empty()) return out;
  const auto groups = TfAttr(classes).Strings();
  if (!groups.ok()) return out;
  constexpr std::string_view kLocation = "loc:@";
  for (std::string_view group : *groups) {
    if (group.substr(0, kLocation.size()) != kLocation) continue;
    // A node inside an inlined call has the call's name as a prefix.
    const size_t own = std::min(node.source->name.size(), node.name.size());
    const auto call = std::string_view(node.name).substr(0, node.name.size() - own);
    out.group = StrCat(call, group.substr(kLocation.size()));
    break;
  }
  return out;
}

}  // namespace

TfBuilder::TfBuilder(TfImportState& state, Graph& graph, const TfFlatGraph& flat)
    : state_(state), graph_(graph), flat_(flat) {
  values_.resize(flat_.nodes.size());
  failed_.assign(flat_.nodes.size(), 0);
  complex_.assign(flat_.nodes.size(), 0);
}

Status TfBuilder::Build(std::span<const ValueId> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int node = flat_.inputs[i];
    if (node >= 0) values_[static_cast<size_t>(node)] = {inputs[i]};
  }
  for (size_t i = 0; i < flat_.nodes.size(); ++i) ONCILLA_TRY(AddNode(i));
  if (!flat_.cycle.empty() && !any_failed_) {
    return DataLoss("the data edges form a cycle through '", flat_.cycle, "'");
  }
  return {};
}

Result<ValueId> TfBuilder::Get(const TfRef& ref) {
  if (ref.node < 0) return kNoValue;
  const TfFlatNode& node = flat_.nodes[static_cast<size_t>(ref.node)];
  if (node.kind == TfFlatNode::Kind::kState) return kNoValue;
  const Values& outputs = values_[static_cast<size_t>(ref.node)];
  if (ref.output >= static_cast<int>(outputs.size())) {
    return DataLoss("node '", node.name, "' (", node.op(), ") has no output ", ref.output);
  }
  const ValueId value = outputs[static_cast<size_t>(ref.output)];
  if (value == kNoValue && node.kind == TfFlatNode::Kind::kOp) {
    return Unsupported("output ", ref.output, " of node '", node.name, "' (", node.op(),
                       ") is only computed for training");
  }
  return value;
}

Result<ValueId> TfBuilder::Output(size_t i) {
  const TfRef& ref = flat_.outputs[i];
  if (ref.node >= 0) {
    const TfFlatNode& node = flat_.nodes[static_cast<size_t>(ref.node)];
    if (node.kind == TfFlatNode::Kind::kState) {
      return TfReadVariable(graph_, state_.source, node, node.name + "/read");
    }
  }
  return Get(ref);
}

// A variable that changes is read at the point of use, unless the op takes its handle.
Result<ValueId> TfBuilder::GetForNode(const TfFlatNode& node, size_t input, bool takes_handles) {
  const TfRef& ref = node.inputs[input];
  if (takes_handles || ref.node < 0) return Get(ref);
  const TfFlatNode& from = flat_.nodes[static_cast<size_t>(ref.node)];
  if (from.kind != TfFlatNode::Kind::kState || IsTfTable(from.op()) || IsTfStack(from.op())) {
    return Get(ref);
  }
  return TfReadVariable(graph_, state_.source, from, StrCat(node.name, "/read", input));
}

Status TfBuilder::AddNode(size_t i) {
  const TfFlatNode& node = flat_.nodes[i];
  if (--state_.budget < 0) return Exhausted("loops within loops make too many nodes");
  if (node.kind == TfFlatNode::Kind::kInput) return {};
  if (node.kind == TfFlatNode::Kind::kVariable) {
    auto value = ComplexParts(node.value);
    if (!value.ok()) return In(value.status(), StrCat("variable '", node.name, "'"));
    values_[i] = {graph_.AddConstant(*std::move(value), node.name)};
    return {};
  }
  if (node.kind == TfFlatNode::Kind::kState) return UseTfState(state_, graph_, node);
  if (state_.source_nodes != nullptr) (*state_.source_nodes)[node.name] = SourceNodeOf(node);
  if (const auto asset = state_.source.assets().find(node.name);
      asset != state_.source.assets().end()) {
    values_[i] = {graph_.AddConstant(Tensor::Strings({}, {asset->second}), node.name + ":0")};
    return {};
  }
  const auto fail = [&] {
    failed_[i] = 1;
    any_failed_ = true;
  };
  // Complex tensors have an additional last axis for their parts, which only the rows for complex
  // ops know. Loops and branches pass them on unchanged.
  const bool complex = HasComplexType(*node.source);
  const bool control = !node.bodies.empty() && TfElementFunctionsOf(node.op()).empty();
  const TfOpRow* row = complex || control ? nullptr : FindTfOp(node.op());
  if (control) {
    complex_[i] = complex;
  } else if (row == nullptr) {
    row = FindTfComplexOp(node.op());
    complex_[i] = row != nullptr && GivesComplex(*node.source, state_.source.Attrs(*node.source));
    if (row == nullptr) {
      state_.unsupported.Add(node.op(), complex ? "of complex numbers" : HintFor(node.op()),
                             node.name);
      fail();
      return {};
    }
  }
  // A node that depends on an unsupported one is skipped, so that only the first cause is reported.
  for (const TfRef& ref : node.inputs) {
    if (ref.node < 0) continue;
    const bool later = ref.node >= static_cast<int>(i);  // on a cycle
    if (later || failed_[static_cast<size_t>(ref.node)] != 0) {
      fail();
      return {};
    }
  }
  Result<Values> outputs = Fenced([&] { return Lower(node, row); });
  if (outputs.ok()) {
    values_[i] = *std::move(outputs);
    NameValues(node, values_[i]);
    return {};
  }
  const Status& status = outputs.status();
  if (status.code() == Code::kUnimplemented) {
    // A body that failed has already reported its own reasons.
    if (Message(status) != kTfBodyFailed) {
      state_.unsupported.Add(node.op(), Message(status), node.name);
    }
    fail();
    return {};
  }
  if (!Details(status).node.empty()) return status;
  return AtNode(status, node.name, node.op());
}

Result<Values> TfBuilder::Lower(const TfFlatNode& node, const TfOpRow* row) {
  Values inputs;
  std::vector<const TfFlatNode*> handles;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId value, GetForNode(node, i, row != nullptr && row->takes_handles));
    inputs.push_back(value);
    const int from = node.inputs[i].node;
    handles.push_back(from < 0 ? nullptr : &flat_.nodes[static_cast<size_t>(from)]);
  }
  if (row == nullptr) return LowerTfControl(state_, graph_, node, inputs);
  if (static_cast<int>(inputs.size()) < row->min_inputs) {
    return DataLoss("has ", inputs.size(), " inputs and needs ", row->min_inputs);
  }
  TfLowering lowering(state_, graph_, node, std::move(inputs), std::move(handles));
  if (row->lower != nullptr) return row->lower(lowering);
  return One(lowering.Add(row->canonical, {}, lowering.all_inputs()));
}

// Names a node's outputs "node:0" and so on. The value of an input or of another node keeps its
// name.
void TfBuilder::NameValues(const TfFlatNode& node, const Values& values) {
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] == kNoValue || !graph_.value(values[k]).name.empty()) continue;
    graph_.SetValueName(values[k], StrCat(node.name, ":", k));
  }
}

}  // namespace oncilla
