// Control flow and variables, as the executor carries them out between segments.
//
// A loop passes the results of one call of its body to the next. On the CPU nothing is copied,
// since inputs are read in place. As long as shapes repeat, the body's plan is found again.
#include "engine/ops/control.h"

#include "engine/compile/loop_round.h"
#include "engine/run/executor.h"

namespace oncilla {
namespace {

using Values = std::vector<RunValue>;

Result<bool> Decided(const Values& results) {
  const Tensor decided = results.size() == 1 ? results[0].host() : Tensor();
  if (decided.is_list() || decided.dtype() != DType::kBool || decided.elements() != 1) {
    return InvalidArgument("the loop's condition must be one bool");
  }
  return decided.As<bool>()[0];
}

}  // namespace

Result<Values> Executor::Call(const std::string& name, std::span<const RunValue> arguments,
                              const std::vector<bool>& keep, const RunControl& control) {
  auto it = functions_.find(name);
  if (it == functions_.end()) return Internal("function '", name, "' was not compiled");
  Executor& function = *it->second;
  if (control.stats == nullptr) return function.RunValues(arguments, keep, control);
  RunStats stats;
  RunControl inner = control;
  inner.stats = &stats;
  auto out = function.RunValues(arguments, keep, inner);
  RunStats& total = *control.stats;
  total.copies += stats.copies;
  total.copied_bytes += stats.copied_bytes;
  total.segments += stats.segments;
  total.steps.insert(total.steps.end(), std::make_move_iterator(stats.steps.begin()),
                     std::make_move_iterator(stats.steps.end()));
  total.spans.insert(total.spans.end(), std::make_move_iterator(stats.spans.begin()),
                     std::make_move_iterator(stats.spans.end()));
  total.pools.insert(total.pools.end(), stats.pools.begin(), stats.pools.end());
  total.functions[function.compiled_.get()] = std::move(stats.fates);
  total.functions.merge(stats.functions);
  return out;
}

Result<Values> Executor::RunIf(const Node& node, std::span<const RunValue> in,
                               const RunControl& control) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<IfAttrs>(node.attrs));
  ONCILLA_ASSIGN(const auto selector, ToInt64s(in[0].host()));
  if (selector.size() != 1) return InvalidArgument("the selector is ", in[0].desc());
  const auto count = static_cast<int64_t>(attrs.branches.size());
  int64_t branch = selector[0];
  if (in[0].desc().dtype == DType::kBool) {
    branch = branch != 0 ? 0 : 1;
  } else if (branch < 0 || branch >= count) {
    branch = count - 1;
  }
  return Call(attrs.branches[static_cast<size_t>(branch)], in.subspan(1), {}, control);
}

Result<Values> Executor::RunWhile(const Node& node, std::span<const RunValue> in,
                                  const RunControl& control) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<WhileAttrs>(node.attrs));
  Values values(in.begin(), in.end());
  // A round may be one function, which decides on the next one as well.
  const std::string round = RoundName(attrs);
  const bool decides = compiled_->rounds.contains(round);
  std::vector<bool> keep;
  if (auto body = functions_.find(attrs.body); !decides && body != functions_.end()) {
    keep = body->second->RoundsOnDevice();
  }
  Values decision;
  for (;;) {
    ONCILLA_TRY(MayGoOn(control));
    if (decision.empty()) {
      ONCILLA_ASSIGN(decision, Call(attrs.cond, values, {}, control));
    }
    ONCILLA_ASSIGN(const bool goes_on, Decided(decision));
    if (!goes_on) return values;
    decision.clear();
    ONCILLA_ASSIGN(Values next, Call(decides ? round : attrs.body, values, keep, control));
    if (next.size() != values.size() + (decides ? 1 : 0)) {
      return Internal("the loop's body gave ", next.size(), " values for ", values.size());
    }
    if (decides) {
      decision.push_back(std::move(next.back()));
      next.pop_back();
    }
    values = std::move(next);
  }
}

std::vector<bool> Executor::RoundsOnDevice() const {
  const std::vector<int> devices = InputDevices();
  if (options_.links.empty() || devices.size() != compiled_->graph.outputs().size()) return {};
  std::vector<bool> keep;
  for (const int device : devices) keep.push_back(device > 0);
  return keep;
}

Result<Values> Executor::RunControlNode(const Node& node, std::span<const RunValue> in,
                                        const RunControl& control) {
  if (node.op->name == "If") return RunIf(node, in, control);
  if (node.op->name == "While") return RunWhile(node, in, control);
  if (options_.variables == nullptr) return Internal("there is no store for variables");
  if (node.op->name == "ReadVariable") {
    ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ReadVariableAttrs>(node.attrs));
    ONCILLA_ASSIGN(Tensor value, options_.variables->Read(attrs.variable));
    ONCILLA_ASSIGN(const Fact declared, ParseFact(attrs.output));
    // The application may have assigned a value of any type, but the nodes after this one expect
    // the declared type.
    const bool list = declared.kind == ValueKind::kList;
    if (value.is_list() != list || value.dtype() != declared.dtype ||
        (!list && !declared.shape.Accepts(value.shape()))) {
      return InvalidArgument("the variable '", attrs.variable, "' is a ", declared,
                             ", and was assigned a ", Fact::Of(value));
    }
    return Values{std::move(value)};
  }
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<AssignVariableAttrs>(node.attrs));
  ONCILLA_TRY(options_.variables->Assign(attrs.variable, in[0].host()));
  return Values{};
}

}  // namespace oncilla
