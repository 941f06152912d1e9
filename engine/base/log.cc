// Writes under the log's own lock. The flag below prevents a deadlock when a hook logs in turn.
#include "engine/base/log.h"

#include <cstdio>
#include <mutex>

#include "engine/base/format.h"

namespace oncilla {
namespace {

// True while this thread is inside a hook: it then holds that log's lock and must not take it
// again.
thread_local bool inside_hook = false;

void WriteToStandardError(LogLevel level, std::string_view message) {
  // One call per line, so that lines of several threads and logs do not mix.
  const std::string line = StrCat("oncilla ", Name(level), ": ", Printable(message), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

struct Log::Lock {
  std::mutex mutex;
};

std::string_view Name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kNone:
      return "none";
  }
  return "unknown";
}

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kNone}) {
    if (name == Name(level)) return level;
  }
  return InvalidArgument("unknown log level '", name,
                         "'; the levels are debug, info, warning, error and none");
}

Log::Log(LogLevel threshold, LogHook hook)
    : threshold_(threshold), hook_(std::move(hook)), lock_(std::make_unique<Lock>()) {}
Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view message) const {
  if (!enabled(level)) return;
  if (!hook_ || inside_hook) {
    WriteToStandardError(level, message);
    return;
  }
  std::lock_guard guard(lock_->mutex);
  inside_hook = true;
  hook_(level, message);
  inside_hook = false;
}

const Log& DefaultLog() {
  static const Log log;
  return log;
}

}  // namespace oncilla
