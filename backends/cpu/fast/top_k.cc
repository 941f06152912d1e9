// TopK of numbers of up to 32 bits. Each number becomes a 64-bit key: its upper half is an integer
// rank in the requested order, its lower half the index. Keys are distinct, and comparing them
// needs no knowledge of the type or of ties.
//
// A row is read once. A key that cannot be among the first k is skipped. The others are collected
// until there are 2 k of them; then the best k are kept, and the worst of these becomes the new
// bound.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/fast/reduce.h"
#include "backends/cpu/fast/tiles.h"
#include "engine/ops/math/reduce.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kMostPicked = 1 << 16;  // a longer sort cannot end early

// Ranks have the order of the numbers; both zeros have one rank, and NaN is above all numbers.
template <class T>
uint32_t RankOf(T v) {
  constexpr uint32_t kTop = uint32_t{1} << 31;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint32_t>(v) ^ (std::is_signed_v<T> ? kTop : 0);
  } else {
    const auto f = static_cast<float>(v);
    const auto bits = std::bit_cast<uint32_t>(f + 0.0f);
    return std::isnan(f) ? ~uint32_t{0} : bits ^ ((bits & kTop) != 0 ? ~uint32_t{0} : kTop);
  }
}

// Leaves the first k keys of n numbers, `step` apart, in order.
template <class T>
void Pick(const T* x, int64_t n, int64_t step, int64_t k, bool largest,
          std::vector<uint64_t>* keys) {
  const auto count = static_cast<size_t>(k), room = 2 * count;
  const uint32_t flip = largest ? ~uint32_t{0} : 0;
  const auto keep_best = [&] {
    const auto end = keys->begin() + k;
    if (keys->size() > count) std::nth_element(keys->begin(), end - 1, keys->end());
    keys->resize(count);
  };
  uint64_t bound = ~uint64_t{0};  // for the next candidates
  keys->clear();
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = uint64_t{RankOf(x[i * step]) ^ flip} << 32 | static_cast<uint32_t>(i);
    if (key >= bound) continue;
    keys->push_back(key);
    if (keys->size() < room) continue;
    keep_best();
    bound = keys->back();
  }
  keep_best();
  std::sort(keys->begin(), keys->end());
}

class FastTopK : public CpuKernel {
 public:
  FastTopK(const NodeView& node, const TopKAttrs& attrs, int axis, int64_t k)
      : CpuKernel(node), attrs_(attrs), axis_(axis), k_(k) {}

  std::string description() const override { return "keys"; }

  Status Run(const Args& args) const override {
    DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
      DispatchDType(attrs_.to, [&]<class To>(TypeTag<To>) { RunAs<T, To>(args); });
    });
    return Status();
  }

 private:
  template <class T, class To>
  void RunAs(const Args& args) const {
    const Shape shape = args.in(0).shape;
    const int64_t size = shape[axis_], inner = shape.Product(axis_ + 1, shape.rank());
    const int64_t rows = shape.Product(0, axis_) * inner;
    const int64_t grain = std::max<int64_t>(1, 16384 / size);
    ParallelFor(args.threads, rows, grain, [&](int64_t begin, int64_t end) {
      std::vector<uint64_t> keys;
      keys.reserve(static_cast<size_t>(2 * k_));
      for (int64_t i = begin; i < end; ++i) {
        const T* x = args.In<T>(0) + i / inner * size * inner + i % inner;
        Pick(x, size, inner, k_, attrs_.largest, &keys);
        const int64_t first = i / inner * k_ * inner + i % inner;
        for (int64_t j = 0; j < k_; ++j) {
          const auto place = static_cast<uint32_t>(keys[static_cast<size_t>(j)]);
          args.Out<T>(0)[first + j * inner] = x[place * inner];
          args.Out<To>(1)[first + j * inner] = ConvertElement<To>(place);
        }
      }
    });
  }

  const TopKAttrs attrs_;
  const int axis_;
  const int64_t k_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastTopK(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  const DType dtype = node.inputs[0].dtype;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<TopKAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  ONCILLA_ASSIGN(const auto k, NeedInts(node.inputs[1], "k"));
  if (!IsNumber(dtype) || BytesOf(dtype) > 4 || shape.elements() == 0) return none;
  if (k[0] == 0 || k[0] > kMostPicked || shape[axis] > kLongStretch) return none;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastTopK>(node, attrs, axis, k[0]));
}

}  // namespace oncilla::cpu
