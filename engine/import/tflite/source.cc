// TFLite behind the ModelSource interface: names are resolved to tensors, then a TfliteBuilder
// runs.
#include "engine/import/tflite/source.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/import/fed_facts.h"
#include "engine/import/tflite/builder.h"
#include "engine/import/tflite/effects.h"

namespace oncilla {
namespace {

using NamedTensors = std::vector<std::pair<std::string, int32_t>>;

// A signature, with its names mapped to tensors.
struct Entry {
  size_t subgraph = 0;
  NamedTensors inputs, outputs;
};

// Feeds and fetches as tensors, with the names that the caller used.
struct Request {
  NamedTensors inputs, outputs;
  Facts fed;  // facts of the feeds, input by input; empty if unknown
  bool only_needed_inputs = false;
};

class TfliteSource : public ModelSource {
 public:
  TfliteSource(std::shared_ptr<const MappedFile> file, TfliteModel model)
      : file_(std::move(file)), model_(std::move(model)), effects_(TfliteEffects(model_)) {
    for (const TfliteSignature& signature : model_.signatures) AddSignature(signature);
    if (entries_.empty()) AddMainSubgraph();
  }

  std::string_view format() const override { return "TFLite"; }
  std::span<const Signature> signatures() const override { return signatures_; }
  int64_t file_bytes() const override { return static_cast<int64_t>(file_->text().size()); }
  Files files() const override { return {file_}; }

  Result<Module> Import(const ImportRequest& asked,
                        const std::shared_ptr<const OpSet>& ops) override {
    ONCILLA_ASSIGN(const Signature* signature, FindSignature(asked.signature));
    const Entry& entry = entries_[static_cast<size_t>(signature - signatures_.data())];
    auto request = MakeRequest(asked, *signature, entry);
    if (!request.ok()) return In(request.status(), file_->path());
    ONCILLA_TRY(file_->CheckUnchanged());
    auto module = ImportEntry(entry, *request, ops);
    if (module.ok()) return module;
    return WithStage(In(module.status(), file_->path()), Stage::kLoad);
  }

  // Lowers the subgraphs that the file calls once, before the first run.
  Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                   const std::shared_ptr<const OpSet>& ops) override {
    Module module{Graph(ops)};
    const std::unordered_set<std::string> only(resources.begin(), resources.end());
    TfliteImportState state{model_, file_, module};
    state.effects = effects_;
    state.only = &only;
    std::unordered_set<size_t> done;
    for (const Entry& entry : entries_) {
      ONCILLA_ASSIGN(const auto callees, TfliteInitialisers(model_, entry.subgraph));
      for (size_t callee : callees) {
        if (!done.insert(callee).second) continue;
        TfliteBuilder builder(state, module.main, model_.subgraphs[callee],
                              StrCat("initialiser", callee, "/"));
        const Status built = builder.Build({});
        if (!built.ok()) return In(built, file_->path());
      }
    }
    if (!state.unsupported.empty()) return In(state.unsupported.ToStatus(), file_->path());
    return module;
  }

 private:
  TensorInfo InfoOf(size_t subgraph, int32_t index, const std::string& name) const {
    const TfliteTensor& tensor = model_.subgraphs[subgraph].tensors[static_cast<size_t>(index)];
    TensorInfo info;
    info.name = name;
    info.source = std::string(tensor.name);
    if (auto fact = TfliteBuilder::InputFact(tensor, name); fact.ok()) {
      info.dtype = fact->dtype;
      info.shape = std::move(fact->shape);
    }
    return info;
  }

  void Add(std::string key, Entry entry) {
    Signature signature;
    signature.key = std::move(key);
    for (const auto& [name, tensor] : entry.inputs) {
      signature.inputs.push_back(InfoOf(entry.subgraph, tensor, name));
    }
    for (const auto& [name, tensor] : entry.outputs) {
      signature.outputs.push_back(InfoOf(entry.subgraph, tensor, name));
    }
    signatures_.push_back(std::move(signature));
    entries_.push_back(std::move(entry));
  }

  void AddSignature(const TfliteSignature& signature) {
    Entry entry{signature.subgraph, {}, {}};
    for (const auto& [name, tensor] : signature.inputs) entry.inputs.emplace_back(name, tensor);
    for (const auto& [name, tensor] : signature.outputs) entry.outputs.emplace_back(name, tensor);
    Add(std::string(signature.key), std::move(entry));
  }

  // The names of tensors; missing or equal names are made unique.
  void AddMainSubgraph() {
    const TfliteSubgraph& main = model_.subgraphs[0];
    Entry entry;
    for (int side = 0; side < 2; ++side) {
      NamedTensors& list = side == 0 ? entry.inputs : entry.outputs;
      std::unordered_set<std::string> taken;
      for (int32_t tensor : side == 0 ? main.inputs : main.outputs) {
        std::string name(main.tensors[static_cast<size_t>(tensor)].name);
        if (name.empty() || taken.contains(name)) {
          name = StrCat(name.empty() ? (side == 0 ? "input" : "output") : name, ":", list.size());
        }
        taken.insert(name);
        list.emplace_back(std::move(name), tensor);
      }
    }
    Add("", std::move(entry));
  }

