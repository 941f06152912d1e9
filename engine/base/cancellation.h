// CancellationToken: a request to end work early, which any thread may make.
//
// Copies share one request. It cannot be withdrawn, and it interrupts nothing: the work polls
// cancelled() wherever it could stop. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

namespace oncilla {

class CancellationToken {
 public:
  // A token that is never cancelled. Polling it costs nothing.
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
  // Whether anybody holds a copy that could be cancelled.
  bool possible() const { return wish_ != nullptr; }

 private:
  std::shared_ptr<std::atomic<bool>> wish_;
};

}  // namespace oncilla
