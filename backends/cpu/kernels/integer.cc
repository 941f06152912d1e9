// Exact arithmetic on quantised tensors on the CPU. Zero points are subtracted once, when operands
// are widened, so that the inner loops are products of 16-bit integers with 32-bit sums, which
// compilers vectorise.
#include "engine/ops/nn/integer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/windows.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Sums wrap around. They are added as unsigned numbers, whose overflow is defined.
template <class Sum>
using Wrapping = std::make_unsigned_t<Sum>;

// Operands minus their zero points: a byte then needs 9 bits and fits 16, an i16 needs 17 bits and
// fits 32.
template <class X>
using Wide = std::conditional_t<sizeof(X) == 1, int16_t, int32_t>;

template <class Sum, class A, class B>
Wrapping<Sum> Product(A a, B b) {
  if constexpr (sizeof(A) == 2 && sizeof(B) == 2) {
    return static_cast<Wrapping<Sum>>(static_cast<Sum>(static_cast<int32_t>(a) * b));
  } else {
    return static_cast<Wrapping<Sum>>(static_cast<Sum>(int64_t{a} * b));
  }
}

// sums[j] += x[i] * w[i][j] for `count` rows of w, `step` apart. Takes four rows at a time, so that
// sums are read and written less often.
template <class Sum, class X, class Z>
void AddRows(const X* x, int64_t x_step, Z x_zero, const int16_t* w, int64_t step, int64_t count,
             int64_t width, Wrapping<Sum>* sums) {
  const auto moved = [&](int64_t i) { return static_cast<Wide<X>>(x[i * x_step] - x_zero); };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const Wide<X> x0 = moved(i), x1 = moved(i + 1), x2 = moved(i + 2), x3 = moved(i + 3);
    const int16_t *w0 = w + i * step, *w1 = w0 + step, *w2 = w1 + step, *w3 = w2 + step;
    for (int64_t j = 0; j < width; ++j) {
      sums[j] += Product<Sum>(x0, w0[j]) + Product<Sum>(x1, w1[j]) + Product<Sum>(x2, w2[j]) +
                 Product<Sum>(x3, w3[j]);
    }
  }
  for (; i < count; ++i) {
    const Wide<X> x0 = moved(i);
    const int16_t* row = w + i * step;
    for (int64_t j = 0; j < width; ++j) sums[j] += Product<Sum>(x0, row[j]);
  }
}

// ONNX Runtime's rule: clamped as float, so that no conversion to integer is out of range.
template <class T>
T RoundFloat(float value, float least, float most, int64_t zero) {
  const float cut = value > least ? (value < most ? value : most) : least;
  return static_cast<T>(static_cast<int64_t>(std::nearbyint(cut)) + zero);
}

// The rule of a Requantize from sums of type X to T. Its scale, zero point and shift are the inputs
// from `first` on.
template <class T, class X>
class Requantizer {
 public:
  Requantizer(const RequantizeAttrs& attrs, const Args& args, size_t first)
      : range_(RangeOf(attrs)),
        zero_(args.has_input(first + 1) ? int64_t{args.In<T>(first + 1)[0]} : 0),
        x_zero_(static_cast<Wrapping<X>>(attrs.x_zero)),
        left_shift_(attrs.left_shift),
        many_(args.in(first).elements() != 1),
        least_(static_cast<float>(range_.least - zero_)),
        most_(static_cast<float>(range_.most - zero_)) {
    // The bound as a float may have been rounded up; the next smaller float is within the range.
    if (static_cast<int64_t>(most_) > range_.most - zero_) most_ = std::nextafter(most_, 0.0f);
    if (attrs.mode == "fixed") {
      multipliers_ = args.In<int32_t>(first);
      shifts_ = args.In<int32_t>(first + 2);
    } else {
      scales_ = args.In<float>(first);
    }
  }

  T operator()(X given, int64_t place) const {
    if (!many_) place = 0;
    const X x = static_cast<X>(static_cast<Wrapping<X>>(given) - x_zero_);
    if (scales_ != nullptr) {
      return RoundFloat<T>(static_cast<float>(x) * scales_[place], least_, most_, zero_);
    }
    const auto shifted = static_cast<X>(static_cast<Wrapping<X>>(x) << left_shift_);
    const int64_t y = MultiplyFixed(shifted, multipliers_[place], shifts_[place]) + zero_;
    return static_cast<T>(std::clamp(y, range_.least, range_.most));
  }

