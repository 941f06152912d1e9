// Attributes of tree ensembles: decision trees whose leaves add up.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, F] -> y[N, targets]: in each tree a row of x goes from the root to a leaf, and the weights
// of the leaves reached are put together by target. Sums are in double; no leaf of a target gives
// 0.
//
// Nodes are lists of one length: at node i the row goes to `yes[i]` where its feature holds, else
// to `no[i]`; a child c >= 0 is a node, c < 0 is leaf -c - 1. A row whose feature is NaN goes to
// `yes` where missing[i]. Tests: le, lt, ge, gt, eq, ne against value[i], or `in` the set of values
// members[sets[i]] .. members[sets[i + 1]] (sets is empty where no node asks).
// Leaf i has the entries starts[i] .. starts[i + 1] of `target` and `weight`.
struct TreeEnsembleAttrs {
  int64_t targets = 1;
  std::string combine = "sum";  // sum, mean, min, max
  std::vector<int64_t> roots;   // a node or leaf each, as children are
  std::vector<std::string> test;
  std::vector<int64_t> feature, yes, no, missing;
  std::vector<double> value;
  std::vector<int64_t> sets;
  std::vector<double> members;
  std::vector<int64_t> starts, target;
  std::vector<double> weight;
  void Fields(auto&& field) {
    field("targets", targets);
    field("combine", combine);
    field("roots", roots);
    field("test", test);
    field("feature", feature);
    field("yes", yes);
    field("no", no);
    field("missing", missing);
    field("value", value);
    field("sets", sets);
    field("members", members);
    field("starts", starts);
    field("target", target);
    field("weight", weight);
  }
};

// InvalidArgument for lists that do not fit each other, children that lead nowhere or in a circle:
// a child must stand behind its parent.
Status CheckTrees(const TreeEnsembleAttrs& attrs);

}  // namespace oncilla
