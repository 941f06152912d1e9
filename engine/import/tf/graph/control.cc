// Loops and branches, lowered to While and If.
//
// Types flow into functions from outside: each function is lowered for the shapes of its call site.
// The shape of a loop variable may change from iteration to iteration, so the body is lowered again
// with less known of the shape, until the shapes of its results fit as well. Values that a loop
// passes on unchanged need not be carried; constants are put into its functions.
#include "engine/import/tf/graph/control.h"

#include <algorithm>

#include "engine/import/tf/op_kinds.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/list.h"
#include "engine/ops/control.h"
#include "engine/ops/math/elementwise.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int kMaxRounds = 10;

// Drops the functions added since there were `size`: their callers are lowered again.
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

// The type of a for loop's counter.
Fact Count() { return Fact::Of(DType::kI32, PartialShape::OfRank(0)); }

Tensor ScalarInt32(int32_t value) {
  return Tensor::Copy({DType::kI32, {}}, std::as_bytes(std::span(&value, 1)));
}

// Converts a value of unknown rank to bool: a scalar by its value, anything else by its size.
Result<ValueId> UnrankedToBool(Graph& graph, ValueId x, const std::string& name) {
  const auto add = [&](std::string_view role, std::string_view op, AttrMap attrs, Values in) {
    return graph.Add(StrCat(name, "/", role), op, std::move(attrs), std::move(in));
  };
  const ValueId zero = graph.AddConstant(Tensor::ScalarInt64(0));
  ValueId number = x;
  if (graph.fact(x).dtype == DType::kString) {
    ONCILLA_ASSIGN(number, add("lengths", "StringLength", {}, {x}));
  }
  ONCILLA_ASSIGN(const ValueId flags,
                 add("flags", "Cast", WriteAttrs(CastAttrs{DType::kBool}), {number}));
  ONCILLA_ASSIGN(const ValueId any, add("any", "ReduceAny", {}, {flags}));
  ONCILLA_ASSIGN(const ValueId size,
                 add("size", "Size", WriteAttrs(SizeAttrs{.to = DType::kI64}), {x}));
  ONCILLA_ASSIGN(const ValueId rank,
                 add("rank", "Rank", WriteAttrs(RankAttrs{.to = DType::kI64}), {x}));
  ONCILLA_ASSIGN(const ValueId some, add("some", "Greater", {}, {size, zero}));
  ONCILLA_ASSIGN(const ValueId scalar, add("scalar", "Equal", {}, {rank, zero}));
  return add("bool", "Where", {}, {scalar, any, some});
}

// TensorFlow's rule: true for a number that is not zero and for a string or tensor that is not
// empty.
Result<ValueId> ToBool(Graph& graph, ValueId x, const std::string& name) {
  const Fact& fact = graph.fact(x);
  if (!fact.shape.ranked()) return UnrankedToBool(graph, x, name);
  const bool scalar = fact.shape.rank() == 0;
  if (scalar && fact.dtype == DType::kBool) return x;
  // The length of a string, or the number of elements of a tensor.
  const std::string_view size = !scalar                        ? "Size"
                                : fact.dtype == DType::kString ? "StringLength"
                                                               : "";
  ONCILLA_ASSIGN(const ValueId number,
                 size.empty() ? Result<ValueId>(x) : graph.Add(name + "/size", size, {}, {x}));
  return graph.Add(name + "/bool", "Cast", WriteAttrs(CastAttrs{DType::kBool}), {number});
}

// Adds an argument of a function to its graph.
ValueId AddArgument(Graph& function, const TfFlatGraph& flat, size_t i, const Fact& fact) {
  const int node = flat.inputs[i];
  std::string name = node < 0 ? StrCat("argument", i) : flat.nodes[static_cast<size_t>(node)].name;
  return function.AddInput(std::move(name), fact);
}

// Lowers one loop: while(cond) body, or a for loop. The For op carries counter, limit and step
// (inputs 0 to 2) before the values (from input 3 on), and its body takes the counter before the
// values.
class Loop {
 public:
  Loop(TfImportState& state, Graph& graph, const TfFlatNode& node, std::span<const ValueId> inputs)
      : state_(state),
        graph_(graph),
        node_(node),
        counts_(node.op() == "For"),
        range_(inputs.begin(), inputs.begin() + (counts_ ? 3 : 0)),
        inputs_(inputs.begin() + (counts_ ? 3 : 0), inputs.end()) {}

