// ai.onnx.ml's tree ensembles, in their newest form (TreeEnsemble) and the older ones.
#include <algorithm>
#include <cmath>
#include <map>

#include "engine/import/onnx/domains/ml.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

// The children of nodes in any order; the canonical op wants each child after its parent.
struct Child {
  bool leaf = false;
  int64_t at = 0;
};
struct Branch {
  std::string test;
  int64_t feature = 0;
  bool missing = false;
  double value = 0;
  std::vector<double> members;
  Child yes, no;
};
struct Vote {
  int64_t target = 0;
  double weight = 0;
};
struct Forest {
  std::vector<Branch> branches;
  std::vector<std::vector<Vote>> leaves;
  std::vector<Child> roots;
};

Status CheckChild(const Forest& forest, const Child& child) {
  const size_t size = child.leaf ? forest.leaves.size() : forest.branches.size();
  if (child.at >= 0 && child.at < static_cast<int64_t>(size)) return {};
  return InvalidArgument("a tree leads to ", child.leaf ? "leaf " : "node ", child.at, " of ",
                         size);
}

// The branches that the roots lead to, each behind all that lead to it. Several branches may share
// a child: exporters of LightGBM write a set of categories as a chain of comparisons with one
// outcome. InvalidArgument for a cycle.
Result<std::vector<int64_t>> OrderOf(const Forest& forest) {
  constexpr int64_t kNotReached = -1;
  std::vector<int64_t> parents(forest.branches.size(), kNotReached);  // still without a place
  std::vector<int64_t> reached, order;
  const auto reach = [&](const Child& child, int64_t parent_count) -> Status {
    ONCILLA_TRY(CheckChild(forest, child));
    if (child.leaf) return {};
    int64_t& count = parents[static_cast<size_t>(child.at)];
    if (count == kNotReached) {
      count = 0;
      reached.push_back(child.at);
    }
    count += parent_count;
    return {};
  };
  for (const Child& root : forest.roots) ONCILLA_TRY(reach(root, 0));
  for (size_t i = 0; i < reached.size(); ++i) {
    const Branch& branch = forest.branches[static_cast<size_t>(reached[i])];
    ONCILLA_TRY(reach(branch.yes, 1));
    ONCILLA_TRY(reach(branch.no, 1));
  }
  for (int64_t at : reached) {
    if (parents[static_cast<size_t>(at)] == 0) order.push_back(at);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const Branch& branch = forest.branches[static_cast<size_t>(order[i])];
    for (const Child& child : {branch.yes, branch.no}) {
      if (!child.leaf && --parents[static_cast<size_t>(child.at)] == 0) order.push_back(child.at);
    }
  }
  for (int64_t at : reached) {
    if (parents[static_cast<size_t>(at)] > 0) {
      return InvalidArgument("tree node ", at, " belongs to a cycle or lies behind one");
    }
  }
  return order;
}

