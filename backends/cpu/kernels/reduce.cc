// Reduce kernels of the CPU: plain, exact code. Sums are kept in double, or exactly in 64 bits,
// and run in the order of the elements.
#include "backends/cpu/fast/reduce.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backends/cpu/fast/tiles.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/math/reduce.h"

namespace oncilla::cpu {
namespace {

// 64-bit integers wrap.
template <class W>
W AddWide(W a, W b) {
  if constexpr (std::is_same_v<W, double>) return a + b;
  return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class W>
W MulWide(W a, W b) {
  if constexpr (std::is_same_v<W, double>) return a * b;
  return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class W>
W AbsWide(W a) {
  if constexpr (std::is_same_v<W, double>) return std::fabs(a);
  return std::is_signed_v<W> && a < W{0} ? static_cast<W>(uint64_t{0} - static_cast<uint64_t>(a))
                                         : a;
}
template <class W>
bool IsNan(W a) {
  return a != a;
}

// The largest (sign 1) or lowest (sign -1) T; infinite for floating point.
template <class W, class T>
W Bound(int sign) {
  if constexpr (std::is_integral_v<T>) {
    return sign > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  } else {
    return static_cast<W>(sign * INFINITY);
  }
}

// Reducers of elements T, widened to W: a start value, one more element, and the result for a
// number of elements.
template <class W, class T>
struct SumOf {
  W sum = 0;
  void Add(W x) { sum = AddWide(sum, x); }
  W Result(int64_t) const { return sum; }
};
template <class W, class T>
struct MeanOf : SumOf<W, T> {
  W Result(int64_t n) const {
    if constexpr (std::is_same_v<W, double>) return this->sum / static_cast<double>(n);
    return n == 0 ? W{0} : static_cast<W>(this->sum / static_cast<W>(n));  // truncates
  }
};
template <class W, class T>
struct ProdOf {
  W product = 1;
  void Add(W x) { product = MulWide(product, x); }
  W Result(int64_t) const { return product; }
};
template <class W, class T>
struct MaxOf {
  W max = Bound<W, T>(-1);
  void Add(W x) { max = IsNan(max) || x <= max ? max : x; }
  W Result(int64_t) const { return max; }
};
template <class W, class T>
struct MinOf {
  W min = Bound<W, T>(1);
  void Add(W x) { min = IsNan(min) || x >= min ? min : x; }
  W Result(int64_t) const { return min; }
};
template <class W, class T>
struct AllOf {
  W all = 1;
  void Add(W x) { all &= x; }
  W Result(int64_t) const { return all; }
};
template <class W, class T>
struct AnyOf {
  W any = 0;
  void Add(W x) { any |= x; }
  W Result(int64_t) const { return any; }
};
template <class W, class T>
struct L1Of : SumOf<W, T> {
  void Add(W x) { SumOf<W, T>::Add(AbsWide(x)); }
};
template <class W, class T>
struct SumSquareOf : SumOf<W, T> {
  void Add(W x) { SumOf<W, T>::Add(MulWide(x, x)); }
};
// Results are fractions, which integer dtypes truncate.
template <class W, class T>
struct L2Of {
  double sum = 0;
  void Add(W x) { sum += static_cast<double>(x) * static_cast<double>(x); }
  double Result(int64_t) const { return std::sqrt(sum); }
};
template <class W, class T>
struct LogSumOf {
  double sum = 0;
  void Add(W x) { sum += static_cast<double>(x); }
  double Result(int64_t) const { return std::log(sum); }
};
template <class W, class T>
struct LogSumExpOf {
  double max = -INFINITY, sum = 0;  // sum of exp(x - max)
  void Add(W element) {
    const double x = static_cast<double>(element);
    if (x <= max) {
      sum += x == max ? 1 : std::exp(x - max);
    } else if (!IsNan(max)) {
      sum = (max == -INFINITY ? 0 : sum * std::exp(max - x)) + 1;
      max = x;  // a NaN stays
    }
  }
  double Result(int64_t) const {
    if (IsNan(max)) return max;
    return max == INFINITY || max == -INFINITY ? max : max + std::log(sum);
  }
};

Result<ReduceLoops> LoopsOf(const ReduceAttrs& attrs, const Args& args) {
  const Shape shape = args.in(0).shape;
  ONCILLA_ASSIGN(
      const auto axes,
      ReducedAxes(attrs, args.has_input(1) ? &args.node.inputs[1] : nullptr, shape.rank()));
  return MakeReduceLoops(shape, axes);
}

// Offset of output `index` in the input.
int64_t OffsetOf(const std::vector<ReduceLoops::Axis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0; index /= axes[i].size) {
    offset += index % axes[i].size * axes[i].stride;
  }
  return offset;
}

template <template <class, class> class Reducer>
Status Reduce(const ReduceAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const ReduceLoops loops, LoopsOf(attrs, args));
  const int64_t run = loops.reduced.empty() ? 1 : loops.reduced.back().size;
  const int64_t stride = loops.reduced.empty() ? 0 : loops.reduced.back().stride;
  auto outer = loops.reduced;
  if (!outer.empty()) outer.pop_back();
  const int64_t runs = loops.count == 0 ? 0 : loops.count / run;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, loops.count));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using W = internal::WideType<T>;
    if constexpr (std::is_same_v<Reducer<W, T>, AllOf<double, T>> ||
                  std::is_same_v<Reducer<W, T>, AnyOf<double, T>>) {
      return;
    } else {
      const auto* x = args.In<internal::Stored<T>>(0);
      ParallelFor(args.threads, loops.outputs, grain, [&](int64_t begin, int64_t end) {
        Lookout look(args.threads);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t base = OffsetOf(loops.kept, i);
          Reducer<W, T> reducer;
          for (int64_t r = 0; r < runs; ++r) {
            const int64_t start = base + OffsetOf(outer, r);
            for (int64_t k = 0; k < run;) {
              const int64_t last = std::min(run, k + kLongStretch);
              if (look.Ended(last - k)) return;
              for (; k < last; ++k) reducer.Add(internal::Widen<T, W>(x[start + k * stride]));
            }
          }
          args.Out<T>(0)[i] = ConvertElement<T>(reducer.Result(loops.count));
        }
      });
    }
  });
  return Status();
}

