// Fast ConvInteger and MatMulInteger of bytes with sums in i32: matrix products on vectors of pairs
// of 16-bit integers, which instructions multiply and add in one step.
//
// Weights less their zero points are packed in panels of columns, two rows of them side by side.
// Rows of the other operand (the windows of output pixels, of a convolution) are widened a few at a
// time. All sums wrap around, so the order in which they are added makes no difference.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/integer.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/nn/integer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/vector.inl.h"
#include "backends/cpu/windows.h"

#ifndef ONCILLA_FAST_INTEGER_TYPES
#define ONCILLA_FAST_INTEGER_TYPES
namespace oncilla::cpu {

// One operand of the product as it is stored: element (i, j) stands at i * row + j * column.
struct IntegerWeights {
  const std::byte* data = nullptr;
  bool is_signed = false;
  int64_t k = 0, n = 0, row = 0, column = 0;
  const std::byte* zeros = nullptr;  // of the weights' type; null, or one, or one for each column
  bool many_zeros = false;

  int32_t at(const std::byte* from, int64_t i) const {
    return is_signed ? int32_t{reinterpret_cast<const int8_t*>(from)[i]}
                     : int32_t{reinterpret_cast<const uint8_t*>(from)[i]};
  }
  int64_t pairs() const { return (k + 1) / 2; }
};

// Widened rows times packed weights.
struct IntegerTile {
  const int16_t* x = nullptr;  // rows of 2 * pairs
  int64_t rows = 0, pairs = 0, n = 0;
  const int16_t* weights = nullptr;
  const int32_t* bias = nullptr;  // or null
  int32_t* y = nullptr;           // rows of n
};

// A panel is at most so wide, whatever the instruction set.
inline constexpr int64_t kWidestPanel = 64;

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

using Sums = hn::ScalableTag<int32_t>;
#if HWY_TARGET != HWY_SCALAR  // whose vectors hold no pairs
using Pairs = hn::Repartition<int16_t, Sums>;
#endif
constexpr int64_t kSums = HWY_LANES(int32_t);
constexpr int64_t kPanel = 2 * kSums;
static_assert(kPanel <= kWidestPanel);

// Columns that a panel lacks are zero.
void PackPanels(const IntegerWeights& w, int64_t begin, int64_t end, int16_t* packed) {
  for (int64_t panel = begin; panel < end; ++panel) {
    int16_t* to = packed + panel * w.pairs() * kPanel * 2;
    for (int64_t p = 0; p < w.pairs(); ++p) {
      for (int64_t c = 0; c < kPanel; ++c) {
        const int64_t column = panel * kPanel + c;
        for (int64_t i = 2 * p; i < 2 * p + 2; ++i) {
          int32_t value = 0;
          if (column < w.n && i < w.k) {
            const int32_t zero = w.zeros == nullptr ? 0 : w.at(w.zeros, w.many_zeros ? column : 0);
            value = w.at(w.data, i * w.row + column * w.column) - zero;
          }
          *to++ = static_cast<int16_t>(value);
        }
      }
    }
  }
}
int64_t PanelWidth() { return kPanel; }

// n bytes less a zero point.
template <class T>
HWY_INLINE void WidenBytes(const T* x, int64_t n, int32_t zero, int16_t* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Pairs d;
  constexpr hn::Rebind<T, Pairs> bytes;
  constexpr int64_t kStep = 2 * kSums;
  const auto point = hn::Set(d, static_cast<int16_t>(zero));
  for (; i + kStep <= n; i += kStep) {
    hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(bytes, x + i)), point), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
}
void WidenRow(const std::byte* x, bool is_signed, int64_t n, int32_t zero, int16_t* to) {
  if (is_signed) return WidenBytes(reinterpret_cast<const int8_t*>(x), n, zero, to);
  WidenBytes(reinterpret_cast<const uint8_t*>(x), n, zero, to);
}

// The sums of kRows rows of a panel.
template <int kRows>
HWY_INLINE void PanelSums(const IntegerTile& t, const int16_t* x, const int16_t* w,
                          int32_t (&out)[kRows][kPanel]) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kPanel; ++c) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < 2 * t.pairs; ++i) {
        const int32_t weight = w[(i / 2 * kPanel + c) * 2 + i % 2];
        sum += static_cast<uint32_t>(x[r * t.pairs * 2 + i] * weight);
      }
      out[r][c] = static_cast<int32_t>(sum);
    }
  }
