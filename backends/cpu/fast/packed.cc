// Fast MatMulPacked of floats with constant weights. The weights are packed once more: words of 32
// bits of a panel of columns are interleaved, so that a vector holds the same rows of several
// columns. For few rows, weights are unpacked in registers and multiplied there, as floats or,
// where the model permits it and the processor is faster so, as bytes; for more rows, each thread
// unpacks a panel to floats and the usual product takes it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/packed.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/math/packed.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/packed_panel.h"
#include "backends/cpu/fast/rounded_rows.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

using Ints = hn::Rebind<int32_t, Floats>;

constexpr int kVectors = 2;  // of columns in a panel

// The numbers in packed words minus 2^(bits - 1), which makes their magnitudes as small as
// possible.
template <int kBits>
class Codes {
 public:
  static constexpr int kPer = 32 / kBits;
  static constexpr int kMiddle = 1 << (kBits - 1);

  Codes() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    HWY_ALIGN float numbers[16];
    for (int i = 0; i < 16; ++i) {
      numbers[i] = static_cast<float>((i & ((1 << kBits) - 1)) - kMiddle);
    }
    table_ = hn::Load(Floats(), numbers);
#else
    table_ = hn::Set(Floats(), static_cast<float>(kMiddle));
#endif
  }
  static HWY_INLINE hn::Vec<Ints> LoadWords(const uint8_t* from) {
    return hn::LoadU(Ints(), reinterpret_cast<const int32_t*>(from));
  }
  // Number j of each word.
  HWY_INLINE Vector Number(hn::Vec<Ints> words, int j) const {
    constexpr Ints ints;
    if (j > 0) words = hn::ShiftRightSame(words, j * kBits);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    // The instruction reads the lowest four bits of each lane.
    if constexpr (kBits < 8) return Vector{_mm512_permutexvar_ps(words.raw, table_.raw)};
#endif
    words = hn::And(words, hn::Set(ints, (1 << kBits) - 1));
    if constexpr (kBits == 8) {
      return hn::ConvertTo(Floats(), hn::Sub(words, hn::Set(ints, kMiddle)));
    } else {
      return hn::Sub(hn::ConvertTo(Floats(), words), table_);
    }
  }

 private:
  Vector table_;  // by the lowest four bits, or kMiddle
};

// The zeros of one block for a vector of columns, minus 2^(bits - 1).
template <int kBits>
HWY_INLINE Vector CentredZeros(const PackedPanel& p, int64_t at) {
  constexpr Floats d;
  const Vector middle = hn::Set(d, static_cast<float>(Codes<kBits>::kMiddle));
  return p.zeros == nullptr ? hn::Zero(d) : hn::Sub(hn::LoadU(d, p.zeros + at), middle);
}

// Multiplies the first `count` numbers of one word of each column of a panel with x of each row,
// and adds the products to kSets sums in turn. It is inlined, so that the sums stay in registers.
template <int kBits, int kRows, int kSets>
HWY_INLINE void TakeWords(const Codes<kBits>& numbers, const uint8_t* words, const float* x,
                          int64_t x_step, int count, Vector (&parts)[kSets][kRows][kVectors]) {
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    const auto codes = Codes<kBits>::LoadWords(words + v * kLanes * kWordBytes);
    ONCILLA_UNROLL for (int j = 0; j < Codes<kBits>::kPer; ++j) {
      if (j >= count) break;
      const Vector number = numbers.Number(codes, j);
      ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
        Vector& part = parts[j % kSets][r][v];
        part = hn::MulAdd(hn::Set(Floats(), x[r * x_step + j]), number, part);
      }
    }
  }
}

// The products of kRows rows. For each block, sum(x * code) is computed first and then, once, scale
// * (sum(x * code) - zero * sum(x)); x_sums has sum(x) of each row's blocks, if the panel has
// zeros. There are several sums of a block, so that an addition does not wait for the one before
// it.
template <int kBits, int kRows>
void MultiplyRows(const PackedPanel& p, const float* x, const float* x_sums, float* y,
                  int64_t y_step) {
  constexpr Floats d;
  constexpr int kPer = Codes<kBits>::kPer;
  constexpr int kSets = 2;
  const Codes<kBits> numbers;
  Vector sums[kRows][kVectors];
  for (auto& row : sums) row[0] = row[1] = hn::Zero(d);
  const uint8_t* words = p.codes;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const int64_t first = b * p.block, end = std::min(first + p.block, p.depth);
    const uint8_t* const next = words + p.block_words * p.width * kWordBytes;
    Vector parts[kSets][kRows][kVectors];
    for (auto& part : parts) {
      for (auto& row : part) row[0] = row[1] = hn::Zero(d);
    }
    int64_t k = first;
    for (; k + kPer <= end; k += kPer, words += p.width * kWordBytes) {
      TakeWords<kBits>(numbers, words, x + k, p.depth, kPer, parts);
    }
    if (k < end) TakeWords<kBits>(numbers, words, x + k, p.depth, static_cast<int>(end - k), parts);
    words = next;
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t at = b * p.width + v * kLanes;
      const Vector scales = hn::LoadU(d, p.scales + at), zeros = CentredZeros<kBits>(p, at);
      ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
        Vector sum = parts[0][r][v];
        ONCILLA_UNROLL for (int s = 1; s < kSets; ++s) sum = hn::Add(sum, parts[s][r][v]);
        if (p.zeros != nullptr) {
          sum = hn::NegMulAdd(zeros, hn::Set(d, x_sums[r * p.blocks + b]), sum);
        }
        sums[r][v] = hn::MulAdd(scales, sum, sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, y + r * y_step + v * kLanes);
  }
}

