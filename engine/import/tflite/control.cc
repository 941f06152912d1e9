// Loops, branches and variables of a TFLite file.
//
// Types flow into functions from outside: each function is lowered for the shapes of its call site.
// The shape of a loop variable may change from iteration to iteration, so the body is lowered again
// with less known of the shape, until the shapes of its results fit as well. Constants that a loop
// passes on unchanged are put into its functions.
#include "engine/ops/control.h"

#include <algorithm>

#include "engine/import/tflite/builder.h"
#include "engine/import/tflite/effects.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int kMaxRounds = 10, kMaxDepth = 64;
constexpr std::string_view kBodyFailed = "a subgraph that it calls is not supported";

bool SameShape(const PartialShape& a, const PartialShape& b) {
  if (a.ranked() != b.ranked() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i].size != b[i].size || a[i].name != b[i].name) return false;
  }
  return true;
}

// The condition of a branch or a loop must be a single bool.
Status CheckCondition(const Fact& fact) {
  if (fact.dtype != DType::kBool) return DataLoss("its condition is ", fact);
  if (!fact.shape.ranked() || fact.shape.rank() != 0) {
    return Unsupported("its condition is ", fact, ", not a single truth");
  }
  return {};
}

}  // namespace

bool TfliteBuilder::IsControl(const TfliteOp& op) {
  return TfliteControlOf(op) != TfliteControl::kNone;
}

bool TfliteBuilder::HasEffect(const TfliteOp& op) const {
  if (TfliteWrites(op)) return true;
  const std::vector<size_t> callees = TfliteCallees(op, state_.model.subgraphs.size());
  return std::any_of(callees.begin(), callees.end(),
                     [&](size_t callee) { return state_.effects[callee] != 0; });
}

Result<const TfliteSubgraph*> TfliteBuilder::Called(const TfliteOp& op, int field,
                                                    size_t& index) const {
  const size_t count = state_.model.subgraphs.size();
  ONCILLA_ASSIGN(index, TfliteCallee(op, field, count));
  return &state_.model.subgraphs[index];
}

Result<Values> TfliteBuilder::LowerControl(const TfliteOp& op, const std::string& name,
                                           const Values& inputs) {
  if (state_.depth >= kMaxDepth) return DataLoss("subgraphs call each other too deeply");
  ++state_.depth;
  Result<Values> out = Values();
  switch (TfliteControlOf(op)) {
    case TfliteControl::kIf:
      out = LowerIf(op, name, inputs);
      break;
    case TfliteControl::kWhile:
      out = LowerWhile(op, name, inputs);
      break;
    case TfliteControl::kComposite: {
      size_t index = 0;
      const auto callee = Called(op, 1, index);
      out = callee.ok() ? Inline(op, index, name, inputs, 0) : Result<Values>(callee.status());
      break;
    }
    case TfliteControl::kTable:
    case TfliteControl::kTableFind:
    case TfliteControl::kTableImport:
    case TfliteControl::kTableSize:
      out = LowerTable(op, name, inputs);
      break;
    default:
      out = LowerVariable(op, name, inputs);
  }
  --state_.depth;
  return out;
}

// Lowers a subgraph in place of its call.
Result<Values> TfliteBuilder::Inline(const TfliteOp& op, size_t subgraph, const std::string& name,
                                     const Values& inputs, size_t first) {
  const TfliteSubgraph& callee = state_.model.subgraphs[subgraph];
  if (callee.inputs.size() + first != op.inputs.size() ||
      callee.outputs.size() != op.outputs.size()) {
    return DataLoss("calls a subgraph of ", callee.inputs.size(), " inputs and ",
                    callee.outputs.size(), " outputs");
  }
  TfliteBuilder builder(state_, graph_, callee, name + "/");
  for (size_t i = first; i < inputs.size(); ++i) {
    if (const std::string handle = HandleOf(op.inputs[i]); !handle.empty()) {
      builder.GiveHandle(callee.inputs[i - first], handle);
    } else {
      builder.Give(callee.inputs[i - first], inputs[i]);
    }
  }
  ONCILLA_TRY(builder.Build(callee.outputs));
  if (builder.failed()) return Unsupported(kBodyFailed);
  Values out;
  for (size_t i = 0; i < callee.outputs.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId value, builder.Value(callee.outputs[i]));
    if (value == kNoValue) handles_[op.outputs[i]] = builder.HandleOf(callee.outputs[i]);
    out.push_back(value);
  }
  return out;
}

