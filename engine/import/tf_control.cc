// Loops and branches.
//
// Types flow into functions from outside: each is lowered for the shapes that its call site gives
// it. What a loop carries may change its shape from round to round, so its function is lowered
// again with less known of the shape until that holds for its results too. Values that a loop
// hands on unchanged need not be carried: constants are set into its function.
#include "engine/import/tf_control.h"

#include <algorithm>

#include "engine/import/tf_op_kinds.h"
#include "engine/ops/control.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int kMaxRounds = 10;

// Functions made since `size` are dropped: their callers are lowered again.
void DropFunctions(Module& module, size_t size) {
  module.functions.erase(module.functions.begin() + static_cast<ptrdiff_t>(size),
                         module.functions.end());
}

bool SameShape(const PartialShape& a, const PartialShape& b) {
  if (a.ranked() != b.ranked() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i].size != b[i].size || a[i].name != b[i].name) return false;
  }
  return true;
}

// The fact of a value that changes: nothing of its contents.
Fact TypeOf(const Fact& fact) {
  return fact.kind == ValueKind::kList ? Fact::List(fact.dtype, fact.shape)
                                       : Fact::Of(fact.dtype, fact.shape);
}

// A fact as an attribute declares it. Names of sizes mean nothing outside their graph.
std::string Declared(const Fact& fact) {
  Fact plain = TypeOf(fact);
  for (int i = 0; i < plain.shape.rank(); ++i) plain.shape[i].name.clear();
  return StrCat(plain);
}

// TensorFlow's truth: a number that is not zero, a tensor that is not empty.
Result<ValueId> ToBool(Graph& graph, ValueId x, const std::string& name) {
  const Fact& fact = graph.fact(x);
  if (!fact.shape.ranked()) return Unsupported("the rank of its condition is not known");
  const bool scalar = fact.shape.rank() == 0;
  if (scalar && fact.dtype == DType::kBool) return x;
  if (scalar && fact.dtype == DType::kString) {
    return Unsupported("a string as its condition");
  }
  ONCILLA_ASSIGN(const ValueId number,
                 scalar ? Result<ValueId>(x) : graph.Add(name + "/size", "Size", {}, {x}));
  AttrMap to_bool;
  to_bool.emplace("to", DType::kBool);
  return graph.Add(name + "/bool", "Cast", to_bool, {number});
}

// An input of a function as its graph holds it.
ValueId AddArgument(Graph& function, const TfFlatGraph& flat, size_t i, const Fact& fact) {
  const int node = flat.inputs[i];
  std::string name = node < 0 ? StrCat("argument", i) : flat.nodes[static_cast<size_t>(node)].name;
  return function.AddInput(std::move(name), fact);
}

// A loop being lowered: while(cond) body, or a for loop over body.
class Loop {
 public:
  Loop(TfImportState& state, Graph& graph, const TfFlatNode& node, std::span<const ValueId> inputs)
      : state_(state), graph_(graph), node_(node), inputs_(inputs.begin(), inputs.end()) {}

