// Types flow into functions from outside: each function is lowered for the types that its node
// gives it, as for TensorFlow (../tf/graph/control.cc). Values known at import are put into
// functions as constants.
#include "engine/import/onnx/control.h"

#include <algorithm>
#include <optional>

#include "engine/import/onnx/loop.h"
#include "engine/ops/control.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int kMaxDepth = 64;

// One branch may give an optional value and the other a plain one of the same type; both are then
// made optional.
Result<ValueId> AsKind(OnnxTarget& target, ValueId value, OnnxKind kind, const std::string& name) {
  const OnnxKind has = OnnxKindOf(target.graph, target.optionals, value);
  if (has == kind) return value;
  if (WrapsOnnxKind(has, kind)) {
    return WrapOnnxOptional(target.graph, target.optionals, value, name);
  }
  return InvalidArgument("a tensor, a sequence or an optional value is given as another");
}

// A branch lowered to a function, before its results are matched with those of the other branch.
struct Branch {
  explicit Branch(const Graph& around)
      : graph(std::make_unique<Graph>(around.shared_ops())), target(*graph) {}
  std::unique_ptr<Graph> graph;
  OnnxTarget target;
  Values results;
};

// The single integer or bool of a value, if it is known.
std::optional<int64_t> KnownNumber(const Graph& graph, ValueId id) {
  const Fact& fact = graph.fact(id);
  if (fact.kind != ValueKind::kTensor || !AllIntsKnown(fact)) return std::nullopt;
  const auto ints = NeedInts(fact, "");
  if (!ints.ok() || ints->size() != 1) return std::nullopt;
  return (*ints)[0];
}

// The truth of a condition if it follows from known sizes. Exporters write branches for shapes that
// do not occur; their results would otherwise have an unknown rank.
std::optional<bool> KnownTruth(const Graph& graph, ValueId id, int depth = 0) {
  if (const auto known = KnownNumber(graph, id); known.has_value()) return *known != 0;
  const NodeId producer = graph.value(id).producer;
  constexpr int kMaxChain = 8;
  if (producer == kNoNode || depth > kMaxChain) return std::nullopt;
  const Node& node = graph.node(producer);
  const std::string_view op = node.op->name;
  if (op == "Identity" || op == "Not" || (op == "Reshape" && graph.fact(id).fixed())) {
    const auto x = KnownTruth(graph, node.inputs[0], depth + 1);
    return op == "Not" && x.has_value() ? std::optional<bool>(!*x) : x;
  }
  if (op == "And" || op == "Or") {
    const auto a = KnownTruth(graph, node.inputs[0], depth + 1);
    const auto b = KnownTruth(graph, node.inputs[1], depth + 1);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    return op == "And" ? *a && *b : *a || *b;
  }
  if (op != "Equal" && op != "Less" && op != "Greater") return std::nullopt;
  const auto a = KnownNumber(graph, node.inputs[0]), b = KnownNumber(graph, node.inputs[1]);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return op == "Equal" ? *a == *b : op == "Less" ? *a < *b : *a > *b;
}

