// Products of rows that are rounded to bytes. A number of a row is a signed byte, a weight an
// unsigned one without its zero point, which the sum of the row's numbers takes off afterwards:
//
//   scale * sum((code - zero) * x) = scale * x_scale * (sum(code * q) - zero * sum(q))
//
// A word of a panel holds four bytes for each place in a byte: shifted and masked, they are what
// one instruction multiplies with four numbers of x, which is why the numbers of x are in that
// order.
#include "backends/cpu/fast/rounded_rows.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/unroll.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace oncilla::cpu {

#if HWY_ARCH_X86

namespace {

#define ONCILLA_AVX2 __attribute__((target("avx2,fma")))
#define ONCILLA_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

// The largest magnitude of n numbers; infinity where one is not finite.
ONCILLA_AVX2 float LargestOf(const float* x, int64_t n) {
  const __m256 sign = _mm256_set1_ps(-0.0f), finite = _mm256_set1_ps(FLT_MAX);
  __m256 most = _mm256_setzero_ps(), odd = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + i));
    most = _mm256_max_ps(most, v);
    odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, finite, _CMP_NLE_UQ));
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, most);
  float largest = *std::max_element(lanes, lanes + 8);
  bool is_finite = _mm256_movemask_ps(odd) == 0;
  for (; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    is_finite = is_finite && std::isfinite(x[i]);
  }
  return is_finite ? largest : INFINITY;
}

// q[i] = x[i] * factor to the nearest whole number, within a byte.
ONCILLA_AVX2 void RoundTo(const float* x, int64_t n, float factor, int8_t* q) {
  const __m256 factors = _mm256_set1_ps(factor);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i whole = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), factors));
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(q + i), _mm_packs_epi16(words, words));
  }
  for (; i < n; ++i) q[i] = static_cast<int8_t>(std::nearbyint(x[i] * factor));
}

// Brings the numbers of whole words, a multiple of 16 of them, into the order of quads; returns
// their sum.
ONCILLA_AVX2 int32_t OrderQuads(int8_t* q, int64_t n, int64_t per_word) {
  // Quad s of a word has the numbers s, s + per_byte, s + 2 * per_byte, ..
  const int64_t per_byte = per_word / 4;
  alignas(16) int8_t from[16];
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t word = i / per_word, in_word = i % per_word;
    from[i] = static_cast<int8_t>(word * per_word + in_word % 4 * per_byte + in_word / 4);
  }
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  __m128i sum = _mm_setzero_si128();
  for (int64_t i = 0; i < n; i += 16) {
    auto* at = reinterpret_cast<__m128i*>(q + i);
    const __m128i numbers = _mm_loadu_si128(at);
    _mm_storeu_si128(at, _mm_shuffle_epi8(numbers, order));
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), numbers);
    sum = _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
  int32_t lanes[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), sum);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

// What both instruction sets need of a block of one row.
template <int kBits>
struct Block {
  static constexpr int kShifts = 8 / kBits;
  static constexpr int kMiddle = 1 << (kBits - 1);
  const int32_t* quads;
  float scale;
  int32_t sum;

  Block(const PackedPanel& p, const RoundedRows& x, int64_t row, int64_t b)
      : quads(x.quads.data() + (row * p.blocks + b) * p.block_words * kShifts),
        scale(x.scales[static_cast<size_t>(row * p.blocks + b)]),
        sum(x.sums[static_cast<size_t>(row * p.blocks + b)]) {}
};

