// One tile of a product: kRows x (kVectors * lanes) sums held in registers. Included once per
// instruction set.
//
// Rows of A are addressed in groups of four (base + 0, 1, 2, 3 steps), which keeps all addresses in
// registers and makes packing A unnecessary. Sums start at their initial value, because branches
// after the loop would make compilers keep the sums in memory. Only vectors of fixed size are used
// (arrays of them).
#if defined(ONCILLA_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_GEMM_TILE_INL_H_
#undef ONCILLA_CPU_GEMM_TILE_INL_H_
#else
#define ONCILLA_CPU_GEMM_TILE_INL_H_
#endif

#include <utility>

#include "backends/cpu/gemm/gemm_targets.h"
#include "backends/cpu/vector.inl.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 14;
#elif HWY_TARGET == HWY_AVX2
constexpr int kTileRows = 6;
#elif HWY_TARGET == HWY_NEON
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kLanes;

// B is the element type of the packed matrix; everything else is float.
template <class B>
struct TileArgs {
  const float* a;
  int64_t row_step, run_step;
  const int64_t* taps;
  int64_t tap_count, run;
  const B* b;        // at kTileColumns elements per k
  int64_t prefetch;  // elements of B to fetch ahead
  float* c;
  int64_t c_step;
  bool add_to_c;          // sums start at C rather than at bias and residual
  bool add_last;          // sums are added to C when they are done, and not bounded
  const float* bias;      // or null
  const float* residual;  // or null
  int64_t residual_step;
  const float* bounds;  // lowest and highest result, or null
};

// Writes a tile's sums to C: adds them to C, or stores them, within bounds if there are any.
template <class B, int kRows, int kVectors>
HWY_INLINE void StoreTile(const TileArgs<B>& t, const Vector (&sum)[kRows][kVectors]) {
  constexpr Floats d;
  if (t.add_last) {
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        float* c = t.c + i * t.c_step + v * kLanes;
        hn::StoreU(hn::Add(hn::LoadU(d, c), sum[i][v]), d, c);
      }
    }
  } else if (t.bounds != nullptr) {
    const Vector low = hn::Set(d, t.bounds[0]), high = hn::Set(d, t.bounds[1]);
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(Bounded(low, high, sum[i][v]), d, t.c + i * t.c_step + v * kLanes);
      }
    }
  } else {
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(sum[i][v], d, t.c + i * t.c_step + v * kLanes);
      }
    }
  }
}

// The inner loop of every product: starts the sums, then for each tap and step of K multiplies one
// row of B with the kRows elements of A and adds.
template <class B, int kRows, int kVectors>
void TileOf(const TileArgs<B>& t) {
  constexpr Floats d;
  Vector sum[kRows][kVectors];
  if (t.add_to_c) {
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = hn::LoadU(d, t.c + i * t.c_step + v * kLanes);
      }
    }
  } else {
    Vector start[kVectors];
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
      start[v] = t.bias != nullptr ? hn::LoadU(d, t.bias + v * kLanes) : hn::Zero(d);
    }
    if (t.residual != nullptr) {
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
          const float* from = t.residual + i * t.residual_step + v * kLanes;
          sum[i][v] = hn::Add(start[v], hn::LoadU(d, from));
        }
      }
    } else {
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) sum[i][v] = start[v];
      }
    }
  }

  const int64_t step = t.row_step, step2 = 2 * step, step3 = 3 * step, run_step = t.run_step;
  const int64_t prefetch = t.prefetch;
  const B* HWY_RESTRICT b = t.b;
  for (int64_t tap = 0; tap < t.tap_count; ++tap) {
    const float* p0 = t.a + t.taps[tap];
    const float* p4 = p0 + (kRows > 4 ? 4 : 0) * step;
    const float* p8 = p0 + (kRows > 8 ? 8 : 0) * step;
    const float* p12 = p0 + (kRows > 12 ? 12 : 0) * step;
    for (int64_t k = t.run; k > 0; --k) {
      Vector column[kVectors];
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) { column[v] = LoadAll(b + v * kLanes); }
      ONCILLA_UNROLL for (int v = 0; v < kVectors * kLanes; v += static_cast<int>(64 / sizeof(B))) {
        __builtin_prefetch(b + prefetch + v, 0, 3);
      }
      b += kTileColumns;
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        const float* p = i < 4 ? p0 : i < 8 ? p4 : i < 12 ? p8 : p12;
        const int r = i & 3;
        const Vector x = hn::Set(d, p[r == 0 ? 0 : r == 1 ? step : r == 2 ? step2 : step3]);
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[i][v] = hn::MulAdd(x, column[v], sum[i][v]);
        }
      }
      p0 += run_step;
      p4 += run_step;
      p8 += run_step;
      p12 += run_step;
    }
  }

  StoreTile(t, sum);
}

// One to three rows over PanelsAtOnce panels. Sums are the same, bit for bit, as those of TileOf.
// Panels are `panel_step` elements apart and full; only for one tap, and without add_last.

template <class B, int kRows>
void FewRows(const TileArgs<B>& t, int64_t panel_step) {
  constexpr Floats d;
  constexpr int kPanels = PanelsAtOnce(kRows), kVectors = kPanels * kTileVectors;
  Vector sum[kRows][kVectors];
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * kLanes;
    const Vector start = t.bias != nullptr ? hn::LoadU(d, t.bias + column) : hn::Zero(d);
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      sum[i][v] = start;
      if (t.add_to_c) {
        sum[i][v] = hn::LoadU(d, t.c + i * t.c_step + column);
      } else if (t.residual != nullptr) {
        sum[i][v] = hn::Add(start, hn::LoadU(d, t.residual + i * t.residual_step + column));
      }
    }
  }
  const B* HWY_RESTRICT b = t.b;
  const float* a = t.a + t.taps[0];
  for (int64_t k = t.run; k > 0; --k, a += t.run_step, b += kTileColumns) {
    Vector x[kRows];
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) x[i] = hn::Set(d, a[i * t.row_step]);
    ONCILLA_UNROLL for (int p = 0; p < kPanels; ++p) {
      const B* panel = b + p * panel_step;
      ONCILLA_UNROLL for (int v = 0; v < kTileColumns; v += static_cast<int>(64 / sizeof(B))) {
        __builtin_prefetch(panel + t.prefetch + v, 0, 3);
      }
      ONCILLA_UNROLL for (int v = 0; v < kTileVectors; ++v) {
        const Vector column = LoadAll(panel + v * kLanes);
        ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
          Vector& to = sum[i][p * kTileVectors + v];
          to = hn::MulAdd(x[i], column, to);
        }
      }
    }
  }
  StoreTile(t, sum);
}

template <class B>
using TileFunction = void (*)(const TileArgs<B>&);

// The functions for every height of tile, and for one and two vectors of columns.
template <class B, int... kRow>
constexpr auto TileTable(std::integer_sequence<int, kRow...>) {
  struct Table {
    TileFunction<B> of[kTileVectors][sizeof...(kRow)];
  };
  return Table{{{&TileOf<B, kRow + 1, 1>...}, {&TileOf<B, kRow + 1, 2>...}}};
}

// A tile of `rows` rows and `vectors` vectors of columns.
template <class B>
HWY_INLINE void RunTile(int rows, int vectors, const TileArgs<B>& args) {
  static constexpr auto kTable = TileTable<B>(std::make_integer_sequence<int, kTileRows>());
  kTable.of[vectors - 1][rows - 1](args);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
