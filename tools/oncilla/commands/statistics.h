// Statistics of repeated measurements, robust against occasional slow samples.
#pragma once

#include <cstddef>
#include <vector>

namespace oncilla::tool {

// A summary of samples in any unit. Percentiles interpolate between neighbouring samples.
struct Summary {
  size_t count = 0;
  double mean = 0, median = 0, min = 0, max = 0, p90 = 0, p99 = 0;
  double mad = 0;  // median distance from the median

  double relative_mad() const { return median > 0 ? mad / median : 0; }
  // A typical sample is more than 5 % off, so something else used the machine.
  bool noisy() const { return relative_mad() > 0.05; }
};

// All zero for no samples.
Summary Summarize(std::vector<double> samples);

}  // namespace oncilla::tool
