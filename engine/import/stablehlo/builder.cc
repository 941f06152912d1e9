// Regions, calls, constants and broadcasts.
#include "engine/import/stablehlo/builder.h"

#include <algorithm>

#include "engine/graph/at_node.h"
#include "engine/import/xla/shape.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

constexpr int kMostDepth = 128;

}  // namespace

Status HloNode::Padding(std::string_view attr, std::vector<int64_t>& low,
                        std::vector<int64_t>& high) const {
  ONCILLA_ASSIGN(const std::vector<int64_t> pairs, List(attr));
  if (pairs.size() % 2 != 0) return DataLoss("attribute '", attr, "' is not a list of pairs");
  for (size_t i = 0; i < pairs.size(); i += 2) {
    low.push_back(pairs[i]);
    high.push_back(pairs[i + 1]);
  }
  return {};
}

bool HloNode::sorts() const { return builder_.sorts_; }
Result<Graph> HloNode::Body(size_t region) { return builder_.BodyOf(op_, region); }

HloValue HloBuilder::Whole(ValueId id, int type) const {
  HloValue value;
  value.id = id;
  value.type = type;
  return value;
}

Result<ValueId> HloBuilder::Full(HloValue& value) {
  if (!value.narrow || value.full != kNoValue) return value.narrow ? value.full : value.id;
  const HloType& type = TypeOf(value.type);
  ValueId shape = value.shape;
  if (type.fixed()) shape = graph_.AddConstant(Tensor::Int64s(type.sizes));
  if (shape == kNoValue) return Unsupported("a broadcast to an open shape");
  ONCILLA_ASSIGN(value.full, graph_.Add(StrCat(prefix_, "/broadcast.", count_++), "Expand", {},
                                        {value.id, shape}));
  return value.full;
}

Result<HloValue*> HloBuilder::Find(int number) {
  const auto known = values_.find(number);
  if (known == values_.end()) return DataLoss("an op reads a value that is not there");
  return &known->second;
}

Status HloBuilder::Define(const std::vector<int>& numbers, HloValues values) {
  if (numbers.size() != values.size()) {
    return DataLoss(values.size(), " values where ", numbers.size(), " are expected");
  }
  for (size_t i = 0; i < numbers.size(); ++i) values_[numbers[i]] = std::move(values[i]);
  return {};
}

Result<HloValues> HloBuilder::Run(const HloRegion& region, HloValues arguments) {
  if (++state_.depth > kMostDepth) return Unsupported("calls more than ", kMostDepth, " deep");
  for (size_t i = 0; i < arguments.size() && i < region.argument_types.size(); ++i) {
    arguments[i].type = region.argument_types[i];
  }
  ONCILLA_TRY(Define(region.arguments, std::move(arguments)));
  for (const HloOp& op : region.ops) {
    if (op.name == "return") break;
    ONCILLA_TRY(Lower(op));
  }
  HloValues results;
  if (region.ops.empty() || region.ops.back().name != "return") {
    return DataLoss("a region without a result");
  }
  for (int operand : region.ops.back().operands) {
    ONCILLA_ASSIGN(const HloValue* value, Find(operand));
    results.push_back(*value);
  }
  --state_.depth;
  return results;
}

Status HloBuilder::Lower(const HloOp& op) {
  if (--state_.budget < 0)
    return Exhausted("the functions of a StableHLO module make too many nodes");
  const std::string name = StrCat(prefix_, "/", op.name, ".", count_++);
  for (int type : op.result_types) {
    if (TypeOf(type).sizes.size() > static_cast<size_t>(kMaxRank)) {
      return Unsupported("stablehlo.", op.name, ": a tensor of rank ", TypeOf(type).sizes.size());
    }
    const HloType& result = TypeOf(type);
    if (result.kind == HloType::Kind::kTensor && result.dtype == DType::kInvalid) {
      return Unsupported("stablehlo.", op.name, ": a type of elements that is not supported");
    }
  }
  Result<HloValues> results = LowerOp(op, name);
  if (!results.ok()) {
    const Status& status = results.status();
    // The innermost op is named; ops around it pass its message on.
    if (Message(status).find("stablehlo.") != std::string::npos) return status;
    return In(status, StrCat("stablehlo.", op.name));
  }
  if (results->size() != op.result_types.size()) {
    return DataLoss("stablehlo.", op.name, " gives ", results->size(), " results, not ",
                    op.result_types.size());
  }
  for (size_t i = 0; i < results->size(); ++i) (*results)[i].type = op.result_types[i];
  return Define(op.results, *std::move(results));
}

