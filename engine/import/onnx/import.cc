// Runs the lowering rows over the nodes of a graph, and over those of functions in place of calls.
#include "engine/import/onnx/import.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "engine/import/import_bounds.h"
#include "engine/import/unsupported_list.h"

namespace oncilla {
namespace {

using Names = std::unordered_set<std::string_view>;

// What calls of functions may unfold to: a small file could otherwise stand for endless nodes.
constexpr int kMaxDepth = 64;
constexpr size_t kMaxUnfoldedNodes = size_t{1} << 20;

// The nodes that the wanted tensors need, each after what it reads. Names in `known` need no node;
// those in `given`, the graph's own inputs and constants, may have none.
Result<std::vector<size_t>> OrderNodes(std::span<const OnnxNode> nodes,
                                       std::span<const std::string_view> wanted, const Names& known,
                                       const Names& given) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (!producer.emplace(output, i).second) {
        return DataLoss("two nodes compute '", output, "'");
      }
      if (given.contains(output)) {
        return DataLoss("a node computes '", output, "', which is an input or a constant");
      }
    }
  }
  std::vector<size_t> order;
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(nodes.size(), kNew);
  struct Step {
    size_t node;
    size_t next_input;
  };
  std::vector<Step> stack;
  const auto visit = [&](std::string_view name) -> Status {
    if (name.empty() || known.contains(name)) return {};
    const auto it = producer.find(name);
    if (it == producer.end()) return {};  // said by who reads it
    if (state[it->second] == kOpen) {
      return DataLoss("the graph goes in a circle through '", name, "'");
    }
    if (state[it->second] == kNew) {
      state[it->second] = kOpen;
      stack.push_back({it->second, 0});
    }
    return {};
  };
  for (std::string_view name : wanted) {
    ONCILLA_TRY(visit(name));
    while (!stack.empty()) {
      Step& step = stack.back();
      const OnnxNode& node = nodes[step.node];
      if (step.next_input < node.inputs.size()) {
        ONCILLA_TRY(visit(node.inputs[step.next_input++]));
        continue;
      }
      state[step.node] = kDone;
      order.push_back(step.node);
      stack.pop_back();
    }
  }
  return order;
}

// The tensors of the main graph, or of one call of a function.
struct Scope {
  std::span<const OnnxNode> nodes;
  const OnnxOpsets* opsets = nullptr;
  const OnnxGraph* graph = nullptr;  // of the main scope: where initializers are
  std::string prefix;                // of node names
  int depth = 0;
  std::unordered_map<std::string_view, ValueId> values;
  // Tensors of nodes that are not supported, or depend on one; with a reason where the node is
  // supported but this output of it is not.
  struct Failed {
    std::string op, reason, node;
  };
  std::unordered_map<std::string_view, Failed> failed;
};

class Importer {
 public:
  Importer(const OnnxModel& model, const OnnxImportRequest& request, const OnnxContext& context,
           const std::shared_ptr<const OpSet>& ops)
      : model_(model), request_(request), context_(context), module_{Graph(ops)} {
    for (const auto& [name, tensor] : model.graph.initializers) {
      initializers_.emplace(name, tensor);
    }
    for (std::string_view name : model.graph.sparse_initializers) sparse_.insert(name);
    for (const OnnxFunction& function : model.functions) {
      functions_.try_emplace({function.domain, function.name, function.overload}, &function);
    }
  }

