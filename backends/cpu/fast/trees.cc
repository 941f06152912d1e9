// Fast TreeEnsemble: nodes of 16 bytes, and eight descents at a time, so that a load does not wait
// for the comparison before it. The sums are those of plain code: per row in the order of the
// trees, in double.
#include "engine/ops/math/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"

namespace oncilla::cpu {
namespace {

enum Test : uint32_t { kLe, kLt, kGe, kGt, kEq, kNe, kTests };
constexpr uint32_t kMixed = kTests;  // nodes with different tests, or that NaN passes
constexpr int kTogether = 8;         // descents

struct Node {
  float value;
  uint32_t what;  // feature << 4 | test << 1 | whether NaN passes
  int32_t yes, no;
};

template <uint32_t kTest>
bool Passes(const Node& node, float x) {
  const uint32_t test = kTest != kMixed ? kTest : node.what >> 1 & 7;
  bool passes = false;
  switch (test) {
    case kLe:
      passes = x <= node.value;
      break;
    case kLt:
      passes = x < node.value;
      break;
    case kGe:
      passes = x >= node.value;
      break;
    case kGt:
      passes = x > node.value;
      break;
    case kEq:
      passes = x == node.value;
      break;
    default:
      passes = x != node.value;
  }
  if constexpr (kTest == kMixed) return passes || ((node.what & 1) != 0 && std::isnan(x));
  return passes;
}

using Places = std::array<int32_t, kTogether>;
using Rows = std::array<const float*, kTogether>;

// Descends from all places to leaves. A leaf leads to itself.
template <uint32_t kTest>
void Descend(const Node* nodes, const Rows& x, Places& at) {
  int32_t moved = 1;
  while (moved != 0) {
    moved = 0;
    for (int i = 0; i < kTogether; ++i) {
      const Node& node = nodes[at[i]];
      const int32_t next = Passes<kTest>(node, x[i][node.what >> 4]) ? node.yes : node.no;
      moved |= next ^ at[i];
      at[i] = next;
    }
  }
}
using DescendFunction = void (*)(const Node*, const Rows&, Places&);
constexpr DescendFunction kDescend[] = {&Descend<kLe>,   &Descend<kLt>, &Descend<kGe>,
                                        &Descend<kGt>,   &Descend<kEq>, &Descend<kNe>,
                                        &Descend<kMixed>};

class FastTreeEnsemble : public CpuKernel {
 public:
  FastTreeEnsemble(const NodeView& node, TreeEnsembleAttrs attrs, std::vector<Node> nodes,
                   uint32_t test)
      : CpuKernel(node),
        attrs_(std::move(attrs)),
        nodes_(std::move(nodes)),
        descend_(kDescend[test]),
        extreme_(attrs_.combine == "min"   ? Extreme::kLeast
                 : attrs_.combine == "max" ? Extreme::kMost
                                           : Extreme::kNone) {}
  std::string description() const override { return "eight descents at a time"; }

  Status Run(const Args& args) const override {
    const Shape in = args.in(0).shape;
    for (int64_t feature : attrs_.feature) {
      if (feature >= in[1]) return InvalidArgument("a tree asks for feature ", feature);
    }
    const int64_t work = std::ssize(attrs_.roots) * 16 + attrs_.targets;
    ParallelFor(args.threads, in[0], GrainOf(work, 256), [&](int64_t begin, int64_t end) {
      Sums sums(kTogether * attrs_.targets);
      for (; begin < end && !args.threads.ended(); begin += kTogether) {
        const int64_t rows = std::min<int64_t>(kTogether, end - begin);
        const float* x = args.In<float>(0) + begin * in[1];
        sums.Clear();
        rows > 2 ? RowsTogether(x, in[1], rows, sums) : TreesTogether(x, in[1], rows, sums);
        float* y = args.Out<float>(0) + begin * attrs_.targets;
        const double trees = static_cast<double>(std::max<size_t>(attrs_.roots.size(), 1));
        const double parts = attrs_.combine == "mean" ? trees : 1;
        for (int64_t i = 0; i < rows * attrs_.targets; ++i) {
          y[i] = static_cast<float>(sums.value[static_cast<size_t>(i)] / parts);
        }
      }
    });
    return Status();
  }

 private:
  enum class Extreme { kNone, kLeast, kMost };
  // Per row of a block and target; `met` is for extremes.
  struct Sums {
    explicit Sums(int64_t n) : value(static_cast<size_t>(n)), met(static_cast<size_t>(n)) {}
    void Clear() {
      std::fill(value.begin(), value.end(), 0.0);
      std::fill(met.begin(), met.end(), 0);
    }
    std::vector<double> value;
    std::vector<char> met;
  };

