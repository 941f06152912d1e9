// Tiles of pairs by AVX-512 BF16: kRows x 1 or 2 vectors of sums in registers. gemm_tile.inl.h says
// how rows are addressed.
#include "backends/cpu/gemm/pair_tile.h"

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/unroll.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <immintrin.h>

#include <cstring>
#include <utility>
#endif

namespace oncilla::cpu {

#if HWY_ARCH_X86
namespace {

#define ONCILLA_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define ONCILLA_BF16_INLINE ONCILLA_BF16 __attribute__((always_inline)) inline
// How far ahead B is prefetched.
constexpr int64_t kPrefetchBytes = 4096;

ONCILLA_BF16_INLINE __m512 Load(const float* from, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
ONCILLA_BF16_INLINE __m512 Load(const BFloat16* from, __mmask16 mask) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}
ONCILLA_BF16_INLINE void Store(BFloat16* to, __mmask16 mask, __m512 v) {
  _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(v));
}

template <int kRows, int kVectors>
ONCILLA_BF16_INLINE void StartSums(const PairTile& t, const __mmask16 (&mask)[kVectors],
                                   __m512 (&sum)[kRows][kVectors]) {
  __m512 start[kVectors];
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    start[v] = t.bias == nullptr ? _mm512_setzero_ps() : Load(t.bias + v * 16, mask[v]);
  }
  ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
      sum[i][v] =
          t.from_sums ? _mm512_loadu_ps(t.sums + i * PairTiles::kColumns + v * 16) : start[v];
    }
  }
}

template <int kRows, int kVectors>
ONCILLA_BF16_INLINE void StoreResults(const PairTile& t, const __mmask16 (&mask)[kVectors],
                                      const __m512 (&sum)[kRows][kVectors]) {
  const __m512 low = _mm512_set1_ps(t.low), high = _mm512_set1_ps(t.high);
  ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
      __m512 y = sum[i][v];
      const int64_t at = i * t.c_step + v * 16;
      if (t.residual != nullptr) y = _mm512_add_ps(y, Load(t.residual + at, mask[v]));
      if (t.to_sums) {
        _mm512_storeu_ps(t.sums + i * PairTiles::kColumns + v * 16, y);
        continue;
      }
      // The result is the second operand: min and max return the second operand when one is NaN.
      Store(t.c + at, mask[v], _mm512_min_ps(high, _mm512_max_ps(low, y)));
    }
  }
}

template <int kRows, int kVectors>
ONCILLA_BF16 void TileOf(const PairTile& t) {
  __mmask16 mask[kVectors];
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    const int64_t lanes = t.columns - v * 16;
    mask[v] = static_cast<__mmask16>(lanes >= 16 ? 0xffff : (1u << lanes) - 1);
  }
  __m512 sum[kRows][kVectors];
  StartSums(t, mask, sum);
  const int64_t step = t.row_step * 2, step2 = 2 * step, step3 = 3 * step;  // in bytes
  const auto* b = reinterpret_cast<const char*>(t.b);
  for (int64_t tap = 0; tap < t.tap_count; ++tap) {
    const auto* p0 = reinterpret_cast<const char*>(t.a + t.taps[tap]);
    const char* p4 = p0 + (kRows > 4 ? 4 : 0) * step;
    const char* p8 = p0 + (kRows > 8 ? 8 : 0) * step;
    const char* p12 = p0 + (kRows > 12 ? 12 : 0) * step;
    for (int64_t k = t.pairs; k > 0; --k) {
      __m512bh column[kVectors];
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        column[v] = (__m512bh)_mm512_loadu_si512(b + v * 64);
        _mm_prefetch(b + kPrefetchBytes + v * 64, _MM_HINT_T0);
      }
      b += PairTiles::kColumns * sizeof(BFloat16Pair);
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        const char* p = i < 4 ? p0 : i < 8 ? p4 : i < 12 ? p8 : p12;
        const int r = i & 3;
        int32_t two;
        std::memcpy(&two, p + (r == 0 ? 0 : r == 1 ? step : r == 2 ? step2 : step3), sizeof(two));
        const auto x = (__m512bh)_mm512_set1_epi32(two);
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, column[v]);
        }
      }
      p0 += 4;
      p4 += 4;
      p8 += 4;
      p12 += 4;
    }
  }
  StoreResults(t, mask, sum);
}

template <int... kRow>
void RunTile(int rows, const PairTile& tile, std::integer_sequence<int, kRow...>) {
  using Function = void (*)(const PairTile&);
  static constexpr Function kNarrow[] = {&TileOf<kRow + 1, 1>...};
  static constexpr Function kWide[] = {&TileOf<kRow + 1, 2>...};
  (tile.columns <= 16 ? kNarrow : kWide)[rows - 1](tile);
}
void Run(int rows, const PairTile& tile) {
  RunTile(rows, tile, std::make_integer_sequence<int, PairTiles::kRows>());
}

ONCILLA_BF16 void Round(const float* from, int64_t n, BFloat16* to) {
  for (; n >= 16; n -= 16, from += 16, to += 16) Store(to, 0xffff, _mm512_loadu_ps(from));
  const auto rest = static_cast<__mmask16>((1u << n) - 1);
  Store(to, rest, Load(from, rest));
}

}  // namespace

const PairTiles* PairTilesHere() {
  static constexpr PairTiles kTiles = {&Run, &Round};
  // Asked once: on virtual machines CPUID traps and is slow.
  static const PairTiles* const here = MayUseAvx512Bf16() ? &kTiles : nullptr;
  return here;
}

#else

const PairTiles* PairTilesHere() { return nullptr; }

#endif

}  // namespace oncilla::cpu
