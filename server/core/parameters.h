// Parameters of requests with the same meaning in both front ends.
#pragma once

#include "server/core/request.h"
#include "server/core/text.h"

namespace oncilla::server {

// The parameter `sequence_id`: a number, or a text; 0 and the empty text are none.
inline std::string SequenceId(uint64_t number) {
  return number == 0 ? std::string() : StrCat(number);
}
inline absl::StatusOr<std::string> SequenceId(const std::string& text) {
  constexpr size_t kMost = 128;
  if (text.size() > kMost || !IsUtf8(text)) {
    return absl::InvalidArgumentError(
        StrCat("the parameter 'sequence_id' may have ", kMost, " bytes of UTF-8"));
  }
  return text.empty() ? text : StrCat("\"", text, "\"");
}
inline absl::Status BadSequenceId() {
  return absl::InvalidArgumentError(
      "the parameter 'sequence_id' must be a whole number, not negative, or a text");
}
inline absl::Status CheckSequence(const SequenceMark& mark) {
  if (!mark.id.empty() || (!mark.start && !mark.end)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the parameter '",
                                           mark.start ? "sequence_start" : "sequence_end",
                                           "' needs a 'sequence_id', neither 0 nor empty"));
}

// A load request may bring the model's configuration as text, and its files.
inline constexpr const char* kLoadConfig = "config";
inline constexpr const char* kLoadFile = "file:";
inline absl::Status UnsupportedLoadParameter(std::string_view key) {
  return absl::UnimplementedError(StrCat("the load parameter '", ValidUtf8(key.substr(0, 64)),
                                         "' is not supported; there are config and file:PATH"));
}

inline absl::Status NoCuda() {
  return absl::UnimplementedError("CUDA shared memory is not supported");
}

// The parameter `timeout`, in microseconds; 0: none.
inline Clock::time_point TimeoutParameter(uint64_t microseconds) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  return microseconds > kMost
             ? kNever
             : After(std::chrono::microseconds(static_cast<int64_t>(microseconds)));
}

}  // namespace oncilla::server
