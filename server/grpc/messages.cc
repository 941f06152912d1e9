// Validates and reads requests, and writes replies.
#include "server/grpc/messages.h"

#include "server/core/parameters.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status Unsigned(const Parameters& parameters, const char* key, uint64_t& value) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absl::OkStatus();
  const inference::InferParameter& parameter = found->second;
  if (parameter.has_uint64_param()) {
    value = parameter.uint64_param();
  } else if (parameter.has_int64_param() && parameter.int64_param() >= 0) {
    value = static_cast<uint64_t>(parameter.int64_param());
  } else {
    return Bad(StrCat("the parameter '", key, "' must be a whole number, not negative"));
  }
  return absl::OkStatus();
}

absl::Status Flag(const Parameters& parameters, const char* key, bool& value) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absl::OkStatus();
  if (!found->second.has_bool_param())
    return Bad(StrCat("the parameter '", key, "' must be true or false"));
  value = found->second.bool_param();
  return absl::OkStatus();
}

absl::Status SequenceParameters(const Parameters& parameters, SequenceMark& mark) {
  const auto id = parameters.find("sequence_id");
  if (id != parameters.end() && id->second.has_string_param()) {
    auto text = SequenceId(id->second.string_param());
    if (!text.ok()) return text.status();
    mark.id = *std::move(text);
  } else {
    uint64_t number = 0;
    if (!Unsigned(parameters, "sequence_id", number).ok()) return BadSequenceId();
    mark.id = SequenceId(number);
  }
  absl::Status status = Flag(parameters, "sequence_start", mark.start);
  if (status.ok()) status = Flag(parameters, "sequence_end", mark.end);
  if (!status.ok()) return status;
  return CheckSequence(mark);
}

absl::Status MemoryParameters(const Parameters& parameters, std::optional<MemoryTarget>& target) {
  const auto region = parameters.find("shared_memory_region");
  if (region == parameters.end()) return absl::OkStatus();
  if (!region->second.has_string_param())
    return Bad("the parameter 'shared_memory_region' must be a text");
  MemoryTarget memory;
  memory.region = region->second.string_param();
  absl::Status status = Unsigned(parameters, "shared_memory_offset", memory.offset);
  if (status.ok()) status = Unsigned(parameters, "shared_memory_byte_size", memory.bytes);
  if (status.ok()) target = std::move(memory);
  return status;
}

// The elements of a field as bytes of a type that may be narrower than the field's.
template <class T, class Field>
absl::StatusOr<Tensor> FromField(const TensorSpec& spec, const Field& field) {
  std::string bytes;
  for (const auto value : field) {
    const auto narrow = static_cast<T>(value);
    if (static_cast<decltype(value)>(narrow) != value && value == value) {  // not NaN
      return Bad(StrCat("input '", spec.name, "' has an element that is not ", spec.datatype));
    }
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  }
  return TensorFromRaw(spec, bytes);
}

absl::StatusOr<Tensor> FromContents(const TensorSpec& spec,
                                    const inference::InferTensorContents& contents) {
  const auto dtype = DtypeOf(spec.datatype);
  if (!dtype.ok()) return dtype.status();
  switch (*dtype) {
    case ONCILLA_BOOL:
      return FromField<bool>(spec, contents.bool_contents());
    case ONCILLA_INT8:
      return FromField<int8_t>(spec, contents.int_contents());
    case ONCILLA_INT16:
      return FromField<int16_t>(spec, contents.int_contents());
    case ONCILLA_INT32:
      return FromField<int32_t>(spec, contents.int_contents());
    case ONCILLA_INT64:
      return FromField<int64_t>(spec, contents.int64_contents());
    case ONCILLA_UINT8:
      return FromField<uint8_t>(spec, contents.uint_contents());
    case ONCILLA_UINT16:
      return FromField<uint16_t>(spec, contents.uint_contents());
    case ONCILLA_UINT32:
      return FromField<uint32_t>(spec, contents.uint_contents());
    case ONCILLA_UINT64:
      return FromField<uint64_t>(spec, contents.uint64_contents());
    case ONCILLA_FLOAT32:
      return FromField<float>(spec, contents.fp32_contents());
    case ONCILLA_FLOAT64:
      return FromField<double>(spec, contents.fp64_contents());
    case ONCILLA_STRING:
      return TensorFromStrings(
          spec, {contents.bytes_contents().begin(), contents.bytes_contents().end()});
    default:
      return Bad(StrCat("input '", spec.name, "' is ", spec.datatype,
                        ", which goes into raw_input_contents"));
  }
}