// Writes the branches in an order in which each leads to later ones.
Status WriteBranches(const Forest& forest, TreeEnsembleAttrs& attrs) {
  ONCILLA_ASSIGN(const std::vector<int64_t> order, OrderOf(forest));
  std::vector<int64_t> place(forest.branches.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  const auto named = [&](const Child& child) {
    return child.leaf ? -child.at - 1 : place[static_cast<size_t>(child.at)];
  };
  attrs.sets = {0};
  for (int64_t at : order) {
    const Branch& branch = forest.branches[static_cast<size_t>(at)];
    attrs.test.push_back(branch.test);
    attrs.feature.push_back(branch.feature);
    attrs.missing.push_back(branch.missing ? 1 : 0);
    attrs.value.push_back(branch.value);
    attrs.yes.push_back(named(branch.yes));
    attrs.no.push_back(named(branch.no));
    attrs.members.insert(attrs.members.end(), branch.members.begin(), branch.members.end());
    attrs.sets.push_back(std::ssize(attrs.members));
  }
  for (const Child& root : forest.roots) attrs.roots.push_back(named(root));
  return {};
}

Result<TreeEnsembleAttrs> AttrsOf(const Forest& forest, int64_t targets, std::string combine) {
  TreeEnsembleAttrs attrs;
  attrs.targets = targets;
  attrs.combine = std::move(combine);
  ONCILLA_TRY(WriteBranches(forest, attrs));
  if (attrs.members.empty()) attrs.sets.clear();
  attrs.starts = {0};
  for (const std::vector<Vote>& leaf : forest.leaves) {
    for (const Vote& vote : leaf) {
      attrs.target.push_back(vote.target);
      attrs.weight.push_back(vote.weight);
    }
    attrs.starts.push_back(std::ssize(attrs.target));
  }
  return attrs;
}

// A node's test, by the numbers of the newest form.
constexpr std::string_view kTests[] = {"le", "lt", "ge", "gt", "eq", "ne", "in"};
constexpr int kMember = 6;

Result<std::vector<double>> Numbers(OnnxLowering& b, std::string_view name) {
  ONCILLA_ASSIGN(const Tensor tensor, b.TensorAttr(name));
  return ToDoubles(tensor);
}

Result<bool> TracksTrue(const std::vector<int64_t>& list, size_t i, size_t nodes) {
  if (list.empty()) return false;
  if (list.size() != nodes) return InvalidArgument(list.size(), " and ", nodes, " tree nodes");
  return list[i] != 0;
}

Result<Forest> ReadForest(OnnxLowering& b) {
  Forest forest;
  ONCILLA_ASSIGN(const auto modes, Numbers(b, "nodes_modes"));
  ONCILLA_ASSIGN(const auto splits, Numbers(b, "nodes_splits"));
  ONCILLA_ASSIGN(const auto weights, Numbers(b, "leaf_weights"));
  ONCILLA_ASSIGN(const auto features, b.IntList("nodes_featureids"));
  ONCILLA_ASSIGN(const auto missing, b.IntList("nodes_missing_value_tracks_true"));
  ONCILLA_ASSIGN(const auto targets, b.IntList("leaf_targetids"));
  ONCILLA_ASSIGN(const auto roots, b.IntList("tree_roots"));
  ONCILLA_ASSIGN(const auto yes, b.IntList("nodes_truenodeids"));
  ONCILLA_ASSIGN(const auto no, b.IntList("nodes_falsenodeids"));
  ONCILLA_ASSIGN(const auto yes_leafs, b.IntList("nodes_trueleafs"));
  ONCILLA_ASSIGN(const auto no_leafs, b.IntList("nodes_falseleafs"));
  std::vector<double> members;
  if (b.HasAttr("membership_values")) {
    ONCILLA_ASSIGN(members, Numbers(b, "membership_values"));
  }
  const size_t nodes = modes.size();
  for (size_t size :
       {splits.size(), features.size(), yes.size(), no.size(), yes_leafs.size(), no_leafs.size()}) {
    if (size != nodes) return InvalidArgument("lists of ", nodes, " and ", size, " tree nodes");
  }
  if (targets.size() != weights.size()) return InvalidArgument("lists of leaves do not fit");
  size_t member = 0;
  for (size_t i = 0; i < nodes; ++i) {
    if (!(modes[i] >= 0 && modes[i] < static_cast<double>(std::size(kTests)))) {
      return InvalidArgument("a tree node has the mode ", modes[i]);
    }
    Branch branch;
    const auto mode = static_cast<size_t>(modes[i]);
    branch.test = kTests[mode];
    branch.feature = features[i];
    branch.value = splits[i];
    ONCILLA_ASSIGN(branch.missing, TracksTrue(missing, i, nodes));
    branch.yes = {yes_leafs[i] != 0, yes[i]};
    branch.no = {no_leafs[i] != 0, no[i]};
    if (mode == kMember) {
      for (; member < members.size() && !std::isnan(members[member]); ++member) {
        branch.members.push_back(members[member]);
      }
      // A NaN ends a set; the last one may end with the list.
      if (member < members.size()) {
        ++member;
      } else if (branch.members.empty()) {
        return InvalidArgument("a set of members is missing");
      }
    }
    forest.branches.push_back(std::move(branch));
  }
  if (member != members.size()) return InvalidArgument("there are more members than nodes ask");
  for (size_t i = 0; i < targets.size(); ++i) forest.leaves.push_back({{targets[i], weights[i]}});
  for (int64_t root : roots) forest.roots.push_back({false, root});
  return forest;
}

Result<Values> LowerTreeEnsemble(OnnxLowering& b) {
  b.Ignore("nodes_hitrates");
  ONCILLA_ASSIGN(const int64_t aggregate, b.Int("aggregate_function", 1));
  ONCILLA_ASSIGN(const int64_t transform, b.Int("post_transform", 0));
  ONCILLA_ASSIGN(const int64_t targets, b.Int("n_targets", 1));
  constexpr const char* kCombine[] = {"mean", "sum", "min", "max"};
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (aggregate < 0 || aggregate > 3) return InvalidArgument("aggregate_function is ", aggregate);
  if (transform < 0 || transform > 4) return InvalidArgument("post_transform is ", transform);
  ONCILLA_ASSIGN(const Forest forest, ReadForest(b));
  ONCILLA_ASSIGN(const TreeEnsembleAttrs attrs, AttrsOf(forest, targets, kCombine[aggregate]));
  ONCILLA_ASSIGN(const ValueId scores, b.Add(attrs, {b.in(0)}, "scores"));
  return One(AddPostTransform(b, scores, kTransforms[transform], ""));
}

// The numbers of an attribute, or of the attribute that holds them as a tensor (from version 3 on).
Result<std::vector<double>> OldNumbers(OnnxLowering& b, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  if (b.version() >= 3 && b.HasAttr(as_tensor)) return Numbers(b, as_tensor);
  ONCILLA_ASSIGN(const std::vector<float> list, b.FloatList(name));
  return std::vector<double>(list.begin(), list.end());
}

using NodeKey = std::pair<int64_t, int64_t>;  // tree, node

// Adds the votes of the leaves; their attributes begin with `prefix`.
Status ReadVotes(OnnxLowering& b, const std::string& prefix, const std::map<NodeKey, Child>& known,
                 Forest& forest) {
  ONCILLA_ASSIGN(const auto trees, b.IntList(prefix + "_treeids"));
  ONCILLA_ASSIGN(const auto nodes, b.IntList(prefix + "_nodeids"));
  ONCILLA_ASSIGN(const auto ids, b.IntList(prefix + "_ids"));
  ONCILLA_ASSIGN(const auto weights, OldNumbers(b, prefix + "_weights"));
  if (trees.size() != nodes.size() || ids.size() != nodes.size() ||
      weights.size() != nodes.size()) {
    return InvalidArgument("the lists of ", prefix, " do not fit each other");
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto found = known.find({trees[i], nodes[i]});
    if (found == known.end() || !found->second.leaf) {
      return InvalidArgument("a vote of node ", nodes[i], " of tree ", trees[i],
                             ", which is not a leaf");
    }
    forest.leaves[static_cast<size_t>(found->second.at)].push_back({ids[i], weights[i]});
  }
  return {};
}

// Nodes are named by tree and number; a tree begins with the first of its nodes.
Result<Forest> ReadOldForest(OnnxLowering& b, const std::string& votes) {
  constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  ONCILLA_ASSIGN(const auto trees, b.IntList("nodes_treeids"));
  ONCILLA_ASSIGN(const auto ids, b.IntList("nodes_nodeids"));
  ONCILLA_ASSIGN(const auto features, b.IntList("nodes_featureids"));
  ONCILLA_ASSIGN(const auto modes, b.StringList("nodes_modes"));
  ONCILLA_ASSIGN(const auto values, OldNumbers(b, "nodes_values"));
  ONCILLA_ASSIGN(const auto missing, b.IntList("nodes_missing_value_tracks_true"));
  ONCILLA_ASSIGN(const auto yes, b.IntList("nodes_truenodeids"));
  ONCILLA_ASSIGN(const auto no, b.IntList("nodes_falsenodeids"));
  const size_t nodes = ids.size();
  for (size_t size :
       {trees.size(), features.size(), modes.size(), values.size(), yes.size(), no.size()}) {
    if (size != nodes) return InvalidArgument("lists of ", nodes, " and ", size, " tree nodes");
  }
  Forest forest;
  std::map<NodeKey, Child> known;
  int64_t branches = 0;
  for (size_t i = 0; i < nodes; ++i) {
    const bool leaf = modes[i] == "LEAF";
    const Child child = {leaf, leaf ? std::ssize(forest.leaves) : branches};
    if (!known.emplace(NodeKey(trees[i], ids[i]), child).second) {
      return InvalidArgument("tree ", trees[i], " has two nodes ", ids[i]);
    }
    if (i == 0 || trees[i] != trees[i - 1]) forest.roots.push_back(child);
    if (leaf) forest.leaves.emplace_back();
    branches += leaf ? 0 : 1;
  }
  for (size_t i = 0; i < nodes; ++i) {
    if (modes[i] == "LEAF") continue;
    const auto* mode = std::find(std::begin(kModes), std::end(kModes), std::string_view(modes[i]));
    if (mode == std::end(kModes)) return InvalidArgument("a tree node of mode ", modes[i]);
    Branch branch;
    branch.test = kTests[mode - std::begin(kModes)];
    branch.feature = features[i];
    branch.value = values[i];
    ONCILLA_ASSIGN(branch.missing, TracksTrue(missing, i, nodes));
    for (bool side : {true, false}) {
      const int64_t to = side ? yes[i] : no[i];
      const auto found = known.find({trees[i], to});
      if (found == known.end()) {
        return InvalidArgument("tree ", trees[i], " leads to a node ", to, " that it lacks");
      }
      (side ? branch.yes : branch.no) = found->second;
    }
    forest.branches.push_back(std::move(branch));
  }
  ONCILLA_TRY(ReadVotes(b, votes, known, forest));
  return forest;
}

// Adds base values to the scores [N, targets].
Result<ValueId> AddBase(OnnxLowering& b, ValueId scores, int64_t targets,
                        const std::vector<double>& base) {
  if (base.empty()) return scores;
  if (std::ssize(base) != targets) {
    return InvalidArgument(base.size(), " base values for ", targets, " targets");
  }
  const std::vector<float> numbers(base.begin(), base.end());
  const ValueId offset = b.Constant(Tensor::Of<float>(DType::kF32, {targets}, numbers));
  return b.Add("Add", {}, {scores, offset}, "with_base");
}

Result<ValueId> AddOldScores(OnnxLowering& b, const Forest& forest, int64_t targets,
                             const std::string& combine, const std::vector<double>& base) {
  b.Ignore("nodes_hitrates");
  b.Ignore("nodes_hitrates_as_tensor");
  ONCILLA_ASSIGN(const TreeEnsembleAttrs attrs, AttrsOf(forest, targets, combine));
  // Scores are float, but a double input is compared as double.
  const DType compute = b.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), compute, "x"));
  ONCILLA_ASSIGN(ValueId scores, b.Add(attrs, {x}, "votes"));
  ONCILLA_ASSIGN(scores, b.Cast(scores, DType::kF32, "scores"));
  return AddBase(b, scores, targets, base);
}

