// The status that reports exhausted host memory is built before main runs, while there still is
// memory to build it.
#include "engine/base/caught.h"

#include <new>
#include <stdexcept>

#include "engine/base/work_limits.h"

namespace oncilla {

const Status& OutOfHostMemory() noexcept {
  static const auto* const status = new Status(Exhausted("the host is out of memory"));
  return *status;
}

namespace {
[[maybe_unused]] const Status& made_early = OutOfHostMemory();
}  // namespace

Status CaughtStatus() noexcept {
  try {
    try {
      throw;
    } catch (const WorkRefused& refused) {
      return refused.status();
    } catch (const std::bad_alloc&) {
      return OutOfHostMemory();
    } catch (const std::length_error&) {  // a size above what any container can hold
      return OutOfHostMemory();
    } catch (const std::exception& e) {
      return Internal("an exception: ", e.what());
    } catch (...) {
      return Internal("an exception that is not a std::exception");
    }
  } catch (...) {
    return OutOfHostMemory();
  }
}

}  // namespace oncilla
