// Classify: walks a compiled graph with concrete shapes and decides for each node what a segment
// does with it: fold it now, make it a step on its device, compute it as a host node after the
// steps, or leave it to a later segment.
#pragma once

#include <vector>

#include "engine/compile/plan.h"

namespace oncilla {

enum class Availability : uint8_t {
  kMissing,  // not visited, or no value
  kSettled,  // the value itself is known
  kGiven,    // available as a host tensor when the segment starts
  kPlanned,  // computed by a step of this segment
  kHost,     // computed by a host node after the steps
  kLater,    // only after this segment
};

struct Classified {
  Facts facts;                          // per value; meaningful unless missing or later
  std::vector<Availability> values;     // per value
  std::vector<NodeId> steps;            // in graph order
  std::vector<NodeId> host_nodes;       // in graph order
  std::vector<NodeId> settled_nodes;    // in graph order
  std::vector<bool> done;               // per node
  std::vector<ValueId> wanted_on_host;  // contents needed before later nodes can be planned
  std::vector<bool> own;                // per value: computed from the model's constants alone
  std::vector<bool> same;  // per value: known as in the earlier plan; false without one
  bool complete = true;
};

// With what was `earlier` classified of this graph, nodes that read what is the same are not
// inferred again.
Result<Classified> Classify(const CompiledGraph& compiled, Device& cpu, const SegmentStart& start,
                            const Classified* earlier = nullptr);

}  // namespace oncilla
