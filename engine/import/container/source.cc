// A container behind the ModelSource interface. Modules are built from its messages on demand.
#include <algorithm>
#include <map>
#include <mutex>

#include "engine/base/near_names.h"
#include "engine/import/container/bytes.h"
#include "engine/import/container/container.h"
#include "engine/import/container/read.h"

namespace oncilla {
namespace {

// Appends the functions and variables of `from` to `to`, and the nodes of its main graph to that of
// `to`. Neither main graph has inputs or outputs.
Status Append(Module from, Module* to) {
  std::vector<ValueId> ids(from.main.values().size(), kNoValue);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& value = from.main.values()[i];
    if (value.is_constant()) ids[i] = to->main.AddConstant(value.fact.value, value.name);
  }
  for (const Node& node : from.main.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kNoValue ? kNoValue : ids[Index(input)]);
    }
    ONCILLA_ASSIGN(const auto outputs, to->main.AddNode(node.name, node.op->name, node.attrs,
                                                        std::move(inputs), node.sources));
    for (size_t i = 0; i < outputs.size(); ++i) ids[Index(node.outputs[i])] = outputs[i];
  }
  for (auto& [name, graph] : from.functions) {
    for (const auto& [other, ignored] : to->functions) {
      if (other == name) return DataLoss("two initialisers have a function '", name, "'");
    }
    to->functions.emplace_back(name, std::move(graph));
  }
  for (ModuleVariable& variable : from.variables) {
    const bool known =
        std::any_of(to->variables.begin(), to->variables.end(),
                    [&](const ModuleVariable& other) { return other.name == variable.name; });
    if (!known) to->variables.push_back(std::move(variable));
  }
  return {};
}

class ContainerSource : public ModelSource {
 public:
  explicit ContainerSource(container::Opened opened) : opened_(std::move(opened)) {
    for (const container::EntryMessage& entry : opened_.model->entries) {
      signatures_.push_back(container::ReadSignature(entry.signature));
    }
  }

  std::string_view format() const override { return "Oncilla"; }
  bool has_sums() const override { return true; }
  std::span<const Signature> signatures() const override { return signatures_; }
  int64_t file_bytes() const override { return static_cast<int64_t>(opened_.file->text().size()); }
  Files files() const override { return {opened_.file}; }

