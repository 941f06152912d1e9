// EmptyStrings: creates the elements of a tensor of strings, to be assigned later.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/work_limits.h"

namespace oncilla::cpu {

// A hundred million strings take seconds, so the loop checks from time to time whether the run
// should end.
inline Result<std::vector<std::string>> EmptyStrings(int64_t count) {
  constexpr int64_t kStretch = 1 << 18;
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(count));
  for (int64_t made = 0; made < count; made += kStretch) {
    ONCILLA_TRY(WorkLook::Ask());
    strings.resize(static_cast<size_t>(std::min(made + kStretch, count)));
  }
  return strings;
}

}  // namespace oncilla::cpu
