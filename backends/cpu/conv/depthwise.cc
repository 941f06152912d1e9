// Depthwise convolution by output rows, once per instruction set.
//
// A row is computed one vector of channels after the other, over all its pixels. Neighbouring
// pixels share loads of inputs and weights if the window is three wide and inside the input
// (ThreeWide; ThreeWidePair for two rows at once), or five wide (FiveWide). All other pixels are
// computed four at a time (FourPixels) or singly (OnePixel). Taps outside the input are skipped
// rather than multiplied by zero, which would turn infinities into NaN.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/depthwise.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/depthwise.h"

#include <cmath>

#include "backends/cpu/conv/finish.inl.h"
#include "backends/cpu/conv/window_rows.h"
#include "backends/cpu/even_parts.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The operands of one row of outputs. T is the type in memory.
template <class T>
struct DepthwiseRow {
  const Depthwise<T>& d;
  const WindowAxis& width;
  int64_t channels;
  // The rows of input under its windows, with their rows of the filter.
  const T* const* inputs;
  const T* const* filters;
  int rows;
  Finisher<T> end;
};

// Computes one pixel with any window.
template <class T>
HWY_INLINE void OnePixel(const DepthwiseRow<T>& r, int64_t o, int64_t c, int64_t count) {
  constexpr Floats d;
  const T* bias = r.d.epilogue.bias;
  Vector sum = bias != nullptr ? LoadSome(bias + c, count) : hn::Zero(d);
  const auto taps = r.width.Seen(o);
  for (int i = 0; i < r.rows; ++i) {
    for (int64_t k = taps.begin; k < taps.end; ++k) {
      const T* x = r.inputs[i] + (r.width.start(o) + k * r.width.dilation) * r.channels + c;
      sum = hn::MulAdd(LoadSome(x, count), LoadSome(r.filters[i] + k * r.channels + c, count), sum);
    }
  }
  r.end.One(sum, o * r.channels + c, count);
}

// Computes four pixels from `o` on, with windows of any width that lie inside the input.
template <class T>
HWY_INLINE void FourPixels(const DepthwiseRow<T>& r, int64_t o, int64_t c) {
  constexpr Floats d;
  const T* bias = r.d.epilogue.bias;
  Vector s0 = bias != nullptr ? LoadAll(bias + c) : hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const int64_t step = r.width.stride * r.channels, next = r.width.dilation * r.channels;
  for (int i = 0; i < r.rows; ++i) {
    const T* x = r.inputs[i] + r.width.start(o) * r.channels + c;
    const T* filter = r.filters[i] + c;
    for (int64_t k = 0; k < r.width.kernel; ++k, x += next, filter += r.channels) {
      const Vector w = LoadAll(filter);
      s0 = hn::MulAdd(LoadAll(x), w, s0);
      s1 = hn::MulAdd(LoadAll(x + step), w, s1);
      s2 = hn::MulAdd(LoadAll(x + 2 * step), w, s2);
      s3 = hn::MulAdd(LoadAll(x + 3 * step), w, s3);
    }
  }
  const int64_t at = o * r.channels + c;
  r.end.One(s0, at, kLanes);
  r.end.One(s1, at + r.channels, kLanes);
  r.end.One(s2, at + 2 * r.channels, kLanes);
  r.end.One(s3, at + 3 * r.channels, kLanes);
}

// Computes pixels from `o` to `end`, whose windows are three wide, not dilated, kStride apart and
// inside the input. Returns the first pixel that was not computed.
template <int kStride, int kRows, class T>
HWY_INLINE int64_t ThreeWide(const DepthwiseRow<T>& r, int64_t o, int64_t end, int64_t c) {
  constexpr Floats d;
  constexpr int kPixels = kStride == 1 ? 4 : 2, kInputs = (kPixels - 1) * kStride + 3;
  Vector w[kRows][3];
  ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
    ONCILLA_UNROLL for (int k = 0; k < 3; ++k) {
      w[i][k] = LoadAll(r.filters[i] + k * r.channels + c);
    }
  }
  const Vector bias = r.d.epilogue.bias != nullptr ? LoadAll(r.d.epilogue.bias + c) : hn::Zero(d);
  for (; o + kPixels <= end; o += kPixels) {
    const T* x[kRows];
    ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
      x[i] = r.inputs[i] + r.width.start(o) * r.channels + c;
    }
    Vector sum[kPixels];
    ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) sum[p] = bias;
    ONCILLA_UNROLL for (int j = 0; j < kInputs; ++j) {
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        const Vector in = LoadAll(x[i]);
        x[i] += r.channels;
        ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
          const int k = j - p * kStride;
          if (k >= 0 && k < 3) sum[p] = hn::MulAdd(in, w[i][k], sum[p]);
        }
      }
    }
    r.end.Pixels(sum, o * r.channels + c, r.channels);
  }
  return o;
}

