// Random numbers on the CPU. The order in which a Philox generator's numbers are used is
// TensorFlow's: one group of outputs per step, so that any part of a result can be computed alone.
#include "engine/ops/math/random.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <random>

#include "backends/cpu/algorithms/numpy_random.h"
#include "backends/cpu/algorithms/variates.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/philox.h"
#include "backends/cpu/kernels/random_groups.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Steps of the generator that TensorFlow reserves per output for ops that draw again until a number
// fits.
constexpr uint64_t kReserved = 256;

template <class T>
void TruncatedGroup(PhiloxSequence& next, T* out) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (int64_t found = 0; found < kGroup<T>;) {
    Wide two[2];
    if constexpr (std::is_same_v<T, double>) {
      Philox::Four x;
      for (uint32_t& v : x) v = next();
      Normal(x, two);
    } else {
      const uint32_t x0 = next(), x1 = next();
      Normal(x0, x1, two);
    }
    for (int i = 0; i < 2 && found < kGroup<T>; ++i) {
      if (std::abs(two[i]) < 2) out[found++] = static_cast<T>(two[i]);
    }
  }
}

// A `range` of 0 means any number of the type.
template <class T>
void IntGroup(const Philox::Four& x, T low, std::make_unsigned_t<T> range, T* out) {
  using U = std::make_unsigned_t<T>;
  for (size_t i = 0; i < static_cast<size_t>(kGroup<T>); ++i) {
    U bits = 0;
    if constexpr (sizeof(T) == 8) {
      bits = Philox::Join(x[2 * i], x[2 * i + 1]);
    } else {
      bits = x[i];
    }
    out[i] = static_cast<T>(range == 0 ? bits : static_cast<U>(low) + bits % range);
  }
}

template <class T>
void Fill(const std::string& distribution, const Philox& start, T low, T high, T* out,
          int64_t count, const Threads& threads) {
  constexpr int64_t kSize = kGroup<T>;
  const int64_t groups = (count + kSize - 1) / kSize;
  ParallelFor(threads, groups, 1024, [&](int64_t begin, int64_t end) {
    Philox generator = start;
    const bool truncated = distribution == "truncated_normal";
    if (!truncated) generator.Skip(static_cast<uint64_t>(begin));
    for (int64_t g = begin; g < end; ++g) {
      T group[kSize];
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
        IntGroup<T>(generator(), low, distribution == "full_int" ? U{0} : range, group);
      } else if (truncated) {
        Philox own = start;
        own.Skip(static_cast<uint64_t>(g) * (kSize * kReserved / 4));
        PhiloxSequence next(own);
        TruncatedGroup(next, group);
      } else if (distribution == "normal") {
        NormalGroup(generator(), group);
      } else {
        UniformGroup(generator(), group);
      }
      std::copy_n(group, std::min(kSize, count - g * kSize), out + g * kSize);
    }
  });
}

Status FillOutput(const RandomAttrs& attrs, const Philox& start, const Args& args, size_t bounds) {
  const int64_t count = args.out(0).elements();
  Status status;
  DispatchDType(attrs.to, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool> && (sizeof(T) >= 4 || !std::is_integral_v<T>)) {
      T low{}, high{};
      if (attrs.distribution == "uniform_int") {
        low = args.In<T>(bounds)[0];
        high = args.In<T>(bounds + 1)[0];
        if (count > 0 && !(static_cast<double>(low) < static_cast<double>(high) || low < high)) {
          status = InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
          return;
        }
      }
      Fill<T>(attrs.distribution, start, low, high, args.Out<T>(0), count, args.threads);
    }
  });
  return status;
}

Philox Keyed(const Args& args, size_t key) {
  const auto* counter = args.In<uint64_t>(key + 1);
  return Philox(args.In<uint64_t>(key)[0], counter[0], counter[1]);
}

