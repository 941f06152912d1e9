// The shape of a loop variable may change from iteration to iteration. The body is therefore
// lowered again with less known of the shape, until the shapes of its results match.
#include "engine/import/onnx/loop.h"

#include <algorithm>

#include "engine/ops/array/list.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/control.h"
#include "engine/ops/rules.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

constexpr int kMaxRounds = 10;

bool SameShape(const PartialShape& a, const PartialShape& b) {
  if (a.ranked() != b.ranked() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i].size != b[i].size || a[i].name != b[i].name) return false;
  }
  return true;
}

Fact Number() { return Fact::Of(DType::kI64, PartialShape::OfRank(0)); }
Fact Truth() { return Fact::Of(DType::kBool, PartialShape::OfRank(0)); }

Tensor True() {
  const bool value = true;
  return Tensor::Copy({DType::kBool, {}}, std::as_bytes(std::span(&value, 1)));
}

bool IsTrue(const Fact& fact) {
  return fact.has_value() && fact.value.elements() == 1 && fact.value.As<bool>()[0];
}

class Loop {
 public:
  Loop(OnnxImportState& state, OnnxTarget& target, const OnnxLoopSpec& spec)
      : state_(state), target_(target), spec_(spec) {
    always_ = spec.more == kNoValue || IsTrue(target.graph.fact(spec.more));
    for (ValueId id : spec.carried) {
      facts_.push_back(target.graph.fact(id).WithoutContents());
      kinds_.push_back(OnnxKindOf(target.graph, target.optionals, id));
    }
    limited_ = spec.limit != kNoValue;
    fixed_limit_ = limited_ && target.graph.fact(spec.limit).has_value();
    unwraps_.assign(spec.carried.size(), false);
    kept_.assign(spec.carried.size(), false);
  }

  Result<OnnxLoopResults> Add() {
    const size_t functions = state_.module.functions.size();
    std::optional<Graph> body;
    for (int round = 0; round < kMaxRounds && !body.has_value(); ++round) {
      state_.DropFunctions(functions);
      ONCILLA_ASSIGN(body, LowerBody(round + 3 >= kMaxRounds));
    }
    if (!body.has_value()) return Unsupported("the shapes of its variables do not converge");
    ONCILLA_ASSIGN(Graph cond, MakeCond());
    WhileAttrs attrs;
    attrs.cond = state_.NewFunctionName(spec_.name + "/cond");
    attrs.body = state_.NewFunctionName(spec_.name + "/body");
    state_.module.functions.emplace_back(attrs.cond, std::move(cond));
    state_.module.functions.emplace_back(attrs.body, *std::move(body));
    ONCILLA_ASSIGN(const Values initial, Initial(attrs.outputs));
    ONCILLA_ASSIGN(const Values results,
                   target_.graph.AddNode(spec_.name, "While", WriteAttrs(attrs), initial));
    return Finish(results);
  }

 private:
  // The arguments of cond and body: number, limit, more, carried, read, lists; some may be absent.
  struct Arguments {
    ValueId number = kNoValue, limit = kNoValue, more = kNoValue;
    Values carried, read, lists;
  };

  // Makes a value of the outer graph available inside a function of the loop.
  ValueId Outer(Graph& function, ValueId id, std::string name) const {
    const Fact& fact = target_.graph.fact(id);
    if (fact.has_value()) return function.AddConstant(fact.value);
    return function.AddInput(std::move(name), fact.WithoutContents());
  }

  Arguments AddArguments(OnnxTarget& function) const {
    Graph& graph = function.graph;
    Arguments out;
    out.number = graph.AddInput("round", Number());
    if (limited_) out.limit = Outer(graph, spec_.limit, "limit");
    out.more = always_ ? graph.AddConstant(True()) : graph.AddInput("more", Truth());
    for (size_t i = 0; i < facts_.size(); ++i) {
      out.carried.push_back(kept_[i] ? graph.AddConstant(target_.graph.fact(spec_.carried[i]).value)
                                     : graph.AddInput(StrCat("carried", i), facts_[i]));
      MarkOnnxKind(graph, function.optionals, out.carried[i], kinds_[i]);
    }
    for (size_t i = 0; i < spec_.read.size(); ++i) {
      out.read.push_back(Outer(graph, spec_.read[i], StrCat("read", i)));
      MarkOnnxKind(graph, function.optionals, out.read[i],
                   OnnxKindOf(target_.graph, target_.optionals, spec_.read[i]));
    }
    for (size_t i = 0; i < collected_.size(); ++i) {
      out.lists.push_back(graph.AddInput(StrCat("list", i), collected_[i]));
    }
    return out;
  }

