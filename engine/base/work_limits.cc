// Each thread has a pointer to the limits of the work that it is doing.
#include "engine/base/work_limits.h"

#include <algorithm>
#include <cstring>

namespace oncilla {
namespace {

thread_local const WorkLimits* current = nullptr;

}  // namespace

const WorkLimits& WorkScope::Current() {
  static const auto* const none = new WorkLimits();
  return current != nullptr ? *current : *none;
}

WorkScope::WorkScope(WorkLimits limits)
    : limits_(std::move(limits)), before_(std::exchange(current, &limits_)) {}
WorkScope::~WorkScope() { current = before_; }

WorkLimitsOfCaller::WorkLimitsOfCaller(const WorkLimits* limits)
    : before_(std::exchange(current, limits)) {}
WorkLimitsOfCaller::~WorkLimitsOfCaller() { current = before_; }

HostCharge& HostCharge::operator=(HostCharge&& other) noexcept {
  if (this != &other) {
    Clear();
    account_ = std::move(other.account_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Status HostCharge::Grow(int64_t more) {
  if (account_ == nullptr) return Status();
  ONCILLA_TRY(account_->Take(more));
  bytes_ += more;
  return Status();
}

void HostCharge::Clear() noexcept {
  if (bytes_ > 0) account_->Give(std::exchange(bytes_, 0));
}

Status Growth::Settle() {
  calls_ = 0;
  ONCILLA_TRY(charge_.Grow(std::exchange(pending_, 0)));
  return WorkLook::Ask();
}

Status FillWithZeros(void* data, int64_t bytes) {
  constexpr int64_t kStretch = int64_t{4} << 20;  // takes some milliseconds
  for (int64_t at = 0; at < bytes; at += kStretch) {
    std::memset(static_cast<char*>(data) + at, 0,
                static_cast<size_t>(std::min(kStretch, bytes - at)));
    ONCILLA_TRY(WorkLook::Ask());
  }
  return Status();
}

Status WorkLook::Ask() {
  const EarlyEnd* end = WorkScope::Current().end;
  return end == nullptr ? Status() : MayGoOn(*end);
}

}  // namespace oncilla
