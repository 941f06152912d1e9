// Convolutions to few output channels by strips of positions, once per instruction set.
//
// The input rows that a strip's windows reach are turned from pixels into planes, one per channel,
// with the zeros around the input written out:
//
//   row h:  pixels  c0 c1 c2  c0 c1 c2  ..     planes  0 c0 c0 c0 ..
//                                                      0 c1 c1 c1 ..
//                                                      0 c2 c2 c2 ..
//
// A tap is then a shifted load of a plane, and its weight for an output channel one number for all
// positions. With a filter for each channel, an output channel reads its own plane alone. Rows are
// kept in a ring, so that the next output row turns only what is new to it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/few_outputs.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/few_outputs.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/conv/finish.inl.h"
#include "backends/cpu/conv/window_rows.h"
#include "backends/cpu/even_parts.h"
#include "backends/cpu/transpose.h"
#include "engine/tensor/shape.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif
// With more, the columns of a product's tile are at least half full.
constexpr int kMostOutputs = std::clamp(kLanes / 2, 1, 8);

// Vectors of positions that are summed at once, for so many output channels: each needs a sum for
// every channel and a place for its inputs.
constexpr int VectorsFor(int outputs) { return std::clamp((kRegisters - 3) / (outputs + 1), 1, 8); }

// One row of outputs within a strip.
struct FewRow {
  int64_t channels, taps, tap_step, plane;
  const float* const* inputs;   // planes of the rows under the windows
  const float* const* filters;  // [taps, channels, outputs] for each, or [taps, outputs]
  int rows;
  const float* bias;  // or null
  const Finisher<float>& end;
};

// Interleaves vectors of kOutputs channels: pixel by pixel.
template <int kOutputs>
HWY_INLINE void StorePixels(const Vector (&v)[kOutputs], float* to) {
  constexpr Floats d;
  if constexpr (kOutputs == 1) {
    hn::StoreU(v[0], d, to);
  } else if constexpr (kOutputs == 2) {
    hn::StoreInterleaved2(v[0], v[1], d, to);
  } else if constexpr (kOutputs == 3) {
    hn::StoreInterleaved3(v[0], v[1], v[2], d, to);
  } else if constexpr (kOutputs == 4) {
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, to);
  } else {
    constexpr int kMore = kOutputs - 4;
    Vector more[4];
    ONCILLA_UNROLL for (int i = 0; i < 4; ++i) more[i] = i < kMore ? v[4 + i % kMore] : v[0];
    HWY_ALIGN float first[4 * kLanes], second[4 * kLanes];
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, first);
    hn::StoreInterleaved4(more[0], more[1], more[2], more[3], d, second);
    for (int p = 0; p < kLanes; ++p) {
      std::memcpy(to + p * kOutputs, first + 4 * p, 4 * sizeof(float));
      std::memcpy(to + p * kOutputs + 4, second + 4 * p, kMore * sizeof(float));
    }
  }
}

// Adds all taps of a row under the windows. kEach: a filter for each channel.
template <bool kEach, int kOutputs, int kVectors>
HWY_INLINE void AddTaps(const FewRow& r, const float* HWY_RESTRICT plane,
                        const float* HWY_RESTRICT filter, Vector (&sum)[kVectors][kOutputs]) {
  constexpr Floats d;
  const int64_t tap_step = r.tap_step, plane_step = r.plane;
  const int64_t filters = kEach ? 1 : r.channels, filter_step = filters * kOutputs;
  for (int64_t c = 0; c < filters; ++c, plane += plane_step, filter += kOutputs) {
    const float* x = plane;
    const float* w = filter;
    for (int64_t k = r.taps; k > 0; --k, x += tap_step, w += filter_step) {
      Vector in[kVectors];
      ONCILLA_UNROLL for (int n = 0; n < kOutputs; ++n) {
        if (kEach || n == 0) {
          const float* from = x + n * plane_step;
          ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) in[v] = hn::LoadU(d, from + v * kLanes);
        }
        const Vector weight = hn::Set(d, w[n]);
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[v][n] = hn::MulAdd(in[v], weight, sum[v][n]);
        }
      }
    }
  }
}