template <int kBits, int kRows>
ONCILLA_AVX512_VNNI void Rows512(const PackedPanel& p, const RoundedRows& x, int64_t row, float* y,
                                 int64_t y_step) {
  constexpr int kShifts = Block<kBits>::kShifts;
  const __m512i mask = _mm512_set1_epi8(static_cast<char>((1 << kBits) - 1));
  __m512 sums[kRows][2];
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  const uint8_t* words = p.codes;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const int32_t* quads[kRows];
    __m512i parts[kRows][2];
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      const Block<kBits> block(p, x, row + r, b);
      quads[r] = block.quads;
      parts[r][0] = parts[r][1] =
          _mm512_set1_epi32(p.zeros == nullptr ? -Block<kBits>::kMiddle * block.sum : 0);
    }
    for (int64_t w = 0; w < p.block_words; ++w, words += 128) {
      const __m512i codes[2] = {_mm512_loadu_si512(words), _mm512_loadu_si512(words + 64)};
      ONCILLA_UNROLL for (int s = 0; s < kShifts; ++s) {
        __m512i bytes[2] = {codes[0], codes[1]};
        if constexpr (kBits < 8) {
          ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
            if (s > 0) bytes[v] = _mm512_srli_epi32(bytes[v], static_cast<unsigned>(s * kBits));
            bytes[v] = _mm512_and_si512(bytes[v], mask);
          }
        }
        ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
          const __m512i quad = _mm512_set1_epi32(quads[r][w * kShifts + s]);
          parts[r][0] = _mm512_dpbusd_epi32(parts[r][0], bytes[0], quad);
          parts[r][1] = _mm512_dpbusd_epi32(parts[r][1], bytes[1], quad);
        }
      }
    }
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      const Block<kBits> block(p, x, row + r, b);
      ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
        const int64_t at = b * p.width + v * 16;
        __m512 part = _mm512_cvtepi32_ps(parts[r][v]);
        if (p.zeros != nullptr) {
          part = _mm512_fnmadd_ps(_mm512_loadu_ps(p.zeros + at),
                                  _mm512_set1_ps(static_cast<float>(block.sum)), part);
        }
        const __m512 scale =
            _mm512_mul_ps(_mm512_loadu_ps(p.scales + at), _mm512_set1_ps(block.scale));
        sums[r][v] = _mm512_fmadd_ps(scale, part, sums[r][v]);
      }
    }
  }
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(y + r * y_step, sums[r][0]);
    _mm512_storeu_ps(y + r * y_step + 16, sums[r][1]);
  }
}

// Products of pairs are added up in 16 bits, eight times at most: 8 * 2 * 15 * 127 is below 2^15.
template <int kBits, int kRows>
ONCILLA_AVX2 void Rows256(const PackedPanel& p, const RoundedRows& x, int64_t row, float* y,
                          int64_t y_step) {
  constexpr int kShifts = Block<kBits>::kShifts, kTogether = 8 / kShifts;
  const __m256i mask = _mm256_set1_epi8(static_cast<char>((1 << kBits) - 1));
  const __m256i ones = _mm256_set1_epi16(1);
  __m256 sums[kRows][2];
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
  const uint8_t* words = p.codes;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const int32_t* quads[kRows];
    __m256i parts[kRows][2];
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      const Block<kBits> block(p, x, row + r, b);
      quads[r] = block.quads;
      parts[r][0] = parts[r][1] =
          _mm256_set1_epi32(p.zeros == nullptr ? -Block<kBits>::kMiddle * block.sum : 0);
    }
    for (int64_t first = 0; first < p.block_words; first += kTogether) {
      const int64_t end = std::min<int64_t>(first + kTogether, p.block_words);
      __m256i pairs[kRows][2];
      ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
        pairs[r][0] = pairs[r][1] = _mm256_setzero_si256();
      }
      for (int64_t w = first; w < end; ++w, words += 64) {
        ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
          const __m256i codes =
              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + v * 32));
          ONCILLA_UNROLL for (int s = 0; s < kShifts; ++s) {
            const __m256i bytes =
                _mm256_and_si256(s > 0 ? _mm256_srli_epi32(codes, s * kBits) : codes, mask);
            ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
              const __m256i quad = _mm256_set1_epi32(quads[r][w * kShifts + s]);
              pairs[r][v] = _mm256_add_epi16(pairs[r][v], _mm256_maddubs_epi16(bytes, quad));
            }
          }
        }
      }
      ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
        ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
          parts[r][v] = _mm256_add_epi32(parts[r][v], _mm256_madd_epi16(pairs[r][v], ones));
        }
      }
    }
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      const Block<kBits> block(p, x, row + r, b);
      ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
        const int64_t at = b * p.width + v * 8;
        __m256 part = _mm256_cvtepi32_ps(parts[r][v]);
        if (p.zeros != nullptr) {
          part = _mm256_fnmadd_ps(_mm256_loadu_ps(p.zeros + at),
                                  _mm256_set1_ps(static_cast<float>(block.sum)), part);
        }
        const __m256 scale =
            _mm256_mul_ps(_mm256_loadu_ps(p.scales + at), _mm256_set1_ps(block.scale));
        sums[r][v] = _mm256_fmadd_ps(scale, part, sums[r][v]);
      }
    }
  }
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(y + r * y_step, sums[r][0]);
    _mm256_storeu_ps(y + r * y_step + 8, sums[r][1]);
  }
}

