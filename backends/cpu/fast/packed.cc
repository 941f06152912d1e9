// Fast MatMulPacked of floats with constant weights. The weights are packed once more: the bytes of
// a panel of columns are interleaved, so that a vector holds the same row of several columns. For
// few rows, weights are unpacked in registers and multiplied there, which is as fast as memory
// delivers them; for more rows, each thread unpacks a panel to floats and the usual product takes
// it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/packed.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/math/packed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"

#ifndef ONCILLA_FAST_PACKED_TYPES
#define ONCILLA_FAST_PACKED_TYPES
namespace oncilla::cpu {

// `width` columns of weights. Byte i of all columns stands at codes + i * width and holds 8 / bits
// numbers of each column; scales and zeros of block b stand at b * width.
struct PackedPanel {
  int64_t bits = 4, depth = 0, block = 0, blocks = 0, width = 0;
  const uint8_t* codes = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;  // null: all are 2^(bits - 1)
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

using Ints = hn::Rebind<int32_t, Floats>;

// The scales and zeros of one block for `kVectors` vectors of columns.
template <int kVectors>
struct BlockScales {
  Vector scales[kVectors], zeros[kVectors];
  BlockScales(const PackedPanel& p, int64_t b) {
    constexpr Floats d;
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = b * p.width + v * kLanes;
      scales[v] = hn::LoadU(d, p.scales + at);
      zeros[v] = p.zeros != nullptr ? hn::LoadU(d, p.zeros + at)
                                    : hn::Set(d, static_cast<float>(1 << (p.bits - 1)));
    }
  }
  // Number j of each byte in `bytes`, dequantised, for the columns of vector v.
  template <int kBits>
  Vector Weights(hn::Vec<Ints> bytes, int j, int v) const {
    constexpr Floats d;
    constexpr Ints ints;
    if constexpr (kBits != 8) {
      bytes = hn::And(hn::ShiftRightSame(bytes, j * kBits), hn::Set(ints, (1 << kBits) - 1));
    }
    return hn::Mul(hn::Sub(hn::ConvertTo(d, bytes), zeros[v]), scales[v]);
  }
};

HWY_INLINE hn::Vec<Ints> LoadCodes(const uint8_t* from) {
  constexpr hn::Rebind<uint8_t, Floats> bytes;
  return hn::PromoteTo(Ints(), hn::LoadU(bytes, from));
}

// The products of kRows rows. Sums are kept in kSets independent sets, so that an addition does not
// wait for the one before it.
template <int kBits, int kRows, int kSets>
void MultiplyRows(const PackedPanel& p, const float* x, int64_t x_step, float* y) {
  constexpr Floats d;
  constexpr int kVectors = 2, kPer = 8 / kBits;
  Vector sums[kSets][kRows][kVectors];
  for (auto& set : sums) {
    for (auto& row : set) row[0] = row[1] = hn::Zero(d);
  }
  for (int64_t b = 0; b < p.blocks; ++b) {
    const BlockScales<kVectors> block(p, b);
    const int64_t first = b * p.block, end = std::min(first + p.block, p.depth);
    const uint8_t* codes = p.codes + first / kPer * p.width;
    // Takes one byte of each column; its first `count` numbers are within the depth.
    const auto step = [&](int64_t k, int count, Vector(&set)[kRows][kVectors]) HWY_ATTR {
      ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
        const auto bytes = LoadCodes(codes + (k - first) / kPer * p.width + v * kLanes);
        for (int j = 0; j < count; ++j) {
          const Vector weights = block.template Weights<kBits>(bytes, j, v);
          ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
            set[r][v] = hn::MulAdd(hn::Set(d, x[r * x_step + k + j]), weights, set[r][v]);
          }
        }
      }
    };
    int64_t k = first;
    for (; k + kSets * kPer <= end; k += kSets * kPer) {
      ONCILLA_UNROLL for (int s = 0; s < kSets; ++s) step(k + s * kPer, kPer, sums[s]);
    }
    for (; k < end; k += kPer) step(k, static_cast<int>(std::min<int64_t>(kPer, end - k)), sums[0]);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      Vector sum = sums[0][r][v];
      for (int s = 1; s < kSets; ++s) sum = hn::Add(sum, sums[s][r][v]);
      hn::StoreU(sum, d, y + r * p.width + v * kLanes);
    }
  }
}

