// The server's log: one JSON object a line, for each request and for what happens to models.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "server/core/request.h"
#include "server/watch/trace_context.h"

namespace oncilla::server {

// A request that is over.
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

  // What an answer tells of its request.
  void Take(const InferResponse& response) {
    version = response.version;
    if (response.traced) times = response.times;
  }
};

class Log {
 public:
  Log() = default;
  ~Log();
  // "-": standard error (the default), "off": requests are not logged, else a file that is appended
  // to.
  absl::Status Open(const std::string& access_log);
  void Access(const AccessRecord& record);
  // To standard error. `what`: "loaded", "failed", "unloaded", "listening", "draining", ..
  void Event(const std::string& what, const std::string& model, const std::string& version,
             const std::string& reason);

 private:
  void Write(std::FILE* file, const std::string& line);

  std::mutex mutex_;
  std::FILE* access_ = stderr;
};

}  // namespace oncilla::server
