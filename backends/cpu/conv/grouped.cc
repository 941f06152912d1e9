// Convolution of narrow groups by output rows, once per instruction set.
//
// A vector of output channels belongs to a few groups, whose inputs are adjacent and fit into one
// or two vectors. For the i-th input channel of each group, a table lookup moves to every lane the
// input of that lane's group:
//
//   groups of 4, 16 lanes, i = 1:  inputs   0 1 2 3  4 5 6 7  8 9 ..
//                                  lookup   1 1 1 1  5 5 5 5  9 9 ..
//
// so that one multiplication by filter[tap][i][channels] serves all groups. With a single group,
// all lanes take the same input. Neighbouring pixels share a lookup if the window is three wide
// (ThreeWide); otherwise they share the load of the filter. Taps outside the input are skipped.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/grouped.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/grouped.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/conv/finish.inl.h"
#include "backends/cpu/conv/window_rows.h"
#include "backends/cpu/even_parts.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

constexpr int64_t kMostInputs = 2 * kLanes;  // of the groups of a vector

// The inputs of a vector's groups: of one group, or within one or two vectors.
enum class Reach { kOneGroup, kOneVector, kTwoVectors };

// For an input channel of each group, the input that every lane takes.
struct Lookup {
  decltype(hn::SetTableIndices(Floats(), static_cast<const int32_t*>(nullptr))) lanes;
  hn::Mask<Floats> from_second;

  HWY_INLINE void Fill(const int32_t (&inputs)[kLanes]) {
    const hn::RebindToSigned<Floats> d;
    HWY_ALIGN int32_t within[kLanes];
    for (int i = 0; i < kLanes; ++i) within[i] = inputs[i] % kLanes;
    lanes = hn::SetTableIndices(Floats(), within);
    from_second = hn::RebindMask(Floats(), hn::Gt(hn::LoadU(d, inputs), hn::Set(d, kLanes - 1)));
  }
};

// The operands of one row of outputs for one vector of channels.
struct GroupedRow {
  const WindowAxis& width;
  int64_t in_channels, out_channels, each;  // each: inputs of a group
  // From `base`, the first input of the vector's groups, to the end of a pixel there are `left`
  // channels.
  int64_t channel, count, base, left;
  const Lookup* lookups;  // [each]
  const float* const* inputs;
  const float* const* filters;
  int rows;
  Vector bias;
  const Finisher<float>& end;
};

// For every lane, the i-th input of its group at pixel x.
template <Reach kReach>
HWY_INLINE Vector InputAt(const GroupedRow& r, const float* x, int64_t i, const Lookup& lookup) {
  if constexpr (kReach == Reach::kOneGroup) return hn::Set(Floats(), x[i]);
  const Vector first = hn::TableLookupLanes(LoadSome(x, r.left), lookup.lanes);
  if constexpr (kReach == Reach::kOneVector) return first;
  const Vector more = r.left > kLanes ? LoadSome(x + kLanes, r.left - kLanes) : first;
  return hn::IfThenElse(lookup.from_second, hn::TableLookupLanes(more, lookup.lanes), first);
}

HWY_INLINE Vector FilterAt(const GroupedRow& r, const float* row, int64_t tap, int64_t i) {
  return LoadSome(row + (tap * r.each + i) * r.out_channels + r.channel, r.count);
}

// Finishes pixels from `o` on.
template <int kPixels>
HWY_INLINE void FinishRow(const GroupedRow& r, const Vector (&sum)[kPixels], int64_t o) {
  const int64_t at = o * r.out_channels + r.channel;
  if (r.count == kLanes) {
    r.end.Pixels(sum, at, r.out_channels);
  } else {
    ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
      r.end.One(sum[p], at + p * r.out_channels, r.count);
    }
  }
}