Status RandomKey(const NoAttrs&, const Args& args) {
  const IntList seed = ReadInts(args.inputs[0], args.in(0).dtype, 2);
  // One step of a generator whose key and counter are constants and the seeds.
  Philox mixer(0x02461e293ec8f720, static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1]));
  const Philox::Four mix = mixer();
  args.Out<uint64_t>(0)[0] = Philox::Join(mix[0], mix[1]);
  args.Out<uint64_t>(1)[0] = 0;
  args.Out<uint64_t>(1)[1] = Philox::Join(mix[2], mix[3]);
  return {};
}

Status RandomNumbers(const RandomAttrs& attrs, const Args& args) {
  return FillOutput(attrs, Keyed(args, 1), args, 3);
}

template <class T>
double Finite(const T& x) {
  const auto value = static_cast<double>(x);
  return std::isfinite(value) ? value : -HUGE_VAL;
}

Status Sample(const SampleAttrs& attrs, const Philox& start, const Args& args) {
  const Shape logits = args.in(0).shape, out = args.out(0).shape;
  PhiloxSequence next(start);
  std::vector<double> sums(static_cast<size_t>(logits[1]));
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t row = 0; row < logits[0]; ++row) {
      const T* x = args.In<T>(0) + row * logits[1];
      double most = -HUGE_VAL, total = 0;
      for (int64_t c = 0; c < logits[1]; ++c) most = std::max(most, Finite(x[c]));
      for (int64_t c = 0; c < logits[1]; ++c) {
        const double value = Finite(x[c]);
        if (value != -HUGE_VAL) total += std::exp(value - most);
        sums[static_cast<size_t>(c)] = total;
      }
      for (int64_t i = 0; i < out[1]; ++i) {
        const uint32_t x0 = next(), x1 = next();
        const double place = UnitDouble(x0, x1) * total;
        const auto found = std::upper_bound(sums.begin(), sums.end(), place) - sums.begin();
        const int64_t at = row * out[1] + i;
        if (attrs.to == DType::kI32) {
          args.Out<int32_t>(0)[at] = static_cast<int32_t>(found);
        } else {
          args.Out<int64_t>(0)[at] = found;
        }
      }
    }
  });
  return status;
}

Status SampleClasses(const SampleAttrs& attrs, const Args& args) {
  return Sample(attrs, Keyed(args, 2), args);
}

// A generator that continues from run to run. A run takes all its steps with one atomic addition,
// so runs may overlap.
class Stream {
 public:
  explicit Stream(const auto& attrs) {
    const int64_t seed = attrs.seed, seed2 = attrs.seed2;
    if (seed == 0 && seed2 == 0) {
      std::random_device source;
      start_ = Philox(Philox::Join(source(), source()), Philox::Join(source(), source()));
    } else {
      start_ = Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
    }
  }
  Philox Take(uint64_t steps) const {
    Philox own = start_;
    own.Skip(used_.fetch_add(steps));
    return own;
  }

 private:
  Philox start_;
  mutable std::atomic<uint64_t> used_ = 0;
};

// Numbers as NumPy draws them.
class Mersenne : public NumpyStream {
 public:
  explicit Mersenne(const auto& attrs) : NumpyStream(static_cast<uint32_t>(attrs.seed)) {}
};

template <auto F, class Stream>
class StreamKernel : public CpuKernel {
 public:
  using Attrs = oncilla::internal::AttrsOf<F>;
  StreamKernel(const NodeView& node, Attrs attrs)
      : CpuKernel(node), attrs_(std::move(attrs)), stream_(attrs_) {}
  Status Run(const Args& args) const override { return F(attrs_, stream_, args); }
  std::string description() const override { return "plain"; }

 private:
  Attrs attrs_;
  Stream stream_;
};

template <auto F, class Stream>
Result<std::unique_ptr<CpuKernel>> MakeStream(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<F>>(*node.attrs));
  return std::unique_ptr<CpuKernel>(
      std::make_unique<StreamKernel<F, Stream>>(node, std::move(attrs)));
}

