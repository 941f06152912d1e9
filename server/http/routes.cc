// Calls by path. In a path, {m} stands for a model, {v} for a version and {r} for a region.
#include "server/http/routes.h"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "server/core/parameters.h"
#include "server/core/text.h"
#include "server/http/connection.h"
#include "server/http/json_infer.h"
#include "server/http/json_load.h"
#include "server/http/json_replies.h"
#include "server/watch/metrics.h"
#include "server/watch/status_page.h"

namespace oncilla::server {
namespace {

constexpr const char* kJson = "application/json";
// How often a waiting request checks whether its client is still connected.
constexpr auto kLookUp = std::chrono::milliseconds(20);

absl::Status Reply(HttpCall& call, const ReplyJson& json) {
  call.response.set_content(Dump(json), kJson);
  return absl::OkStatus();
}

// The body as a JSON object; an empty body is an empty object.
absl::StatusOr<nlohmann::json> BodyObject(const HttpCall& call) {
  if (call.body.find_first_not_of(" \t\r\n") == std::string::npos) return nlohmann::json::object();
  nlohmann::json json = nlohmann::json::parse(call.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the body must be a JSON object");
  return json;
}

// Some clients, such as KServe's, read the body; others only look at the code.
absl::Status Live(HttpCall& call) { return Reply(call, {{"live", true}}); }

absl::Status ServerReady(HttpCall& call) {
  if (!call.service.ready()) return absl::UnavailableError("not ready");
  return Reply(call, {{"ready", true}});
}

absl::Status ServerMetadata(HttpCall& call) { return Reply(call, ServerJson()); }

absl::Status ModelReady(HttpCall& call) {
  if (!call.service.ModelReady(call.model, call.version))
    return absl::UnavailableError("not ready");
  return Reply(call, {{"name", call.model}, {"ready", true}});
}

absl::Status Metadata(HttpCall& call) {
  const auto metadata = call.service.Metadata(call.model, call.version);
  if (!metadata.ok()) return metadata.status();
  return Reply(call, MetadataJson(*metadata));
}

absl::Status Config(HttpCall& call) {
  const auto model = call.service.Describe(call.model, call.version);
  if (!model.ok()) return model.status();
  return Reply(call, ConfigJson(*model));
}

// Reads a setting from JSON: a string, a number, a list of these, or null for none.
absl::Status SettingValues(const std::string& name, const nlohmann::json& json,
                           std::vector<std::string>& values) {
  if (json.is_null()) return absl::OkStatus();
  for (const nlohmann::json& value : json.is_array() ? json : nlohmann::json::array({json})) {
    if (value.is_string())
      values.push_back(value.get<std::string>());
    else if (value.is_number_integer())
      values.push_back(value.dump());
    else
      return absl::InvalidArgumentError(StrCat("'", name, "' must be a text or a whole number"));
  }
  return absl::OkStatus();
}

absl::Status Tracing(HttpCall& call) {
  TraceSettings::Values values;
  if (call.request.method == "POST") {
    const auto json = BodyObject(call);
    if (!json.ok()) return json.status();
    for (const auto& [name, value] : json->items()) {
      const absl::Status status = SettingValues(name, value, values[name]);
      if (!status.ok()) return status;
    }
  }
  const auto settings = call.service.Tracing(call.model, values);
  if (!settings.ok()) return settings.status();
  return Reply(call, TracingJson(*settings));
}

absl::StatusOr<LogSettings::Value> SettingValue(const std::string& name,
                                                const nlohmann::json& json) {
  if (json.is_null()) return LogSettings::Value();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (json.is_string()) return json.get<std::string>();
  return absl::InvalidArgumentError(
      StrCat("'", name, "' must be true or false, a whole number, not negative, or a text"));
}

absl::Status Logging(HttpCall& call) {
  LogSettings::Values values;
  if (call.request.method == "POST") {
    const auto json = BodyObject(call);
    if (!json.ok()) return json.status();
    for (const auto& [name, value] : json->items()) {
      auto read = SettingValue(name, value);
      if (!read.ok()) return read.status();
      values[name] = *std::move(read);
    }
  }
  const auto settings = call.service.Logging(values);
  if (!settings.ok()) return settings.status();
  return Reply(call, LoggingJson(*settings));
}

absl::Status StatisticsReply(HttpCall& call) {
  const auto all = call.service.StatisticsOf(call.model, call.version);
  if (!all.ok()) return all.status();
  return Reply(call, StatisticsJson(*all));
}

// Waits for the outcome on the connection's thread, and cancels the request when the client
// disconnects.
absl::StatusOr<InferResponse> RunAndWait(Service& service, InferRequest request) {
  struct Outcome {
    std::mutex mutex;
    std::condition_variable there;
    std::optional<absl::StatusOr<InferResponse>> value;
  };
  const auto outcome = std::make_shared<Outcome>();
  const PendingInfer pending =
      service.Infer(std::move(request), [outcome](absl::StatusOr<InferResponse> value) {
        const std::lock_guard lock(outcome->mutex);
        outcome->value = std::move(value);
        outcome->there.notify_one();
      });
  std::unique_lock lock(outcome->mutex);
  bool cancelled = false;
  while (!outcome->there.wait_for(lock, kLookUp, [&] { return outcome->value.has_value(); })) {
    if (cancelled || !Connection::Current()->PeerGone()) continue;
    cancelled = true;
    lock.unlock();
    pending.Cancel();
    lock.lock();
  }
  return *std::move(outcome->value);
}

absl::Status Infer(HttpCall& call) {
  std::optional<size_t> json_bytes;
  if (call.request.has_header("Inference-Header-Content-Length")) {
    const auto number =
        ParseNumber(call.request.get_header_value("Inference-Header-Content-Length"));
    if (!number)
      return absl::InvalidArgumentError("Inference-Header-Content-Length must be a whole number");
    json_bytes = static_cast<size_t>(*number);
  }
  absl::StatusOr<InferRequest> request;
  {
    // A JSON document costs many times its length in memory.
    constexpr size_t kJsonCost = 8;
    ByteHold json(&call.service.requests_held());
    const absl::Status room =
        json.Grow(kJsonCost * std::min(json_bytes.value_or(call.body.size()), call.body.size()));
    if (!room.ok()) return room;
    request = ParseInferBody(call.body, json_bytes, call.service.shared_memory());
  }
  if (!request.ok()) return request.status();
  request->model = call.model;
  request->version = call.version;
  AccessRecord& record = Connection::Current()->facts.record;
  record.id = request->id;
  const auto response = RunAndWait(call.service, *std::move(request));
  if (!response.ok()) return response.status();
  record.Take(*response);
  auto body = WriteInferBody(*response);
  if (!body.ok()) return body.status();
  if (body->json_bytes) {
    call.response.set_header("Inference-Header-Content-Length", std::to_string(*body->json_bytes));
  }
  call.packs = true;
  call.response.body = std::move(body->body);
  call.response.set_header("Content-Type", body->json_bytes ? "application/octet-stream" : kJson);
  return absl::OkStatus();
}

absl::Status Index(HttpCall& call) {
  const auto json = BodyObject(call);
  if (!json.ok()) return json.status();
  const auto ready = json->find("ready");
  if (ready != json->end() && !ready->is_boolean()) {
    return absl::InvalidArgumentError("'ready' must be true or false");
  }
  return Reply(call, IndexJson(call.service.Index(ready != json->end() && ready->get<bool>())));
}

absl::Status Load(HttpCall& call) {
  auto request = ParseLoadBody(call.body, &call.service.requests_held());
  if (!request.ok()) return request.status();
  struct Outcome {
    std::mutex mutex;
    std::condition_variable there;
    std::optional<absl::Status> value;
  };
  const auto outcome = std::make_shared<Outcome>();
  call.service.Load(call.model, *std::move(request), [outcome](absl::Status status) {
    const std::lock_guard lock(outcome->mutex);
    outcome->value = std::move(status);
    outcome->there.notify_one();
  });
  std::unique_lock lock(outcome->mutex);
  while (!outcome->there.wait_for(lock, kLookUp, [&] { return outcome->value.has_value(); })) {
    // The load continues even if the client that requested it has disconnected.
    if (Connection::Current()->PeerGone()) return absl::CancelledError("the client went away");
  }
  return *outcome->value;
}

absl::Status Unload(HttpCall& call) { return call.service.Unload(call.model); }

absl::Status Regions(HttpCall& call) {
  const auto regions = call.service.shared_memory().Regions(call.model);
  if (!regions.ok()) return regions.status();
  return Reply(call, RegionsJson(*regions));
}

absl::Status RegisterRegion(HttpCall& call) {
  const auto json = BodyObject(call);
  if (!json.ok()) return json.status();
  MemoryRegion region;
  region.name = call.model;
  const auto key = json->find("key");
  if (key == json->end() || !key->is_string())
    return absl::InvalidArgumentError("'key' must be a text");
  region.key = key->get<std::string>();
  for (const auto& [name, value] :
       {std::pair{"offset", &region.offset}, std::pair{"byte_size", &region.bytes}}) {
    const auto found = json->find(name);
    if (found == json->end()) continue;
    if (!found->is_number_unsigned()) {
      return absl::InvalidArgumentError(
          StrCat("'", name, "' must be a whole number, not negative"));
    }
    *value = found->get<uint64_t>();
  }
  return call.service.shared_memory().Register(region);
}

absl::Status UnregisterRegion(HttpCall& call) {
  call.service.shared_memory().Unregister(call.model);
  return absl::OkStatus();
}

absl::Status NoCudaRegions(HttpCall& call) { return Reply(call, ReplyJson::array()); }
absl::Status RegisterNoCuda(HttpCall&) { return NoCuda(); }
absl::Status UnregisterNoCuda(HttpCall&) { return absl::OkStatus(); }

absl::Status Page(HttpCall& call) {
  call.response.set_content(StatusPage(), "text/html; charset=utf-8");
  call.response.set_header(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  return absl::OkStatus();
}

absl::Status PageStatus(HttpCall& call) {
  call.response.set_content(StatusJson(call.service), kJson);
  return absl::OkStatus();
}

struct Route {
  const char* method;
  const char* path;
  absl::Status (*answer)(HttpCall& call);
};

constexpr Route kRoutes[] = {
    {"GET", "v2/health/live", Live},
    {"GET", "v2/health/ready", ServerReady},
    {"GET", "v2", ServerMetadata},
    {"POST", "v2/models/{m}/infer", Infer},
    {"POST", "v2/models/{m}/versions/{v}/infer", Infer},
    {"GET", "v2/models/stats", StatisticsReply},
    {"GET", "v2/models/{m}", Metadata},
    {"GET", "v2/models/{m}/versions/{v}", Metadata},
    {"GET", "v2/models/{m}/ready", ModelReady},
    {"GET", "v2/models/{m}/versions/{v}/ready", ModelReady},
    {"GET", "v2/models/{m}/stats", StatisticsReply},
    {"GET", "v2/models/{m}/versions/{v}/stats", StatisticsReply},
    {"GET", "v2/models/{m}/config", Config},
    {"GET", "v2/models/{m}/versions/{v}/config", Config},
    {"GET", "v2/models/{m}/trace/setting", Tracing},
    {"POST", "v2/models/{m}/trace/setting", Tracing},
    {"GET", "v2/trace/setting", Tracing},
    {"POST", "v2/trace/setting", Tracing},
    {"GET", "v2/logging", Logging},
    {"POST", "v2/logging", Logging},
    {"POST", "v2/repository/index", Index},
    {"POST", "v2/repository/models/{m}/load", Load},
    {"POST", "v2/repository/models/{m}/unload", Unload},
    {"GET", "v2/systemsharedmemory/status", Regions},
    {"GET", "v2/systemsharedmemory/region/{m}/status", Regions},
    {"POST", "v2/systemsharedmemory/region/{m}/register", RegisterRegion},
    {"POST", "v2/systemsharedmemory/region/{m}/unregister", UnregisterRegion},
    {"POST", "v2/systemsharedmemory/unregister", UnregisterRegion},
    {"GET", "v2/cudasharedmemory/status", NoCudaRegions},
    {"GET", "v2/cudasharedmemory/region/{m}/status", NoCudaRegions},
    {"POST", "v2/cudasharedmemory/region/{m}/register", RegisterNoCuda},
    {"POST", "v2/cudasharedmemory/region/{m}/unregister", UnregisterNoCuda},
    {"POST", "v2/cudasharedmemory/unregister", UnregisterNoCuda},
    {"GET", "", Page},
    {"GET", "status.json", PageStatus},
};

// Whether the parts of a path match those of the route; if so, stores the names in the call.
bool Matches(const Route& route, const std::vector<std::string>& parts, HttpCall& call) {
  const std::vector<std::string> wanted = Split(route.path, '/');
  if (wanted.size() != parts.size()) return false;
  std::string model, version;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (wanted[i] == "{m}")
      model = parts[i];
    else if (wanted[i] == "{v}")
      version = parts[i];
    else if (wanted[i] != parts[i])
      return false;
  }
  call.model = model;
  call.version = version;
  return true;
}

std::vector<std::string> PartsOf(std::string_view path) {
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return Split(path, '/');
}

}  // namespace

bool IsOpenPath(const std::string& path) {
  return path == "/" || path == "/v2/health/live" || path == "/v2/health/ready";
}

absl::Status AnswerMetrics(const std::string& path, HttpCall& call) {
  if (path != "/metrics") return absl::NotFoundError("there is only /metrics on this port");
  call.response.set_content(MetricsText(call.service), "text/plain; version=0.0.4; charset=utf-8");
  return absl::OkStatus();
}

absl::Status Answer(const std::string& path, HttpCall& call) {
  const std::vector<std::string> parts = PartsOf(path);
  const std::string method = call.request.method == "HEAD" ? "GET" : call.request.method;
  const Route* other_method = nullptr;
  for (const Route& route : kRoutes) {
    if (!Matches(route, parts, call)) continue;
    if (method != route.method) {
      other_method = &route;
      continue;
    }
    if (parts.size() > 2 && parts[1] == "models")
      Connection::Current()->facts.record.model = call.model;
    return route.answer(call);
  }
  if (other_method != nullptr) {
    call.response.status = 405;
    call.response.set_header("Allow", other_method->method);
    return absl::UnimplementedError(StrCat("this path takes ", other_method->method));
  }
  return absl::NotFoundError(
      "there is no such path; the calls are those of the Open Inference Protocol, below /v2");
}

}  // namespace oncilla::server