Result<Values> LowerTreeRegressor(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string aggregate, b.String("aggregate_function", "SUM"));
  ONCILLA_ASSIGN(const std::string transform, b.String("post_transform", "NONE"));
  ONCILLA_ASSIGN(const int64_t targets, b.Int("n_targets", 1));
  const char* combine = aggregate == "SUM"       ? "sum"
                        : aggregate == "AVERAGE" ? "mean"
                        : aggregate == "MIN"     ? "min"
                        : aggregate == "MAX"     ? "max"
                                                 : nullptr;
  if (combine == nullptr) return InvalidArgument("aggregate_function is '", aggregate, "'");
  ONCILLA_ASSIGN(const Forest forest, ReadOldForest(b, "target"));
  ONCILLA_ASSIGN(const std::vector<double> base, OldNumbers(b, "base_values"));
  ONCILLA_ASSIGN(const ValueId scores, AddOldScores(b, forest, targets, combine, base));
  return One(AddPostTransform(b, scores, transform, ""));
}

// Two classes of which only one gets votes, in the sense of ONNX Runtime, for which scikit-learn's
// converter writes models. The score decides: as a probability if no weight is negative, else by
// its sign. Votes for class 0 are the score of the second class, and the first class gets the
// complement, unless both have base values; with votes for class 1, the first class gets none, and
// a single base value, which is its own, does not count.
Result<Values> LowerOneScore(OnnxLowering& b, const Forest& forest, int64_t voted,
                             const std::string& transform) {
  bool probability = true;
  for (const std::vector<Vote>& leaf : forest.leaves) {
    for (const Vote& vote : leaf) probability &= vote.weight >= 0;
  }
  ONCILLA_ASSIGN(std::vector<double> base, OldNumbers(b, "base_values"));
  if (base.size() > 2) return InvalidArgument(base.size(), " base values for two classes");
  const bool based = base.size() == 2;
  if (voted == 1 && based) {
    // ONNX Runtime gives the base value alone, whatever the votes.
    return Unsupported("with votes for the second of two classes alone and base values of both");
  }
  if (voted == 0 && !based && transform == "PROBIT") {
    return Unsupported("with votes for the first of two classes alone and post_transform PROBIT");
  }
  base.resize(voted == 0 ? std::min<size_t>(base.size(), 1) : 0);
  ONCILLA_ASSIGN(ValueId scores, AddOldScores(b, forest, voted + 1, "sum", base));
  ValueId score = scores;  // [N, 1]
  if (voted == 1) {
    ONCILLA_ASSIGN(
        score, b.Add("Slice", {}, {scores, b.Ints({1}), b.Ints({2}), b.Ints({1})}, "of_second"));
  }
  ONCILLA_ASSIGN(const ValueId bound, b.Scalar(DType::kF32, probability ? 0.5 : 0));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {score, bound}, "above"));
  ONCILLA_ASSIGN(const ValueId number, b.Cast(above, DType::kI64, "number"));
  ONCILLA_ASSIGN(const ValueId place, b.Add(ReshapeAttrs{}, {number, b.Ints({-1})}, "place"));
  ONCILLA_ASSIGN(const ValueId label,
                 AddLabelAt(b, place, 2, "classlabels_int64s", "classlabels_strings"));
  if (voted == 1) {
    ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
    return Values{label, shown};
  }
  if (based) {
    ONCILLA_ASSIGN(const ValueId none, b.Add("Sub", {}, {score, score}, "none_of_second"));
    ONCILLA_ASSIGN(scores, b.Add(ConcatAttrs{.axis = 1}, {score, none}, "of_both"));
    ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
    return Values{label, shown};
  }
  const bool bends = transform == "LOGISTIC";  // the others leave one score as it is
  const bool whole = probability && !bends;
  ONCILLA_ASSIGN(const ValueId all, b.Scalar(DType::kF32, whole ? 1 : 0));
  ONCILLA_ASSIGN(const ValueId other, b.Add("Sub", {}, {all, score}, "of_first"));
  ONCILLA_ASSIGN(scores, b.Add(ConcatAttrs{.axis = 1}, {other, score}, "of_both"));
  ONCILLA_ASSIGN(const ValueId shown,
                 AddPostTransform(b, scores, bends ? transform : "NONE", "shown"));
  return Values{label, shown};
}

