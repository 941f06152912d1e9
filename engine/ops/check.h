// Attributes of ops that look at values and do nothing with them: assertions, checks and messages.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Assert(condition, data...): fails the run when the condition is not true, with the data in the
// message, of each the first `summarize` elements (-1: all). It has no output.
struct AssertAttrs {
  int64_t summarize = 3;
  void Fields(auto&& field) { field("summarize", summarize); }
};

// CheckNumerics(x) -> x: fails the run when x has infinite elements or NaNs; `signs` tells the
// infinities apart in the message.
struct CheckNumericsAttrs {
  std::string message;
  bool signs = false;
  void Fields(auto&& field) {
    field("message", message);
    field("signs", signs);
  }
};

// Print(data...): a line in the default log, with `message` in front; of each tensor the first
// `summarize` elements, in brackets. A single string with `plain` is written as it is.
struct PrintAttrs {
  std::string message;
  int64_t summarize = 3;
  bool plain = false;
  void Fields(auto&& field) {
    field("message", message);
    field("summarize", summarize);
    field("plain", plain);
  }
};

}  // namespace oncilla
