// TraceSettings: which requests are traced, as clients set it for the server or for a model. A
// traced request has the times of its parts in the access log.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace oncilla::server {

class TraceSettings {
 public:
  // By name: trace_level (OFF, TIMESTAMPS), trace_rate (every so many requests), trace_count (so
  // many, or -1).
  using Values = std::map<std::string, std::vector<std::string>>;

  // The settings of a model or, with an empty name, of the server.
  Values Get(const std::string& model) const;
  // Sets what `values` names. A setting without a value is reset: that of a model to the server's,
  // that of the server to the default. InvalidArgument for unknown names and values, which changes
  // nothing.
  absl::Status Set(const std::string& model, const Values& values);

  // Whether this request of the model is traced.
  bool Take(const std::string& model);

 private:
  struct Scope {
    std::optional<bool> timestamps;
    std::optional<int64_t> rate, count;
    int64_t seen = 0;  // requests since something was set here
    bool empty() const { return !timestamps && !rate && !count; }
  };
  const Scope* Find(const std::string& model) const;
  static absl::Status SetOne(const std::string& name, const std::vector<std::string>& values,
                             Scope& scope);

  mutable std::mutex mutex_;
  Scope server_;
  std::map<std::string, Scope> models_;
};

}  // namespace oncilla::server
