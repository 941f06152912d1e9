// The server's log: one JSON object per line, for each request (the access log) and for events of
// models and the engine.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "server/core/request.h"
#include "server/watch/log_settings.h"
#include "server/watch/trace_context.h"

namespace oncilla::server {

// A completed request.
struct AccessRecord {
  const char* protocol = "http";  // or "grpc"
  std::string method;             // GET, POST; the RPC's name
  std::string target;             // the path; empty for gRPC
  std::string peer;
  std::string model, version, id;
  int http_status = 0;  // 0 for gRPC
  absl::StatusCode code = absl::StatusCode::kOk;
  size_t bytes_in = 0, bytes_out = 0;
  std::chrono::nanoseconds time{};
  TraceContext trace;
  std::optional<RequestTimes> times;  // of a request that is traced

  // Copies the facts in a response about its request.
  void Take(const InferResponse& response) {
    version = response.version;
    if (response.traced) times = response.times;
  }
};

class Log {
 public:
  // `verbose_level`: of events, until clients set another.
  explicit Log(uint64_t verbose_level = 0) : settings_(verbose_level) {}
  ~Log();
  // "-": standard error (the default), "off": requests are not logged, else a file that is appended
  // to.
  absl::Status Open(const std::string& access_log);
  void Access(const AccessRecord& record);
  // Writes to standard error, if the settings allow. `what`: "loaded", "failed", "unloaded",
  // "listening", "draining", ..
  void Event(const std::string& what, const std::string& model, const std::string& version,
             const std::string& reason);
  // Writes a message of the engine.
  void Engine(oncilla_log_level level, const std::string& message);
  LogSettings& settings() { return settings_; }

 private:
  void Tell(Severity severity, const std::string& what, const std::string& model,
            const std::string& version, const std::string& reason);
  void Write(std::FILE* file, const std::string& line);

  LogSettings settings_;
  std::mutex mutex_;
  std::FILE* access_ = stderr;
};

}  // namespace oncilla::server
