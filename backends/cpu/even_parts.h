// Divides rows into parts of nearly equal size. Chunks of a fixed length leave a remainder, and
// often give one worker one more chunk than another, for which short calls then wait.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// The number of parts for n rows: about `parts`, the same number for each worker. For results that
// do not depend on where parts begin.
inline int64_t EvenParts(const Threads& threads, int64_t n, int64_t parts) {
  const int64_t workers = WorkersOf(threads);
  return std::clamp<int64_t>((parts + workers - 1) / workers * workers, 1, std::max<int64_t>(n, 1));
}

// Calls fn(begin, end, worker) for each of `parts` parts of [0, n).
template <class F>
void ForParts(const Threads& threads, int64_t n, int64_t parts, F&& fn) {
  ParallelForWorkers(threads, parts, 1, [&](int64_t first, int64_t last, int worker) {
    for (int64_t i = first; i < last; ++i) fn(n * i / parts, n * (i + 1) / parts, worker);
  });
}

}  // namespace oncilla::cpu