 private:
  const IntegerRange range_;
  const int64_t zero_;
  const Wrapping<X> x_zero_;
  const int64_t left_shift_;
  const bool many_;
  float least_, most_;
  const float* scales_ = nullptr;
  const int32_t *multipliers_ = nullptr, *shifts_ = nullptr;
};

// Calls fn with a tag of a type that Requantize may produce.
template <class F>
void DispatchRequantized(DType to, F&& fn) {
  DispatchDType(to, [&]<class T>(TypeTag<T> tag) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4 && !std::is_same_v<T, bool>) fn(tag);
  });
}

// Stores a row of the sums of a product, from output element `at` on: as they are, or as the
// epilogue converts them.
template <class Sum>
void StoreSums(const IntegerEpilogue& epilogue, const Args& args, const Wrapping<Sum>* sums,
               int64_t at, int64_t count) {
  if (epilogue.none()) {
    for (int64_t i = 0; i < count; ++i) args.Out<Sum>(0)[at + i] = static_cast<Sum>(sums[i]);
    return;
  }
  if (epilogue.real()) {
    const bool many_scales = args.in(5).elements() != 1;
    const float* const term = args.has_input(6) ? args.In<float>(6) : nullptr;
    const bool many_terms = term != nullptr && args.in(6).elements() != 1;
    for (int64_t i = 0; i < count; ++i) {
      float y =
          static_cast<float>(static_cast<Sum>(sums[i])) * args.In<float>(5)[many_scales ? i : 0];
      if (term != nullptr) y += term[many_terms ? i : 0];
      args.Out<float>(0)[at + i] = y;
    }
    return;
  }
  DispatchRequantized(epilogue.to, [&]<class T>(TypeTag<T>) {
    const Requantizer<T, Sum> requantized(AsRequantize(epilogue), args, 5);
    for (int64_t i = 0; i < count; ++i) {
      args.Out<T>(0)[at + i] = requantized(static_cast<Sum>(sums[i]), i);
    }
  });
}

// The shifts of an imported file were checked when it was read; those of other graphs are checked
// here.
Status CheckShiftsAt(const Args& args, const std::string& mode, DType x, size_t input) {
  if (mode != "fixed") return Status();
  const auto count = static_cast<size_t>(args.in(input).elements());
  return CheckShifts(x, {args.In<int32_t>(input), count});
}

DType SumTypeOf(const Args& args) {
  return SumType(args.in(0).dtype, args.has_input(4) ? &args.node.inputs[4] : nullptr);
}

// Calls fn with tags of the operands' types and of the type of sums.
template <class F>
void DispatchOperands(const Args& args, F&& fn) {
  DispatchDType(args.in(0).dtype, [&]<class X>(TypeTag<X>) {
    if constexpr (std::is_same_v<X, uint8_t> || std::is_same_v<X, int8_t> ||
                  std::is_same_v<X, int16_t>) {
      const bool is_signed = args.in(1).dtype == DType::kI8;
      const auto with_sums = [&]<class S>(TypeTag<S>) {
        if (is_signed) fn(TypeTag<X>{}, TypeTag<int8_t>{}, TypeTag<S>{});
        if (!is_signed) fn(TypeTag<X>{}, TypeTag<uint8_t>{}, TypeTag<S>{});
      };
      if (SumTypeOf(args) == DType::kI32) with_sums(TypeTag<int32_t>{});
      if (SumTypeOf(args) == DType::kI64) with_sums(TypeTag<int64_t>{});
    }
  });
}

// The zero point that input `i` has for position `j`.
template <class T>
int32_t ZeroAt(const Args& args, size_t i, int64_t j) {
  if (!args.has_input(i)) return 0;
  return args.In<T>(i)[args.in(i).elements() == 1 ? 0 : j];
}

