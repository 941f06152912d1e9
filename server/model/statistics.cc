// Counts requests and executions.
#include "server/model/statistics.h"

#include <algorithm>

namespace oncilla::server {

void Histogram::Add(std::chrono::nanoseconds time) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(time).count());
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts[static_cast<size_t>(bucket)];
  sum += seconds;
  ++count;
}

double Histogram::Quantile(double share) const {
  const double wanted = share * static_cast<double>(count);
  uint64_t below = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    below += counts[i];
    if (below > 0 && static_cast<double>(below) >= wanted) return kBounds[i];
  }
  return count == 0 ? 0 : kBounds.back();
}

void StatisticsRecorder::RequestDone(const absl::Status& status, std::chrono::nanoseconds total,
                                     std::chrono::nanoseconds queue) {
  const std::lock_guard lock(mutex_);
  ++counted_.requests[static_cast<int>(status.code())];
  counted_.latency.Add(total);
  counted_.waiting.Add(queue);
  if (!status.ok()) {
    counted_.fail.Add(total);
    return;
  }
  counted_.success.Add(total);
  counted_.queue.Add(queue);
  counted_.last_inference_ms =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count());
}

void StatisticsRecorder::Executed(uint64_t requests, uint64_t rows, const ExecutionTimes& times) {
  const std::lock_guard lock(mutex_);
  counted_.inferences += rows;
  ++counted_.executions;
  counted_.input.Add(times.input, requests);
  counted_.infer.Add(times.infer, requests);
  counted_.output.Add(times.output, requests);
  BatchCount& batch = counted_.batches[rows];
  batch.input.Add(times.input);
  batch.infer.Add(times.infer);
  batch.output.Add(times.output);
}

Statistics StatisticsRecorder::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

}  // namespace oncilla::server
