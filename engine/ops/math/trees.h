// Attributes of tree ensembles: decision trees whose leaves are combined.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, F] -> y[N, targets]: in each tree a row of x descends from the root to a leaf, and the
// weights of the leaves reached are combined by target. Sums are computed in double; a target
// without leaves gives 0.
//
// Nodes are lists of one length: at node i the row continues at `yes[i]` if its feature passes the
// test, else at `no[i]`; a child c >= 0 is a node, c < 0 is leaf -c - 1. A row whose feature is NaN
// continues at `yes` if missing[i]. Tests: le, lt, ge, gt, eq, ne against value[i], or `in` the set
// of values members[sets[i]] .. members[sets[i + 1]] (sets is empty if no node uses it).
// Leaf i has the entries starts[i] .. starts[i + 1] of `target` and `weight`.
struct TreeEnsembleAttrs {
  int64_t targets = 1;
  std::string combine = "sum";  // sum, mean, min, max
  std::vector<int64_t> roots;   // each a node or a leaf, as for children
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

// InvalidArgument for lists that do not fit each other, and children that are out of range or form
// a cycle: a child must come after its parent.
Status CheckTrees(const TreeEnsembleAttrs& attrs);

}  // namespace oncilla
