// Pattern: regular expressions of RE2.
//
// RE2 stands behind a table of functions, since a process may hold two of it: TensorFlow exports
// the names of the one inside it to all. A shared library cannot hold RE2 with its names hidden
// (Debian's archive is made for programs), so liboncilla.so opens a module of its own, whose names
// are looked up in the module first; programs and the archive are linked with RE2.
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
  // InvalidArgument in TensorFlow's words for what is no pattern; Unimplemented when the module is
  // not there. Alternatives are taken in order, or with `longest` by length.
  static Result<Pattern> Compile(const std::string& pattern, bool longest = false);

  // Whether the whole text matches.
  bool Matches(std::string_view text) const;
  // The first match that begins at `from` or later: groups[0] is all of it, the others what the
  // pattern's groups hold, null where they take no part.
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
