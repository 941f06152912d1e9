// Depthwise integer convolution with VNNI instructions. Rows are computed in blocks of 64 channels,
// and of 32 if no more are left; the code is the same for both widths of vectors.
#include "backends/cpu/integer/depthwise_quads.h"

#include <algorithm>

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/integer/fixed_in_floats.h"
#include "backends/cpu/unroll.h"
#include "engine/ops/nn/integer.h"
#include "engine/tensor/shape.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace oncilla::cpu {

QuadBlock QuadBlockAt(int64_t at, int64_t channels) {
  QuadBlock block;
  const int64_t left = channels - at;
  block.width = left > 32 ? 64 : 32;
  block.first = std::max<int64_t>(0, std::min(at, channels - block.width));
  block.count = std::min(block.width, channels);
  return block;
}
int64_t QuadPlaces(int64_t channels) { return (channels + 31) / 32 * 32; }

// The order of sums in registers: vector q of four holds channels 4 q to 4 q + 3 of each 16.
int64_t QuadChannel(const QuadBlock& block, int64_t i) {
  const int64_t lanes = block.width / 4, q = i / lanes, lane = i % lanes;
  return block.first + lane / 4 * 16 + 4 * q + lane % 4;
}

int64_t QuadBytes(int64_t channels) {
  return SaturatingMul(QuadPlaces(channels), kQuadWidth * kQuadLines);
}

void PackQuads(const int8_t* weights, int64_t lines, int64_t channels, std::byte* to) {
  for (int64_t at = 0; at < channels;) {
    const QuadBlock block = QuadBlockAt(at, channels);
    for (int64_t k = 0; k < kQuadWidth; ++k) {
      for (int64_t i = 0; i < block.width; ++i) {
        const int64_t channel = QuadChannel(block, i);
        for (int64_t line = 0; line < kQuadLines; ++line) {
          const bool there = line < lines && channel < channels;
          const int8_t weight =
              there ? weights[(line * kQuadWidth + k) * channels + channel] : int8_t{0};
          *to++ = static_cast<std::byte>(weight);
        }
      }
    }
    at += block.width;
  }
}

