// Attributes of ops that only examine values: assertions, checks and messages.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Assert(condition, data...): fails the run when the condition is not true; the message shows the
// first `summarize` elements of each data tensor (-1: all). It has no output.
struct AssertAttrs {
  int64_t summarize = 3;
  void Fields(auto&& field) { field("summarize", summarize); }
};

// CheckNumerics(x) -> x: fails the run when x has infinite elements or NaNs; with `signs` the
// message distinguishes the infinities.
struct CheckNumericsAttrs {
  std::string message;
  bool signs = false;
  void Fields(auto&& field) {
    field("message", message);
    field("signs", signs);
  }
};

// Print(data...): a line in the default log that begins with `message`; the first `summarize`
// elements of each tensor, in brackets. A single string with `plain` is written as it is.
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
