// PlanMemo: what a plan leaves to the next one of the same graph. A decoder's cache grows by a row
// in each step, and the plan for its new shapes differs from the last one in few nodes: those about
// whose inputs the same is known need no inference and share their kernels.
#pragma once

#include <memory>
#include <vector>

#include "engine/compile/classify.h"

namespace oncilla {

// Immutable, so that several threads may plan with it.
struct PlanMemo {
  std::vector<bool> begun;                       // SegmentStart::done of its segment
  Classified classified;                         // its facts, states and what the model owns
  std::vector<std::shared_ptr<Kernel>> kernels;  // per node; null where it had none
  std::vector<ArenaOrder> arenas;                // per device: how its buffers were packed
};

}  // namespace oncilla
