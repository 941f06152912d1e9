// Log: messages for people, by level, to standard error or to a hook.
//
// A Log is immutable and made once: a runtime has one and hands it down, so two runtimes in one
// process never share a level or a hook. It is not for failures that a Status reports: those reach
// the caller, who decides whether to print them.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kNone };
std::string_view Name(LogLevel level);  // "debug", "info", ...
// The inverse; fails naming the levels there are.
Result<LogLevel> ParseLogLevel(std::string_view name);

using LogHook = std::function<void(LogLevel, std::string_view message)>;

class Log {
 public:
  // Messages below `threshold` are dropped. Without a hook the rest go to standard error, one line
  // each. Calls of the hook never overlap; a message written from inside a hook goes to standard
  // error, so a hook may call the engine.
  explicit Log(LogLevel threshold = LogLevel::kWarning, LogHook hook = nullptr);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool enabled(LogLevel level) const { return level >= threshold_ && level != LogLevel::kNone; }
  // Safe from any thread.
  void Write(LogLevel level, std::string_view message) const;

  template <class... Parts>
  void Debug(const Parts&... parts) const {
    if (enabled(LogLevel::kDebug)) Write(LogLevel::kDebug, StrCat(parts...));
  }
  template <class... Parts>
  void Info(const Parts&... parts) const {
    if (enabled(LogLevel::kInfo)) Write(LogLevel::kInfo, StrCat(parts...));
  }
  template <class... Parts>
  void Warning(const Parts&... parts) const {
    if (enabled(LogLevel::kWarning)) Write(LogLevel::kWarning, StrCat(parts...));
  }
  template <class... Parts>
  void Error(const Parts&... parts) const {
    if (enabled(LogLevel::kError)) Write(LogLevel::kError, StrCat(parts...));
  }

 private:
  struct Lock;  // keeps <mutex> out of a header that everything includes
  const LogLevel threshold_;
  const LogHook hook_;
  const std::unique_ptr<Lock> lock_;
};

// For code that has no Log: warnings and errors to standard error.
const Log& DefaultLog();

}  // namespace oncilla
