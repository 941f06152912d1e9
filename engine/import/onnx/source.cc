// ONNX behind the ModelSource interface: names are resolved to tensors, then ImportOnnx runs.
#include "engine/import/onnx/source.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "engine/import/onnx/external.h"
#include "engine/import/onnx/import.h"
#include "engine/import/onnx/judge.h"
#include "engine/import/onnx/maps.h"
#include "engine/import/onnx/tensor.h"

namespace oncilla {
namespace {

constexpr int64_t kNewestOnnxIr = 14;  // of ONNX 1.23

TensorInfo InfoOf(const OnnxValueInfo& value) {
  TensorInfo info;
  info.name = info.source = std::string(value.name);
  switch (value.kind) {
    case OnnxKind::kTensor:
      break;
    case OnnxKind::kSequence:
      info.kind = TensorInfo::Kind::kSequence;
      break;
    case OnnxKind::kOptional:
      info.kind = TensorInfo::Kind::kOptional;
      break;
    case OnnxKind::kOptionalSequence:
      info.kind = TensorInfo::Kind::kOptionalSequence;
      break;
    default:
      return info;
  }
  info.dtype = DTypeFromOnnx(value.element_type);
  info.shape = value.shape;
  return info;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

class OnnxSource : public ModelSource {
 public:
  OnnxSource(std::shared_ptr<const MappedFile> file, OnnxModel model)
      : file_(std::move(file)),
        model_(std::move(model)),
        external_(file_->of_bytes() ? "" : FolderOf(file_->path())) {
    TellOnnxMapsAsTensors(model_, map_names_);
    const OnnxGraph& graph = model_.graph;
    // Before IR version 4 every initializer was listed as an input as well; it is that input's
    // default.
    std::unordered_set<std::string_view> initialized;
    for (const auto& [name, tensor] : graph.initializers) initialized.insert(name);
    for (const OnnxValueInfo& input : graph.inputs) {
      if (!initialized.contains(input.name)) signature_.inputs.push_back(InfoOf(input));
    }
    for (const OnnxValueInfo& output : graph.outputs) signature_.outputs.push_back(InfoOf(output));
    for (const auto* list : {&graph.inputs, &graph.outputs, &graph.values}) {
      for (const OnnxValueInfo& value : *list) stated_.emplace(value.name, &value);
    }
  }

  // Opens the files of large tensors now, since they belong to this model and may be replaced
  // later. Errors are reported by the readers of a tensor, except if the model has no folder.
  Status OpenExternal() {
    return ReadWire("an initializer", [&]() -> Status {
      for (const auto& [name, tensor] : model_.graph.initializers) {
        for (const std::string& location : OnnxExternalLocations(tensor)) {
          const Status opened = external_.Open(location).status();
          if (file_->of_bytes()) return In(opened, StrCat("initializer '", name, "'"));
        }
      }
      return {};
    });
  }

  std::string_view format() const override { return "ONNX"; }
  std::span<const Signature> signatures() const override { return {&signature_, 1}; }
  int64_t file_bytes() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(file_->text().size()) + external_.bytes();
  }

  Result<Module> Import(const ImportRequest& asked,
                        const std::shared_ptr<const OpSet>& ops) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_TRY(FindSignature(asked.signature).status());
    auto request = MakeRequest(asked);
    if (!request.ok()) return In(request.status(), file_->path());
    ONCILLA_TRY(file_->CheckUnchanged());
    OnnxContext context;
    context.read_tensor = [this](const OnnxTensorData& data) { return ReadTensor(data); };
    auto module = ImportOnnx(model_, *request, context, ops);
    if (module.ok()) return module;
    return WithStage(In(module.status(), file_->path()), Stage::kLoad);
  }

  Result<std::vector<NodeJudgement>> JudgeNodes(
      const std::shared_ptr<const OpSet>& ops) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONCILLA_TRY(file_->CheckUnchanged());
    OnnxContext context;
    context.read_tensor = [this](const OnnxTensorData& data) { return ReadTensor(data); };
    std::unordered_map<std::string_view, TensorInfo> stated;
    for (const auto& [name, value] : stated_) stated.emplace(name, InfoOf(*value));
    auto judged = JudgeOnnxNodes(model_, signature_.inputs, stated, context, ops);
    if (judged.ok()) return judged;
    return WithStage(In(judged.status(), file_->path()), Stage::kLoad);
  }

