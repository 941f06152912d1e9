// Matching of name patterns. At worst the time grows with the product of both lengths.
#include "engine/base/name_pattern.h"

namespace oncilla {

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // Greedy matching that backtracks only to the last star, which suffices for patterns whose only
  // repetition is '*'.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace oncilla
