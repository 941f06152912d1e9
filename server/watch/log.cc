// Writes log events as lines of JSON.
#include "server/watch/log.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestText = 1024;

std::string Now() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone());
}

// Invalid UTF-8 in bytes from clients is replaced, so that a line is always valid.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Severity SeverityOf(const std::string& what) {
  if (what == "failed") return Severity::kError;
  return what == "interrupted" ? Severity::kWarning : Severity::kInfo;
}

// The engine's information messages, such as memory use and placement, are verbose here.
Severity SeverityOf(oncilla_log_level level) {
  if (level == ONCILLA_LOG_ERROR) return Severity::kError;
  return level == ONCILLA_LOG_WARNING ? Severity::kWarning : Severity::kVerbose;
}

void Add(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text.substr(0, kLongestText);
}

}  // namespace

Log::~Log() {
  if (access_ != nullptr && access_ != stderr) std::fclose(access_);
}

absl::Status Log::Open(const std::string& access_log) {
  if (access_log == "-") return absl::OkStatus();
  if (access_log == "off") {
    access_ = nullptr;
    return absl::OkStatus();
  }
  std::FILE* file = std::fopen(access_log.c_str(), "ae");
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("--access-log ", access_log, ": ", std::strerror(errno)));
  }
  access_ = file;
  return absl::OkStatus();
}

void Log::Write(std::FILE* file, const std::string& line) {
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file);
  std::fflush(file);
}

void Log::Access(const AccessRecord& record) {
  if (access_ == nullptr) return;
  Json json;
  json["time"] = Now();
  json["protocol"] = record.protocol;
  json["method"] = record.method.substr(0, kLongestText);
  Add(json, "target", record.target);
  Add(json, "peer", record.peer);
  Add(json, "model", record.model);
  Add(json, "version", record.version);
  Add(json, "id", record.id);
  if (record.http_status != 0) json["status"] = record.http_status;
  json["code"] = NameOf(record.code);
  json["bytes_in"] = record.bytes_in;
  json["bytes_out"] = record.bytes_out;
  json["ms"] = static_cast<double>(record.time.count() / 1000) / 1000;
  Add(json, "trace_id", record.trace.trace_id);
  Add(json, "parent_id", record.trace.parent_id);
  Add(json, "span_id", record.trace.span_id);
  if (record.times) {
    const auto ms = [](std::chrono::nanoseconds time) {
      return static_cast<double>(time.count() / 1000) / 1000;
    };
    json["spans"] = {{"queue_ms", ms(record.times->queue)},
                     {"input_ms", ms(record.times->input)},
                     {"infer_ms", ms(record.times->infer)},
                     {"output_ms", ms(record.times->output)},
                     {"batch_rows", record.times->rows}};
  }
  Write(access_, Line(json));
}

void Log::Event(const std::string& what, const std::string& model, const std::string& version,
                const std::string& reason) {
  Tell(SeverityOf(what), what, model, version, reason);
}

void Log::Engine(oncilla_log_level level, const std::string& message) {
  Tell(SeverityOf(level), "engine", "", "", message);
}

void Log::Tell(Severity severity, const std::string& what, const std::string& model,
               const std::string& version, const std::string& reason) {
  if (!settings_.Wants(severity)) return;
  Json json;
  json["time"] = Now();
  json["level"] = NameOf(severity);
  json["event"] = what;
  Add(json, "model", model);
  Add(json, "version", version);
  if (!reason.empty()) json["reason"] = reason;
  Write(stderr, Line(json));
}

}  // namespace oncilla::server
