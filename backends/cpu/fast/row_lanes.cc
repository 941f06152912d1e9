// Rows on vectors of float, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/row_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/fast/row_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/element_lanes.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// Elements that are summed in float before the sum is added to a double.
constexpr int64_t kBlock = 4096;
// The same in rows.
constexpr int64_t kBlockRows = 128;

// Adds one more element to each lane. For maxima and minima a NaN wins.
template <RowReduction kind>
HWY_INLINE Vector Step(Vector sum, Vector x) {
  switch (kind) {
    case RowReduction::kSum:
      return hn::Add(sum, x);
    case RowReduction::kSumSquare:
      return hn::MulAdd(x, x, sum);
    case RowReduction::kSumAbs:
      return hn::Add(sum, hn::Abs(x));
    case RowReduction::kMax:
      return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Gt(x, sum)), x, sum);
    case RowReduction::kMin:
      return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(x, sum)), x, sum);
    case RowReduction::kProduct:
    case RowReduction::kLogSumExp:
      break;  // these have loops of their own
  }
  return sum;
}
template <RowReduction kind>
HWY_INLINE Vector Start() {
  return hn::Set(Floats(), kind == RowReduction::kMax   ? -HUGE_VALF
                           : kind == RowReduction::kMin ? HUGE_VALF
                                                        : 0.0f);
}
// Combines two vectors of partial results.
template <RowReduction kind>
HWY_INLINE Vector Join(Vector a, Vector b) {
  constexpr bool extreme = kind == RowReduction::kMax || kind == RowReduction::kMin;
  return Step < extreme ? kind : RowReduction::kSum > (a, b);
}
// The first `count` lanes; the others are neutral.
template <RowReduction kind>
HWY_INLINE Vector LoadOrStart(const float* x, int64_t count) {
  const auto first = hn::FirstN(Floats(), static_cast<size_t>(count));
  return hn::IfThenElse(first, LoadSome(x, count), Start<kind>());
}
template <RowReduction kind>
HWY_INLINE double AcrossLanes(Vector v) {
#if HWY_TARGET != HWY_SCALAR
  // Widens each half of the lanes to double, so that the last additions lose nothing.
  if constexpr (kind != RowReduction::kMax && kind != RowReduction::kMin) {
    const hn::Repartition<double, Floats> wide;
    const hn::Half<Floats> half;
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, v));
    const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, v));
    return hn::GetLane(hn::SumOfLanes(wide, hn::Add(low, high)));
  }
  const Floats d;
  if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<double>::quiet_NaN();
  return hn::GetLane(kind == RowReduction::kMax ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v));
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, Floats(), lanes);
  double sum = StartOf(kind);
  for (int i = 0; i < kLanes; ++i) sum = Combine(kind, sum, lanes[i]);
  return sum;
#endif
}

template <RowReduction kind>
double ReduceRowOf(const float* x, int64_t n) {
  const Floats d;
  double total = StartOf(kind);
  while (n > 0) {
    const int64_t block = n < kBlock ? n : kBlock;
    Vector s0 = Start<kind>(), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * kLanes <= block; i += 4 * kLanes) {
      s0 = Step<kind>(s0, hn::LoadU(d, x + i));
      s1 = Step<kind>(s1, hn::LoadU(d, x + i + kLanes));
      s2 = Step<kind>(s2, hn::LoadU(d, x + i + 2 * kLanes));
      s3 = Step<kind>(s3, hn::LoadU(d, x + i + 3 * kLanes));
    }
    for (; i + kLanes <= block; i += kLanes) s0 = Step<kind>(s0, hn::LoadU(d, x + i));
    if (i < block) s1 = Step<kind>(s1, LoadOrStart<kind>(x + i, block - i));
    const Vector sum = Join<kind>(Join<kind>(s0, s1), Join<kind>(s2, s3));
    total = Combine(kind, total, AcrossLanes<kind>(sum));
    x += block;
    n -= block;
  }
  return total;
}

