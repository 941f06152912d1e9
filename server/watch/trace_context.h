// The ids of a distributed trace, as W3C's Trace Context carries them in the header `traceparent`.
#pragma once

#include <string>
#include <string_view>

namespace oncilla::server {

struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits; empty where the request has none
  std::string parent_id;  // 16: the caller's span
  std::string span_id;    // 16: this request's own, made here
  std::string flags;      // 2
  bool empty() const { return trace_id.empty(); }
  // "00-<trace>-<span>-<flags>": the header of the response.
  std::string Header() const;
};

// Reads a traceparent; anything that is not one gives an empty context.
TraceContext ParseTraceparent(std::string_view header);

}  // namespace oncilla::server