Result<HloValues> HloBuilder::LowerOp(const HloOp& op, std::string name) {
  if (op.name == "call" || op.name == "composite") {
    const std::string_view attr = op.name == "call" ? "callee" : "decomposition";
    ONCILLA_ASSIGN(const std::string_view function, state_.source.Text(op, attr));
    return Call(function, op);
  }
  if (op.name == "while" || op.name == "if" || op.name == "case") {
    return LowerHloControl(*this, op, name);
  }
  if (op.name == "optimization_barrier") return PassOn(op);
  if (op.name == "after_all" || op.name == "create_token") return HloValues(op.results.size());
  if (op.name == "custom_call") {
    ONCILLA_ASSIGN(const std::string_view target, state_.source.Text(op, "call_target_name"));
    // What says on which device a part of a value is.
    if (target == "Sharding" || target == "SPMDFullToShardShape" ||
        target == "SPMDShardToFullShape" || target == "LayoutConstraint") {
      return PassOn(op);
    }
    if (target == "shape_assertion") return Assertion(op, name);
  }
  ONCILLA_ASSIGN(HloValues operands, PassOn(op));
  if (IsHloComplex(op, state_.source, operands)) {
    return LowerHloComplex(*this, op, name, std::move(operands));
  }
  if (op.name == "constant") return Constant(op);
  if (op.name == "iota") return Iota(op, name);
  if (op.name == "broadcast_in_dim" || op.name == "dynamic_broadcast_in_dim") {
    return Broadcast(op, name);
  }
  if (IsHloElementwise(op, state_.source)) return Elementwise(op, name);
  if (std::optional<HloValues> moved = MoveSplat(op); moved.has_value()) return *std::move(moved);
  Values inputs;
  for (int operand : op.operands) {
    ONCILLA_ASSIGN(HloValue * value, Find(operand));
    ONCILLA_ASSIGN(const ValueId full, Full(*value));
    inputs.push_back(full);
  }
  HloNode node(*this, graph_, std::move(name), std::move(inputs), op, state_.source);
  if (std::optional<Tensor> known = KnownHloInts(node); known.has_value()) {
    return HloValues{Whole(graph_.AddConstant(*std::move(known)), -1)};
  }
  Result<Values> values = Values();
  if (op.name == "custom_call") {
    values = LowerHloCustomCall(node);
  } else {
    const HloOpRow* row = FindHloOp(op.name);
    if (row == nullptr) return Unsupported("is not supported");
    if (op.operands.size() < row->operands) return DataLoss("lacks operands");
    if (op.result_types.empty()) return DataLoss("has no result");
    values = row->lower(node);
  }
  if (!values.ok()) return values.status();
  HloValues results;
  for (ValueId value : *values) results.push_back(Whole(value, -1));
  return results;
}

// JAX's checks that a run's sizes are those for which it exported: the condition, and the sizes
// that the message names.
Result<HloValues> HloBuilder::Assertion(const HloOp& op, const std::string& name) {
  Values inputs;
  for (const int operand : op.operands) {
    ONCILLA_ASSIGN(HloValue* const value, Find(operand));
    ONCILLA_ASSIGN(const ValueId whole, Full(*value));
    inputs.push_back(whole);
  }
  if (inputs.empty()) return DataLoss("a shape_assertion without a condition");
  const auto given = state_.source.Text(op, "error_message");
  std::string message = "sizes of inputs are not those for which the module was exported";
  if (given.ok() && !given->empty()) message = std::string(*given);
  inputs.insert(inputs.begin() + 1, graph_.AddConstant(Tensor::Strings({}, {std::move(message)})));
  ONCILLA_TRY(graph_.AddNode(name, "Assert", WriteAttrs(AssertAttrs{}), inputs).status());
  return HloValues(op.results.size());
}

Result<HloValues> HloBuilder::PassOn(const HloOp& op) {
  HloValues results;
  for (int operand : op.operands) {
    ONCILLA_ASSIGN(const HloValue* value, Find(operand));
    results.push_back(*value);
  }
  return results;
}

// One number for all elements is the same after it is moved.
std::optional<HloValues> HloBuilder::MoveSplat(const HloOp& op) {
  static constexpr std::string_view kMoves[] = {"reshape", "transpose", "slice", "reverse"};
  if (std::find(std::begin(kMoves), std::end(kMoves), op.name) == std::end(kMoves)) return {};
  if (op.operands.size() != 1 || op.result_types.size() != 1) return {};
  const auto known = values_.find(op.operands[0]);
  if (known == values_.end() || !known->second.narrow || !TypeOf(op.result_types[0]).fixed() ||
      graph_.fact(known->second.id).shape.rank() != 0) {
    return {};
  }
  HloValue moved = known->second;
  moved.narrow = !TypeOf(op.result_types[0]).sizes.empty();
  moved.full = kNoValue;
  return HloValues{moved};
}

