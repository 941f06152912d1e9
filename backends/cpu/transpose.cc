// Transposes matrices in registers, four by four elements at a time; the edges element by element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/transpose.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/transpose.h"

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes elements [row, last_row) x [column, last_column) one by one.
HWY_INLINE void TurnOneByOne(const std::byte* from, int64_t step, int64_t row, int64_t last_row,
                             int64_t column, int64_t last_column, std::byte* to, int64_t to_step) {
  for (int64_t c = column; c < last_column; ++c) {
    for (int64_t r = row; r < last_row; ++r) {
      std::memcpy(to + c * to_step + r * 4, from + r * step + c * 4, 4);
    }
  }
}

void Turn(const std::byte* from, int64_t step, int64_t rows, int64_t columns, std::byte* to,
          int64_t to_step) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr hn::FixedTag<uint8_t, 16> bytes;
  constexpr hn::FixedTag<uint32_t, 4> words;
  constexpr hn::FixedTag<uint64_t, 2> pairs;
  whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  const auto load = [&](int64_t r, int64_t c) HWY_ATTR {
    return hn::BitCast(words,
                       hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from) + r * step + c * 4));
  };
  for (int64_t r = 0; r < whole_rows; r += 4) {
    for (int64_t c = 0; c < whole_columns; c += 4) {
      const auto row0 = load(r, c), row1 = load(r + 1, c);
      const auto row2 = load(r + 2, c), row3 = load(r + 3, c);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(words, row0, row1));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(words, row0, row1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(words, row2, row3));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(words, row2, row3));
      const auto store = [&](int64_t i, hn::Vec<decltype(pairs)> v) HWY_ATTR {
        hn::StoreU(hn::BitCast(bytes, v), bytes,
                   reinterpret_cast<uint8_t*>(to) + (c + i) * to_step + r * 4);
      };
      store(0, hn::InterleaveLower(pairs, low01, low23));
      store(1, hn::InterleaveUpper(pairs, low01, low23));
      store(2, hn::InterleaveLower(pairs, high01, high23));
      store(3, hn::InterleaveUpper(pairs, high01, high23));
    }
  }
#endif
  TurnOneByOne(from, step, 0, whole_rows, whole_columns, columns, to, to_step);
  TurnOneByOne(from, step, whole_rows, rows, 0, columns, to, to_step);
}

template <int kParts>
HWY_INLINE void InterleaveParts(const std::byte* from, int64_t plane, int64_t pixels,
                                std::byte* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint32_t> words;
  const hn::Repartition<uint8_t, decltype(words)> bytes;
  const auto load = [&](int part) HWY_ATTR {
    const std::byte* at = from + part * plane + i * 4;
    return hn::BitCast(words, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(at)));
  };
  constexpr int64_t kStep = HWY_LANES(uint32_t);
  for (; i + kStep <= pixels; i += kStep) {
    HWY_ALIGN uint32_t woven[kParts * kStep];
    if constexpr (kParts == 2) {
      hn::StoreInterleaved2(load(0), load(1), words, woven);
    } else {
      hn::StoreInterleaved3(load(0), load(1), load(2), words, woven);
    }
    std::memcpy(to + i * kParts * 4, woven, sizeof(woven));
  }
#endif
  for (; i < pixels; ++i) {
    for (int p = 0; p < kParts; ++p) {
      std::memcpy(to + (i * kParts + p) * 4, from + p * plane + i * 4, 4);
    }
  }
}

void Interleave(const std::byte* from, int64_t plane, int parts, int64_t pixels, std::byte* to) {
  if (parts == 2) return InterleaveParts<2>(from, plane, pixels, to);
  InterleaveParts<3>(from, plane, pixels, to);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(Turn);
HWY_EXPORT(Interleave);

void TurnWords(const std::byte* from, int64_t step, int64_t rows, int64_t columns, std::byte* to,
               int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(Turn)(from, step, rows, columns, to, to_step);
}

void InterleaveWords(const std::byte* from, int64_t plane, int parts, int64_t pixels,
                     std::byte* to) {
  HWY_DYNAMIC_DISPATCH(Interleave)(from, plane, parts, pixels, to);
}

}  // namespace oncilla::cpu
#endif