class If {
 public:
  If(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b)
      : builder_(builder), node_(node), b_(b), graphs_(builder, b.name()) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (!node.outputs[k].empty()) wanted_.push_back(k);
    }
  }

  Result<Values> Lower() {
    constexpr std::string_view kBranches[] = {"then_branch", "else_branch"};
    const OnnxGraph* branches[2] = {};
    for (size_t i = 0; i < 2; ++i) {
      ONCILLA_ASSIGN(branches[i], b_.GraphAttr(kBranches[i]));
      ONCILLA_TRY(Check(*branches[i], kBranches[i]));
    }
    if (b_.inputs() != 1 || !b_.has(0)) return DataLoss("needs one input, its condition");
    ONCILLA_ASSIGN(const ValueId condition, b_.ToScalar(b_.in(0), "condition"));
    if (b_.fact(condition).dtype != DType::kBool) {
      return InvalidArgument("its condition is ", b_.in_fact(0), ", not a bool");
    }
    if (const auto known = KnownTruth(builder_.graph(), condition); known.has_value()) {
      const OnnxGraph& taken = *branches[*known ? 0 : 1];
      ONCILLA_TRY(graphs_.Capture(taken));
      ONCILLA_ASSIGN(const Values results, graphs_.LowerHere(taken, {}, wanted_));
      if (std::ranges::count(results, kNoValue) > 0) return Unsupported(kOnnxGraphFailed);
      return Spread(results);
    }
    for (const OnnxGraph* branch : branches) ONCILLA_TRY(graphs_.Capture(*branch));
    std::vector<Branch> made;
    bool failed = false;
    for (const OnnxGraph* branch : branches) {
      made.emplace_back(builder_.graph());
      ONCILLA_TRY(LowerBranch(*branch, made.back()));
      // Continue, so that both branches report what they lack.
      failed |= std::ranges::count(made.back().results, kNoValue) > 0;
    }
    if (failed) return Unsupported(kOnnxGraphFailed);
    return AddIf(condition, made, kBranches);
  }

 private:
  Status Check(const OnnxGraph& branch, std::string_view which) const {
    OnnxNames initialized;
    for (const auto& [name, tensor] : branch.initializers) initialized.insert(name);
    for (const OnnxValueInfo& input : branch.inputs) {
      if (!initialized.contains(input.name)) return DataLoss("its ", which, " takes inputs");
    }
    if (branch.outputs.size() != node_.outputs.size()) {
      return DataLoss("its ", which, " gives ", branch.outputs.size(), " results for ",
                      node_.outputs.size(), " outputs");
    }
    return {};
  }

  // The results at the positions of the node's outputs.
  Values Spread(const Values& results) const {
    Values outputs(node_.outputs.size(), kNoValue);
    for (size_t i = 0; i < wanted_.size(); ++i) outputs[wanted_[i]] = results[i];
    return outputs;
  }

  Status LowerBranch(const OnnxGraph& graph, Branch& branch) {
    Values arguments;
    for (ValueId id : graphs_.arguments()) {
      const ValueId argument = branch.graph->AddInput(StrCat("argument", arguments.size()),
                                                      b_.fact(id).WithoutContents());
      MarkOnnxKind(*branch.graph, branch.target.optionals, argument, b_.kind(id));
      arguments.push_back(argument);
    }
    ONCILLA_ASSIGN(branch.results, graphs_.Lower(graph, branch.target, {}, arguments, wanted_));
    return {};
  }

  Result<Values> AddIf(ValueId condition, std::vector<Branch>& made,
                       std::span<const std::string_view> names) {
    IfAttrs attrs;
    std::vector<OnnxKind> kinds;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      Fact common;
      ONCILLA_ASSIGN(const OnnxKind kind, MakeAlike(made, i, common));
      attrs.outputs.push_back(DeclaredType(common));
      kinds.push_back(kind);
    }
    OnnxImportState& state = builder_.state();
    for (size_t k = 0; k < made.size(); ++k) {
      for (size_t i = 0; i < wanted_.size(); ++i) {
        made[k].graph->AddOutput(StrCat("result", i), made[k].results[i]);
      }
      attrs.branches.push_back(state.NewFunctionName(StrCat(b_.name(), "/", names[k])));
      state.module.functions.emplace_back(attrs.branches.back(), std::move(*made[k].graph));
    }
    Values inputs = {condition};
    inputs.insert(inputs.end(), graphs_.arguments().begin(), graphs_.arguments().end());
    ONCILLA_ASSIGN(const Values results, b_.AddAll(attrs, std::move(inputs)));
    for (size_t i = 0; i < results.size(); ++i) {
      b_.Mark(results[i], kinds[i]);
    }
    return Spread(results);
  }

  // Makes result i of both branches the same kind, and finds the fact that is true of both.
  Result<OnnxKind> MakeAlike(std::vector<Branch>& made, size_t i, Fact& common) const {
    const auto kind_of = [&](const Branch& branch) {
      return OnnxKindOf(*branch.graph, branch.target.optionals, branch.results[i]);
    };
    OnnxKind kind = kind_of(made[0]);
    const OnnxKind other = kind_of(made[1]);
    if (other == OnnxKind::kOptional || other == OnnxKind::kOptionalSequence) kind = other;
    for (size_t k = 0; k < made.size(); ++k) {
      ValueId& result = made[k].results[i];
      auto alike =
          AsKind(made[k].target, result, kind, StrCat(b_.name(), "/optional", wanted_[i], "_", k));
      if (!alike.ok()) return In(alike.status(), StrCat("result ", wanted_[i], " of its branches"));
      result = *alike;
      const Fact fact = made[k].graph->fact(result).WithoutContents();
      if (k == 0) {
        common = fact;
      } else if (fact.dtype != common.dtype) {
        return InvalidArgument("result ", wanted_[i], " is ", common, " in one branch and ", fact,
                               " in the other");
      } else {
        common.shape = CommonShape(common.shape, fact.shape);
      }
    }
    return kind;
  }

  OnnxBuilder& builder_;
  const OnnxNode& node_;
  OnnxLowering& b_;
  OnnxSubgraphs graphs_;
  std::vector<size_t> wanted_;
};

}  // namespace

