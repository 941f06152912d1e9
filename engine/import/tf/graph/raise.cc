// Raises TensorFlow 1 control flow on a flat graph: loops first (raise_loops.cc), then branches.
//
// A branch is everything between a Switch and the Merge that joins both sides. Every node has
// guards: the Switches, with their sides, that must have been taken for it to run. Merges of one
// predicate become one If, unless one depends on another; nested branches are raised inside its
// functions.
#include "engine/import/tf/graph/raise.h"

#include <algorithm>

#include "engine/import/tf/graph/raise_parts.h"
#include "engine/import/tf/op_kinds.h"

namespace oncilla {
namespace {

using tf_raise::AddRaised;
using tf_raise::Compact;
using tf_raise::Extraction;
using tf_raise::IndexTensor;
using tf_raise::IsOp;
using tf_raise::IsRead;
using tf_raise::kMaxDepth;
using tf_raise::RaiseLoops;
using tf_raise::RefLess;
using tf_raise::Refuse;
using tf_raise::RouteOldArrays;

// Raises the branches of one predicate: those of the first Merge, and of others with the same
// predicate.
class BranchRaiser {
 public:
  explicit BranchRaiser(TfFlatGraph& graph) : graph_(graph) {}

  // Returns false if there was no branch. The graph must be sorted.
  Result<bool> Run() {
    guards_.resize(graph_.nodes.size());
    tainted_.resize(graph_.nodes.size());
    const std::set<int> effects(graph_.effects.begin(), graph_.effects.end());
    // Propagate guards in topological order; collect the Merges of one predicate on the way.
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const TfFlatNode& node = graph_.nodes[i];
      if (IsOp(node, "Merge")) {
        if (node.inputs.size() != 2) {
          ONCILLA_TRY(SplitMerge(static_cast<int>(i)));
          return true;
        }
        ONCILLA_TRY(LookAtMerge(static_cast<int>(i)));
        continue;
      }
      const bool effect = effects.count(static_cast<int>(i)) != 0;
      const bool tied = effect || (node.kind == TfFlatNode::Kind::kOp && IsTfRandom(node.op()));
      for (const TfRef& ref : node.inputs) Inherit(i, ref);
      for (size_t c = 0; c < node.controls.size() && tied; ++c) Inherit(i, node.controls[c]);
      if (effect && !guards_[i].empty()) guarded_effect_ = static_cast<int>(i);
    }
    if (merges_.empty()) {
      if (guarded_effect_ < 0) return false;
      // An effect in a branch without results. Its innermost predicate, which is the last one, is
      // raised.
      outer_ = guards_[static_cast<size_t>(guarded_effect_)];
      predicate_ = std::prev(outer_.end())->first;
      outer_.erase(predicate_);
    }
    ONCILLA_TRY(Raise());
    return true;
  }

 private:
  using Guards = std::map<TfRef, int, RefLess>;  // predicate -> side
  struct Merged {
    int node;
    size_t true_input;
  };

  static size_t InputOf(const Merged& merged, int side) {
    return side == 1 ? merged.true_input : 1 - merged.true_input;
  }

  // The predicates and sides that must hold for a value to exist.
  Guards GuardsOf(const TfRef& ref) const {
    if (ref.node < 0) return {};
    Guards guards = guards_[static_cast<size_t>(ref.node)];
    const TfFlatNode& node = graph_.nodes[static_cast<size_t>(ref.node)];
    if (IsOp(node, "Switch") && node.inputs.size() == 2) guards[node.inputs[1]] = ref.output;
    return guards;
  }

  void Inherit(size_t node, const TfRef& ref) {
    guards_[node].merge(GuardsOf(ref));
    if (ref.node >= 0 && tainted_[static_cast<size_t>(ref.node)]) tainted_[node] = true;
  }

  // The guards of input k of a Merge.
  Guards SideOf(const TfFlatNode& merge, size_t k) const {
    Guards side = GuardsOf(merge.inputs[k]);
    if (k < merge.controls.size()) side.merge(GuardsOf(merge.controls[k]));
    return side;
  }