template <int kBits>
void Multiply512(const PackedPanel& p, const RoundedRows& x, float* y, int64_t y_step) {
  int64_t row = 0;
  for (; row + 4 <= x.rows; row += 4) Rows512<kBits, 4>(p, x, row, y + row * y_step, y_step);
  for (; row < x.rows; ++row) Rows512<kBits, 1>(p, x, row, y + row * y_step, y_step);
}
template <int kBits>
void Multiply256(const PackedPanel& p, const RoundedRows& x, float* y, int64_t y_step) {
  int64_t row = 0;
  for (; row + 2 <= x.rows; row += 2) Rows256<kBits, 2>(p, x, row, y + row * y_step, y_step);
  for (; row < x.rows; ++row) Rows256<kBits, 1>(p, x, row, y + row * y_step, y_step);
}

}  // namespace

std::optional<RoundedRows> RoundRows(const float* x, int64_t rows, const PackedPanel& p) {
  const int64_t per_word = kWordBytes * 8 / p.bits, block_quads = p.block_words * per_word / 4;
  const auto blocks = static_cast<size_t>(rows * p.blocks);
  RoundedRows out;
  out.rows = rows;
  out.quads.resize(blocks * static_cast<size_t>(block_quads));
  out.scales.resize(blocks);
  out.sums.resize(blocks);
  // Whole vectors of a block's numbers.
  std::vector<int8_t> block(static_cast<size_t>((p.block_words * per_word + 15) / 16 * 16));
  for (size_t i = 0; i < blocks; ++i) {
    const int64_t b = static_cast<int64_t>(i) % p.blocks, first = b * p.block;
    const int64_t count = std::min(p.block, p.depth - first);
    const float* from = x + static_cast<int64_t>(i) / p.blocks * p.depth + first;
    const float largest = LargestOf(from, count);
    if (!(largest <= FLT_MAX)) return std::nullopt;
    // Below that, the factor would be infinite; such numbers count as zeros.
    if (largest < 127 * FLT_MIN) continue;
    std::fill(block.begin() + count, block.end(), int8_t{0});
    RoundTo(from, count, 127 / largest, block.data());
    out.sums[i] = OrderQuads(block.data(), std::ssize(block), per_word);
    out.scales[i] = largest / 127;
    std::memcpy(out.quads.data() + i * static_cast<size_t>(block_quads), block.data(),
                static_cast<size_t>(block_quads) * sizeof(int32_t));
  }
  return out;
}

MultiplyRounded MultiplyRoundedFor(int64_t bits, int64_t width) {
  if (width == 32 && MayUseAvx512Vnni()) {
    return bits == 8 ? &Multiply512<8> : bits == 4 ? &Multiply512<4> : &Multiply512<2>;
  }
  // Pairs of products of whole bytes do not fit into 16 bits.
  if (width != 16 || !MayUseTarget(HWY_AVX2) || bits == 8) return nullptr;
  return bits == 4 ? &Multiply256<4> : &Multiply256<2>;
}

#else

std::optional<RoundedRows> RoundRows(const float*, int64_t, const PackedPanel&) {
  return std::nullopt;
}
MultiplyRounded MultiplyRoundedFor(int64_t, int64_t) { return nullptr; }

#endif

}  // namespace oncilla::cpu