// Multiplies all columns of the panel; the rows of y are y_step apart.
template <int kBits>
void MultiplyPanelOf(const PackedPanel& p, const float* x, const float* x_sums, int64_t rows,
                     float* y, int64_t y_step) {
  const auto sums_of = [&](int64_t row) {
    return x_sums == nullptr ? nullptr : x_sums + row * p.blocks;
  };
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    MultiplyRows<kBits, 4>(p, x + row * p.depth, sums_of(row), y + row * y_step, y_step);
  }
  for (; row < rows; ++row) {
    MultiplyRows<kBits, 1>(p, x + row * p.depth, sums_of(row), y + row * y_step, y_step);
  }
}

// Unpacks a panel to to[depth][width], the layout that the usual product reads.
template <int kBits>
void UnpackPanelOf(const PackedPanel& p, float* to) {
  constexpr Floats d;
  constexpr int kPer = Codes<kBits>::kPer;
  const Codes<kBits> numbers;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const int64_t first = b * p.block, end = std::min(first + p.block, p.depth);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = b * p.width + v * kLanes;
      const Vector scales = hn::LoadU(d, p.scales + at), zeros = CentredZeros<kBits>(p, at);
      for (int64_t k = first; k < end; k += kPer) {
        const int count = static_cast<int>(std::min<int64_t>(kPer, end - k));
        const int64_t word = b * p.block_words + (k - first) / kPer;
        const auto words =
            Codes<kBits>::LoadWords(p.codes + (word * p.width + v * kLanes) * kWordBytes);
        for (int j = 0; j < count; ++j) {
          const Vector weights = hn::Mul(hn::Sub(numbers.Number(words, j), zeros), scales);
          hn::StoreU(weights, d, to + (k + j) * p.width + v * kLanes);
        }
      }
    }
  }
}

void MultiplyPanel(const PackedPanel& p, const float* x, const float* x_sums, int64_t rows,
                   float* y, int64_t y_step) {
  if (p.bits == 8) return MultiplyPanelOf<8>(p, x, x_sums, rows, y, y_step);
  if (p.bits == 4) return MultiplyPanelOf<4>(p, x, x_sums, rows, y, y_step);
  MultiplyPanelOf<2>(p, x, x_sums, rows, y, y_step);
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
  int64_t block_words() const { return (block_bytes + kWordBytes - 1) / kWordBytes; }
  int64_t bytes() const { return SaturatingMul(blocks, block_words() * kWordBytes); }  // a column's
  int64_t panels() const { return (columns + PanelColumns() - 1) / PanelColumns(); }
};

// Depends on attributes, types and constants alone, as packings do. Plain code computes nodes whose
// rows choose their matrix.
bool IsTaken(const NodeView& node) {
  const auto constant = [&](size_t i) { return !node.has_input(i) || node.inputs[i].constant; };
  return node.inputs[0].dtype == DType::kF32 && !node.has_input(4) && constant(1) && constant(2) &&
         constant(3) && node.inputs[1].desc().elements() > 0 &&
         PanelColumns() == HWY_DYNAMIC_DISPATCH(TwoVectors)();
}

class FastMatMulPacked : public CpuKernel {
 public:
  FastMatMulPacked(const NodeView& node, const MatMulPackedAttrs& attrs, int64_t rows)
      : CpuKernel(node),
        attrs_(attrs),
        sizes_(node.inputs[1].desc()),
        rows_(rows),
        rounded_(attrs.round_rows && rows <= kFewRows
                     ? MultiplyRoundedFor(attrs.bits, PanelColumns())
                     : nullptr) {}
  std::string description() const override {
    if (rounded_ != nullptr) return StrCat(attrs_.bits, " bits by rows rounded to bytes");
    return StrCat(attrs_.bits, " bits, ", rows_ <= kFewRows ? "in registers" : "unpacked for gemm ",
                  rows_ <= kFewRows ? "" : TileName());
  }

