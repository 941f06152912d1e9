// Keeps samples of memory use.
#include "server/watch/history.h"

#include <unistd.h>

#include <fstream>

namespace oncilla::server {

void MemoryHistory::Add(const std::vector<DeviceUse>& uses) {
  Sample sample;
  sample.time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  for (const DeviceUse& use : uses) sample.bytes[use.device] = use.pool_bytes;
  sample.process_bytes = ResidentBytes();
  const std::lock_guard lock(mutex_);
  samples_.push_back(std::move(sample));
  if (samples_.size() > kMostSamples) samples_.pop_front();
}

std::vector<MemoryHistory::Sample> MemoryHistory::Samples() const {
  const std::lock_guard lock(mutex_);
  return {samples_.begin(), samples_.end()};
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace oncilla::server