template <int kStride, class T>
HWY_INLINE int64_t ThreeWideRows(const DepthwiseRow<T>& r, int64_t o, int64_t end, int64_t c) {
  switch (r.rows) {
    case 1:
      return ThreeWide<kStride, 1>(r, o, end, c);
    case 2:
      return ThreeWide<kStride, 2>(r, o, end, c);
    case 3:
      return ThreeWide<kStride, 3>(r, o, end, c);
    default:
      return o;
  }
}

// Two rows of outputs whose windows are three by three, one apart and inside the input in height:
// of the four rows that they see, two are loaded for both. Sums are added in the order of
// ThreeWide.
template <class T>
HWY_INLINE int64_t ThreeWidePair(const DepthwiseRow<T>& upper, const DepthwiseRow<T>& lower,
                                 int64_t o, int64_t end, int64_t c) {
  constexpr Floats d;
  constexpr int kPixels = 4, kInputs = kPixels + 2, kRows = 4;
  Vector w[3][3];
  ONCILLA_UNROLL for (int i = 0; i < 3; ++i) {
    ONCILLA_UNROLL for (int k = 0; k < 3; ++k) {
      w[i][k] = LoadAll(upper.filters[i] + k * upper.channels + c);
    }
  }
  const T* from_bias = upper.d.epilogue.bias;
  const Vector bias = from_bias != nullptr ? LoadAll(from_bias + c) : hn::Zero(d);
  const T* const rows[kRows] = {upper.inputs[0], upper.inputs[1], upper.inputs[2], lower.inputs[2]};
  for (; o + kPixels <= end; o += kPixels) {
    int64_t at = upper.width.start(o) * upper.channels + c;
    Vector sum[2][kPixels];
    ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) sum[0][p] = sum[1][p] = bias;
    ONCILLA_UNROLL for (int j = 0; j < kInputs; ++j, at += upper.channels) {
      ONCILLA_UNROLL for (int i = 0; i < kRows; ++i) {
        const Vector in = LoadAll(rows[i] + at);
        ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
          const int k = j - p;
          if (k < 0 || k >= 3) continue;
          if (i < 3) sum[0][p] = hn::MulAdd(in, w[i][k], sum[0][p]);
          if (i > 0) sum[1][p] = hn::MulAdd(in, w[i - 1][k], sum[1][p]);
        }
      }
    }
    upper.end.Pixels(sum[0], o * upper.channels + c, upper.channels);
    lower.end.Pixels(sum[1], o * upper.channels + c, upper.channels);
  }
  return o;
}

// Computes kPixels neighbours whose windows are five wide, not dilated and kStride apart. An input
// is loaded once for all windows that see it, and skipped if it is outside.
template <int kStride, int kPixels, class T>
HWY_INLINE void FiveWidePixels(const DepthwiseRow<T>& r, int64_t o, int64_t c) {
  constexpr Floats d;
  constexpr int kKernel = 5, kInputs = (kPixels - 1) * kStride + kKernel;
  const T* bias = r.d.epilogue.bias;
  const Vector start = bias != nullptr ? LoadAll(bias + c) : hn::Zero(d);
  Vector sum[kPixels];
  ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) sum[p] = start;
  const int64_t first = r.width.start(o), in = r.width.in;
  for (int i = 0; i < r.rows; ++i) {
    Vector w[kKernel];
    ONCILLA_UNROLL for (int k = 0; k < kKernel; ++k) {
      w[k] = LoadAll(r.filters[i] + k * r.channels + c);
    }
    const T* row = r.inputs[i] + c;
    ONCILLA_UNROLL for (int j = 0; j < kInputs; ++j) {
      const int64_t at = first + j;
      if (at < 0 || at >= in) continue;
      const Vector x = LoadAll(row + at * r.channels);
      ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
        const int k = j - p * kStride;
        if (k >= 0 && k < kKernel) sum[p] = hn::MulAdd(x, w[k], sum[p]);
      }
    }
  }
  r.end.Pixels(sum, o * r.channels + c, r.channels);
}

// Computes a whole row with such windows.
template <int kStride, class T>
void FiveWide(const DepthwiseRow<T>& r, int64_t c) {
  int64_t o = 0;
  for (; o + 8 <= r.width.out; o += 8) FiveWidePixels<kStride, 8>(r, o, c);
  if (o + 4 <= r.width.out) FiveWidePixels<kStride, 4>(r, o, c), o += 4;
  if (o + 2 <= r.width.out) FiveWidePixels<kStride, 2>(r, o, c), o += 2;
  if (o < r.width.out) FiveWidePixels<kStride, 1>(r, o, c);
}

// Whether ThreeWidePair may take output rows `oh` and `oh` + 1.
inline bool IsPair(const WindowGeometry& g, int64_t oh) {
  const WindowAxis &height = g.axis[1], &width = g.axis[2];
  const auto plain = [](const WindowAxis& axis) {
    return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
  };
  return g.axis[0].kernel == 1 && plain(height) && plain(width) && oh + 1 < height.out &&
         height.start(oh) >= 0 && height.start(oh + 1) + 3 <= height.in;
}