// y[rows][width], all columns of the panel.
template <int kBits>
void MultiplyPanelOf(const PackedPanel& p, const float* x, int64_t rows, float* y) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    MultiplyRows<kBits, 4, 1>(p, x + row * p.depth, p.depth, y + row * p.width);
  }
  for (; row < rows; ++row) {
    MultiplyRows<kBits, 1, 4>(p, x + row * p.depth, p.depth, y + row * p.width);
  }
}

// to[depth][width], as the usual product takes it.
template <int kBits>
void UnpackPanelOf(const PackedPanel& p, float* to) {
  constexpr Floats d;
  constexpr int kVectors = 2, kPer = 8 / kBits;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const BlockScales<kVectors> block(p, b);
    const int64_t first = b * p.block, end = std::min(first + p.block, p.depth);
    for (int64_t k = first; k < end; k += kPer) {
      const int count = static_cast<int>(std::min<int64_t>(kPer, end - k));
      for (int v = 0; v < kVectors; ++v) {
        const auto bytes = LoadCodes(p.codes + k / kPer * p.width + v * kLanes);
        for (int j = 0; j < count; ++j) {
          hn::StoreU(block.template Weights<kBits>(bytes, j, v), d,
                     to + (k + j) * p.width + v * kLanes);
        }
      }
    }
  }
}

void MultiplyPanel(const PackedPanel& p, const float* x, int64_t rows, float* y) {
  if (p.bits == 8) return MultiplyPanelOf<8>(p, x, rows, y);
  if (p.bits == 4) return MultiplyPanelOf<4>(p, x, rows, y);
  MultiplyPanelOf<2>(p, x, rows, y);
}
void UnpackPanel(const PackedPanel& p, float* to) {
  if (p.bits == 8) return UnpackPanelOf<8>(p, to);
  if (p.bits == 4) return UnpackPanelOf<4>(p, to);
  UnpackPanelOf<2>(p, to);
}
int64_t TwoVectors() { return 2 * kLanes; }

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(MultiplyPanel);
HWY_EXPORT(UnpackPanel);
HWY_EXPORT(TwoVectors);

// With more rows than this, unpacking a panel to memory pays.
constexpr int64_t kFewRows = 8;

// Columns, blocks and bytes of a block of the weights.
struct PackedSizes {
  int64_t columns = 0, blocks = 0, block_bytes = 0;
  explicit PackedSizes(const TensorDesc& weights)
      : columns(weights.shape[0]), blocks(weights.shape[1]), block_bytes(weights.shape[2]) {}
  int64_t bytes() const { return blocks * block_bytes; }
  int64_t panels() const { return (columns + PanelColumns() - 1) / PanelColumns(); }
};

// Decided by attributes, types and constants alone, as packings are. Nodes whose rows choose their
// matrix stay with plain code.
bool IsTaken(const NodeView& node) {
  const auto constant = [&](size_t i) { return !node.has_input(i) || node.inputs[i].constant; };
  return node.inputs[0].dtype == DType::kF32 && !node.has_input(4) && constant(1) && constant(2) &&
         constant(3) && node.inputs[1].desc().elements() > 0 &&
         PanelColumns() == HWY_DYNAMIC_DISPATCH(TwoVectors)();
}

class FastMatMulPacked : public CpuKernel {
 public:
  FastMatMulPacked(const NodeView& node, const MatMulPackedAttrs& attrs, int64_t rows)
      : CpuKernel(node), attrs_(attrs), sizes_(node.inputs[1].desc()), rows_(rows) {}
  std::string description() const override {
    return StrCat(attrs_.bits, " bits, ", rows_ <= kFewRows ? "in registers" : "unpacked for gemm ",
                  rows_ <= kFewRows ? "" : TileName());
  }

  Status Run(const Args& args) const override {
    const int64_t width = PanelColumns();
    const int64_t sums = SaturatingMul(attrs_.depth, width * (rows_ + 4));
    ParallelFor(args.threads, sizes_.panels(), GrainOf(sums, 64), [&](int64_t i, int64_t end) {
      std::vector<float> buffer(
          static_cast<size_t>(width * (rows_ <= kFewRows ? rows_ : attrs_.depth)));
      for (; i < end && !args.threads.ended(); ++i) {
        const PackedPanel panel = PanelOf(args, i);
        const int64_t first = i * width, count = std::min(width, sizes_.columns - first);
        if (rows_ <= kFewRows) {
          HWY_DYNAMIC_DISPATCH(MultiplyPanel)(panel, args.In<float>(0), rows_, buffer.data());
          for (int64_t row = 0; row < rows_; ++row) {
            std::copy_n(buffer.data() + row * width, count,
                        args.Out<float>(0) + row * sizes_.columns + first);
          }
        } else {
          HWY_DYNAMIC_DISPATCH(UnpackPanel)(panel, buffer.data());
          MultiplyUnpacked(args, buffer.data(), first, count);
        }
      }
    });
    return Status();
  }