Result<HloValues> HloBuilder::Call(std::string_view function, const HloOp& op) {
  const auto found = state_.source.functions.find(function);
  if (found == state_.source.functions.end()) return DataLoss("no function '", function, "'");
  ONCILLA_ASSIGN(HloValues arguments, PassOn(op));
  HloBuilder inner(state_, graph_, StrCat(prefix_, "/", function, ".", count_++));
  inner.sorts_ = sorts_;
  return inner.Run(found->second, std::move(arguments));
}

Result<HloValues> HloBuilder::Constant(const HloOp& op) {
  const HloAttr* attr = state_.source.Find(op, "value");
  if (attr == nullptr || op.result_types.size() != 1) return DataLoss("has no value");
  ONCILLA_ASSIGN(HloModule::Elements elements, state_.source.ElementsOf(*attr));
  HloValue value;
  value.id = graph_.AddConstant(std::move(elements.tensor));
  value.narrow = elements.splat;
  return HloValues{value};
}

// Counts along one axis, which are the same along all others.
Result<HloValues> HloBuilder::Iota(const HloOp& op, const std::string& name) {
  ONCILLA_ASSIGN(const int64_t axis, state_.source.Int(op, "iota_dimension"));
  if (op.result_types.size() != 1) return DataLoss("has no result");
  const HloType& type = TypeOf(op.result_types[0]);
  const auto rank = static_cast<int>(type.sizes.size());
  if (!type.fixed() || axis < 0 || axis >= rank) return DataLoss("counts along axis ", axis);
  HloNode node(*this, graph_, name, {}, op, state_.source);
  HloValue value;
  ONCILLA_ASSIGN(value.id, CountsAlong(node, type.sizes[static_cast<size_t>(axis)],
                                       static_cast<int>(axis), rank, type.dtype, ""));
  for (int i = 0; i < rank; ++i)
    value.narrow |= i != axis && type.sizes[static_cast<size_t>(i)] != 1;
  return HloValues{value};
}

Result<HloValues> HloBuilder::Broadcast(const HloOp& op, const std::string& name) {
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, state_.source.Ints(op, "broadcast_dimensions"));
  if (op.operands.empty() || op.result_types.size() != 1) return DataLoss("lacks operands");
  const HloType& type = TypeOf(op.result_types[0]);
  const auto rank = static_cast<int>(type.sizes.size());
  ONCILLA_TRY(CheckAxes(axes, rank, "the broadcast axes"));
  ONCILLA_ASSIGN(const HloValue* x, Find(op.operands[0]));
  HloNode node(*this, graph_, name, {}, op, state_.source);
  HloValue value;
  value.id = x->id;
  value.narrow = rank > 0;
  const int from = node.fact(x->id).shape.rank();
  if (from != 0) {
    if (from != static_cast<int>(axes.size())) return DataLoss("axes for another rank");
    std::vector<XlaSize> sizes(static_cast<size_t>(rank), XlaSize::Number(1));
    for (size_t i = 0; i < axes.size(); ++i) {
      sizes[static_cast<size_t>(axes[i])] = XlaSize::Axis(x->id, static_cast<int64_t>(i));
    }
    std::vector<int64_t> order = axes;
    ValueId arranged = x->id;
    if (!std::is_sorted(axes.begin(), axes.end())) {
      // Axes out of order: first as the result has them.
      std::vector<int64_t> perm;
      for (int64_t axis = 0; axis < rank; ++axis) {
        const auto at = std::find(axes.begin(), axes.end(), axis);
        if (at != axes.end()) perm.push_back(at - axes.begin());
      }
      ONCILLA_ASSIGN(arranged, node.Transpose(arranged, perm, "axes"));
    }
    ONCILLA_ASSIGN(value.id, ReshapeTo(node, arranged, sizes, "reshape"));
  }
  if (op.name == "dynamic_broadcast_in_dim") {
    if (op.operands.size() < 2) return DataLoss("lacks a shape");
    ONCILLA_ASSIGN(HloValue * shape, Find(op.operands[1]));
    ONCILLA_ASSIGN(const ValueId sizes, Full(*shape));
    ONCILLA_ASSIGN(value.shape, node.Cast(sizes, DType::kI64, "shape"));
  }
  // Nothing is left to broadcast if each axis has its size already.
  const PartialShape own = node.fact(value.id).shape;
  const auto wanted = value.shape == kNoValue ? std::nullopt : KnownInts(node.fact(value.shape));
  bool same = own.rank() == rank;
  for (int i = 0; same && i < rank; ++i) {
    const int64_t size = type.sizes[static_cast<size_t>(i)];
    if (size >= 0 && own[i].known()) {
      same = own[i].size == size;
    } else {
      same = wanted.has_value() && static_cast<int>(wanted->size()) == rank &&
             (*wanted)[static_cast<size_t>(i)].Same(own[i]);
    }
  }
  if (same) value.narrow = false;
  return HloValues{value};
}