#if HWY_ARCH_X86
namespace {

#define ONCILLA_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define ONCILLA_VNNI_INLINE ONCILLA_VNNI __attribute__((always_inline)) inline

// The operand of vrangeps for the larger size of two numbers.
constexpr int kLargestSize = 11;

// The instructions under one name for both widths.
struct Vectors512 {
  using Bytes = __m512i;
  using Floats = __m512;
  static constexpr int64_t kChannels = 64;
  ONCILLA_VNNI_INLINE static Bytes Load(const void* at) { return _mm512_loadu_si512(at); }
  ONCILLA_VNNI_INLINE static void Store(void* at, Bytes v) { _mm512_storeu_si512(at, v); }
  ONCILLA_VNNI_INLINE static Bytes LoadSome(const void* at, uint64_t mask) {
    return _mm512_maskz_loadu_epi8(mask, at);
  }
  ONCILLA_VNNI_INLINE static void StoreSome(void* at, uint64_t mask, Bytes v) {
    _mm512_mask_storeu_epi8(at, mask, v);
  }
  ONCILLA_VNNI_INLINE static Bytes Flip(Bytes v, int32_t with) {
    return _mm512_xor_si512(v, _mm512_set1_epi32(with));
  }
  ONCILLA_VNNI_INLINE static void Interleave(const Bytes* x, Bytes* out) {
    const Bytes ab = _mm512_unpacklo_epi8(x[0], x[1]), cd = _mm512_unpacklo_epi8(x[2], x[3]);
    const Bytes AB = _mm512_unpackhi_epi8(x[0], x[1]), CD = _mm512_unpackhi_epi8(x[2], x[3]);
    out[0] = _mm512_unpacklo_epi16(ab, cd);
    out[1] = _mm512_unpackhi_epi16(ab, cd);
    out[2] = _mm512_unpacklo_epi16(AB, CD);
    out[3] = _mm512_unpackhi_epi16(AB, CD);
  }
  ONCILLA_VNNI_INLINE static Bytes MultiplyAdd(Bytes sum, Bytes x, const void* w) {
    return _mm512_dpbusd_epi32(sum, x, _mm512_loadu_si512(w));
  }
  ONCILLA_VNNI_INLINE static Bytes Requantize(Bytes sum, const QuadRow& r, const float* scales) {
    const Floats value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scales));
    // The value is the first operand: max returns the second operand, `least`, when one is NaN.
    const Floats bounded =
        _mm512_min_ps(_mm512_max_ps(value, _mm512_set1_ps(r.least)), _mm512_set1_ps(r.most));
    // Rounds to nearest, ties to even.
    return _mm512_add_epi32(_mm512_cvtps_epi32(bounded), _mm512_set1_epi32(r.zero));
  }
  // Results of the rule of fixed point before bounds; `off` becomes the largest distance of one
  // from its integer.
  ONCILLA_VNNI_INLINE static Bytes RequantizeFixed(Bytes sum, const float* scales,
                                                   const float* halves, Floats& off) {
    const Floats value = _mm512_cvtepi32_ps(sum);
    const Floats sign = _mm512_and_ps(value, _mm512_set1_ps(-0.0F));
    const Floats moved = _mm512_fmadd_ps(value, _mm512_loadu_ps(scales),
                                         _mm512_or_ps(sign, _mm512_loadu_ps(halves)));
    const Bytes nearest = _mm512_cvtps_epi32(moved);
    off = _mm512_range_ps(off, _mm512_sub_ps(moved, _mm512_cvtepi32_ps(nearest)), kLargestSize);
    return nearest;
  }
  ONCILLA_VNNI_INLINE static bool Certain(Floats off) {
    return _mm512_cmp_ps_mask(off, _mm512_set1_ps(kCertain), _CMP_GE_OQ) == 0;
  }
  ONCILLA_VNNI_INLINE static Bytes Bounded(Bytes y, const QuadRow& r) {
    const Bytes least = _mm512_set1_epi32(static_cast<int32_t>(r.least));
    const Bytes most = _mm512_set1_epi32(static_cast<int32_t>(r.most));
    return _mm512_add_epi32(_mm512_min_epi32(_mm512_max_epi32(y, least), most),
                            _mm512_set1_epi32(r.zero));
  }
  ONCILLA_VNNI_INLINE static Floats NoDistance() { return _mm512_setzero_ps(); }
  ONCILLA_VNNI_INLINE static Bytes ToBytes(const Bytes* y, bool is_signed) {
    const Bytes low = _mm512_packs_epi32(y[0], y[1]), high = _mm512_packs_epi32(y[2], y[3]);
    return is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  }
};

