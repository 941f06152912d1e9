// SavedModels and GraphDefs behind the ModelSource interface: names are resolved to tensors, then
// ImportTf runs.
#include "engine/import/tf/source.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/near_names.h"
#include "engine/import/tf/import.h"
#include "engine/import/tf/messages.h"
#include "engine/import/tf/op_kinds.h"
#include "engine/import/tf/saved_choice.h"
#include "engine/import/tf/saved_functions.h"
#include "engine/import/tf/saved_model.h"
#include "engine/import/tf/state/variables.h"
#include "engine/import/tf/text.h"

namespace oncilla {
namespace {

constexpr std::string_view kWithDefault = "PlaceholderWithDefault";

using InfosByName = std::unordered_map<std::string_view, const TensorInfo*>;

InfosByName ByName(const std::vector<TensorInfo>& infos) {
  InfosByName out;
  for (const TensorInfo& info : infos) out.emplace(info.name, &info);
  return out;
}

// Finds the tensor of a name: one of the signature's, or any tensor of the graph by its name there.
Result<TensorInfo> Resolve(const std::string& name, const std::vector<TensorInfo>& known,
                           const InfosByName& by_name, std::string_view role, const TfBody& main) {
  if (const auto found = by_name.find(name); found != by_name.end()) {
    if (!found->second->source.empty()) return *found->second;
    return Unsupported(role, " '", name, "' of the signature is a sparse or composite tensor");
  }
  const std::string_view node = std::string_view(name).substr(0, name.find(':'));
  if (name.find('/') == std::string::npos && main.Find(node) < 0) {
    const std::vector<std::string> names = NamesOf(known);
    std::string near = DidYouMean(name, names);
    if (near.empty()) {
      std::vector<std::string> nodes;
      for (const TfNode& other : main.nodes) nodes.emplace_back(other.name);
      near = DidYouMean(name, nodes);
    }
    const std::string theirs =
        role == "input" ? tf_messages::UnknownFeed(name) : tf_messages::UnknownFetch(name);
    return WithStage(NotFound(theirs, "; there is no ", role, " '", name, "'",
                              near.empty() ? "." : near, " There is: ", Listed(names)),
                     Stage::kOptions);
  }
  TensorInfo info;
  info.name = name;
  info.source = name;
  return info;
}

// A canonical spelling: "x" and "x:0" are the same tensor.
std::string Canonical(const std::string& tensor) {
  return tensor.find(':') == std::string::npos ? tensor + ":0" : tensor;
}

// As in TensorFlow's session, no tensor may be fed twice, and a tensor that is fed by its graph
// name may not be fetched by it. A signature may pass an input on as an output.
Status CheckNoTensorTwice(const ImportRequest& asked, const Signature& signature,
                          const TfImportRequest& request) {
  if (asked.feeds.empty()) return {};
  std::set<std::string> fed;
  for (const TensorInfo& info : request.inputs) {
    if (fed.insert(Canonical(info.source)).second) continue;
    return WithStage(InvalidArgument(tf_messages::FedTwice(info.name)), Stage::kOptions);
  }
  for (const TensorInfo& info : request.outputs) {
    const auto is_key = [&](const TensorInfo& output) { return output.name == info.name; };
    if (fed.count(Canonical(info.source)) == 0 ||
        std::any_of(signature.outputs.begin(), signature.outputs.end(), is_key)) {
      continue;
    }
    return WithStage(InvalidArgument(tf_messages::FedAndFetched(info.name)), Stage::kOptions);
  }
  return {};
}

// Whether a tensor has a value of its own when it is not fed.
bool HasDefault(const TensorInfo& info, const TfBody& main) {
  const int node = main.Find(std::string_view(info.source).substr(0, info.source.find(':')));
  return node >= 0 && main.nodes[static_cast<size_t>(node)].op == kWithDefault;
}

Result<TfImportRequest> MakeRequest(const ImportRequest& asked, const Signature& signature,
                                    const TfBody& main) {
  TfImportRequest request;
  request.only_needed_inputs = asked.feeds.empty();
  const auto all = [](const std::vector<TensorInfo>& list) { return NamesOf(list); };
  const InfosByName inputs = ByName(signature.inputs), outputs = ByName(signature.outputs);
  for (const std::string& name : asked.feeds.empty() ? all(signature.inputs) : asked.feeds) {
    ONCILLA_ASSIGN(TensorInfo info, Resolve(name, signature.inputs, inputs, "input", main));
    if (asked.feeds.empty() && HasDefault(info, main)) continue;
    request.inputs.push_back(std::move(info));
  }
  const bool all_outputs = asked.fetches.empty() && asked.targets.empty();
  for (const std::string& name : all_outputs ? all(signature.outputs) : asked.fetches) {
    ONCILLA_ASSIGN(TensorInfo info, Resolve(name, signature.outputs, outputs, "output", main));
    request.outputs.push_back(std::move(info));
  }
  ONCILLA_TRY(CheckNoTensorTwice(asked, signature, request));
  request.targets = asked.targets;
  if (asked.fed.size() == request.inputs.size()) request.fed = asked.fed;
  if (request.outputs.empty() && request.targets.empty()) {
    return WithStage(InvalidArgument(tf_messages::NothingAsked(), " The model has no outputs."),
                     Stage::kOptions);
  }
  return request;
}

Result<TfFrozenGraph> Frozen(TfGraph& graph, const ImportRequest& asked,
                             const TfSource::Shapes& shapes, const Signature& signature,
                             const std::string& path,
                             std::function<Result<Tensor>(const TfNode&)> variable) {
  auto named = MakeRequest(asked, signature, graph.main());
  if (!named.ok()) return In(named.status(), path);
  for (const auto& [name, shape] : shapes) {
    for (TensorInfo& info : named->inputs) {
      if (info.name != name) continue;
      if (!info.shape.Accepts(shape)) {
        return WithStage(InvalidArgument("input '", name, "' is ", Fact::Of(info.dtype, info.shape),
                                         ", not ", shape),
                         Stage::kOptions);
      }
      info.shape = PartialShape(shape);
    }
  }
  TfFreezeRequest request{std::move(named->inputs), std::move(named->outputs), std::move(variable)};
  return FreezeTfGraph(graph, request);
}

// The names of a model's variables that are known to change.
class StateNames {
 public:
  void Add(const std::vector<std::string>& names) { names_.insert(names.begin(), names.end()); }
  std::function<bool(std::string_view)> Test() const {
    return [this](std::string_view name) { return names_.find(name) != names_.end(); };
  }