 private:
  PackedPanel PanelOf(const Args& args, int64_t i) const {
    PackedPanel p;
    p.bits = attrs_.bits;
    p.depth = attrs_.depth;
    p.block = attrs_.block;
    p.blocks = sizes_.blocks;
    p.width = PanelColumns();
    p.codes = args.In<uint8_t>(1) + i * p.width * sizes_.bytes();
    p.scales = args.In<float>(2) + i * p.width * p.blocks;
    if (args.has_input(3)) p.zeros = args.In<float>(3) + i * p.width * p.blocks;
    return p;
  }

  void MultiplyUnpacked(const Args& args, const float* panel, int64_t first, int64_t count) const {
    static constexpr int64_t kOneTap = 0;
    Product<float> p;
    p.line_rows = rows_;
    p.a = args.In<float>(0);
    p.row_step = attrs_.depth;
    p.taps = &kOneTap;
    p.run = attrs_.depth;
    p.b = panel;
    p.columns = count;
    p.c = args.Out<float>(0) + first;
    p.c_step = sizes_.columns;
    RunTask(p, Split{}, 0);
  }

  const MatMulPackedAttrs attrs_;
  const PackedSizes sizes_;
  const int64_t rows_;
};

// Writes rows of `steps` numbers, one row per column, as panels: [panel][step][column]. Missing
// columns of the last panel are zero.
template <class T, class F>
void FillPanels(int64_t columns, int64_t steps, F&& at, std::span<std::byte> to) {
  const int64_t width = PanelColumns();
  T* out = reinterpret_cast<T*>(to.data());
  for (int64_t first = 0; first < columns; first += width) {
    for (int64_t step = 0; step < steps; ++step) {
      for (int64_t c = first; c < first + width; ++c) *out++ = c < columns ? at(c, step) : T{0};
    }
  }
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulPacked(const NodeView& node) {
  if (!IsTaken(node) || node.outputs[0].desc().elements() == 0) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulPackedAttrs>(*node.attrs));
  const int64_t rows = node.inputs[0].desc().elements() / attrs.depth;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastMatMulPacked>(node, attrs, rows));
}

Result<CpuPacking> MatMulPackedPacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  if (input == 0 || !IsTaken(node)) return CpuPacking{"dense", desc.bytes(), nullptr};
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulPackedAttrs>(*node.attrs));
  const PackedSizes sizes(node.inputs[1].desc());
  const int64_t columns = sizes.columns, blocks = sizes.blocks, bits = attrs.bits;
  const int64_t all = sizes.panels() * PanelColumns();
  const std::string name = StrCat("panels", PanelColumns());
  if (input == 1) {
    const int64_t bytes = sizes.bytes();
    return CpuPacking{
        name, SaturatingMul(all, bytes),
        [columns, bytes](const Threads&, const Tensor& constant, std::span<std::byte> to) {
          const auto from = constant.As<uint8_t>();
          FillPanels<uint8_t>(
              columns, bytes, [&](int64_t c, int64_t i) { return from[c * bytes + i]; }, to);
          return Status();
        }};
  }
  const int64_t bytes = SaturatingMul(all, SaturatingMul(blocks, int64_t{sizeof(float)}));
  if (desc.dtype == DType::kF32) {
    return CpuPacking{
        name, bytes,
        [columns, blocks](const Threads&, const Tensor& constant, std::span<std::byte> to) {
          const auto from = constant.As<float>();
          FillPanels<float>(
              columns, blocks, [&](int64_t c, int64_t b) { return from[c * blocks + b]; }, to);
          return Status();
        }};
  }
  return CpuPacking{
      StrCat(name, " of ", bits, " bits"), bytes,
      [columns, blocks, bits](const Threads&, const Tensor& constant, std::span<std::byte> to) {
        const auto from = constant.As<uint8_t>();
        const int64_t row = (blocks * bits + 7) / 8;
        FillPanels<float>(
            columns, blocks,
            [&](int64_t c, int64_t b) {
              const int code = from[c * row + b * bits / 8] >> (b * bits % 8);
              return static_cast<float>(code & ((1 << bits) - 1));
            },
            to);
        return Status();
      }};
}

}  // namespace oncilla::cpu
#endif
