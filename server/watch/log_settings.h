// LogSettings: which events the server logs, initially by the command line and then as clients set
// it. They do not affect the access log, which --access-log controls.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <variant>

#include "absl/status/status.h"

namespace oncilla::server {

// The severity of an event. Messages of the engine below warnings are verbose.
enum class Severity { kError, kWarning, kInfo, kVerbose };
// "error", as in lines of the log.
const char* NameOf(Severity severity);

class LogSettings {
 public:
  // A flag, a number, a text, or nothing, which means the initial value.
  using Value = std::variant<std::monostate, bool, uint64_t, std::string>;
  // By name: log_error, log_warning, log_info, log_verbose_level, log_file, log_format.
  using Values = std::map<std::string, Value>;

  explicit LogSettings(uint64_t verbose_level = 0) : begin_{true, true, true, verbose_level} {}

  Values Get() const;
  // InvalidArgument, without any change, for unknown names and values: lines always go to standard
  // error as JSON, whatever clients request.
  absl::Status Set(const Values& values);

  // Whether an event of this severity is logged.
  bool Wants(Severity severity) const;

 private:
  struct Levels {
    bool error, warning, info;
    uint64_t verbose;
  };
  absl::Status SetOne(const std::string& name, const Value& value, Levels& levels) const;

  const Levels begin_;
  mutable std::mutex mutex_;
  Levels levels_ = begin_;
};

}  // namespace oncilla::server
