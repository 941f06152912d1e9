// MemoryHistory: the memory held on each device over the last half hour, for the status page.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/model/served_model.h"

namespace oncilla::server {

class MemoryHistory {
 public:
  struct Sample {
    int64_t time_ms = 0;                   // since 1970
    std::map<std::string, int64_t> bytes;  // by device
    int64_t process_bytes = 0;             // resident
  };
  void Add(const std::vector<DeviceUse>& uses);
  std::vector<Sample> Samples() const;

 private:
  static constexpr size_t kMostSamples = 360;
  mutable std::mutex mutex_;
  std::deque<Sample> samples_;
};

// Bytes of the process in memory; 0 if the system does not report them.
int64_t ResidentBytes();

}  // namespace oncilla::server
