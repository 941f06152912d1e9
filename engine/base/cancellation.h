// CancellationToken: a wish that work end early, which any thread may utter and the work looks at.
//
// Copies share one wish. It cannot be taken back, and it interrupts nothing: who works asks
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