template <RowReduction kind>
void ReduceColumnsOf(const float* x, int64_t rows, int64_t step, int64_t width, double* total) {
  const Floats d;
  HWY_ALIGN float sums[4 * kLanes];
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    const int64_t last = rows - r < kBlockRows ? rows : r + kBlockRows;
    int64_t c = 0;
    for (; c + 4 * kLanes <= width; c += 4 * kLanes) {
      Vector s0 = Start<kind>(), s1 = s0, s2 = s0, s3 = s0;
      for (int64_t i = r; i < last; ++i) {
        const float* row = x + i * step + c;
        s0 = Step<kind>(s0, hn::LoadU(d, row));
        s1 = Step<kind>(s1, hn::LoadU(d, row + kLanes));
        s2 = Step<kind>(s2, hn::LoadU(d, row + 2 * kLanes));
        s3 = Step<kind>(s3, hn::LoadU(d, row + 3 * kLanes));
      }
      hn::Store(s0, d, sums);
      hn::Store(s1, d, sums + kLanes);
      hn::Store(s2, d, sums + 2 * kLanes);
      hn::Store(s3, d, sums + 3 * kLanes);
      for (int j = 0; j < 4 * kLanes; ++j) total[c + j] = Combine(kind, total[c + j], sums[j]);
    }
    for (; c < width; c += kLanes) {
      const int64_t count = width - c < kLanes ? width - c : kLanes;
      Vector s = Start<kind>();
      for (int64_t i = r; i < last; ++i) s = Step<kind>(s, LoadSome(x + i * step + c, count));
      hn::Store(s, d, sums);
      for (int64_t j = 0; j < count; ++j) total[c + j] = Combine(kind, total[c + j], sums[j]);
    }
  }
}

// Vectors of double, and as many floats.
using Doubles = hn::ScalableTag<double>;
using Narrow = hn::Rebind<float, Doubles>;
constexpr int kDoubles = HWY_LANES(double);

HWY_INLINE hn::Vec<Doubles> LoadWide(const float* x) {
  return hn::PromoteTo(Doubles(), hn::LoadU(Narrow(), x));
}

double ProductOfRow(const float* x, int64_t n) {
  const Doubles d;
  auto p0 = hn::Set(d, 1.0), p1 = p0, p2 = p0, p3 = p0;
  int64_t i = 0;
  for (; i + 4 * kDoubles <= n; i += 4 * kDoubles) {
    p0 = hn::Mul(p0, LoadWide(x + i));
    p1 = hn::Mul(p1, LoadWide(x + i + kDoubles));
    p2 = hn::Mul(p2, LoadWide(x + i + 2 * kDoubles));
    p3 = hn::Mul(p3, LoadWide(x + i + 3 * kDoubles));
  }
  HWY_ALIGN double lanes[kDoubles];
  hn::Store(hn::Mul(hn::Mul(p0, p1), hn::Mul(p2, p3)), d, lanes);
  double product = 1;
  for (double lane : lanes) product *= lane;
  for (; i < n; ++i) product *= x[i];
  return product;
}
void ProductsOfColumns(const float* x, int64_t rows, int64_t step, int64_t width, double* total) {
  const Doubles d;
  for (int64_t r = 0; r < rows; ++r, x += step) {
    int64_t c = 0;
    for (; c + kDoubles <= width; c += kDoubles) {
      hn::StoreU(hn::Mul(hn::LoadU(d, total + c), LoadWide(x + c)), d, total + c);
    }
    for (; c < width; ++c) total[c] *= x[c];
  }
}

// exp for z <= 0 or NaN; the result is zero where it would be below the smallest normal number.
HWY_INLINE Vector ExpBelowZero(Vector z) {
  const Floats d;
  const Vector least = hn::Set(d, -86.0f);
  const Vector e = BoundedExp(d, hn::Max(least, z));
  return KeepNan(z, hn::IfThenZeroElse(hn::Lt(z, least), e)).v;
}

