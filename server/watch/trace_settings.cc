// Reads and writes settings of traces by name.
#include "server/watch/trace_settings.h"

#include "server/core/text.h"

namespace oncilla::server {
namespace {

constexpr int64_t kDefaultRate = 1000;
constexpr int64_t kAllRequests = -1;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status ReadCount(const std::string& name, const std::string& text, bool or_all,
                       std::optional<int64_t>& value) {
  if (or_all && text == "-1") {
    value = kAllRequests;
    return absl::OkStatus();
  }
  const auto number = ParseNumber(text);
  if (!number || (*number == 0 && !or_all)) {
    return Bad(StrCat("'", name, "' must be a whole number ", or_all ? "or -1" : "above 0"));
  }
  value = *number;
  return absl::OkStatus();
}

}  // namespace

const TraceSettings::Scope* TraceSettings::Find(const std::string& model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? nullptr : &found->second;
}

TraceSettings::Values TraceSettings::Get(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const Scope* own = Find(model);
  const auto of = [&](auto member, auto otherwise) {
    if (own != nullptr && (own->*member)) return *(own->*member);
    return (server_.*member).value_or(otherwise);
  };
  return {{"trace_level", {of(&Scope::timestamps, false) ? "TIMESTAMPS" : "OFF"}},
          {"trace_rate", {StrCat(of(&Scope::rate, kDefaultRate))}},
          {"trace_count", {StrCat(of(&Scope::count, kAllRequests))}}};
}

absl::Status TraceSettings::SetOne(const std::string& name, const std::vector<std::string>& values,
                                   Scope& scope) {
  const bool clear = values.empty();
  if (name == "trace_level") {
    scope.timestamps.reset();
    for (const std::string& value : values) {
      if (value != "OFF" && value != "TIMESTAMPS") {
        return Bad("'trace_level' must be OFF or TIMESTAMPS; tensors are not traced");
      }
      scope.timestamps = scope.timestamps.value_or(false) || value == "TIMESTAMPS";
    }
    return absl::OkStatus();
  }
  const bool rate = name == "trace_rate";
  if (!rate && name != "trace_count") {
    return Bad(StrCat("there is no setting '", name.substr(0, 64),
                      "'; there are trace_level, trace_rate and trace_count, and traces go to the "
                      "access log"));
  }
  std::optional<int64_t>& value = rate ? scope.rate : scope.count;
  value.reset();
  if (clear) return absl::OkStatus();
  if (values.size() != 1) return Bad(StrCat("'", name, "' must have one value"));
  return ReadCount(name, values[0], /*or_all=*/!rate, value);
}

absl::Status TraceSettings::Set(const std::string& model, const Values& values) {
  const std::lock_guard lock(mutex_);
  const Scope* old = model.empty() ? &server_ : Find(model);
  Scope scope = old == nullptr ? Scope() : *old;
  for (const auto& [name, texts] : values) {
    const absl::Status status = SetOne(name, texts, scope);
    if (!status.ok()) return status;
  }
  if (!values.empty()) scope.seen = 0;
  if (model.empty())
    server_ = scope;
  else if (scope.empty())
    models_.erase(model);
  else
    models_[model] = scope;
  return absl::OkStatus();
}

bool TraceSettings::Take(const std::string& model) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  Scope* own = found == models_.end() ? nullptr : &found->second;
  const auto of = [&](auto member, auto otherwise) {
    if (own != nullptr && (own->*member)) return *(own->*member);
    return (server_.*member).value_or(otherwise);
  };
  if (!of(&Scope::timestamps, false)) return false;
  if ((own != nullptr ? own : &server_)->seen++ % of(&Scope::rate, kDefaultRate) != 0) return false;
  // The count is decremented where it was set.
  std::optional<int64_t>& left = own != nullptr && own->count ? own->count : server_.count;
  if (!left || *left == kAllRequests) return true;
  if (*left == 0) return false;
  --*left;
  return true;
}

}  // namespace oncilla::server
