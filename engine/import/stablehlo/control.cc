// Loops and branches of StableHLO, whose regions become functions of the target module.
//
// A region sees the values around it: constants are put into its function, all else becomes an
// argument. What a loop passes on unchanged need not be computed anew, and if it is a constant, is
// one within the loop too.
#include "engine/ops/control.h"

#include <algorithm>
#include <set>

#include "engine/import/stablehlo/builder.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/rules.h"

namespace oncilla {

class HloControl {
 public:
  HloControl(HloBuilder& outer, const HloOp& op, std::string name)
      : outer_(outer), op_(op), name_(std::move(name)) {}

  Result<HloValues> While();
  Result<HloValues> Branch();

 private:
  enum class Role { kInside, kArgument };
  struct Captured {
    int number;
    Role role;
  };

  HloModule const& source() const { return outer_.state_.source; }
  Module& target() { return outer_.state_.target; }
  Graph& graph() { return outer_.graph_; }

  // The numbers of values from outside that regions read.
  static void Collect(const HloRegion& region, std::set<int>& defined, std::set<int>& read);
  Status FindCaptured();
  // Whether a value is the same in every run, as it is stored.
  bool IsConstant(const HloValue& value) { return graph().value(value.id).is_constant(); }
  HloValue Copied(const HloValue& value, Graph& into) {
    HloValue copy = value;
    copy.id = into.AddConstant(graph().fact(value.id).value);
    copy.shape = copy.full = kNoValue;
    return copy;
  }
  // Gives a region's builder what it captures: constants, and inputs of its graph.
  Status AddCaptured(HloBuilder& inner, Graph& into);
  Result<Graph> LoopPart(const HloRegion& region, const HloValues& carried,
                         const std::vector<Fact>& facts, bool body, bool& settled,
                         std::vector<Fact>& next);