// Computes kPixels pixels from `o` on, with the taps [begin, end) of any window.
template <Reach kReach, int kPixels>
HWY_INLINE void AnyWindow(const GroupedRow& r, int64_t o, int64_t begin, int64_t end) {
  Vector sum[kPixels];
  ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) sum[p] = r.bias;
  const int64_t step = r.width.stride * r.in_channels;
  for (int row = 0; row < r.rows; ++row) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = r.width.start(o) + k * r.width.dilation;
      const float* x = r.inputs[row] + at * r.in_channels + r.base;
      for (int64_t i = 0; i < r.each; ++i) {
        const Vector w = FilterAt(r, r.filters[row], k, i);
        ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
          const Vector v = InputAt<kReach>(r, x + p * step, i, r.lookups[i]);
          sum[p] = hn::MulAdd(v, w, sum[p]);
        }
      }
    }
  }
  FinishRow(r, sum, o);
}

// Computes a row with windows of any width; pixels whose windows are inside are computed four at a
// time.
template <Reach kReach>
void AnyWindows(const GroupedRow& r) {
  const WindowAxis& width = r.width;
  const InnerPixels inner(width);
  const auto one_by_one = [&](int64_t o, int64_t end) HWY_ATTR {
    for (; o < end; ++o) {
      const auto taps = width.Seen(o);
      AnyWindow<kReach, 1>(r, o, taps.begin, taps.end);
    }
  };
  one_by_one(0, inner.first);
  int64_t o = inner.first;
  for (; o + 4 <= inner.last; o += 4) AnyWindow<kReach, 4>(r, o, 0, width.kernel);
  one_by_one(o, width.out);
}

// Computes kPixels neighbours whose windows are three wide, not dilated and kStride apart. An input
// is looked up once for all windows that see it, and skipped if it is outside, unless all are
// kInside.
template <Reach kReach, int kStride, int kPixels, bool kInside>
HWY_INLINE void ThreeWidePixels(const GroupedRow& r, int64_t o) {
  constexpr int kInputs = (kPixels - 1) * kStride + 3;
  Vector sum[kPixels];
  ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) sum[p] = r.bias;
  const int64_t start = r.width.start(o), in = r.width.in, step = r.in_channels;
  for (int row = 0; row < r.rows; ++row) {
    const float* const x = r.inputs[row] + start * step + r.base;
    for (int64_t i = 0; i < r.each; ++i) {
      Vector w[3];
      ONCILLA_UNROLL for (int k = 0; k < 3; ++k) w[k] = FilterAt(r, r.filters[row], k, i);
      const float* at = x;
      ONCILLA_UNROLL for (int j = 0; j < kInputs; ++j, at += step) {
        if (!kInside && (start + j < 0 || start + j >= in)) continue;
        const Vector v = InputAt<kReach>(r, at, i, r.lookups[i]);
        ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
          const int k = j - p * kStride;
          if (k >= 0 && k < 3) sum[p] = hn::MulAdd(v, w[k], sum[p]);
        }
      }
    }
  }
  FinishRow(r, sum, o);
}
template <Reach kReach, int kStride, int kPixels>
HWY_INLINE void ThreeWide(const GroupedRow& r, int64_t o) {
  const int64_t start = r.width.start(o), last = start + (kPixels - 1) * kStride + 2;
  if (start >= 0 && last < r.width.in) {
    ThreeWidePixels<kReach, kStride, kPixels, true>(r, o);
  } else {
    ThreeWidePixels<kReach, kStride, kPixels, false>(r, o);
  }
}

template <Reach kReach, int kStride>
void ThreeWideRow(const GroupedRow& r) {
  const int64_t out = r.width.out;
  int64_t o = 0;
  if constexpr (kStride == 1) {
    for (; o + 8 <= out; o += 8) ThreeWide<kReach, kStride, 8>(r, o);
  }
  for (; o + 4 <= out; o += 4) ThreeWide<kReach, kStride, 4>(r, o);
  if (o + 2 <= out) ThreeWide<kReach, kStride, 2>(r, o), o += 2;
  if (o < out) ThreeWide<kReach, kStride, 1>(r, o);
}