Result<HloValues> HloBuilder::Elementwise(const HloOp& op, const std::string& name) {
  if (op.operands.empty() || op.result_types.size() != 1) return DataLoss("lacks operands");
  const size_t rank = TypeOf(op.result_types[0]).sizes.size();
  HloValue result;
  result.narrow = rank > 0;
  Values inputs;
  for (int operand : op.operands) {
    ONCILLA_ASSIGN(const HloValue* value, Find(operand));
    inputs.push_back(value->id);
    if (value->narrow) {
      if (value->shape != kNoValue) result.shape = value->shape;
    } else if (TypeOf(value->type).sizes.size() == rank) {
      result.narrow = false;
    }
  }
  HloNode node(*this, graph_, name, std::move(inputs), op, state_.source);
  if (std::optional<Tensor> known = KnownHloInts(node); known.has_value()) {
    return HloValues{Whole(graph_.AddConstant(*std::move(known)), -1)};
  }
  ONCILLA_ASSIGN(const Values values, LowerHloElementwise(node));
  result.id = values[0];
  return HloValues{result};
}

Result<Graph> HloBuilder::BodyOf(const HloOp& op, size_t region) {
  if (region >= op.regions.size()) return DataLoss("lacks a region");
  Graph body(graph_.shared_ops());
  std::map<int, HloValue> outside;
  if (!op.isolated) {
    // Numbers from outside may be used if they are the same in every run.
    for (const auto& [number, value] : values_) {
      if (value.id == kNoValue || !graph_.value(value.id).is_constant()) continue;
      if (graph_.fact(value.id).shape.rank() != 0) continue;
      HloValue copy = value;
      copy.id = body.AddConstant(graph_.fact(value.id).value);
      copy.full = copy.shape = kNoValue;
      outside[number] = copy;
    }
  }
  return BodyOf(op.regions[region], std::move(outside), std::move(body), op.name == "sort");
}

Result<Graph> HloBuilder::BodyOf(const HloRegion& region, std::map<int, HloValue> outside,
                                 Graph body, bool sorts) {
  HloBuilder builder(state_, body, "body");
  builder.sorts_ = sorts;
  builder.values_ = std::move(outside);
  HloValues arguments;
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const HloType& type = TypeOf(region.argument_types[i]);
    if (type.kind != HloType::Kind::kTensor || !type.sizes.empty() ||
        type.dtype == DType::kInvalid) {
      return Unsupported("a body of other than numbers");
    }
    const ValueId id = body.AddInput(StrCat("argument", i), Fact::Of(type.dtype, Shape()));
    arguments.push_back(Whole(id, region.argument_types[i]));
  }
  ONCILLA_ASSIGN(const HloValues results, builder.Run(region, std::move(arguments)));
  for (const HloValue& result : results) {
    if (result.id == kNoValue || result.imag != kNoValue) {
      return Unsupported("a body of other than numbers");
    }
    body.AddOutput("result", result.id);
  }
  return body;
}

Result<Graph> HloNode::CalledBody() const {
  const HloAttr* called = source_.Find(op_, "called_computations");
  if (called == nullptr || called->kind != HloAttr::Kind::kList || called->items.size() != 1) {
    return DataLoss("calls other than one function");
  }
  const HloAttr& name = source_.attrs[static_cast<size_t>(called->items[0])];
  const auto found = source_.functions.find(name.text);
  if (found == source_.functions.end()) return DataLoss("no function '", name.text, "'");
  return builder_.BodyOf(found->second, {}, Graph(graph().shared_ops()), false);
}

Result<Values> LowerHloFunction(const HloModule& source, std::string_view function, Module& target,
                                Graph& graph, const std::string& name, const Values& arguments) {
  const auto found = source.functions.find(function);
  if (found == source.functions.end()) return DataLoss("no function '", function, "'");
  HloState state{source, target};
  HloBuilder builder(state, graph, name);
  HloValues values;
  for (ValueId argument : arguments) values.push_back(builder.Whole(argument, -1));
  ONCILLA_ASSIGN(HloValues results, builder.Run(found->second, std::move(values)));
  Values out;
  for (HloValue& result : results) {
    if (result.id == kNoValue) continue;  // a token
    if (result.imag != kNoValue) return Unsupported("a result of complex numbers");
    ONCILLA_ASSIGN(const ValueId full, builder.Full(result));
    out.push_back(full);
  }
  return out;
}

}  // namespace oncilla
