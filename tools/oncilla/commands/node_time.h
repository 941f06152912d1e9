// How long one node takes on a device at best, outside of any graph.
#pragma once

#include <vector>

#include "engine/device/device.h"

namespace oncilla::tool {

struct TimedOperand {
  TensorDesc desc;
  bool weight = false;  // a constant, packed as the device asks
};

// The least of several runs, at least three, within about `budget_s`: by the device's own stamps
// where it gives them. Operands are small integers that are not all alike. Unimplemented where the
// device has no kernel for the node.
Result<double> LeastTime(Device& device, const OpDef& op, const AttrMap& attrs,
                         const std::vector<TimedOperand>& operands, double budget_s);

}  // namespace oncilla::tool
