// Writes replies as JSON, member by member.
#include "server/http/json_replies.h"

#include <oncilla/oncilla.hpp>

#include "server/core/tensor_codec.h"

namespace oncilla::server {
namespace {

ReplyJson TensorsJson(const std::vector<TensorMetadata>& tensors) {
  ReplyJson list = ReplyJson::array();
  for (const TensorMetadata& t : tensors) {
    ReplyJson tensor;
    tensor["name"] = t.name;
    tensor["datatype"] = t.datatype;
    tensor["shape"] = t.shape;
    list.push_back(tensor);
  }
  return list;
}

// The shapes are without the batch axis if requests are joined along it, as clients of model
// configurations expect.
ReplyJson ConfigTensors(const std::vector<TensorMetadata>& tensors, bool joins) {
  ReplyJson list = ReplyJson::array();
  for (const TensorMetadata& t : tensors) {
    ReplyJson tensor;
    tensor["name"] = t.name;
    tensor["data_type"] = ConfigTypeOf(t.datatype);
    tensor["dims"] = std::vector<int64_t>(t.shape.begin() + (joins ? 1 : 0), t.shape.end());
    list.push_back(tensor);
  }
  return list;
}

ReplyJson ControlJson(const DeclaredControl& control) {
  ReplyJson json = {{"kind", kControlKinds[static_cast<size_t>(control.kind)]}};
  if (control.kind == ControlKind::kId)
    json["data_type"] = control.data_type;
  else if (control.data_type == "TYPE_BOOL")
    json["bool_false_true"] = {control.no != 0, control.yes != 0};
  else if (control.data_type == "TYPE_INT32")
    json["int32_false_true"] = {static_cast<int64_t>(control.no),
                                static_cast<int64_t>(control.yes)};
  else
    json["fp32_false_true"] = {control.no, control.yes};
  return {{"name", control.name}, {"control", ReplyJson::array({json})}};
}

ReplyJson SequencesJson(const ModelConfig& config) {
  const SequenceBatching& sequences = *config.sequences;
  ReplyJson json;
  json["max_sequence_idle_microseconds"] = sequences.max_idle_us;
  json["oldest"]["max_candidate_sequences"] = sequences.max_sequences;
  json["oldest"]["max_queue_delay_microseconds"] = config.max_delay_us;
  for (const DeclaredControl& control : sequences.controls)
    json["control_input"].push_back(ControlJson(control));
  for (const DeclaredState& state : sequences.state) {
    ReplyJson own = {{"input_name", state.input_name},
                     {"output_name", state.output_name},
                     {"data_type", state.data_type},
                     {"dims", *state.dims}};
    if (state.initial_dims) {
      const ReplyJson initial = {
          {"data_type", state.data_type}, {"dims", *state.initial_dims}, {"zero_data", true}};
      own["initial_state"] = ReplyJson::array({initial});
    }
    json["state"].push_back(own);
  }
  return json;
}

ReplyJson DurationJson(const DurationCount& duration) {
  ReplyJson json;
  json["count"] = duration.count;
  json["ns"] = duration.ns;
  return json;
}

ReplyJson CountsJson(const Statistics& counted) {
  ReplyJson json;
  json["success"] = DurationJson(counted.success);
  json["fail"] = DurationJson(counted.fail);
  json["queue"] = DurationJson(counted.queue);
  json["compute_input"] = DurationJson(counted.input);
  json["compute_infer"] = DurationJson(counted.infer);
  json["compute_output"] = DurationJson(counted.output);
  json["cache_hit"] = DurationJson({});
  json["cache_miss"] = DurationJson({});
  return json;
}

ReplyJson BatchesJson(const Statistics& counted) {
  ReplyJson list = ReplyJson::array();
  for (const auto& [rows, batch] : counted.batches) {
    ReplyJson json;
    json["batch_size"] = rows;
    json["compute_input"] = DurationJson(batch.input);
    json["compute_infer"] = DurationJson(batch.infer);
    json["compute_output"] = DurationJson(batch.output);
    list.push_back(json);
  }
  return list;
}

}  // namespace

std::string Dump(const ReplyJson& json) {
  return json.dump(-1, ' ', false, ReplyJson::error_handler_t::replace);
}

ReplyJson ErrorJson(const std::string& message) {
  ReplyJson json;
  json["error"] = message;
  return json;
}

ReplyJson ServerJson() {
  ReplyJson json;
  json["name"] = "oncilla";
  json["version"] = Version();
  json["extensions"] = Service::Extensions();
  return json;
}

ReplyJson MetadataJson(const ModelMetadata& metadata) {
  ReplyJson json;
  json["name"] = metadata.name;
  json["versions"] = metadata.versions;
  json["platform"] = metadata.platform;
  json["inputs"] = TensorsJson(metadata.inputs);
  json["outputs"] = TensorsJson(metadata.outputs);
  return json;
}

ReplyJson ConfigJson(const ModelDescription& model) {
  const ModelConfig& config = model.config;
  ReplyJson json;
  json["name"] = model.metadata.name;
  json["platform"] = json["backend"] = model.metadata.platform;
  const VersionPolicy& policy = config.version_policy;
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      json["version_policy"]["latest"]["num_versions"] = policy.latest;
      break;
    case VersionPolicy::Kind::kAll:
      json["version_policy"]["all"] = ReplyJson::object();
      break;
    case VersionPolicy::Kind::kSpecific:
      json["version_policy"]["specific"]["versions"] = policy.specific;
      break;
  }
  json["max_batch_size"] = config.joins() ? config.max_batch : 0;
  json["input"] = ConfigTensors(model.metadata.inputs, config.joins());
  json["output"] = ConfigTensors(model.metadata.outputs, config.joins());
  json["instance_group"] = ReplyJson::array();
  for (const InstanceGroup& group : config.instances) {
    json["instance_group"].push_back({{"name", group.device}, {"count", group.count}});
  }
  if (config.sequences) {
    json["sequence_batching"] = SequencesJson(config);
  } else if (config.joins() || config.priority_levels > 0) {
    json["dynamic_batching"]["max_queue_delay_microseconds"] = config.max_delay_us;
    json["dynamic_batching"]["priority_levels"] = config.priority_levels;
    json["dynamic_batching"]["default_priority_level"] = config.default_priority;
    json["dynamic_batching"]["default_queue_policy"] = {
        {"timeout_action", "REJECT"},
        {"default_timeout_microseconds", config.timeout_ms * 1000},
        {"allow_timeout_override", true},
        {"max_queue_size", config.queue_size}};
  }
  json["default_model_filename"] = config.file;
  for (const auto& [key, value] : ParametersOf(config))
    json["parameters"][key]["string_value"] = value;
  return json;
}