  // A Merge of more than two sides becomes a tree of Merges of two; this makes its root. A side
  // without a guard on the chosen predicate is placed opposite to all sides that share one value of
  // it.
  Status SplitMerge(int n) {
    if (IsRead(graph_, {n, 1})) return TellApart(n);
    const TfFlatNode merge = graph_.nodes[static_cast<size_t>(n)];
    if (merge.inputs.size() < 2) return Refuse(merge, "joins other than two sides");
    std::map<TfRef, size_t, RefLess> known;  // predicates, by how many sides have them
    std::vector<Guards> sides;
    for (size_t k = 0; k < merge.inputs.size(); ++k) {
      sides.push_back(SideOf(merge, k));
      for (const auto& [p, side] : sides.back()) ++known[p];
    }
    // Choose the predicate that most sides have and that splits them into two groups.
    std::vector<size_t> parts[2];
    size_t most = 0;
    for (const auto& [p, count] : known) {
      std::vector<size_t> of[2], others;
      for (size_t k = 0; k < sides.size(); ++k) {
        const auto at = sides[k].find(p);
        (at == sides[k].end() ? others : of[at->second == 1]).push_back(k);
      }
      if (!others.empty() && !of[0].empty() && !of[1].empty()) continue;
      if (of[0].empty()) of[0] = others;
      if (of[1].empty()) of[1] = others;
      if (of[0].empty() || of[1].empty() || count <= most) continue;
      most = count;
      for (size_t part : {0, 1}) parts[part] = std::move(of[part]);
    }
    if (most == 0) return Refuse(merge, "joins sides that no Switch tells apart");
    // Each group becomes one input of the root, through a Merge of its own if it has several sides.
    std::vector<TfRef> inputs, controls;
    for (size_t part : {0, 1}) {
      TfFlatNode inner = merge;
      inner.name = StrCat(merge.name, "/side", part);
      inner.inputs.clear();
      inner.controls.clear();
      for (size_t k : parts[part]) {
        inner.inputs.push_back(merge.inputs[k]);
        inner.controls.push_back(k < merge.controls.size() ? merge.controls[k] : TfRef{-1, 0});
      }
      if (parts[part].size() == 1) {
        inputs.push_back(inner.inputs[0]);
        controls.push_back(inner.controls[0]);
        continue;
      }
      inputs.push_back({static_cast<int>(graph_.nodes.size()), 0});
      controls.push_back({-1, 0});
      graph_.nodes.push_back(std::move(inner));
    }
    graph_.nodes[static_cast<size_t>(n)].inputs = std::move(inputs);
    graph_.nodes[static_cast<size_t>(n)].controls = std::move(controls);
    return {};
  }