  Result<Module> Run() {
    Scope scope;
    scope.nodes = model_.graph.nodes;
    scope.opsets = &model_.opsets;
    scope.graph = &model_.graph;
    const std::vector<std::string_view> wanted(request_.outputs.begin(), request_.outputs.end());
    Names known, given;
    for (const TensorInfo& info : request_.inputs) known.insert(info.name);
    for (const auto& [name, tensor] : initializers_) given.insert(name);
    known.insert(given.begin(), given.end());
    for (const OnnxValueInfo& info : model_.graph.inputs) given.insert(info.name);
    ONCILLA_ASSIGN(const std::vector<size_t> order, OrderNodes(scope.nodes, wanted, known, given));
    ONCILLA_TRY(AddInputs(scope, order));
    ONCILLA_TRY(LowerNodes(scope, order));
    for (const std::string& name : request_.outputs) {
      auto value = Find(scope, name);
      if (!value.ok()) return value.status();
      if (*value != kNoValue) graph().AddOutput(name, *value);
    }
    if (!unsupported_.empty()) return unsupported_.ToStatus();
    return std::move(module_);
  }

 private:
  Graph& graph() { return module_.main; }

  Status AddInputs(Scope& scope, const std::vector<size_t>& order) {
    Names needed(request_.outputs.begin(), request_.outputs.end());
    for (size_t i : order) {
      needed.insert(scope.nodes[i].inputs.begin(), scope.nodes[i].inputs.end());
    }
    for (const TensorInfo& info : request_.inputs) {
      if (request_.only_needed_inputs && !needed.contains(info.name)) continue;
      if (scope.values.contains(info.name)) {
        return InvalidArgument("input '", info.name, "' stands there twice");
      }
      auto fact = InputFact(info);
      if (!fact.ok()) return In(fact.status(), StrCat("input '", info.name, "'"));
      scope.values[info.name] = graph().AddInput(info.name, *std::move(fact));
    }
    return {};
  }

  // Sizes that are not known get names, so that a reshape back to them is recognised.
  static Result<Fact> InputFact(const TensorInfo& info) {
    if (info.dtype == DType::kInvalid) {
      return Unsupported("it is no tensor, or of a type that the engine does not have");
    }
    Fact fact = Fact::Of(info.dtype, info.shape);
    if (!fact.shape.ranked()) return fact;
    if (fact.shape.rank() > kMaxRank) return Unsupported("its rank is ", fact.shape.rank());
    for (int axis = 0; axis < fact.shape.rank(); ++axis) {
      Dim& dim = fact.shape[axis];
      if (!dim.known() && dim.name.empty()) dim.name = StrCat(info.name, ".", axis);
    }
    return fact;
  }

  // The value of a tensor; kNoValue when it could not be made, which is listed.
  Result<ValueId> Find(Scope& scope, std::string_view name) {
    if (const auto it = scope.values.find(name); it != scope.values.end()) return it->second;
    if (const auto it = scope.failed.find(name); it != scope.failed.end()) {
      const Scope::Failed& failed = it->second;
      if (!failed.reason.empty()) unsupported_.Add(failed.op, failed.reason, failed.node);
      return kNoValue;
    }
    if (scope.graph != nullptr) {
      if (const auto it = initializers_.find(name); it != initializers_.end()) {
        auto tensor = context_.read_tensor(it->second);
        if (!tensor.ok()) return In(tensor.status(), StrCat("initializer '", name, "'"));
        const ValueId value = graph().AddConstant(*std::move(tensor), std::string(name));
        scope.values.emplace(name, value);
        return value;
      }
      if (sparse_.contains(name)) {
        unsupported_.Add("sparse_initializer", "", std::string(name));
        return kNoValue;
      }
      for (const OnnxValueInfo& input : scope.graph->inputs) {
        if (input.name == name) {
          return WithStage(InvalidArgument("the input '", name, "' is needed and not fed"),
                           Stage::kOptions);
        }
      }
    }
    return DataLoss("nothing computes '", name, "'");
  }

  static std::string NameIn(const Scope& scope, const OnnxNode& node) {
    return scope.prefix + std::string(node.label());
  }

  Status LowerNodes(Scope& scope, const std::vector<size_t>& order) {
    for (size_t i : order) {
      const OnnxNode& node = scope.nodes[i];
      Status status = LowerNode(scope, node);
      if (status.ok()) continue;
      if (status.code() == Code::kUnimplemented) {
        unsupported_.Add(OpName(node), Message(status), NameIn(scope, node));
        Fail(scope, node);
        continue;
      }
      if (!Details(status).node.empty()) return status;
      const std::string name = NameIn(scope, node);
      return WithNode(In(std::move(status), StrCat("node '", name, "' (", OpName(node), ")")),
                      name);
    }
    return {};
  }

