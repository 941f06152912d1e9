// SharedMemory: regions of POSIX shared memory that clients on this machine registered. They are
// read and written with pread and pwrite, never mapped: a client that shortens a region gets an
// error, where a mapping would end the server.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/core/request.h"

namespace oncilla::server {

struct MemoryRegion {
  std::string name;
  std::string key;  // of shm_open: a slash and a name
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class SharedMemory {
 public:
  // Not `enabled`: registering is refused.
  explicit SharedMemory(bool enabled) : enabled_(enabled) {}
  ~SharedMemory();

  absl::Status Register(const MemoryRegion& region);
  // An empty name: all. A name that is not registered is not an error, as in other servers.
  void Unregister(const std::string& name);
  // An empty name: all. NotFound for one that is not registered.
  absl::StatusOr<std::vector<MemoryRegion>> Regions(const std::string& name) const;

  absl::StatusOr<std::string> Read(const MemoryTarget& source) const;
  absl::Status Write(const MemoryTarget& target, const std::string& bytes) const;

 private:
  struct Opened {
    MemoryRegion region;
    int file = -1;
  };
  // The region's file and the offset in it.
  absl::StatusOr<std::pair<int, uint64_t>> Locate(const MemoryTarget& target) const;

  const bool enabled_;
  mutable std::mutex
      mutex_;  // held while reading and writing, too: a region may be unregistered meanwhile
  std::map<std::string, Opened> regions_;
};

}  // namespace oncilla::server