// Reads one input; `raw` counts the elements of raw_input_contents that were used.
absl::StatusOr<NamedTensor> ReadInput(const inference::ModelInferRequest& message,
                                      const inference::ModelInferRequest::InferInputTensor& input,
                                      int& raw, const SharedMemory& memory) {
  const TensorSpec spec{
      input.name(), input.datatype(), {input.shape().begin(), input.shape().end()}};
  std::optional<MemoryTarget> source;
  const absl::Status status = MemoryParameters(input.parameters(), source);
  if (!status.ok()) return status;
  absl::StatusOr<Tensor> tensor = Bad("");
  if (input.has_contents() && (source || message.raw_input_contents_size() > 0)) {
    return Bad(StrCat("input '", spec.name, "' has contents, and bytes elsewhere besides"));
  }
  if (source) {
    const auto bytes = memory.Read(*source);
    if (!bytes.ok()) return bytes.status();
    tensor = TensorFromRaw(spec, *bytes);
  } else if (message.raw_input_contents_size() > 0) {
    if (raw == message.raw_input_contents_size()) {
      return Bad("there are more inputs than elements of raw_input_contents");
    }
    tensor = TensorFromRaw(spec, message.raw_input_contents(raw++));
  } else {
    tensor = FromContents(spec, input.contents());
  }
  if (!tensor.ok()) return tensor.status();
  return NamedTensor{spec.name, *std::move(tensor)};
}

void SetDuration(const DurationCount& duration, inference::StatisticDuration* message) {
  message->set_count(duration.count);
  message->set_ns(duration.ns);
}

void SetTensor(const TensorMetadata& tensor,
               inference::ModelMetadataResponse::TensorMetadata* message) {
  message->set_name(tensor.name);
  message->set_datatype(tensor.datatype);
  for (const int64_t size : tensor.shape) message->add_shape(size);
}

inference::DataType ConfigType(const std::string& name) {
  inference::DataType type = inference::TYPE_INVALID;
  inference::DataType_Parse(name, &type);
  return type;
}

void SetControl(const DeclaredControl& control,
                inference::ModelSequenceBatching::ControlInput* message) {
  message->set_name(control.name);
  auto* out = message->add_control();
  // Both have the protocol's order.
  out->set_kind(static_cast<inference::ModelSequenceBatching::Control::Kind>(control.kind));
  if (control.kind == ControlKind::kId) return out->set_data_type(ConfigType(control.data_type));
  for (const double value : {control.no, control.yes}) {
    if (control.data_type == "TYPE_BOOL")
      out->add_bool_false_true(value != 0);
    else if (control.data_type == "TYPE_INT32")
      out->add_int32_false_true(static_cast<int32_t>(value));
    else
      out->add_fp32_false_true(static_cast<float>(value));
  }
}

void SetSequences(const ModelConfig& config, inference::ModelSequenceBatching* message) {
  const SequenceBatching& sequences = *config.sequences;
  message->set_max_sequence_idle_microseconds(static_cast<uint64_t>(sequences.max_idle_us));
  auto* oldest = message->mutable_oldest();
  oldest->set_max_candidate_sequences(static_cast<int32_t>(sequences.max_sequences));
  oldest->set_max_queue_delay_microseconds(static_cast<uint64_t>(config.max_delay_us));
  for (const DeclaredControl& control : sequences.controls)
    SetControl(control, message->add_control_input());
  for (const DeclaredState& state : sequences.state) {
    auto* out = message->add_state();
    out->set_input_name(state.input_name);
    out->set_output_name(state.output_name);
    out->set_data_type(ConfigType(state.data_type));
    for (const int64_t size : *state.dims) out->add_dims(size);
    if (!state.initial_dims) continue;
    auto* initial = out->add_initial_state();
    initial->set_data_type(ConfigType(state.data_type));
    initial->set_zero_data(true);
    for (const int64_t size : *state.initial_dims) initial->add_dims(size);
  }
}

// The shape is without the batch axis if requests are joined along it, as clients expect.
template <class Message>
void SetConfigTensor(const TensorMetadata& tensor, bool joins, Message* message) {
  message->set_name(tensor.name);
  message->set_data_type(ConfigType(ConfigTypeOf(tensor.datatype)));
  for (size_t i = joins ? 1 : 0; i < tensor.shape.size(); ++i) message->add_dims(tensor.shape[i]);
}

}  // namespace

