// What raising loops and raising branches share: copying a part of a flat graph into a function,
// and replacing nodes by another one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/import/tf/graph/functions.h"

namespace oncilla::tf_raise {

inline constexpr int kMaxDepth = 64;

inline bool IsOp(const TfFlatNode& node, std::string_view op) {
  if (node.kind != TfFlatNode::Kind::kOp) return false;
  const std::string_view own = node.op();
  return own == op ||
         (own.size() == op.size() + 3 && own.substr(0, 3) == "Ref" && own.substr(3) == op);
}

struct RefLess {
  bool operator()(const TfRef& a, const TfRef& b) const {
    return std::tie(a.node, a.output) < std::tie(b.node, b.output);
  }
};

inline Status Refuse(const TfFlatNode& node, std::string why) {
  return WithNode(Unsupported("node '", node.name, "' (", node.op(), "): ", why), node.name);
}

// Copies a part of a graph into a function's graph.
class Extraction {
 public:
  using Arguments = std::map<TfRef, int, RefLess>;
  using Forwards = std::map<TfRef, TfRef, RefLess>;
  // `boundary`: the values at which the part ends, with their argument numbers; `forwards`:
  // replacements of values; `inside`: whether a node belongs to the part. Any other value becomes
  // an additional argument, shared through `captures`.
  Extraction(const TfFlatGraph& from, const Arguments& boundary, const Forwards& forwards,
             std::function<bool(int)> inside, int arguments, std::vector<TfRef>& captures)
      : from_(from),
        boundary_(boundary),
        forwards_(forwards),
        inside_(std::move(inside)),
        arguments_(arguments),
        captures_(captures) {}

  // The copy of a value's node, with everything that it needs.
  TfRef Copy(TfRef root) {
    struct Visit {
      int node;
      size_t next = 0;
    };
    root = Forwarded(root);
    if (const auto ready = Ready(root)) return *ready;
    std::vector<Visit> stack = {{root.node}};
    open_.insert(root.node);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const TfFlatNode& node = from_.nodes[static_cast<size_t>(top.node)];
      const size_t inputs = node.inputs.size();
      if (top.next < inputs + node.controls.size()) {
        const TfRef input =
            Forwarded(top.next < inputs ? node.inputs[top.next] : node.controls[top.next - inputs]);
        ++top.next;
        if (Ready(input)) continue;
        if (!open_.insert(input.node).second) {
          if (cycle_.empty()) cycle_ = from_.nodes[static_cast<size_t>(input.node)].name;
          continue;
        }
        stack.push_back({input.node});
        continue;
      }
      if (copies_.count(top.node) == 0) {
        TfFlatNode copy = node;
        for (TfRef& input : copy.inputs) input = Ready(Forwarded(input)).value_or(TfRef{});
        for (TfRef& pivot : copy.controls) pivot = Ready(Forwarded(pivot)).value_or(TfRef{});
        copies_[top.node] = static_cast<int>(out_.nodes.size());
        out_.nodes.push_back(std::move(copy));
      }
      open_.erase(top.node);
      stack.pop_back();
    }
    return *Ready(root);
  }

  void AddOutput(const TfRef& root) { out_.outputs.push_back(Copy(root)); }
  void AddConstantOutput(std::string name, const TfNode* source, Tensor value) {
    out_.outputs.push_back({static_cast<int>(out_.nodes.size()), 0});
    TfFlatNode node;
    node.kind = TfFlatNode::Kind::kVariable;
    node.name = std::move(name);
    node.source = source;
    node.value = std::move(value);
    out_.nodes.push_back(std::move(node));
  }
  void AddEffect(int node) { out_.effects.push_back(Copy({node, 0}).node); }
  // Fails when a copied node depends on itself: a cycle that is not a loop of TensorFlow's.
  Status CheckAcyclic() const {
    if (cycle_.empty()) return {};
    return WithNode(
        DataLoss("node '", cycle_, "' depends on itself by data edges that are no loop"), cycle_);
  }
  // To be called when all parts are copied, since only then all arguments are known; additional
  // arguments are also outputs if `returned`.
  TfFlatGraph Finish(bool returned) {
    const int total = arguments_ + static_cast<int>(captures_.size());
    if (returned) {
      for (int a = arguments_; a < total; ++a) out_.outputs.push_back(Argument(a));
    }
    out_.inputs.assign(static_cast<size_t>(total), -1);
    for (const auto& [a, node] : inputs_) out_.inputs[static_cast<size_t>(a)] = node;
    SortTfFlatGraph(out_);
    return std::move(out_);
  }
  TfRef Argument(int a) {
    const auto [known, added] = inputs_.emplace(a, static_cast<int>(out_.nodes.size()));
    if (added) {
      TfFlatNode node;
      node.kind = TfFlatNode::Kind::kInput;
      node.name = StrCat("argument", a);
      node.feed = a;
      out_.nodes.push_back(std::move(node));
    }
    return {known->second, 0};
  }

 private:
  // A replacement may itself be replaced; a cycle of them ends at any of its values.
  TfRef Forwarded(TfRef ref) const {
    for (size_t step = 0; step <= forwards_.size(); ++step) {
      const auto at = forwards_.find(ref);
      if (at == forwards_.end()) break;
      ref = at->second;
    }
    return ref;
  }

  std::optional<TfRef> Ready(const TfRef& ref) {
    if (ref.node < 0) return ref;
    if (const auto at = boundary_.find(ref); at != boundary_.end()) return Argument(at->second);
    if (const auto copy = copies_.find(ref.node); copy != copies_.end()) {
      return TfRef{copy->second, ref.output};
    }
    const TfFlatNode& node = from_.nodes[static_cast<size_t>(ref.node)];
    const bool constant = node.kind == TfFlatNode::Kind::kVariable ||
                          node.kind == TfFlatNode::Kind::kState ||
                          (node.kind == TfFlatNode::Kind::kOp && node.op() == "Const");
    if (inside_(ref.node) || constant) return std::nullopt;
    auto capture = std::find(captures_.begin(), captures_.end(), ref);
    if (capture == captures_.end()) capture = captures_.insert(capture, ref);
    return Argument(arguments_ + static_cast<int>(capture - captures_.begin()));
  }

  const TfFlatGraph& from_;
  const Arguments& boundary_;
  const Forwards& forwards_;
  const std::function<bool(int)> inside_;
  const int arguments_;
  std::vector<TfRef>& captures_;
  std::map<int, int> copies_;
  std::map<int, int> inputs_;  // argument -> node
  std::set<int> open_;         // being copied
  std::string cycle_;          // a node that depends on itself
  TfFlatGraph out_;
};

// Adds a node that replaces others: readers of `replaced` read its outputs instead, and it takes
// the position of the first of `effects`.
int AddRaised(TfFlatGraph& graph, TfFlatNode node, const std::map<TfRef, int, RefLess>& replaced,
              const std::set<int>& effects);

// Whether a node or fetch reads this output.
bool IsRead(const TfFlatGraph& graph, const TfRef& ref);
// The index of a Merge's input, as the Merge returns it.
Result<Tensor> IndexTensor(size_t input);

// Replaces each frame by a While (raise_loops.cc).
Status RaiseLoops(TfFlatGraph& graph);

// Adds to arrays of the first two versions the flow value that later versions have
// (raise_arrays.cc).
Status RouteOldArrays(TfFlatGraph& graph);

// Removes nodes that nothing needs any more. Fails when the rest has a cycle.
Status Compact(TfFlatGraph& graph);

}  // namespace oncilla::tf_raise
