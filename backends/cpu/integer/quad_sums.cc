// Tiles of byte products with VNNI: kRows x 2 vectors of sums in registers. gemm_tile.inl.h
// explains how rows are addressed.
#include "backends/cpu/integer/quad_sums.h"

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/integer/fixed_in_floats.h"
#include "backends/cpu/unroll.h"
#include "engine/ops/nn/integer.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <immintrin.h>

#include <cstring>
#include <utility>
#endif

namespace oncilla::cpu {
namespace {

#if HWY_ARCH_X86

// How far ahead weights are prefetched.
constexpr int64_t kPrefetchBytes = 4096;

// The four bytes of row r at the current step. Rows are addressed in groups of four
// (gemm_tile.inl.h).
#define ONCILLA_QUAD_AT(r)    \
  ((r) < 4   ? p0             \
   : (r) < 8 ? p4             \
             : p8) +          \
      (((r)&3) == 0   ? 0     \
       : ((r)&3) == 1 ? step  \
       : ((r)&3) == 2 ? step2 \
                      : step3)

using QuadTile = void (*)(const std::byte*, int64_t, int64_t, const std::byte*, int32_t*);

#define ONCILLA_AVX512_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))

// Computes the sums of a tile in `sum`, which stays in registers.
template <int kRows>
ONCILLA_AVX512_VNNI inline __attribute__((always_inline)) void AddUp512(const std::byte* x,
                                                                        int64_t step, int64_t steps,
                                                                        const std::byte* w,
                                                                        __m512i (&sum)[kRows][2]) {
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) { sum[r][0] = sum[r][1] = _mm512_setzero_si512(); }
  const int64_t step2 = 2 * step, step3 = 3 * step;
  const std::byte *p0 = x, *p4 = x + (kRows > 4 ? 4 : 0) * step,
                  *p8 = x + (kRows > 8 ? 8 : 0) * step;
  for (; steps > 0; --steps) {
    const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
    _mm_prefetch(reinterpret_cast<const char*>(w + kPrefetchBytes), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(w + kPrefetchBytes + 64), _MM_HINT_T0);
    w += 128;
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, ONCILLA_QUAD_AT(r), sizeof(four));
      const __m512i in = _mm512_set1_epi32(four);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], in, w0);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], in, w1);
    }
    p0 += 4;
    p4 += 4;
    p8 += 4;
  }
}

template <int kRows>
ONCILLA_AVX512_VNNI void Sums512(const std::byte* x, int64_t step, int64_t steps,
                                 const std::byte* w, int32_t* sums) {
  __m512i sum[kRows][2];
  AddUp512(x, step, steps, w, sum);
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(sums + r * 32, sum[r][0]);
    _mm512_storeu_si512(sums + r * 32 + 16, sum[r][1]);
  }
}

// Converts a tile's sums to bytes, by the rule of floats or of fixed point. Bytes are computed as
// unsigned ones; `flip` makes them signed.
template <bool kFixed>
struct End512 {
  __m512i terms[2];
  __m512 scales[2], halves[2], most;
  __m512i zero, least_byte, most_byte, flip, order;
  __mmask32 stored;

  ONCILLA_AVX512_VNNI explicit End512(const QuadEnd& end) {
    const int moved = end.is_signed ? 128 : 0;
    terms[0] = _mm512_loadu_si512(end.terms);
    terms[1] = _mm512_loadu_si512(end.terms + 16);
    scales[0] = _mm512_loadu_ps(end.scales);
    scales[1] = _mm512_loadu_ps(end.scales + 16);
    if constexpr (kFixed) {
      halves[0] = _mm512_loadu_ps(end.halves);
      halves[1] = _mm512_loadu_ps(end.halves + 16);
    } else {
      most = _mm512_set1_ps(end.most);
    }
    zero = _mm512_set1_epi16(static_cast<int16_t>(end.zero + moved));
    least_byte = _mm512_set1_epi8(static_cast<char>(end.least_byte + moved));
    most_byte = _mm512_set1_epi8(static_cast<char>(end.most_byte + moved));
    flip = _mm512_set1_epi8(static_cast<char>(moved));
    // Reorders 128-bit parts, which have four columns of each vector of two rows, into whole rows.
    order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    stored = end.columns >= 32 ? ~__mmask32{0} : (__mmask32{1} << end.columns) - 1;
  }