// Lowers a subgraph to a function of the module. values[i] is input i outside the function;
// facts[i] is its type inside, absent for inputs that are moved into the function: constants and
// handles. The body of a loop does not return these.
Result<Graph> TfliteBuilder::Function(const TfliteOp& op, size_t subgraph, const std::string& name,
                                      std::span<const ValueId> values, const Facts& facts,
                                      size_t first, bool all_outputs) {
  const TfliteSubgraph& callee = state_.model.subgraphs[subgraph];
  Graph function(graph_.shared_ops());
  TfliteBuilder builder(state_, function, callee, name + "/");
  for (size_t i = 0; i < values.size(); ++i) {
    const int32_t argument = callee.inputs[i];
    const int32_t outside = op.inputs[i + first];
    if (const std::string handle = HandleOf(outside); !handle.empty()) {
      builder.GiveHandle(argument, handle);
    } else if (facts[i].absent()) {
      builder.Give(argument, function.AddConstant(graph_.fact(values[i]).value));
    } else {
      builder.Give(argument, function.AddInput(StrCat("argument", i), facts[i]));
    }
  }
  ONCILLA_TRY(builder.Build(callee.outputs));
  if (builder.failed()) return Unsupported(kBodyFailed);
  for (size_t i = 0; i < callee.outputs.size(); ++i) {
    if (!all_outputs && facts[i].absent()) continue;
    ONCILLA_ASSIGN(const ValueId value, builder.Value(callee.outputs[i]));
    if (value == kNoValue) return Unsupported("a function gives a handle");
    function.AddOutput(StrCat("result", i), value);
  }
  return function;
}

Result<Values> TfliteBuilder::LowerIf(const TfliteOp& op, const std::string& name,
                                      const Values& inputs) {
  if (inputs.empty() || inputs[0] == kNoValue) return DataLoss("has no condition");
  size_t branches[2] = {};
  for (int b = 0; b < 2; ++b) {
    ONCILLA_ASSIGN(const TfliteSubgraph* callee, Called(op, b, branches[b]));
    if (callee->inputs.size() + 1 != inputs.size() || callee->outputs.size() != op.outputs.size()) {
      return DataLoss("branch ", b, " has ", callee->inputs.size(), " inputs and ",
                      callee->outputs.size(), " outputs");
    }
  }
  const Fact& condition = graph_.fact(inputs[0]);
  ONCILLA_TRY(CheckCondition(condition));
  if (condition.has_value()) {
    ONCILLA_ASSIGN(const auto truth, ToInt64s(condition.value));
    if (truth.size() != 1) return DataLoss("its condition is ", condition);
    return Inline(op, branches[truth[0] != 0 ? 0 : 1], name, inputs, 1);
  }
  Values arguments = {inputs[0]};
  Facts facts;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool set = inputs[i] == kNoValue || graph_.value(inputs[i]).is_constant();
    facts.push_back(set ? Fact::Absent() : graph_.fact(inputs[i]).WithoutContents());
    if (!set) arguments.push_back(inputs[i]);
  }
  IfAttrs attrs;
  Facts given;
  const std::span<const ValueId> outer = std::span(inputs).subspan(1);
  for (int b = 0; b < 2; ++b) {
    ONCILLA_ASSIGN(Graph branch, Function(op, branches[b], name, outer, facts, 1, true));
    for (size_t i = 0; i < branch.outputs().size(); ++i) {
      const Fact fact = branch.fact(branch.outputs()[i].value).WithoutContents();
      if (b == 0) {
        given.push_back(fact);
      } else if (fact.dtype != given[i].dtype || fact.kind != given[i].kind) {
        return DataLoss("result ", i, " is ", given[i], " in one branch and ", fact,
                        " in the other");
      } else {
        given[i].shape = CommonShape(given[i].shape, fact.shape);
      }
    }
    attrs.branches.push_back(StrCat(name, "/branch", b));
    state_.module.functions.emplace_back(attrs.branches.back(), std::move(branch));
  }
  for (const Fact& fact : given) attrs.outputs.push_back(DeclaredType(fact));
  return graph_.AddNode(name, "If", WriteAttrs(attrs), std::move(arguments), {name});
}