  // Eight rows through one tree after the other. Missing rows repeat the last one.
  void RowsTogether(const float* x, int64_t features, int64_t rows, Sums& sums) const {
    Rows row;
    for (int i = 0; i < kTogether; ++i) row[i] = x + std::min<int64_t>(i, rows - 1) * features;
    for (int64_t root : attrs_.roots) {
      Places at;
      at.fill(PlaceOf(root));
      descend_(nodes_.data(), row, at);
      for (int64_t r = 0; r < rows; ++r) Add(at[static_cast<size_t>(r)], r, sums);
    }
  }
  // Each row through eight trees at a time. Missing trees repeat the last one.
  void TreesTogether(const float* x, int64_t features, int64_t rows, Sums& sums) const {
    const int64_t trees = std::ssize(attrs_.roots);
    for (int64_t r = 0; r < rows; ++r) {
      Rows row;
      row.fill(x + r * features);
      for (int64_t first = 0; first < trees; first += kTogether) {
        Places at;
        for (int i = 0; i < kTogether; ++i) {
          at[i] = PlaceOf(attrs_.roots[static_cast<size_t>(std::min(first + i, trees - 1))]);
        }
        descend_(nodes_.data(), row, at);
        for (int64_t i = 0; i < std::min<int64_t>(kTogether, trees - first); ++i) {
          Add(at[static_cast<size_t>(i)], r, sums);
        }
      }
    }
  }
  // Leaves lie behind the branches.
  int32_t PlaceOf(int64_t child) const {
    return static_cast<int32_t>(child >= 0 ? child : std::ssize(attrs_.feature) - (child + 1));
  }
  void Add(int32_t place, int64_t row, Sums& sums) const {
    const size_t leaf = static_cast<size_t>(place) - attrs_.feature.size();
    for (int64_t k = attrs_.starts[leaf]; k < attrs_.starts[leaf + 1]; ++k) {
      const auto entry = static_cast<size_t>(k);
      const auto at = static_cast<size_t>(row * attrs_.targets + attrs_.target[entry]);
      double& value = sums.value[at];
      const double weight = attrs_.weight[entry];
      if (extreme_ == Extreme::kNone) {
        value += weight;
      } else if (sums.met[at] == 0) {
        value = weight;
        sums.met[at] = 1;
      } else {
        value = extreme_ == Extreme::kLeast ? std::min(value, weight) : std::max(value, weight);
      }
    }
  }

  const TreeEnsembleAttrs attrs_;
  const std::vector<Node> nodes_;  // branches, then leaves
  const DescendFunction descend_;
  const Extreme extreme_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastTreeEnsemble(const NodeView& node) {
  ONCILLA_ASSIGN(TreeEnsembleAttrs attrs, ReadAttrs<TreeEnsembleAttrs>(*node.attrs));
  constexpr std::string_view kNames[] = {"le", "lt", "ge", "gt", "eq", "ne"};
  constexpr int64_t kMostFeatures = int64_t{1} << 28;
  const int64_t branches = std::ssize(attrs.feature);
  const int64_t leaves = std::max<int64_t>(std::ssize(attrs.starts) - 1, 0);
  constexpr int64_t kMostTargets = int64_t{1} << 16;  // of a block of rows at once
  if (node.inputs[0].dtype != DType::kF32 || attrs.roots.empty() || attrs.targets > kMostTargets ||
      branches + leaves > std::numeric_limits<int32_t>::max() ||
      node.inputs[0].desc().elements() == 0) {
    return nullptr;
  }
  const auto place = [&](int64_t child) {
    return static_cast<int32_t>(child >= 0 ? child : branches - (child + 1));
  };
  std::vector<Node> nodes;
  nodes.reserve(static_cast<size_t>(branches + leaves));
  uint32_t all = kTests + 1;  // the test of all nodes; none yet
  for (size_t i = 0; i < attrs.feature.size(); ++i) {
    const auto* test = std::find(std::begin(kNames), std::end(kNames), attrs.test[i]);
    const auto value = static_cast<float>(attrs.value[i]);
    // Plain code takes sets, and numbers that are no floats.
    if (test == std::end(kNames) || static_cast<double>(value) != attrs.value[i] ||
        attrs.feature[i] >= kMostFeatures) {
      return nullptr;
    }
    const auto number = static_cast<uint32_t>(test - std::begin(kNames));
    const uint32_t missing = attrs.missing[i] != 0 ? 1 : 0;
    const bool same = missing == 0 && (all == kTests + 1 || all == number);
    all = same ? number : kMixed;
    nodes.push_back({value, static_cast<uint32_t>(attrs.feature[i]) << 4 | number << 1 | missing,
                     place(attrs.yes[i]), place(attrs.no[i])});
  }
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    const auto self = static_cast<int32_t>(branches + leaf);
    nodes.push_back({0, 0, self, self});
  }
  if (all > kMixed) all = kMixed;
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastTreeEnsemble>(node, std::move(attrs), std::move(nodes), all));
}

}  // namespace oncilla::cpu
