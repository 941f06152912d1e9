// Feeds for planning: of the right shapes, for graphs that are not run.
#pragma once

#include <string>
#include <vector>

#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"

namespace oncilla::tool {

struct PlanFeeds {
  std::vector<Tensor> feeds;  // empty when a size is open
  std::string open_sizes;     // why there are none
};

// Reads the given files; other feeds are zeros of the right shape, which is wrong only if shapes
// depend on the values.
Result<PlanFeeds> FeedsForPlan(const OpenedModel& opened, const CompiledGraph& compiled,
                               const InputFlags& flags);

}  // namespace oncilla::tool
