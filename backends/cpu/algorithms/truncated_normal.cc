// Normal numbers between bounds, each batch with parameters of its own, in the order of
// TensorFlow's CPU kernel on one thread: one generator gives all numbers, batch by batch.
//
// TensorFlow's threads each begin at a place of the generator that depends on how many there are.
// A result of some hundred numbers is made by one thread, so it has the same bits on any machine.
#include <array>
#include <cmath>
#include <utility>

#include "backends/cpu/algorithms/variates.h"
#include "backends/cpu/kernels/random_groups.h"
#include "engine/ops/broadcast.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

constexpr int kMostTries = 1000;

// Halves are computed with in floats, each result being rounded to a half.
template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
WideOf<T> Rounded(WideOf<T> x) {
  return static_cast<WideOf<T>>(static_cast<T>(x));
}

template <class T>
struct Bounds {
  using W = WideOf<T>;
  W mean, deviation, low, high;  // `low` and `high` in deviations from the mean
};

// Makes a bound on one side the lower one, and both bounds positive where they are on one side of
// the mean; a negative deviation turns the numbers back.
template <class T>
Result<Bounds<T>> Normalised(WideOf<T> mean, WideOf<T> deviation, WideOf<T> low, WideOf<T> high) {
  if (!(deviation > 0) || !(low < high) || (!std::isfinite(low) && !std::isfinite(high))) {
    return InvalidArgument("Invalid parameters: mean ", mean, ", standard deviation ", deviation,
                           ", bounds ", low, " and ", high);
  }
  if ((std::isinf(low) && low < 0) || high < mean) {
    std::swap(low, high);
    deviation = -deviation;
  }
  const auto normal = [&](WideOf<T> x) { return Rounded<T>(Rounded<T>(x - mean) / deviation); };
  return Bounds<T>{mean, deviation, normal(low), normal(high)};
}

// Draws the numbers of one batch from the distribution of which most are within the bounds.
template <class T>
class Sampler {
 public:
  using W = WideOf<T>;

  Sampler(Philox& generator, const Bounds<T>& bounds) : generator_(generator), b_(bounds) {}

  // Writes `count` numbers, `stride` elements apart. False if too many in a row do not fit.
  bool Fill(int64_t count, int64_t stride, T* out) {
    left_ = count;
    stride_ = stride;
    out_ = out;
    const W enough = Rounded<T>(W(1.3));
    const W square = Rounded<T>(b_.low * b_.low);
    const W root = Rounded<T>(std::sqrt(Rounded<T>(square + 4)));
    const W exponent =
        Rounded<T>(W(0.5) + Rounded<T>(Rounded<T>(b_.low * Rounded<T>(b_.low - root)) / 4));
    const W cutoff =
        Rounded<T>(Rounded<T>(2 * Rounded<T>(std::exp(exponent))) / Rounded<T>(b_.low + root));
    const W width = Rounded<T>(b_.high - b_.low);
    if ((b_.low < -enough && b_.high >= 0) || (b_.high > enough && b_.low <= 0)) {
      return FromNormal();
    }
    return width < cutoff ? FromUniform(width, square) : FromExponential(root);
  }

 private:
  static constexpr auto kSize = static_cast<size_t>(kGroup<T>);
  using Group = std::array<T, kSize>;

  Group Uniforms() {
    Group group;
    UniformGroup(generator_(), group.data());
    return group;
  }

  void Take(W x) {
    *out_ = static_cast<T>(Rounded<T>(x * b_.deviation) + b_.mean);
    out_ += stride_;
    --left_;
    tries_ = 0;
  }

  // From normal numbers, if enough of them are within the bounds.
  bool FromNormal() {
    while (left_ > 0) {
      Group group;
      NormalGroup(generator_(), group.data());
      for (size_t i = 0; i < kSize && left_ > 0; ++i) {
        const auto x = static_cast<W>(group[i]);
        if (x >= b_.low && x <= b_.high) {
          Take(x);
        } else if (++tries_ > kMostTries) {
          return false;
        }
      }
    }
    return true;
  }