  // The initial values of the While, and the types of its results.
  Result<Values> Initial(std::vector<std::string>& types) {
    Graph& graph = target_.graph;
    Values initial = {graph.AddConstant(Tensor::ScalarInt64(0))};
    types = {DeclaredType(Number())};
    const auto add = [&](ValueId id, const Fact& fact) {
      initial.push_back(id);
      types.push_back(DeclaredType(fact));
    };
    if (limited_ && !fixed_limit_) add(spec_.limit, Number());
    if (!always_) {
      add(spec_.more == kNoValue ? graph.AddConstant(True()) : spec_.more, Truth());
    }
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (!kept_[i]) add(spec_.carried[i], facts_[i]);
    }
    for (ValueId id : spec_.read) {
      if (!graph.fact(id).has_value()) add(id, graph.fact(id));
    }
    for (size_t i = 0; i < collected_.size(); ++i) {
      ONCILLA_ASSIGN(const ValueId list,
                     EmptyOnnxList(graph, collected_[i], StrCat(spec_.name, "/list", i)));
      add(list, collected_[i]);
    }
    return initial;
  }

  Result<OnnxLoopResults> Finish(const Values& results) {
    OnnxLoopResults out;
    const size_t lists = results.size() - collected_.size();
    size_t at = 1 + (limited_ && !fixed_limit_ ? 1 : 0) + (always_ ? 0 : 1);
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (kept_[i]) {
        out.carried.push_back(spec_.carried[i]);
        continue;
      }
      const ValueId result = results[at++];
      MarkOnnxKind(target_.graph, target_.optionals, result, kinds_[i]);
      out.carried.push_back(result);
      // The value is optional at first, and each iteration gives a plain one.
      if (!unwraps_[i]) continue;
      ONCILLA_ASSIGN(out.carried.back(),
                     UnwrapOnnxOptional(target_.graph, target_.optionals, result,
                                        StrCat(spec_.name, "/held", i)));
    }
    out.lists.assign(results.begin() + static_cast<ptrdiff_t>(lists), results.end());
    return out;
  }

  // The condition: number < limit and more
  Result<Graph> MakeCond() {
    Graph cond(target_.graph.shared_ops());
    OnnxTarget target(cond);
    const Arguments in = AddArguments(target);
    ValueId more = in.more;
    if (limited_) {
      ONCILLA_ASSIGN(more, cond.Add(spec_.name + "/below", "Less", {}, {in.number, in.limit}));
      if (!always_) {
        ONCILLA_ASSIGN(more, cond.Add(spec_.name + "/more", "And", {}, {more, in.more}));
      }
    }
    cond.AddOutput("more", more);
    return cond;
  }

  // Lowers the body for the types in facts_. If its results do not match these types, returns
  // nothing, and facts_ then state less of the shapes, or with `give_up` nothing.
  Result<std::optional<Graph>> LowerBody(bool give_up) {
    collected_.clear();
    Graph body(target_.graph.shared_ops());
    OnnxTarget target(body);
    Arguments in = AddArguments(target);
    ONCILLA_ASSIGN(OnnxRound round, spec_.round({target, in.number, in.more, in.carried, in.read}));
    if (std::ranges::count(round.carried, kNoValue) +
            std::ranges::count(round.collected, kNoValue) >
        0) {
      return Unsupported(kOnnxGraphFailed);
    }
    if (!give_up && FindKept(in, round)) return std::optional<Graph>();
    ONCILLA_ASSIGN(const bool settled, Settle(target, round, give_up));
    if (!settled) return std::optional<Graph>();
    // The body's results in the order of its arguments: counter, limit, condition, carried values,
    // values that are only read, and the lists that collect the outputs of each iteration.
    ONCILLA_ASSIGN(Tensor one, ScalarOf(DType::kI64, 1));
    ONCILLA_ASSIGN(const ValueId next, body.Add(spec_.name + "/next", "Add", {},
                                                {in.number, body.AddConstant(std::move(one))}));
    body.AddOutput("round", next);
    if (limited_ && !fixed_limit_) body.AddOutput("limit", in.limit);
    if (!always_) body.AddOutput("more", round.more == kNoValue ? in.more : round.more);
    for (size_t i = 0; i < round.carried.size(); ++i) {
      if (!kept_[i]) body.AddOutput(StrCat("carried", i), round.carried[i]);
    }
    for (size_t i = 0; i < spec_.read.size(); ++i) {
      if (target_.graph.fact(spec_.read[i]).has_value()) continue;
      body.AddOutput(StrCat("read", i), in.read[i]);
    }
    for (size_t i = 0; i < round.collected.size(); ++i) {
      const Fact& fact = body.fact(round.collected[i]);
      if (fact.kind != ValueKind::kTensor) return Unsupported("sequences as outputs of each round");
      collected_.push_back(Fact::List(fact.dtype, fact.shape));
      for (int k = 0; k < fact.shape.rank(); ++k) collected_[i].shape[k].name.clear();
      const ValueId list = body.AddInput(StrCat("list", i), collected_[i]);
      ONCILLA_ASSIGN(const ValueId longer, body.Add(StrCat(spec_.name, "/collect", i), "ListPush",
                                                    {}, {list, round.collected[i]}));
      body.AddOutput(StrCat("list", i), longer);
    }
    return std::optional<Graph>(std::move(body));
  }

  // Finds constants that an iteration passes on unchanged, as tf2onnx carries weights. They become
  // constants of the body, so that its products are packed once. Returns whether there are new
  // ones.
  bool FindKept(const Arguments& in, const OnnxRound& round) {
    bool found = false;
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (kept_[i] || round.carried[i] != in.carried[i]) continue;
      kept_[i] = target_.graph.fact(spec_.carried[i]).has_value();
      found |= kept_[i];
    }
    return found;
  }

  // Whether an iteration's results match facts_, kinds_ and always_; if not, these are weakened so
  // that they may match next time.
  Result<bool> Settle(OnnxTarget& body, OnnxRound& round, bool give_up) {
    bool settled = true;
    if (always_ && round.more != kNoValue && !IsTrue(body.graph.fact(round.more))) {
      if (spec_.ignores_more) {
        return Unsupported(
            "no condition is given and its body computes one, which the specification ignores and "
            "other engines do not");
      }
      always_ = settled = false;
    }
    for (size_t i = 0; i < facts_.size(); ++i) {
      ONCILLA_TRY(SettleKind(body, round.carried[i], i));
      const Fact& given = body.graph.fact(round.carried[i]);
      Fact& fact = facts_[i];
      if (given.kind != fact.kind || given.dtype != fact.dtype) {
        return InvalidArgument("value ", i, " of the loop begins as ", fact, " and becomes ",
                               given);
      }
      PartialShape common = CommonShape(fact.shape, given.shape);
      if (SameShape(common, fact.shape)) continue;
      settled = false;
      fact.shape = give_up ? PartialShape() : std::move(common);
    }
    return settled;
  }

  // A carried value stays optional even if an iteration gives a plain one.
  Status SettleKind(OnnxTarget& body, ValueId& value, size_t i) {
    const OnnxKind kind = OnnxKindOf(body.graph, body.optionals, value);
    if (kind == kinds_[i]) return {};
    if (!WrapsOnnxKind(kind, kinds_[i])) {
      return InvalidArgument("value ", i, " of the loop begins as a tensor, a sequence or an ",
                             "optional value, and becomes another");
    }
    unwraps_[i] = true;
    ONCILLA_ASSIGN(value, WrapOnnxOptional(body.graph, body.optionals, value,
                                           StrCat(spec_.name, "/optional", i)));
    return {};
  }

  OnnxImportState& state_;
  OnnxTarget& target_;
  const OnnxLoopSpec& spec_;
  bool always_, limited_, fixed_limit_;
  Facts facts_;
  std::vector<OnnxKind> kinds_;
  std::vector<bool> unwraps_;
  std::vector<bool> kept_;  // constants that each iteration passes on
  Facts collected_;
};

