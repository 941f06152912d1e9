// Loads a model: finds its file, reads its options, and completes the configuration.
#include "integrations/triton/src/model.h"

#include <algorithm>
#include <filesystem>

#include "integrations/triton/src/border.h"

namespace oncilla::triton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The names that a model may have in a version's folder; the folder may also be a SavedModel
// itself.
constexpr const char* kNames[] = {"model.onnx", "model.tflite",     "model.oncilla",
                                  "model.pb",   "model.savedmodel", "model.saved_model",
                                  "model"};

// The model of a version: the one that the configuration names, otherwise the only one in the
// folder.
std::string FindModel(const fs::path& folder, const std::string& named) {
  std::error_code error;
  if (!named.empty()) {
    if (fs::exists(folder / named, error)) return (folder / named).string();
    throw Failure(kNotFound, "oncilla: there is no '" + named + "' in " + folder.string());
  }
  std::vector<fs::path> found;
  for (const char* name : kNames) {
    if (fs::exists(folder / name, error)) found.push_back(folder / name);
  }
  if (fs::exists(folder / "saved_model.pb", error)) found.push_back(folder);
  if (found.size() == 1) return found[0].string();
  std::string names;
  for (const char* name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  if (found.empty()) {
    throw Failure(kNotFound, "oncilla: there is no model in " + folder.string() +
                                 "; looked for: " + names + ", saved_model.pb");
  }
  throw Failure(kInvalidArgument, "oncilla: there are several models in " + folder.string() + ": " +
                                      found[0].filename().string() + " and " +
                                      found[1].filename().string() +
                                      "; say which as default_model_filename");
}

json ConfigOf(TRITONBACKEND_Model* handle) {
  Message message;
  Check(TRITONBACKEND_ModelConfig(handle, 1, message.out()));
  json config = json::parse(message.json(), nullptr, false);
  if (!config.is_object()) throw Failure(kInternal, "oncilla: Triton's configuration is not JSON");
  return config;
}

}  // namespace

ServedModel::ServedModel(TRITONBACKEND_Model* handle, const Runtime& runtime) {
  const char* name = nullptr;
  uint64_t version = 0;
  Check(TRITONBACKEND_ModelName(handle, &name));
  Check(TRITONBACKEND_ModelVersion(handle, &version));
  label_ = "'" + std::string(name) + "' version " + std::to_string(version);
  TRITONBACKEND_ArtifactType type = kFiles;
  const char* location = nullptr;
  Check(TRITONBACKEND_ModelRepository(handle, &type, &location));
  if (type != kFiles) {
    throw Failure(kUnsupported, "oncilla: the model repository is not a folder of this machine");
  }
  json config = ConfigOf(handle);
  options_ = ReadOptions(config);
  Load(runtime, config,
       FindModel(fs::path(location) / std::to_string(version),
                 config.value("default_model_filename", "")));
  Configure(handle, std::move(config));
}

void ServedModel::Load(const Runtime& runtime, const json& config, const std::string& path) {
  SessionOptions session;
  if (!options_.devices.empty()) {
    session.device = options_.devices[0];
  } else if (IsForCpu(config)) {
    session.device = "cpu";  // otherwise weights would be uploaded for nothing
  }
  session.config = options_.session;
  // Allows all instances to run at once. If the options are given as a whole, they must set this
  // themselves.
  const int instances = InstanceCountOf(config);
  json fields =
      session.config.empty() ? json::object() : json::parse(session.config, nullptr, false);
  if (instances > 4 && fields.is_object() && !fields.contains("max_concurrent_runs")) {
    fields["max_concurrent_runs"] = instances;
    session.config = fields.dump();
  }
  session_ = Value(Session::Create(runtime, session));
  LoadOptions load;
  load.tags = Tags(options_.tags);
  // Compiles while loading, so that unsupported models fail now. This is possible for the default
  // signature only.
  if (options_.signature.empty()) load.load_policy = LoadPolicy::kEager;
  model_ = Value(session_->Load(path, load));
}

void ServedModel::Configure(TRITONBACKEND_Model* handle, json config) {
  const std::vector<TensorInfo> inputs = model_->inputs(options_.signature),
                                outputs = model_->outputs(options_.signature);
  if (inputs.empty() && outputs.empty()) {
    std::string keys;
    for (const std::string& key : model_->signatures())
      keys += (keys.empty() ? "'" : ", '") + key + "'";
    throw Failure(kInvalidArgument, "oncilla: the model has no signature '" + options_.signature +
                                        "'; give one as the parameter 'signature': " + keys);
  }
  bool complete = false;
  Check(TRITONBACKEND_ModelAutoCompleteConfig(handle, &complete));
  if (complete && Complete(config, inputs, outputs)) {
    const Message filled(config.dump());
    Check(TRITONBACKEND_ModelSetConfig(handle, 1, filled.get()));
    config = ConfigOf(handle);
  }
  CheckAgainst(config, inputs, outputs);
  batches_ = config.contains("max_batch_size") && NumberOf(config["max_batch_size"]) > 0;
  for (const TensorInfo& info : inputs) {
    if (IsScalar(info)) scalars_.insert(info.name);
  }
  std::string used;
  for (const SessionDevice& device : session_->Devices()) {
    if (device.preferred) used = device.driver_name;
  }
  Log(kInfo, "oncilla: loaded " + label_ + " on " + used);
}

std::string ServedModel::DeviceFor(TRITONSERVER_InstanceGroupKind kind,
                                   const std::string& instance) {
  const size_t number = instances_++;
  if (!options_.devices.empty()) return options_.devices[number % options_.devices.size()];
  if (kind == kKindGpu) {
    throw Failure(
        kInvalidArgument,
        "oncilla: instance '" + instance +
            "' is of KIND_GPU, which counts CUDA's devices "
            "and not those of OpenCL; say which device as the parameter 'device' (gpu:0)");
  }
  return kind == kKindCpu ? "cpu" : "";
}

void ServedModel::Close() {
  if (!session_) return;
  int64_t bytes = model_ ? Value(model_->Unload()) : 0;
  model_.reset();
  bytes += Value(session_->Close());
  session_.reset();
  Log(kInfo, "oncilla: unloaded " + label_ + ", " + std::to_string(bytes) + " bytes freed");
}

}  // namespace oncilla::triton
