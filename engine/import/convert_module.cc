// Copies graphs node by node, with other input shapes and other constants.
#include "engine/import/convert_module.h"

#include "engine/tensor/narrow.h"

namespace oncilla {
namespace {

constexpr int64_t kFewElements = 64;

class Copier {
 public:
  Copier(const ConvertOptions& options, ConvertCounts* counts)
      : options_(options), counts_(counts) {}

  Result<Graph> Copy(const Graph& from, bool is_main) {
    Graph to(from.shared_ops());
    std::vector<ValueId> ids(from.values().size(), kNoValue);
    for (const NamedValue& input : from.inputs()) {
      Fact fact = from.fact(input.value);
      if (is_main) ONCILLA_TRY(SettleShape(input.name, &fact));
      ids[Index(input.value)] = to.AddInput(input.name, std::move(fact));
    }
    const std::vector<bool> kept = KeptWide(from);
    const auto readers = Consumers(from);
    for (size_t i = 0; i < from.values().size(); ++i) {
      const Value& value = from.values()[i];
      if (!value.is_constant() || (readers[i].empty() && !kept[i])) continue;
      ONCILLA_ASSIGN(ids[i], AddConstant(value, kept[i], to));
    }
    for (const Node& node : from.nodes()) {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) {
        inputs.push_back(input == kNoValue ? kNoValue : ids[Index(input)]);
      }
      ONCILLA_ASSIGN(const auto outputs, to.AddNode(node.name, node.op->name, node.attrs,
                                                    std::move(inputs), node.sources));
      for (size_t i = 0; i < outputs.size(); ++i) {
        ids[Index(node.outputs[i])] = outputs[i];
        to.SetValueName(outputs[i], from.value(node.outputs[i]).name);
      }
    }
    for (const NamedValue& output : from.outputs()) {
      to.AddOutput(output.name, ids[Index(output.value)]);
    }
    return to;
  }

 private:
  Status SettleShape(const std::string& name, Fact* fact) const {
    for (const auto& [input, shape] : options_.shapes) {
      if (input != name) continue;
      if (fact->kind != ValueKind::kTensor || !fact->shape.Accepts(shape)) {
        return InvalidArgument("input '", name, "' is ", *fact, ", not ", shape);
      }
      fact->shape = PartialShape(shape);
    }
    return {};
  }

  // Constants that are an output or that determine a shape keep their type.
  static std::vector<bool> KeptWide(const Graph& graph) {
    std::vector<bool> kept(graph.values().size(), false);
    for (const NamedValue& output : graph.outputs()) kept[Index(output.value)] = true;
    for (const Node& node : graph.nodes()) {
      for (size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
        if (node.inputs[i] != kNoValue && node.op->traits.IsPlanInput(i)) {
          kept[Index(node.inputs[i])] = true;
        }
      }
    }
    return kept;
  }

  Result<ValueId> AddConstant(const Value& value, bool keep, Graph& to) {
    const Tensor& tensor = value.fact.value;
    const bool narrow = options_.weights != DType::kF32 && !keep && !tensor.is_list() &&
                        tensor.dtype() == DType::kF32 && tensor.elements() >= kFewElements;
    if (!narrow) return to.AddConstant(tensor, value.name);
    ONCILLA_ASSIGN(Narrowing narrowing, Narrowed(tensor, options_.weights));
    Tensor& stored = narrowing.tensor;
    if (!stored.valid()) {
      ++counts_->overflowing;
      return to.AddConstant(tensor, value.name);
    }
    ++counts_->narrowed;
    const ValueId constant = to.AddConstant(std::move(stored));
    const std::string name = value.name.empty() ? "weights" : value.name;
    ONCILLA_ASSIGN(const ValueId wide,
                   to.Add(name + "/widened", "Cast", {{"to", DType::kF32}}, {constant}));
    to.SetValueName(wide, value.name);
    return wide;
  }

  const ConvertOptions& options_;
  ConvertCounts* counts_;
};

}  // namespace

Result<Module> Converted(const Module& module, const ConvertOptions& options,
                         ConvertCounts* counts) {
  Copier copier(options, counts);
  ONCILLA_ASSIGN(Graph main, copier.Copy(module.main, true));
  Module out(std::move(main));
  for (const auto& [name, graph] : module.functions) {
    auto copy = copier.Copy(graph, false);
    if (!copy.ok()) return In(copy.status(), StrCat("function '", name, "'"));
    out.functions.emplace_back(name, *std::move(copy));
  }
  out.variables = module.variables;
  return out;
}

}  // namespace oncilla