std::vector<size_t> Numbers(size_t first, size_t end) {
  std::vector<size_t> all;
  for (size_t i = first; i < end; ++i) all.push_back(i);
  return all;
}

// Gives a scalar one axis if the body's input is declared with one.
Result<ValueId> AsDeclared(Graph& graph, ValueId scalar, const OnnxValueInfo& input,
                           const std::string& name) {
  if (!input.shape.ranked() || input.shape.rank() != 1) return scalar;
  const Tensor one = Tensor::Int64s(std::vector<int64_t>{1});
  return graph.Add(name, "Reshape", WriteAttrs(ReshapeAttrs{}), {scalar, graph.AddConstant(one)});
}

// Converts an iteration's condition to a scalar.
Result<ValueId> AsScalar(Graph& graph, ValueId x, const std::string& name) {
  const Fact& fact = graph.fact(x);
  if (fact.kind != ValueKind::kTensor || fact.dtype != DType::kBool) {
    return InvalidArgument("its body's condition is ", fact, ", not a bool");
  }
  if (fact.shape.ranked() && fact.shape.rank() == 0) return x;
  if (fact.has_value() && fact.value.elements() == 1) {
    return graph.AddConstant(fact.value.Reshaped({}));
  }
  return graph.Add(name, "Reshape", WriteAttrs(ReshapeAttrs{}),
                   {x, graph.AddConstant(Tensor::Int64s({}))});
}

}  // namespace

