// Runs the lowering rows over the nodes of a graph, and over the nodes of a function in place of a
// call.
#include "engine/import/onnx/builder.h"

#include <algorithm>

#include "engine/graph/at_node.h"
#include "engine/import/onnx/control.h"

namespace oncilla {
namespace {

// The maximum nesting depth of function calls and subgraphs.
constexpr int kMaxDepth = 64;

std::string OpName(const OnnxNode& node) {
  return node.domain.empty() ? std::string(node.op) : StrCat(node.domain, ".", node.op);
}

// A copy of the graph, with the attributes of a call in place of references to them.
std::shared_ptr<const OnnxGraph> BoundGraph(const OnnxNode& call, const OnnxFunction& function,
                                            const OnnxGraph& graph, int64_t& budget);

// The same for a list of nodes.
std::vector<OnnxNode> BoundNodes(const OnnxNode& call, const OnnxFunction& function,
                                 std::span<const OnnxNode> given, int64_t& budget) {
  budget -= std::ssize(given);
  std::vector<OnnxNode> nodes;
  if (budget < 0) return nodes;
  nodes.assign(given.begin(), given.end());
  for (OnnxNode& node : nodes) {
    std::vector<OnnxAttr> attrs;
    for (OnnxAttr& attr : node.attrs) {
      if (attr.reference.empty()) {
        for (auto& graph : attr.graphs) graph = BoundGraph(call, function, *graph, budget);
        attrs.push_back(std::move(attr));
        continue;
      }
      const OnnxAttr* value = call.Find(attr.reference);
      for (const OnnxAttr& otherwise : function.defaults) {
        if (value == nullptr && otherwise.name == attr.reference) value = &otherwise;
      }
      if (value == nullptr) continue;  // the call omits it, so the node does too
      const std::string_view name = attr.name;
      attrs.push_back(*value);
      attrs.back().name = name;
    }
    node.attrs = std::move(attrs);
  }
  return nodes;
}

std::shared_ptr<const OnnxGraph> BoundGraph(const OnnxNode& call, const OnnxFunction& function,
                                            const OnnxGraph& graph, int64_t& budget) {
  auto bound = std::make_shared<OnnxGraph>(graph);
  bound->nodes = BoundNodes(call, function, graph.nodes, budget);
  return bound;
}

}  // namespace

OnnxImportState::OnnxImportState(const OnnxModel& m, const OnnxContext& c,
                                 const std::shared_ptr<const OpSet>& ops)
    : model(m), context(c), module(Graph(ops)) {
  for (const OnnxFunction& function : model.functions) {
    functions.try_emplace({function.domain, function.name, function.overload}, &function);
  }
}

std::string OnnxImportState::NewFunctionName(const std::string& wanted) {
  std::string name = wanted;
  // Nodes in a file may have no names or equal names, so these are made unique.
  for (int number = 2; !function_names.insert(name).second; ++number) {
    name = StrCat(wanted, "#", number);
  }
  return name;
}

void OnnxImportState::DropFunctions(size_t size) {
  auto& functions = module.functions;
  for (size_t i = size; i < functions.size(); ++i) function_names.erase(functions[i].first);
  functions.erase(functions.begin() + static_cast<ptrdiff_t>(size), functions.end());
}

Status OnnxScope::Take(const OnnxGraph& graph) {
  OnnxNames constants, inputs;
  const auto twice = [](std::string_view what, std::string_view name) {
    return DataLoss("two ", what, " are named '", name, "'");
  };
  for (const auto& [name, tensor] : graph.initializers) {
    if (!constants.insert(name).second) return twice("initializers", name);
    initializers.emplace(name, tensor);
  }
  for (const OnnxValueInfo& input : graph.inputs) {
    if (!inputs.insert(input.name).second) return twice("inputs", input.name);
  }
  for (const auto* list : {&graph.inputs, &graph.outputs, &graph.values}) {
    for (const OnnxValueInfo& value : *list) {
      if (value.kind != OnnxKind::kTensor || !value.shape.ranked()) continue;
      ranks.emplace(value.name, value.shape.rank());
    }
  }
  return {};
}

bool OnnxScope::Knows(std::string_view name) const {
  const auto named = [&](const OnnxValueInfo& input) { return input.name == name; };
  return values.contains(name) || failed.contains(name) || initializers.contains(name) ||
         (main != nullptr && std::any_of(main->inputs.begin(), main->inputs.end(), named));
}

Status OnnxBuilder::Build(std::span<const std::string_view> wanted, OnnxNames given) {
  OnnxNames known;
  for (const auto& [name, value] : scope_.values) known.insert(name);
  for (const auto& [name, failed] : scope_.failed) known.insert(name);
  for (const auto& [name, tensor] : scope_.initializers) given.insert(name);
  known.insert(given.begin(), given.end());
  ONCILLA_ASSIGN(const std::vector<size_t> order,
                 OrderOnnxNodes(scope_.nodes, wanted, known, given));
  return BuildNodes(order);
}

Status OnnxBuilder::BuildNodes(std::span<const size_t> order) {
  for (size_t i : order) {
    const OnnxNode& node = scope_.nodes[i];
    Status status = Fenced([&] { return LowerNode(node); });
    if (status.ok()) continue;
    if (status.code() == Code::kUnimplemented) {
      if (Message(status) != kOnnxGraphFailed) {
        state_.unsupported.Add(OpName(node), Message(status), scope_.NameOf(node));
      }
      Fail(node);
      continue;
    }
    if (!Details(status).node.empty()) return status;
    return AtNode(std::move(status), scope_.NameOf(node), OpName(node));
  }
  return {};
}

Result<ValueId> OnnxBuilder::Find(std::string_view name) {
  if (const auto it = scope_.values.find(name); it != scope_.values.end()) return it->second;
  if (const auto it = scope_.failed.find(name); it != scope_.failed.end()) {
    const OnnxScope::Failed& failed = it->second;
    if (!failed.reason.empty()) state_.unsupported.Add(failed.op, failed.reason, failed.node);
    return kNoValue;
  }
  if (const auto it = scope_.initializers.find(name); it != scope_.initializers.end()) {
    auto tensor = state_.context.read_tensor(it->second);
    if (!tensor.ok()) return In(tensor.status(), StrCat("initializer '", name, "'"));
    const ValueId value = graph().AddConstant(*std::move(tensor), std::string(name));
    scope_.values.emplace(name, value);
    return value;
  }
  if (scope_.main != nullptr) {
    for (const OnnxValueInfo& input : scope_.main->inputs) {
      if (input.name == name) {
        return WithStage(InvalidArgument("the input '", name, "' is needed and not fed"),
                         Stage::kOptions);
      }
    }
  }
  return DataLoss("nothing computes '", name, "'");
}

void OnnxBuilder::Fail(const OnnxNode& node) {
  for (std::string_view output : node.outputs) scope_.failed.try_emplace(output);
}

// Unimplemented means that this node is not supported, for the reason given.
Status OnnxBuilder::LowerNode(const OnnxNode& node) {
  if (--state_.budget < 0) return DataLoss("loops within loops make too many nodes");
  ONCILLA_TRY(state_.bounds.Take(scope_.prefix.size() + node.label().size(),
                                 node.inputs.size() + node.captures.size()));
  const auto called = state_.functions.find({node.domain, node.op, node.overload});
  const OnnxFunction* function = called == state_.functions.end() ? nullptr : called->second;
  const bool control = function == nullptr && IsOnnxControl(node);
  // The rows of com.microsoft refuse subgraphs themselves, and say what to do instead.
  const bool own = node.domain == "com.microsoft";
  if (node.has_subgraph() && function == nullptr && !control && !own) {
    return Unsupported("it has a subgraph");
  }
  Values inputs;
  bool failed = false;
  for (std::string_view name : node.inputs) {
    if (name.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    ONCILLA_ASSIGN(const ValueId value, Find(name));
    const bool absent = value == kNoValue && scope_.values.contains(name);
    failed |= value == kNoValue && !absent;
    inputs.push_back(value);
  }
  const int64_t version = VersionOf(scope_.opsets, node.domain);
  const OnnxOpRow* row = nullptr;
  if (function == nullptr) {
    if (version == 0) return Unsupported("the model imports no opset for it");
    if (!control) {
      ONCILLA_ASSIGN(row, FindOnnxOp(node.domain, node.op, version));
    }
  }
  // A node that depends on an unsupported one is skipped, so that only the first cause is reported.
  if (failed) {
    Fail(node);
    return {};
  }
  if (function != nullptr) return Call(node, *function, inputs);
  if (control) {
    ONCILLA_ASSIGN(const Values outputs, LowerOnnxControl(*this, node, version, std::move(inputs)));
    Define(node, outputs);
    return {};
  }
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  int present = 0;
  while (present < std::ssize(inputs) && inputs[static_cast<size_t>(present)] != kNoValue) {
    ++present;
  }
  if (present < row->min_inputs) {
    return DataLoss("has ", present, " inputs and needs ", row->min_inputs);
  }
  ONCILLA_ASSIGN(const Values outputs, LowerByRow(node, *row, version, std::move(inputs)));
  Define(node, outputs);
  return {};
}

// Rows rely on the ranks that the file states. If the engine cannot infer such a rank itself, an
// EnsureShape is inserted before the node, so that each run checks it, and the row is run again.
Result<Values> OnnxBuilder::LowerByRow(const OnnxNode& node, const OnnxOpRow& row, int64_t version,
                                       Values inputs) {
  const std::string name = scope_.NameOf(node);
  if (!row.sequences) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (graph().fact(inputs[i]).kind != ValueKind::kList) continue;
      return InvalidArgument("input ", i, " is a sequence or an optional value, not a tensor");
    }
  }
  for (bool again = false;; again = true) {
    OnnxLowering lowering(graph(), state_.context, node, name, version, inputs,
                          {&scope_.ranks, &scope_.target.optionals});
    Result<Values> outputs = Values();
    if (row.lower != nullptr) {
      outputs = row.lower(lowering);
    } else {
      outputs = One(lowering.Add(row.canonical, {}, lowering.all_inputs()));
    }
    if (!outputs.ok()) return outputs.status();
    if (const std::string_view attr = lowering.UnknownAttr(); !attr.empty()) {
      return Unsupported("with the attribute '", attr, "'");
    }
    if (again || lowering.believed().empty()) return outputs;
    for (const auto& [input, rank] : lowering.believed()) {
      EnsureShapeAttrs attrs;
      attrs.dims.assign(static_cast<size_t>(rank), -1);
      ONCILLA_ASSIGN(inputs[input], graph().Add(StrCat(name, "/stated_rank", input), "EnsureShape",
                                                WriteAttrs(attrs), {inputs[input]}));
    }
  }
}