// The sum of exp(x[i] - max). Calls `each` with each vector of exponentials and its index.
template <class F>
HWY_INLINE double SumOfExp(const float* x, int64_t n, Vector max, const F& each) {
  const Floats d;
  double sum = 0;
  for (int64_t block = 0; block < n; block += kBlock) {
    const int64_t end = n - block < kBlock ? n : block + kBlock;
    Vector s0 = hn::Zero(d), s1 = s0;
    int64_t i = block;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      const Vector a = ExpBelowZero(hn::Sub(hn::LoadU(d, x + i), max));
      const Vector b = ExpBelowZero(hn::Sub(hn::LoadU(d, x + i + kLanes), max));
      each(a, i);
      each(b, i + kLanes);
      s0 = hn::Add(s0, a);
      s1 = hn::Add(s1, b);
    }
    for (; i < end; i += kLanes) {
      const Vector e = ExpBelowZero(hn::Sub(LoadSome(x + i, end - i), max));
      each(e, i);
      s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(end - i)), e));
    }
    sum += AcrossLanes<RowReduction::kSum>(hn::Add(s0, s1));
  }
  return sum;
}

double LogSumExpOfRow(const float* x, int64_t n) {
  const auto nothing = [](Vector, int64_t) HWY_ATTR {};
  const double max = ReduceRowOf<RowReduction::kMax>(x, n);
  return std::isfinite(max) ? max + std::log(SumOfExp(x, n, Lanes(max).v, nothing)) : max;
}
void LogSumExpsOfColumns(const float* x, int64_t rows, int64_t step, int64_t width, double* total) {
  const Floats d;
  HWY_ALIGN float maxima[kLanes], sums[kLanes];
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    const int64_t last = rows - r < kBlockRows ? rows : r + kBlockRows;
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t count = width - c < kLanes ? width - c : kLanes;
      Vector max = Start<RowReduction::kMax>(), sum = hn::Zero(d);
      for (int64_t i = r; i < last; ++i) {
        max = Step<RowReduction::kMax>(max, LoadSome(x + i * step + c, count));
      }
      for (int64_t i = r; i < last; ++i) {
        sum = hn::Add(sum, ExpBelowZero(hn::Sub(LoadSome(x + i * step + c, count), max)));
      }
      hn::Store(max, d, maxima);
      hn::Store(sum, d, sums);
      for (int64_t j = 0; j < count; ++j) {
        const double m = maxima[j], all = std::isfinite(m) ? m + std::log(double{sums[j]}) : m;
        total[c + j] = Combine(RowReduction::kLogSumExp, total[c + j], all);
      }
    }
  }
}

// Calls fn.template operator()<kind>() with the constant.
template <class F>
HWY_INLINE void WithKind(RowReduction kind, F&& fn) {
  switch (kind) {
    case RowReduction::kSum:
      return fn.template operator()<RowReduction::kSum>();
    case RowReduction::kSumSquare:
      return fn.template operator()<RowReduction::kSumSquare>();
    case RowReduction::kSumAbs:
      return fn.template operator()<RowReduction::kSumAbs>();
    case RowReduction::kMax:
      return fn.template operator()<RowReduction::kMax>();
    case RowReduction::kMin:
      return fn.template operator()<RowReduction::kMin>();
    case RowReduction::kProduct:
    case RowReduction::kLogSumExp:
      break;
  }
}
double ReduceRowHere(RowReduction kind, const float* x, int64_t n) {
  if (kind == RowReduction::kProduct) return ProductOfRow(x, n);
  if (kind == RowReduction::kLogSumExp) return LogSumExpOfRow(x, n);
  double result = 0;
  WithKind(kind, [&]<RowReduction k>() HWY_ATTR { result = ReduceRowOf<k>(x, n); });
  return result;
}
void ReduceColumnsHere(RowReduction kind, const float* x, int64_t rows, int64_t step, int64_t width,
                       double* total) {
  if (kind == RowReduction::kProduct) return ProductsOfColumns(x, rows, step, width, total);
  if (kind == RowReduction::kLogSumExp) return LogSumExpsOfColumns(x, rows, step, width, total);
  WithKind(kind,
           [&]<RowReduction k>() HWY_ATTR { ReduceColumnsOf<k>(x, rows, step, width, total); });
}