ReplyJson TracingJson(const TraceSettings::Values& settings) {
  ReplyJson json;
  // In the protocol, only the level is a list.
  for (const auto& [name, values] : settings) {
    if (name == "trace_level")
      json[name] = values;
    else
      json[name] = values[0];
  }
  return json;
}

ReplyJson LoggingJson(const LogSettings::Values& settings) {
  ReplyJson json;
  for (const auto& [name, value] : settings) {
    if (const bool* flag = std::get_if<bool>(&value))
      json[name] = *flag;
    else if (const uint64_t* number = std::get_if<uint64_t>(&value))
      json[name] = *number;
    else if (const std::string* text = std::get_if<std::string>(&value))
      json[name] = *text;
  }
  return json;
}

ReplyJson IndexJson(const std::vector<IndexEntry>& index) {
  ReplyJson list = ReplyJson::array();
  for (const IndexEntry& entry : index) {
    ReplyJson json;
    json["name"] = entry.name;
    if (!entry.version.empty()) json["version"] = entry.version;
    json["state"] = entry.state;
    if (!entry.reason.empty()) json["reason"] = entry.reason;
    list.push_back(json);
  }
  return list;
}

ReplyJson StatisticsJson(const std::vector<ModelStatistics>& all) {
  ReplyJson list = ReplyJson::array();
  for (const ModelStatistics& model : all) {
    ReplyJson json;
    json["name"] = model.name;
    json["version"] = model.version;
    json["last_inference"] = model.counted.last_inference_ms;
    json["inference_count"] = model.counted.inferences;
    json["execution_count"] = model.counted.executions;
    json["inference_stats"] = CountsJson(model.counted);
    json["batch_stats"] = BatchesJson(model.counted);
    json["memory_usage"] = ReplyJson::array();
    for (const DeviceUse& use : model.memory) {
      ReplyJson memory;
      memory["type"] = use.type();
      memory["id"] = use.number();
      memory["byte_size"] = use.pool_bytes;
      json["memory_usage"].push_back(memory);
    }
    if (model.stateful) {
      json["sequences"] = {{"live", model.sequences.live},
                           {"state_bytes", model.sequences.bytes},
                           {"started", model.sequences.started},
                           {"expired", model.sequences.expired}};
    }
    list.push_back(json);
  }
  ReplyJson json;
  json["model_stats"] = list;
  return json;
}

ReplyJson RegionsJson(const std::vector<MemoryRegion>& regions) {
  ReplyJson list = ReplyJson::array();
  for (const MemoryRegion& region : regions) {
    ReplyJson json;
    json["name"] = region.name;
    json["key"] = region.key;
    json["offset"] = region.offset;
    json["byte_size"] = region.bytes;
    list.push_back(json);
  }
  return list;
}

}  // namespace oncilla::server