void OnnxBuilder::SetValue(std::string_view name, ValueId value) {
  scope_.values[name] = value;
  // The value of an input or of another node keeps its name.
  if (scope_.main != nullptr && graph().value(value).name.empty()) {
    graph().SetValueName(value, std::string(name));
  }
}

void OnnxBuilder::Define(const OnnxNode& node, const Values& outputs) {
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string_view name = node.outputs[k];
    // A fed value is not computed, even if the node is needed for another output.
    if (name.empty() || scope_.values.contains(name)) continue;
    if (k >= outputs.size() || outputs[k] == kNoValue) {
      scope_.failed[name] = {OpName(node), StrCat("its output ", k), scope_.NameOf(node)};
      continue;
    }
    SetValue(name, outputs[k]);
  }
}

Status OnnxBuilder::Call(const OnnxNode& node, const OnnxFunction& function, const Values& inputs) {
  if (scope_.depth >= kMaxDepth) return DataLoss("functions call each other too deeply");
  for (const OnnxAttr& attr : node.attrs) {
    const auto named = [&](const OnnxAttr& d) { return d.name == attr.name; };
    if (std::find(function.attrs.begin(), function.attrs.end(), attr.name) ==
            function.attrs.end() &&
        std::none_of(function.defaults.begin(), function.defaults.end(), named)) {
      return Unsupported("with the attribute '", attr.name, "', which the function lacks");
    }
  }
  const std::vector<OnnxNode> nodes = BoundNodes(node, function, function.nodes, state_.unfolding);
  if (state_.unfolding < 0) return DataLoss("functions expand to too many nodes");
  OnnxScope body(scope_.target, nodes, function.opsets);
  body.prefix = scope_.NameOf(node) + "/";
  body.depth = scope_.depth + 1;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    body.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : kNoValue;
  }
  std::vector<std::string_view> wanted;
  for (size_t k = 0; k < node.outputs.size() && k < function.outputs.size(); ++k) {
    if (!node.outputs[k].empty()) wanted.push_back(function.outputs[k]);
  }
  OnnxBuilder builder(state_, body);
  ONCILLA_TRY(builder.Build(wanted, OnnxNames(function.inputs.begin(), function.inputs.end())));
  return DefineCalled(node, function, builder);
}

Status OnnxBuilder::DefineCalled(const OnnxNode& node, const OnnxFunction& function,
                                 OnnxBuilder& body) {
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string_view name = node.outputs[k];
    if (k >= function.outputs.size()) return DataLoss("the function has no output ", k);
    if (name.empty() || scope_.values.contains(name)) continue;
    ONCILLA_ASSIGN(const ValueId value, body.Find(function.outputs[k]));
    if (value == kNoValue) {
      scope_.failed.try_emplace(name);  // the node inside has reported it already
    } else {
      SetValue(name, value);
    }
  }
  return {};
}

}  // namespace oncilla