struct Vectors256 {
  using Bytes = __m256i;
  using Floats = __m256;
  static constexpr int64_t kChannels = 32;
  ONCILLA_VNNI_INLINE static Bytes Load(const void* at) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(at));
  }
  ONCILLA_VNNI_INLINE static void Store(void* at, Bytes v) {
    _mm256_storeu_si256(static_cast<__m256i*>(at), v);
  }
  ONCILLA_VNNI_INLINE static Bytes LoadSome(const void* at, uint64_t mask) {
    return _mm256_maskz_loadu_epi8(static_cast<uint32_t>(mask), at);
  }
  ONCILLA_VNNI_INLINE static void StoreSome(void* at, uint64_t mask, Bytes v) {
    _mm256_mask_storeu_epi8(at, static_cast<uint32_t>(mask), v);
  }
  ONCILLA_VNNI_INLINE static Bytes Flip(Bytes v, int32_t with) {
    return _mm256_xor_si256(v, _mm256_set1_epi32(with));
  }
  ONCILLA_VNNI_INLINE static void Interleave(const Bytes* x, Bytes* out) {
    const Bytes ab = _mm256_unpacklo_epi8(x[0], x[1]), cd = _mm256_unpacklo_epi8(x[2], x[3]);
    const Bytes AB = _mm256_unpackhi_epi8(x[0], x[1]), CD = _mm256_unpackhi_epi8(x[2], x[3]);
    out[0] = _mm256_unpacklo_epi16(ab, cd);
    out[1] = _mm256_unpackhi_epi16(ab, cd);
    out[2] = _mm256_unpacklo_epi16(AB, CD);
    out[3] = _mm256_unpackhi_epi16(AB, CD);
  }
  ONCILLA_VNNI_INLINE static Bytes MultiplyAdd(Bytes sum, Bytes x, const void* w) {
    return _mm256_dpbusd_epi32(sum, x, Load(w));
  }
  ONCILLA_VNNI_INLINE static Bytes Requantize(Bytes sum, const QuadRow& r, const float* scales) {
    const Floats value = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(scales));
    const Floats bounded =
        _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(r.least)), _mm256_set1_ps(r.most));
    return _mm256_add_epi32(_mm256_cvtps_epi32(bounded), _mm256_set1_epi32(r.zero));
  }
  // Results of the rule of fixed point before bounds; `off` becomes the largest distance of one
  // from its integer.
  ONCILLA_VNNI_INLINE static Bytes RequantizeFixed(Bytes sum, const float* scales,
                                                   const float* halves, Floats& off) {
    const Floats value = _mm256_cvtepi32_ps(sum);
    const Floats sign = _mm256_and_ps(value, _mm256_set1_ps(-0.0F));
    const Floats moved = _mm256_fmadd_ps(value, _mm256_loadu_ps(scales),
                                         _mm256_or_ps(sign, _mm256_loadu_ps(halves)));
    const Bytes nearest = _mm256_cvtps_epi32(moved);
    off = _mm256_range_ps(off, _mm256_sub_ps(moved, _mm256_cvtepi32_ps(nearest)), kLargestSize);
    return nearest;
  }
  ONCILLA_VNNI_INLINE static bool Certain(Floats off) {
    return _mm256_cmp_ps_mask(off, _mm256_set1_ps(kCertain), _CMP_GE_OQ) == 0;
  }
  ONCILLA_VNNI_INLINE static Bytes Bounded(Bytes y, const QuadRow& r) {
    const Bytes least = _mm256_set1_epi32(static_cast<int32_t>(r.least));
    const Bytes most = _mm256_set1_epi32(static_cast<int32_t>(r.most));
    return _mm256_add_epi32(_mm256_min_epi32(_mm256_max_epi32(y, least), most),
                            _mm256_set1_epi32(r.zero));
  }
  ONCILLA_VNNI_INLINE static Floats NoDistance() { return _mm256_setzero_ps(); }
  ONCILLA_VNNI_INLINE static Bytes ToBytes(const Bytes* y, bool is_signed) {
    const Bytes low = _mm256_packs_epi32(y[0], y[1]), high = _mm256_packs_epi32(y[2], y[3]);
    return is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  }
};

// Requantises the sums of `count` channels by the rule of fixed point itself.
__attribute__((noinline)) void RequantizeExactly(const QuadRow& row, int64_t place, int64_t count,
                                                 int32_t* sums) {
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = MultiplyFixed(sums[i], row.multipliers[place + i], row.shifts[place + i]);
  }
}

// The sums of a pixel as bytes.
template <class V, bool kFixed>
ONCILLA_VNNI_INLINE typename V::Bytes Requantized(const QuadRow& row, int64_t place,
                                                  typename V::Bytes* sum) {
  constexpr int64_t kStep = V::kChannels / 4;
  typename V::Bytes y[4];
  if constexpr (!kFixed) {
    ONCILLA_UNROLL for (int q = 0; q < 4; ++q) {
      y[q] = V::Requantize(sum[q], row, row.scales + place + q * kStep);
    }
  } else {
    auto off = V::NoDistance();
    ONCILLA_UNROLL for (int q = 0; q < 4; ++q) {
      y[q] = V::RequantizeFixed(sum[q], row.scales + place + q * kStep,
                                row.halves + place + q * kStep, off);
    }
    if (!V::Certain(off)) [[unlikely]] {
      alignas(64) int32_t sums[V::kChannels];
      ONCILLA_UNROLL for (int q = 0; q < 4; ++q) V::Store(sums + q * kStep, sum[q]);
      RequantizeExactly(row, place, V::kChannels, sums);
      ONCILLA_UNROLL for (int q = 0; q < 4; ++q) y[q] = V::Load(sums + q * kStep);
    }
    ONCILLA_UNROLL for (int q = 0; q < 4; ++q) y[q] = V::Bounded(y[q], row);
  }
  return V::ToBytes(y, row.y_signed);
}