 private:
  std::set<std::string, std::less<>> names_;
};

// With `saved`, only variables that some node restores, assigns or passes to a function: exporters
// leave behind handles of other variables, which are at most read.
std::vector<TensorInfo> VariablesOf(const TfGraph& graph, bool saved) {
  std::unordered_set<std::string_view> used;
  for (const TfNode& node : graph.main().nodes) {
    if (node.op == "ReadVariableOp") continue;
    for (const TfInput& input : node.inputs) used.insert(input.node);
  }
  std::vector<TensorInfo> variables;
  for (const TfNode& node : graph.main().nodes) {
    if (!IsTfVariable(node.op) || (saved && used.count(node.name) == 0)) continue;
    const TfAttrs attrs = graph.Attrs(node);
    TensorInfo& info = variables.emplace_back();
    info.name = std::string(node.name);
    info.source = attrs.String("shared_name").value_or("");
    info.dtype = attrs.Type("dtype").value_or(DType::kInvalid);
    if (auto shape = attrs.Shape("shape"); shape.ok()) info.shape = *std::move(shape);
  }
  return variables;
}

// The fact without the names that the importer gives to unknown sizes.
Fact Plain(Fact fact) {
  if (!fact.shape.ranked()) return fact;
  for (int d = 0; d < fact.shape.rank(); ++d) fact.shape[d].name.clear();
  return fact;
}

class SavedModelSource : public TfSource {
 public:
  explicit SavedModelSource(std::unique_ptr<SavedModel> model)
      : model_(std::move(model)), variables_(*model_) {}

  std::string_view format() const override { return "SavedModel"; }
  std::span<const Signature> signatures() const override { return model_->signatures(); }
  int64_t file_bytes() const override { return model_->file_bytes(); }
  Files files() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Files all;
    model_->AddTo(all);
    return all;
  }

  // Finds a signature, or else a function: of the saved object, as Python spells it ("encode",
  // "encoder.encode"), or by its name in the graph's library. For a function that was saved for
  // several kinds of arguments, this is what they have in common.
  Result<const Signature*> FindSignature(std::string_view key) const override {
    auto found = ModelSource::FindSignature(key);
    if (found.ok()) return found;
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const SavedFunction* function, FindFunction(key, found.status()));
    return &function->common;
  }

