// Prefix search for connectionist temporal classification, after Graves, "Supervised Sequence
// Labelling with Recurrent Neural Networks", chapter 7, pruned as TensorFlow does it: a tree of
// prefixes, of which the `beam` most probable are alive at each step. A step first extends the
// living prefixes by a blank or by their own last class, then adds their children where these are
// more probable than the worst that is alive.
#include "backends/cpu/kernels/ctc_beam.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <unordered_map>

namespace oncilla::cpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LogSum(double a, double b) {
  if (a == kNever && b == kNever) return kNever;
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// Logarithms of the probabilities that a prefix ends in a blank, in its last class, and in either.
struct Chances {
  double blank = kNever, label = kNever, total = kNever;
};

struct Prefix {
  int parent = -1;
  int label = -1;
  Chances before = {}, now = {};
  std::unordered_map<int, int> children = {};  // by label
  bool alive() const { return now.total != kNever; }
};

class Search {
 public:
  explicit Search(size_t beam) : beam_(beam) {
    Prefix root;
    root.now.blank = root.now.total = 0;
    prefixes_.push_back(std::move(root));
    Keep(0);
  }

  // Takes the logits of one step; the last class is the blank.
  void Step(std::span<const double> logits) {
    double most = kNever, sum = 0;
    for (double x : logits) most = std::max(most, x);
    for (double x : logits) sum += std::exp(x - most);
    const double offset = most + std::log(sum);
    const std::vector<int> branches = Best();
    leaves_.clear();
    for (int b : branches) At(b).before = At(b).now;
    for (int b : branches) {
      Prefix& prefix = At(b);
      if (prefix.parent >= 0) {
        const Prefix& parent = At(prefix.parent);
        if (parent.alive()) {
          // Two equal classes in a row count as one, so a blank must have stood between them.
          const double from =
              prefix.label == parent.label ? parent.before.blank : parent.before.total;
          prefix.now.label = LogSum(prefix.now.label, from);
        }
        prefix.now.label += logits[static_cast<size_t>(prefix.label)] - offset;
      }
      prefix.now.blank = prefix.before.total + logits.back() - offset;
      prefix.now.total = LogSum(prefix.now.blank, prefix.now.label);
      Keep(b);
    }
    for (int b : branches) {
      if (!Competes(At(b).before.total)) continue;
      for (int label = 0; label + 1 < static_cast<int>(logits.size()); ++label) {
        const auto known = At(b).children.find(label);
        if (known != At(b).children.end() && At(known->second).alive()) continue;
        const Chances& from = At(b).before;
        Chances chances;
        chances.label = logits[static_cast<size_t>(label)] - offset +
                        (label == At(b).label ? from.blank : from.total);
        chances.total = chances.label;
        const bool found = known != At(b).children.end();
        if (!Competes(chances.total)) {
          if (found) At(known->second).before = At(known->second).now = {};
          continue;
        }
        int child = found ? known->second : -1;
        if (!found) {
          child = static_cast<int>(prefixes_.size());
          prefixes_.push_back({.parent = b, .label = label});
          At(b).children.emplace(label, child);
        }
        if (leaves_.size() == beam_) {
          At(leaves_.begin()->second).now = {};
          leaves_.erase(leaves_.begin());
        }
        At(child).now = chances;
        Keep(child);
      }
    }
  }

  // The living prefixes, the most probable first.
  std::vector<int> Best() const {
    std::vector<int> out;
    for (auto leaf = leaves_.rbegin(); leaf != leaves_.rend(); ++leaf) out.push_back(leaf->second);
    return out;
  }

  CtcPath Path(int prefix, bool merge) {
    CtcPath path;
    path.chance = At(prefix).now.total;
    int last = -1;
    for (int p = prefix; At(p).parent >= 0; p = At(p).parent) {
      if (!merge || At(p).label != last) path.classes.push_back(At(p).label);
      last = At(p).label;
    }
    std::reverse(path.classes.begin(), path.classes.end());
    return path;
  }

 private:
  Prefix& At(int p) { return prefixes_[static_cast<size_t>(p)]; }
  void Keep(int p) { leaves_.emplace(At(p).now.total, p); }
  bool Competes(double total) const {
    return total > kNever && (leaves_.size() < beam_ || total > leaves_.begin()->first);
  }

  const size_t beam_;
  std::deque<Prefix> prefixes_;
  std::set<std::pair<double, int>> leaves_;
};

}  // namespace

Result<std::vector<CtcPath>> SearchCtcBeam(
    const CtcBeamAttrs& attrs, int64_t steps,
    const std::function<std::span<const double>(int64_t)>& logits) {
  Search search(static_cast<size_t>(attrs.beam));
  for (int64_t t = 0; t < steps; ++t) {
    const std::span<const double> row = logits(t);
    for (double x : row) {
      if (std::isnan(x)) return InvalidArgument("step ", t, " has NaN among its inputs");
    }
    search.Step(row);
  }
  const std::vector<int> best = search.Best();
  if (std::ssize(best) < attrs.paths) {
    return InvalidArgument("Less leaves in the beam search than requested: ", best.size(), " for ",
                           attrs.paths, " paths");
  }
  std::vector<CtcPath> paths;
  for (int64_t i = 0; i < attrs.paths; ++i) {
    paths.push_back(search.Path(best[static_cast<size_t>(i)], attrs.merge));
  }
  return paths;
}

}  // namespace oncilla::cpu
