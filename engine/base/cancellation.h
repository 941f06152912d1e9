// CancellationToken: a request that work end early, which any thread may make and the work checks.
//
// Copies share one request. It cannot be withdrawn, and it interrupts nothing: the work checks
// cancelled() wherever it could stop. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

namespace oncilla {

class CancellationToken {
 public:
  // Never cancelled, and costs nothing to ask.
  CancellationToken() = default;
  static CancellationToken Create() {
    CancellationToken token;
    token.wish_ = std::make_shared<std::atomic<bool>>(false);
    return token;
  }

  void Cancel() const {
    if (wish_ != nullptr) wish_->store(true, std::memory_order_release);
  }
  bool cancelled() const { return wish_ != nullptr && wish_->load(std::memory_order_acquire); }
  // Whether somebody could cancel it.
  bool possible() const { return wish_ != nullptr; }

 private:
  std::shared_ptr<std::atomic<bool>> wish_;
};

}  // namespace oncilla