absl::StatusOr<InferRequest> FromMessage(const inference::ModelInferRequest& message,
                                         const SharedMemory& memory) {
  InferRequest request;
  request.model = message.model_name();
  request.version = message.model_version();
  request.id = message.id();
  uint64_t timeout_us = 0;
  absl::Status status = Unsigned(message.parameters(), "timeout", timeout_us);
  if (status.ok()) status = Unsigned(message.parameters(), "priority", request.priority);
  if (status.ok()) status = SequenceParameters(message.parameters(), request.sequence);
  if (!status.ok()) return status;
  request.deadline = TimeoutParameter(timeout_us);
  int raw = 0;
  for (const auto& input : message.inputs()) {
    auto tensor = ReadInput(message, input, raw, memory);
    if (!tensor.ok()) return tensor.status();
    request.inputs.push_back(*std::move(tensor));
  }
  if (raw != message.raw_input_contents_size()) {
    return Bad(StrCat("raw_input_contents has ", message.raw_input_contents_size(),
                      " elements, and ", raw, " inputs take one"));
  }
  for (const auto& output : message.outputs()) {
    WantedOutput wanted;
    wanted.name = output.name();
    absl::Status read = Unsigned(output.parameters(), "classification", wanted.classes);
    if (read.ok()) read = MemoryParameters(output.parameters(), wanted.into);
    if (!read.ok()) return read;
    request.outputs.push_back(std::move(wanted));
  }
  return request;
}

void ToMessage(const InferResponse& response, inference::ModelInferResponse* message) {
  message->set_model_name(response.model);
  message->set_model_version(response.version);
  message->set_id(response.id);
  for (const InferOutput& output : response.outputs) {
    auto* tensor = message->add_outputs();
    tensor->set_name(output.name);
    tensor->set_datatype(std::string(DatatypeOf(output.tensor.dtype())));
    for (const int64_t size : output.tensor.dims()) tensor->add_shape(size);
    std::string* raw = message->add_raw_output_contents();
    if (!output.into) {
      AppendRaw(output.tensor, *raw);
      continue;
    }
    auto& parameters = *tensor->mutable_parameters();
    parameters["shared_memory_region"].set_string_param(output.into->region);
    parameters["shared_memory_byte_size"].set_int64_param(static_cast<int64_t>(output.into->bytes));
    if (output.into->offset != 0) {
      parameters["shared_memory_offset"].set_int64_param(static_cast<int64_t>(output.into->offset));
    }
  }
}

void ToMessage(const ModelMetadata& metadata, inference::ModelMetadataResponse* message) {
  message->set_name(metadata.name);
  message->set_platform(metadata.platform);
  for (const std::string& version : metadata.versions) message->add_versions(version);
  for (const TensorMetadata& tensor : metadata.inputs) SetTensor(tensor, message->add_inputs());
  for (const TensorMetadata& tensor : metadata.outputs) SetTensor(tensor, message->add_outputs());
}

void ToMessage(const ModelDescription& model, inference::ModelConfigResponse* message) {
  const ModelConfig& config = model.config;
  inference::ModelConfig* out = message->mutable_config();
  out->set_name(model.metadata.name);
  out->set_platform(model.metadata.platform);
  out->set_backend(model.metadata.platform);
  out->set_max_batch_size(config.joins() ? static_cast<int32_t>(config.max_batch) : 0);
  out->set_default_model_filename(config.file);
  auto* policy = out->mutable_version_policy();
  switch (config.version_policy.kind) {
    case VersionPolicy::Kind::kLatest:
      policy->mutable_latest()->set_num_versions(
          static_cast<uint32_t>(config.version_policy.latest));
      break;
    case VersionPolicy::Kind::kAll:
      policy->mutable_all();
      break;
    case VersionPolicy::Kind::kSpecific:
      for (const int64_t version : config.version_policy.specific)
        policy->mutable_specific()->add_versions(version);
      break;
  }
  for (const TensorMetadata& t : model.metadata.inputs)
    SetConfigTensor(t, config.joins(), out->add_input());
  for (const TensorMetadata& t : model.metadata.outputs)
    SetConfigTensor(t, config.joins(), out->add_output());
  for (const InstanceGroup& group : config.instances) {
    auto* instances = out->add_instance_group();
    instances->set_name(group.device);
    instances->set_count(group.count);
  }
  for (const auto& [key, value] : ParametersOf(config))
    (*out->mutable_parameters())[key].set_string_value(value);
  if (config.sequences) return SetSequences(config, out->mutable_sequence_batching());
  if (!config.joins() && config.priority_levels == 0) return;
  auto* batching = out->mutable_dynamic_batching();
  batching->set_max_queue_delay_microseconds(static_cast<uint64_t>(config.max_delay_us));
  batching->set_priority_levels(static_cast<uint64_t>(config.priority_levels));
  batching->set_default_priority_level(static_cast<uint64_t>(config.default_priority));
  auto* queue = batching->mutable_default_queue_policy();
  queue->set_default_timeout_microseconds(static_cast<uint64_t>(config.timeout_ms) * 1000);
  queue->set_allow_timeout_override(true);
  queue->set_max_queue_size(static_cast<uint32_t>(config.queue_size));
}

