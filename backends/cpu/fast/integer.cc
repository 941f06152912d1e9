// Fast ConvInteger and MatMulInteger of bytes with sums in i32: matrix products on vectors of pairs
// of 16-bit integers, which instructions multiply and add in one step.
//
// Weights are packed in panels of columns, two rows of them side by side: once, where they are
// constants, else in each run. Rows of the other operand (the windows of output pixels, of a
// convolution) are widened a few at a time, less their zero point. The zero points of weights are
// left to the end: the sum of x * (w - zero) is that of x * w less zero times the sum of x. All
// sums wrap around, so the order in which they are added makes no difference.
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

  int16_t at(int64_t i) const {
    return is_signed ? int16_t{reinterpret_cast<const int8_t*>(data)[i]}
                     : int16_t{reinterpret_cast<const uint8_t*>(data)[i]};
  }
  int64_t pairs() const { return (k + 1) / 2; }
};

// Widened rows times packed weights.
struct IntegerTile {
  const int16_t* x = nullptr;  // rows of 2 * pairs
  int64_t rows = 0, pairs = 0, n = 0;
  const int16_t* weights = nullptr;
  const int32_t* bias = nullptr;  // or null
  // Zero points of the columns, and the sums of the rows they are multiplied by; or null.
  const int32_t *zeros = nullptr, *row_sums = nullptr;
  int32_t* y = nullptr;  // rows of n
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
          *to++ = column < w.n && i < w.k ? w.at(i * w.row + column * w.column) : int16_t{0};
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
      auto sum = static_cast<uint32_t>(sums[r][c]);
      if (t.bias != nullptr) sum += static_cast<uint32_t>(t.bias[first + c]);
      if (t.zeros != nullptr) {
        sum -=
            static_cast<uint32_t>(t.zeros[first + c]) * static_cast<uint32_t>(t.row_sums[row + r]);
      }
      y[c] = static_cast<int32_t>(sum);
    }
  }
}

// Rows that share a panel's weights while these are in registers, as many as there are registers
// for.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

