// Raises loops of TensorFlow 1 control flow.
//
// A loop is a frame: Enter brings values in, Merge joins the initial value with that of the next
// iteration (NextIteration), LoopCond decides, and Switch leads to the body or to Exit. Frames are
// raised from the innermost outwards: the nodes between Merge and LoopCond become the condition
// function, those between Switch and NextIteration the body.
#include <algorithm>

#include "engine/import/tf/graph/raise_parts.h"
#include "engine/import/tf/op_kinds.h"

namespace oncilla::tf_raise {
namespace {

// The scope that inlined calls put in front of a node's own name.
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
      // The deepest frame that is not raised yet; any of several.
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

  // Determines the frame of each node. Constants without inputs belong to no frame; they are copied
  // in.
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
    // Depths are final after as many rounds as loops are nested.
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round > kMaxDepth) {
        return Unsupported("loops that are nested too deeply, or whose frames form a cycle");
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
    TfRef merge;
    int next;  // NextIteration; -1: the value is `later` in all further iterations
    TfRef first;
    Tensor later = {};
  };
  struct Loop {
    int frame = 0, cond = -1;  // LoopCond
    std::vector<Variable> variables;
    std::vector<int> invariants;  // Enter nodes of loop invariants
    // Maps values to the index of the argument or result that they become.
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

  // Finds the loop's condition, variables and invariants.
  Status FindVariables(Loop& loop) {
    std::set<int> joined;  // Enter nodes that a Merge reads
    const int count = static_cast<int>(graph_.nodes.size());
    for (int n = 0; n < count; ++n) {
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
      loop.variables.push_back({{n, 0}, next, At(enter).inputs.at(0)});
      if (IsRead(graph_, {n, 1})) {
        const bool swapped = node.inputs[1].node == enter;
        ONCILLA_TRY(AddTaken(loop, n, swapped));
      }
    }
    if (loop.cond < 0) return Fail(loop, "has no condition (LoopCond)");
    for (const auto& [enter, frame] : enter_frame_) {
      if (frame == loop.frame && joined.count(enter) == 0) loop.invariants.push_back(enter);
    }
    return {};
  }

  // The index of the input that a Merge took, as an additional loop variable: at first the one from
  // outside.
  Status AddTaken(Loop& loop, int merge, bool swapped) {
    ONCILLA_ASSIGN(Tensor first, IndexTensor(swapped ? 1 : 0));
    ONCILLA_ASSIGN(Tensor later, IndexTensor(swapped ? 0 : 1));
    TfFlatNode node;
    node.kind = TfFlatNode::Kind::kVariable;
    node.name = At(merge).name + "/first_index";
    node.source = At(merge).source;
    node.value = std::move(first);
    const int id = static_cast<int>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    frame_of_.push_back(0);
    loop.variables.push_back({{merge, 1}, -1, {id, 0}, std::move(later)});
    return {};
  }

  // Determines the first argument of condition and body, and which values leave the loop.
  Status FindArguments(Loop& loop) const {
    int arguments = 0;
    for (const Variable& v : loop.variables) loop.cond_arguments[v.merge] = arguments++;
    const int variables = arguments;
    for (const int enter : loop.invariants) loop.cond_arguments[{enter, 0}] = arguments++;
    loop.body_arguments = loop.cond_arguments;
    for (int n = 0; n < std::ssize(graph_.nodes); ++n) {
      const TfFlatNode& node = At(n);
      if (!Inside(n, loop.frame) || !IsOp(node, "Switch") || node.inputs.size() != 2) continue;
      if (!(node.inputs[1] == TfRef{loop.cond, 0})) continue;
      const auto variable = loop.cond_arguments.find(node.inputs[0]);
      if (variable == loop.cond_arguments.end() || variable->second >= variables) {
        return Fail(loop, "has a Switch on a value that is not a loop variable");
      }
      loop.body_arguments[{n, 1}] = variable->second;
      const auto [begin, end] = exits_of_.equal_range(TfRef{n, 0});
      for (auto e = begin; e != end; ++e) loop.exits[{e->second, 0}] = variable->second;
    }
    return {};
  }

  // Replaces the loop by a While node with two functions.
  Status Replace(const Loop& loop) {
    // Extract both functions; they share the list of captured outer values.
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
    // The While node takes initial values, invariants and captures.
    TfFlatNode raised;
    raised.source = At(loop.cond).source;
    raised.raised_op = "While";
    raised.name = At(loop.cond).name;
    if (const size_t at = raised.name.rfind("/LoopCond"); at != std::string::npos) {
      raised.name.resize(at);
    }
    for (const Variable& v : loop.variables) {
      raised.inputs.push_back(v.first);
      if (v.next >= 0) {
        body.AddOutput(At(v.next).inputs.at(0));
      } else {
        const TfFlatNode& merge = At(v.merge.node);
        body.AddConstantOutput(merge.name + "/next_index", merge.source, v.later);
      }
    }
    for (const int enter : loop.invariants) {
      body.AddOutput({enter, 0});
      raised.inputs.push_back(At(enter).inputs.at(0));
    }
    for (const Extraction* part : {&cond, &body}) ONCILLA_TRY(part->CheckAcyclic());
    // Condition and body take the same arguments, so each also takes the captures of the other.
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
  std::multimap<TfRef, int, RefLess> exits_of_;  // Exits by the Switch output that they read
};

}  // namespace

Status RaiseLoops(TfFlatGraph& graph) { return LoopRaiser(graph).Run(); }

}  // namespace oncilla::tf_raise
