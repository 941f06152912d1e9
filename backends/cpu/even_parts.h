// Sharing rows out in parts that are as even as can be. Chunks of a fixed length leave a rest, and
// often one more chunk to one worker than to another, which is what short calls then wait for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// About so many parts of n rows, as many for each worker. For results that do not depend on where
// parts begin.
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
