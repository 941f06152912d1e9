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

// A load request may bring the model's configuration as text, and nothing else.
inline constexpr const char* kLoadConfig = "config";
inline absl::Status UnsupportedLoadParameter(std::string_view key) {
  if (key.starts_with("file:"))
    return absl::UnimplementedError(
        "files in a load request are not supported: a model's files are those of the repository");
  return absl::UnimplementedError(
      StrCat("the load parameter '", key.substr(0, 64), "' is not supported; there is config"));
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
