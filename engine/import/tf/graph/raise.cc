// Raising old control flow, on a flat graph.
//
// A loop is a frame: values come in by Enter, Merge joins the first with the next round's
// (NextIteration), LoopCond decides, Switch leads into the body or to Exit. Frames are raised from
// the innermost outward: what lies between Merge and LoopCond becomes the condition's function,
// what lies between Switch and NextIteration the body.
//
// A branch is what a Switch leads to, up to the Merge that joins both sides. Every node has guards:
// the Switches, and their sides, that must have been taken for it to run. Merges of one predicate
// become one If, unless one depends on another; branches within branches are raised in its
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
using tf_raise::IsOp;
using tf_raise::kMaxDepth;
using tf_raise::RefLess;
using tf_raise::Refuse;
using tf_raise::RouteOldArrays;

// The scope that inlined calls put before a node's own name.
std::string_view ScopeOf(const TfFlatNode& node) {
  return std::string_view(node.name).substr(0, node.name.size() - node.source->name.size());
}

class LoopRaiser {
 public:
  explicit LoopRaiser(TfFlatGraph& graph) : graph_(graph) {}

  Status Run() {
    ONCILLA_TRY(FindFrames());
    for (size_t e = 0; e < graph_.nodes.size(); ++e) {
      if (!IsOp(graph_.nodes[e], "Exit") || graph_.nodes[e].inputs.empty()) continue;
      exits_of_.emplace(graph_.nodes[e].inputs.at(0), static_cast<int>(e));
    }
    while (frames_.size() > 1) {
      // The deepest first; of these any.
      size_t deepest = 1;
      for (size_t f = 1; f < frames_.size(); ++f) {
        if (!frames_[f].raised &&
            (frames_[deepest].raised || frames_[f].depth > frames_[deepest].depth)) {
          deepest = f;
        }
      }
      if (frames_[deepest].raised) break;
      ONCILLA_TRY(Raise(static_cast<int>(deepest)));
      frames_[deepest].raised = true;
    }
    return {};
  }

 private:
  struct LoopFrame {
    std::string name;
    int parent = 0;
    int depth = 0;
    bool raised = false;
  };