  Result<Module> Import(const ImportRequest& asked,
                        const std::shared_ptr<const OpSet>& ops) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const Signature* signature, Chosen(asked));
    ONCILLA_ASSIGN(TfGraph * graph, model_->Graph());
    auto request = MakeRequest(asked, *signature, graph->main());
    if (!request.ok()) return In(request.status(), model_->folder());
    request->variable = [this](const TfNode& handle) { return variables_.Value(handle); };
    request->table = [this](const TfNode& handle) { return variables_.Table(handle); };
    request->is_state = state_.Test();
    request->source_nodes = &source_nodes_;
    return ImportTf(*graph, *request, ops);
  }

  Result<TfFrozenGraph> Freeze(const ImportRequest& asked, const Shapes& shapes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const Signature* signature, Chosen(asked));
    ONCILLA_ASSIGN(TfGraph * graph, model_->Graph());
    return Frozen(*graph, asked, shapes, *signature, model_->folder(),
                  [this](const TfNode& handle) { return variables_.Value(handle); });
  }

  Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                   const std::shared_ptr<const OpSet>& ops) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (model_->init_op().empty()) return Module(Graph(ops));
    ONCILLA_ASSIGN(TfGraph * graph, model_->Graph());
    TfImportRequest request;
    request.targets = {model_->init_op()};
    request.variable = [this](const TfNode& handle) { return variables_.Value(handle); };
    request.table = [this](const TfNode& handle) { return variables_.Table(handle); };
    request.is_state = state_.Test();
    request.source_nodes = &source_nodes_;
    request.only_effects_on = [&](std::string_view name) {
      return std::find(resources.begin(), resources.end(), name) != resources.end();
    };
    auto module = ImportTf(*graph, request, ops);
    if (module.ok()) return module;
    return In(module.status(), StrCat("initialising by '", model_->init_op(), "'"));
  }

  Result<std::vector<TensorInfo>> Variables() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const TfGraph* graph, model_->Graph());
    return VariablesOf(*graph, /*saved=*/true);
  }

  Result<Tensor> VariableValue(std::string_view name) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const TfGraph* graph, model_->Graph());
    const int id = graph->main().Find(name);
    if (id < 0) return ModelSource::VariableValue(name);
    auto value = variables_.Value(graph->main().nodes[static_cast<size_t>(id)]);
    if (value.status().code() == Code::kNotFound) return ModelSource::VariableValue(name);
    return value.ok() ? value : In(value.status(), StrCat("variable '", name, "'"));
  }

  SourceNodes source_nodes() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return source_nodes_;
  }

  void NoteState(const std::vector<std::string>& resources) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.Add(resources);
  }

 private:
  // A function without a signature, with one or more traces.
  struct SavedFunction {
    std::vector<SavedTrace> traces;
    Signature common;
  };

  // The signature, or the trace of a function, that accepts these feeds.
  Result<const Signature*> Chosen(const ImportRequest& asked) const {
    auto found = ModelSource::FindSignature(asked.signature);
    if (found.ok()) return found;
    ONCILLA_ASSIGN(const SavedFunction* function, FindFunction(asked.signature, found.status()));
    if (function->traces.size() == 1) return &function->common;
    return ChooseTrace(function->common.key, function->traces, asked);
  }

  // Returns `unknown` if there is no function of this name.
  Result<const SavedFunction*> FindFunction(std::string_view key, Status unknown) const {
    if (const auto known = functions_.find(key); known != functions_.end()) return &known->second;
    ONCILLA_ASSIGN(const auto names, LibraryFunctions(key, std::move(unknown)));
    ONCILLA_ASSIGN(TfGraph * graph, model_->Graph());
    SavedFunction function;
    for (const std::string& name : names) {
      auto called =
          CallSavedFunction(*graph, model_->object_graph(), name,
                            [this](const std::string& of) { return variables_.Captures(of); });
      if (!called.ok()) return In(called.status(), StrCat("function '", key, "'"));
      function.traces.push_back(*std::move(called));
    }
    function.common = names.size() == 1 ? function.traces[0].signature
                                        : CommonSignature(std::string(key), function.traces);
    function.common.key = std::string(key);
    return &functions_.emplace(std::string(key), std::move(function)).first->second;
  }

  // The library functions that a key may refer to; `unknown`, with the names that exist, if there
  // are none.
  Result<std::vector<std::string>> LibraryFunctions(std::string_view key, Status unknown) const {
    ONCILLA_ASSIGN(TfGraph * graph, model_->Graph());
    SavedFunctions functions;
    ONCILLA_TRY(ReadWire(StrCat(model_->folder(), ": the object graph"),
                         [&] { functions = ReadSavedFunctions(model_->object_graph()); }));
    const auto named = functions.find(std::string(key));
    if (named != functions.end() && !named->second.empty()) return named->second;
    if (graph->HasFunction(key)) return std::vector<std::string>{std::string(key)};
    if (functions.empty()) return unknown;
    std::vector<std::string> names, shown;
    for (const auto& [name, traces] : functions) names.push_back(name);
    constexpr size_t kMostShown = 10;
    shown.assign(names.begin(),
                 names.begin() + static_cast<int64_t>(std::min(names.size(), kMostShown)));
    std::string text = StrCat(Message(unknown), "; functions: ", Listed(shown));
    if (shown.size() < names.size()) text += StrCat(" and ", names.size() - shown.size(), " more");
    if (!key.empty()) text += DidYouMean(key, names);
    return WithStage(Error(unknown.code(), text), Stage::kOptions);
  }

  mutable std::mutex mutex_;  // the readers below parse on demand
  std::unique_ptr<SavedModel> model_;
  mutable TfVariables variables_;
  mutable std::map<std::string, SavedFunction, std::less<>> functions_;
  StateNames state_;
  SourceNodes source_nodes_;
};