  // Computes which side a Merge of more than two took, as a Merge of constant indices.
  Status TellApart(int n) {
    TfFlatNode numbers = graph_.nodes[static_cast<size_t>(n)];
    numbers.name += "/value_index";
    const std::vector<TfRef> inputs = numbers.inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      TfFlatNode number;
      number.kind = TfFlatNode::Kind::kVariable;
      number.name = StrCat(numbers.name, k);
      number.source = numbers.source;
      ONCILLA_ASSIGN(number.value, IndexTensor(k));
      numbers.inputs[k] = {static_cast<int>(graph_.nodes.size()), 0};
      graph_.nodes.push_back(std::move(number));
    }
    // If a side has its own control input, that identifies the side better than its value.
    std::vector<TfRef> controls = inputs;
    for (size_t k = 0; k < inputs.size() && k < numbers.controls.size(); ++k) {
      if (numbers.controls[k].node >= 0) controls[k] = numbers.controls[k];
    }
    numbers.controls = std::move(controls);
    const int id = static_cast<int>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(numbers));
    const auto redirect = [&](TfRef& ref) {
      if (ref == TfRef{n, 1}) ref = {id, 0};
    };
    for (TfFlatNode& node : graph_.nodes) {
      for (TfRef& ref : node.inputs) redirect(ref);
    }
    for (TfRef& ref : graph_.outputs) redirect(ref);
    return {};
  }

  Status LookAtMerge(int n) {
    const auto i = static_cast<size_t>(n);
    const TfFlatNode& node = graph_.nodes[i];
    Guards sides[2];
    for (size_t k = 0; k < 2; ++k) {
      sides[k] = SideOf(node, k);
      Inherit(i, node.inputs[k]);
    }
    // The predicate on which the sides differ. If one side has no guard on it (for example a
    // constant), the innermost predicate that only the other side has is used.
    std::optional<Merged> merged;
    TfRef predicate;
    for (const auto& [p, side] : sides[0]) {
      const auto other = sides[1].find(p);
      if (other == sides[1].end() || other->second == side) continue;
      predicate = p;
      merged = Merged{n, side == 1 ? size_t{0} : size_t{1}};
    }
    for (size_t k = 0; k < 2 && !merged; ++k) {
      for (const auto& [p, side] : sides[k]) {
        if (sides[1 - k].count(p) != 0) continue;
        predicate = p;
        merged = Merged{n, side == 1 ? k : 1 - k};
      }
    }
    if (!merged) return Refuse(node, "joins sides that no Switch tells apart");
    // The result is guarded by what both sides have in common, apart from the predicate. What only
    // one of them has is decided inside of it, as the other side may exist without. A side without
    // guards, such as a constant, says nothing of what is common.
    const bool bare = sides[0].empty() || sides[1].empty();
    Guards outer = sides[0], own[2];
    if (bare) outer.merge(sides[1]);
    for (size_t k = 0; k < 2 && !bare; ++k) {
      Guards& only = own[InputOf(*merged, 1) == k ? 1 : 0];
      for (const auto& [p, side] : sides[k]) {
        const auto other = sides[1 - k].find(p);
        if (other != sides[1 - k].end() && other->second == side) continue;
        if (!(p == predicate)) only.emplace(p, side);
        if (k == 0) outer.erase(p);
      }
    }
    outer.erase(predicate);
    guards_[i] = outer;
    if (merges_.empty()) {
      predicate_ = predicate;
      outer_ = outer;
      for (const int side : {0, 1}) own_[side] = own[side];
    }
    // Only Merges with the same predicate and guards belong to this If, and only if they do not
    // depend on one another.
    if (predicate == predicate_ && outer == outer_ && own[0] == own_[0] && own[1] == own_[1] &&
        !tainted_[i]) {
      merges_.push_back(*merged);
      tainted_[i] = true;
    }
    return {};
  }

  // Whether a node is computed in the branch of a side: it needs that side of the predicate, or
  // something else that only this side needs.
  bool IsInside(int n, int side) const {
    const Guards& guards = guards_[static_cast<size_t>(n)];
    if (const auto guard = guards.find(predicate_); guard != guards.end()) {
      return guard->second == side;
    }
    const TfFlatNode& node = graph_.nodes[static_cast<size_t>(n)];
    if (IsOp(node, "Switch") && node.inputs.size() == 2 && own_[side].count(node.inputs[1]) != 0) {
      return true;
    }
    return std::any_of(guards.begin(), guards.end(), [&](const auto& guard) {
      const auto known = own_[side].find(guard.first);
      return known != own_[side].end() && known->second == guard.second;
    });
  }

  // What the branch of a side reads instead of Switches: their inputs, where the predicate or the
  // outer guards say which side is taken.
  Extraction::Forwards ForwardsOf(int side) const {
    Extraction::Forwards forwards;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const TfFlatNode& node = graph_.nodes[n];
      if (!IsOp(node, "Switch") || node.inputs.size() != 2) continue;
      if (node.inputs[1] == predicate_) {
        forwards[{static_cast<int>(n), side}] = node.inputs[0];
      } else if (const auto outer = outer_.find(node.inputs[1]);
                 outer != outer_.end() && IsInside(static_cast<int>(n), side)) {
        forwards[{static_cast<int>(n), outer->second}] = node.inputs[0];
      }
    }
    return forwards;
  }

  // The predicate behind a Switch for each outer guard that no captured value has, so that the If
  // belongs to the branches that these guards are of.
  TfRef GuardedPredicate(const std::vector<TfRef>& captures) {
    Guards given = GuardsOf(predicate_);
    for (const TfRef& capture : captures) given.merge(GuardsOf(capture));
    TfRef guarded = predicate_;
    const size_t count = graph_.nodes.size();
    for (const auto& [p, side] : outer_) {
      if (given.count(p) != 0) continue;
      for (size_t n = 0; n < count; ++n) {
        const TfFlatNode& known = graph_.nodes[n];
        if (!IsOp(known, "Switch") || known.inputs.size() != 2 || !(known.inputs[1] == p)) continue;
        TfFlatNode guard = known;
        guard.name += "/guard";
        guard.inputs[0] = guarded;
        guarded = {static_cast<int>(graph_.nodes.size()), side};
        graph_.nodes.push_back(std::move(guard));
        break;
      }
    }
    return guarded;
  }

  Status Raise() {
    const int first = merges_.empty() ? guarded_effect_ : merges_[0].node;
    TfFlatNode branch;
    branch.source = graph_.nodes[static_cast<size_t>(first)].source;
    branch.raised_op = "If";
    branch.name = graph_.nodes[static_cast<size_t>(first)].name + "/if";
    std::vector<TfRef> captures;
    const Extraction::Arguments none;
    const Extraction::Forwards forwards[2] = {ForwardsOf(0), ForwardsOf(1)};
    std::vector<size_t> asked;  // merges whose taken side is read
    for (size_t m = 0; m < merges_.size(); ++m) {
      if (IsRead(graph_, {merges_[m].node, 1})) asked.push_back(m);
    }
    // Extract a function for each side: its effects, the inputs of the Merges and, if read,
    // indices.
    std::set<int> effects;
    std::vector<Extraction> sides;
    sides.reserve(2);
    for (int side : {1, 0}) {
      const auto inside = [this, side](int n) { return IsInside(n, side); };
      Extraction& part = sides.emplace_back(graph_, none, forwards[side], inside, 0, captures);
      for (int effect : graph_.effects) {
        const Guards& guards = guards_[static_cast<size_t>(effect)];
        const auto guard = guards.find(predicate_);
        if (guard == guards.end() || guard->second != side) continue;
        if (!BelongsHere(static_cast<size_t>(effect))) continue;
        part.AddEffect(effect);
        effects.insert(effect);
      }
      for (const Merged& merged : merges_) {
        const TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merged.node)];
        part.AddOutput(merge.inputs[InputOf(merged, side)]);
      }
      // The index of the input that a Merge took, if that is read.
      for (size_t m : asked) {
        const TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merges_[m].node)];
        ONCILLA_ASSIGN(Tensor index, IndexTensor(InputOf(merges_[m], side)));
        part.AddConstantOutput(StrCat(merge.name, "/value_index"), merge.source, std::move(index));
      }
    }
    for (const Extraction& part : sides) ONCILLA_TRY(part.CheckAcyclic());
    // Both functions take the captures of either.
    for (Extraction& part : sides) branch.bodies.push_back(part.Finish(false));
    branch.inputs = {GuardedPredicate(captures)};
    for (const TfRef& capture : captures) branch.inputs.push_back(capture);
    // The If takes the place of the Merges and of the effects.
    std::map<TfRef, int, RefLess> replaced;
    for (size_t m = 0; m < merges_.size(); ++m) {
      replaced[{merges_[m].node, 0}] = static_cast<int>(m);
    }
    for (size_t a = 0; a < asked.size(); ++a) {
      replaced[{merges_[asked[a]].node, 1}] = static_cast<int>(merges_.size() + a);
    }
    AddRaised(graph_, std::move(branch), replaced, effects);
    for (const Merged& merged : merges_) {
      // Nothing reads the Merge any more. It becomes a NoOp, so that it is not found again before
      // cleaning up.
      TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merged.node)];
      merge.raised_op = "NoOp";
      merge.inputs.clear();
      merge.controls.clear();
    }
    return {};
  }

  // Whether an effect belongs to these branches, or to nested ones, and depends on none of the
  // Merges.
  bool BelongsHere(size_t effect) const {
    const auto taken = [&](const auto& outer) {
      const auto own = guards_[effect].find(outer.first);
      return own != guards_[effect].end() && own->second == outer.second;
    };
    return !tainted_[effect] && std::all_of(outer_.begin(), outer_.end(), taken);
  }

  TfFlatGraph& graph_;
  std::vector<Guards> guards_;
  std::vector<bool> tainted_;  // depends on a Merge of the group
  TfRef predicate_;
  Guards outer_;
  Guards own_[2];  // by side of the predicate: further guards that only its values have
  std::vector<Merged> merges_;
  int guarded_effect_ = -1;
};

