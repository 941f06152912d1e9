// Tiles: a few hundred elements of an operand, converted to the type in which its class is computed
// (double, int64_t, uint64_t; bool as 0 and 1 in uint64_t), and converted back when stored.
//
// With these, plain elementwise code supports thirteen dtypes with three instances of an
// expression.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/ops/broadcast.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

inline constexpr int64_t kTile = 512;

enum class Wide : uint8_t { kDouble, kSigned, kUnsigned };
constexpr Wide WideOf(DType t) {
  return IsFloat(t) ? Wide::kDouble : IsSigned(t) ? Wide::kSigned : Wide::kUnsigned;
}
// Room for a tile of any wide type.
union Tile {
  double f[kTile];
  int64_t i[kTile];
  uint64_t u[kTile];
};

// Calls fn(TypeTag<W>) with double, int64_t or uint64_t.
template <class F>
void DispatchWide(Wide wide, F&& fn) {
  if (wide == Wide::kDouble) {
    fn(TypeTag<double>{});
  } else if (wide == Wide::kSigned) {
    fn(TypeTag<int64_t>{});
  } else {
    fn(TypeTag<uint64_t>{});
  }
}

// Converts a number from one type to another, defined for every value: what an integer cannot
// represent is saturated, NaN is 0; integers wrap; bool is "not zero".
template <class To, class From>
To ConvertElement(From from) {
  if constexpr (std::is_same_v<To, bool>) {
    return from != 0;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(from)) return 0;
    if (from <= static_cast<From>(Limits::min())) return Limits::min();
    // For 64 bits the limit rounds up to a power of two, which itself does not fit.
    if (from >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(from);
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(from));
  } else {
    return static_cast<To>(from);
  }
}

namespace internal {
// In memory a bool is a byte; any but zero is true.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T>
using WideType = std::conditional_t<std::is_same_v<T, bool> || std::is_unsigned_v<T>, uint64_t,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
template <class T, class W>
W Widen(Stored<T> v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else {
    return static_cast<W>(v);
  }
}
}  // namespace internal

// Divides elements [begin, begin + n) of the output's order, as operand k is read for them, into
// runs along the innermost axis: fn(offset, stride, count), in elements of the operand.
template <class F>
void ForRuns(const BroadcastAxes& axes, int k, int64_t begin, int64_t n, F&& fn) {
  if (axes.rank == 0) {
    if (n > 0) fn(0, 0, n);
    return;
  }
  int64_t at[kMaxRank] = {}, offset = 0, rest = begin;
  for (int i = axes.rank; i-- > 0; rest /= axes.sizes[i]) {
    at[i] = rest % axes.sizes[i];
    offset += at[i] * axes.strides[k][i];
  }
  const int inner = axes.rank - 1;
  const int64_t size = axes.sizes[inner], stride = axes.strides[k][inner];
  for (;;) {
    const int64_t run = std::min(n, size - at[inner]);
    fn(offset, stride, run);
    n -= run;
    if (n <= 0) return;
    // Move to the start of the next run.
    offset -= at[inner] * stride;
    at[inner] = 0;
    for (int i = inner - 1; i >= 0; --i) {
      offset += axes.strides[k][i];
      if (++at[i] < axes.sizes[i]) break;
      offset -= at[i] * axes.strides[k][i];
      at[i] = 0;
    }
  }
}

// Loads elements [begin, begin + n) of the output's order from operand k.
inline void LoadTile(const void* data, DType dtype, const BroadcastAxes& axes, int k, int64_t begin,
                     int64_t n, Tile* to) {
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    using W = internal::WideType<T>;
    const auto* from = static_cast<const internal::Stored<T>*>(data);
    W* out = reinterpret_cast<W*>(to);
    ForRuns(axes, k, begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
      for (int64_t j = 0; j < count; ++j) {
        out[j] = internal::Widen<T, W>(from[offset + j * stride]);
      }
      out += count;
    });
  });
}

// Stores n elements computed as `wide` into `data` at element `begin`.
inline void StoreTile(const Tile& tile, Wide wide, DType dtype, void* data, int64_t begin,
                      int64_t n) {
  DispatchWide(wide, [&]<class W>(TypeTag<W>) {
    const W* from = reinterpret_cast<const W*>(&tile);
    DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      T* out = static_cast<T*>(data) + begin;
      for (int64_t j = 0; j < n; ++j) out[j] = ConvertElement<T>(from[j]);
    });
  });
}

// Converts n elements computed as `wide` to values of `dtype`, in place; the tile then has the wide
// type of dtype.
inline void ConvertTile(Wide wide, DType dtype, int64_t n, Tile* tile) {
  DispatchWide(wide, [&]<class W>(TypeTag<W>) {
    const W* from = reinterpret_cast<const W*>(tile);
    DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      using To = internal::WideType<T>;
      To* out = reinterpret_cast<To*>(tile);
      for (int64_t j = 0; j < n; ++j) {
        out[j] = internal::Widen<T, To>(ConvertElement<T>(from[j]));
      }
    });
  });
}

}  // namespace oncilla::cpu
