// ByteBudget: the number of bytes of requests that the server holds at the same time, over all
// connections and both front ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"

namespace oncilla::server {

inline constexpr const char* kCrowded =
    "the requests that the server holds already leave no room for this one";

class ByteBudget {
 public:
  explicit ByteBudget(size_t most) : most_(most) {}

  // Returns false, and takes nothing, where the sum would exceed the limit.
  bool Take(size_t bytes) {
    size_t now = held_;
    do {
      if (now > most_ || bytes > most_ - now) return false;
    } while (!held_.compare_exchange_weak(now, now + bytes));
    return true;
  }
  void Give(size_t bytes) { held_ -= bytes; }
  size_t held() const { return held_; }

 private:
  const size_t most_;
  std::atomic<size_t> held_{0};
};

// A part of the budget, released on destruction.
class ByteHold {
 public:
  ByteHold() = default;
  explicit ByteHold(ByteBudget* budget) : budget_(budget) {}
  ByteHold(ByteHold&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ByteHold() {
    if (budget_ != nullptr) budget_->Give(bytes_);
  }

  absl::Status Grow(size_t bytes) {
    if (budget_ == nullptr || bytes == 0) return absl::OkStatus();
    if (!budget_->Take(bytes)) {
      return absl::ResourceExhaustedError(kCrowded);
    }
    bytes_ += bytes;
    return absl::OkStatus();
  }

 private:
  ByteBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace oncilla::server
