// Pattern: regular expressions of RE2.
//
// RE2 is called through a table of functions, since a process may contain two copies of it:
// TensorFlow exports the symbols of its own copy globally. A shared library cannot contain RE2 with
// hidden symbols (Debian's archive is built for programs), so liboncilla.so opens a module of
// its own, whose symbols are resolved in the module first; programs and the archive are linked with
// RE2.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/cpu/text/patterns_re2.h"
#include "engine/base/status.h"

namespace oncilla::cpu {

class Pattern {
 public:
  // InvalidArgument with TensorFlow's message for an invalid pattern; Unimplemented when the module
  // does not exist. Alternatives are tried in order, or with `longest` the longest match counts.
  static Result<Pattern> Compile(const std::string& pattern, bool longest = false);

  // Whether the whole text matches.
  bool Matches(std::string_view text) const;
  // The first match that begins at `from` or later: groups[0] is all of it, the others are the
  // pattern's groups, null if they did not take part.
  bool Find(std::string_view text, size_t from, std::span<std::string_view> groups) const;
  // InvalidArgument when `rewrite` refers to groups that the pattern does not have.
  Status CheckRewrite(const std::string& rewrite) const;

 private:
  Pattern(const PatternFunctions* functions, void* regex)
      : functions_(functions), regex_(regex, functions->free) {}
  const PatternFunctions* functions_;
  std::unique_ptr<void, void (*)(void*)> regex_;
};

// Linked or loaded; see above.
Result<const PatternFunctions*> FindPatternFunctions();

}  // namespace oncilla::cpu