Status ReduceMean(const ReduceAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const ReduceLoops loops, LoopsOf(attrs, args));
  if (IsInteger(args.in(0).dtype) && loops.count == 0 && loops.outputs > 0) {
    return InvalidArgument("the mean of no integers is undefined");
  }
  return Reduce<MeanOf>(attrs, args);
}

// The sizes of a shape before, along and after an axis.
struct AroundAxis {
  int64_t outer, size, inner;
};
Result<AroundAxis> Around(const Shape& shape, int64_t axis) {
  ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, shape.rank()));
  return AroundAxis{shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank())};
}

// Whether a is better than b. A NaN is better than any number.
template <class W>
bool Better(W a, W b, bool larger) {
  if (IsNan(b)) return false;
  return IsNan(a) || (larger ? a > b : a < b);
}

// The least finite number of a type, or the greatest.
template <class T>
T Edge(bool least) {
  if constexpr (std::is_same_v<T, Half>) {
    return static_cast<T>(least ? -65504.0f : 65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return static_cast<T>(least ? -0x1.FEp127f : 0x1.FEp127f);
  } else {
    return least ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

template <bool larger>
Status Arg(const ArgAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using W = internal::WideType<T>;
    const auto* x = args.In<internal::Stored<T>>(0);
    DispatchDType(attrs.to, [&]<class To>(TypeTag<To>) {
      const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, at.size));
      ParallelFor(args.threads, at.outer * at.inner, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto* row = x + i / at.inner * at.size * at.inner + i % at.inner;
          const auto read = [&](int64_t k) {
            const W v = internal::Widen<T, W>(row[k * at.inner]);
            if (std::is_integral_v<T> || !attrs.skip_nan) return v;
            const W edge = internal::Widen<T, W>(Edge<T>(larger));
            return (larger ? v > edge : v < edge) ? v : edge;
          };
          int64_t best = 0;
          W value = read(0);
          for (int64_t k = 1; k < at.size; ++k) {
            const W v = read(k);
            if (attrs.last ? !Better(value, v, larger) : Better(v, value, larger)) {
              best = k;
              value = v;
            }
          }
          args.Out<To>(0)[i] = ConvertElement<To>(best);
        }
      });
    });
  });
  return Status();
}

