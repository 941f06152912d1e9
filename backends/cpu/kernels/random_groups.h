// Uniform and normal numbers that one step of a Philox generator gives, in TensorFlow's order.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "backends/cpu/kernels/philox.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

// [0, 1): the bits of x become the mantissa of a number in [1, 2).
inline float UnitFloat(uint32_t x) {
  return std::bit_cast<float>((x & 0x7fffffu) | 0x3f800000u) - 1.0f;
}
inline double UnitDouble(uint32_t x0, uint32_t x1) {
  return std::bit_cast<double>(uint64_t{x0 & 0xfffffu} << 32 | x1 | uint64_t{1023} << 52) - 1.0;
}
template <class T>
T UnitNarrow(uint32_t x) {
  constexpr bool kHalf = std::is_same_v<T, Half>;
  const auto bits =
      static_cast<uint16_t>(kHalf ? (x & 0x3ffu) | 15u << 10 : (x & 0x7fu) | 127u << 7);
  return static_cast<T>(static_cast<float>(std::bit_cast<T>(bits)) - 1.0f);
}

// Two normal numbers, after Box and Muller.
inline void Normal(uint32_t x0, uint32_t x1, float out[2]) {
  const float u = std::max(UnitFloat(x0), 1.0e-7f);
  const auto v = static_cast<float>(2.0f * std::numbers::pi * static_cast<double>(UnitFloat(x1)));
  const float r = std::sqrt(-2.0f * std::log(u));
  out[0] = std::sin(v) * r;
  out[1] = std::cos(v) * r;
}
inline void Normal(const Philox::Four& x, double out[2]) {
  const double u = std::max(UnitDouble(x[0], x[1]), 1.0e-7);
  const double v = 2 * std::numbers::pi * UnitDouble(x[2], x[3]);
  const double r = std::sqrt(-2.0 * std::log(u));
  out[0] = std::sin(v) * r;
  out[1] = std::cos(v) * r;
}

template <class T>
constexpr int64_t kGroup = sizeof(T) == 8 ? 2 : 4;

template <class T>
void UniformGroup(const Philox::Four& x, T* out) {
  for (size_t i = 0; i < static_cast<size_t>(kGroup<T>); ++i) {
    if constexpr (std::is_same_v<T, float>) {
      out[i] = UnitFloat(x[i]);
    } else if constexpr (std::is_same_v<T, double>) {
      out[i] = UnitDouble(x[2 * i], x[2 * i + 1]);
    } else {
      out[i] = UnitNarrow<T>(x[i]);
    }
  }
}

template <class T>
void NormalGroup(const Philox::Four& x, T* out) {
  if constexpr (std::is_same_v<T, double>) {
    Normal(x, out);
  } else {
    for (size_t i = 0; i < 4; i += 2) {
      float two[2];
      Normal(x[i], x[i + 1], two);
      out[i] = static_cast<T>(two[0]);
      out[i + 1] = static_cast<T>(two[1]);
    }
  }
}

}  // namespace oncilla::cpu