  // Which frame each node runs in. Constants without inputs are outside all: they are copied in.
  Status FindFrames() {
    frames_.push_back({});
    frame_of_.assign(graph_.nodes.size(), 0);
    std::map<std::string, int> by_name;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const TfFlatNode& node = graph_.nodes[n];
      if (!IsOp(node, "Enter")) continue;
      const Bytes attr = node.source->FindAttr("frame_name");
      if (attr.empty()) return Refuse(node, "has no frame_name");
      ONCILLA_ASSIGN(const Bytes frame, TfAttr(attr).String());
      std::string name = StrCat(ScopeOf(node), frame);
      const auto [at, added] = by_name.emplace(name, static_cast<int>(frames_.size()));
      if (added) frames_.push_back({std::move(name), 0, 1, false});
      enter_frame_[static_cast<int>(n)] = at->second;
    }
    // Depths settle after as many rounds as loops are nested.
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round > kMaxDepth) {
        return Unsupported("loops that are nested too deeply, or whose frames form a circle");
      }
      changed = false;
      for (int pass = 0; pass < 2; ++pass) changed |= Propagate();
    }
    return {};
  }

  bool Propagate() {
    bool changed = false;
    std::vector<int> work(graph_.nodes.size());
    std::vector<std::vector<int>> readers(graph_.nodes.size());
    for (size_t n = 0; n < work.size(); ++n) {
      work[n] = static_cast<int>(work.size() - 1 - n);
      const auto note = [&](const TfRef& ref) {
        if (ref.node >= 0) readers[static_cast<size_t>(ref.node)].push_back(static_cast<int>(n));
      };
      for (const TfRef& ref : graph_.nodes[n].inputs) note(ref);
      for (const TfRef& ref : graph_.nodes[n].controls) note(ref);
    }
    int64_t budget = static_cast<int64_t>(work.size() + 1) * (kMaxDepth + 4);
    while (!work.empty() && budget-- > 0) {
      const int n = work.back();
      work.pop_back();
      const int frame = FrameFromInputs(n);
      if (frame == frame_of_[static_cast<size_t>(n)]) continue;
      frame_of_[static_cast<size_t>(n)] = frame;
      changed = true;
      for (int reader : readers[static_cast<size_t>(n)]) work.push_back(reader);
    }
    return changed;
  }

  int FrameFromInputs(int n) {
    const TfFlatNode& node = graph_.nodes[static_cast<size_t>(n)];
    int frame = 0;
    const auto look = [&](const TfRef& ref) {
      if (ref.node < 0) return;
      const int from = frame_of_[static_cast<size_t>(ref.node)];
      if (frames_[from].depth > frames_[frame].depth) frame = from;
    };
    for (const TfRef& ref : node.inputs) look(ref);
    const std::string_view op = node.kind == TfFlatNode::Kind::kOp ? node.op() : "";
    if (IsTfEffect(op) || IsTfRandom(op)) {
      for (const TfRef& ref : node.controls) look(ref);
    }
    if (const auto enter = enter_frame_.find(n); enter != enter_frame_.end()) {
      LoopFrame& own = frames_[enter->second];
      if (frames_[frame].depth + 1 > own.depth && frame != enter->second) {
        own.parent = frame;
        own.depth = frames_[frame].depth + 1;
      }
      return enter->second;
    }
    return IsOp(node, "Exit") ? frames_[frame].parent : frame;
  }

  using Places = std::map<TfRef, int, RefLess>;
  struct Variable {
    int merge, next;  // NextIteration
    TfRef first;
  };
  struct Loop {
    int frame = 0, cond = -1;  // LoopCond
    std::vector<Variable> variables;
    std::vector<int> invariants;  // Enter nodes of what stays the same
    // Values to the number of the argument, or of the result, that stands for them.
    Places cond_arguments, body_arguments, exits;
  };

  const TfFlatNode& At(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  bool Inside(int n, int frame) const { return frame_of_[static_cast<size_t>(n)] == frame; }
  Status Fail(const Loop& loop, std::string_view why) const {
    return Unsupported("the loop '", frames_[loop.frame].name, "' ", why);
  }

  Status Raise(int f) {
    Loop loop;
    loop.frame = f;
    ONCILLA_TRY(FindVariables(loop));
    ONCILLA_TRY(FindArguments(loop));
    return Replace(loop);
  }

  // The condition, what goes round, and what stays the same.
  Status FindVariables(Loop& loop) const {
    std::set<int> joined;  // Enter nodes that feed a Merge
    for (int n = 0; n < std::ssize(graph_.nodes); ++n) {
      const TfFlatNode& node = At(n);
      if (!Inside(n, loop.frame) || node.kind != TfFlatNode::Kind::kOp) continue;
      if (IsOp(node, "LoopCond")) {
        if (loop.cond >= 0) return Fail(loop, "has two conditions");
        loop.cond = n;
      }
      if (!IsOp(node, "Merge") || node.inputs.size() != 2) continue;
      int enter = -1, next = -1;
      for (const TfRef& ref : node.inputs) {
        if (ref.node < 0) continue;
        if (IsOp(At(ref.node), "Enter")) enter = ref.node;
        if (IsOp(At(ref.node), "NextIteration")) next = ref.node;
      }
      if (enter < 0 || next < 0) continue;  // the end of a branch
      joined.insert(enter);
      loop.variables.push_back({n, next, At(enter).inputs.at(0)});
    }
    if (loop.cond < 0) return Fail(loop, "has no condition (LoopCond)");
    for (const auto& [enter, frame] : enter_frame_) {
      if (frame == loop.frame && joined.count(enter) == 0) loop.invariants.push_back(enter);
    }
    return {};
  }

  // Where the functions of condition and body begin, and which values leave the loop.
  Status FindArguments(Loop& loop) const {
    int arguments = 0;
    for (const Variable& v : loop.variables) loop.cond_arguments[{v.merge, 0}] = arguments++;
    const int variables = arguments;
    for (const int enter : loop.invariants) loop.cond_arguments[{enter, 0}] = arguments++;
    loop.body_arguments = loop.cond_arguments;
    for (int n = 0; n < std::ssize(graph_.nodes); ++n) {
      const TfFlatNode& node = At(n);
      if (!Inside(n, loop.frame) || !IsOp(node, "Switch") || node.inputs.size() != 2) continue;
      if (!(node.inputs[1] == TfRef{loop.cond, 0})) continue;
      const auto variable = loop.cond_arguments.find({node.inputs[0].node, 0});
      if (variable == loop.cond_arguments.end() || variable->second >= variables) {
        return Fail(loop, "switches what it does not carry");
      }
      loop.body_arguments[{n, 1}] = variable->second;
      const auto [begin, end] = exits_of_.equal_range(TfRef{n, 0});
      for (auto e = begin; e != end; ++e) loop.exits[{e->second, 0}] = variable->second;
    }
    return {};
  }

  // A While, with both functions, in place of the loop.
  Status Replace(const Loop& loop) {
    const int arguments = static_cast<int>(loop.variables.size() + loop.invariants.size());
    std::vector<TfRef> captures;
    const auto inside = [&](int n) { return Inside(n, loop.frame); };
    const Extraction::Forwards none;
    Extraction cond(graph_, loop.cond_arguments, none, inside, arguments, captures);
    Extraction body(graph_, loop.body_arguments, none, inside, arguments, captures);
    cond.AddOutput(At(loop.cond).inputs.at(0));
    std::set<int> effects;
    for (int effect : graph_.effects) {
      if (!inside(effect)) continue;
      body.AddEffect(effect);
      effects.insert(effect);
    }
    TfFlatNode raised;
    raised.source = At(loop.cond).source;
    raised.raised_op = "While";
    raised.name = At(loop.cond).name;
    if (const size_t at = raised.name.rfind("/LoopCond"); at != std::string::npos) {
      raised.name.resize(at);
    }
    for (const Variable& v : loop.variables) {
      body.AddOutput(At(v.next).inputs.at(0));
      raised.inputs.push_back(v.first);
    }
    for (const int enter : loop.invariants) {
      body.AddOutput({enter, 0});
      raised.inputs.push_back(At(enter).inputs.at(0));
    }
    if (cond.cyclic() || body.cyclic()) return Fail(loop, "depends on itself in another way");
    // What the body needs of its surroundings the condition takes too, and the other way round.
    TfFlatGraph body_graph = body.Finish(true), cond_graph = cond.Finish(false);
    for (const TfRef& capture : captures) raised.inputs.push_back(capture);
    raised.bodies.push_back(std::move(cond_graph));
    raised.bodies.push_back(std::move(body_graph));
    AddRaised(graph_, std::move(raised), loop.exits, effects);
    frame_of_.push_back(frames_[loop.frame].parent);
    return {};
  }

  TfFlatGraph& graph_;
  std::vector<LoopFrame> frames_;
  std::vector<int> frame_of_;
  std::map<int, int> enter_frame_;
  std::multimap<TfRef, int, RefLess> exits_of_;  // by what they hand on
};

