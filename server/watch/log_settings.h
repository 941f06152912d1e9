// LogSettings: which lines of the server's events the log has, as clients set it and as the command
// line begins with. The access log is not theirs: --access-log says where it goes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <variant>

#include "absl/status/status.h"

namespace oncilla::server {

// Of an event. What the engine tells only who asks for it is verbose.
enum class Severity { kError, kWarning, kInfo, kVerbose };
// "error", as lines of the log have it.
const char* NameOf(Severity severity);

class LogSettings {
 public:
  // A flag, a number, a text, or nothing, which stands for what the server began with.
  using Value = std::variant<std::monostate, bool, uint64_t, std::string>;
  // By name: log_error, log_warning, log_info, log_verbose_level, log_file, log_format.
  using Values = std::map<std::string, Value>;

  explicit LogSettings(uint64_t verbose_level = 0) : begin_{true, true, true, verbose_level} {}

  Values Get() const;
  // InvalidArgument, and nothing changed, for names and values that there are not: lines go to
  // standard error as JSON whatever clients would like.
  absl::Status Set(const Values& values);

  // Whether an event of this severity is told.
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
