// Reserving takes no lock, so a pool may do it under its own; only trimming takes one, and then the
// locks of the other pools.
#include "engine/memory/budget.h"

#include <algorithm>

namespace oncilla {

int64_t MemoryBudget::available_bytes() const {
  return std::max<int64_t>(limit_ - std::max<int64_t>(used_, 0), 0);
}

bool MemoryBudget::TryReserve(int64_t bytes) {
  int64_t used = used_;
  do {
    if (bytes < 0 || bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  int64_t peak = peak_;
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return true;
}

void MemoryBudget::Release(int64_t bytes) { used_ -= bytes; }

int MemoryBudget::AddPool(std::function<int64_t()> trim) {
  std::lock_guard lock(mutex_);
  pools_.emplace(next_, std::move(trim));
  return next_++;
}

void MemoryBudget::RemovePool(int id) {
  std::lock_guard lock(mutex_);
  pools_.erase(id);
}

int64_t MemoryBudget::TrimOthers(int id) {
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [other, trim] : pools_) {
    if (other != id) bytes += trim();
  }
  return bytes;
}

}  // namespace oncilla
