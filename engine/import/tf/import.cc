// The inputs and outputs of the main graph; TfBuilder adds the nodes.
#include "engine/import/tf/import.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "engine/import/fed_facts.h"
#include "engine/import/tf/graph/builder.h"
#include "engine/import/tf/graph/raise.h"
#include "engine/ops/array/movement.h"

namespace oncilla {
namespace {

// The type of an output, from the op's definition in the file or from attributes that ops commonly
// use. Only needed for tensors that are fed in the middle of a graph.
DType OutputType(const TfGraph& graph, const TfNode& node, int output) {
  const TfAttrs attrs = graph.Attrs(node);
  const TfOpDef* def = graph.defs().Find(node.op);
  if (def != nullptr && output < static_cast<int>(def->outputs.size())) {
    const TfOpDef::Output& arg = def->outputs[static_cast<size_t>(output)];
    if (arg.tf_type != 0) return DTypeFromTf(arg.tf_type);
    if (!arg.type_attr.empty()) return attrs.Type(arg.type_attr).value_or(DType::kInvalid);
  }
  static constexpr std::array<std::string_view, 15> kConditions = {
      "Equal",        "NotEqual",   "Less",      "LessEqual", "Greater",
      "GreaterEqual", "LogicalAnd", "All",       "Any",       "IsFinite",
      "IsInf",        "LogicalNot", "LogicalOr", "IsNan",     "ApproximateEqual"};
  if (std::find(kConditions.begin(), kConditions.end(), node.op) != kConditions.end()) {
    return DType::kBool;
  }
  for (const char* name : {"DstT", "out_type", "output_type", "dtype", "T"}) {
    if (attrs.Has(name)) return attrs.Type(name).value_or(DType::kInvalid);
  }
  return DType::kInvalid;
}

class Importer {
 public:
  Importer(TfGraph& source, const TfImportRequest& request, const std::shared_ptr<const OpSet>& ops)
      : source_(source), request_(request), module_(Graph(ops)), state_{source_,
                                                                        module_,
                                                                        {},
                                                                        request.variable,
                                                                        request.source_nodes,
                                                                        request.table} {}

  Result<Module> Run() {
    TfFlattenRequest flatten;
    for (const TensorInfo& info : request_.inputs) flatten.feeds.push_back(info.source);
    for (const TensorInfo& info : request_.outputs) flatten.fetches.push_back(info.source);
    flatten.targets = request_.targets;
    flatten.variable = request_.variable;
    flatten.is_state = request_.is_state;
    flatten.only_effects_on = request_.only_effects_on;
    ONCILLA_ASSIGN(flat_, FlattenTfGraph(source_, flatten));
    ONCILLA_TRY(RaiseTfControlFlow(flat_));
    ONCILLA_TRY(AddInputs());
    TfBuilder builder(state_, graph(), flat_);
    ONCILLA_TRY(builder.Build(inputs_));
    if (!state_.unsupported.empty()) return state_.unsupported.ToStatus();
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      const std::string& name = request_.outputs[i].name;
      ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
      // Some outputs of complex ops are indices or truths.
      const bool complex = builder.IsComplex(i) && value != kNoValue &&
                           graph().fact(value).kind == ValueKind::kTensor &&
                           IsFloat(graph().fact(value).dtype);
      if (complex || parts_.count(value) != 0) {
        ONCILLA_ASSIGN(const ValueId joined, Joined(name, value));
        graph().AddOutput(name, joined);
        continue;
      }
      if (value == kNoValue || graph().fact(value).kind != ValueKind::kTensor) {
        return Unsupported("output '", name, "' is a resource or a list, not a tensor");
      }
      graph().AddOutput(name, value);
    }
    return std::move(module_);
  }

 private:
  Graph& graph() { return module_.main; }