  Result<Values> Lower() {
    const TfFlatGraph& body = node_.bodies[1];
    const size_t count = inputs_.size();
    if (body.outputs.size() != count || body.inputs.size() != count) {
      return DataLoss("carries ", count, " values and its body gives ", body.outputs.size());
    }
    for (size_t i = 0; i < count; ++i) {
      const bool handle = inputs_[i] == kNoValue;
      const bool constant = !handle && graph_.value(inputs_[i]).is_constant();
      const bool same = (body.inputs[i] >= 0 && body.outputs[i] == TfRef{body.inputs[i], 0}) ||
                        (constant && IsVariable(body, i, graph_.fact(inputs_[i]).value));
      roles_.push_back(handle     ? Role::kHandle
                       : !same    ? Role::kCarried
                       : constant ? Role::kConstant
                                  : Role::kInvariant);
      facts_.push_back(handle ? Fact() : TypeOf(graph_.fact(inputs_[i])));
    }
    const size_t functions = state_.module.functions.size();
    std::optional<Graph> lowered;
    for (int round = 0; round < kMaxRounds && !lowered.has_value(); ++round) {
      DropFunctions(state_.module, functions);
      ONCILLA_ASSIGN(lowered, LowerBody(round + 2 >= kMaxRounds));
    }
    if (!lowered.has_value()) return Unsupported("the shapes that it carries do not settle");
    ONCILLA_ASSIGN(Graph cond, LowerCond());
    WhileAttrs attrs{node_.name + "/cond", node_.name + "/body", {}};
    state_.module.functions.emplace_back(attrs.cond, std::move(cond));
    state_.module.functions.emplace_back(attrs.body, *std::move(lowered));
    Values carried;
    for (size_t i = 0; i < count; ++i) {
      if (!IsCarried(i)) continue;
      carried.push_back(inputs_[i]);
      attrs.outputs.push_back(Declared(facts_[i]));
    }
    ONCILLA_ASSIGN(const Values results, graph_.AddNode(node_.name, "While", WriteAttrs(attrs),
                                                        std::move(carried), {node_.name}));
    Values outputs;
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      const ValueId result = IsCarried(i) ? results[next++] : kNoValue;
      outputs.push_back(roles_[i] == Role::kCarried ? result : inputs_[i]);
    }
    return outputs;
  }

 private:
  enum class Role { kHandle, kConstant, kInvariant, kCarried };

  // Whether a body hands on a variable that nobody writes, which it finds by itself.
  static bool IsVariable(const TfFlatGraph& body, size_t i, const Tensor& value) {
    if (body.inputs[i] >= 0 || body.outputs[i].node < 0) return false;
    const TfFlatNode& node = body.nodes[static_cast<size_t>(body.outputs[i].node)];
    return node.kind == TfFlatNode::Kind::kVariable && node.value.desc() == value.desc() &&
           node.value.bytes().data() == value.bytes().data();
  }

  bool IsCarried(size_t i) const {
    return roles_[i] == Role::kInvariant || roles_[i] == Role::kCarried;
  }

  Values Arguments(Graph& function, const TfFlatGraph& flat) {
    Values values;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      switch (roles_[i]) {
        case Role::kHandle:
          values.push_back(kNoValue);
          break;
        case Role::kConstant:
          values.push_back(function.AddConstant(graph_.fact(inputs_[i]).value));
          break;
        default:
          values.push_back(AddArgument(function, flat, i, facts_[i]));
      }
    }
    return values;
  }

  // The body for facts_; nothing when its results have shapes that these do not cover: then facts_
  // know less, at the end no shape at all.
  Result<std::optional<Graph>> LowerBody(bool give_up) {
    const TfFlatGraph& flat = node_.bodies[1];
    Graph body(graph_.shared_ops());
    const Values arguments = Arguments(body, flat);
    TfBuilder builder(state_, body, flat);
    ONCILLA_TRY(builder.Build(arguments));
    if (builder.failed()) return Unsupported(kTfBodyFailed);
    bool settled = true;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!IsCarried(i)) continue;
      ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
      if (value == kNoValue) return Unsupported("it changes a handle");
      const Fact& given = body.fact(value);
      Fact& fact = facts_[i];
      if (given.kind != fact.kind || given.dtype != fact.dtype) {
        return InvalidArgument("value ", i, " of the loop begins as ", fact, " and becomes ",
                               given);
      }
      PartialShape common = CommonShape(fact.shape, given.shape);
      if (!SameShape(common, fact.shape)) {
        settled = false;
        fact.shape = give_up ? PartialShape() : std::move(common);
      }
      body.AddOutput(StrCat("result", i), value);
    }
    if (!settled) return std::optional<Graph>();
    return std::optional<Graph>(std::move(body));
  }

  Result<Graph> LowerCond() {
    const TfFlatGraph& flat = node_.bodies[0];
    Graph cond(graph_.shared_ops());
    const Values arguments = Arguments(cond, flat);
    TfBuilder builder(state_, cond, flat);
    ONCILLA_TRY(builder.Build(arguments));
    if (builder.failed()) return Unsupported(kTfBodyFailed);
    ONCILLA_ASSIGN(const ValueId value, builder.Output(0));
    if (value == kNoValue) return Unsupported("its condition is a handle");
    ONCILLA_ASSIGN(const ValueId decided, ToBool(cond, value, node_.name + "/decided"));
    cond.AddOutput("more", decided);
    return cond;
  }

  TfImportState& state_;
  Graph& graph_;
  const TfFlatNode& node_;
  const Values inputs_;
  std::vector<Role> roles_;
  Facts facts_;
};

// The branch that a known selector takes.
Result<size_t> KnownBranch(const Tensor& selector, size_t branches) {
  ONCILLA_ASSIGN(const auto ints, ToInt64s(selector));
  if (ints.size() != 1) return InvalidArgument("its selector is ", selector.desc());
  if (selector.dtype() == DType::kBool) return ints[0] != 0 ? 0 : 1;
  const auto count = static_cast<int64_t>(branches);
  return static_cast<size_t>(ints[0] < 0 || ints[0] >= count ? count - 1 : ints[0]);
}

