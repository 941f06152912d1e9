// Fast MatMulPacked of floats: columns of weights are unpacked on vectors, each when it is needed,
// by each thread into a buffer of its own. Few rows are multiplied by dot products, as fast as
// memory gives the packed weights; more rows as packed products, a panel of columns at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/packed.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/math/packed.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"

#ifndef ONCILLA_FAST_PACKED_TYPES
#define ONCILLA_FAST_PACKED_TYPES
namespace oncilla::cpu {

// One column of weights as it is stored (engine/ops/math/packed.h).
struct PackedColumn {
  int64_t bits = 4, block = 0, blocks = 0;
  const uint8_t* weights = nullptr;
  const float* scales = nullptr;
  const uint8_t* zeros = nullptr;     // packed; or null
  const float* real_zeros = nullptr;  // or null; without both, zeros are 2^(bits - 1)

  float zero(int64_t i) const {
    if (real_zeros != nullptr) return real_zeros[i];
    if (zeros == nullptr) return static_cast<float>(1 << (bits - 1));
    const int64_t at = i * bits;
    return static_cast<float>(zeros[at / 8] >> (at % 8) & ((1 << bits) - 1));
  }
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The numbers of each byte, n in all, one a byte.
HWY_INLINE void ExpandCodes(const uint8_t* from, int64_t bits, int64_t n, uint8_t* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (bits == 4) {
    constexpr hn::CappedTag<uint8_t, 16> d;
    const auto low = hn::Set(d, uint8_t{15});
    for (const int64_t step = 2 * hn::Lanes(d); i + step <= n; i += step) {
      const auto both = hn::LoadU(d, from + i / 2);
      hn::StoreInterleaved2(hn::And(both, low), hn::And(hn::ShiftRight<4>(both), low), d, to + i);
    }
  }
#endif
  const int mask = (1 << bits) - 1;
  for (; i < n; ++i) to[i] = static_cast<uint8_t>(from[i * bits / 8] >> (i * bits % 8) & mask);
}

// to[i] = (codes[i] - zero) * scale.
HWY_INLINE void ScaleCodes(const uint8_t* codes, int64_t n, float zero, float scale, float* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Floats d;
  constexpr hn::Rebind<int32_t, Floats> ints;
  constexpr hn::Rebind<uint8_t, Floats> bytes;
  const auto zeros = hn::Set(d, zero), scales = hn::Set(d, scale);
  for (; i + kLanes <= n; i += kLanes) {
    const auto q = hn::ConvertTo(d, hn::PromoteTo(ints, hn::LoadU(bytes, codes + i)));
    hn::StoreU(hn::Mul(hn::Sub(q, zeros), scales), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = (static_cast<float>(codes[i]) - zero) * scale;
}

// All blocks of a column; `codes` is scratch of a byte a weight.
void UnpackColumn(const PackedColumn& c, uint8_t* codes, float* to) {
  const uint8_t* given = c.weights;
  if (c.bits != 8) {
    ExpandCodes(c.weights, c.bits, c.blocks * c.block, codes);
    given = codes;
  }
  for (int64_t b = 0; b < c.blocks; ++b) {
    ScaleCodes(given + b * c.block, c.block, c.zero(b), c.scales[b], to + b * c.block);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(UnpackColumn);

// So few rows read a column as often as unpacking it writes it.
constexpr int64_t kFewRows = 4;

class FastMatMulPacked : public CpuKernel {
 public:
  FastMatMulPacked(const NodeView& node, const MatMulPackedAttrs& attrs, int64_t rows)
      : CpuKernel(node), attrs_(attrs), rows_(rows) {
    const Shape weights = node.inputs[1].desc().shape;
    columns_ = weights[0];
    blocks_ = weights[1];
    bytes_ = blocks_ * weights[2];
  }
  std::string description() const override {
    return StrCat("unpacks ", attrs_.bits, " bits, ", rows_ <= kFewRows ? "dot products" : "gemm ",
                  rows_ <= kFewRows ? "" : TileName());
  }

  Status Run(const Args& args) const override {
    const int64_t width = rows_ <= kFewRows ? 1 : PanelColumns();
    const int64_t panels = (columns_ + width - 1) / width;
    const int64_t sums = SaturatingMul(attrs_.depth, width * (rows_ + 1));
    ParallelFor(args.threads, panels, GrainOf(sums, 64), [&](int64_t begin, int64_t end) {
      Buffers buffers;
      buffers.codes.resize(static_cast<size_t>(padded()));
      buffers.weights.resize(static_cast<size_t>(padded() * width));
      for (int64_t i = begin; i < end && !args.threads.ended(); ++i) {
        const int64_t first = i * width, count = std::min(width, columns_ - first);
        for (int64_t c = 0; c < count; ++c) {
          HWY_DYNAMIC_DISPATCH(UnpackColumn)
          (Column(args, first + c), buffers.codes.data(), buffers.weights.data() + c * padded());
        }
        if (width == 1) {
          MultiplyColumn(args, first, buffers.weights.data());
        } else {
          MultiplyPanel(args, first, count, buffers);
        }
      }
    });
    return Status();
  }

 private:
  struct Buffers {
    std::vector<uint8_t> codes;
    std::vector<float> weights, panel;
  };
  // Weights of a column, those that fill up its last block with them.
  int64_t padded() const { return blocks_ * attrs_.block; }

  PackedColumn Column(const Args& args, int64_t column) const {
    PackedColumn c;
    c.bits = attrs_.bits;
    c.block = attrs_.block;
    c.blocks = blocks_;
    c.weights = args.In<uint8_t>(1) + column * bytes_;
    c.scales = args.In<float>(2) + column * blocks_;
    if (args.has_input(3) && args.in(3).dtype == DType::kU8) {
      c.zeros = args.In<uint8_t>(3) + column * ((blocks_ * attrs_.bits + 7) / 8);
    } else if (args.has_input(3)) {
      c.real_zeros = args.In<float>(3) + column * blocks_;
    }
    return c;
  }

  void MultiplyColumn(const Args& args, int64_t column, const float* weights) const {
    for (int64_t row = 0; row < rows_; ++row) {
      args.Out<float>(0)[row * columns_ + column] =
          Dot(args.In<float>(0) + row * attrs_.depth, weights, attrs_.depth);
    }
  }

  void MultiplyPanel(const Args& args, int64_t first, int64_t count, Buffers& buffers) const {
    static constexpr int64_t kOneTap = 0;
    buffers.panel.resize(static_cast<size_t>(PackedElements(attrs_.depth, count)));
    Pack(buffers.weights.data(), 1, padded(), attrs_.depth, count, buffers.panel.data());
    Product<float> p;
    p.line_rows = rows_;
    p.a = args.In<float>(0);
    p.row_step = attrs_.depth;
    p.taps = &kOneTap;
    p.run = attrs_.depth;
    p.b = buffers.panel.data();
    p.columns = count;
    p.c = args.Out<float>(0) + first;
    p.c_step = columns_;
    RunTask(p, Split{}, 0);
  }

  const MatMulPackedAttrs attrs_;
  const int64_t rows_;
  int64_t columns_ = 0, blocks_ = 0, bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulPacked(const NodeView& node) {
  const TensorDesc x = node.inputs[0].desc();
  // Rows that choose their matrix are left to plain code.
  if (x.dtype != DType::kF32 || node.has_input(4) || node.outputs[0].desc().elements() == 0) {
    return nullptr;
  }
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulPackedAttrs>(*node.attrs));
  const int64_t rows = x.elements() / attrs.depth;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastMatMulPacked>(node, attrs, rows));
}

}  // namespace oncilla::cpu
#endif
