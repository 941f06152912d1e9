// Loads a version, checks requests against its signature, and runs them.
#include "server/model/served_model.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "absl/strings/str_join.h"
#include "server/core/classification.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"
#include "server/model/states.h"

namespace oncilla::server {
namespace {

// "/job:localhost/../device:GPU:0" as "GPU:0".
std::string ShortName(const std::string& device) {
  return device.substr(device.rfind("device:") + 7);
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string NamesOf(const std::vector<TensorMetadata>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const TensorMetadata& t) {
    StrAppend(out, "'", t.name, "'");
  });
}

absl::Status ReadTensors(const std::vector<TensorInfo>& infos, std::string_view what,
                         std::vector<TensorMetadata>& tensors) {
  for (const TensorInfo& info : infos) {
    const std::string_view datatype = DatatypeOf(info.dtype);
    if (info.kind != ONCILLA_KIND_TENSOR || datatype.empty()) {
      return absl::UnimplementedError(
          StrCat(what, " '", info.name, "' is ",
                 info.kind != ONCILLA_KIND_TENSOR ? "no tensor" : "of a type",
                 " that the inference protocol cannot carry"));
    }
    tensors.push_back({info.name, std::string(datatype),
                       info.ranked ? info.dims : std::vector<int64_t>{-1}, info.ranked});
  }
  return absl::OkStatus();
}

// A graph without a signature does not state the types of its outputs. They are determined by a run
// on zeros, with one element for every open size.
absl::Status FindOutputTypes(const Model& model, const std::string& signature,
                             std::vector<TensorInfo>& outputs) {
  const bool known = std::all_of(outputs.begin(), outputs.end(), [](const TensorInfo& info) {
    return info.kind != ONCILLA_KIND_TENSOR || info.dtype != 0;
  });
  if (known) return absl::OkStatus();
  Model::Inputs zeros;
  for (const TensorInfo& info : model.inputs(signature)) {
    std::vector<int64_t> shape = info.ranked ? info.dims : std::vector<int64_t>();
    for (int64_t& size : shape) size = std::max<int64_t>(size, 1);
    const auto elements = ElementsOf(info.name, shape);
    constexpr size_t kMostElements = size_t{1} << 26;
    if (!elements.ok() || *elements > kMostElements)
      return absl::ResourceExhaustedError(StrCat("input '", info.name, "' is too large to try"));
    auto tensor = ZeroTensor(info.name, info.dtype, shape);
    if (!tensor.ok()) return tensor.status();
    zeros.emplace_back(info.name, *std::move(tensor));
  }
  RunOptions options;
  options.signature = signature;
  const auto result = model.Run(zeros, options);
  if (!result.ok()) {
    return FromEngine(result.status(),
                      "the types of the outputs are told by a run alone, and one on zeros failed");
  }
  for (TensorInfo& info : outputs) info.dtype = (*result)[info.name].dtype();
  return absl::OkStatus();
}

const TensorMetadata* Find(const std::vector<TensorMetadata>& tensors, const std::string& name) {
  for (const TensorMetadata& t : tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

absl::Status CheckInput(const TensorMetadata& declared, const Tensor& tensor) {
  const std::string_view datatype = DatatypeOf(tensor.dtype());
  if (datatype != declared.datatype) {
    return absl::InvalidArgumentError(StrCat("input '", declared.name, "' is ", datatype,
                                             "; the model takes ", declared.datatype));
  }
  if (!declared.ranked) return absl::OkStatus();
  const std::vector<int64_t> dims = tensor.dims();
  bool fits = dims.size() == declared.shape.size();
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = declared.shape[i] < 0 || declared.shape[i] == dims[i];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("input '", declared.name, "' has the shape ",
                                           ShapeText(dims), "; the model takes ",
                                           ShapeText(declared.shape)));
}

// The device of the session. If all instances name a device, it is the first one that is not the
// CPU, since a session on the CPU uses no other devices.
std::string SessionDeviceOf(const ServedModel::Source& source) {
  const ModelConfig& config = source.config;
  if (!config.device.empty()) return config.device;
  std::string other;
  for (const InstanceGroup& group : config.instances) {
    if (group.device.empty()) return source.device;
    std::string name = group.device;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool cpu = name.starts_with("cpu") || name.find("device:cpu") != std::string::npos ||
                     name.starts_with("/cpu");
    if (!cpu && other.empty()) other = group.device;
  }
  return other.empty() ? source.device : other;
}

absl::Status Classify(InferResponse& response, bool rows) {
  for (InferOutput& output : response.outputs) {
    if (output.classes == 0) continue;
    auto classes = Classified(output.name, output.tensor, output.classes, rows);
    if (!classes.ok()) return classes.status();
    output.tensor = *std::move(classes);
  }
  return absl::OkStatus();
}

}  // namespace

ServedModel::ServedModel(Session session, Model model, const Source& source,
                         std::shared_ptr<Promises> promises)
    : files_(source.files),
      session_(std::move(session)),
      model_(std::move(model)),
      config_(source.config),
      version_(source.version),
      promises_(std::move(promises)) {
  metadata_.name = source.name;
  metadata_.platform = "oncilla";
}

ServedModel::~ServedModel() { Close(Clock::now()); }

absl::StatusOr<std::shared_ptr<ServedModel>> ServedModel::Load(const Runtime& runtime,
                                                               const Source& source,
                                                               std::shared_ptr<Promises> promises,
                                                               LoadInterrupt* interrupt) {
  auto loaded = LoadWatched(runtime, source, std::move(promises), interrupt);
  if (interrupt->Finish()) return absl::AbortedError("the load was interrupted");
  return loaded;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ServedModel::LoadWatched(
    const Runtime& runtime, const Source& source, std::shared_ptr<Promises> promises,
    LoadInterrupt* interrupt) {
  const ModelConfig& config = source.config;
  SessionOptions options;
  options.device = SessionDeviceOf(source);
  options.memory_limit_bytes = config.memory_limit_bytes;
  options.config = SessionConfig(config);
  auto session = Session::Create(runtime, options);
  if (!session.ok()) return FromEngine(session.status());
  interrupt->Watch(*session);
  LoadOptions load;
  load.tags = Tags(config.tags);
  if (config.signature.empty()) load.load_policy = LoadPolicy::kEager;
  auto loaded = session->Load(source.path, load);
  if (!loaded.ok()) return FromEngine(loaded.status());
  std::shared_ptr<ServedModel> model(
      new ServedModel(*session, *std::move(loaded), source, std::move(promises)));
  for (const auto& check :
       {&ServedModel::ReadSignature, &ServedModel::ReadStates, &ServedModel::CheckBatching,
        &ServedModel::CheckDeclared, &ServedModel::PrepareLargest, &ServedModel::CountPlacement}) {
    const absl::Status status = (model.get()->*check)();
    if (!status.ok()) return status;
  }
  BatcherOptions batching;
  batching.max_rows = std::max<int64_t>(config.max_batch, 1);
  batching.max_delay = std::chrono::microseconds(config.max_delay_us);
  batching.max_waiting = static_cast<size_t>(config.queue_size);
  batching.instances = config.instances;
  batching.timeout = std::chrono::milliseconds(config.timeout_ms);
  batching.sequences = model->sequences_;
  auto* self = model.get();
  model->batcher_ = std::make_unique<Batcher>(
      batching,
      [self](const std::string& device, const Batcher::Inputs& inputs,
             const std::vector<std::string>& outputs, int64_t timeout_ms,
             const Cancellation& cancellation) {
        return self->Run(device, inputs, outputs, timeout_ms, cancellation);
      },
      &model->statistics_);
  return model;
}

absl::Status ServedModel::ReadSignature() {
  const std::vector<std::string> keys = model_.signatures();
  const std::string wanted = config_.signature.empty() ? "serving_default" : config_.signature;
  const bool only = config_.signature.empty() && keys.size() == 1;
  if (!only && std::find(keys.begin(), keys.end(), wanted) == keys.end()) {
    return absl::NotFoundError(StrCat("there is no signature '", wanted,
                                      "'; there are: ", absl::StrJoin(keys, ", "),
                                      " (signature in config.yaml chooses one)"));
  }
  const absl::Status inputs =
      ReadTensors(model_.inputs(config_.signature), "input", metadata_.inputs);
  if (!inputs.ok()) return inputs;
  std::vector<TensorInfo> outputs = model_.outputs(config_.signature);
  const bool untyped = std::any_of(outputs.begin(), outputs.end(), [](const TensorInfo& info) {
    return info.kind == ONCILLA_KIND_TENSOR && info.dtype == 0;
  });
  if (untyped && config_.sequences && !config_.sequences->variables.empty()) {
    return absl::UnimplementedError(
        "variables of sequences need a model with a signature: the types of the outputs are told "
        "by a run alone, which would change the variables' first values");
  }
  const absl::Status typed = FindOutputTypes(model_, config_.signature, outputs);
  if (!typed.ok()) return typed;
  return ReadTensors(outputs, "output", metadata_.outputs);
}

absl::Status ServedModel::ReadStates() {
  if (!config_.sequences) return absl::OkStatus();
  auto found = FindStates(config_, metadata_);
  if (!found.ok()) return found.status();
  sequences_ = *std::move(found);
  const absl::Status variables = FindVariables(config_, metadata_, model_, *sequences_);
  if (!variables.ok()) return variables;
  auto controls = FindControls(config_, metadata_);
  if (controls.ok()) controls_ = *std::move(controls);
  return controls.status();
}

absl::Status ServedModel::CheckBatching() {
  if (!joins()) return absl::OkStatus();
  for (const auto& [what, tensors] :
       {std::pair{"input", &metadata_.inputs}, std::pair{"output", &metadata_.outputs}}) {
    for (const TensorMetadata& t : *tensors) {
      if (t.ranked && !t.shape.empty() && t.shape[0] < 0) continue;
      return absl::InvalidArgumentError(StrCat(
          "config.yaml: max_batch needs an open first axis in all inputs and outputs, and ", what,
          " '", t.name, "' has the shape ", t.ranked ? ShapeText(t.shape) : "of unknown rank"));
    }
  }
  if (metadata_.inputs.empty())
    return absl::InvalidArgumentError("config.yaml: max_batch needs inputs");
  return absl::OkStatus();
}

// Checks the inputs and outputs that the configuration declares against the model's.
absl::Status ServedModel::CheckDeclared() {
  for (const auto& [what, declared, tensors] :
       {std::tuple{"input", &config_.inputs, &metadata_.inputs},
        std::tuple{"output", &config_.outputs, &metadata_.outputs}}) {
    for (const DeclaredTensor& d : *declared) {
      const TensorMetadata* own = Find(*tensors, d.name);
      if (own == nullptr) {
        return absl::InvalidArgumentError(StrCat("the configuration has the ", what, " '", d.name,
                                                 "'; the model has ", NamesOf(*tensors)));
      }
      const std::string type = ConfigTypeOf(own->datatype);
      const std::vector<int64_t> dims(own->shape.begin() + (joins() ? 1 : 0), own->shape.end());
      if (d.data_type == type && d.dims == dims) continue;
      return absl::InvalidArgumentError(StrCat(
          "the configuration has the ", what, " '", d.name, "' as ", d.data_type, ShapeText(d.dims),
          joins() ? " without the batch's axis" : "", "; the model's is ", type, ShapeText(dims)));
    }
  }
  return absl::OkStatus();
}

// Plans the largest batch if nothing but the first axis is open. The examples are zeros; a failure
// because the model does not accept zeros is ignored.
absl::Status ServedModel::PrepareLargest() {
  Model::Inputs examples;
  for (const TensorMetadata& t : metadata_.inputs) {
    std::vector<int64_t> shape = t.shape;
    if (!shape.empty() && shape[0] < 0) shape[0] = std::max<int64_t>(config_.max_batch, 1);
    const bool open =
        std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
    const auto elements = open ? absl::InvalidArgumentError("") : ElementsOf(t.name, shape);
    constexpr size_t kMostBytes = size_t{1} << 31;
    if (!t.ranked || !elements.ok() || t.datatype == "BYTES" || *elements > kMostBytes / 8)
      return absl::OkStatus();
    auto example = ZeroTensor(t.name, *DtypeOf(t.datatype), shape);
    if (!example.ok()) return example.status();
    examples.emplace_back(t.name, *std::move(example));
  }
  for (const StateTensor& state : sequences_ ? sequences_->states : std::vector<StateTensor>()) {
    if (state.variable) continue;
    std::vector<int64_t> shape = state.initial.dims();
    if (joins()) shape[0] = config_.max_batch;
    auto example = ZeroTensor(state.input, state.initial.dtype(), shape);
    if (!example.ok()) return example.status();
    examples.emplace_back(state.input, *std::move(example));
  }
  for (const ControlTensor& control : controls_) {
    std::vector<int64_t> shape = control.shape;
    if (joins()) shape[0] = config_.max_batch;
    auto example = ZeroTensor(control.input, control.dtype, shape);
    if (!example.ok()) return example.status();
    examples.emplace_back(control.input, *std::move(example));
  }
  for (const InstanceGroup& group : config_.instances) {
    PrepareOptions options;
    options.signature = config_.signature;
    options.device = group.device;
    const absl::Status status = FromEngine(model_.Prepare(examples, options));
    const bool final = status.code() == absl::StatusCode::kResourceExhausted ||
                       status.code() == absl::StatusCode::kUnimplemented ||
                       status.code() == absl::StatusCode::kNotFound;
    if (final) return status;
  }
  int most = 0;
  for (const InstanceGroup& group : config_.instances) most = std::max(most, group.count);
  return promises_->Make(this, session_, std::max<int64_t>(config_.max_batch, 1), most);
}

// Counts the nodes of each device, from lines of the report: "NODE (OP): DEVICE  REASON".
absl::Status ServedModel::CountPlacement() {
  for (const InstanceGroup& group : config_.instances) {
    const auto text = model_.Placement(config_.signature, group.device);
    if (!text.ok()) return FromEngine(text.status());
    for (const SessionDevice& device : session_.Devices()) {
      const std::string mark = StrCat("): ", device.name, "  ");
      int64_t nodes = 0;
      for (size_t at = text->find(mark); at != std::string::npos; at = text->find(mark, at + 1))
        ++nodes;
      if (nodes > 0) placement_[ShortName(device.name)] += nodes;
    }
  }
  return absl::OkStatus();
}

// Orders the inputs as in the signature, and fills in the names of all outputs.
absl::Status ServedModel::CheckRequest(InferRequest& request) const {
  std::vector<NamedTensor> ordered;
  for (const TensorMetadata& declared : metadata_.inputs) {
    size_t given = 0;
    for (NamedTensor& input : request.inputs) {
      if (input.name != declared.name) continue;
      if (++given > 1)
        return absl::InvalidArgumentError(StrCat("input '", input.name, "' is given twice"));
      const absl::Status status = CheckInput(declared, input.tensor);
      if (!status.ok()) return status;
      ordered.push_back(input);
    }
    if (given == 0) {
      return absl::InvalidArgumentError(StrCat(
          "input '", declared.name, "' is missing; the model takes ", NamesOf(metadata_.inputs)));
    }
  }
  for (const NamedTensor& input : request.inputs) {
    if (Find(metadata_.inputs, input.name) != nullptr) continue;
    return absl::InvalidArgumentError(StrCat("there is no input '", input.name,
                                             "'; the model takes ", NamesOf(metadata_.inputs)));
  }
  request.inputs = std::move(ordered);
  if (request.outputs.empty()) {
    for (const TensorMetadata& t : metadata_.outputs) {
      request.outputs.push_back({t.name, request.binary_outputs, 0, std::nullopt});
    }
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const std::string& name = request.outputs[i].name;
    if (Find(metadata_.outputs, name) == nullptr) {
      return absl::InvalidArgumentError(
          StrCat("there is no output '", name, "'; the model has ", NamesOf(metadata_.outputs)));
    }
    for (size_t j = 0; j < i; ++j) {
      if (request.outputs[j].name == name) {
        return absl::InvalidArgumentError(StrCat("output '", name, "' is asked for twice"));
      }
    }
  }
  return absl::OkStatus();
}

// Replaces a priority of 0 by the model's default.
absl::Status ServedModel::CheckPriority(InferRequest& request) const {
  const auto levels = static_cast<uint64_t>(config_.priority_levels);
  if (request.priority == 0) request.priority = static_cast<uint64_t>(config_.default_priority);
  if (request.priority <= levels) return absl::OkStatus();
  if (levels == 0) {
    return absl::InvalidArgumentError(StrCat("the request has the priority ", request.priority,
                                             "; the model has no priorities (priority_levels in "
                                             "config.yaml)"));
  }
  return absl::InvalidArgumentError(StrCat("the request has the priority ", request.priority,
                                           "; the model has 1, the highest, to ", levels));
}

absl::Status ServedModel::CheckRows(const InferRequest& request, int64_t& rows) const {
  rows = 1;
  if (!joins()) return absl::OkStatus();
  rows = request.inputs[0].tensor.dims()[0];
  if (sequences_ && rows != 1) {
    return absl::InvalidArgumentError(
        StrCat("the request has ", rows, " rows; a request of a sequence has one"));
  }
  for (const NamedTensor& input : request.inputs) {
    const int64_t own = input.tensor.dims()[0];
    if (own == rows && rows >= 1 && rows <= config_.max_batch) continue;
    return absl::InvalidArgumentError(StrCat("input '", input.name, "' has ", own,
                                             " rows; the model takes batches of 1 to ",
                                             config_.max_batch, ", of one size in all inputs"));
  }
  return absl::OkStatus();
}

std::shared_ptr<Job> ServedModel::Submit(InferRequest request, InferDone done) {
  absl::Status status = CheckRequest(request);
  int64_t rows = 1;
  if (status.ok()) status = CheckPriority(request);
  if (status.ok()) status = CheckRows(request, rows);
  if (status.ok()) status = AddControls(controls_, request);
  if (!status.ok()) {
    statistics_.RequestDone(status, std::chrono::nanoseconds(0), std::chrono::nanoseconds(0));
    done(status);
    return nullptr;
  }
  std::string key;
  for (const NamedTensor& input : request.inputs) {
    std::vector<int64_t> shape = input.tensor.dims();
    if (joins()) shape.erase(shape.begin());
    StrAppend(&key, ShapeText(shape));
  }
  for (const WantedOutput& output : request.outputs) StrAppend(&key, "|", output.name);
  std::string id = request.id;
  const auto job = std::make_shared<Job>(
      std::move(request), rows, std::move(key),
      [name = metadata_.name, version = version_, id = std::move(id), rows = joins(),
       done = std::move(done)](absl::StatusOr<InferResponse> outcome) {
        if (outcome.ok()) {
          const absl::Status classified = Classify(*outcome, rows);
          if (!classified.ok()) return done(classified);
          outcome->model = name;
          outcome->version = version;
          outcome->id = id;
        }
        done(std::move(outcome));
      });
  batcher_->Submit(job);
  return job;
}

absl::StatusOr<std::vector<Tensor>> ServedModel::Run(const std::string& device,
                                                     const Batcher::Inputs& inputs,
                                                     const std::vector<std::string>& outputs,
                                                     int64_t timeout_ms,
                                                     const Cancellation& cancellation) const {
  const auto variable = [](const std::string& name) { return name.starts_with(kVariableKey); };
  Model::Inputs fed;
  for (const auto& [name, tensor] : inputs) {
    if (!variable(name)) {
      fed.emplace_back(name, tensor);
      continue;
    }
    const Status assigned = model_.AssignVariable(name.substr(kVariableKey.size()), tensor);
    if (!assigned.ok()) return FromEngine(assigned);
  }
  RunOptions options;
  options.signature = config_.signature;
  for (const std::string& name : outputs)
    if (!variable(name)) options.outputs.push_back(name);
  options.timeout_ms = timeout_ms;
  options.device = device;
  options.cancellation = cancellation;
  const auto result = model_.Run(fed, options);
  if (!result.ok()) return FromEngine(result.status());
  std::vector<Tensor> tensors;
  for (const std::string& name : outputs) {
    auto tensor = variable(name) ? model_.ReadVariable(name.substr(kVariableKey.size()))
                                 : (*result)[name].Share();  // drops the other outputs
    if (!tensor.ok()) return FromEngine(tensor.status(), StrCat("'", name, "'"));
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

void ServedModel::Close(Clock::time_point deadline) {
  if (batcher_ != nullptr) batcher_->Close(deadline);
  (void)session_.CloseWithin(/*cancel=*/true).ok();
  promises_->End(this);
}

std::vector<DeviceUse> ServedModel::memory() const {
  std::vector<DeviceUse> uses;
  for (const SessionDevice& device : session_.Devices()) {
    if (!device.in_use) continue;
    const auto info = session_.MemoryInfo(device.name);
    if (!info.ok()) continue;
    uses.push_back(
        {ShortName(device.name), info->in_use_bytes, info->pool_bytes, info->limit_bytes});
  }
  return uses;
}

}  // namespace oncilla::server