Result<Values> LowerIf(TfImportState& state, Graph& graph, const TfFlatNode& node,
                       std::span<const ValueId> inputs) {
  ValueId selector = inputs[0];
  if (selector == kNoValue) return Unsupported("its condition is a handle");
  const std::span<const ValueId> outer = inputs.subspan(1);
  if (node.op().find("Case") == std::string_view::npos) {
    ONCILLA_ASSIGN(selector, ToBool(graph, selector, node.name));
  }
  const size_t results = node.bodies[0].outputs.size();
  for (const TfFlatGraph& branch : node.bodies) {
    if (branch.outputs.size() != results || branch.inputs.size() != outer.size()) {
      return DataLoss("its branches differ in what they take or give");
    }
  }
  if (graph.fact(selector).has_value()) {
    ONCILLA_ASSIGN(const size_t branch,
                   KnownBranch(graph.fact(selector).value, node.bodies.size()));
    TfBuilder builder(state, graph, node.bodies[branch]);
    ONCILLA_TRY(builder.Build(outer));
    if (builder.failed()) return Unsupported(kTfBodyFailed);
    Values values;
    for (size_t i = 0; i < results; ++i) {
      ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
      values.push_back(value);
    }
    return values;
  }
  Values arguments = {selector};
  for (ValueId id : outer) {
    if (id != kNoValue && !graph.value(id).is_constant()) arguments.push_back(id);
  }
  IfAttrs attrs;
  Facts given(results);
  bool failed = false;
  for (size_t b = 0; b < node.bodies.size(); ++b) {
    const TfFlatGraph& flat = node.bodies[b];
    Graph branch(graph.shared_ops());
    Values values;
    for (size_t i = 0; i < outer.size(); ++i) {
      const Fact& fact = graph.fact(outer[i]);
      if (outer[i] == kNoValue) {
        values.push_back(kNoValue);
      } else if (graph.value(outer[i]).is_constant()) {
        values.push_back(branch.AddConstant(fact.value));
      } else {
        values.push_back(AddArgument(branch, flat, i, TypeOf(fact)));
      }
    }
    TfBuilder builder(state, branch, flat);
    ONCILLA_TRY(builder.Build(values));
    failed |= builder.failed();
    if (failed) continue;  // so that all branches tell what they lack
    for (size_t i = 0; i < results; ++i) {
      ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
      if (value == kNoValue) return Unsupported("a branch chooses between resources");
      const Fact fact = TypeOf(branch.fact(value));
      if (b == 0) {
        given[i] = fact;
      } else if (fact.kind != given[i].kind || fact.dtype != given[i].dtype) {
        return InvalidArgument("result ", i, " is ", given[i], " in one branch and ", fact,
                               " in another");
      } else {
        given[i].shape = CommonShape(given[i].shape, fact.shape);
      }
      branch.AddOutput(StrCat("result", i), value);
    }
    attrs.branches.push_back(StrCat(node.name, "/branch", b));
    state.module.functions.emplace_back(attrs.branches.back(), std::move(branch));
  }
  if (failed) return Unsupported(kTfBodyFailed);
  for (const Fact& fact : given) attrs.outputs.push_back(Declared(fact));
  return graph.AddNode(node.name, "If", WriteAttrs(attrs), std::move(arguments), {node.name});
}

}  // namespace

Result<Values> LowerTfControl(TfImportState& state, Graph& graph, const TfFlatNode& node,
                              std::span<const ValueId> inputs) {
  const std::string_view op = node.op();
  if (op == "While" || op == "StatelessWhile") {
    if (node.bodies.size() != 2 || node.bodies[0].outputs.size() != 1) {
      return DataLoss("needs a condition with one result, and a body");
    }
    return Loop(state, graph, node, inputs).Lower();
  }
  if (op == "For") return Unsupported("a For loop; TensorFlow itself writes While");
  if (inputs.empty() || node.bodies.empty()) return DataLoss("has no condition or no branch");
  return LowerIf(state, graph, node, inputs);
}

Result<Fact> TfVariableFact(const TfGraph& graph, const TfNode& node) {
  const TfAttrs attrs = graph.Attrs(node);
  ONCILLA_ASSIGN(const DType dtype, attrs.Type("dtype"));
  ONCILLA_ASSIGN(PartialShape shape, attrs.Shape("shape"));
  return Fact::Of(dtype, std::move(shape));
}

std::string TfTableKeys(std::string_view table) { return StrCat(table, "/keys"); }
std::string TfTableValues(std::string_view table) { return StrCat(table, "/values"); }

Status UseTfState(TfImportState& state, const TfFlatNode& node) {
  const auto use = [&](std::string name, Tensor first) {
    auto& variables = state.module.variables;
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const ModuleVariable& v) { return v.name == name; });
    if (!known) variables.push_back({std::move(name), node.name, std::move(first)});
  };
  if (IsTfTable(node.op())) {
    use(TfTableKeys(node.name), Tensor());
    use(TfTableValues(node.name), Tensor());
    return {};
  }
  Result<Tensor> first = state.variable(*node.source);
  // Without one it must be assigned before it is read, which the run checks.
  use(node.name, first.ok() ? *std::move(first) : Tensor());
  return {};
}

Result<ValueId> TfReadVariable(Graph& graph, const TfGraph& source, const TfFlatNode& variable,
                               std::string name) {
  ONCILLA_ASSIGN(const Fact fact, TfVariableFact(source, *variable.source));
  const ReadVariableAttrs attrs{variable.name, Declared(fact)};
  return graph.Add(std::move(name), "ReadVariable", WriteAttrs(attrs), {});
}

}  // namespace oncilla
