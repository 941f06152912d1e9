// Runs the lowering rows over a flat graph.
#include "engine/import/tf_import.h"

#include <algorithm>
#include <array>

#include "engine/import/tf_functions.h"
#include "engine/import/tf_lowering.h"
#include "engine/import/unsupported_list.h"

namespace oncilla {
namespace {

// The type of an output, from the op's definition in the file or the attributes that ops commonly
// have for it. Only for tensors that are fed in the middle of a graph.
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
      : source_(source), request_(request), module_{Graph(ops), {}} {}

  Result<Module> Run() {
    TfFlattenRequest flatten;
    for (const TensorInfo& info : request_.inputs) flatten.feeds.push_back(info.source);
    for (const TensorInfo& info : request_.outputs) flatten.fetches.push_back(info.source);
    flatten.variable = request_.variable;
    ONCILLA_ASSIGN(flat_, FlattenTfGraph(source_, flatten));
    values_.resize(flat_.nodes.size());
    failed_.assign(flat_.nodes.size(), 0);
    complex_.assign(flat_.nodes.size(), 0);
    ONCILLA_TRY(AddInputs());
    for (size_t i = 0; i < flat_.nodes.size(); ++i) ONCILLA_TRY(AddNode(i));
    if (!unsupported_.empty()) return unsupported_.ToStatus();
    if (!flat_.cycle.empty()) {
      return DataLoss("the data edges form a circle through '", flat_.cycle, "'");
    }
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      ONCILLA_ASSIGN(const ValueId value, Get(flat_.outputs[i]));
      if (complex_[static_cast<size_t>(flat_.outputs[i].node)] != 0) {
        return Unsupported("output '", request_.outputs[i].name,
                           "' is complex; a model's outputs must be real");
      }
      graph().AddOutput(request_.outputs[i].name, value);
    }
    return std::move(module_);
  }

 private:
  Graph& graph() { return module_.main; }

  Status AddInputs() {
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const int flat = flat_.inputs[i];
      if (flat < 0 && request_.only_needed_inputs) continue;
      const TensorInfo& info = request_.inputs[i];
      for (size_t j = 0; j < i; ++j) {
        if (request_.inputs[j].name == info.name) {
          return InvalidArgument("input '", info.name, "' stands there twice");
        }
      }
      auto fact =
          InputFact(info, flat < 0 ? nullptr : flat_.nodes[static_cast<size_t>(flat)].source);
      if (!fact.ok()) return In(fact.status(), StrCat("input '", info.name, "'"));
      const ValueId value = graph().AddInput(info.name, *std::move(fact));
      if (flat >= 0) values_[static_cast<size_t>(flat)] = {value};
    }
    return {};
  }

  // What the signature and the placeholder say together. Sizes that are not known get names, so
  // that a reshape back to them is recognised.
  Result<Fact> InputFact(const TensorInfo& info, const TfNode* node) {
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
        // Old graphs write an unknown shape as a scalar's; then the signature knows better.
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
    if (!fact.shape.ranked()) return fact;
    if (fact.shape.rank() > kMaxRank) return Unsupported("its rank is ", fact.shape.rank());
    for (int axis = 0; axis < fact.shape.rank(); ++axis) {
      Dim& dim = fact.shape[axis];
      if (!dim.known() && dim.name.empty()) dim.name = StrCat(info.name, ".", axis);
    }
    return fact;
  }

  Result<ValueId> Get(const TfRef& ref) {
    const TfFlatNode& node = flat_.nodes[static_cast<size_t>(ref.node)];
    const Values& outputs = values_[static_cast<size_t>(ref.node)];
    if (ref.output >= static_cast<int>(outputs.size())) {
      return DataLoss("node '", node.name, "' (", node.op(), ") has no output ", ref.output);
    }
    const ValueId value = outputs[static_cast<size_t>(ref.output)];
    if (value == kNoValue) {
      return Unsupported("output ", ref.output, " of node '", node.name, "' (", node.op(),
                         ") is only computed for training");
    }
    return value;
  }

  Status AddNode(size_t i) {
    const TfFlatNode& node = flat_.nodes[i];
    if (node.kind == TfFlatNode::Kind::kInput) return {};
    if (node.kind == TfFlatNode::Kind::kVariable) {
      values_[i] = {graph().AddConstant(node.value, node.name)};
      return {};
    }
    // Complex tensors have a last axis for their parts, of which only their own rows know.
    const bool complex = HasComplexType(*node.source);
    const TfOpRow* row = complex ? nullptr : FindTfOp(node.op());
    if (row == nullptr) {
      row = FindTfComplexOp(node.op());
      complex_[i] = row != nullptr && GivesComplex(*node.source, source_.Attrs(*node.source));
    }
    if (row == nullptr) {
      unsupported_.Add(node.op(), complex ? "of complex numbers" : "", node.name);
      failed_[i] = 1;
      return {};
    }
    // What depends on an unsupported node is not judged, only passed over.
    for (const TfRef& ref : node.inputs) {
      const bool later = ref.node >= static_cast<int>(i);  // on a cycle
      if (later || failed_[static_cast<size_t>(ref.node)] != 0) {
        failed_[i] = 1;
        return {};
      }
    }
    Result<Values> outputs = Lower(node, *row);
    if (outputs.ok()) {
      values_[i] = *std::move(outputs);
      NameValues(node, values_[i]);
      return {};
    }
    const Status& status = outputs.status();
    if (status.code() == Code::kUnimplemented) {
      unsupported_.Add(node.op(), Message(status), node.name);
      failed_[i] = 1;
      return {};
    }
    if (!Details(status).node.empty()) return status;
    return WithNode(In(status, StrCat("node '", node.name, "' (", node.op(), ")")), node.name);
  }

  Result<Values> Lower(const TfFlatNode& node, const TfOpRow& row) {
    Values inputs;
    for (const TfRef& ref : node.inputs) {
      ONCILLA_ASSIGN(const ValueId value, Get(ref));
      inputs.push_back(value);
    }
    if (static_cast<int>(inputs.size()) < row.min_inputs) {
      return DataLoss("has ", inputs.size(), " inputs and needs ", row.min_inputs);
    }
    TfLowering lowering(graph(), source_, node, std::move(inputs));
    if (row.lower != nullptr) return row.lower(lowering);
    return One(lowering.Add(row.canonical, {}, lowering.all_inputs()));
  }

  // "node:0", the source name of a tensor; a value that is an input's or another node's keeps its.
  void NameValues(const TfFlatNode& node, const Values& values) {
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k] == kNoValue || !graph().value(values[k]).name.empty()) continue;
      graph().SetValueName(values[k], StrCat(node.name, ":", k));
    }
  }

  TfGraph& source_;
  const TfImportRequest& request_;
  Module module_;
  TfFlatGraph flat_;
  std::vector<Values> values_;  // per flat node, its outputs
  std::vector<char> failed_;
  std::vector<char> complex_;  // per flat node, whether its output has an axis of parts
  UnsupportedList unsupported_;
};

}  // namespace

Result<Module> ImportTf(TfGraph& graph, const TfImportRequest& request,
                        const std::shared_ptr<const OpSet>& ops) {
  Result<Module> module = Importer(graph, request, ops).Run();
  if (module.ok()) return module;
  return WithStage(In(module.status(), graph.file()), Stage::kLoad);
}

}  // namespace oncilla
