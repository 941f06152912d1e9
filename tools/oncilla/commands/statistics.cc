// Percentiles are computed like NumPy's default: at position q * (n - 1) among the sorted samples.
#include "tools/oncilla/commands/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oncilla::tool {
namespace {

double Percentile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

}  // namespace

Summary Summarize(std::vector<double> samples) {
  Summary out;
  if (samples.empty()) return out;
  std::sort(samples.begin(), samples.end());
  out.count = samples.size();
  out.min = samples.front();
  out.max = samples.back();
  out.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(out.count);
  out.median = Percentile(samples, 0.5);
  out.p90 = Percentile(samples, 0.9);
  out.p99 = Percentile(samples, 0.99);
  for (double& value : samples) value = std::abs(value - out.median);
  std::sort(samples.begin(), samples.end());
  out.mad = Percentile(samples, 0.5);
  return out;
}

}  // namespace oncilla::tool
