// ReduceSum of 32-bit integers on vectors. Sums wrap around, so that their order does not matter.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/reduce_integers.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/reduce.h"
#include "backends/cpu/vector.inl.h"
#include "engine/tensor/shape.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The sum of n elements.
int32_t SumRow(const int32_t* x, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = hn::Add(sum, hn::LoadU(d, x + i));
  auto total = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d, sum)));
  for (; i < n; ++i) total += static_cast<uint32_t>(x[i]);
  return static_cast<int32_t>(total);
}

// y[c] += the sum of x[r * step + c] over rows r, for c < width.
void AddRows(const int32_t* x, int64_t rows, int64_t step, int64_t width, int32_t* y) {
  const hn::ScalableTag<int32_t> d;
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    auto sum = hn::LoadU(d, y + c);
    for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, hn::LoadU(d, x + r * step + c));
    hn::StoreU(sum, d, y + c);
  }
  for (; c < width; ++c) {
    auto sum = static_cast<uint32_t>(y[c]);
    for (int64_t r = 0; r < rows; ++r) sum += static_cast<uint32_t>(x[r * step + c]);
    y[c] = static_cast<int32_t>(sum);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(SumRow);
HWY_EXPORT(AddRows);

// Columns of a task: those of a cache line.
constexpr int64_t kColumns = 16;
// Elements of a task, at least.
constexpr int64_t kWork = 1 << 15;

class FastIntegerSum : public CpuKernel {
 public:
  FastIntegerSum(const NodeView& node, ReduceLoops loops)
      : CpuKernel(node), rows_(loops.reduced.back().stride == 1), loops_(std::move(loops)) {
    auto& inner = rows_ ? loops_.reduced : loops_.kept;
    run_ = inner.back().size;
    inner.pop_back();
  }

  std::string description() const override {
    return rows_ ? "vectors along rows" : "vectors across rows";
  }

  Status Run(const Args& args) const override {
    if (rows_) {
      AlongRows(args);
    } else {
      AcrossRows(args);
    }
    return Status();
  }

 private:
  void AlongRows(const Args& args) const {
    const auto* x = args.In<int32_t>(0);
    auto* y = args.Out<int32_t>(0);
    const int64_t runs = loops_.count / run_, grain = std::max<int64_t>(1, kWork / loops_.count);
    ParallelFor(args.threads, loops_.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const int32_t* from = x + OffsetOf(loops_.kept, o);
        uint32_t sum = 0;
        for (int64_t i = 0; i < runs; ++i) {
          sum += static_cast<uint32_t>(
              HWY_DYNAMIC_DISPATCH(SumRow)(from + OffsetOf(loops_.reduced, i), run_));
        }
        y[o] = static_cast<int32_t>(sum);
      }
    });
  }

  void AcrossRows(const Args& args) const {
    const auto* x = args.In<int32_t>(0);
    auto* y = args.Out<int32_t>(0);
    const ReduceLoops::Axis rows = loops_.reduced.back();
    const std::span outer(loops_.reduced.data(), loops_.reduced.size() - 1);
    const int64_t repeats = loops_.count / rows.size;
    const int64_t blocks = (run_ + kColumns - 1) / kColumns, outputs = loops_.outputs / run_;
    const int64_t grain = std::max<int64_t>(1, kWork / SaturatingMul(loops_.count, kColumns));
    ParallelFor(args.threads, outputs * blocks, grain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        // Blocks that follow each other in a row of outputs are added up together.
        const int64_t output = begin / blocks, first = begin % blocks;
        const int64_t count = std::min(end - begin, blocks - first), column = first * kColumns;
        const int64_t width = std::min(count * kColumns, run_ - column);
        int32_t* to = y + output * run_ + column;
        std::fill_n(to, width, 0);
        const int32_t* from = x + OffsetOf(loops_.kept, output) + column;
        for (int64_t i = 0; i < repeats; ++i) {
          HWY_DYNAMIC_DISPATCH(AddRows)
          (from + OffsetOf(outer, i), rows.size, rows.stride, width, to);
        }
        begin += count;
      }
    });
  }

  const bool rows_;
  ReduceLoops loops_;  // without the axis of the runs
  int64_t run_ = 0;
};

}  // namespace

std::unique_ptr<CpuKernel> MakeFastIntegerSum(const NodeView& node, ReduceLoops loops) {
  return std::make_unique<FastIntegerSum>(node, std::move(loops));
}

}  // namespace oncilla::cpu
#endif