bool HasNoResult(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kOps = {
      "NoOp", "Assert", "Const", "Placeholder", "PlaceholderV2", "SaveV2", "Print", "PrintV2"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

// The nodes whose value is read, and those that a node with a value waits for, directly or through
// nodes without values. Old-style loops leave nodes that only control edges read: unused results,
// and the body's pivot.
std::unordered_set<std::string_view> FindRead(const TfGraph& graph) {
  std::unordered_set<std::string_view> read;
  std::unordered_map<std::string_view, const TfNode*>
      waiting;  // nodes without a value that wait for others
  std::vector<std::string_view> work;
  const auto add = [&](std::string_view name) {
    if (read.insert(name).second) work.push_back(name);
  };
  for (const TfNode& node : graph.main().nodes) {
    const bool value = !HasNoResult(node.op);
    if (!value) waiting.emplace(node.name, &node);
    for (const TfInput& input : node.inputs) {
      if (value || !input.control) add(input.node);
    }
  }
  while (!work.empty()) {
    const auto node = waiting.find(work.back());
    work.pop_back();
    if (node == waiting.end()) continue;
    for (const TfInput& input : node->second->inputs) add(input.node);
  }
  return read;
}

// A graph's inputs are its placeholders, except those that TensorFlow leaves behind when it writes
// old-style loops. Its outputs are the first outputs of nodes that no other node reads; further
// outputs are usually unread on purpose.
Signature InferSignature(const TfGraph& graph) {
  Signature signature;
  const std::unordered_set<std::string_view> read = FindRead(graph);
  for (const TfNode& node : graph.main().nodes) {
    TensorInfo info;
    info.source = info.name = std::string(node.name) + ":0";
    const TfAttrs attrs = graph.Attrs(node);
    const bool is_read = read.count(node.name) != 0;
    if (node.op.starts_with("Placeholder")) {
      if (!is_read && node.name.starts_with("unused_control_flow_input")) continue;
      info.dtype = attrs.Type("dtype").value_or(DType::kInvalid);
      if (auto shape = attrs.Shape("shape"); shape.ok()) info.shape = *std::move(shape);
      info.has_default = node.op == kWithDefault;
      signature.inputs.push_back(std::move(info));
    } else if (!is_read && !HasNoResult(node.op)) {
      signature.outputs.push_back(std::move(info));
    }
  }
  return signature;
}

class GraphDefSource : public TfSource {
 public:
  // The graph keeps its bytes alive.
  GraphDefSource(std::unique_ptr<TfGraph> graph, std::string name, size_t bytes,
                 std::shared_ptr<const MappedFile> file = nullptr)
      : graph_(std::move(graph)),
        file_(std::move(file)),
        name_(std::move(name)),
        bytes_(static_cast<int64_t>(bytes)),
        signature_(InferSignature(*graph_)) {}

  std::string_view format() const override { return "GraphDef"; }
  std::span<const Signature> signatures() const override { return {&signature_, 1}; }
  int64_t file_bytes() const override { return bytes_; }
  Files files() const override { return file_ == nullptr ? Files() : Files{file_}; }

  Result<Module> Import(const ImportRequest& asked,
                        const std::shared_ptr<const OpSet>& ops) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const Signature* signature, FindSignature(asked.signature));
    auto request = MakeRequest(asked, *signature, graph_->main());
    if (!request.ok()) return In(request.status(), name_);
    request->variable = NoValue;
    request->is_state = state_.Test();
    request->source_nodes = &source_nodes_;
    return ImportTf(*graph_, *request, ops);
  }

  Result<TfFrozenGraph> Freeze(const ImportRequest& asked, const Shapes& shapes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_ASSIGN(const Signature* signature, FindSignature(asked.signature));
    return Frozen(*graph_, asked, shapes, *signature, name_, NoValue);
  }

  Result<std::vector<TensorInfo>> Variables() const override {
    return VariablesOf(*graph_, /*saved=*/false);
  }

  SourceNodes source_nodes() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return source_nodes_;
  }

  void NoteState(const std::vector<std::string>& resources) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.Add(resources);
  }

 private:
  static Result<Tensor> NoValue(const TfNode&) {
    return Unsupported("the graph is not frozen: this variable's value is in a checkpoint");
  }

  mutable std::mutex mutex_;  // the graph parses functions on demand
  std::unique_ptr<TfGraph> graph_;
  const std::shared_ptr<const MappedFile> file_;  // null for bytes that are not views of a file
  const std::string name_;
  const int64_t bytes_;
  Signature signature_;
  StateNames state_;
  SourceNodes source_nodes_;
};

}  // namespace

