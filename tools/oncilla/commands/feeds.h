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

// From files where they are given; else of the right shape and all zero, which says nothing wrong
// unless shapes depend on the values.
Result<PlanFeeds> FeedsForPlan(const OpenedModel& opened, const CompiledGraph& compiled,
                               const InputFlags& flags);

}  // namespace oncilla::tool
