// WorkLimits: what bounds a thread's work: an account that counts host memory, and an early end.
//
// Sizes come from files, attributes and data, and the code that reads them is called at many levels
// below the code that knows the limits. So the limits belong to the thread: code that begins a unit
// of work (a run, a compilation) opens a WorkScope, the thread pool passes it to its workers, and
// code that allocates asks Current(). Host tensors do so by themselves (Tensor::Allocate); a
// kernel's scratch is a HostVector; anything else (strings, nodes of a graph) holds a HostCharge.
// Without a scope nothing is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/base/status.h"

namespace oncilla {

// Counts host memory against a limit. Thread-safe.
class HostAccount {
 public:
  virtual ~HostAccount() = default;
  // ResourceExhausted when the limit, or the machine, has no room for so many more bytes.
  virtual Status Take(int64_t bytes) = 0;
  virtual void Give(int64_t bytes) noexcept = 0;
};

struct WorkLimits {
  std::shared_ptr<HostAccount> memory = nullptr;
  const EarlyEnd* end = nullptr;  // borrowed
};

// Sets the limits of this thread's work for as long as the object lives. Scopes nest.
class WorkScope {
 public:
  explicit WorkScope(WorkLimits limits);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

  static const WorkLimits& Current();

 private:
  const WorkLimits limits_;
  const WorkLimits* const before_;
};

// For threads that do part of another thread's work: applies that thread's limits, which are
// borrowed.
class WorkLimitsOfCaller {
 public:
  explicit WorkLimitsOfCaller(const WorkLimits* limits);
  ~WorkLimitsOfCaller();
  WorkLimitsOfCaller(const WorkLimitsOfCaller&) = delete;
  WorkLimitsOfCaller& operator=(const WorkLimitsOfCaller&) = delete;

 private:
  const WorkLimits* const before_;
};

// Thrown by a HostVector, and to leave another library's function (a sort) early; the nearest fence
// (caught.h) converts it to the status that it holds.
class WorkRefused : public std::bad_alloc {
 public:
  explicit WorkRefused(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return "a limit of the work"; }

 private:
  Status status_;
};

// Bytes counted on the account of the current work for as long as the object lives. Movable.
class HostCharge {
 public:
  HostCharge() : account_(WorkScope::Current().memory) {}
  HostCharge(HostCharge&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostCharge& operator=(HostCharge&& other) noexcept;
  ~HostCharge() { Clear(); }

  // Counts more bytes, before they are allocated. On ResourceExhausted nothing changes.
  Status Grow(int64_t more);
  void Clear() noexcept;
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<HostAccount> account_;
  int64_t bytes_ = 0;
};

// Checks from time to time whether the work should end: `ONCILLA_TRY(look.Go(n))` in a loop over
// data, where `n` is the number of elements or bytes handled since the last call.
class WorkLook {
 public:
  Status Go(int64_t done) {
    done_ += done;
    if (done_ < kStretch) return Status();
    done_ = 0;
    return Ask();
  }
  // The same for functions that cannot return a status.
  void GoOrThrow(int64_t done) {
    if (Status s = Go(done); !s.ok()) throw WorkRefused(std::move(s));
  }
  // Checks immediately.
  static Status Ask();

 private:
  static constexpr int64_t kStretch = 1 << 16;
  int64_t done_ = 0;
};

// Counts the memory that a loop over data allocates piece by piece (above all strings). It counts a
// block of bytes at a time, before they are allocated, and then checks whether the work should end.
class Growth {
 public:
  // ResourceExhausted, or the reason why the work ends early.
  Status Add(int64_t bytes) {
    if (__builtin_add_overflow(pending_, bytes, &pending_)) pending_ = INT64_MAX;
    if (pending_ < kStretch && ++calls_ < kCalls) return Status();
    return Settle();
  }
  // Stops counting, because the holder of the result counts it from now on.
  void Clear() noexcept { charge_.Clear(); }

 private:
  Status Settle();
  static constexpr int64_t kStretch = 1 << 16;
  static constexpr int kCalls = 1 << 12;
  HostCharge charge_;
  int64_t pending_ = 0;
  int calls_ = 0;
};

// Fills new memory with zeros, a block at a time, checking in between whether the work should end:
// the system allocates the pages only when they are written, which takes longer than most of what
// is done with them.
Status FillWithZeros(void* data, int64_t bytes);

// Charges large allocations to the account of the current work.
template <class T>
class HostAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  HostAllocator() : account_(WorkScope::Current().memory) {}
  template <class U>
  HostAllocator(const HostAllocator<U>& other) : account_(other.account()) {}  // NOLINT: rebinding

  T* allocate(size_t count) {
    if (count > static_cast<size_t>(std::numeric_limits<int64_t>::max()) / sizeof(T)) {
      throw WorkRefused(Exhausted("asked for ", count, " times ", sizeof(T), " bytes"));
    }
    const auto bytes = static_cast<int64_t>(count * sizeof(T));
    if (Counts(bytes)) {
      if (Status taken = account_->Take(bytes); !taken.ok()) throw WorkRefused(std::move(taken));
    }
    T* data = nullptr;
    try {
      data = std::allocator<T>().allocate(count);
    } catch (...) {
      if (Counts(bytes)) account_->Give(bytes);
      throw;
    }
    if (bytes < kLarge) return data;
    if (Status filled = FillWithZeros(data, bytes); !filled.ok()) {
      deallocate(data, count);
      throw WorkRefused(std::move(filled));
    }
    return data;
  }
  void deallocate(T* data, size_t count) noexcept {
    std::allocator<T>().deallocate(data, count);
    const auto bytes = static_cast<int64_t>(count * sizeof(T));
    if (Counts(bytes)) account_->Give(bytes);
  }
  const std::shared_ptr<HostAccount>& account() const { return account_; }
  friend bool operator==(const HostAllocator& a, const HostAllocator& b) {
    return a.account_ == b.account_;
  }

 private:
  static constexpr int64_t kSmall = 4096;
  static constexpr int64_t kLarge = int64_t{16} << 20;  // glibc allocates such sizes in new pages
  bool Counts(int64_t bytes) const { return account_ != nullptr && bytes >= kSmall; }
  std::shared_ptr<HostAccount> account_;
};

// For scratch whose size depends on a model or its data. Growing it throws WorkRefused.
template <class T>
using HostVector = std::vector<T, HostAllocator<T>>;

}  // namespace oncilla