Status TfSource::CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const {
  if (wanted.kind != ValueKind::kTensor || tensor.is_list()) return {};
  const std::string theirs = tf_messages::DoesNotFit(name, wanted, tensor);
  if (theirs.empty()) return {};
  return WithStage(InvalidArgument(theirs, "; input '", name, "' must be ", Plain(wanted), ", not ",
                                   tensor.desc()),
                   Stage::kOptions);
}

Status TfSource::NotFed(std::string_view name, const Fact& wanted) const {
  const std::string theirs =
      tf_messages::PlaceholderNotFed(name.substr(0, name.find(':')), wanted.dtype, wanted.shape);
  return WithStage(InvalidArgument(theirs, "; input '", name, "' (", Plain(wanted), ") is not fed"),
                   Stage::kOptions);
}

Result<std::unique_ptr<ModelSource>> OpenSavedModel(const std::string& folder,
                                                    std::span<const std::string> tags,
                                                    const std::string& file_name) {
  ONCILLA_ASSIGN(auto model, SavedModel::Open(folder, tags, file_name));
  return std::unique_ptr<ModelSource>(new SavedModelSource(std::move(model)));
}

Result<std::unique_ptr<ModelSource>> OpenGraphDef(std::shared_ptr<const MappedFile> file) {
  ONCILLA_ASSIGN(auto graph, TfGraph::Parse(file->text(), {}, file->path(), file));
  return std::unique_ptr<ModelSource>(
      new GraphDefSource(std::move(graph), file->path(), file->text().size(), file));
}

Result<std::unique_ptr<ModelSource>> OpenGraphDefBytes(std::shared_ptr<const std::string> bytes,
                                                       const std::string& name) {
  ONCILLA_ASSIGN(auto graph, TfGraph::Parse(*bytes, {}, name, bytes));
  return std::unique_ptr<ModelSource>(new GraphDefSource(std::move(graph), name, bytes->size()));
}

Result<std::unique_ptr<ModelSource>> OpenGraphDefText(std::shared_ptr<const MappedFile> file) {
  ONCILLA_ASSIGN(std::string converted,
                 TfTextToBytes(file->text(), TfFileKind::kGraphDef, file->path()));
  const auto bytes = std::make_shared<const std::string>(std::move(converted));
  ONCILLA_ASSIGN(auto graph, TfGraph::Parse(*bytes, {}, file->path(), bytes));
  return std::unique_ptr<ModelSource>(
      new GraphDefSource(std::move(graph), file->path(), file->text().size()));
}

}  // namespace oncilla
