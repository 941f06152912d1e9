// The least time of one node on a device, outside of any graph.
#pragma once

#include <vector>

#include "engine/device/device.h"

namespace oncilla::tool {

struct TimedOperand {
  TensorDesc desc;
  bool weight = false;  // a constant, packed as the device asks
};

// The minimum of several runs, at least three, within about `budget_s`: by the device's own stamps
// if it has them. Operands are small integers that are not all equal. Unimplemented if the device
// has no kernel for the node.
Result<double> LeastTime(Device& device, const OpDef& op, const AttrMap& attrs,
                         const std::vector<TimedOperand>& operands, double budget_s);

}  // namespace oncilla::tool
