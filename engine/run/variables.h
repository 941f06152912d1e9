// VariableStore: the state that a model keeps between runs: its variables and tables, by name.
//
// A value is immutable and replaced as a whole, so a reader sees either the old or the new one.
// Runs that write take turns, so that a read and the write that follows from it are atomic.
// Thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/turns.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class VariableStore {
 public:
  // FailedPrecondition for a variable that has no value yet.
  Result<Tensor> Read(std::string_view name) const;
  // ResourceExhausted when the limit leaves no room; the variable then keeps its value.
  Status Assign(std::string_view name, Tensor value);
  // Gives a value to a variable that has none.
  Status Initialise(std::string_view name, Tensor value);
  bool Has(std::string_view name) const;
  std::vector<std::string> Names() const;
  // The bytes of all values, elements of lists included.
  int64_t bytes() const;
  void Clear();
  // Counts the bytes of all values on `held` from now on. To be called before there are any values.
  void CountOn(HeldMemory held);
  std::vector<std::pair<std::string, Tensor>> Values() const;

  // The writer's turn, held until the object is destroyed. DeadlineExceeded or Cancelled when the
  // run ends first.
  Result<Turns::Turn> TakeTurn(const RunControl& control) {
    return writing_.Take(control, "while another run was writing the model's variables");
  }

 private:
  mutable Mutex mutex_;
  Status Put(std::string_view name, Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::map<std::string, Tensor, std::less<>> values_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  HeldMemory held_ ABSL_GUARDED_BY(mutex_);
  Turns writing_;
};

}  // namespace oncilla