  Status AddInputs() {
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const int flat = flat_.inputs[i];
      if (flat < 0 && request_.only_needed_inputs) {
        names.insert(request_.inputs[i].name);
        inputs_.push_back(kNoValue);
        continue;
      }
      const TensorInfo& info = request_.inputs[i];
      if (!names.insert(info.name).second) {
        return InvalidArgument("input '", info.name, "' is given twice");
      }
      const Fact* fed = i < request_.fed.size() ? &request_.fed[i] : nullptr;
      auto fact =
          InputFact(info, flat < 0 ? nullptr : flat_.nodes[static_cast<size_t>(flat)].source, fed);
      if (!fact.ok()) return In(fact.status(), StrCat("input '", info.name, "'"));
      const bool complex = IsComplex(fact->dtype);
      inputs_.push_back(AddFedInput(graph(), info.name, *std::move(fact), fed));
      if (complex) ONCILLA_TRY(TakeApart(info.name, inputs_.back()));
    }
    return {};
  }

  // Splits a complex input into its parts along an additional last axis, as graphs represent it.
  Status TakeApart(const std::string& name, ValueId& value) {
    const DType part = PartOf(graph().fact(value).dtype);
    ONCILLA_ASSIGN(value, graph().Add(StrCat(name, "/parts"), "Bitcast",
                                      WriteAttrs(BitcastAttrs{.to = part}), {value}));
    parts_.insert(value);
    return {};
  }
  Result<ValueId> Joined(const std::string& name, ValueId parts) {
    const bool wide = graph().fact(parts).dtype == DType::kF64;
    const BitcastAttrs attrs = {.to = wide ? DType::kC128 : DType::kC64};
    return graph().Add(StrCat(name, "/complex"), "Bitcast", WriteAttrs(attrs), {parts});
  }

  // Combines the signature and the placeholder. Unknown sizes get names, so that a reshape back to
  // them is recognised.
  Result<Fact> InputFact(const TensorInfo& info, const TfNode* node, const Fact* fed) {
    Fact fact = Fact::Of(info.dtype, info.shape);
    ONCILLA_ASSIGN(const TfInput source, ParseTfInput(info.source));
    if (node == nullptr) {
      const int main = source_.main().Find(source.node);
      if (main >= 0) node = &source_.main().nodes[static_cast<size_t>(main)];
    }
    if (node != nullptr) {
      const DType own = OutputType(source_, *node, source.index);
      if (fact.dtype == DType::kInvalid) fact.dtype = own;
      if (own != fact.dtype && own != DType::kInvalid) {
        return DataLoss("the signature says ", fact.dtype, " and ", Where(*node), " ", own);
      }
      if (node->op.substr(0, 11) == "Placeholder" && !node->FindAttr("shape").empty()) {
        ONCILLA_ASSIGN(const PartialShape shape, source_.Attrs(*node).Shape("shape"));
        // Old graphs may write an unknown shape as that of a scalar; in that case the signature is
        // right.
        auto merged = MergeShapes(fact.shape, shape);
        if (merged.ok()) {
          fact.shape = *std::move(merged);
        } else if (!info.shape.ranked()) {
          fact.shape = shape;
        }
      }
    }
    if (fact.dtype == DType::kInvalid) {
      return Unsupported("its type is not known, or not one that the engine has");
    }
    NarrowToFed(fact, fed);
    if (!fact.shape.ranked()) return fact;
    if (fact.shape.rank() > kMaxRank) return Unsupported("its rank is ", fact.shape.rank());
    for (int axis = 0; axis < fact.shape.rank(); ++axis) {
      Dim& dim = fact.shape[axis];
      if (!dim.known() && dim.name.empty()) dim.name = StrCat(info.name, ".", axis);
    }
    return fact;
  }

  TfGraph& source_;
  const TfImportRequest& request_;
  Module module_;
  TfImportState state_;
  TfFlatGraph flat_;
  Values inputs_;
  std::set<ValueId> parts_;  // complex inputs, as their parts
};

}  // namespace

Result<Module> ImportTf(TfGraph& graph, const TfImportRequest& request,
                        const std::shared_ptr<const OpSet>& ops) {
  Result<Module> module = Importer(graph, request, ops).Run();
  if (module.ok()) return module;
  return WithStage(In(module.status(), graph.file()), Stage::kLoad);
}

}  // namespace oncilla