  Result<Values> Lower() {
    const TfFlatGraph& body = BodyGraph();
    const size_t count = inputs_.size();
    const size_t first = counts_ ? 1 : 0;  // index of the first value among the body's arguments
    if (body.outputs.size() != count || body.inputs.size() != count + first) {
      return DataLoss("carries ", count, " values and its body gives ", body.outputs.size());
    }
    // Decide for each value whether it is a handle, a constant, unchanged, or carried.
    for (size_t i = 0; i < count; ++i) {
      const bool handle = inputs_[i] == kNoValue;
      const bool constant = !handle && graph_.value(inputs_[i]).is_constant();
      const int argument = body.inputs[i + first];
      const bool same = argument >= 0
                            ? body.outputs[i] == TfRef{argument, 0}
                            : constant && IsVariable(body, i, graph_.fact(inputs_[i]).value);
      roles_.push_back(handle     ? Role::kHandle
                       : !same    ? Role::kCarried
                       : constant ? Role::kConstant
                                  : Role::kInvariant);
      facts_.push_back(handle ? Fact() : graph_.fact(inputs_[i]).WithoutContents());
    }
    // Lower the body until its results have the shapes of its arguments (a fixed point).
    const size_t functions = state_.module.functions.size();
    std::optional<Graph> lowered;
    for (int round = 0; round < kMaxRounds && !lowered.has_value(); ++round) {
      DropFunctions(state_.module, functions);
      ONCILLA_ASSIGN(lowered, LowerBody(round + 2 >= kMaxRounds));
    }
    if (!lowered.has_value()) return Unsupported("the shapes of its variables do not converge");
    ONCILLA_ASSIGN(Graph cond, counts_ ? CountingCond() : LowerCond());
    if (counts_) ONCILLA_TRY(CheckRange());
    WhileAttrs attrs{node_.name + "/cond", node_.name + "/body", {}};
    state_.module.functions.emplace_back(attrs.cond, std::move(cond));
    state_.module.functions.emplace_back(attrs.body, *std::move(lowered));
    // The While node carries the range and every value that is not a handle or constant.
    Values carried = range_;
    attrs.outputs.assign(range_.size(), DeclaredType(Count()));
    for (size_t i = 0; i < count; ++i) {
      if (!IsCarried(i)) continue;
      carried.push_back(inputs_[i]);
      attrs.outputs.push_back(DeclaredType(facts_[i]));
    }
    ONCILLA_ASSIGN(const Values results, graph_.AddNode(node_.name, "While", WriteAttrs(attrs),
                                                        std::move(carried), {node_.name}));
    Values outputs;
    size_t next = range_.size();
    for (size_t i = 0; i < count; ++i) {
      const ValueId result = IsCarried(i) ? results[next++] : kNoValue;
      outputs.push_back(roles_[i] == Role::kCarried ? result : inputs_[i]);
    }
    return outputs;
  }

 private:
  enum class Role { kHandle, kConstant, kInvariant, kCarried };

  // Whether a result of the body is a variable that nothing writes. The body reads such a variable
  // itself, so it need not be carried.
  static bool IsVariable(const TfFlatGraph& body, size_t i, const Tensor& value) {
    if (body.outputs[i].node < 0) return false;
    const TfFlatNode& node = body.nodes[static_cast<size_t>(body.outputs[i].node)];
    return node.kind == TfFlatNode::Kind::kVariable && node.value.desc() == value.desc() &&
           node.value.bytes().data() == value.bytes().data();
  }

  bool IsCarried(size_t i) const {
    return roles_[i] == Role::kInvariant || roles_[i] == Role::kCarried;
  }

  const TfFlatGraph& BodyGraph() const { return node_.bodies[counts_ ? 0 : 1]; }

  // Adds counter, limit and step of a for loop to a function's inputs.
  static Values AddRange(Graph& function) {
    return {function.AddInput("counter", Count()), function.AddInput("limit", Count()),
            function.AddInput("delta", Count())};
  }

