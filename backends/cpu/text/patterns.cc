// Regular expressions, by the table of functions that wraps RE2.
#include "backends/cpu/text/patterns.h"

#include <algorithm>

namespace oncilla::cpu {
namespace {

constexpr size_t kErrorBytes = 1024;

}  // namespace

Result<Pattern> Pattern::Compile(const std::string& pattern, bool longest) {
  ONCILLA_ASSIGN(const PatternFunctions* functions, FindPatternFunctions());
  char error[kErrorBytes];
  void* const regex =
      functions->compile(pattern.data(), pattern.size(), longest, error, sizeof(error));
  if (regex == nullptr) return InvalidArgument("Invalid pattern: ", pattern, ", error: ", error);
  return Pattern(functions, regex);
}

bool Pattern::Matches(std::string_view text) const {
  return functions_->match(regex_.get(), text.data(), text.size(), 0, true, nullptr, nullptr, 0);
}

bool Pattern::Find(std::string_view text, size_t from, std::span<std::string_view> groups) const {
  const char* begins[kMostPatternGroups];
  size_t sizes[kMostPatternGroups];
  const size_t count = std::min(groups.size(), kMostPatternGroups);
  if (!functions_->match(regex_.get(), text.data(), text.size(), from, false, begins, sizes,
                         count)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) groups[i] = {begins[i], sizes[i]};
  return true;
}

Status Pattern::CheckRewrite(const std::string& rewrite) const {
  char error[kErrorBytes];
  if (functions_->check_rewrite(regex_.get(), rewrite.data(), rewrite.size(), error,
                                sizeof(error))) {
    return Status();
  }
  return InvalidArgument("Invalid rewrite: ", rewrite, ", error: ", error);
}

}  // namespace oncilla::cpu
