// MemoryBudget: one limit for several pools on one device, and for several sessions.
//
// Constants live in pools of their own, so that unloading a model returns whole regions; the limit
// is still one. A pool reserves the bytes of a region before it asks the device, and the one that
// is short asks the others for their empty regions. A budget may have a parent, the device's total,
// which other sessions share: what is reserved counts in both, and when the parent is full the
// other sessions are asked for their empty regions too. Thread-safe.
//
// Locks: a budget asks its own pools holding its lock, and its parent without it; the parent holds
// its own while it asks the children. So the order is parent, child, pool, ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace oncilla {

class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes, std::shared_ptr<MemoryBudget> parent = nullptr);
  // What is still reserved (memory that a device did not take back) stays so in the parent.
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  int64_t limit_bytes() const { return limit_; }
  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }
  // What limit and parent leave.
  int64_t available_bytes() const;
  const MemoryBudget* parent() const { return parent_.get(); }
  // Holds from now on. What is reserved above it stays until it is released.
  void SetLimit(int64_t bytes) { limit_ = bytes; }
  // The peak becomes what is reserved now.
  void ResetPeak() { peak_ = used_.load(); }

  bool TryReserve(int64_t bytes);
  void Release(int64_t bytes);

  // `trim` gives back what a pool can spare and returns the bytes. It is called without any lock of
  // the pool that is short, never after RemovePool returned.
  int AddPool(std::function<int64_t()> trim);
  void RemovePool(int id);
  // Asks all pools but this one, then what shares the parent. Returns the bytes.
  int64_t TrimOthers(int id);

 private:
  bool Take(int64_t bytes);
  int64_t TrimAllBut(int id);

  std::atomic<int64_t> limit_, used_{0}, peak_{0};
  const std::shared_ptr<MemoryBudget> parent_;
  int id_in_parent_ = -1;
  std::mutex mutex_;
  int next_ = 0;
  std::map<int, std::function<int64_t()>> pools_;
};

}  // namespace oncilla
