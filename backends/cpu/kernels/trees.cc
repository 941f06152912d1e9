// Tree ensembles on the CPU: plain, exact code.
#include "engine/ops/math/trees.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/math/coupling.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

enum class Test : uint8_t { kLe, kLt, kGe, kGt, kEq, kNe, kIn };

std::vector<Test> TestsOf(const TreeEnsembleAttrs& attrs) {
  constexpr std::string_view kNames[] = {"le", "lt", "ge", "gt", "eq", "ne", "in"};
  std::vector<Test> tests;
  for (const std::string& name : attrs.test) {
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    tests.push_back(static_cast<Test>(found - std::begin(kNames)));
  }
  return tests;
}

bool Holds(const TreeEnsembleAttrs& attrs, Test test, size_t i, double x) {
  const double value = attrs.value[i];
  if (std::isnan(x) && attrs.missing[i] != 0) return true;
  switch (test) {
    case Test::kLe:
      return x <= value;
    case Test::kLt:
      return x < value;
    case Test::kGe:
      return x >= value;
    case Test::kGt:
      return x > value;
    case Test::kEq:
      return x == value;
    case Test::kNe:
      return x != value;
    case Test::kIn:
      break;
  }
  const auto first = attrs.members.begin() + attrs.sets[i];
  const auto last = attrs.members.begin() + attrs.sets[i + 1];
  return std::find(first, last, x) != last;
}

// Combines the leaves of one row; `sum` and `met` have one number per target.
template <class T>
void Predict(const TreeEnsembleAttrs& attrs, const std::vector<Test>& tests, const T* x,
             std::vector<double>& sum, std::vector<char>& met) {
  std::fill(sum.begin(), sum.end(), 0.0);
  std::fill(met.begin(), met.end(), 0);
  for (int64_t at : attrs.roots) {
    while (at >= 0) {
      const auto i = static_cast<size_t>(at);
      const auto feature = static_cast<double>(x[attrs.feature[i]]);
      at = Holds(attrs, tests[i], i, feature) ? attrs.yes[i] : attrs.no[i];
    }
    const auto leaf = static_cast<size_t>(-(at + 1));
    for (int64_t k = attrs.starts[leaf]; k < attrs.starts[leaf + 1]; ++k) {
      const auto target = static_cast<size_t>(attrs.target[static_cast<size_t>(k)]);
      const double weight = attrs.weight[static_cast<size_t>(k)];
      if (met[target] == 0) {
        sum[target] = weight;
      } else if (attrs.combine == "min") {
        sum[target] = std::min(sum[target], weight);
      } else if (attrs.combine == "max") {
        sum[target] = std::max(sum[target], weight);
      } else {
        sum[target] += weight;
      }
      met[target] = 1;
    }
  }
  if (attrs.combine != "mean" || attrs.roots.empty()) return;
  for (double& s : sum) s /= static_cast<double>(attrs.roots.size());
}

Status TreeEnsemble(const TreeEnsembleAttrs& attrs, const Args& args) {
  const Shape in = args.in(0).shape;
  for (int64_t feature : attrs.feature) {
    if (feature >= in[1]) return InvalidArgument("a tree asks for feature ", feature);
  }
  const std::vector<Test> tests = TestsOf(attrs);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const int64_t work = std::ssize(attrs.roots) * 16 + attrs.targets;
      ParallelFor(args.threads, in[0], GrainOf(work, 256), [&](int64_t begin, int64_t end) {
        std::vector<double> sum(static_cast<size_t>(attrs.targets));
        std::vector<char> met(sum.size());
        for (int64_t row = begin; row < end; ++row) {
          Predict(attrs, tests, args.In<T>(0) + row * in[1], sum, met);
          for (size_t k = 0; k < sum.size(); ++k) {
            args.Out<T>(0)[row * attrs.targets + static_cast<int64_t>(k)] = static_cast<T>(sum[k]);
          }
        }
      });
    }
  });
  return Status();
}

// Pairwise coupling (Wu, Lin and Weng 2004): from probabilities of k classes in pairs to those of
// the classes, by libsvm's iteration, in float as the engines that follow libsvm compute it.
class Coupling {
 public:
  explicit Coupling(int64_t classes)
      : k_(classes),
        pairs_(static_cast<size_t>(classes * classes)),
        q_(pairs_.size()),
        qp_(static_cast<size_t>(classes)) {}

  void Solve(const float* pairs, float* p) {
    for (int64_t i = 0, at = 0; i < k_; ++i) {
      for (int64_t j = i + 1; j < k_; ++j, ++at) {
        pairs_[i * k_ + j] = pairs[at];
        pairs_[j * k_ + i] = 1 - pairs[at];
      }
    }
    for (int64_t i = 0; i < k_; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < k_; ++j) {
        if (j == i) continue;
        sum += pairs_[j * k_ + i] * pairs_[j * k_ + i];
        q_[i * k_ + j] = -pairs_[j * k_ + i] * pairs_[i * k_ + j];
      }
      q_[i * k_ + i] = sum;
      p[i] = 1.0f / static_cast<float>(k_);
    }
    const float tolerance = 0.005f / static_cast<float>(k_);
    for (int64_t round = 0; round < std::max<int64_t>(100, k_); ++round) {
      if (!Improve(p, tolerance)) return;
    }
  }

 private:
  // One more iteration; false when p is accurate enough already.
  bool Improve(float* p, float tolerance) {
    float whole = 0;
    for (int64_t i = 0; i < k_; ++i) {
      qp_[i] = 0;
      for (int64_t j = 0; j < k_; ++j) qp_[i] += q_[i * k_ + j] * p[j];
      whole += p[i] * qp_[i];
    }
    float worst = 0;
    for (int64_t i = 0; i < k_; ++i) worst = std::max(worst, std::fabs(qp_[i] - whole));
    if (worst < tolerance) return false;
    for (int64_t i = 0; i < k_; ++i) {
      const float step = (-qp_[i] + whole) / q_[i * k_ + i], scale = 1 + step;
      p[i] += step;
      whole = (whole + step * (step * q_[i * k_ + i] + 2 * qp_[i])) / scale / scale;
      for (int64_t j = 0; j < k_; ++j) {
        qp_[j] = (qp_[j] + step * q_[i * k_ + j]) / scale;
        p[j] /= scale;
      }
    }
    return true;
  }

  const int64_t k_;
  std::vector<float> pairs_, q_, qp_;
};

Status CoupleProbabilities(const CoupleProbabilitiesAttrs& attrs, const Args& args) {
  const int64_t classes = attrs.classes, pairs = args.in(0).shape[1];
  const int64_t grain = GrainOf(SaturatingMul(classes * classes, 16), 256);
  ParallelFor(args.threads, args.in(0).shape[0], grain, [&](int64_t begin, int64_t end) {
    Coupling coupling(classes);
    for (int64_t row = begin; row < end; ++row) {
      coupling.Solve(args.In<float>(0) + row * pairs, args.Out<float>(0) + row * classes);
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<CoupleProbabilities>("CoupleProbabilities", kFloats),
    Row<TreeEnsemble>("TreeEnsemble", kFloats, &MakeFastTreeEnsemble),
};

}  // namespace

std::span<const KernelRow> TreesKernels() { return kRows; }

}  // namespace oncilla::cpu
