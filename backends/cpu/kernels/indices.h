// Indices in a tensor, read and checked before they are used.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/work_limits.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

// A list that may be as long as a tensor: counted as memory of the run.
using IntList = HostVector<int64_t>;

// "index 7 is out of range for axis 1 of size 5".
inline Status IndexError(int64_t index, int axis, int64_t size) {
  return InvalidArgument("index ", index, " is out of range for axis ", axis, " of size ", size);
}

// Reads `count` integers of `dtype`. An unsigned number above the range of int64 becomes the
// largest int64, which is never a valid index.
inline IntList ReadInts(const std::byte* data, DType dtype, int64_t count) {
  IntList out(static_cast<size_t>(count));
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* from = reinterpret_cast<const T*>(data);
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<int64_t>(from[i]);
        if (std::is_unsigned_v<T> && out[i] < 0) out[i] = std::numeric_limits<int64_t>::max();
      }
    }
  });
  return out;
}

// The same as indices in [0, size) of an axis. Negative ones count from the end if allowed.
inline Result<IntList> ReadIndices(const std::byte* data, DType dtype, int64_t count, int axis,
                                   int64_t size, bool negative) {
  IntList out = ReadInts(data, dtype, count);
  for (int64_t& i : out) {
    const int64_t at = i < 0 && negative ? i + size : i;
    if (at < 0 || at >= size) return IndexError(i, axis, size);
    i = at;
  }
  return out;
}

// The last index of an axis as a float. Above 2^24 not every integer is a float, and the nearest
// one may be beyond the axis: the result never is.
inline float LastPlace(int64_t size) {
  const auto nearest = static_cast<float>(size - 1);
  const bool behind = static_cast<double>(nearest) > static_cast<double>(size - 1);
  return behind ? std::nextafter(nearest, 0.0f) : nearest;
}

}  // namespace oncilla::cpu