// Takes one more element into a total.
template <bool product, class W>
W Accumulate(W total, W x) {
  return product ? MulWide(total, x) : AddWide(total, x);
}

// A row of elements that are `step` apart.
template <bool product, class W, class T>
void CumulateRow(const T* x, int64_t n, int64_t step, bool exclusive, T* y) {
  W total = product ? 1 : 0;
  for (int64_t i = 0; i < n; ++i, x += step, y += step) {
    const W next = Accumulate<product>(total, static_cast<W>(*x));
    *y = ConvertElement<T>(exclusive ? total : next);
    total = next;
  }
}

// Adds the next element of `columns` columns to their totals. The loops have a short length known
// to the compiler, so that they are vectorised.
template <bool product, int64_t columns, class W, class T>
void CumulateColumns(const T* x, bool exclusive, W* totals, T* y) {
  W wide[columns];
  for (int64_t c = 0; c < columns; ++c) wide[c] = static_cast<W>(x[c]);
  if (exclusive) {
    for (int64_t c = 0; c < columns; ++c) y[c] = ConvertElement<T>(totals[c]);
  }
  for (int64_t c = 0; c < columns; ++c) totals[c] = Accumulate<product>(totals[c], wide[c]);
  if (!exclusive) {
    for (int64_t c = 0; c < columns; ++c) y[c] = ConvertElement<T>(totals[c]);
  }
}

template <bool product>
Status Cumulate(const CumulativeAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto axis, args.Ints(1, "axis"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, axis[0]));
  if (at.size == 0) return Status();
  constexpr int64_t kTogether = 16, kColumns = 64;
  // Computes up to kColumns columns side by side, each in the order of its elements; if there are
  // few columns, one after the other.
  const int64_t columns = at.inner < kTogether ? 1 : std::min(kColumns, at.inner);
  const int64_t blocks = (at.inner + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, at.size * columns));
  // `start` is the first element in the order of summation, `step` leads to the next.
  const int64_t start = attrs.reverse ? (at.size - 1) * at.inner : 0;
  const int64_t step = attrs.reverse ? -at.inner : at.inner;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using W = internal::WideType<T>;
    if constexpr (std::is_same_v<T, bool>) return;
    const auto across = [&](const T* x, int64_t count, T* y) {
      W totals[kColumns];
      std::fill_n(totals, count, W{product ? 1 : 0});
      for (int64_t k = 0; k < at.size; ++k, x += step, y += step) {
        int64_t c = 0;
        for (; c + kTogether <= count; c += kTogether) {
          CumulateColumns<product, kTogether>(x + c, attrs.exclusive, totals + c, y + c);
        }
        for (; c < count; ++c) {
          CumulateColumns<product, 1>(x + c, attrs.exclusive, totals + c, y + c);
        }
      }
    };
    ParallelFor(args.threads, at.outer * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % blocks * columns;
        const int64_t first = i / blocks * at.size * at.inner + column + start;
        const T* x = args.In<T>(0) + first;
        T* y = args.Out<T>(0) + first;
        if (columns == 1) {
          CumulateRow<product, W>(x, at.size, step, attrs.exclusive, y);
        } else {
          across(x, std::min(columns, at.inner - column), y);
        }
      }
    });
  });
  return Status();
}

// log(exp(a) + exp(b)) without overflow. Equal infinities are handled separately, since their
// difference is NaN.
double LogAdd(double a, double b) {
  if (IsNan(a) || IsNan(b)) return a + b;
  const double high = std::max(a, b), low = std::min(a, b);
  return high == low ? high + std::log(2.0) : high + std::log1p(std::exp(low - high));
}

Status CumLogSumExp(const CumulativeAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto axis, args.Ints(1, "axis"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, axis[0]));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, at.size));
      ParallelFor(args.threads, at.outer * at.inner, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t base = i / at.inner * at.size * at.inner + i % at.inner;
          double sum = -INFINITY;
          for (int64_t step = 0; step < at.size; ++step) {
            const int64_t k = base + (attrs.reverse ? at.size - 1 - step : step) * at.inner;
            const auto v = static_cast<double>(args.In<T>(0)[k]);
            const double next = step == 0 ? v : LogAdd(sum, v);
            args.Out<T>(0)[k] = ConvertElement<T>(attrs.exclusive ? sum : next);
            sum = next;
          }
        }
      });
    }
  });
  return Status();
}

