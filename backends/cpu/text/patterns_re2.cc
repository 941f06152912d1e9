// RE2 behind plain functions. Compiled into the static library, and alone into the module that
// liboncilla.so opens.
#include "backends/cpu/text/patterns_re2.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

namespace {

void CopyText(const std::string& from, char* to, size_t size) {
  const size_t count = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), count);
  to[count] = 0;
}

void* Compile(const char* text, size_t size, bool longest, char* error, size_t error_size) {
  RE2::Options options(RE2::Quiet);
  options.set_longest_match(longest);
  auto regex = std::make_unique<RE2>(re2::StringPiece(text, size), options);
  if (regex->ok()) return regex.release();
  CopyText(regex->error(), error, error_size);
  return nullptr;
}

void Free(void* regex) { delete static_cast<RE2*>(regex); }

bool Match(const void* regex, const char* text, size_t size, size_t from, bool whole,
           const char** begins, size_t* sizes, size_t count) {
  re2::StringPiece groups[kMostPatternGroups];
  count = std::min(count, kMostPatternGroups);
  const bool found = static_cast<const RE2*>(regex)->Match(
      re2::StringPiece(text, size), from, size, whole ? RE2::ANCHOR_BOTH : RE2::UNANCHORED, groups,
      static_cast<int>(count));
  for (size_t i = 0; found && i < count; ++i) {
    begins[i] = groups[i].data();
    sizes[i] = groups[i].size();
  }
  return found;
}

bool CheckRewrite(const void* regex, const char* rewrite, size_t size, char* error,
                  size_t error_size) {
  std::string why;
  const bool good =
      static_cast<const RE2*>(regex)->CheckRewriteString(re2::StringPiece(rewrite, size), &why);
  if (!good) CopyText(why, error, error_size);
  return good;
}

}  // namespace

const PatternFunctions* oncilla_pattern_functions() {
  static constexpr PatternFunctions kFunctions = {kPatternFunctions, Compile, Free, Match,
                                                  CheckRewrite};
  return &kFunctions;
}