Result<Values> TfliteBuilder::LowerWhile(const TfliteOp& op, const std::string& name,
                                         const Values& inputs) {
  size_t cond = 0, body = 0;
  ONCILLA_ASSIGN(const TfliteSubgraph* cond_graph, Called(op, 0, cond));
  ONCILLA_ASSIGN(const TfliteSubgraph* body_graph, Called(op, 1, body));
  const size_t count = inputs.size();
  if (cond_graph->inputs.size() != count || cond_graph->outputs.size() != 1 ||
      body_graph->inputs.size() != count || body_graph->outputs.size() != count ||
      op.outputs.size() != count) {
    return DataLoss("carries ", count, " values, and its subgraphs others");
  }
  Facts facts;
  Values carried;
  for (size_t i = 0; i < count; ++i) {
    const bool same = body_graph->outputs[i] == body_graph->inputs[i];
    const bool handle = inputs[i] == kNoValue;
    if (handle && !same) return Unsupported("a loop that changes a handle");
    const bool set = handle || (same && graph_.value(inputs[i]).is_constant());
    facts.push_back(set ? Fact::Absent() : graph_.fact(inputs[i]).WithoutContents());
    if (!set) carried.push_back(inputs[i]);
  }
  const size_t functions = state_.module.functions.size();
  WhileAttrs attrs{name + "/cond", name + "/body", {}};
  bool settled = false;
  for (int round = 0; round < kMaxRounds && !settled; ++round) {
    auto& all = state_.module.functions;
    all.erase(all.begin() + static_cast<ptrdiff_t>(functions), all.end());
    ONCILLA_ASSIGN(Graph lowered, Function(op, body, name, inputs, facts, 0, false));
    settled = true;
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      if (facts[i].absent()) continue;
      const Fact& given = lowered.fact(lowered.outputs()[next++].value);
      if (given.dtype != facts[i].dtype || given.kind != facts[i].kind) {
        return DataLoss("value ", i, " begins as ", facts[i], " and becomes ", given);
      }
      PartialShape common = CommonShape(facts[i].shape, given.shape);
      if (SameShape(common, facts[i].shape)) continue;
      settled = false;
      facts[i].shape = round + 2 >= kMaxRounds ? PartialShape() : std::move(common);
    }
    if (settled) all.emplace_back(attrs.body, std::move(lowered));
  }
  if (!settled) return Unsupported("the shapes of its variables do not converge");
  ONCILLA_ASSIGN(Graph decided, Function(op, cond, name, inputs, facts, 0, true));
  ONCILLA_TRY(CheckCondition(decided.fact(decided.outputs()[0].value)));
  state_.module.functions.emplace_back(attrs.cond, std::move(decided));
  for (const Fact& fact : facts) {
    if (!fact.absent()) attrs.outputs.push_back(DeclaredType(fact));
  }
  ONCILLA_ASSIGN(const Values results,
                 graph_.AddNode(name, "While", WriteAttrs(attrs), std::move(carried), {name}));
  Values out;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(facts[i].absent() ? inputs[i] : results[next++]);
    if (inputs[i] == kNoValue) handles_[op.outputs[i]] = HandleOf(op.inputs[i]);
  }
  return out;
}

// The variable is one of the module's, identified by the name that its handle has in the file.
Result<Values> TfliteBuilder::LowerVariable(const TfliteOp& op, const std::string& name,
                                            const Values& inputs) {
  const TfliteControl kind = TfliteControlOf(op);
  if (kind == TfliteControl::kCallOnce) return Values();  // see TfliteInitialisers
  if (kind == TfliteControl::kHandle) {
    ONCILLA_ASSIGN(const std::string_view container, op.options.String(0));
    ONCILLA_ASSIGN(const std::string_view shared, op.options.String(1));
    if (op.outputs.size() != 1 || op.outputs[0] == kNoTensor) return DataLoss("has no output");
    handles_[op.outputs[0]] =
        container.empty() ? std::string(shared) : StrCat(container, "/", shared);
    if (handles_[op.outputs[0]].empty()) return Unsupported("a variable without a name");
    return Values{kNoValue};
  }
  const std::string variable = op.inputs.empty() ? "" : HandleOf(op.inputs[0]);
  if (variable.empty()) return DataLoss("its first input is not the handle of a variable");
  auto& variables = state_.module.variables;
  const bool known = std::any_of(variables.begin(), variables.end(),
                                 [&](const ModuleVariable& v) { return v.name == variable; });
  if (kind == TfliteControl::kAssign) {
    if (inputs.size() != 2 || inputs[1] == kNoValue) return DataLoss("has no value to assign");
    if (state_.only != nullptr && !state_.only->contains(variable)) return Values();
    if (!known) variables.push_back({variable, variable, Tensor()});
    return graph_.AddNode(name, "AssignVariable", WriteAttrs(AssignVariableAttrs{variable}),
                          {inputs[1]}, {name});
  }
  if (op.outputs.size() != 1 || op.outputs[0] == kNoTensor) return DataLoss("has no output");
  const TfliteTensor& stated = subgraph_.tensors[static_cast<size_t>(op.outputs[0])];
  ONCILLA_ASSIGN(Fact fact, InputFact(stated, ""));
  if (stated.shape.empty() && !stated.has_rank) fact.shape = PartialShape();
  if (!known) variables.push_back({variable, variable, Tensor()});
  return graph_.AddNode(name, "ReadVariable",
                        WriteAttrs(ReadVariableAttrs{variable, DeclaredType(fact)}), {}, {name});
}

}  // namespace oncilla