Result<Values> LowerTreeClassifier(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string transform, b.String("post_transform", "NONE"));
  ONCILLA_ASSIGN(const auto numbers, b.IntList("classlabels_int64s"));
  ONCILLA_ASSIGN(const auto words, b.StringList("classlabels_strings"));
  const auto classes = static_cast<int64_t>(std::max(numbers.size(), words.size()));
  ONCILLA_ASSIGN(const Forest forest, ReadOldForest(b, "class"));
  bool first = false, other = false;
  for (const std::vector<Vote>& leaf : forest.leaves) {
    for (const Vote& vote : leaf) (vote.target == 0 ? first : other) = true;
  }
  if (classes < 2) return Unsupported("with ", classes, " classes");
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (std::find(std::begin(kTransforms), std::end(kTransforms), transform) ==
      std::end(kTransforms)) {
    return InvalidArgument("post_transform is '", transform, "'");
  }
  if (classes == 2 && first != other) return LowerOneScore(b, forest, other ? 1 : 0, transform);
  ONCILLA_ASSIGN(std::vector<double> base, OldNumbers(b, "base_values"));
  if (classes == 2 && base.size() == 1) base.push_back(0);
  ONCILLA_ASSIGN(const ValueId scores, AddOldScores(b, forest, classes, "sum", base));
  ONCILLA_ASSIGN(const ValueId label,
                 AddTopLabel(b, scores, classes, "classlabels_int64s", "classlabels_strings"));
  ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
  return Values{label, shown};
}

constexpr OnnxOpRow kRows[] = {
    {"TreeEnsemble", 5, kNewestOnnxMl, 1, "", LowerTreeEnsemble},
    {"TreeEnsembleClassifier", 1, 4, 1, "", LowerTreeClassifier},
    {"TreeEnsembleRegressor", 1, 4, 1, "", LowerTreeRegressor},
};

}  // namespace

std::span<const OnnxOpRow> OnnxMlTreeRows() { return kRows; }

}  // namespace oncilla