  // Half a row of sums as integers. `off` becomes the largest distance of a result from its
  // integer, for the rule of fixed point.
  template <int kHalf>
  ONCILLA_AVX512_VNNI inline __attribute__((always_inline)) __m512i Integers(const int32_t* sums,
                                                                             __m512& off) const {
    const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + 16 * kHalf), terms[kHalf]);
    const __m512 value = _mm512_cvtepi32_ps(sum);
    if constexpr (kFixed) {
      const __m512i sign =
          _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(INT32_MIN));
      const __m512 half =
          _mm512_castsi512_ps(_mm512_or_si512(sign, _mm512_castps_si512(halves[kHalf])));
      const __m512 moved = _mm512_fmadd_ps(value, scales[kHalf], half);
      const __m512i nearest = _mm512_cvtps_epi32(moved);
      constexpr int kLargestSize = 11;
      off = _mm512_range_ps(off, _mm512_sub_ps(moved, _mm512_cvtepi32_ps(nearest)), kLargestSize);
      return nearest;
    } else {
      // Rounds to the nearest integer, ties to even. Numbers below all integers become the lowest
      // one.
      return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_mul_ps(value, scales[kHalf]), most));
    }
  }

  // A row of sums as 16-bit numbers including the zero point, clipped to their range. Each 128 bits
  // hold four columns of the first vector and four of the second.
  ONCILLA_AVX512_VNNI inline __attribute__((always_inline)) __m512i Row(const int32_t* sums,
                                                                        __m512& off) const {
    const __m512i low = Integers<0>(sums, off), high = Integers<1>(sums, off);
    return _mm512_adds_epi16(_mm512_packs_epi32(low, high), zero);
  }
};

// A row by the rule of fixed point itself.
__attribute__((noinline)) void StoreFixedRow(const int32_t* sums, const QuadEnd& end,
                                             std::byte* y) {
  for (int c = 0; c < std::min(end.columns, 32); ++c) {
    const auto sum =
        static_cast<int32_t>(static_cast<uint32_t>(sums[c]) + static_cast<uint32_t>(end.terms[c]));
    const int64_t value = int64_t{MultiplyFixed(sum, end.multipliers[c], end.shifts[c])} + end.zero;
    y[c] = static_cast<std::byte>(std::clamp<int64_t>(value, end.least_byte, end.most_byte));
  }
}

// Stores rows kRow and kRow + 1, since four vectors of sums give one of bytes, and then the rows
// after them.
template <int kRow, int kRows, bool kFixed>
ONCILLA_AVX512_VNNI inline __attribute__((always_inline)) void StoreRows512(
    const int32_t* sums, const End512<kFixed>& end, const QuadEnd& given, std::byte* y,
    int64_t y_step) {
  constexpr int kNext = kRow + 1 < kRows ? kRow + 1 : kRow;
  __m512 off = _mm512_setzero_ps();
  const __m512i first = end.Row(sums + kRow * 32, off);
  const __m512i second = end.Row(sums + kNext * 32, off);
  __m512i bytes = _mm512_packus_epi16(first, second);
  bytes = _mm512_max_epu8(_mm512_min_epu8(bytes, end.most_byte), end.least_byte);
  bytes = _mm512_permutexvar_epi32(end.order, _mm512_xor_si512(bytes, end.flip));
  _mm256_mask_storeu_epi8(y + kRow * y_step, end.stored, _mm512_castsi512_si256(bytes));
  if constexpr (kNext != kRow) {
    _mm256_mask_storeu_epi8(y + kNext * y_step, end.stored, _mm512_extracti64x4_epi64(bytes, 1));
  }
  if constexpr (kFixed) {
    if (_mm512_cmp_ps_mask(off, _mm512_set1_ps(kCertain), _CMP_GE_OQ) != 0) [[unlikely]] {
      StoreFixedRow(sums + kRow * 32, given, y + kRow * y_step);
      if constexpr (kNext != kRow) StoreFixedRow(sums + kNext * 32, given, y + kNext * y_step);
    }
  }
  if constexpr (kRow + 2 < kRows) {
    StoreRows512<kRow + 2, kRows>(sums, end, given, y, y_step);
  }
}