void SoftmaxRowHere(const float* x, float* y, int64_t n, bool log) {
  const Lanes max(ReduceRowOf<RowReduction::kMax>(x, n));
  if (log) {
    const double sum = SumOfExp(x, n, max.v, [](Vector, int64_t) HWY_ATTR {});
    // Not x - (max + log(sum)), which loses digits if max is large. For a row of one element, the
    // single exponential is 1 only up to rounding; its logarithm is set to 0, so that the result is
    // exact.
    const Lanes log_sum(n == 1 ? 0.0 : std::log(sum));
    for (int64_t i = 0; i < n; i += kLanes) {
      StoreSome(((Lanes(LoadSome(x + i, n - i)) - max) - log_sum).v, y + i, n - i);
    }
    return;
  }
  const double sum =
      SumOfExp(x, n, max.v, [=](Vector e, int64_t i) HWY_ATTR { StoreSome(e, y + i, n - i); });
  const Vector factor = hn::Set(Floats(), static_cast<float>(1 / sum));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreAll(hn::Mul(LoadAll(y + i), factor), y + i);
  if (i < n) StoreSome(hn::Mul(LoadSome(y + i, n - i), factor), y + i, n - i);
}

void SoftmaxColumnsHere(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                        bool log) {
  for (int64_t c = 0; c < width; c += kLanes) {
    const int64_t count = width - c;
    Vector max = Start<RowReduction::kMax>();
    for (int64_t k = 0; k < n; ++k) {
      max = Step<RowReduction::kMax>(max, LoadSome(x + k * step + c, count));
    }
    Lanes sum(0.0);
    for (int64_t k = 0; k < n; ++k) {
      const Lanes z = Lanes(LoadSome(x + k * step + c, count)) - Lanes(max);
      const Lanes e = ExpBelowZero(z.v);
      sum = sum + e;
      StoreSome(log ? z.v : e.v, y + k * step + c, count);
    }
    const Lanes last = log ? Log(sum) : Lanes(1.0) / sum;
    for (int64_t k = 0; k < n; ++k) {
      const Lanes v = LoadSome(y + k * step + c, count);
      StoreSome(log ? (v - last).v : (v * last).v, y + k * step + c, count);
    }
  }
}

void NormalizeRowHere(const float* x, float* y, int64_t n, bool centered, double epsilon,
                      const float* scale, const float* offset) {
  const Floats d;
  const double size = static_cast<double>(n);
  const double mean = centered ? ReduceRowOf<RowReduction::kSum>(x, n) / size : 0;
  const Lanes m(mean);
  double square = 0;
  for (int64_t block = 0; block < n; block += kBlock) {
    const int64_t end = n - block < kBlock ? n : block + kBlock;
    Vector s0 = hn::Zero(d), s1 = s0;
    int64_t i = block;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      const Vector a = hn::Sub(hn::LoadU(d, x + i), m.v);
      const Vector b = hn::Sub(hn::LoadU(d, x + i + kLanes), m.v);
      s0 = hn::MulAdd(a, a, s0);
      s1 = hn::MulAdd(b, b, s1);
    }
    for (; i < end; i += kLanes) {
      const auto first = hn::FirstN(d, static_cast<size_t>(end - i));
      const Vector a = hn::IfThenElseZero(first, hn::Sub(LoadSome(x + i, end - i), m.v));
      s0 = hn::MulAdd(a, a, s0);
    }
    square += AcrossLanes<RowReduction::kSum>(hn::Add(s0, s1));
  }
  const Lanes factor(1 / std::sqrt(square / size + epsilon));
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes v = (Lanes(LoadSome(x + i, n - i)) - m) * factor;
    if (scale != nullptr) v = v * Lanes(LoadSome(scale + i, n - i));
    if (offset != nullptr) v = v + Lanes(LoadSome(offset + i, n - i));
    StoreSome(v.v, y + i, n - i);
  }
}

