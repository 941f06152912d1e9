// VariableStore: what a model remembers between runs: its variables and tables, by name.
//
// A value is immutable and replaced as a whole, so a reader sees either the old or the new one.
// Runs that write take turns, so that a read and the write that follows from it belong together.
// Thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/run_control.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class VariableStore {
 public:
  // FailedPrecondition for a variable that has no value yet.
  Result<Tensor> Read(std::string_view name) const;
  // ResourceExhausted when the limit leaves no room; the variable then keeps what it has.
  Status Assign(std::string_view name, Tensor value);
  // Gives a value to a variable that has none.
  Status Initialise(std::string_view name, Tensor value);
  bool Has(std::string_view name) const;
  std::vector<std::string> Names() const;
  // With those of lists.
  int64_t bytes() const;
  void Clear();
  // From now on the values' bytes are held there. Before there are any.
  void CountOn(HeldMemory held);
  std::vector<std::pair<std::string, Tensor>> Values() const;

  // A writer's turn, until the object goes. DeadlineExceeded or Cancelled when the run ends first.
  class Turn {
   public:
    Turn(Turn&& other) noexcept : store_(std::exchange(other.store_, nullptr)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(store_, other.store_);
      return *this;
    }
    ~Turn();

   private:
    friend class VariableStore;
    explicit Turn(VariableStore* store) : store_(store) {}
    VariableStore* store_;
  };
  Result<Turn> TakeTurn(const RunControl& control);

 private:
  mutable Mutex mutex_;
  Status Put(std::string_view name, Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::map<std::string, Tensor, std::less<>> values_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  HeldMemory held_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace oncilla
