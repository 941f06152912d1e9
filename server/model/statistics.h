// The statistics of a version of a model, from which the protocol's statistics and the metrics are
// both derived.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>

#include "server/core/request.h"

namespace oncilla::server {

// A count, and the total duration.
struct DurationCount {
  uint64_t count = 0;
  uint64_t ns = 0;
  void Add(std::chrono::nanoseconds time, uint64_t times = 1) {
    count += times;
    ns += static_cast<uint64_t>(time.count() > 0 ? time.count() : 0) * times;
  }
};

// Counts per bucket of seconds, as Prometheus wants them (its buckets are sums up to a bound).
struct Histogram {
  static constexpr std::array<double, 14> kBounds = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  std::array<uint64_t, kBounds.size() + 1> counts = {};
  double sum = 0;
  uint64_t count = 0;
  void Add(std::chrono::nanoseconds time);
  // The value below which a share of all lies, as the upper bound of its bucket; 0 if nothing was
  // counted.
  double Quantile(double share) const;
};

struct BatchCount {
  DurationCount input, infer, output;
};

// How long the parts of one execution took.
struct ExecutionTimes {
  std::chrono::nanoseconds input{}, infer{}, output{};
};

struct Statistics {
  uint64_t last_inference_ms = 0;  // since 1970; 0: none yet
  uint64_t inferences = 0;         // rows of batches; 1 for each request of a model without batches
  uint64_t executions = 0;
  DurationCount success, fail, queue, input, infer, output;
  std::map<uint64_t, BatchCount> batches;  // by rows
  std::map<int, uint64_t> requests;        // by absl::StatusCode
  Histogram latency, waiting;
};

class StatisticsRecorder {
 public:
  // A request is over: `total` since it was accepted, of which it waited `queue` for its execution.
  void RequestDone(const absl::Status& status, std::chrono::nanoseconds total,
                   std::chrono::nanoseconds queue);
  // An execution for `requests` requests, of `rows` rows in all, went well.
  void Executed(uint64_t requests, uint64_t rows, const ExecutionTimes& times);
  Statistics Snapshot() const;

 private:
  mutable std::mutex mutex_;
  Statistics counted_;
};

}  // namespace oncilla::server
