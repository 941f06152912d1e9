// Random numbers of the gamma, Poisson and binomial distributions, in double and in the order of
// TensorFlow's CPU kernels. Each output has a separate generator, which draws again until a number
// fits, so that any part of a result can be computed alone.
#include "backends/cpu/algorithms/variates.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/algorithms/special_math.h"
#include "backends/cpu/kernels/random_groups.h"
#include "engine/ops/broadcast.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Generator steps that are reserved per output; less where few are drawn.
constexpr uint64_t kReserved = 256, kReservedFew = 42;

// Uniform and normal numbers of one generator. A step gives two, of which the second is returned
// first, as TensorFlow does.
class Draws {
 public:
  explicit Draws(const Philox& generator) : generator_(generator) {}

  double Uniform() {
    if (uniform_left_ == 0) {
      const Philox::Four x = generator_();
      uniform_[0] = UnitDouble(x[0], x[1]);
      uniform_[1] = UnitDouble(x[2], x[3]);
      uniform_left_ = 2;
    }
    return uniform_[--uniform_left_];
  }
  double Normal() {  // after Box and Muller
    if (normal_left_ == 0) {
      const Philox::Four x = generator_();
      const double u = std::max(UnitDouble(x[0], x[1]), 1.0e-7);
      const double v = 2 * std::numbers::pi * UnitDouble(x[2], x[3]);
      const double r = std::sqrt(-2.0 * std::log(u));
      normal_[0] = std::sin(v) * r;
      normal_[1] = std::cos(v) * r;
      normal_left_ = 2;
    }
    return normal_[--normal_left_];
  }

 private:
  Philox generator_;
  double uniform_[2] = {}, normal_[2] = {};
  int uniform_left_ = 0, normal_left_ = 0;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables"; for alpha = 1 the
// exponential distribution.
double Gamma(double alpha, Draws& draws) {
  if (alpha == 1) return -std::log1p(-draws.Uniform());
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = draws.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = draws.Uniform();
    if (!(u < 1 - 0.0331 * (x * x) * (x * x)) &&
        !(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v)))) {
      continue;
    }
    const double result = d * v;
    return small ? result * std::pow(draws.Uniform(), 1 / alpha) : result;
  }
}

// For small rates Knuth's product of uniform numbers; for others Hormann, "The transformed
// rejection method for generating Poisson random variables". A number above `most` is drawn again.
double Poisson(double rate, double most, Draws& draws) {
  if (rate < 10) {
    const double end = std::exp(-rate);
    double product = 1;
    for (double x = 0;; x += 1) {
      product *= draws.Uniform();
      if (product <= end && x <= most) return x;
    }
  }
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform();
    const double shifted = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (k > most) continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double s = std::log(v * inverse_alpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * log_rate - LogGamma(k + 1)) return k;
  }
}

// log(k!) minus Stirling's formula.
double StirlingTail(double k) {
  constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kTails[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// `chance` is at most 1/2. If few successes are expected, sums of geometric numbers are used;
// otherwise Hormann, "The generation of binomial random variates".
double Binomial(double count, double chance, bool many, Draws& draws) {
  if (!many) {
    double sum = 0;
    for (double found = 0;; found += 1) {
      sum += std::ceil(std::log(draws.Uniform()) / std::log1p(-chance));
      if (sum > count) return found;
    }
  }
  const double deviation = std::sqrt(count * chance * (1 - chance));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * chance;
  const double c = count * chance + 0.5, tight = 0.92 - 4.2 / b, r = chance / (1 - chance);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((count + 1) * chance);
  for (;;) {
    double u = draws.Uniform(), v = draws.Uniform();
    u -= 0.5;
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= tight) return k;
    if (!(k >= 0 && k <= count)) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + StirlingTail(m) +
                         StirlingTail(count - m) - StirlingTail(k) - StirlingTail(count - k);
    if (v <= bound) return k;
  }
}

template <class T>
double Number(const T& x) {
  return static_cast<double>(x);
}

// The largest number that the result type holds.
template <class T>
double Most() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, int64_t>) return 0x1p63 - 1024;  // the largest double below 2^63
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(std::numeric_limits<T>::max());
  return std::numeric_limits<double>::max();
}

template <class T>
T To(double x) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(x);
  return static_cast<T>(static_cast<float>(x));
}

// The generator of one output.
Draws DrawsOf(const Args& args, int64_t output, uint64_t reserved = kReserved) {
  const auto* counter = args.In<uint64_t>(2);
  Philox own(args.In<uint64_t>(1)[0], counter[0], counter[1]);
  own.Skip(reserved * static_cast<uint64_t>(output));
  return Draws(own);
}

