// ArgMax and ArgMin of numbers that floats hold exactly, on vectors.
//
// Along the innermost axis: find the extreme of every block of a row, then its position in the
// block that wins. Along other axes: compare whole rows, as wide as the innermost kept axis, with
// the best so far, lane by lane, and keep the position of each best beside it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/arg.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/reduce.h"
#include "backends/cpu/fast/row_lanes.h"
#include "backends/cpu/fast/tiles.h"
#include "backends/cpu/vector.inl.h"
#include "engine/ops/math/reduce.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The first or last position of a value that is among the n numbers; any NaN matches any other.
// Returns a valid position even if the application meanwhile overwrites the input so that the value
// is gone.
int64_t FindPlace(const float* x, int64_t n, float value, bool last) {
  const Floats d;
  const bool nan = std::isnan(value);
  const auto found = [&](float v) { return nan ? std::isnan(v) : v == value; };
  const auto none = [&](int64_t i) HWY_ATTR {
    const Vector v = hn::LoadU(d, x + i);
    return hn::AllFalse(d, nan ? hn::IsNaN(v) : hn::Eq(v, hn::Set(d, value)));
  };
  if (last) {
    while (n >= kLanes && none(n - kLanes)) n -= kLanes;
    while (n > 1 && !found(x[n - 1])) --n;
    return n - 1;
  }
  int64_t i = 0;
  while (i + kLanes <= n && none(i)) i += kLanes;
  while (i + 1 < n && !found(x[i])) ++i;
  return i;
}