  HloBuilder& outer_;
  const HloOp& op_;
  const std::string name_;
  std::vector<Captured> captured_;
  Values captured_values_;    // those that are arguments
  std::vector<char> inside_;  // per loop value: a constant that the loop does not change
};

void HloControl::Collect(const HloRegion& region, std::set<int>& defined, std::set<int>& read) {
  defined.insert(region.arguments.begin(), region.arguments.end());
  for (const HloOp& op : region.ops) {
    for (int operand : op.operands) {
      if (defined.count(operand) == 0) read.insert(operand);
    }
    if (!op.isolated) {
      for (const HloRegion& inner : op.regions) {
        std::set<int> within = defined;
        Collect(inner, within, read);
      }
    }
    defined.insert(op.results.begin(), op.results.end());
  }
}

Status HloControl::FindCaptured() {
  std::set<int> read;
  for (const HloRegion& region : op_.regions) {
    std::set<int> defined;
    Collect(region, defined, read);
  }
  for (int number : read) {
    ONCILLA_ASSIGN(HloValue * value, outer_.Find(number));
    if (value->id == kNoValue) continue;  // a token
    if (value->imag != kNoValue) return Unsupported("complex numbers in a loop or branch");
    const bool inside = IsConstant(*value) && (!value->narrow || value->shape == kNoValue);
    captured_.push_back({number, inside ? Role::kInside : Role::kArgument});
    if (inside) continue;
    ONCILLA_ASSIGN(const ValueId full, outer_.Full(*value));
    captured_values_.push_back(full);
  }
  return {};
}

Status HloControl::AddCaptured(HloBuilder& inner, Graph& into) {
  size_t next = 0;
  for (const Captured& captured : captured_) {
    ONCILLA_ASSIGN(const HloValue* value, outer_.Find(captured.number));
    if (captured.role == Role::kInside) {
      inner.values_[captured.number] = Copied(*value, into);
      continue;
    }
    const Fact fact = graph().fact(captured_values_[next]).WithoutContents();
    const ValueId id = into.AddInput(StrCat("outer", next++), fact);
    inner.values_[captured.number] = inner.Whole(id, value->type);
  }
  return {};
}

// The condition or the body of a loop as a graph. `settled` is cleared if the results of a body
// have shapes that `facts` do not cover; `next` then has what covers both.
Result<Graph> HloControl::LoopPart(const HloRegion& region, const HloValues& carried,
                                   const std::vector<Fact>& facts, bool body, bool& settled,
                                   std::vector<Fact>& next) {
  Graph part(graph().shared_ops());
  HloBuilder inner(outer_.state_, part, StrCat(name_, body ? "/body" : "/cond"));
  if (region.arguments.size() != carried.size()) return DataLoss("its regions take other values");
  HloValues arguments;
  for (size_t i = 0; i < carried.size(); ++i) {
    if (carried[i].id == kNoValue) {
      arguments.emplace_back();
    } else if (inside_[i] != 0) {
      arguments.push_back(Copied(carried[i], part));
    } else {
      arguments.push_back(inner.Whole(part.AddInput(StrCat("value", i), facts[i]), -1));
    }
  }
  ONCILLA_TRY(AddCaptured(inner, part));
  ONCILLA_ASSIGN(HloValues results, inner.Run(region, std::move(arguments)));
  if (!body) {
    if (results.size() != 1) return DataLoss("its condition gives ", results.size(), " values");
    ONCILLA_ASSIGN(const ValueId full, inner.Full(results[0]));
    part.AddOutput("more", full);
    return part;
  }
  if (results.size() != carried.size()) return DataLoss("its body gives other values");
  for (size_t i = 0; i < results.size(); ++i) {
    if (carried[i].id == kNoValue || inside_[i] != 0) continue;
    ONCILLA_ASSIGN(const ValueId full, inner.Full(results[i]));
    const Fact& given = part.fact(full);
    if (given.dtype != facts[i].dtype) {
      return InvalidArgument("value ", i, " begins as ", facts[i], " and becomes ", given);
    }
    PartialShape common = CommonShape(facts[i].shape, given.shape);
    if (StrCat(common) != StrCat(facts[i].shape)) settled = false;
    next[i].shape = std::move(common);
    part.AddOutput(StrCat("value", i), full);
  }
  size_t count = 0;
  for (const NamedValue& input :
       std::vector<NamedValue>(part.inputs().begin(), part.inputs().end())) {
    if (input.name.starts_with("outer")) part.AddOutput(StrCat("outer", count++), input.value);
  }
  return part;
}

Result<HloValues> HloControl::While() {
  if (op_.regions.size() != 2) return DataLoss("needs a condition and a body");
  const HloRegion& body = op_.regions[1];
  if (body.ops.empty() || body.ops.back().operands.size() != op_.operands.size() ||
      body.arguments.size() != op_.operands.size()) {
    return DataLoss("its body gives other values");
  }
  ONCILLA_TRY(FindCaptured());
  HloValues carried;
  std::vector<Fact> facts;
  Values inputs;
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    ONCILLA_ASSIGN(HloValue * value, outer_.Find(op_.operands[i]));
    if (value->imag != kNoValue) return Unsupported("complex numbers in a loop");
    carried.push_back(*value);
    facts.emplace_back();
    const bool token = value->id == kNoValue;
    const bool same = body.ops.back().operands[i] == body.arguments[i];
    inside_.push_back(!token && same && IsConstant(*value) &&
                      (!value->narrow || value->shape == kNoValue));
    if (token || inside_.back() != 0) continue;
    ONCILLA_ASSIGN(const ValueId full, outer_.Full(*value));
    inputs.push_back(full);
    facts.back() = graph().fact(full).WithoutContents();
  }
  const size_t functions = target().functions.size();
  constexpr int kMostRounds = 6;
  std::optional<Graph> lowered;
  for (int round = 0; round < kMostRounds && !lowered.has_value(); ++round) {
    target().functions.erase(target().functions.begin() + static_cast<ptrdiff_t>(functions),
                             target().functions.end());
    bool settled = true;
    std::vector<Fact> next = facts;
    ONCILLA_ASSIGN(Graph part, LoopPart(body, carried, facts, true, settled, next));
    if (settled) lowered = std::move(part);
    facts = std::move(next);
  }
  if (!lowered.has_value()) return Unsupported("the shapes of its values do not converge");
  bool settled = true;
  std::vector<Fact> next = facts;
  ONCILLA_ASSIGN(Graph cond, LoopPart(op_.regions[0], carried, facts, false, settled, next));
  WhileAttrs attrs{name_ + "/cond", name_ + "/body", {}};
  target().functions.emplace_back(attrs.cond, std::move(cond));
  target().functions.emplace_back(attrs.body, *std::move(lowered));
  for (size_t i = 0; i < facts.size(); ++i) {
    if (carried[i].id != kNoValue && inside_[i] == 0)
      attrs.outputs.push_back(DeclaredType(facts[i]));
  }
  for (ValueId value : captured_values_) {
    inputs.push_back(value);
    attrs.outputs.push_back(DeclaredType(graph().fact(value)));
  }
  if (inputs.empty()) return Unsupported("a loop without values");
  ONCILLA_ASSIGN(const Values outputs,
                 graph().AddNode(name_, "While", WriteAttrs(attrs), std::move(inputs), {name_}));
  HloValues results;
  size_t at = 0;
  for (size_t i = 0; i < carried.size(); ++i) {
    const bool kept = carried[i].id == kNoValue || inside_[i] != 0;
    results.push_back(kept ? carried[i] : outer_.Whole(outputs[at++], -1));
  }
  return results;
}

