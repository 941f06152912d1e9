// Fences: where an exception becomes a Status.
//
// Nothing in the engine throws on purpose, but memory can be refused anywhere, and functions of the
// application are called. An exception must not leave a thread's function, a call of the C
// interface or a place that has something to put in order first: these are fenced.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/base/status.h"

namespace oncilla {

// ResourceExhausted, made when the program starts: giving a copy takes no memory.
const Status& OutOfHostMemory() noexcept;

// What the exception being handled comes to: OutOfHostMemory() where memory was refused, else
// Internal with its text. To be called within a catch clause; needs no memory that must be there.
Status CaughtStatus() noexcept;

// What `body`, which returns a Status or a Result, returns, or what it threw as that.
template <class F>
std::invoke_result_t<F> Fenced(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (...) {
    return CaughtStatus();
  }
}

}  // namespace oncilla