#else
  constexpr Sums d;
  constexpr Pairs pairs;
  hn::Vec<Sums> sum[kRows][2], rest[kRows][2];
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    ONCILLA_UNROLL for (int v = 0; v < 2; ++v) sum[r][v] = rest[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < t.pairs; ++p, w += kPanel * 2) {
    const auto w0 = hn::LoadU(pairs, w), w1 = hn::LoadU(pairs, w + kPanel);
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      int32_t both;
      std::memcpy(&both, x + (r * t.pairs + p) * 2, sizeof(both));
      const auto in = hn::BitCast(pairs, hn::Set(d, both));
      sum[r][0] = hn::ReorderWidenMulAccumulate(d, in, w0, sum[r][0], rest[r][0]);
      sum[r][1] = hn::ReorderWidenMulAccumulate(d, in, w1, sum[r][1], rest[r][1]);
    }
  }
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
      hn::StoreU(hn::RearrangeToOddPlusEven(sum[r][v], rest[r][v]), d, out[r] + v * kSums);
    }
  }
#endif
}

template <int kRows>
HWY_INLINE void PanelRows(const IntegerTile& t, int64_t row, int64_t panel) {
  int32_t sums[kRows][kPanel];
  PanelSums<kRows>(t, t.x + row * t.pairs * 2, t.weights + panel * t.pairs * kPanel * 2, sums);
  const int64_t first = panel * kPanel, count = std::min<int64_t>(kPanel, t.n - first);
  for (int r = 0; r < kRows; ++r) {
    int32_t* y = t.y + (row + r) * t.n + first;
    for (int64_t c = 0; c < count; ++c) {
      const auto bias = static_cast<uint32_t>(t.bias == nullptr ? 0 : t.bias[first + c]);
      y[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[r][c]) + bias);
    }
  }
}