// Computes the block of channels at `place` for all pixels of the row.
template <class V, bool kFixed>
ONCILLA_VNNI void RunBlock(const QuadRow& row, const QuadBlock& block, int64_t place) {
  using Bytes = typename V::Bytes;
  constexpr int64_t kStep = V::kChannels / 4, kColumn = V::kChannels * kQuadLines;
  const uint64_t mask = block.count == 64 ? ~uint64_t{0} : (uint64_t{1} << block.count) - 1;
  const int32_t flip = row.is_signed ? static_cast<int32_t>(0x80808080) : 0;
  const std::byte* weights = row.weights + place * kQuadWidth * kQuadLines;
  const int32_t* terms = row.terms + place;
  const std::byte* outside = row.outside + block.first;
  // Lines outside the input point at the pixel of zero points and do not advance.
  const std::byte* lines[kQuadLines];
  int64_t steps[kQuadLines];
  ONCILLA_UNROLL for (int i = 0; i < kQuadLines; ++i) {
    lines[i] = row.lines[i] != nullptr ? row.lines[i] + block.first : outside;
    steps[i] = row.lines[i] != nullptr ? row.channels : 0;
  }
  const auto column = [&](int64_t x, Bytes * out) ONCILLA_VNNI __attribute__((always_inline)) {
    const bool inside = x >= 0 && x < row.in;
    Bytes in[kQuadLines];
    ONCILLA_UNROLL for (int i = 0; i < kQuadLines; ++i) {
      in[i] = V::Flip(V::LoadSome(inside ? lines[i] + x * steps[i] : outside, mask), flip);
    }
    V::Interleave(in, out);
  };
  Bytes x0[4], x1[4], x2[4];
  int64_t x = -row.pad;
  column(x, x0);
  if (row.stride == 1) column(x + 1, x1);
  std::byte* y = row.y + block.first;
  for (int64_t o = 0; o < row.out; ++o, x += row.stride, y += row.channels) {
    if (row.stride != 1) column(x + 1, x1);
    column(x + 2, x2);
    Bytes sum[4];
    ONCILLA_UNROLL for (int q = 0; q < 4; ++q) {
      const std::byte* w = weights + q * V::kChannels;
      sum[q] = V::Load(terms + q * kStep);
      sum[q] = V::MultiplyAdd(sum[q], x0[q], w);
      sum[q] = V::MultiplyAdd(sum[q], x1[q], w + kColumn);
      sum[q] = V::MultiplyAdd(sum[q], x2[q], w + 2 * kColumn);
    }
    V::StoreSome(y, mask, Requantized<V, kFixed>(row, place, sum));
    ONCILLA_UNROLL for (int q = 0; q < 4; ++q) {
      x0[q] = row.stride == 1 ? x1[q] : x2[q];
      x1[q] = x2[q];
    }
  }
}

template <bool kFixed>
ONCILLA_VNNI void RunRowBy(const QuadRow& row) {
  for (int64_t at = 0; at < row.channels;) {
    const QuadBlock block = QuadBlockAt(at, row.channels);
    if (block.width == 64) {
      RunBlock<Vectors512, kFixed>(row, block, at);
    } else {
      RunBlock<Vectors256, kFixed>(row, block, at);
    }
    at += block.width;
  }
}

void RunRow(const QuadRow& row) {
  if (row.halves != nullptr) return RunRowBy<true>(row);
  RunRowBy<false>(row);
}

}  // namespace

QuadRowFunction QuadRowHere() {
  // Cached, because CPUID traps on virtual machines and is slow there.
  static const QuadRowFunction here = MayUseAvx512Vnni() ? &RunRow : nullptr;
  return here;
}
#else
QuadRowFunction QuadRowHere() { return nullptr; }
#endif

}  // namespace oncilla::cpu
