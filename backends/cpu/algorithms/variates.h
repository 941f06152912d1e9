// Random numbers of distributions with parameters.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/ops/math/variates.h"

namespace oncilla::cpu {

Status SampleDistribution(const SampleDistributionAttrs& attrs, const Args& args);
// SampleDistribution's bounded_normal (truncated_normal.cc).
Status BoundedNormal(const Args& args);

}  // namespace oncilla::cpu
