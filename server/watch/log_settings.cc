// Reads and writes settings of the log by name.
#include "server/watch/log_settings.h"

#include "server/core/text.h"

namespace oncilla::server {
namespace {

constexpr uint64_t kMostVerbose = UINT32_MAX;  // the protocol's numbers have 32 bits
constexpr const char* kFormat = "ISO8601";     // of the times of lines

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status ReadFlag(const std::string& name, const LogSettings::Value& value, bool otherwise,
                      bool& flag) {
  const bool* given = std::get_if<bool>(&value);
  if (given == nullptr && !std::holds_alternative<std::monostate>(value))
    return Bad(StrCat("'", name, "' must be true or false"));
  flag = given == nullptr ? otherwise : *given;
  return absl::OkStatus();
}

// Accepts a setting that has only one possible value, or an empty string.
absl::Status OnlyText(const std::string& name, const LogSettings::Value& value,
                      const std::string& only, const char* why) {
  const std::string* given = std::get_if<std::string>(&value);
  if (std::holds_alternative<std::monostate>(value) || (given != nullptr && *given == only))
    return absl::OkStatus();
  return Bad(StrCat("'", name, "' can only be '", only, "': ", why));
}

}  // namespace

const char* NameOf(Severity severity) {
  static constexpr const char* kNames[] = {"error", "warning", "info", "verbose"};
  return kNames[static_cast<int>(severity)];
}

LogSettings::Values LogSettings::Get() const {
  const std::lock_guard lock(mutex_);
  return {{"log_error", levels_.error}, {"log_warning", levels_.warning},
          {"log_info", levels_.info},   {"log_verbose_level", levels_.verbose},
          {"log_file", std::string()},  {"log_format", std::string(kFormat)}};
}

absl::Status LogSettings::SetOne(const std::string& name, const Value& value,
                                 Levels& levels) const {
  if (name == "log_error") return ReadFlag(name, value, begin_.error, levels.error);
  if (name == "log_warning") return ReadFlag(name, value, begin_.warning, levels.warning);
  if (name == "log_info") return ReadFlag(name, value, begin_.info, levels.info);
  if (name == "log_file")
    return OnlyText(name, value, "", "events go to standard error, which clients cannot change");
  if (name == "log_format")
    return OnlyText(name, value, kFormat, "lines are JSON, with times of that form");
  if (name != "log_verbose_level") {
    return Bad(StrCat("there is no setting '", name.substr(0, 64),
                      "'; there are log_error, log_warning, log_info, log_verbose_level, log_file "
                      "and log_format"));
  }
  const uint64_t* given = std::get_if<uint64_t>(&value);
  if (given == nullptr ? !std::holds_alternative<std::monostate>(value) : *given > kMostVerbose)
    return Bad(StrCat("'", name, "' must be a whole number, not negative, of 32 bits"));
  levels.verbose = given == nullptr ? begin_.verbose : *given;
  return absl::OkStatus();
}

absl::Status LogSettings::Set(const Values& values) {
  const std::lock_guard lock(mutex_);
  Levels levels = levels_;
  for (const auto& [name, value] : values) {
    const absl::Status status = SetOne(name, value, levels);
    if (!status.ok()) return status;
  }
  levels_ = levels;
  return absl::OkStatus();
}

bool LogSettings::Wants(Severity severity) const {
  const std::lock_guard lock(mutex_);
  switch (severity) {
    case Severity::kError:
      return levels_.error;
    case Severity::kWarning:
      return levels_.warning;
    case Severity::kInfo:
      return levels_.info;
    case Severity::kVerbose:
      return levels_.verbose > 0;
  }
  return true;
}

}  // namespace oncilla::server
