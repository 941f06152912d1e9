// Parses a traceparent header and makes the id of a span.
#include "server/watch/trace_context.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_format.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

std::string NewSpanId() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  uint64_t id = 0;
  while (id == 0) id = random();
  return absl::StrFormat("%016x", id);
}

}  // namespace

std::string TraceContext::Header() const {
  return StrCat("00-", trace_id, "-", span_id, "-", flags);
}

TraceContext ParseTraceparent(std::string_view header) {
  // version 2, trace 32, parent 16, flags 2, with dashes between; later versions may be longer.
  constexpr size_t kLength = 55;
  if (header.size() < kLength) return {};
  const std::string_view version = header.substr(0, 2), trace = header.substr(3, 32),
                         parent = header.substr(36, 16), flags = header.substr(53, 2);
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return {};
  if (!IsLowerHex(version) || !IsLowerHex(trace) || !IsLowerHex(parent) || !IsLowerHex(flags))
    return {};
  if (version == "ff" || IsZero(trace) || IsZero(parent)) return {};
  if (version == "00" ? header.size() != kLength
                      : header.size() > kLength && header[kLength] != '-')
    return {};
  return {std::string(trace), std::string(parent), NewSpanId(), std::string(flags)};
}

}  // namespace oncilla::server