  // The loop's values as arguments of a function, whose flat graph numbers them from `first` on.
  Values Arguments(Graph& function, const TfFlatGraph* flat, size_t first) {
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
          values.push_back(flat == nullptr ? function.AddInput(StrCat("argument", i), facts_[i])
                                           : AddArgument(function, *flat, i + first, facts_[i]));
      }
    }
    return values;
  }

  Result<ValueId> Compare(Graph& graph, const std::string& name, std::string_view op, ValueId a,
                          ValueId b) {
    return graph.Add(StrCat(node_.name, "/", name), op, {}, {a, b});
  }

  // The condition: step >= 0 ? counter < limit : counter > limit
  Result<Graph> CountingCond() {
    Graph cond(graph_.shared_ops());
    const Values range = AddRange(cond);
    Arguments(cond, nullptr, 0);
    const ValueId zero = cond.AddConstant(ScalarInt32(0));
    ONCILLA_ASSIGN(const ValueId up, Compare(cond, "up", "GreaterEqual", range[2], zero));
    ONCILLA_ASSIGN(const ValueId below, Compare(cond, "below", "Less", range[0], range[1]));
    ONCILLA_ASSIGN(const ValueId above, Compare(cond, "above", "Greater", range[0], range[1]));
    ONCILLA_ASSIGN(const ValueId more,
                   cond.Add(node_.name + "/more", "Where", {}, {up, below, above}));
    cond.AddOutput("more", more);
    return cond;
  }

  // TensorFlow refuses a range that leads away from the limit: with the step's sign s, s * start
  // must be at most s * limit; with a step of zero, start and limit must be equal.
  Status CheckRange() {
    ONCILLA_ASSIGN(const ValueId sign, graph_.Add(node_.name + "/sign", "Sign", {}, {range_[2]}));
    ONCILLA_ASSIGN(const ValueId ahead,
                   Compare(graph_, "ahead", "LessEqual", range_[0], range_[1]));
    ONCILLA_ASSIGN(const ValueId behind,
                   Compare(graph_, "behind", "GreaterEqual", range_[0], range_[1]));
    const ValueId zero = graph_.AddConstant(ScalarInt32(0));
    ONCILLA_ASSIGN(const ValueId up, Compare(graph_, "rises", "Greater", sign, zero));
    ONCILLA_ASSIGN(const ValueId down, Compare(graph_, "falls", "Less", sign, zero));
    ONCILLA_ASSIGN(const ValueId both, Compare(graph_, "both", "And", ahead, behind));
    ONCILLA_ASSIGN(const ValueId not_up,
                   graph_.Add(node_.name + "/not_up", "Where", {}, {down, behind, both}));
    ONCILLA_ASSIGN(const ValueId valid,
                   graph_.Add(node_.name + "/valid", "Where", {}, {up, ahead, not_up}));
    const ValueId text =
        graph_.AddConstant(Tensor::Strings({}, {"Invalid start/limit/delta of a For loop:"}));
    return graph_
        .AddNode(node_.name + "/check", "Assert", {},
                 {valid, text, range_[0], range_[1], range_[2]}, {node_.name})
        .status();
  }

  // Lowers the body for the types facts_. Returns nothing if its results have shapes that facts_ do
  // not cover; facts_ then know less, and with `give_up` no shape at all.
  Result<std::optional<Graph>> LowerBody(bool give_up) {
    const TfFlatGraph& flat = BodyGraph();
    Graph body(graph_.shared_ops());
    const Values range = counts_ ? AddRange(body) : Values();
    Values arguments = Arguments(body, &flat, counts_ ? 1 : 0);
    if (counts_) arguments.insert(arguments.begin(), range[0]);
    TfBuilder builder(state_, body, flat);
    ONCILLA_TRY(builder.Build(arguments));
    if (builder.failed()) return Unsupported(kTfBodyFailed);
    if (counts_) {
      ONCILLA_ASSIGN(const ValueId next, Compare(body, "next", "Add", range[0], range[2]));
      body.AddOutput("counter", next);
      body.AddOutput("limit", range[1]);
      body.AddOutput("delta", range[2]);
    }
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
    const Values arguments = Arguments(cond, &flat, 0);
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
  const bool counts_;
  const Values range_;   // counter, limit and step
  const Values inputs_;  // the values
  std::vector<Role> roles_;
  Facts facts_;
};

// The branch that a selector of known value takes.
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
  // A known selector: lower that branch in place.
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
  // Otherwise each branch becomes a function. Constants are copied into it, all else is an
  // argument.
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
        values.push_back(AddArgument(branch, flat, i, fact.WithoutContents()));
      }
    }
    TfBuilder builder(state, branch, flat);
    ONCILLA_TRY(builder.Build(values));
    failed |= builder.failed();
    if (failed) continue;  // continue, so that every branch reports what it lacks
    for (size_t i = 0; i < results; ++i) {
      ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
      if (value == kNoValue) return Unsupported("a branch chooses between resources");
      const Fact fact = branch.fact(value).WithoutContents();
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
  for (const Fact& fact : given) attrs.outputs.push_back(DeclaredType(fact));
  return graph.AddNode(node.name, "If", WriteAttrs(attrs), std::move(arguments), {node.name});
}

}  // namespace