Status OnnxSubgraphs::Capture(const OnnxGraph& graph) {
  bool failed = false;
  for (std::string_view name : FreeOnnxNames(graph)) {
    // If nothing computes the name, the inner node that reads it reports that.
    if (captured_.contains(name) || !builder_.scope().Knows(name)) continue;
    ONCILLA_ASSIGN(const ValueId value, builder_.Find(name));
    if (value == kNoValue && !builder_.scope().values.contains(name)) {
      failed = true;
      continue;
    }
    captured_.emplace(name, value);
    if (value == kNoValue || builder_.graph().fact(value).has_value()) continue;
    if (std::ranges::count(arguments_, value) == 0) arguments_.push_back(value);
  }
  return failed ? Unsupported(kOnnxGraphFailed) : Status();
}

Result<Values> OnnxSubgraphs::Lower(const OnnxGraph& graph, OnnxTarget& target,
                                    std::span<const ValueId> inputs,
                                    std::span<const ValueId> captured,
                                    std::span<const size_t> wanted) {
  const OnnxScope& around = builder_.scope();
  if (around.depth >= kMaxDepth) return DataLoss("graphs and functions are nested too deeply");
  OnnxScope scope(target, graph.nodes, around.opsets);
  scope.prefix = name_ + "/";
  scope.depth = around.depth + 1;
  ONCILLA_TRY(scope.Take(graph));
  std::map<ValueId, ValueId> places;
  for (size_t i = 0; i < arguments_.size(); ++i) places[arguments_[i]] = captured[i];
  for (const auto& [name, value] : captured_) {
    const auto place = places.find(value);
    if (value == kNoValue || &target == &around.target) {
      scope.values[name] = value;
    } else if (place != places.end()) {
      scope.values[name] = place->second;
    } else {
      scope.values[name] = target.graph.AddConstant(builder_.graph().fact(value).value);
    }
  }
  OnnxNames given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = graph.inputs[i].name;
    scope.values[name] = inputs[i];
    given.insert(name);
  }
  OnnxBuilder inner(builder_.state(), scope);
  std::vector<std::string_view> names;
  for (size_t k : wanted) names.push_back(graph.outputs[k].name);
  ONCILLA_TRY(inner.Build(names, std::move(given)));
  Values results;
  for (std::string_view name : names) {
    ONCILLA_ASSIGN(const ValueId value, inner.Find(name));
    results.push_back(value);
  }
  return results;
}

bool IsOnnxControl(const OnnxNode& node) {
  const std::string_view op = node.op;
  if (node.domain == "ai.onnx.preview") return op == "FlexAttention" && node.has_subgraph();
  if (node.domain == "ai.onnx.preview.training") return op == "Gradient";
  if (node.domain == "com.microsoft") return op == "AttnLSTM";
  if (!node.domain.empty()) return false;
  return op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap";
}

Result<Values> LowerOnnxControl(OnnxBuilder& builder, const OnnxNode& node, int64_t version,
                                Values inputs) {
  if (version > kNewestOnnxOpset) {
    return Unsupported("of opset ", version, "; versions up to ", kNewestOnnxOpset, " are");
  }
  OnnxScope& scope = builder.scope();
  OnnxLowering lowering(scope.target.graph, builder.state().context, node, scope.NameOf(node),
                        version, std::move(inputs), {&scope.ranks, &scope.target.optionals});
  Result<Values> outputs = Values();
  if (node.op == "If") {
    outputs = If(builder, node, lowering).Lower();
  } else if (node.op == "Loop") {
    outputs = LowerOnnxLoop(builder, node, lowering);
  } else if (node.op == "AttnLSTM") {
    outputs = LowerOnnxAttnLstm(builder, node, lowering);
  } else if (node.op == "Gradient") {
    outputs = LowerOnnxGradient(builder, lowering);
  } else if (node.op == "FlexAttention") {
    outputs = LowerOnnxFlexAttention(builder, lowering);
  } else if (node.op == "Scan") {
    outputs = LowerOnnxScan(builder, node, lowering);
  } else {
    outputs = LowerOnnxSequenceMap(builder, node, lowering);
  }
  if (!outputs.ok()) return outputs.status();
  if (const std::string_view attr = lowering.UnknownAttr(); !attr.empty()) {
    return Unsupported("with the attribute '", attr, "'");
  }
  return outputs;
}

}  // namespace oncilla