Result<OnnxLoopResults> AddOnnxLoop(OnnxImportState& state, OnnxTarget& target,
                                    const OnnxLoopSpec& spec) {
  return Loop(state, target, spec).Add();
}

Result<ValueId> StackOnnxRounds(Graph& graph, ValueId list, int64_t axis, const OnnxType& stated,
                                const std::string& name) {
  ListJoinAttrs attrs;
  attrs.axis = axis;
  attrs.stack = attrs.may_be_empty = true;
  Values inputs = {list};
  if (stated.kind == OnnxKind::kTensor && stated.shape.ranked()) {
    std::vector<int64_t> sizes;
    for (const Dim& dim : stated.shape.dims()) sizes.push_back(dim.known() ? dim.size : -1);
    inputs.push_back(graph.AddConstant(Tensor::Int64s(sizes)));
  }
  return graph.Add(name, "ListJoin", WriteAttrs(attrs), std::move(inputs));
}

Result<Values> LowerOnnxLoop(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b) {
  ONCILLA_ASSIGN(const OnnxGraph* body, b.GraphAttr("body"));
  const size_t carried = b.inputs() < 2 ? 0 : b.inputs() - 2;
  if (body->inputs.size() != carried + 2) {
    return DataLoss("carries ", carried, " values, and its body takes ", body->inputs.size(),
                    " inputs, not ", carried + 2);
  }
  if (body->outputs.size() < carried + 1 || body->outputs.size() - 1 < node.outputs.size()) {
    return DataLoss("its body gives ", body->outputs.size(), " results for a condition, ", carried,
                    " carried values and ", node.outputs.size(), " outputs");
  }
  OnnxSubgraphs graphs(builder, b.name());
  ONCILLA_TRY(graphs.Capture(*body));
  OnnxLoopSpec spec;
  spec.name = b.name();
  if (b.has(0)) {
    if (b.dtype(0) != DType::kI64) return InvalidArgument("its trip count is ", b.in_fact(0));
    ONCILLA_ASSIGN(spec.limit, b.ToScalar(b.in(0), "limit"));
  }
  spec.ignores_more = !b.has(1);
  if (b.has(1)) {
    if (b.dtype(1) != DType::kBool) return InvalidArgument("its condition is ", b.in_fact(1));
    ONCILLA_ASSIGN(spec.more, b.ToScalar(b.in(1), "condition"));
  }
  for (size_t i = 0; i < carried; ++i) {
    if (!b.has(i + 2)) return DataLoss("carried value ", i, " is missing");
    spec.carried.push_back(b.in(i + 2));
  }
  spec.read = graphs.arguments();
  // Outputs that nothing reads are not collected.
  std::vector<size_t> wanted = Numbers(0, carried + 1);
  for (size_t k = carried; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].empty()) wanted.push_back(k + 1);
  }
  spec.round = [&](const OnnxRoundInputs& in) -> Result<OnnxRound> {
    Graph& graph = in.body.graph;
    Values inputs;
    ONCILLA_ASSIGN(const ValueId number,
                   AsDeclared(graph, in.number, body->inputs[0], b.name() + "/number"));
    ONCILLA_ASSIGN(const ValueId more,
                   AsDeclared(graph, in.more, body->inputs[1], b.name() + "/begun"));
    inputs = {number, more};
    inputs.insert(inputs.end(), in.carried.begin(), in.carried.end());
    ONCILLA_ASSIGN(const Values results, graphs.Lower(*body, in.body, inputs, in.read, wanted));
    OnnxRound round;
    if (results[0] == kNoValue) return Unsupported(kOnnxGraphFailed);
    ONCILLA_ASSIGN(round.more, AsScalar(graph, results[0], b.name() + "/decided"));
    round.carried.assign(results.begin() + 1,
                         results.begin() + 1 + static_cast<ptrdiff_t>(carried));
    round.collected.assign(results.begin() + 1 + static_cast<ptrdiff_t>(carried), results.end());
    return round;
  };
  ONCILLA_ASSIGN(OnnxLoopResults results,
                 AddOnnxLoop(builder.state(), builder.scope().target, spec));
  Values outputs = std::move(results.carried);
  outputs.resize(std::max(carried, node.outputs.size()), kNoValue);
  for (size_t i = 0; i < results.lists.size(); ++i) {
    const size_t at = wanted[1 + carried + i];  // index among the body's outputs
    ONCILLA_ASSIGN(outputs[at - 1],
                   StackOnnxRounds(builder.graph(), results.lists[i], 0, body->outputs[at],
                                   StrCat(b.name(), "/scan", at - 1)));
  }
  return outputs;
}

}  // namespace oncilla