template <Reach kReach>
void RunPixels(const GroupedRow& r) {
  const bool three = r.width.kernel == 3 && r.width.dilation == 1;
  if (three && r.width.stride == 1) return ThreeWideRow<kReach, 1>(r);
  if (three && r.width.stride == 2) return ThreeWideRow<kReach, 2>(r);
  AnyWindows<kReach>(r);
}

// Output rows [begin, end), counted over samples, depth and height.
void GroupedRows(const Grouped& g, int64_t begin, int64_t end) {
  const WindowGeometry& geometry = g.geometry;
  const WindowAxis& width = geometry.axis[2];
  const int64_t in = geometry.in_channels, out = geometry.out_channels;
  const int64_t in_each = in / geometry.groups, out_each = out / geometry.groups;
  const float* bias = g.epilogue.bias;
  Lookup lookups[kMostInputs];
  for (int64_t channel = 0; channel < out; channel += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, out - channel);
    const int64_t base = channel / out_each * in_each;
    const int64_t used = ((channel + count - 1) / out_each + 1) * in_each - base;
    if (used > in_each) {
      int32_t inputs[kLanes] = {};
      for (int64_t lane = 0; lane < count; ++lane) {
        inputs[lane] = static_cast<int32_t>((channel + lane) / out_each * in_each - base);
      }
      for (int64_t i = 0; i < in_each; ++i) {
        lookups[i].Fill(inputs);
        for (int64_t lane = 0; lane < count; ++lane) ++inputs[lane];
      }
    }
    const Vector start = bias != nullptr ? LoadSome(bias + channel, count) : hn::Zero(Floats());
    for (int64_t row = begin; row < end; ++row) {
      const SeenRows<float> seen(geometry, g.x, g.filter, width.kernel * in_each * out, row);
      const Finisher<float> finisher(g.epilogue, g.y, row * width.out * out);
      const GroupedRow r = {width,
                            in,
                            out,
                            in_each,
                            channel,
                            count,
                            base,
                            in - base,
                            lookups,
                            seen.inputs.data(),
                            seen.filters.data(),
                            seen.count(),
                            start,
                            finisher};
      if (used == in_each) {
        RunPixels<Reach::kOneGroup>(r);
      } else if (used <= kLanes) {
        RunPixels<Reach::kOneVector>(r);
      } else {
        RunPixels<Reach::kTwoVectors>(r);
      }
    }
  }
}

// A vector of output channels may begin anywhere in a group. It touches the most groups if its
// first group contributes a single channel.
bool NarrowGroups(int64_t in_each, int64_t out_each) {
  if (out_each > kLanes || in_each > kMostInputs) return false;
  const bool whole = kLanes % out_each == 0;
  const int64_t groups = whole ? kLanes / out_each : (kLanes + out_each - 2) / out_each + 1;
  return groups * in_each <= kMostInputs;
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {

HWY_EXPORT(GroupedRows);
HWY_EXPORT(NarrowGroups);

}  // namespace

bool AreNarrowGroups(int64_t in_each, int64_t out_each) {
  return in_each > 0 && out_each > 0 && HWY_DYNAMIC_DISPATCH(NarrowGroups)(in_each, out_each);
}

void RunGrouped(const Threads& threads, const Grouped& grouped) {
  const WindowGeometry& g = grouped.geometry;
  const int64_t rows = g.batch * g.axis[0].out * g.axis[1].out;
  const int64_t work = g.axis[2].out * g.out_channels * g.taps() * (g.in_channels / g.groups);
  // A part is worth some microseconds.
  const double parts = static_cast<double>(rows) * static_cast<double>(work) / 300'000;
  ForParts(threads, rows, EvenParts(threads, rows, static_cast<int64_t>(std::ceil(parts))),
           [&](int64_t begin, int64_t end, int) {
             HWY_DYNAMIC_DISPATCH(GroupedRows)(grouped, begin, end);
           });
}

}  // namespace oncilla::cpu
#endif
