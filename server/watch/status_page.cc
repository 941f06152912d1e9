// The data of the status page, as JSON.
#include "server/watch/status_page.h"

#include <nlohmann/json.hpp>

#include "server/http/json_replies.h"
#include "server/watch/page.gen.h"

namespace oncilla::server {
namespace {

ReplyJson ModelsJson(Service& service) {
  const auto statistics = service.StatisticsOf("", "");
  ReplyJson list = ReplyJson::array();
  for (const IndexEntry& entry : service.Index(false)) {
    ReplyJson json;
    json["name"] = entry.name;
    json["version"] = entry.version;
    json["state"] = entry.state;
    json["reason"] = entry.reason;
    for (const ModelStatistics& model :
         statistics.ok() ? *statistics : std::vector<ModelStatistics>()) {
      if (model.name != entry.name || model.version != entry.version) continue;
      json["success"] = model.counted.success.count;
      json["fail"] = model.counted.fail.count;
      json["waiting"] = model.waiting;
      json["running"] = model.running;
      if (model.stateful) json["sequences"] = model.sequences.live;
      json["inferences"] = model.counted.inferences;
      json["executions"] = model.counted.executions;
      json["p50_ms"] = model.counted.latency.Quantile(0.5) * 1000;
      json["p95_ms"] = model.counted.latency.Quantile(0.95) * 1000;
      json["p99_ms"] = model.counted.latency.Quantile(0.99) * 1000;
      json["latency_bounds_s"] = Histogram::kBounds;
      json["latency_counts"] = model.counted.latency.counts;
      json["nodes"] = model.placement;
      int64_t bytes = 0;
      for (const DeviceUse& use : model.memory) bytes += use.pool_bytes;
      json["bytes"] = bytes;
    }
    list.push_back(json);
  }
  return list;
}

}  // namespace

const std::string& StatusPage() {
  static const auto* page = new std::string(kPageHtml);
  return *page;
}

std::string StatusJson(Service& service) {
  ReplyJson json;
  json["version"] = Version();
  json["ready"] = service.ready();
  json["models"] = ModelsJson(service);
  json["devices"] = ReplyJson::array();
  const std::vector<DeviceUse> uses = service.MemoryNow();
  for (const DeviceInfo& device : service.runtime().Devices()) {
    ReplyJson d;
    const size_t at = device.name.rfind("device:");
    d["name"] = at == std::string::npos ? device.name : device.name.substr(at + 7);
    d["driver"] = device.driver_name;
    d["note"] = ForClients(device.note);
    d["memory_bytes"] = device.memory_bytes;
    d["used_bytes"] = 0;
    for (const DeviceUse& use : uses) {
      if (use.device == d["name"]) d["used_bytes"] = use.pool_bytes;
    }
    json["devices"].push_back(d);
  }
  json["memory"] = ReplyJson::array();
  for (const auto& sample : service.history().Samples()) {
    json["memory"].push_back(
        {{"time_ms", sample.time_ms}, {"bytes", sample.bytes}, {"process", sample.process_bytes}});
  }
  return Dump(json);
}

}  // namespace oncilla::server
