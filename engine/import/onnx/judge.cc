// Lowers a graph node by node and records the outcome for each.
#include "engine/import/onnx/judge.h"

#include <span>
#include <string>

#include "engine/import/onnx/builder.h"
#include "engine/import/onnx/import.h"

namespace oncilla {
namespace {

class Judge {
 public:
  Judge(const OnnxModel& model, const std::unordered_map<std::string_view, TensorInfo>& stated,
        const OnnxContext& context, const std::shared_ptr<const OpSet>& ops)
      : model_(model),
        stated_(stated),
        state_(model, context, ops),
        target_(state_.module.main),
        scope_(target_, model.graph.nodes, model.opsets),
        builder_(state_, scope_) {
    scope_.main = &model.graph;
  }

  Result<std::vector<NodeJudgement>> All(const std::vector<TensorInfo>& inputs) {
    ONCILLA_TRY(scope_.Take(model_.graph));
    ONCILLA_ASSIGN(const std::vector<size_t> order, Order(inputs));
    for (const TensorInfo& info : inputs) {
      // If the engine lacks an input's type, the nodes that read the input fail.
      if (!AddInput(info)) scope_.failed.try_emplace(info.name);
    }
    NoteReads();
    std::vector<NodeJudgement> all;
    for (const OnnxNode& node : model_.graph.nodes) {
      all.push_back({std::string(node.label()),
                     node.domain.empty() ? std::string(node.op) : StrCat(node.domain, ".", node.op),
                     "it has no outputs"});
    }
    for (const size_t i : order) all[i].reason = One(i);
    return all;
  }

 private:
  Result<std::vector<size_t>> Order(const std::vector<TensorInfo>& inputs) const {
    std::vector<std::string_view> wanted;
    for (const OnnxNode& node : model_.graph.nodes) {
      for (std::string_view output : node.outputs) {
        if (!output.empty()) wanted.push_back(output);
      }
    }
    OnnxNames known, given;
    for (const TensorInfo& info : inputs) known.insert(info.name);
    for (const auto& [name, tensor] : scope_.initializers) given.insert(name);
    known.insert(given.begin(), given.end());
    for (const OnnxValueInfo& info : model_.graph.inputs) given.insert(info.name);
    return OrderOnnxNodes(model_.graph.nodes, wanted, known, given);
  }

  // False if the tensor has a type that the engine lacks.
  bool AddInput(const TensorInfo& info) {
    auto fact = OnnxInputFact(info);
    if (!fact.ok()) return false;
    const ValueId value = target_.graph.AddInput(info.name, *std::move(fact));
    scope_.values[info.name] = value;
    if (info.kind == TensorInfo::Kind::kOptional) {
      target_.optionals[Index(value)] = OnnxKind::kOptional;
    } else if (info.kind == TensorInfo::Kind::kOptionalSequence) {
      target_.optionals[Index(value)] = OnnxKind::kOptionalSequence;
    }
    return true;
  }

  void NoteReads() {
    for (const OnnxNode& node : model_.graph.nodes) {
      read_.insert(node.inputs.begin(), node.inputs.end());
      read_.insert(node.captures.begin(), node.captures.end());
    }
    for (const OnnxValueInfo& output : model_.graph.outputs) read_.insert(output.name);
  }

  std::string One(size_t index) {
    const OnnxNode& node = model_.graph.nodes[index];
    const size_t functions = state_.module.functions.size();
    const Status status = builder_.BuildNodes(std::span(&index, 1));
    std::string reason;
    if (!status.ok()) {
      reason = Message(status);
    } else if (!state_.unsupported.empty()) {
      reason = StrCat("not supported: ", state_.unsupported.Ops());
    }
    state_.unsupported = UnsupportedList();
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const std::string_view name = node.outputs[k];
      if (name.empty() || scope_.values.contains(name)) continue;
      // An output that no node reads may be missing, such as the mask of Dropout.
      if (reason.empty() && read_.contains(name)) {
        const auto it = scope_.failed.find(name);
        reason = it == scope_.failed.end() || it->second.reason.empty()
                     ? "it reads a tensor of a type that the engine does not have, or that the "
                       "model does not state"
                     : StrCat("not supported: ", it->second.reason);
      }
      const auto it = stated_.find(name);
      scope_.failed.erase(name);
      if (it == stated_.end() || !AddInput(it->second)) scope_.failed.try_emplace(name);
    }
    if (!reason.empty()) state_.DropFunctions(functions);
    return reason;
  }

  const OnnxModel& model_;
  const std::unordered_map<std::string_view, TensorInfo>& stated_;
  OnnxImportState state_;
  OnnxTarget target_;
  OnnxScope scope_;
  OnnxBuilder builder_;
  OnnxNames read_;
};

}  // namespace

Result<std::vector<NodeJudgement>> JudgeOnnxNodes(
    const OnnxModel& model, const std::vector<TensorInfo>& inputs,
    const std::unordered_map<std::string_view, TensorInfo>& stated, const OnnxContext& context,
    const std::shared_ptr<const OpSet>& ops) {
  Judge judge(model, stated, context, ops);
  return judge.All(inputs);
}

}  // namespace oncilla