template <auto F, class Generator = Stream>
constexpr KernelRow StreamRow(std::string_view op, DTypeSet dtypes) {
  KernelRow row;
  row.op = op;
  row.dtypes = dtypes;
  row.plain = &MakeStream<F, Generator>;
  return row;
}

Status RandomStream(const RandomAttrs& attrs, const Stream& stream, const Args& args) {
  const auto count = static_cast<uint64_t>(args.out(0).elements());
  return FillOutput(attrs, stream.Take(count * kReserved), args, 1);
}

Status MersenneStream(const MersenneAttrs& attrs, const Mersenne& stream, const Args& args) {
  const bool normal = attrs.distribution == "normal";
  double* const out = args.Out<double>(0);
  stream.Draw([&](NumpyRandom& random) {
    std::generate_n(out, args.out(0).elements(),
                    [&] { return normal ? random.Normal() : random.Uniform(); });
  });
  return {};
}

Status BernoulliStream(const BernoulliAttrs&, const Mersenne& stream, const Args& args) {
  const int64_t count = args.out(0).elements();
  std::vector<double> chances;
  chances.reserve(static_cast<size_t>(count));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.In<T>(0);
    for (int64_t i = 0; i < count; ++i) chances.push_back(static_cast<double>(x[i]));
  });
  for (const double chance : chances) {
    if (!(chance >= 0 && chance <= 1)) return InvalidArgument("a chance is ", chance);
  }
  stream.Draw([&](NumpyRandom& random) {
    std::ranges::transform(chances, args.Out<bool>(0),
                           [&](double chance) { return random.Hit(chance); });
  });
  return {};
}

// `take(steps)` returns a generator and reserves so many of its steps.
template <class F>
Status Shuffle(const Args& args, F&& take) {
  const TensorDesc x = args.in(0);
  const int64_t rows = x.shape[0];
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  if (rows > 1) {
    PhiloxSequence next(take(static_cast<uint64_t>(rows - 1 + 3) / 4));
    for (int64_t i = 0; i + 1 < rows; ++i) {
      const auto offset = static_cast<int64_t>(next() % static_cast<uint32_t>(rows - i));
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + offset)]);
    }
  }
  const int64_t bytes = rows == 0 ? 0 : x.bytes() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(args.outputs[0] + i * bytes, args.inputs[0] + order[static_cast<size_t>(i)] * bytes,
                static_cast<size_t>(bytes));
  }
  return {};
}

Status ShuffleStream(const ShuffleAttrs&, const Stream& stream, const Args& args) {
  return Shuffle(args, [&](uint64_t steps) { return stream.Take(steps); });
}

Status ShuffleRows(const NoAttrs&, const Args& args) {
  return Shuffle(args, [&](uint64_t) { return Keyed(args, 1); });
}

Status SampleStream(const SampleAttrs& attrs, const Stream& stream, const Args& args) {
  const Shape out = args.out(0).shape;
  const auto used = static_cast<uint64_t>(out[0] * ((out[1] + 3) / 4 * 4) * 2);
  return Sample(attrs, stream.Take(used * kReserved), args);
}

const KernelRow kRows[] = {
    StreamRow<BernoulliStream, Mersenne>("BernoulliStream", kFloats),
    StreamRow<MersenneStream, Mersenne>("MersenneStream", kIntegers),
    Row<RandomKey>("RandomKey", kIntegers),
    Row<RandomNumbers>("RandomNumbers", kIntegers),
    Row<ShuffleRows>("ShuffleRows", kFixedSize),
    StreamRow<RandomStream>("RandomStream", kIntegers),
    Row<SampleClasses>("SampleClasses", kNumbers),
    Row<SampleDistribution>("SampleDistribution", kIntegers),
    StreamRow<SampleStream>("SampleStream", kNumbers),
    StreamRow<ShuffleStream>("ShuffleStream", kFixedSize),
};

}  // namespace

std::span<const KernelRow> RandomKernels() { return kRows; }

}  // namespace oncilla::cpu