void AddSquaresAroundHere(const float* mean, const float* x, int64_t rows, int64_t width,
                          double* total) {
  const Floats d;
  HWY_ALIGN float sums[kLanes];
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    const int64_t last = rows - r < kBlockRows ? rows : r + kBlockRows;
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t count = width - c < kLanes ? width - c : kLanes;
      const Vector m = LoadSome(mean + c, count);
      Vector s0 = hn::Zero(d), s1 = s0;
      int64_t i = r;
      for (; i + 2 <= last; i += 2) {
        const Vector a = hn::Sub(LoadSome(x + i * width + c, count), m);
        const Vector b = hn::Sub(LoadSome(x + (i + 1) * width + c, count), m);
        s0 = hn::MulAdd(a, a, s0);
        s1 = hn::MulAdd(b, b, s1);
      }
      if (i < last) {
        const Vector a = hn::Sub(LoadSome(x + i * width + c, count), m);
        s0 = hn::MulAdd(a, a, s0);
      }
      hn::Store(hn::Add(s0, s1), d, sums);
      for (int64_t j = 0; j < count; ++j) total[c + j] += static_cast<double>(sums[j]);
    }
  }
}

void NormalizeColumnsHere(const float* x, float* y, int64_t rows, int64_t width, const float* mean,
                          const float* factor, const float* offset) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t count = width - c;
      const Vector v = hn::Sub(LoadSome(x + c, count), LoadSome(mean + c, count));
      StoreSome(hn::MulAdd(v, LoadSome(factor + c, count), LoadSome(offset + c, count)), y + c,
                count);
    }
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(ReduceRowHere);
HWY_EXPORT(ReduceColumnsHere);
HWY_EXPORT(SoftmaxRowHere);
HWY_EXPORT(SoftmaxColumnsHere);
HWY_EXPORT(NormalizeRowHere);
HWY_EXPORT(AddSquaresAroundHere);
HWY_EXPORT(NormalizeColumnsHere);

double StartOf(RowReduction kind) {
  switch (kind) {
    case RowReduction::kMax:
    case RowReduction::kLogSumExp:
      return -HUGE_VAL;
    case RowReduction::kMin:
      return HUGE_VAL;
    case RowReduction::kProduct:
      return 1;
    default:
      return 0;
  }
}
double Combine(RowReduction kind, double a, double b) {
  switch (kind) {
    case RowReduction::kMax:
      return std::isnan(b) || b > a ? b : a;
    case RowReduction::kMin:
      return std::isnan(b) || b < a ? b : a;
    case RowReduction::kProduct:
      return a * b;
    case RowReduction::kLogSumExp: {
      if (std::isnan(a) || std::isnan(b)) return a + b;
      const double high = std::max(a, b), low = std::min(a, b);
      // The difference of two equal infinities would be NaN.
      return std::isinf(low) || std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
    }
    default:
      return a + b;
  }
}

double ReduceRow(RowReduction kind, const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ReduceRowHere)(kind, x, n);
}
void ReduceColumns(RowReduction kind, const float* x, int64_t rows, int64_t step, int64_t width,
                   double* total) {
  HWY_DYNAMIC_DISPATCH(ReduceColumnsHere)(kind, x, rows, step, width, total);
}
void SoftmaxRow(const float* x, float* y, int64_t n, bool log) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRowHere)(x, y, n, log);
}
void SoftmaxColumns(const float* x, float* y, int64_t n, int64_t step, int64_t width, bool log) {
  HWY_DYNAMIC_DISPATCH(SoftmaxColumnsHere)(x, y, n, step, width, log);
}
void NormalizeRow(const float* x, float* y, int64_t n, bool centered, double epsilon,
                  const float* scale, const float* offset) {
  HWY_DYNAMIC_DISPATCH(NormalizeRowHere)(x, y, n, centered, epsilon, scale, offset);
}
void AddSquaresAround(const float* mean, const float* x, int64_t rows, int64_t width,
                      double* total) {
  HWY_DYNAMIC_DISPATCH(AddSquaresAroundHere)(mean, x, rows, width, total);
}
void NormalizeColumns(const float* x, float* y, int64_t rows, int64_t width, const float* mean,
                      const float* factor, const float* offset) {
  HWY_DYNAMIC_DISPATCH(NormalizeColumnsHere)(x, y, rows, width, mean, factor, offset);
}

}  // namespace oncilla::cpu
#endif