  static const int32_t* FindIn(const NamedTensors& list, const std::string& name) {
    for (const auto& [known, tensor] : list) {
      if (known == name) return &tensor;
    }
    return nullptr;
  }

  // Finds a name of the signature, or of any tensor in its subgraph.
  Result<int32_t> Find(const Entry& entry, const NamedTensors& list,
                       const std::vector<TensorInfo>& known, const std::string& name,
                       std::string_view role) const {
    if (const int32_t* found = FindIn(list, name); found != nullptr) return *found;
    const auto& tensors = model_.subgraphs[entry.subgraph].tensors;
    const auto it = std::find_if(tensors.begin(), tensors.end(),
                                 [&](const TfliteTensor& tensor) { return tensor.name == name; });
    if (it != tensors.end() && !name.empty()) return static_cast<int32_t>(it - tensors.begin());
    return NoSuchTensor(role, name, NamesOf(known));
  }

  Result<Request> MakeRequest(const ImportRequest& asked, const Signature& signature,
                              const Entry& entry) const {
    Request request;
    ONCILLA_TRY(CheckNoTargets(asked, format()));
    request.only_needed_inputs = asked.feeds.empty();
    if (asked.fed.size() == asked.feeds.size()) request.fed = asked.fed;
    if (asked.feeds.empty()) request.inputs = entry.inputs;
    for (const std::string& name : asked.feeds) {
      ONCILLA_ASSIGN(const int32_t tensor,
                     Find(entry, entry.inputs, signature.inputs, name, "input"));
      request.inputs.emplace_back(name, tensor);
    }
    if (asked.fetches.empty()) request.outputs = entry.outputs;
    for (const std::string& name : asked.fetches) {
      ONCILLA_ASSIGN(const int32_t tensor,
                     Find(entry, entry.outputs, signature.outputs, name, "output"));
      request.outputs.emplace_back(name, tensor);
    }
    if (request.outputs.empty()) return InvalidArgument("the model has no outputs");
    std::unordered_set<int32_t> fed;
    for (const auto& [name, tensor] : request.inputs) {
      if (fed.insert(tensor).second || request.only_needed_inputs) continue;
      return InvalidArgument("input '", name, "' is given twice");
    }
    return request;
  }

  Result<Module> ImportEntry(const Entry& entry, const Request& request,
                             const std::shared_ptr<const OpSet>& ops) const {
    Module module{Graph(ops)};
    TfliteImportState state{model_, file_, module};
    state.effects = effects_;
    const TfliteSubgraph& subgraph = model_.subgraphs[entry.subgraph];
    TfliteBuilder builder(state, module.main, subgraph, "");
    std::vector<int32_t> wanted;
    for (const auto& [name, tensor] : request.outputs) wanted.push_back(tensor);
    const auto needed = builder.NeededTensors(wanted);
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const auto& [name, tensor] = request.inputs[i];
      const Fact* fed = i < request.fed.size() ? &request.fed[i] : nullptr;
      if (request.only_needed_inputs && !needed.contains(tensor)) continue;
      auto fact = TfliteBuilder::InputFact(subgraph.tensors[static_cast<size_t>(tensor)], name);
      if (!fact.ok()) return In(fact.status(), StrCat("input '", name, "'"));
      NarrowToFed(*fact, fed);
      builder.Give(tensor, AddFedInput(module.main, name, *std::move(fact), fed));
    }
    ONCILLA_TRY(builder.Build(wanted));
    for (const auto& [name, tensor] : request.outputs) {
      if (subgraph.tensors[static_cast<size_t>(tensor)].type == kTfliteComplex64) {
        return Unsupported("the output '", name, "' is complex");
      }
      auto value = builder.Value(tensor);
      if (!value.ok()) return In(value.status(), StrCat("output '", name, "'"));
      if (*value != kNoValue) {
        module.main.AddOutput(name, *value);
      } else if (state.unsupported.empty()) {
        return Unsupported("the output '", name, "' is a handle");
      }
    }
    if (!state.unsupported.empty()) return state.unsupported.ToStatus();
    return module;
  }

  const std::shared_ptr<const MappedFile> file_;
  const TfliteModel model_;
  const std::vector<char> effects_;
  std::vector<Entry> entries_;  // of signatures_
  std::vector<Signature> signatures_;
};

}  // namespace

Result<std::unique_ptr<ModelSource>> OpenTflite(std::shared_ptr<const MappedFile> file) {
  auto model = ReadTfliteModel(file->text());
  if (model.status().code() == Code::kDataLoss) {
    return WithStage(In(model.status(), StrCat(file->path(), ": a damaged TFLite model")),
                     Stage::kFile);
  }
  if (!model.ok()) return WithStage(In(model.status(), file->path()), Stage::kFile);
  return std::unique_ptr<ModelSource>(new TfliteSource(std::move(file), *std::move(model)));
}

}  // namespace oncilla
