// Replies, member by member.
#include "server/http/json_replies.h"

#include <oncilla/oncilla.hpp>

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
