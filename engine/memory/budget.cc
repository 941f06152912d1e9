// Reserving takes no lock, so a pool may do it while it holds its own. Only trimming takes a lock,
// and then the locks of the other pools.
#include "engine/memory/budget.h"

#include <algorithm>
#include <utility>

namespace oncilla {

MemoryBudget::MemoryBudget(int64_t limit_bytes, std::shared_ptr<MemoryBudget> parent)
    : limit_(limit_bytes), parent_(std::move(parent)) {
  if (parent_ != nullptr) {
    id_in_parent_ = parent_->AddPool([this] { return TrimAllBut(-1); });
  }
}

MemoryBudget::~MemoryBudget() {
  if (parent_ != nullptr) parent_->RemovePool(id_in_parent_);
}

int64_t MemoryBudget::available_bytes() const {
  const int64_t own = std::max<int64_t>(limit_ - std::max<int64_t>(used_, 0), 0);
  return parent_ == nullptr ? own : std::min(own, parent_->available_bytes());
}

bool MemoryBudget::Take(int64_t bytes) {
  int64_t used = used_;
  do {
    if (bytes < 0 || bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

bool MemoryBudget::TryReserve(int64_t bytes) {
  if (!Take(bytes)) return false;
  if (parent_ != nullptr && !parent_->TryReserve(bytes)) {
    used_ -= bytes;
    return false;
  }
  // Bytes that were reserved and released at once do not count as a peak.
  const int64_t used = used_;
  int64_t peak = peak_;
  while (peak < used && !peak_.compare_exchange_weak(peak, used)) {
  }
  return true;
}

void MemoryBudget::Release(int64_t bytes) {
  used_ -= bytes;
  if (parent_ != nullptr) parent_->Release(bytes);
}

int MemoryBudget::AddPool(std::function<int64_t()> trim) {
  std::lock_guard lock(mutex_);
  pools_.emplace(next_, std::move(trim));
  return next_++;
}

void MemoryBudget::RemovePool(int id) {
  std::lock_guard lock(mutex_);
  pools_.erase(id);
}

int64_t MemoryBudget::TrimAllBut(int id) {
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [other, trim] : pools_) {
    if (other != id) bytes += trim();
  }
  return bytes;
}

int64_t MemoryBudget::TrimOthers(int id) {
  const int64_t bytes = TrimAllBut(id);
  return parent_ == nullptr ? bytes : bytes + parent_->TrimAllBut(id_in_parent_);
}

}  // namespace oncilla
