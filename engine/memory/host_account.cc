// Every allocation is charged to the budget. The system's free memory is read only after every
// kAskEvery bytes, since that reads a file.
#include "engine/memory/host_account.h"

#include <algorithm>

#include "engine/base/format.h"
#include "engine/base/free_memory.h"

namespace oncilla {
namespace {

constexpr int64_t kAskEvery = int64_t{32} << 20;

// Checks that the system has `bytes` more, but only when `unasked` reaches kAskEvery.
Status AskMachine(int64_t bytes, int64_t& unasked) {
  unasked = SaturatingAdd(unasked, bytes);
  if (unasked < kAskEvery) return Status();
  unasked = 0;
  std::string source;
  const int64_t free = AvailableHostMemory(&source);
  if (free < 0 || bytes <= free) return Status();
  return Exhausted("asked for ", HumanBytes(bytes), " of host memory; ", HumanBytes(free),
                   " are free (", source, ")");
}

std::shared_ptr<PoolAccount> MakeAccount(const Pool& host, OwnerId owner) {
  if (WorkScope::Current().memory != nullptr) return nullptr;
  return std::make_shared<PoolAccount>(host, owner);
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
  ONCILLA_TRY(AskMachine(bytes, unasked_));
  Status taken = held_.Set(SaturatingAdd(held_.bytes(), bytes));
  if (taken.ok() || host_.idle_committed_bytes() - covered_ < bytes) return taken;
  covered_ += bytes;
  return Status();
}

void PoolAccount::Give(int64_t bytes) noexcept {
  MutexLock lock(&mutex_);
  if (closed_) return;
  const int64_t idle = std::min(bytes, covered_);
  covered_ -= idle;
  (void)held_.Set(held_.bytes() - (bytes - idle));
}

void PoolAccount::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  (void)held_.Set(0);
}

Status BoundedAccount::Take(int64_t bytes) {
  MutexLock lock(&mutex_);
  ONCILLA_TRY(AskMachine(bytes, unasked_));
  if (bytes > most_ - bytes_) {
    return Exhausted("asked for ", HumanBytes(bytes), " of host memory in addition to ",
                     HumanBytes(bytes_), "; the bound is ", HumanBytes(most_));
  }
  bytes_ += bytes;
  return Status();
}

void BoundedAccount::Give(int64_t bytes) noexcept {
  MutexLock lock(&mutex_);
  bytes_ -= bytes;
}

CountedWork::CountedWork(const Pool& host, OwnerId owner, const EarlyEnd* end)
    : own_(MakeAccount(host, owner)), scope_(LimitsWith(own_, end)) {}

CountedWork::~CountedWork() {
  if (own_ != nullptr) own_->Close();
}

}  // namespace oncilla
