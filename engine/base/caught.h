// Fences: functions that turn an exception into a Status.
//
// The engine reports failures by Status, but any allocation can throw, WorkRefused (work_limits.h)
// is thrown where no status can be returned, and callbacks of the application may throw. No
// exception may leave a thread's function, a call of the C interface or code that has to clean up
// first, so these are fenced.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/base/status.h"

namespace oncilla {

// ResourceExhausted. It is created when the program starts, so that copying it allocates nothing.
const Status& OutOfHostMemory() noexcept;

// The status for the exception being handled: that of a WorkRefused, OutOfHostMemory() for any
// other failed allocation, else Internal with the exception's text. To be called within a catch
// clause; succeeds even if no memory can be allocated.
Status CaughtStatus() noexcept;

// Calls `body`, which returns a Status or a Result, and returns its result, or CaughtStatus() if it
// threw.
template <class F>
std::invoke_result_t<F> Fenced(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (...) {
    return CaughtStatus();
  }
}

}  // namespace oncilla