// Computes positions [o, o + count) of the strip, at most kVectors vectors of them.
template <bool kEach, int kOutputs, int kVectors>
HWY_INLINE void FewBlock(const FewRow& r, int64_t o, int64_t count) {
  constexpr Floats d;
  Vector sum[kVectors][kOutputs];
  ONCILLA_UNROLL for (int n = 0; n < kOutputs; ++n) {
    const Vector start = r.bias != nullptr ? hn::Set(d, r.bias[n]) : hn::Zero(d);
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) sum[v][n] = start;
  }
  for (int row = 0; row < r.rows; ++row) {
    AddTaps<kEach>(r, r.inputs[row] + o, r.filters[row], sum);
  }
  constexpr int kAll = kVectors * kOutputs;
  HWY_ALIGN float pixels[kAll * kLanes];
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    StorePixels<kOutputs>(sum[v], pixels + v * kOutputs * kLanes);
  }
  const int64_t at = o * kOutputs, floats = count * kOutputs;
  if (floats == kAll * kLanes) {
    Vector all[kAll];
    ONCILLA_UNROLL for (int v = 0; v < kAll; ++v) all[v] = hn::Load(d, pixels + v * kLanes);
    r.end.Pixels(all, at, kLanes);
    return;
  }
  for (int64_t i = 0; i < floats; i += kLanes) {
    r.end.One(hn::Load(d, pixels + i), at + i, floats - i);
  }
}

// Positions [o, count): as many vectors at once as there are.
template <bool kEach, int kOutputs, int kVectors>
HWY_INLINE void FewBlocks(const FewRow& r, int64_t o, int64_t count) {
  constexpr int64_t kStep = kVectors * kLanes;
  for (; count - o > kStep - kLanes; o += kStep) {
    FewBlock<kEach, kOutputs, kVectors>(r, o, std::min(kStep, count - o));
  }
  if constexpr (kVectors > 1) {
    if (o < count) FewBlocks<kEach, kOutputs, kVectors / 2>(r, o, count);
  }
}

using FewFunction = void (*)(const FewRow& r, int64_t count);
template <bool kEach, int kOutputs>
void FewPositions(const FewRow& r, int64_t count) {
  FewBlocks<kEach, kOutputs, VectorsFor(kOutputs)>(r, 0, count);
}
template <int... kLess>
FewFunction FunctionFor(bool each, int64_t outputs, std::integer_sequence<int, kLess...>) {
  static constexpr FewFunction kTable[2][sizeof...(kLess)] = {{&FewPositions<false, kLess + 1>...},
                                                              {&FewPositions<true, kLess + 1>...}};
  return kTable[each ? 1 : 0][outputs - 1];
}

// Writes positions [first, first + count) of a row of pixels as planes, zero outside of the row.
void TurnRow(const float* x, int64_t in, int64_t channels, int64_t first, int64_t count,
             int64_t plane, float* to) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, count);
  const int64_t end = std::clamp<int64_t>(in - first, begin, count);
  for (int64_t c = 0; c < channels; ++c) {
    std::fill_n(to + c * plane, begin, 0.0f);
    std::fill(to + c * plane + end, to + c * plane + count, 0.0f);
  }
  if (begin == end) return;
  const float* from = x + (first + begin) * channels;
  if (channels == 1) {
    std::memcpy(to + begin, from, static_cast<size_t>(end - begin) * sizeof(float));
    return;
  }
  constexpr int64_t kWord = sizeof(float);
  for (int64_t p = begin; p < end; p += kTurnedRows) {
    for (int64_t c = 0; c < channels; c += kTurnedColumns) {
      TurnWords(reinterpret_cast<const std::byte*>(from + (p - begin) * channels + c),
                channels * kWord, std::min(kTurnedRows, end - p),
                std::min(kTurnedColumns, channels - c),
                reinterpret_cast<std::byte*>(to + c * plane + p), plane * kWord);
    }
  }
}

// Output rows [begin, end) of one strip after the other: row i % rows of strip i / rows.
void FewRows(const Grouped& conv, const FewOutputs& few, int64_t begin, int64_t end, float* ring) {
  const WindowGeometry& g = conv.geometry;
  const WindowAxis& width = g.axis[2];
  const int64_t rows = g.batch * g.axis[0].out * g.axis[1].out, channels = g.in_channels;
  // Rows without elements, of which the windows see nothing but padding, are all at one place.
  const int64_t line = std::max<int64_t>(1, width.in * channels);
  const int64_t filter_row = width.kernel * (channels / g.groups) * g.out_channels;
  const FewFunction run =
      FunctionFor(g.groups > 1, g.out_channels, std::make_integer_sequence<int, kMostOutputs>());
  absl::InlinedVector<int64_t, 16> held;  // the input row in each place of the ring
  absl::InlinedVector<const float*, 16> planes;
  int64_t strip = -1;
  for (int64_t i = begin; i < end; ++i) {
    if (strip != i / rows) held.assign(static_cast<size_t>(few.rows), -1);
    strip = i / rows;
    const int64_t row = i % rows, first = strip * few.strip;
    const int64_t count = std::min(few.strip, width.out - first);
    const SeenRows<float> seen(g, conv.x, conv.filter, filter_row, row);
    planes.clear();
    for (const float* input : seen.inputs) {
      const int64_t h = (input - conv.x) / line;
      float* place = ring + h % few.rows * few.row_floats;
      planes.push_back(place);
      int64_t& there = held[static_cast<size_t>(h % few.rows)];
      if (there != h) {
        TurnRow(input, width.in, channels, width.start(first), few.plane, few.plane, place);
      }
      there = h;
    }
    const Finisher<float> finisher(conv.epilogue, conv.y,
                                   (row * width.out + first) * g.out_channels);
    run({channels, width.kernel, width.dilation, few.plane, planes.data(), seen.filters.data(),
         seen.count(), conv.epilogue.bias, finisher},
        count);
  }
}