template <class X, class W, class Sum>
void ConvOf(const WindowGeometry& g, const IntegerEpilogue& epilogue, const Args& args) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const W* given = args.In<W>(1);
  const int64_t rows = g.taps() * in_group;
  std::vector<int16_t> filter(static_cast<size_t>(rows * g.out_channels));
  std::vector<int32_t> zeros(static_cast<size_t>(g.out_channels));
  for (int64_t c = 0; c < g.out_channels; ++c) zeros[c] = ZeroAt<W>(args, 3, c);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * g.out_channels;
    for (int64_t c = 0; c < g.out_channels; ++c) {
      filter[at + c] = static_cast<int16_t>(given[at + c] - zeros[c]);
    }
  }
  const Sum* bias = args.has_input(4) ? args.In<Sum>(4) : nullptr;
  const int64_t grain = GrainOf(rows * g.out_channels, 16);
  ParallelFor(args.threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
    std::vector<Wrapping<Sum>> sums(static_cast<size_t>(g.out_channels));
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int32_t x_zero = ZeroAt<X>(args, 2, pixel / g.out_pixels());
      for (int64_t c = 0; c < g.out_channels; ++c) {
        sums[c] = bias != nullptr ? static_cast<Wrapping<Sum>>(bias[c]) : 0;
      }
      ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
        const X* x = args.In<X>(0) + at * g.in_channels;
        const int16_t* w = filter.data() + tap * in_group * g.out_channels;
        if (in_group == 1 && out_group == 1) {
          for (int64_t c = 0; c < g.out_channels; ++c) {
            sums[c] += Product<Sum>(static_cast<Wide<X>>(x[c] - x_zero), w[c]);
          }
          return;
        }
        for (int64_t k = 0; k < g.groups; ++k) {
          AddRows<Sum>(x + k * in_group, 1, x_zero, w + k * out_group, g.out_channels, in_group,
                       out_group, sums.data() + k * out_group);
        }
      });
      StoreSums<Sum>(epilogue, args, sums.data(), pixel * g.out_channels, g.out_channels);
    }
  });
}

Status ConvInteger(const ConvIntegerAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(AsConv(attrs), args.node));
  ONCILLA_TRY(CheckShiftsAt(args, attrs.epilogue.requantize, SumTypeOf(args), 7));
  DispatchOperands(args, [&]<class X, class W, class S>(TypeTag<X>, TypeTag<W>, TypeTag<S>) {
    ConvOf<X, W, S>(g, attrs.epilogue, args);
  });
  return Status();
}

// Widens one matrix b, as rows of n columns.
template <class W>
void WidenMatrix(const MatMulGeometry& g, const W* b, const Args& args,
                 std::vector<int16_t>& wide) {
  // Works on a few rows at a time, because either b or the result may be read or written across its
  // rows.
  constexpr int64_t kRows = 32;
  for (int64_t begin = 0; begin < g.k; begin += kRows) {
    const int64_t end = std::min(g.k, begin + kRows);
    for (int64_t j = 0; j < g.n; ++j) {
      const int32_t zero = ZeroAt<W>(args, 3, j);
      for (int64_t k = begin; k < end; ++k) {
        wide[k * g.n + j] = static_cast<int16_t>(b[k * g.b_row + j * g.b_col] - zero);
      }
    }
  }
}

template <class X, class W, class Sum>
void MatMulOf(const MatMulGeometry& g, const IntegerEpilogue& epilogue, int64_t rows_of_a,
              const Args& args) {
  std::vector<int16_t> wide(static_cast<size_t>(g.k * g.n));
  const Sum* bias = args.has_input(4) ? args.In<Sum>(4) : nullptr;
  const int64_t grain = GrainOf(SaturatingMul(g.n, g.k), 16);
  int64_t held = -1;
  for (int64_t z = 0; z < g.batch && !args.threads.ended(); ++z) {
    if (const int64_t at = g.b_offset(z); at != held) {
      WidenMatrix(g, args.In<W>(1) + at, args, wide);
      held = at;
    }
    ParallelFor(args.threads, g.m, grain, [&](int64_t begin, int64_t end) {
      std::vector<Wrapping<Sum>> sums(static_cast<size_t>(g.n));
      for (int64_t row = begin; row < end; ++row) {
        const X* a = args.In<X>(0) + g.a_offset(z) + row * g.a_row;
        for (int64_t j = 0; j < g.n; ++j) {
          sums[j] = bias != nullptr ? static_cast<Wrapping<Sum>>(bias[j]) : 0;
        }
        const int32_t zero = ZeroAt<X>(args, 2, row % rows_of_a);
        // In pieces, so that a long row can end early.
        constexpr int64_t kPiece = 1024;
        Lookout look(args.threads);
        for (int64_t k = 0; k < g.k; k += kPiece) {
          const int64_t count = std::min(kPiece, g.k - k);
          if (look.Ended(g.n * count)) return;
          AddRows<Sum>(a + k * g.a_col, g.a_col, zero, wide.data() + k * g.n, g.n, count, g.n,
                       sums.data());
        }
        StoreSums<Sum>(epilogue, args, sums.data(), (z * g.m + row) * g.n, g.n);
      }
    });
  }
}

