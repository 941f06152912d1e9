// MemoryBudget: one limit for several pools of one session on one device.
//
// Constants live in pools of their own, so that unloading a model returns whole regions; the limit
// is still one. A pool reserves the bytes of a region before it asks the device, and the one that
// is short asks the others for their empty regions. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace oncilla {

class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}

  int64_t limit_bytes() const { return limit_; }
  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }
  int64_t available_bytes() const;
  // Holds from now on. What is reserved above it stays until it is released.
  void SetLimit(int64_t bytes) { limit_ = bytes; }

  bool TryReserve(int64_t bytes);
  void Release(int64_t bytes);

  // `trim` gives back what a pool can spare and returns the bytes. It is called without any lock of
  // the pool that is short, never after RemovePool returned.
  int AddPool(std::function<int64_t()> trim);
  void RemovePool(int id);
  int64_t TrimOthers(int id);

 private:
  std::atomic<int64_t> limit_, used_{0}, peak_{0};
  std::mutex mutex_;
  int next_ = 0;
  std::map<int, std::function<int64_t()>> pools_;
};

}  // namespace oncilla
