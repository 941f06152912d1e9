// Feeds for planning: of the right shapes, where nothing is run.
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

// Reads the files that are given; other feeds are zeros of the right shape, which is wrong only
// where shapes depend on the values.
Result<PlanFeeds> FeedsForPlan(const OpenedModel& opened, const CompiledGraph& compiled,
                               const InputFlags& flags);

}  // namespace oncilla::tool
