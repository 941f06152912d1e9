// The part of C's preprocessor that the kernels use: conditionals, macros with and without
// parameters, and ##. No #undef, no __VA_ARGS__, no # operator.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace oncilla::testing {

using Tokens = std::vector<std::string>;

class Preprocessor {
 public:
  // Reads a text and appends its tokens, without expanding macros, to `tokens`.
  Status Read(std::string text);
  // With all macros as they are at the end of the text.
  Tokens Expand(const Tokens& in, const std::set<std::string>& hidden = {}) const;

  Tokens tokens;

 private:
  struct Macro {
    bool function = false;
    Tokens parameters, body;
  };
  struct Condition {
    bool outside, taken, now;  // what is around it is read; a branch was; this branch is
  };
  Status Directive(std::string_view line);
  void Define(std::string_view text);
  Result<bool> Holds(const Tokens& condition) const;
  Tokens Substitute(const Macro& macro, const std::vector<Tokens>& arguments,
                    const std::set<std::string>& hidden) const;

  std::map<std::string, Macro, std::less<>> macros_;
  std::vector<Condition> conditions_;
};

// Words, numbers, strings and operators; white space is dropped.
Tokens Tokenize(std::string_view text);

}  // namespace oncilla::testing