int MostOutputs() { return kMostOutputs; }
int64_t PositionsAtOnce(int64_t outputs) {
  return int64_t{kLanes} * VectorsFor(static_cast<int>(outputs));
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {

HWY_EXPORT(FewRows);
HWY_EXPORT(MostOutputs);
HWY_EXPORT(PositionsAtOnce);

constexpr int64_t kRingFloats = 16384;          // for which strips are cut: part of a cache
constexpr int64_t kMostRingFloats = 256 << 10;  // beyond it products are the better way

// The floats of a ring for strips of so many positions.
int64_t RingFloats(int64_t rows, int64_t channels, int64_t positions) {
  return SaturatingMul(rows, SaturatingMul(channels, positions));
}

}  // namespace

bool HasFewOutputs(const Shape& filter, const WindowSpec& windows, int64_t groups) {
  const int64_t out = filter.back(), in_each = filter[filter.rank() - 2];
  if (out < 1 || in_each < 1 || out > HWY_DYNAMIC_DISPATCH(MostOutputs)()) return false;
  if (groups != 1 && (groups != out || in_each != 1)) return false;
  // Of windows of one pixel, what turns them into planes is most of the work.
  int64_t taps = 1;
  for (int i = 0; i < windows.spatial; ++i) taps = SaturatingMul(taps, filter[i]);
  if (taps < 2) return false;
  const auto extent = [&](int axis) {
    return SaturatingAdd(SaturatingMul(filter[axis] - 1, windows.dilation[axis]), 1);
  };
  const int last = windows.spatial - 1;
  if (windows.stride[last] != 1 || (windows.spatial == 3 && filter[0] != 1)) return false;
  const int64_t rows = last > 0 ? extent(last - 1) : 1;
  const int64_t positions = SaturatingAdd(extent(last), HWY_DYNAMIC_DISPATCH(PositionsAtOnce)(out));
  return RingFloats(rows, in_each * groups, positions) <= kMostRingFloats;
}

FewOutputs::FewOutputs(const WindowGeometry& g) {
  const WindowAxis &height = g.axis[1], &width = g.axis[2];
  const int64_t at_once = HWY_DYNAMIC_DISPATCH(PositionsAtOnce)(g.out_channels);
  const int64_t reach = width.extent() - 1;
  rows = height.extent();
  const int64_t room = kRingFloats / (rows * g.in_channels) - reach;
  strip = std::clamp<int64_t>(room / at_once, 1, 1024 / at_once) * at_once;
  plane = strip + reach;
  row_floats = g.in_channels * plane;
  strips = (width.out + strip - 1) / strip;
}

void RunFewOutputs(const Threads& threads, const Grouped& conv, const FewOutputs& few,
                   float* scratch) {
  const WindowGeometry& g = conv.geometry;
  const int64_t rows = g.batch * g.axis[0].out * g.axis[1].out * few.strips;
  const double work = static_cast<double>(few.strip) * static_cast<double>(g.taps()) *
                      static_cast<double>(g.in_channels / g.groups * g.out_channels);
  // A part is worth some microseconds.
  const double parts = std::min(1e9, static_cast<double>(rows) * work / 300'000);
  ForParts(threads, rows, EvenParts(threads, rows, static_cast<int64_t>(parts) + 1),
           [&](int64_t begin, int64_t end, int worker) {
             HWY_DYNAMIC_DISPATCH(FewRows)
             (conv, few, begin, end, scratch + worker * few.scratch_floats());
           });
}

}  // namespace oncilla::cpu
#endif