  static std::string OpName(const OnnxNode& node) {
    return node.domain.empty() ? std::string(node.op) : StrCat(node.domain, ".", node.op);
  }

  static void Fail(Scope& scope, const OnnxNode& node) {
    for (std::string_view output : node.outputs) scope.failed.try_emplace(output);
  }

  // Unimplemented: this node is not supported, for the reason given.
  Status LowerNode(Scope& scope, const OnnxNode& node) {
    ONCILLA_TRY(bounds_.Take(scope.prefix.size() + node.label().size(), node.inputs.size()));
    const OnnxFunction* function = FindFunction(node);
    if (node.has_subgraph() && function == nullptr) return Unsupported("it has a subgraph");
    Values inputs;
    bool failed = false;
    for (std::string_view name : node.inputs) {
      if (name.empty()) {
        inputs.push_back(kNoValue);
        continue;
      }
      ONCILLA_ASSIGN(const ValueId value, Find(scope, name));
      const bool absent = value == kNoValue && scope.values.contains(name);
      failed |= value == kNoValue && !absent;
      inputs.push_back(value);
    }
    const int64_t version = VersionOf(*scope.opsets, node.domain);
    const OnnxOpRow* row = nullptr;
    if (function == nullptr) {
      if (version == 0) return Unsupported("the model imports no opset for it");
      auto found = FindOnnxOp(node.domain, node.op, version);
      if (!found.ok()) return found.status();
      row = *found;
    }
    // What depends on an unsupported node is not judged, only passed over.
    if (failed) {
      Fail(scope, node);
      return {};
    }
    if (function != nullptr) return Call(scope, node, *function, std::move(inputs));
    while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
    int present = 0;
    while (present < std::ssize(inputs) && inputs[static_cast<size_t>(present)] != kNoValue) {
      ++present;
    }
    if (present < row->min_inputs) {
      return DataLoss("has ", present, " inputs and needs ", row->min_inputs);
    }
    OnnxLowering lowering(graph(), context_, node, NameIn(scope, node), version, std::move(inputs));
    Result<Values> outputs = Values();
    if (row->lower != nullptr) {
      outputs = row->lower(lowering);
    } else {
      outputs = One(lowering.Add(row->canonical, {}, lowering.all_inputs()));
    }
    if (!outputs.ok()) return outputs.status();
    if (const std::string_view attr = lowering.UnknownAttr(); !attr.empty()) {
      return Unsupported("with the attribute '", attr, "'");
    }
    Define(scope, node, *outputs);
    return {};
  }