// Calls draw(index of the parameter, output) for each output. The results of one parameter come
// from consecutive outputs, as TensorFlow numbers them, and are stored with a stride of the number
// of parameters.
template <class T, class F>
void Fill(const Args& args, int64_t parameters, F&& draw) {
  const int64_t elements = args.out(0).elements();
  const int64_t each = parameters == 0 ? 0 : elements / parameters;
  T* out = args.Out<T>(0);
  ParallelFor(args.threads, elements, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t which = i / each;
      out[i % each * parameters + which] = To<T>(draw(which, i));
    }
  });
}

template <class T, class P>
Status FillRates(const SampleDistributionAttrs& attrs, const Args& args) {
  const P* x = args.In<P>(3);
  const int64_t count = args.in(3).elements();
  const double most = Most<T>();
  const bool poisson = attrs.distribution == "poisson";
  for (int64_t i = 0; poisson && i < count; ++i) {
    // Above this rate, numbers that fit the type are too rare to wait for.
    if (Number(x[i]) <= most) continue;
    return InvalidArgument("rate ", i, " is ", Number(x[i]), "; the output type holds at most ",
                           most);
  }
  Fill<T>(args, count, [&](int64_t which, int64_t output) {
    Draws draws = DrawsOf(args, output);
    return poisson ? Poisson(Number(x[which]), most, draws) : Gamma(Number(x[which]), draws);
  });
  return Status();
}

// The comparisons that choose the method are made in the parameters' own type, as in TensorFlow.
template <class T, class P>
Status FillTrials(const Args& args) {
  const Shape counts = args.in(3).shape, chances = args.in(4).shape;
  ONCILLA_ASSIGN(const PartialShape both,
                 BroadcastShapes(PartialShape(counts), PartialShape(chances)));
  const std::vector<Shape> shapes = {counts, chances};
  const BroadcastAxes axes = MergeBroadcast(both.ToShape(), shapes);
  for (int64_t i = 0; i < args.in(3).elements(); ++i) {
    const double trials = Number(args.In<P>(3)[i]);
    if (std::isfinite(trials) && trials <= Most<T>()) continue;
    return InvalidArgument("count ", i, " is ", trials, "; the output type holds at most ",
                           Most<T>());
  }
  for (int64_t i = 0; i < args.in(4).elements(); ++i) {
    if (std::isnan(args.In<P>(4)[i])) return InvalidArgument("probability ", i, " is not a number");
  }
  Fill<T>(args, axes.elements, [&](int64_t which, int64_t output) -> double {
    int64_t at[2] = {}, left = which;
    for (int axis = axes.rank; axis-- > 0; left /= axes.sizes[static_cast<size_t>(axis)]) {
      const auto i = static_cast<size_t>(axis);
      for (size_t k = 0; k < 2; ++k) at[k] += left % axes.sizes[i] * axes.strides[k][i];
    }
    const P count = args.In<P>(3)[at[0]], chance = args.In<P>(4)[at[1]];
    const double trials = Number(count);
    if (trials <= 0 || chance <= P(0)) return 0;
    if (chance >= P(1)) return trials;
    const auto draw = [&](P less) {
      const bool many = count * less >= P(10);
      Draws draws = DrawsOf(args, output, many ? kReserved : kReservedFew);
      return Binomial(trials, Number(less), many, draws);
    };
    return chance <= P(0.5) ? draw(chance) : trials - draw(P(1) - chance);
  });
  return Status();
}

}  // namespace

Status SampleDistribution(const SampleDistributionAttrs& attrs, const Args& args) {
  if (attrs.distribution == "bounded_normal") return BoundedNormal(args);
  Status status;
  DispatchDType(attrs.to, [&]<class T>(TypeTag<T>) {
    DispatchDType(args.in(3).dtype, [&]<class P>(TypeTag<P>) {
      constexpr bool kResult = std::is_same_v<T, Half> || std::is_floating_point_v<T> ||
                               std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
      constexpr bool kParameter = std::is_same_v<P, Half> || std::is_floating_point_v<P> ||
                                  std::is_same_v<P, int32_t> || std::is_same_v<P, int64_t>;
      if constexpr (kResult && kParameter) {
        if (attrs.distribution != "binomial") {
          status = FillRates<T, P>(attrs, args);
        } else if constexpr (std::is_floating_point_v<P>) {
          status = FillTrials<T, P>(args);
        }
      }
    });
  });
  return status;
}

}  // namespace oncilla::cpu