template <int kRows>
ONCILLA_AVX512_VNNI void Bytes512(const std::byte* x, int64_t step, int64_t steps,
                                  const std::byte* w, const QuadEnd& end, std::byte* y,
                                  int64_t y_step) {
  // Sums are written to memory only when they are complete. If the later steps computed with them
  // directly, compilers would keep them in memory from step to step.
  alignas(64) int32_t sums[kRows * 32];
  Sums512<kRows>(x, step, steps, w, sums);
  if (end.halves != nullptr) {
    StoreRows512<0, kRows>(sums, End512<true>(end), end, y, y_step);
  } else {
    StoreRows512<0, kRows>(sums, End512<false>(end), end, y, y_step);
  }
}

template <int kRows>
__attribute__((target("avx2,avxvnni"))) void Sums256(const std::byte* x, int64_t step,
                                                     int64_t steps, const std::byte* w,
                                                     int32_t* sums) {
  __m256i sum[kRows][2];
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) { sum[r][0] = sum[r][1] = _mm256_setzero_si256(); }
  const int64_t step2 = 2 * step, step3 = 3 * step;
  const std::byte *p0 = x, *p4 = x + (kRows > 4 ? 4 : 0) * step, *p8 = p4;
  for (; steps > 0; --steps) {
    const __m256i w0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    const __m256i w1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + 32));
    _mm_prefetch(reinterpret_cast<const char*>(w + kPrefetchBytes), _MM_HINT_T0);
    w += 64;
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, ONCILLA_QUAD_AT(r), sizeof(four));
      const __m256i in = _mm256_set1_epi32(four);
      sum[r][0] = _mm256_dpbusd_avx_epi32(sum[r][0], in, w0);
      sum[r][1] = _mm256_dpbusd_avx_epi32(sum[r][1], in, w1);
    }
    p0 += 4;
    p4 += 4;
  }
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * 16), sum[r][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * 16 + 8), sum[r][1]);
  }
}

template <int... kRows>
void Run512(int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
            int32_t* sums, std::integer_sequence<int, kRows...>) {
  static constexpr QuadTile kTiles[] = {&Sums512<kRows + 1>...};
  kTiles[rows - 1](x, step, steps, w, sums);
}
template <int... kRows>
void RunToBytes512(int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
                   const QuadEnd& end, std::byte* y, int64_t y_step,
                   std::integer_sequence<int, kRows...>) {
  using Function = void (*)(const std::byte*, int64_t, int64_t, const std::byte*, const QuadEnd&,
                            std::byte*, int64_t);
  static constexpr Function kTiles[] = {&Bytes512<kRows + 1>...};
  kTiles[rows - 1](x, step, steps, w, end, y, y_step);
}
template <int... kRows>
void Run256(int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
            int32_t* sums, std::integer_sequence<int, kRows...>) {
  static constexpr QuadTile kTiles[] = {&Sums256<kRows + 1>...};
  kTiles[rows - 1](x, step, steps, w, sums);
}

constexpr int kRows512 = 12, kRows256 = 6;

QuadSums Find() {
  if (MayUseAvx512Vnni()) {
    return {[](int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
               int32_t* sums) {
              Run512(rows, x, step, steps, w, sums, std::make_integer_sequence<int, kRows512>());
            },
            [](int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
               const QuadEnd& end, std::byte* y, int64_t y_step) {
              RunToBytes512(rows, x, step, steps, w, end, y, y_step,
                            std::make_integer_sequence<int, kRows512>());
            },
            kRows512, 32};
  }
  // Panels must be as wide as the vectors that Highway chooses.
  if (!MayUseTarget(HWY_AVX3) && MayUseAvxVnni()) {
    return {[](int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
               int32_t* sums) {
              Run256(rows, x, step, steps, w, sums, std::make_integer_sequence<int, kRows256>());
            },
            nullptr, kRows256, 16};
  }
  return {};
}

#else

QuadSums Find() { return {}; }

#endif

}  // namespace

const QuadSums& QuadSumsHere() {
  static const QuadSums here = Find();
  return here;
}

}  // namespace oncilla::cpu