  void Define(Scope& scope, const OnnxNode& node, const Values& outputs) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const std::string_view name = node.outputs[k];
      // What is fed is not computed, also where the node is needed for another output of it.
      if (name.empty() || scope.values.contains(name)) continue;
      if (k >= outputs.size() || outputs[k] == kNoValue) {
        scope.failed[name] = {OpName(node), StrCat("its output ", k), NameIn(scope, node)};
        continue;
      }
      scope.values[name] = outputs[k];
      // A value that is an input's or another node's keeps its name.
      if (scope.graph != nullptr && graph().value(outputs[k]).name.empty()) {
        graph().SetValueName(outputs[k], std::string(name));
      }
    }
  }

  const OnnxFunction* FindFunction(const OnnxNode& node) const {
    if (functions_.empty()) return nullptr;
    const auto found = functions_.find({node.domain, node.op, node.overload});
    return found == functions_.end() ? nullptr : found->second;
  }

  // The function's nodes with the attributes of this call in place of references to them.
  static Result<std::vector<OnnxNode>> Bound(const OnnxNode& call, const OnnxFunction& function) {
    std::vector<OnnxNode> nodes = function.nodes;
    for (OnnxNode& node : nodes) {
      std::vector<OnnxAttr> attrs;
      for (OnnxAttr& attr : node.attrs) {
        if (attr.reference.empty()) {
          attrs.push_back(std::move(attr));
          continue;
        }
        const OnnxAttr* given = call.Find(attr.reference);
        for (const OnnxAttr& otherwise : function.defaults) {
          if (given == nullptr && otherwise.name == attr.reference) given = &otherwise;
        }
        if (given == nullptr) continue;  // left out here, so left out there
        attrs.push_back(*given);
        attrs.back().name = attr.name;
      }
      node.attrs = std::move(attrs);
    }
    return nodes;
  }

  Status Call(Scope& scope, const OnnxNode& node, const OnnxFunction& function, Values inputs) {
    unfolded_ += function.nodes.size();
    if (scope.depth >= kMaxDepth) return DataLoss("functions call each other too deeply");
    if (unfolded_ > kMaxUnfoldedNodes) return DataLoss("functions unfold to too many nodes");
    for (const OnnxAttr& attr : node.attrs) {
      const auto named = [&](const OnnxAttr& d) { return d.name == attr.name; };
      if (std::find(function.attrs.begin(), function.attrs.end(), attr.name) ==
              function.attrs.end() &&
          std::none_of(function.defaults.begin(), function.defaults.end(), named)) {
        return Unsupported("with the attribute '", attr.name, "', which the function lacks");
      }
    }
    ONCILLA_ASSIGN(const std::vector<OnnxNode> nodes, Bound(node, function));
    Scope body;
    body.nodes = nodes;
    body.opsets = &function.opsets;
    body.prefix = NameIn(scope, node) + "/";
    body.depth = scope.depth + 1;
    Names known;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      body.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : kNoValue;
      known.insert(function.inputs[i]);
    }
    std::vector<std::string_view> wanted;
    for (size_t k = 0; k < node.outputs.size() && k < function.outputs.size(); ++k) {
      if (!node.outputs[k].empty()) wanted.push_back(function.outputs[k]);
    }
    ONCILLA_ASSIGN(const std::vector<size_t> order, OrderNodes(body.nodes, wanted, known, known));
    ONCILLA_TRY(LowerNodes(body, order));
    Values outputs;
    for (size_t k = 0; k < node.outputs.size() && k < function.outputs.size(); ++k) {
      outputs.push_back(kNoValue);
      if (node.outputs[k].empty()) continue;
      ONCILLA_ASSIGN(outputs.back(), Find(body, function.outputs[k]));
      // Listed already, by the node inside.
      if (outputs.back() == kNoValue) scope.failed.try_emplace(node.outputs[k]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (scope.failed.contains(node.outputs[k])) continue;
      if (k >= outputs.size()) return DataLoss("the function has no output ", k);
      if (node.outputs[k].empty()) continue;
      scope.values[node.outputs[k]] = outputs[k];
      if (scope.graph != nullptr && graph().value(outputs[k]).name.empty()) {
        graph().SetValueName(outputs[k], std::string(node.outputs[k]));
      }
    }
    return {};
  }

  const OnnxModel& model_;
  const OnnxImportRequest& request_;
  const OnnxContext& context_;
  Module module_;
  std::unordered_map<std::string_view, Bytes> initializers_;
  Names sparse_;
  UnsupportedList unsupported_;
  // By domain, name and overload; the first of equal ones counts.
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<FunctionKey, const OnnxFunction*> functions_;
  size_t unfolded_ = 0;
  ImportBounds bounds_;
};

}  // namespace

Result<Module> ImportOnnx(const OnnxModel& model, const OnnxImportRequest& request,
                          const OnnxContext& context, const std::shared_ptr<const OpSet>& ops) {
  return Importer(model, request, context, ops).Run();
}

}  // namespace oncilla
