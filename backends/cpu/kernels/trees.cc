// Tree ensembles on the CPU.
#include "engine/ops/math/trees.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
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

// Puts one row's leaves together; `sum` and `met` hold a number per target.
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

const KernelRow kRows[] = {
    Row<TreeEnsemble>("TreeEnsemble", kFloats),
};

}  // namespace

std::span<const KernelRow> TreesKernels() { return kRows; }

}  // namespace oncilla::cpu