  Status Run(const Args& args) const override {
    const int64_t width = PanelColumns();
    const int64_t sums = SaturatingMul(attrs_.depth, width * (rows_ + 4));
    if (rounded_ != nullptr && RunRounded(args, GrainOf(sums, 64))) return Status();
    if (rows_ <= kFewRows) {
      const bool has_zeros = args.has_input(3);
      const auto x_sums = has_zeros ? BlockSums(args.In<float>(0)) : std::vector<float>();
      ParallelFor(args.threads, sizes_.panels(), GrainOf(sums, 64), [&](int64_t i, int64_t end) {
        for (; i < end && !args.threads.ended(); ++i) {
          MultiplyFewRows(args, i, has_zeros ? x_sums.data() : nullptr);
        }
      });
    } else {
      ParallelFor(args.threads, sizes_.panels(), GrainOf(sums, 64), [&](int64_t i, int64_t end) {
        std::vector<float> buffer(static_cast<size_t>(width * attrs_.depth));
        for (; i < end && !args.threads.ended(); ++i) {
          HWY_DYNAMIC_DISPATCH(UnpackPanel)(PanelOf(args, i), buffer.data());
          MultiplyUnpacked(args, buffer.data(), i * width,
                           std::min(width, sizes_.columns - i * width));
        }
      });
    }
    return Status();
  }

 private:
  // The sum of each block of each row.
  std::vector<float> BlockSums(const float* x) const {
    std::vector<float> sums;
    sums.reserve(static_cast<size_t>(rows_ * sizes_.blocks));
    for (int64_t row = 0; row < rows_; ++row, x += attrs_.depth) {
      for (int64_t first = 0; first < attrs_.depth; first += attrs_.block) {
        const int64_t end = std::min(first + attrs_.block, attrs_.depth);
        sums.push_back(std::accumulate(x + first, x + end, 0.0F));
      }
    }
    return sums;
  }

  // False where a row has numbers that no bytes stand for; then nothing has been done.
  bool RunRounded(const Args& args, int64_t grain) const {
    const std::optional<RoundedRows> x = RoundRows(args.In<float>(0), rows_, PanelOf(args, 0));
    if (!x.has_value()) return false;
    ParallelFor(args.threads, sizes_.panels(), grain, [&](int64_t i, int64_t end) {
      for (; i < end && !args.threads.ended(); ++i) {
        IntoColumns(args, i,
                    [&](float* y, int64_t y_step) { rounded_(PanelOf(args, i), *x, y, y_step); });
      }
    });
    return true;
  }

  void MultiplyFewRows(const Args& args, int64_t panel, const float* x_sums) const {
    IntoColumns(args, panel, [&](float* y, int64_t y_step) {
      HWY_DYNAMIC_DISPATCH(MultiplyPanel)
      (PanelOf(args, panel), args.In<float>(0), x_sums, rows_, y, y_step);
    });
  }

  // Calls fn(y, distance of rows) for the columns of a panel. One that is not full goes through a
  // buffer.
  template <class F>
  void IntoColumns(const Args& args, int64_t panel, F&& fn) const {
    const int64_t width = PanelColumns(), first = panel * width;
    const int64_t count = std::min(width, sizes_.columns - first);
    float* y = args.Out<float>(0) + first;
    std::vector<float> buffer(count == width ? 0 : static_cast<size_t>(width * rows_));
    const bool whole = buffer.empty();
    fn(whole ? y : buffer.data(), whole ? sizes_.columns : width);
    for (int64_t row = 0; row < rows_ && !whole; ++row) {
      std::copy_n(buffer.data() + row * width, count, y + row * sizes_.columns);
    }
  }

  PackedPanel PanelOf(const Args& args, int64_t i) const {
    PackedPanel p;
    p.bits = attrs_.bits;
    p.depth = attrs_.depth;
    p.block = attrs_.block;
    p.blocks = sizes_.blocks;
    p.block_words = sizes_.block_words();
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
  const MultiplyRounded rounded_;  // null where rows are not rounded
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
    const int64_t block_bytes = sizes.block_bytes, words = sizes.block_words();
    return CpuPacking{StrCat("words of ", name), SaturatingMul(all, sizes.bytes()),
                      [=](const Threads&, const Tensor& constant, std::span<std::byte> to) {
                        const auto from = constant.As<uint8_t>();
                        const auto word = [&](int64_t c, int64_t i) {
                          const int64_t block = i / words, begin = i % words * kWordBytes;
                          const auto count = std::min<int64_t>(kWordBytes, block_bytes - begin);
                          uint32_t out = 0;
                          std::memcpy(&out,
                                      from.data() + (c * blocks + block) * block_bytes + begin,
                                      static_cast<size_t>(count));
                          return out;
                        };
                        FillPanels<uint32_t>(columns, blocks * words, word, to);
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