Result<HloValues> HloControl::Branch() {
  if (op_.operands.size() != 1 || op_.regions.empty())
    return DataLoss("lacks a condition or branch");
  ONCILLA_ASSIGN(HloValue * selector_value, outer_.Find(op_.operands[0]));
  ONCILLA_ASSIGN(const ValueId selector, outer_.Full(*selector_value));
  if (graph().fact(selector).has_value()) {
    // A known choice: that branch is lowered in place.
    ONCILLA_ASSIGN(const std::vector<int64_t> known, ToInt64s(graph().fact(selector).value));
    const auto count = static_cast<int64_t>(op_.regions.size());
    int64_t branch = known.empty() ? 0 : known[0];
    if (op_.name == "if") branch = branch != 0 ? 0 : 1;
    if (branch < 0 || branch >= count) branch = count - 1;
    HloBuilder inner(outer_.state_, graph(), StrCat(name_, "/branch", branch));
    inner.values_ = outer_.values_;
    return inner.Run(op_.regions[static_cast<size_t>(branch)], {});
  }
  ONCILLA_TRY(FindCaptured());
  IfAttrs attrs;
  Facts given;
  for (size_t k = 0; k < op_.regions.size(); ++k) {
    Graph branch(graph().shared_ops());
    HloBuilder inner(outer_.state_, branch, StrCat(name_, "/branch", k));
    ONCILLA_TRY(AddCaptured(inner, branch));
    ONCILLA_ASSIGN(HloValues results, inner.Run(op_.regions[k], {}));
    if (k > 0 && results.size() != given.size()) return DataLoss("its branches give other values");
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].id == kNoValue || results[i].imag != kNoValue) {
        return Unsupported("a branch that gives a token or complex numbers");
      }
      ONCILLA_ASSIGN(const ValueId full, inner.Full(results[i]));
      const Fact fact = branch.fact(full).WithoutContents();
      if (k == 0) {
        given.push_back(fact);
      } else if (fact.dtype != given[i].dtype) {
        return InvalidArgument("result ", i, " is ", given[i], " in one branch and ", fact,
                               " in another");
      } else {
        given[i].shape = CommonShape(given[i].shape, fact.shape);
      }
      branch.AddOutput(StrCat("result", i), full);
    }
    attrs.branches.push_back(StrCat(name_, "/branch", k));
    target().functions.emplace_back(attrs.branches.back(), std::move(branch));
  }
  for (const Fact& fact : given) attrs.outputs.push_back(DeclaredType(fact));
  Values inputs = {selector};
  inputs.insert(inputs.end(), captured_values_.begin(), captured_values_.end());
  ONCILLA_ASSIGN(const Values outputs,
                 graph().AddNode(name_, "If", WriteAttrs(attrs), std::move(inputs), {name_}));
  HloValues results;
  for (ValueId output : outputs) results.push_back(outer_.Whole(output, -1));
  return results;
}

Result<HloValues> LowerHloControl(HloBuilder& builder, const HloOp& op, const std::string& name) {
  HloControl control(builder, op, name);
  return op.name == "while" ? control.While() : control.Branch();
}

}  // namespace oncilla