  Files files() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Files all = {file_};
    external_.AddTo(all);
    return all;
  }

 private:
  Result<Tensor> ReadTensor(const OnnxTensorData& data) const {
    const OnnxExternalReader external = [this](const OnnxExternalData& part,
                                               const TensorDesc& desc) {
      return external_.Read(part, desc);
    };
    Tensor value;
    ONCILLA_TRY(ReadWire("a tensor", [&]() -> Status {
      if (data.sparse) {
        ONCILLA_ASSIGN(value, DenseFromOnnx(data.message, external));
        return {};
      }
      ONCILLA_ASSIGN(OnnxTensor tensor, TensorFromOnnx(data.message, file_, external));
      value = std::move(tensor.value);
      return {};
    }));
    return value;
  }

  // Whether any tensor in the graph has this name.
  bool Exists(std::string_view name) const {
    if (stated_.contains(name)) return true;
    for (const auto& [initializer, tensor] : model_.graph.initializers) {
      if (initializer == name) return true;
    }
    for (const OnnxNode& node : model_.graph.nodes) {
      for (std::string_view output : node.outputs) {
        if (output == name && !name.empty()) return true;
      }
    }
    return false;
  }

  Result<OnnxImportRequest> MakeRequest(const ImportRequest& asked) const {
    OnnxImportRequest request;
    ONCILLA_TRY(CheckNoTargets(asked, format()));
    request.only_needed_inputs = asked.feeds.empty();
    if (asked.fed.size() == asked.feeds.size()) request.fed = asked.fed;
    if (asked.feeds.empty()) request.inputs = signature_.inputs;
    for (const std::string& name : asked.feeds) {
      if (!Exists(name)) return NoSuchTensor("input", name, NamesOf(signature_.inputs));
      const auto it = stated_.find(name);
      TensorInfo info;
      if (it != stated_.end()) {
        info = InfoOf(*it->second);
      } else {
        info.name = info.source = name;
      }
      request.inputs.push_back(std::move(info));
    }
    request.outputs = asked.fetches;
    if (asked.fetches.empty()) {
      for (const TensorInfo& output : signature_.outputs) request.outputs.push_back(output.name);
    }
    for (const std::string& name : request.outputs) {
      if (!Exists(name)) return NoSuchTensor("output", name, NamesOf(signature_.outputs));
    }
    if (request.outputs.empty()) return InvalidArgument("the model has no outputs");
    return request;
  }

  mutable std::mutex mutex_;  // guards external_, since tensors of subgraphs may open files later
  std::shared_ptr<const MappedFile> file_;
  std::deque<std::string> map_names_;  // names of maps, where the file does not contain them
  OnnxModel model_;
  mutable OnnxExternalFiles external_;  // opened files are kept
  Signature signature_;
  std::unordered_map<std::string_view, const OnnxValueInfo*> stated_;
};

}  // namespace

Result<std::unique_ptr<ModelSource>> OpenOnnx(std::shared_ptr<const MappedFile> file) {
  auto model = ReadOnnxModel(file->text(), file->path());
  if (!model.ok()) return WithStage(model.status(), Stage::kFile);
  const std::string path = file->path();
  // It is unknown what a newer version changed in the meaning of a file.
  if (model->ir_version > kNewestOnnxIr) {
    const Status status = Unsupported("ONNX's IR version ", model->ir_version,
                                      "; the newest that is known is ", kNewestOnnxIr);
    return WithStage(In(status, path), Stage::kFile);
  }
  auto source = std::make_unique<OnnxSource>(std::move(file), *std::move(model));
  ONCILLA_TRY(In(source->OpenExternal(), path));
  return std::unique_ptr<ModelSource>(std::move(source));
}

}  // namespace oncilla