  // From uniform numbers between close bounds.
  bool FromUniform(W width, W square) {
    const W most = b_.low < 0 ? W(0) : square;
    while (left_ > 0) {
      const Group at = Uniforms(), chance = Uniforms();
      for (size_t i = 0; i < kSize && left_ > 0; ++i) {
        const W z = Rounded<T>(Rounded<T>(static_cast<W>(at[i]) * width) + b_.low);
        const W g = Rounded<T>(Rounded<T>(most - Rounded<T>(z * z)) / 2);
        if (static_cast<W>(chance[i]) <= Rounded<T>(std::exp(g))) {
          Take(z);
        } else if (++tries_ >= kMostTries) {
          return false;
        }
      }
    }
    return true;
  }

  // From exponential numbers above the lower bound.
  bool FromExponential(W root) {
    const W alpha = Rounded<T>(Rounded<T>(b_.low + root) / 2);
    while (left_ > 0) {
      const Group group = Uniforms();
      for (size_t i = 0; i + 1 < kSize && left_ > 0; i += 2) {
        const W log = Rounded<T>(std::log(static_cast<W>(group[i])));
        const W z = Rounded<T>(Rounded<T>(-log / alpha) + b_.low);
        const W x = b_.low < alpha ? Rounded<T>(alpha - z) : Rounded<T>(b_.low - alpha);
        const W g = Rounded<T>(std::exp(Rounded<T>(Rounded<T>(-x * x) / 2)));
        if (static_cast<W>(group[i + 1]) <= g && z < b_.high) {
          Take(z);
        } else if (++tries_ >= kMostTries) {
          return false;
        }
      }
    }
    return true;
  }

  Philox& generator_;
  const Bounds<T>& b_;
  int64_t left_ = 0, stride_ = 0;
  T* out_ = nullptr;
  int tries_ = 0;
};

template <class T>
Status FillBounded(const Args& args) {
  std::vector<Shape> shapes;
  PartialShape batches{std::vector<Dim>()};
  for (size_t k = 0; k < 4; ++k) {
    shapes.push_back(args.in(3 + k).shape);
    ONCILLA_ASSIGN(batches, BroadcastShapes(batches, PartialShape(shapes.back())));
  }
  const BroadcastAxes axes = MergeBroadcast(batches.ToShape(), shapes);
  const auto* counter = args.In<uint64_t>(2);
  Philox generator(args.In<uint64_t>(1)[0], counter[0], counter[1]);
  const int64_t each = axes.elements == 0 ? 0 : args.out(0).elements() / axes.elements;
  for (int64_t batch = 0; each > 0 && batch < axes.elements; ++batch) {
    int64_t at[4] = {}, left = batch;
    for (int axis = axes.rank; axis-- > 0; left /= axes.sizes[static_cast<size_t>(axis)]) {
      const auto i = static_cast<size_t>(axis);
      for (size_t k = 0; k < 4; ++k) at[k] += left % axes.sizes[i] * axes.strides[k][i];
    }
    const auto parameter = [&](size_t k) {
      return static_cast<WideOf<T>>(args.In<T>(3 + k)[at[k]]);
    };
    auto bounds = Normalised<T>(parameter(0), parameter(1), parameter(2), parameter(3));
    if (!bounds.ok()) return In(bounds.status(), StrCat("batch ", batch));
    Sampler<T> sampler(generator, *bounds);
    if (sampler.Fill(each, axes.elements, args.Out<T>(0) + batch)) continue;
    return Internal("batch ", batch, ": none of ", kMostTries,
                    " numbers in a row is within the bounds");
  }
  return Status();
}

}  // namespace

Status BoundedNormal(const Args& args) {
  Status status;
  DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Half>) {
      status = FillBounded<T>(args);
    }
  });
  return status;
}

}  // namespace oncilla::cpu