// std::sort by a total order, in pieces that are then merged, so that it can end early between two
// of them.
template <class It, class Before>
void SortInPieces(const Threads& threads, It first, int64_t n, const Before& before) {
  constexpr int64_t kPiece = 1 << 16;
  for (int64_t i = 0; i < n; i += kPiece) {
    if (i > 0 && threads.ended()) return;
    std::sort(first + i, first + std::min(n, i + kPiece), before);
  }
  for (int64_t width = kPiece; width < n; width *= 2) {
    for (int64_t i = 0; i + width < n; i += 2 * width) {
      if (threads.ended()) return;
      std::inplace_merge(first + i, first + i + width, first + std::min(n, i + 2 * width), before);
    }
  }
}

Status TopK(const TopKAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  ONCILLA_ASSIGN(const auto ks, args.Ints(1, "k"));
  const int64_t k = ks[0];
  if (k == 0) return Status();
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using W = internal::WideType<T>;
    if constexpr (std::is_same_v<T, bool>) return;
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, at.size));
    ParallelFor(args.threads, at.outer * at.inner, grain, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(static_cast<size_t>(at.size));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t outer = i / at.inner, inner = i % at.inner;
        const T* x = args.In<T>(0) + outer * at.size * at.inner + inner;
        auto value = [&](int64_t index) { return static_cast<W>(x[index * at.inner]); };
        // A total order, so that a partial selection gives the same result as sorting everything.
        // NaN is above all numbers.
        auto before = [&](int64_t a, int64_t b) {
          const W va = value(a), vb = value(b);
          if (IsNan(va) || IsNan(vb)) {
            if (IsNan(va) && IsNan(vb)) return a < b;
            return IsNan(va) == attrs.largest;
          }
          if (va != vb) return attrs.largest ? va > vb : va < vb;
          return a < b;
        };
        std::iota(order.begin(), order.end(), 0);
        if (k < at.size) std::nth_element(order.begin(), order.begin() + k, order.end(), before);
        SortInPieces(args.threads, order.begin(), k, before);
        DispatchDType(attrs.to, [&]<class To>(TypeTag<To>) {
          for (int64_t j = 0; j < k; ++j) {
            const int64_t place = (outer * k + j) * at.inner + inner;
            args.Out<T>(0)[place] = x[order[j] * at.inner];
            args.Out<To>(1)[place] = ConvertElement<To>(order[j]);
          }
        });
      }
    });
  });
  return Status();
}

// The same row with a vectorised kernel beside it.
template <auto F>
constexpr KernelRow FastRow(std::string_view op) {
  KernelRow row = Row<F>(op, kNumbers);
  row.fast = &MakeFastReduce;
  return row;
}

const KernelRow kRows[] = {
    FastRow<Reduce<SumOf>>("ReduceSum"),
    FastRow<ReduceMean>("ReduceMean"),
    FastRow<Reduce<MaxOf>>("ReduceMax"),
    FastRow<Reduce<MinOf>>("ReduceMin"),
    FastRow<Reduce<ProdOf>>("ReduceProd"),
    Row<Reduce<AllOf>>("ReduceAll", kBools),
    Row<Reduce<AnyOf>>("ReduceAny", kBools),
    FastRow<Reduce<L1Of>>("ReduceL1"),
    FastRow<Reduce<L2Of>>("ReduceL2"),
    FastRow<Reduce<LogSumOf>>("ReduceLogSum"),
    FastRow<Reduce<LogSumExpOf>>("ReduceLogSumExp"),
    FastRow<Reduce<SumSquareOf>>("ReduceSumSquare"),
    Row<Arg<true>>("ArgMax", kFixedSize, &MakeFastArg),
    Row<Arg<false>>("ArgMin", kFixedSize, &MakeFastArg),
    Row<Cumulate<false>>("CumSum", kNumbers),
    Row<Cumulate<true>>("CumProd", kNumbers),
    Row<CumLogSumExp>("CumLogSumExp", kFloats),
    Row<TopK>("TopK", kNumbers, &MakeFastTopK),
};

}  // namespace

std::span<const KernelRow> ReduceKernels() { return kRows; }

}  // namespace oncilla::cpu