  Result<Module> Import(const ImportRequest& asked,
                        const std::shared_ptr<const OpSet>& ops) override {
    ONCILLA_ASSIGN(const Signature* signature, FindSignature(asked.signature));
    if (!asked.targets.empty()) return ImportTarget(asked, ops);
    const auto entry = static_cast<size_t>(signature - signatures_.data());
    container::Part part;
    part.feeds = asked.feeds;
    part.fetches = asked.fetches;
    const std::lock_guard<std::mutex> lock(mutex_);
    auto module = container::ReadModule(opened_, opened_.model->entries[entry].module, part, ops,
                                        &variables_);
    if (!module.ok()) return In(module.status(), opened_.file->path());
    return module;
  }

  Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                   const std::shared_ptr<const OpSet>& ops) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Module all{Graph(ops)};
    for (const container::NamedModuleMessage& initialiser : opened_.model->initialisers) {
      if (std::find(resources.begin(), resources.end(), initialiser.name) == resources.end()) {
        continue;
      }
      const auto append = [&]() -> Status {
        ONCILLA_ASSIGN(Module module,
                       container::ReadModule(opened_, initialiser.module, {}, ops, &variables_));
        if (!module.main.inputs().empty()) return DataLoss("takes inputs");
        return Append(std::move(module), &all);
      };
      ONCILLA_TRY(In(
          append(), StrCat(opened_.file->path(), ": the initialiser of '", initialiser.name, "'")));
    }
    return all;
  }

  Result<std::vector<TensorInfo>> Variables() const override {
    std::vector<TensorInfo> variables;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, message] : VariableMessages()) {
      TensorInfo& info = variables.emplace_back();
      info.name = name;
      // A variable's type is stored at the nodes that read and assign it. Before a module is
      // imported, only the types of variables with an initial value are known.
      if (const auto known = variables_.find(name); known != variables_.end()) {
        info.dtype = known->second.dtype;
        info.shape = known->second.shape;
      } else if (message->initial.has_value()) {
        ONCILLA_ASSIGN(const Tensor initial, container::ReadTensor(opened_, *message->initial));
        info.dtype = initial.dtype();
        info.shape = PartialShape(initial.shape());
      }
    }
    return variables;
  }

  Result<Tensor> VariableValue(std::string_view name) override {
    for (const auto& [other, message] : VariableMessages()) {
      if (other == name && message->initial.has_value()) {
        return container::ReadTensor(opened_, *message->initial);
      }
    }
    return ModelSource::VariableValue(name);
  }

 private:
  // By name; messages with an initial value take precedence.
  std::map<std::string, const container::VariableMessage*> VariableMessages() const {
    std::map<std::string, const container::VariableMessage*> found;
    const auto add = [&](const container::ModuleMessage& module) {
      for (const container::VariableMessage& variable : module.variables) {
        auto& message = found[std::string(variable.name)];
        if (message == nullptr || !message->initial.has_value()) message = &variable;
      }
    };
    for (const auto& entry : opened_.model->entries) add(entry.module);
    for (const auto& initialiser : opened_.model->initialisers) add(initialiser.module);
    for (const auto& target : opened_.model->targets) add(target.module);
    return found;
  }

  Result<Module> ImportTarget(const ImportRequest& asked, const std::shared_ptr<const OpSet>& ops) {
    const auto fail = [&](const auto&... what) {
      return WithStage(NotFound(opened_.file->path(), ": ", what...), Stage::kOptions);
    };
    if (asked.targets.size() > 1 || !asked.fetches.empty()) {
      return WithStage(InvalidArgument(opened_.file->path(),
                                       ": a converted model runs one target at a time, on its own"),
                       Stage::kOptions);
    }
    const std::string& name = asked.targets[0];
    std::vector<std::string> names;
    for (const container::NamedModuleMessage& target : opened_.model->targets) {
      names.emplace_back(target.name);
      if (target.name != name) continue;
      container::Part part;
      part.feeds = asked.feeds;
      const std::lock_guard<std::mutex> lock(mutex_);
      auto module = container::ReadModule(opened_, target.module, part, ops, &variables_);
      if (!module.ok()) return In(module.status(), opened_.file->path());
      return module;
    }
    if (names.empty()) {
      return fail("the model was converted without --targets, so that none can be run");
    }
    return fail("there is no target '", name, "'", DidYouMean(name, names));
  }

  const container::Opened opened_;
  std::vector<Signature> signatures_;
  mutable std::mutex mutex_;
  container::VariableTypes variables_;  // guarded by the mutex
};

}  // namespace

bool LooksLikeContainer(std::string_view bytes) {
  return bytes.substr(0, container::kMagic.size()) == container::kMagic;
}

Result<std::unique_ptr<ModelSource>> OpenContainer(std::shared_ptr<const MappedFile> file) {
  ONCILLA_ASSIGN(container::Opened opened, container::OpenParts(std::move(file)));
  return std::unique_ptr<ModelSource>(new ContainerSource(std::move(opened)));
}

Status VerifyWeights(const std::shared_ptr<const MappedFile>& file) {
  ONCILLA_ASSIGN(const container::Opened opened, container::OpenParts(file));
  for (size_t i = 0; i < opened.model->blobs.size(); ++i) {
    const container::BlobMessage& blob = opened.model->blobs[i];
    if (container::Hash(opened.weights.subspan(blob.offset, blob.bytes)) != blob.hash.value) {
      return WithStage(DataLoss(file->path(), ": the checksum of constant ", i, " (", blob.bytes,
                                " bytes) does not match"),
                       Stage::kFile);
    }
  }
  return {};
}

}  // namespace oncilla
