// Parameters of requests that mean the same in both front ends.
#pragma once

#include "server/core/request.h"
#include "server/core/text.h"

namespace oncilla::server {

// What would change the answer, and is not there: refused rather than left out.
inline constexpr const char* kUnsupportedParameters[] = {"sequence_id", "sequence_start",
                                                         "sequence_end"};

inline absl::Status UnsupportedParameter(std::string_view key) {
  return absl::UnimplementedError(StrCat("the request parameter '", key, "' is not supported"));
}

inline absl::Status NoLoadParameters() {
  return absl::UnimplementedError(
      "loading takes no parameters: a model's configuration is its config.yaml");
}

inline absl::Status NoClassification() {
  return absl::UnimplementedError(
      "the classification extension is not supported: ask for the output itself");
}

// The parameter `timeout`, in microseconds; 0: none.
inline Clock::time_point TimeoutParameter(uint64_t microseconds) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  return microseconds > kMost
             ? kNever
             : After(std::chrono::microseconds(static_cast<int64_t>(microseconds)));
}

}  // namespace oncilla::server