bool HasOp(const TfFlatGraph& graph, std::string_view op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const TfFlatNode& node) { return IsOp(node, op); });
}

// The handle of a changing variable or table is read directly, past any Switch or Enter. Effects
// keep the guard that they had through it as a control input.
void BypassHandles(TfFlatGraph& graph) {
  for (TfFlatNode& node : graph.nodes) {
    const size_t inputs = node.inputs.size();
    for (size_t i = 0; i < inputs; ++i) {
      const TfRef at = node.inputs[i];
      if (at.node < 0) continue;
      const TfFlatNode& from = graph.nodes[static_cast<size_t>(at.node)];
      const bool branch = IsOp(from, "Switch");
      if ((!branch && !IsOp(from, "Enter")) || from.inputs.empty() || from.inputs[0].node < 0) {
        continue;
      }
      const TfRef data = from.inputs[0];
      const TfFlatNode& source = graph.nodes[static_cast<size_t>(data.node)];
      if (source.kind != TfFlatNode::Kind::kState) continue;
      node.inputs[i] = data;
      if (!branch) continue;
      if (IsOp(node, "Merge")) {
        if (i < node.controls.size()) node.controls[i] = at;
      } else {
        node.controls.push_back(at);
      }
    }
  }
}

// A Switch without a Merge: reading one of its outputs requires that side to be taken, as with a
// fetch inside a branch. The op's name says which side.
void GateSwitches(TfFlatGraph& graph) {
  std::map<TfRef, int, RefLess> gates;
  const size_t count = graph.nodes.size();
  const auto gate = [&](TfRef& ref) {
    if (ref.node < 0 || ref.node >= static_cast<int>(count)) return;
    const TfFlatNode& node = graph.nodes[static_cast<size_t>(ref.node)];
    if (!IsOp(node, "Switch") || node.inputs.size() != 2) return;
    const auto [at, added] = gates.emplace(ref, static_cast<int>(graph.nodes.size()));
    if (added) {
      TfFlatNode gated = node;
      gated.raised_op = ref.output == 1 ? "_SwitchTrue" : "_SwitchFalse";
      gated.name += ref.output == 1 ? "/true" : "/false";
      graph.nodes.push_back(std::move(gated));
    }
    ref = {at->second, 0};
  };
  // New nodes read Switch nodes too, so the bound is evaluated in each iteration.
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (size_t i = 0; i < graph.nodes[n].inputs.size(); ++i) {
      TfRef ref = graph.nodes[n].inputs[i];
      gate(ref);
      graph.nodes[n].inputs[i] = ref;
    }
    for (size_t i = 0; i < graph.nodes[n].controls.size(); ++i) {
      TfRef ref = graph.nodes[n].controls[i];
      gate(ref);
      graph.nodes[n].controls[i] = ref;
    }
  }
  for (TfRef& ref : graph.outputs) gate(ref);
}

// Rewrites a graph and the bodies in it.
Status RaiseAtDepth(TfFlatGraph& graph, int depth) {
  if (depth > kMaxDepth) return Exhausted("functions are nested deeper than ", kMaxDepth);
  // A handle may pass several nested Switches.
  for (int round = 0; round < 4; ++round) BypassHandles(graph);
  ONCILLA_TRY(RouteOldArrays(graph));
  if (HasOp(graph, "Enter")) {
    ONCILLA_TRY(RaiseLoops(graph));
    ONCILLA_TRY(Compact(graph));
  }
  if (HasOp(graph, "Switch") || HasOp(graph, "Merge")) {
    for (bool raised = true; raised;) {
      SortTfFlatGraph(graph);
      ONCILLA_ASSIGN(raised, BranchRaiser(graph).Run());
    }
    GateSwitches(graph);
    ONCILLA_TRY(Compact(graph));
  }
  for (TfFlatNode& node : graph.nodes) {
    for (TfFlatGraph& body : node.bodies) ONCILLA_TRY(RaiseAtDepth(body, depth + 1));
  }
  return {};
}

}  // namespace

Status RaiseTfControlFlow(TfFlatGraph& graph) { return RaiseAtDepth(graph, 0); }

}  // namespace oncilla
