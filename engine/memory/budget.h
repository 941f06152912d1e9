// MemoryBudget: one limit for several pools on one device, and for several sessions.
//
// Constants live in pools of their own, so that unloading a model frees whole regions; the limit is
// still a common one. A pool reserves the bytes of a region before it asks the device, and a pool
// that is short asks the others to free their empty regions. A budget may have a parent, the
// device's total, which other sessions share: reservations count in both, and when the parent is
// full the other sessions are asked to free their empty regions too. Thread-safe.
//
// Locks: a budget calls its own pools while it holds its lock, and its parent without it; the
// parent holds its own lock while it calls the children. So the order is parent, child, pool,
// ledger.
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
  // What is still reserved (memory that a device could not free) stays reserved in the parent.
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  int64_t limit_bytes() const { return limit_; }
  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }
  // The smaller of what this limit and the parent leave.
  int64_t available_bytes() const;
  const MemoryBudget* parent() const { return parent_.get(); }
  // Applies from now on. Reservations above it stay until they are released.
  void SetLimit(int64_t bytes) { limit_ = bytes; }
  // Resets the peak to the current reservation.
  void ResetPeak() { peak_ = used_.load(); }

  bool TryReserve(int64_t bytes);
  void Release(int64_t bytes);

  // `trim` frees what a pool can spare and returns the bytes. It is called without any lock of the
  // pool that is short, and never after RemovePool has returned.
  int AddPool(std::function<int64_t()> trim);
  void RemovePool(int id);
  // Asks all pools but this one, then the other children of the parent, to free memory. Returns the
  // bytes.
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