Status MatMulInteger(const MatMulIntegerAttrs& attrs, const Args& args) {
  const Shape a = args.in(0).shape;
  const MatMulGeometry g = GeometryOf(AsMatMul(attrs), a, args.in(1).shape);
  if (g.batch * g.m * g.n == 0) return Status();
  ONCILLA_TRY(CheckShiftsAt(args, attrs.epilogue.requantize, SumTypeOf(args), 7));
  const int64_t rows = a.rank() < 2 ? 1 : a[a.rank() - (attrs.transpose_a ? 1 : 2)];
  DispatchOperands(args, [&]<class X, class W, class S>(TypeTag<X>, TypeTag<W>, TypeTag<S>) {
    MatMulOf<X, W, S>(g, attrs.epilogue, rows, args);
  });
  return Status();
}

template <class T, class X>
void RequantizeSpans(const RequantizeAttrs& attrs, const Args& args) {
  const RequantizeSpan s = SpanOf(attrs, args.in(0).shape, args.in(1).shape);
  const Requantizer<T, X> requantized(attrs, args, 1);
  DispatchDType(args.in(0).dtype, [&]<class From>(TypeTag<From>) {
    if constexpr (std::is_integral_v<From> && sizeof(From) <= sizeof(X)) {
      const From* x = args.In<From>(0);
      T* y = args.Out<T>(0);
      const int64_t elements = args.in(0).elements();
      if constexpr (sizeof(From) == 1) {
        // Bytes with one factor have 256 results.
        if (elements > 1024 && args.in(1).elements() == 1) {
          T results[256];
          for (int i = 0; i < 256; ++i) {
            results[i] = requantized(static_cast<X>(static_cast<From>(i)), 0);
          }
          ParallelFor(args.threads, elements, 1 << 15, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) y[i] = results[static_cast<uint8_t>(x[i])];
          });
          return;
        }
      }
      ParallelFor(args.threads, elements, 1 << 15, [&](int64_t begin, int64_t end) {
        int64_t inner = begin % s.inner, place = begin / s.inner % s.count;
        for (int64_t i = begin; i < end; ++i) {
          y[i] = requantized(static_cast<X>(x[i]), place);
          if (++inner < s.inner) continue;
          inner = 0;
          if (++place == s.count) place = 0;
        }
      });
    }
  });
}

Status Requantize(const RequantizeAttrs& attrs, const Args& args) {
  if (args.in(0).elements() == 0) return Status();
  ONCILLA_TRY(CheckShiftsAt(args, attrs.mode, args.in(0).dtype, 3));
  DispatchRequantized(attrs.to, [&]<class T>(TypeTag<T>) {
    if (args.in(0).dtype == DType::kI64) {
      RequantizeSpans<T, int64_t>(attrs, args);
    } else {
      RequantizeSpans<T, int32_t>(attrs, args);
    }
  });
  return Status();
}

constexpr DTypeSet kOperands = Set(DType::kU8) | Set(DType::kI8) | Set(DType::kI16);

const KernelRow kRows[] = {
    Row<ConvInteger>("ConvInteger", kOperands, &MakeFastConvInteger, &ConvIntegerPacking),
    Row<MatMulInteger>("MatMulInteger", kOperands, &MakeFastMatMulInteger, &MatMulIntegerPacking),
    Row<Requantize>("Requantize",
                    kOperands | Set(DType::kU16) | Set(DType::kI32) | Set(DType::kI64),
                    &MakeFastRequantize),
};

}  // namespace

std::span<const KernelRow> IntegerKernels() { return kRows; }

}  // namespace oncilla::cpu