absl::StatusOr<LoadRequest> FromMessage(const inference::RepositoryModelLoadRequest& message,
                                        ByteBudget* budget) {
  LoadRequest request;
  request.held = ByteHold(budget);
  for (const auto& [key, value] : message.parameters()) {
    const bool file = key.starts_with(kLoadFile);
    if (!file && key != kLoadConfig) return UnsupportedLoadParameter(key);
    if (file ? !value.has_bytes_param() : !value.has_string_param())
      return Bad(StrCat("the parameter '", ValidUtf8(key.substr(0, 100)), "' must be ",
                        file ? "bytes" : "a text"));
    if (!file) {
      request.config = value.string_param();
      continue;
    }
    const absl::Status room = request.held.Grow(value.bytes_param().size());
    if (!room.ok()) return room;
    request.files.push_back({key.substr(std::string_view(kLoadFile).size()), value.bytes_param()});
  }
  return request;
}

TraceSettings::Values FromMessage(const inference::TraceSettingRequest& message) {
  TraceSettings::Values values;
  for (const auto& [name, setting] : message.settings())
    values[name] = {setting.value().begin(), setting.value().end()};
  return values;
}

void ToMessage(const TraceSettings::Values& settings, inference::TraceSettingResponse* message) {
  for (const auto& [name, values] : settings) {
    auto& setting = (*message->mutable_settings())[name];
    for (const std::string& value : values) setting.add_value(value);
  }
}

LogSettings::Values FromMessage(const inference::LogSettingsRequest& message) {
  LogSettings::Values values;
  for (const auto& [name, setting] : message.settings()) {
    LogSettings::Value& value = values[name];
    if (setting.has_bool_param())
      value = setting.bool_param();
    else if (setting.has_uint32_param())
      value = uint64_t{setting.uint32_param()};
    else if (setting.has_string_param())
      value = setting.string_param();
  }
  return values;
}

void ToMessage(const LogSettings::Values& settings, inference::LogSettingsResponse* message) {
  for (const auto& [name, value] : settings) {
    auto& setting = (*message->mutable_settings())[name];
    if (const bool* flag = std::get_if<bool>(&value))
      setting.set_bool_param(*flag);
    else if (const uint64_t* number = std::get_if<uint64_t>(&value))
      setting.set_uint32_param(static_cast<uint32_t>(*number));
    else if (const std::string* text = std::get_if<std::string>(&value))
      setting.set_string_param(*text);
  }
}

void ToMessage(const std::vector<IndexEntry>& index, inference::RepositoryIndexResponse* message) {
  for (const IndexEntry& entry : index) {
    auto* model = message->add_models();
    model->set_name(entry.name);
    model->set_version(entry.version);
    model->set_state(entry.state);
    model->set_reason(entry.reason);
  }
}

void ToMessage(const std::vector<ModelStatistics>& all,
               inference::ModelStatisticsResponse* message) {
  for (const ModelStatistics& model : all) {
    auto* stats = message->add_model_stats();
    const Statistics& counted = model.counted;
    stats->set_name(model.name);
    stats->set_version(model.version);
    stats->set_last_inference(counted.last_inference_ms);
    stats->set_inference_count(counted.inferences);
    stats->set_execution_count(counted.executions);
    auto* durations = stats->mutable_inference_stats();
    SetDuration(counted.success, durations->mutable_success());
    SetDuration(counted.fail, durations->mutable_fail());
    SetDuration(counted.queue, durations->mutable_queue());
    SetDuration(counted.input, durations->mutable_compute_input());
    SetDuration(counted.infer, durations->mutable_compute_infer());
    SetDuration(counted.output, durations->mutable_compute_output());
    for (const auto& [rows, batch] : counted.batches) {
      auto* batch_stats = stats->add_batch_stats();
      batch_stats->set_batch_size(rows);
      SetDuration(batch.input, batch_stats->mutable_compute_input());
      SetDuration(batch.infer, batch_stats->mutable_compute_infer());
      SetDuration(batch.output, batch_stats->mutable_compute_output());
    }
    for (const DeviceUse& use : model.memory) {
      auto* memory = stats->add_memory_usage();
      memory->set_type(use.type());
      memory->set_id(use.number());
      memory->set_byte_size(static_cast<uint64_t>(use.pool_bytes));
    }
  }
}

void ToMessage(const std::vector<MemoryRegion>& regions,
               inference::SystemSharedMemoryStatusResponse* message) {
  for (const MemoryRegion& region : regions) {
    auto& status = (*message->mutable_regions())[region.name];
    status.set_name(region.name);
    status.set_key(region.key);
    status.set_offset(region.offset);
    status.set_byte_size(region.bytes);
  }
}

}  // namespace oncilla::server
