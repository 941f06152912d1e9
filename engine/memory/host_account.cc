// Every take goes to the budget; the machine is asked once in a while, since that reads a file.
#include "engine/memory/host_account.h"

#include "engine/base/format.h"
#include "engine/base/free_memory.h"

namespace oncilla {
namespace {

constexpr int64_t kAskEvery = int64_t{32} << 20;

std::shared_ptr<PoolAccount> MakeAccount(const Pool& host, OwnerId owner) {
  if (WorkScope::Current().memory != nullptr) return nullptr;
  return std::make_shared<PoolAccount>(host.Hold({owner, MemoryCategory::kValues}));
}

WorkLimits LimitsWith(std::shared_ptr<HostAccount> own, const EarlyEnd* end) {
  WorkLimits limits = WorkScope::Current();
  if (own != nullptr) limits.memory = std::move(own);
  if (end != nullptr) limits.end = end;
  return limits;
}

}  // namespace

Status PoolAccount::Take(int64_t bytes) {
  if (bytes <= 0) return Status();
  MutexLock lock(&mutex_);
  if (closed_) return Status();
  unasked_ = SaturatingAdd(unasked_, bytes);
  if (unasked_ >= kAskEvery) {
    unasked_ = 0;
    std::string source;
    const int64_t free = AvailableHostMemory(&source);
    if (free >= 0 && bytes > free) {
      return Exhausted("asked for ", HumanBytes(bytes), " of host memory; free are ",
                       HumanBytes(free), " (", source, ")");
    }
  }
  return held_.Set(SaturatingAdd(held_.bytes(), bytes));
}

void PoolAccount::Give(int64_t bytes) noexcept {
  MutexLock lock(&mutex_);
  if (!closed_) (void)held_.Set(held_.bytes() - bytes);
}

void PoolAccount::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  (void)held_.Set(0);
}

CountedWork::CountedWork(const Pool& host, OwnerId owner, const EarlyEnd* end)
    : own_(MakeAccount(host, owner)), scope_(LimitsWith(own_, end)) {}

CountedWork::~CountedWork() {
  if (own_ != nullptr) own_->Close();
}

}  // namespace oncilla