// Panels [first, last). Panel by panel, so that one stays in the cache while all rows pass.
void MultiplyTile(const IntegerTile& t, int64_t first, int64_t last) {
  for (int64_t panel = first; panel < last; ++panel) {
    int64_t row = 0;
    for (; row + kTileRows <= t.rows; row += kTileRows) PanelRows<kTileRows>(t, row, panel);
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

// Fewer rows than these do not pay for packing weights that are no constants.
constexpr int64_t kFewestRows = 4;

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

bool TakesBytes(const NodeView& node) {
  return IsByte(node.inputs[0].dtype) && IsByte(node.inputs[1].dtype) &&
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

int64_t PanelsOf(int64_t n) {
  const int64_t width = HWY_DYNAMIC_DISPATCH(PanelWidth)();
  return (n + width - 1) / width;
}

// Weights k x n, dense.
IntegerWeights DenseWeights(const TensorDesc& desc, const std::byte* data, int64_t k, int64_t n) {
  IntegerWeights w;
  w.data = data;
  w.is_signed = IsSignedByte(desc);
  w.k = k;
  w.n = n;
  w.row = n;
  w.column = 1;
  return w;
}

void Pack(const IntegerWeights& w, const Args& args) {
  auto* packed = reinterpret_cast<int16_t*>(args.scratch);
  ParallelFor(args.threads, PanelsOf(w.n), GrainOf(w.k * kWidestPanel * 4, 64),
              [&](int64_t begin, int64_t end) {
                HWY_DYNAMIC_DISPATCH(PackPanels)(w, begin, end, packed);
              });
}

// What PackPanels makes of constant weights.
Packing PairPacking(const IntegerWeights& w, std::string_view order) {
  return {StrCat("pairs", HWY_DYNAMIC_DISPATCH(PanelWidth)(), order), PackedBytes(w.k, w.n),
          [w](const Tensor& constant, std::span<std::byte> to) {
            IntegerWeights given = w;
            given.data = constant.bytes().data();
            HWY_DYNAMIC_DISPATCH(PackPanels)
            (given, 0, PanelsOf(w.n), reinterpret_cast<int16_t*>(to.data()));
            return Status();
          }};
}

// The zero points of n columns; empty where all of them are 0.
std::vector<int32_t> ColumnZeros(const Args& args, int64_t n) {
  std::vector<int32_t> zeros;
  if (!args.has_input(3)) return zeros;
  zeros.resize(static_cast<size_t>(n));
  bool any = false;
  for (int64_t c = 0; c < n; ++c) {
    zeros[static_cast<size_t>(c)] = ZeroOf(args, 3, c);
    any |= zeros[static_cast<size_t>(c)] != 0;
  }
  if (!any) zeros.clear();
  return zeros;
}

// Wraps around.
int32_t SumOf(const int16_t* x, int64_t n) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>(int32_t{x[i]});
  return static_cast<int32_t>(sum);
}

// So many widened integers stay in a core's second cache beside a panel of weights.
constexpr int64_t kWidenedAtOnce = 1 << 17;

// Rows of the product of packed weights, `widen(row, to)` being what fills one of 2 * pairs
// integers. Each weight should be read by one core only where there are few rows, and for many of
// them at a time where there are many.
template <class F>
void Multiply(const int16_t* packed, int64_t k, int64_t n, int64_t rows, const Args& args,
              int32_t* y, F&& widen) {
  const int64_t width = (k + 1) / 2 * 2;
  const std::vector<int32_t> zeros = ColumnZeros(args, n);
  const auto widen_some = [&](int64_t first, int64_t last, int16_t* to, int32_t* sums) {
    for (int64_t row = first; row < last; ++row, to += width) {
      widen(row, to);
      if (!zeros.empty()) *sums++ = SumOf(to, width);
    }
  };
  IntegerTile tile;
  tile.pairs = width / 2;
  tile.n = n;
  tile.weights = packed;
  tile.bias = args.has_input(4) ? args.In<int32_t>(4) : nullptr;
  if (!zeros.empty()) tile.zeros = zeros.data();
  const int64_t panels = PanelsOf(n);
  const int64_t grain = std::clamp<int64_t>(kWidenedAtOnce / width, 16, 96);
  if (rows <= 2 * grain) {
    std::vector<int16_t> x(static_cast<size_t>(rows * width));
    std::vector<int32_t> sums(static_cast<size_t>(rows));
    ParallelFor(args.threads, rows, 8, [&](int64_t begin, int64_t end) {
      widen_some(begin, end, x.data() + begin * width, sums.data() + begin);
    });
    tile.x = x.data();
    tile.row_sums = sums.data();
    tile.rows = rows;
    tile.y = y;
    ParallelFor(args.threads, panels, GrainOf(rows * width * kWidestPanel, (panels + 7) / 8),
                [&](int64_t begin, int64_t end) {
                  HWY_DYNAMIC_DISPATCH(MultiplyTile)(tile, begin, end);
                });
    return;
  }
  ParallelFor(args.threads, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> x(static_cast<size_t>((end - begin) * width));
    std::vector<int32_t> sums(static_cast<size_t>(end - begin));
    widen_some(begin, end, x.data(), sums.data());
    IntegerTile part = tile;
    part.x = x.data();
    part.row_sums = sums.data();
    part.rows = end - begin;
    part.y = y + begin * n;
    HWY_DYNAMIC_DISPATCH(MultiplyTile)(part, 0, panels);
  });
}

class FastConvInteger : public CpuKernel {
 public:
  FastConvInteger(const NodeView& node, const WindowGeometry& g, bool packed)
      : CpuKernel(node), g_(g), packed_(packed) {}
  std::string description() const override {
    return StrCat("vectors of pairs", packed_ ? ", packed" : "");
  }
  int64_t scratch_bytes() const override {
    return packed_ ? 0 : PackedBytes(depth(), g_.out_channels);
  }

  Status Run(const Args& args) const override {
    if (!packed_) Pack(DenseWeights(args.in(1), args.inputs[1], depth(), g_.out_channels), args);
    const auto* weights = reinterpret_cast<const int16_t*>(packed_ ? args.inputs[1] : args.scratch);
    const bool is_signed = IsSignedByte(args.in(0));
    const int32_t zero = ZeroOf(args, 2, 0);
    const int64_t channels = g_.in_channels;
    const int64_t width = (depth() + 1) / 2 * 2;
    Multiply(weights, depth(), g_.out_channels, g_.batch * g_.out_pixels(), args,
             args.Out<int32_t>(0), [&](int64_t pixel, int16_t* to) {
               std::fill_n(to, width, int16_t{0});
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
  const bool packed_;
};

class FastMatMulInteger : public CpuKernel {
 public:
  FastMatMulInteger(const NodeView& node, MatMulGeometry g, int64_t rows_of_a, bool packed)
      : CpuKernel(node), g_(std::move(g)), rows_of_a_(rows_of_a), packed_(packed) {}
  std::string description() const override {
    return StrCat("vectors of pairs", packed_ ? ", packed" : "");
  }
  int64_t scratch_bytes() const override { return packed_ ? 0 : PackedBytes(g_.k, g_.n); }

  Status Run(const Args& args) const override {
    const bool is_signed = IsSignedByte(args.in(0));
    const auto* weights = reinterpret_cast<const int16_t*>(packed_ ? args.inputs[1] : args.scratch);
    int64_t held = -1;
    for (int64_t z = 0; z < g_.batch && !args.threads.ended(); ++z) {
      if (const int64_t b = g_.b_offset(z); !packed_ && b != held) {
        IntegerWeights w = DenseWeights(args.in(1), args.inputs[1] + b, g_.k, g_.n);
        w.row = g_.b_row;
        w.column = g_.b_col;
        Pack(w, args);
        held = b;
      }
      const std::byte* a = args.inputs[0] + g_.a_offset(z);
      Multiply(weights, g_.k, g_.n, g_.m, args, args.Out<int32_t>(0) + z * g_.m * g_.n,
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
  const bool packed_;
};

// Whether constant weights are packed must follow from attributes, types and the constant alone.
bool PacksFilter(const NodeView& node, const ConvIntegerAttrs& attrs) {
  const Fact& filter = node.inputs[1];
  return filter.constant && attrs.groups == 1 && IsByte(node.inputs[0].dtype) &&
         IsByte(filter.dtype) && node.outputs[0].dtype == DType::kI32 &&
         filter.desc().elements() > 0;
}

// Rows of a that do not lie side by side are left to plain code.
bool PacksMatrix(const NodeView& node, const MatMulIntegerAttrs& attrs) {
  const Fact& b = node.inputs[1];
  return b.constant && b.desc().shape.rank() == 2 && b.desc().elements() > 0 &&
         !attrs.transpose_a && IsByte(node.inputs[0].dtype) && IsByte(b.dtype) &&
         node.outputs[0].dtype == DType::kI32;
}

}  // namespace

Result<Packing> ConvIntegerPacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvIntegerAttrs>(*node.attrs));
  if (input != 1 || !PacksFilter(node, attrs)) return Packing{"dense", desc.bytes(), nullptr};
  const int64_t n = desc.shape.back();
  return PairPacking(DenseWeights(desc, nullptr, desc.elements() / n, n), "");
}

Result<Packing> MatMulIntegerPacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulIntegerAttrs>(*node.attrs));
  if (input != 1 || !PacksMatrix(node, attrs)) return Packing{"dense", desc.bytes(), nullptr};
  const bool t = attrs.transpose_b;
  IntegerWeights w = DenseWeights(desc, nullptr, desc.shape[t ? 1 : 0], desc.shape[t ? 0 : 1]);
  if (t) w.row = 1, w.column = w.k;
  return PairPacking(w, t ? "t" : "");
}

Result<std::unique_ptr<CpuKernel>> MakeFastConvInteger(const NodeView& node) {
  if (!TakesBytes(node)) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvIntegerAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(AsConv(attrs), node));
  const bool packed = PacksFilter(node, attrs);
  if (g.groups != 1) return MakeFastIntegerDepthwise(node, g);
  if (!packed && (g.taps() * g.in_channels == 0 || g.batch * g.out_pixels() < kFewestRows)) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastConvInteger>(node, g, packed));
}

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulInteger(const NodeView& node) {
  if (!TakesBytes(node)) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulIntegerAttrs>(*node.attrs));
  const Shape a = node.inputs[0].desc().shape;
  MatMulGeometry g = GeometryOf(AsMatMul(attrs), a, node.inputs[1].desc().shape);
  const bool packed = PacksMatrix(node, attrs);
  if (!packed && (g.a_col != 1 || g.m < kFewestRows || g.k == 0)) return nullptr;
  const int64_t rows = a.rank() < 2 ? 1 : a[a.rank() - 2];
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastMatMulInteger>(node, std::move(g), rows, packed));
}

}  // namespace oncilla::cpu
#endif