Result<Values> LowerTfControl(TfImportState& state, Graph& graph, const TfFlatNode& node,
                              std::span<const ValueId> inputs) {
  const std::string_view op = node.op();
  if (op == "While" || op == "StatelessWhile" || op == "XlaWhile") {
    if (node.bodies.size() != 2 || node.bodies[0].outputs.size() != 1) {
      return DataLoss("needs a condition with one result, and a body");
    }
    return Loop(state, graph, node, inputs).Lower();
  }
  if (op == "For") {
    if (node.bodies.size() != 1 || inputs.size() < 3) return DataLoss("needs a range and a body");
    for (size_t i = 0; i < 3; ++i) {
      if (inputs[i] == kNoValue) return DataLoss("a handle cannot be a loop counter");
    }
    return Loop(state, graph, node, inputs).Lower();
  }
  if (inputs.empty() || node.bodies.empty()) return DataLoss("has no condition or no branch");
  return LowerIf(state, graph, node, inputs);
}

Result<Fact> TfVariableFact(const TfGraph& graph, const TfNode& node) {
  const TfAttrs attrs = graph.Attrs(node);
  ONCILLA_ASSIGN(const DType dtype, attrs.Type("dtype"));
  if (IsComplex(dtype)) {
    return WithNode(Unsupported("variable '", node.name, "' of ", dtype, ", which is assigned"),
                    node.name);
  }
  ONCILLA_ASSIGN(PartialShape shape, attrs.Shape("shape"));
  return Fact::Of(dtype, std::move(shape));
}

Result<Fact> TfStackFact(const TfGraph& graph, const TfNode& node) {
  ONCILLA_ASSIGN(const DType dtype, graph.Attrs(node).Type("elem_type"));
  return Fact::List(dtype, PartialShape());
}

std::string TfTableKeys(std::string_view table) { return StrCat(table, "/keys"); }
std::string TfTableValues(std::string_view table) { return StrCat(table, "/values"); }

Status UseTfState(TfImportState& state, Graph& graph, const TfFlatNode& node) {
  const auto use = [&](std::string name, Tensor first) {
    auto& variables = state.module.variables;
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const ModuleVariable& v) { return v.name == name; });
    if (!known) variables.push_back({std::move(name), node.name, std::move(first)});
  };
  if (IsTfTable(node.op())) {
    // Tables that do not change must have contents from their initialiser.
    TfTableContents first;
    if (node.op().find("Mutable") != std::string_view::npos) {
      ONCILLA_ASSIGN(first, FirstTfTable(state, node));
    }
    use(TfTableKeys(node.name), std::move(first.keys));
    use(TfTableValues(node.name), std::move(first.values));
    return {};
  }
  if (IsTfStack(node.op())) {
    ONCILLA_ASSIGN(const Fact list, TfStackFact(state.source, *node.source));
    use(node.name, Tensor());
    // A stack is empty when a run begins; the bodies of loops push and pop. A stack made inside a
    // function would need one instance per call.
    if (&graph != &state.module.main) {
      const bool known =
          std::any_of(state.module.main.nodes().begin(), state.module.main.nodes().end(),
                      [&](const Node& made) { return made.name == node.name + "/begin"; });
      if (known) return {};
      return WithNode(Unsupported("node '", node.name, "' (", node.op(),
                                  "): a stack that a function makes for itself"),
                      node.name);
    }
    const Tensor none = Tensor::ScalarInt64(0);
    ONCILLA_ASSIGN(const ValueId empty, graph.Add(node.name + "/empty", "ListReserve",
                                                  WriteAttrs(ListReserveAttrs{DeclaredType(list)}),
                                                  {graph.AddConstant(none)}));
    return graph
        .AddNode(node.name + "/begin", "AssignVariable", WriteAttrs(AssignVariableAttrs{node.name}),
                 {empty})
        .status();
  }
  ONCILLA_TRY(TfVariableFact(state.source, *node.source).status());
  Result<Tensor> first = state.variable(*node.source);
  // A variable without an initial value must be assigned before it is read; the run checks that.
  use(node.name, first.ok() ? *std::move(first) : Tensor());
  return {};
}

Result<ValueId> TfReadVariable(Graph& graph, const TfGraph& source, const TfFlatNode& variable,
                               std::string name) {
  ONCILLA_ASSIGN(const Fact fact, IsTfStack(variable.op())
                                      ? TfStackFact(source, *variable.source)
                                      : TfVariableFact(source, *variable.source));
  const ReadVariableAttrs attrs{variable.name, DeclaredType(fact)};
  return graph.Add(std::move(name), "ReadVariable", WriteAttrs(attrs), {});
}

}  // namespace oncilla