// Where x[i] is better than best[i], x[i] becomes the best and k its position; for minima the sign
// of x is flipped first. `best` and `at` have room for whole vectors.
template <bool kLast>
void TakeBetter(const float* x, int64_t n, int32_t k, bool flip, float* best, int32_t* at) {
  const Floats d;
  const hn::RebindToSigned<Floats> ints;
  const Vector sign = hn::Set(d, flip ? -0.0f : 0.0f);
  const auto place = hn::Set(ints, k);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vector v = hn::Xor(LoadSome(x + i, n - i), sign);
    const Vector old = hn::LoadU(d, best + i);
    const auto better = kLast ? hn::Or(hn::IsNaN(v), hn::Ge(v, old))
                              : hn::Or(hn::Gt(v, old), hn::AndNot(hn::IsNaN(old), hn::IsNaN(v)));
    const auto taken = k == 0 ? hn::FirstN(d, kLanes) : better;
    hn::StoreU(hn::IfThenElse(taken, v, old), d, best + i);
    const auto places = hn::LoadU(ints, at + i);
    hn::StoreU(hn::IfThenElse(hn::RebindMask(ints, taken), place, places), ints, at + i);
  }
}
void TakeBetterHere(const float* x, int64_t n, int32_t k, bool flip, bool last, float* best,
                    int32_t* at) {
  (last ? TakeBetter<true> : TakeBetter<false>)(x, n, k, flip, best, at);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(FindPlace);
HWY_EXPORT(TakeBetterHere);

constexpr int64_t kWidth = 1024;      // columns that are compared together
constexpr int64_t kBlock = 4096;      // elements of a row's block
constexpr int64_t kShortest = 32;     // shorter rows do not fill vectors
constexpr int64_t kChunk = 32 << 10;  // elements of a task, approximately

bool HeldByFloats(DType t) {
  return IsCarried(t) || t == DType::kI8 || t == DType::kU8 || t == DType::kI16 || t == DType::kU16;
}

class FastArg : public CpuKernel {
 public:
  FastArg(const NodeView& node, const ArgAttrs& attrs, int64_t outer, int64_t size, int64_t inner)
      : CpuKernel(node),
        attrs_(attrs),
        dtype_(node.inputs[0].dtype),
        larger_(node.op->name == "ArgMax"),
        outer_(outer),
        size_(size),
        inner_(inner) {
    if (dtype_ == DType::kF16) most_ = 65504.0f;
    if (dtype_ == DType::kBF16) most_ = 0x1.FEp127f;
    skips_nan_ = attrs.skip_nan && IsFloat(dtype_);
  }

  std::string description() const override {
    return inner_ == 1 ? "vectors along rows" : "vectors across rows";
  }

  Status Run(const Args& args) const override {
    DispatchDType(attrs_.to, [&]<class To>(TypeTag<To>) {
      if (inner_ == 1) {
        AlongRows<To>(args);
      } else {
        AcrossRows<To>(args);
      }
    });
    return Status();
  }

 private:
  // n elements as floats: the input itself where it is f32, else converted into `tile`.
  const float* Read(const Args& args, int64_t at, int64_t n, float* tile) const {
    const std::byte* from = args.inputs[0] + at * BytesOf(dtype_);
    if (dtype_ == DType::kF32 && !skips_nan_) return reinterpret_cast<const float*>(from);
    ToFloats(dtype_, from, n, tile);
    if (skips_nan_) {
      const float edge = larger_ ? -most_ : most_;
      for (int64_t i = 0; i < n; ++i) {
        tile[i] = (larger_ ? tile[i] > edge : tile[i] < edge) ? tile[i] : edge;
      }
    }
    return tile;
  }

  // Whether the extreme of a block replaces the best so far.
  bool Wins(double extreme, double best) const {
    if (attrs_.last) {
      return std::isnan(extreme) || (larger_ ? extreme >= best : extreme <= best);
    }
    return !std::isnan(best) &&
           (std::isnan(extreme) || (larger_ ? extreme > best : extreme < best));
  }

  template <class To>
  void AlongRows(const Args& args) const {
    const RowReduction kind = larger_ ? RowReduction::kMax : RowReduction::kMin;
    const int64_t grain = std::max<int64_t>(1, kChunk / size_);
    ParallelFor(args.threads, outer_, grain, [&](int64_t begin, int64_t end) {
      float tile[kBlock];
      for (int64_t row = begin; row < end; ++row) {
        int64_t from = 0;
        double best = 0;
        for (int64_t i = 0; i < size_; i += kBlock) {
          const int64_t n = std::min(kBlock, size_ - i);
          const double extreme = ReduceRow(kind, Read(args, row * size_ + i, n, tile), n);
          if (i > 0 && !Wins(extreme, best)) continue;
          best = extreme;
          from = i;
        }
        const int64_t n = std::min(kBlock, size_ - from);
        const float* block = Read(args, row * size_ + from, n, tile);
        const auto value = static_cast<float>(best);
        const int64_t place = HWY_DYNAMIC_DISPATCH(FindPlace)(block, n, value, attrs_.last);
        args.Out<To>(0)[row] = ConvertElement<To>(from + place);
      }
    });
  }

  template <class To>
  void AcrossRows(const Args& args) const {
    const int64_t blocks = (inner_ + kWidth - 1) / kWidth;
    const int64_t grain = std::max<int64_t>(1, kChunk / (size_ * std::min(kWidth, inner_)));
    ParallelFor(args.threads, outer_ * blocks, grain, [&](int64_t begin, int64_t end) {
      float best[kWidth], tile[kWidth];
      int32_t at[kWidth];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t outer = i / blocks, column = i % blocks * kWidth;
        const int64_t n = std::min(kWidth, inner_ - column);
        for (int64_t k = 0; k < size_; ++k) {
          const float* row = Read(args, (outer * size_ + k) * inner_ + column, n, tile);
          HWY_DYNAMIC_DISPATCH(TakeBetterHere)
          (row, n, static_cast<int32_t>(k), !larger_, attrs_.last, best, at);
        }
        To* out = args.Out<To>(0) + outer * inner_ + column;
        for (int64_t c = 0; c < n; ++c) out[c] = ConvertElement<To>(at[c]);
      }
    });
  }

  const ArgAttrs attrs_;
  const DType dtype_;
  const bool larger_;
  const int64_t outer_, size_, inner_;
  bool skips_nan_ = false;
  float most_ = std::numeric_limits<float>::max();  // the greatest number of the dtype
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastArg(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ArgAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t outer = shape.Product(0, axis), size = shape[axis];
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  if (!HeldByFloats(node.inputs[0].dtype) || shape.elements() == 0) return none;
  if (size > std::numeric_limits<int32_t>::max()) return none;
  if (inner == 1 ? size < kShortest : inner < 8) return none;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastArg>(node, attrs, outer, size, inner));
}

}  // namespace oncilla::cpu
#endif