// Raises one predicate's branches: those of the first Merge, and of others that stand beside it.
class BranchRaiser {
 public:
  explicit BranchRaiser(TfFlatGraph& graph) : graph_(graph) {}

  // False when there was none. The graph must be sorted.
  Result<bool> Run() {
    guards_.resize(graph_.nodes.size());
    tainted_.resize(graph_.nodes.size());
    const std::set<int> effects(graph_.effects.begin(), graph_.effects.end());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const TfFlatNode& node = graph_.nodes[i];
      if (IsOp(node, "Merge")) {
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
      // An effect in a branch that gives nothing: of the innermost, its predicate comes last.
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

  // What must have been decided for a value to be there.
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

  Status LookAtMerge(int n) {
    const auto i = static_cast<size_t>(n);
    const TfFlatNode& node = graph_.nodes[i];
    if (node.inputs.size() != 2) return Refuse(node, "joins other than two sides");
    Guards sides[2];
    for (size_t k = 0; k < 2; ++k) {
      sides[k] = GuardsOf(node.inputs[k]);
      if (k < node.controls.size()) sides[k].merge(GuardsOf(node.controls[k]));
      Inherit(i, node.inputs[k]);
    }
    // The predicate on which the sides differ; where one side has lost its guards (a constant),
    // the innermost of those that the other side alone has.
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
    Guards outer = sides[0];
    outer.merge(sides[1]);
    outer.erase(predicate);
    guards_[i] = outer;
    if (merges_.empty()) {
      predicate_ = predicate;
      outer_ = outer;
    }
    if (predicate == predicate_ && outer == outer_ && !tainted_[i]) {
      merges_.push_back(*merged);
      tainted_[i] = true;
    }
    return {};
  }

  Status Raise() {
    const int first = merges_.empty() ? guarded_effect_ : merges_[0].node;
    TfFlatNode branch;
    branch.source = graph_.nodes[static_cast<size_t>(first)].source;
    branch.raised_op = "If";
    branch.name = graph_.nodes[static_cast<size_t>(first)].name + "/if";
    branch.inputs = {predicate_};
    std::vector<TfRef> captures;
    const Extraction::Arguments none;
    Extraction::Forwards forwards[2];  // a Switch on the predicate stands for what goes into it
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const TfFlatNode& node = graph_.nodes[n];
      if (!IsOp(node, "Switch") || node.inputs.size() != 2 || !(node.inputs[1] == predicate_)) {
        continue;
      }
      for (int side : {0, 1}) forwards[side][{static_cast<int>(n), side}] = node.inputs[0];
    }
    std::vector<size_t> asked;  // merges that tell which side they took
    for (size_t m = 0; m < merges_.size(); ++m) {
      const TfRef index{merges_[m].node, 1};
      bool read = std::count(graph_.outputs.begin(), graph_.outputs.end(), index) > 0;
      for (const TfFlatNode& node : graph_.nodes) {
        read |= std::count(node.inputs.begin(), node.inputs.end(), index) > 0;
      }
      if (read) asked.push_back(m);
    }
    std::set<int> effects;
    std::vector<Extraction> sides;
    sides.reserve(2);
    for (int side : {1, 0}) {
      const auto inside = [this, side](int n) {
        const auto guard = guards_[static_cast<size_t>(n)].find(predicate_);
        return guard != guards_[static_cast<size_t>(n)].end() && guard->second == side;
      };
      Extraction& part = sides.emplace_back(graph_, none, forwards[side], inside, 0, captures);
      for (int effect : graph_.effects) {
        if (!inside(effect) || !BelongsHere(static_cast<size_t>(effect))) continue;
        part.AddEffect(effect);
        effects.insert(effect);
      }
      for (const Merged& merged : merges_) {
        const TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merged.node)];
        part.AddOutput(merge.inputs[InputOf(merged, side)]);
      }
      // And which of its inputs a Merge took, where that is asked for.
      for (size_t m : asked) {
        const TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merges_[m].node)];
        ONCILLA_ASSIGN(Tensor index, Tensor::Allocate({DType::kI32, {}}));
        index.MutableAs<int32_t>()[0] = static_cast<int32_t>(InputOf(merges_[m], side));
        part.AddConstantOutput(StrCat(merge.name, "/value_index"), merge.source, std::move(index));
      }
    }
    for (const Extraction& part : sides) {
      if (part.cyclic()) return DataLoss("the data edges form a circle that is not a loop");
    }
    // Both sides take what either of them needs.
    for (Extraction& part : sides) branch.bodies.push_back(part.Finish(false));
    for (const TfRef& capture : captures) branch.inputs.push_back(capture);
    std::map<TfRef, int, RefLess> replaced;
    for (size_t m = 0; m < merges_.size(); ++m) {
      replaced[{merges_[m].node, 0}] = static_cast<int>(m);
    }
    for (size_t a = 0; a < asked.size(); ++a) {
      replaced[{merges_[asked[a]].node, 1}] = static_cast<int>(merges_.size() + a);
    }
    AddRaised(graph_, std::move(branch), replaced, effects);
    for (const Merged& merged : merges_) {
      // Nobody reads it any more; it must not be found again before the graph is cleaned up.
      TfFlatNode& merge = graph_.nodes[static_cast<size_t>(merged.node)];
      merge.raised_op = "NoOp";
      merge.inputs.clear();
      merge.controls.clear();
    }
    return {};
  }

  // An effect in these branches, or in branches within them, that waits for none of the merges.
  bool BelongsHere(size_t effect) const {
    const auto taken = [&](const auto& outer) {
      const auto own = guards_[effect].find(outer.first);
      return own != guards_[effect].end() && own->second == outer.second;
    };
    return !tainted_[effect] && std::all_of(outer_.begin(), outer_.end(), taken);
  }

  TfFlatGraph& graph_;
  std::vector<Guards> guards_;
  std::vector<bool> tainted_;  // depends on a merge of the group
  TfRef predicate_;
  Guards outer_;
  std::vector<Merged> merges_;
  int guarded_effect_ = -1;
};

bool HasOp(const TfFlatGraph& graph, std::string_view op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const TfFlatNode& node) { return IsOp(node, op); });
}

// A variable or table that changes is used where it is, whatever Switch or Enter its handle passes;
// effects keep the tie to the branch that they had through it.
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

// Rewrites one graph and the bodies in it.
Status RaiseAtDepth(TfFlatGraph& graph, int depth) {
  if (depth > kMaxDepth) return Exhausted("functions are nested deeper than ", kMaxDepth);
  // A handle may pass several, one inside the other.
  for (int round = 0; round < 4; ++round) BypassHandles(graph);
  ONCILLA_TRY(RouteOldArrays(graph));
  if (HasOp(graph, "Enter")) {
    ONCILLA_TRY(LoopRaiser(graph).Run());
    ONCILLA_TRY(Compact(graph));
  }
  if (HasOp(graph, "Switch") || HasOp(graph, "Merge")) {
    for (bool raised = true; raised;) {
      SortTfFlatGraph(graph);
      ONCILLA_ASSIGN(raised, BranchRaiser(graph).Run());
    }
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