// Computes one row of outputs, or with `lower` a pair of rows.
template <class T>
void RunRow(const DepthwiseRow<T>& r, const DepthwiseRow<T>* lower) {
  const WindowAxis& width = r.width;
  const auto [first, last] = InnerPixels(width);
  const bool three = width.kernel == 3 && width.dilation == 1;
  const bool five = width.kernel == 5 && width.dilation == 1 && width.stride <= 2;
  const auto one_by_one = [&](int64_t o, int64_t end, int64_t c, int64_t count) HWY_ATTR {
    for (; o < end; ++o) {
      OnePixel(r, o, c, count);
      if (lower != nullptr) OnePixel(*lower, o, c, count);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= r.channels; c += kLanes) {
    if (five) {
      width.stride == 1 ? FiveWide<1>(r, c) : FiveWide<2>(r, c);
      continue;
    }
    one_by_one(0, first, c, kLanes);
    int64_t o = first;
    if (lower != nullptr) {
      o = ThreeWidePair(r, *lower, o, last, c);
    } else {
      if (three && width.stride == 1) o = ThreeWideRows<1>(r, o, last, c);
      if (three && width.stride == 2) o = ThreeWideRows<2>(r, o, last, c);
      for (; o + 4 <= last; o += 4) FourPixels(r, o, c);
    }
    one_by_one(o, width.out, c, kLanes);
  }
  if (c < r.channels) one_by_one(0, width.out, c, r.channels - c);
}

// Output rows [begin, end), counted over samples, depth and height.
template <class T>
void RowsOf(const Depthwise<T>& d, int64_t begin, int64_t end) {
  const WindowAxis& width = d.geometry.axis[2];
  const int64_t channels = d.geometry.in_channels, height = d.geometry.axis[1].out;
  const int64_t filter_row = width.kernel * channels;
  const auto row_of = [&](const SeenRows<T>& seen, int64_t row) HWY_ATTR {
    const int64_t at = (row - d.first) * width.out * channels;
    return DepthwiseRow<T>{d,
                           width,
                           channels,
                           seen.inputs.data(),
                           seen.filters.data(),
                           seen.count(),
                           Finisher<T>(d.epilogue, d.y, at)};
  };
  for (int64_t row = begin; row < end;) {
    const SeenRows<T> seen(d.geometry, d.x, d.filter, filter_row, row, d.ring);
    if (row + 1 < end && IsPair(d.geometry, row % height)) {
      const SeenRows<T> seen_below(d.geometry, d.x, d.filter, filter_row, row + 1, d.ring);
      const DepthwiseRow<T> lower = row_of(seen_below, row + 1);
      RunRow(row_of(seen, row), &lower);
      row += 2;
    } else {
      RunRow<T>(row_of(seen, row), nullptr);
      row += 1;
    }
  }
}

void FloatRows(const Depthwise<float>& d, int64_t begin, int64_t end) { RowsOf(d, begin, end); }
void HalfRows(const Depthwise<Half>& d, int64_t begin, int64_t end) { RowsOf(d, begin, end); }
void BFloat16Rows(const Depthwise<BFloat16>& d, int64_t begin, int64_t end) {
  RowsOf(d, begin, end);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {

HWY_EXPORT(FloatRows);
HWY_EXPORT(HalfRows);
HWY_EXPORT(BFloat16Rows);

void Rows(const Depthwise<float>& d, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(FloatRows)(d, begin, end);
}
void Rows(const Depthwise<Half>& d, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(HalfRows)(d, begin, end);
}
void Rows(const Depthwise<BFloat16>& d, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BFloat16Rows)(d, begin, end);
}

}  // namespace

template <class T>
void RunDepthwise(const Threads& threads, const Depthwise<T>& d) {
  const WindowGeometry& g = d.geometry;
  const int64_t rows = g.batch * g.axis[0].out * g.axis[1].out;
  const int64_t work = g.axis[2].out * g.in_channels * g.taps();
  // A part is worth some microseconds.
  const double parts = static_cast<double>(rows) * static_cast<double>(work) / 150'000;
  ForParts(threads, rows, EvenParts(threads, rows, static_cast<int64_t>(std::ceil(parts))),
           [&](int64_t begin, int64_t end, int) { Rows(d, begin, end); });
}

void RunDepthwiseRows(const Depthwise<float>& d, int64_t begin, int64_t end) {
  Rows(d, begin, end);
}

template void RunDepthwise(const Threads&, const Depthwise<float>&);
template void RunDepthwise(const Threads&, const Depthwise<Half>&);
template void RunDepthwise(const Threads&, const Depthwise<BFloat16>&);

}  // namespace oncilla::cpu
#endif
