// Tree ensembles: inference and row.
#include "engine/ops/math/trees.h"

#include <algorithm>

#include "engine/ops/math/coupling.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The scratch memory of coupling is quadratic in the number of classes.
constexpr int64_t kMostCoupledClasses = 4096;

constexpr std::string_view kTests[] = {"le", "lt", "ge", "gt", "eq", "ne", "in"};

// Whether `starts` divides a list of `size` elements into `parts` ranges; its last entry is the
// end.
bool AreStarts(const std::vector<int64_t>& starts, size_t parts, size_t size) {
  return starts.size() == parts + 1 && starts.front() == 0 &&
         starts.back() == static_cast<int64_t>(size) &&
         std::is_sorted(starts.begin(), starts.end());
}

Result<Facts> InferTreeEnsemble(const TreeEnsembleAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_TRY(RequireRank(in[0], 2, "input"));
  ONCILLA_TRY(CheckTrees(attrs));
  Dim rows;
  if (in[0].shape.ranked()) {
    rows = in[0].shape[0];
    const Dim& features = in[0].shape[1];
    for (int64_t feature : attrs.feature) {
      if (features.known() && feature >= features.size) {
        return InvalidArgument("a tree asks for feature ", feature, " of ", features.size);
      }
    }
  }
  return Facts{Fact::Of(in[0].dtype, PartialShape({rows, Dim(attrs.targets)}))};
}

Result<Facts> InferCoupleProbabilities(const CoupleProbabilitiesAttrs& attrs,
                                       std::span<const Fact> in) {
  if (in[0].dtype != DType::kF32) return InvalidArgument("probabilities of ", in[0].dtype);
  ONCILLA_TRY(RequireRank(in[0], 2, "input"));
  if (attrs.classes < 2 || attrs.classes > kMostCoupledClasses) {
    return InvalidArgument("there are ", attrs.classes, " classes");
  }
  const int64_t pairs = attrs.classes * (attrs.classes - 1) / 2;
  Dim rows;
  if (in[0].shape.ranked()) {
    rows = in[0].shape[0];
    const Dim& given = in[0].shape[1];
    if (given.known() && given.size != pairs) {
      return InvalidArgument(given.size, " pairs of ", attrs.classes, " classes");
    }
  }
  return Facts{Fact::Of(DType::kF32, PartialShape({rows, Dim(attrs.classes)}))};
}

constexpr OpDef kTreesOps[] = {
    Op<InferCoupleProbabilities>(
        "CoupleProbabilities",
        {.inputs = {1, 1}, .axes = Samples(), .storage = StorageRule::kSteps}),
    Op<InferTreeEnsemble>("TreeEnsemble",
                          {.inputs = {1, 1}, .axes = Samples(), .storage = StorageRule::kSteps}),
};

}  // namespace

// Everything that kernels follow without checks is checked here: lengths, leaves, and that children
// come after their parents, so that a walk from the root ends.
Status CheckTrees(const TreeEnsembleAttrs& attrs) {
  const size_t nodes = attrs.test.size();
  for (size_t size : {attrs.feature.size(), attrs.yes.size(), attrs.no.size(), attrs.missing.size(),
                      attrs.value.size()}) {
    if (size != nodes) return InvalidArgument("lists of ", nodes, " and ", size, " tree nodes");
  }
  if (attrs.targets < 1 || attrs.targets > (int64_t{1} << 30)) {
    return InvalidArgument("there are ", attrs.targets, " targets");
  }
  if (attrs.combine != "sum" && attrs.combine != "mean" && attrs.combine != "min" &&
      attrs.combine != "max") {
    return InvalidArgument("leaves cannot be combined by '", attrs.combine, "'");
  }
  const size_t leaves = attrs.starts.empty() ? 0 : attrs.starts.size() - 1;
  if (attrs.target.size() != attrs.weight.size() ||
      !AreStarts(attrs.starts, leaves, attrs.target.size())) {
    return InvalidArgument("the lists of leaves do not fit each other");
  }
  for (int64_t target : attrs.target) {
    if (target < 0 || target >= attrs.targets) return InvalidArgument("a leaf of target ", target);
  }
  const auto leads = [&](int64_t child, int64_t after) {
    return child < 0 ? -(child + 1) < static_cast<int64_t>(leaves)
                     : child > after && child < static_cast<int64_t>(nodes);
  };
  for (int64_t root : attrs.roots) {
    if (!leads(root, -1)) return InvalidArgument("a tree begins at ", root);
  }
  bool sets = false;
  for (size_t i = 0; i < nodes; ++i) {
    if (std::find(std::begin(kTests), std::end(kTests), attrs.test[i]) == std::end(kTests)) {
      return InvalidArgument("a tree node tests '", attrs.test[i], "'");
    }
    sets = sets || attrs.test[i] == "in";
    if (attrs.feature[i] < 0) return InvalidArgument("a tree asks for feature ", attrs.feature[i]);
    const auto at = static_cast<int64_t>(i);
    if (!leads(attrs.yes[i], at) || !leads(attrs.no[i], at)) {
      return InvalidArgument("tree node ", i, " leads to ", attrs.yes[i], " and ", attrs.no[i]);
    }
  }
  if ((sets || !attrs.sets.empty()) && !AreStarts(attrs.sets, nodes, attrs.members.size())) {
    return InvalidArgument("the lists of sets do not fit each other");
  }
  return Status();
}

std::span<const OpDef> TreesOps() { return kTreesOps; }

}  // namespace oncilla