// Panel by panel, so that a panel stays in the cache while all rows pass.
void MultiplyTile(const IntegerTile& t) {
  for (int64_t panel = 0; panel * kPanel < t.n; ++panel) {
    int64_t row = 0;
    for (; row + 4 <= t.rows; row += 4) PanelRows<4>(t, row, panel);
    for (; row < t.rows; ++row) PanelRows<1>(t, row, panel);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(PackPanels);
HWY_EXPORT(PanelWidth);
HWY_EXPORT(WidenRow);
HWY_EXPORT(MultiplyTile);

// Fewer rows than these leave packing the weights to pay off.
constexpr int64_t kFewestRows = 4;
constexpr int64_t kRowsPerTask = 16;

bool TakesBytes(const NodeView& node) {
  const auto byte = [](DType t) { return t == DType::kU8 || t == DType::kI8; };
  return byte(node.inputs[0].dtype) && byte(node.inputs[1].dtype) &&
         node.outputs[0].dtype == DType::kI32 && node.outputs[0].desc().elements() > 0;
}

bool IsSignedByte(const TensorDesc& desc) { return desc.dtype == DType::kI8; }

// Number i of a zero point of bytes, or the only one; 0 without.
int32_t ZeroOf(const Args& args, size_t input, int64_t i) {
  if (!args.has_input(input)) return 0;
  const int64_t at = args.in(input).elements() == 1 ? 0 : i;
  return IsSignedByte(args.in(input)) ? int32_t{args.In<int8_t>(input)[at]}
                                      : int32_t{args.In<uint8_t>(input)[at]};
}

int64_t PackedBytes(int64_t k, int64_t n) {
  const int64_t columns = SaturatingMul((n + kWidestPanel - 1) / kWidestPanel, kWidestPanel);
  return SaturatingMul(SaturatingMul((k + 1) / 2, columns), 2 * int64_t{sizeof(int16_t)});
}

IntegerWeights WeightsOf(const Args& args, int64_t k, int64_t n) {
  IntegerWeights w;
  w.data = args.inputs[1];
  w.is_signed = IsSignedByte(args.in(1));
  w.k = k;
  w.n = n;
  w.row = n;
  w.column = 1;
  if (args.has_input(3)) {
    w.zeros = args.inputs[3];
    w.many_zeros = args.in(3).elements() != 1;
  }
  return w;
}

void Pack(const IntegerWeights& w, const Args& args) {
  auto* packed = reinterpret_cast<int16_t*>(args.scratch);
  const int64_t panels =
      (w.n + HWY_DYNAMIC_DISPATCH(PanelWidth)() - 1) / HWY_DYNAMIC_DISPATCH(PanelWidth)();
  ParallelFor(args.threads, panels, GrainOf(w.k * kWidestPanel * 4, 64),
              [&](int64_t begin, int64_t end) {
                HWY_DYNAMIC_DISPATCH(PackPanels)(w, begin, end, packed);
              });
}

// Rows of the product, `widen(row, to)` being what fills one of 2 * pairs integers.
template <class F>
void Multiply(const IntegerWeights& w, int64_t rows, const Args& args, int32_t* y, F&& widen) {
  const int64_t width = 2 * w.pairs();
  ParallelFor(args.threads, rows, kRowsPerTask, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> x(static_cast<size_t>((end - begin) * width));
    for (int64_t row = begin; row < end; ++row) widen(row, x.data() + (row - begin) * width);
    IntegerTile tile;
    tile.x = x.data();
    tile.rows = end - begin;
    tile.pairs = w.pairs();
    tile.n = w.n;
    tile.weights = reinterpret_cast<const int16_t*>(args.scratch);
    tile.bias = args.has_input(4) ? args.In<int32_t>(4) : nullptr;
    tile.y = y + begin * w.n;
    HWY_DYNAMIC_DISPATCH(MultiplyTile)(tile);
  });
}

class FastConvInteger : public CpuKernel {
 public:
  FastConvInteger(const NodeView& node, const WindowGeometry& g) : CpuKernel(node), g_(g) {}
  std::string description() const override { return "vectors of pairs"; }
  int64_t scratch_bytes() const override { return PackedBytes(depth(), g_.out_channels); }

  Status Run(const Args& args) const override {
    const IntegerWeights w = WeightsOf(args, depth(), g_.out_channels);
    Pack(w, args);
    const bool is_signed = IsSignedByte(args.in(0));
    const int32_t zero = ZeroOf(args, 2, 0);
    const int64_t channels = g_.in_channels;
    Multiply(w, g_.batch * g_.out_pixels(), args, args.Out<int32_t>(0),
             [&](int64_t pixel, int16_t* to) {
               std::fill_n(to, 2 * w.pairs(), int16_t{0});
               ForTaps(g_, pixel, [&](int64_t at, int64_t tap) {
                 HWY_DYNAMIC_DISPATCH(WidenRow)
                 (args.inputs[0] + at * channels, is_signed, channels, zero, to + tap * channels);
               });
             });
    return Status();
  }

 private:
  int64_t depth() const { return g_.taps() * g_.in_channels; }
  const WindowGeometry g_;
};

class FastMatMulInteger : public CpuKernel {
 public:
  FastMatMulInteger(const NodeView& node, MatMulGeometry g, int64_t rows_of_a)
      : CpuKernel(node), g_(std::move(g)), rows_of_a_(rows_of_a) {}
  std::string description() const override { return "vectors of pairs"; }
  int64_t scratch_bytes() const override { return PackedBytes(g_.k, g_.n); }

  Status Run(const Args& args) const override {
    const bool is_signed = IsSignedByte(args.in(0));
    int64_t packed = -1;
    for (int64_t z = 0; z < g_.batch && !args.threads.ended(); ++z) {
      IntegerWeights w = WeightsOf(args, g_.k, g_.n);
      const int64_t b = g_.b_offset(z);
      w.data += b;
      w.row = g_.b_row;
      w.column = g_.b_col;
      if (b != packed) Pack(w, args);
      packed = b;
      const std::byte* a = args.inputs[0] + g_.a_offset(z);
      Multiply(w, g_.m, args, args.Out<int32_t>(0) + z * g_.m * g_.n,
               [&](int64_t row, int16_t* to) {
                 HWY_DYNAMIC_DISPATCH(WidenRow)
                 (a + row * g_.a_row, is_signed, g_.k, ZeroOf(args, 2, row % rows_of_a_), to);
                 if (g_.k % 2 != 0) to[g_.k] = 0;
               });
    }
    return Status();
  }

 private:
  const MatMulGeometry g_;
  const int64_t rows_of_a_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastConvInteger(const NodeView& node) {
  if (!TakesBytes(node)) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvIntegerAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(AsConv(attrs), node));
  if (g.groups != 1 || g.taps() * g.in_channels == 0 || g.batch * g.out_pixels() < kFewestRows) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastConvInteger>(node, g));
}

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulInteger(const NodeView& node) {
  if (!TakesBytes(node)) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulIntegerAttrs>(*node.attrs));
  const Shape a = node.inputs[0].desc().shape;
  MatMulGeometry g = GeometryOf(AsMatMul(attrs), a, node.inputs[1].desc().shape);
  if (g.a_col != 1 || g.m < kFewestRows || g.k == 0) return nullptr;
  const int64_t rows = a.rank() < 2 ? 1 : a[a.rank() - 2];
  return std::unique_ptr<CpuKernel>(std::make_unique<FastMatMulInteger>(node, std::move(g), rows));
}

}  // namespace oncilla::cpu
#endif
