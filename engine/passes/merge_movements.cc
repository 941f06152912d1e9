// Chains of transposes and reshapes are reduced to at most one transpose.
//
// The tensor's axes are split into factors such that every reshape of the chain only groups factors
// and every transpose only permutes them. The whole chain is then one permutation of factors: the
// identity (a reshape), or one transpose between two reshapes. Attention heads, channel shuffles
// and the step from pixels to tokens are such chains.
//
// A chain is replaced only if the number of transposes drops, so the pass terminates.
#include <algorithm>
#include <optional>
#include <set>

#include "engine/ops/array/movement.h"
#include "engine/passes/axis_order.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

class Factors {
 public:
  // One factor per axis; an axis of size 1 has none.
  explicit Factors(const PartialShape& shape) {
    for (const Dim& dim : shape.dims()) {
      axes_.emplace_back();
      if (dim.size == 1) continue;
      axes_.back().push_back(static_cast<int>(sizes_.size()));
      source_.push_back(static_cast<int>(sizes_.size()));
      sizes_.push_back(dim);
    }
  }

  // Applies a node to the factors; false if its effect on them is not known.
  bool Follow(const Graph& graph, const Node& node) {
    const PartialShape& to = graph.fact(node.outputs[0]).shape;
    if (!to.ranked()) return false;
    if (node.op->name == "Transpose") {
      const auto order = OrderOf(graph, node);
      if (!order) return false;
      std::vector<std::vector<int>> axes;
      for (int axis : *order) axes.push_back(std::move(axes_[At(axis)]));
      axes_ = std::move(axes);
      return true;
    }
    if (node.op->name == "Squeeze" || node.op->name == "Unsqueeze") {
      return FollowOnes(graph, node, to.rank());
    }
    return FollowReshape(to);
  }

  // The factors in their present order.
  std::vector<int> order() const {
    std::vector<int> all;
    for (const auto& axis : axes_) all.insert(all.end(), axis.begin(), axis.end());
    return all;
  }
  std::vector<int> source() const {
    std::vector<int> kept;
    for (int f : source_) {
      if (!gone_.contains(f)) kept.push_back(f);
    }
    return kept;
  }
  const Dim& size(int factor) const { return sizes_[At(factor)]; }

 private:
  bool FollowOnes(const Graph& graph, const Node& node, int rank) {
    if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
    const auto given = NeedInts(graph.fact(node.inputs[1]), "axes");
    if (!given.ok()) return false;
    const bool adds = node.op->name == "Unsqueeze";
    std::vector<int> axes;
    for (int64_t axis : *given) {
      const auto at = NormalizeAxis(axis, adds ? rank : static_cast<int>(axes_.size()));
      if (!at.ok()) return false;
      axes.push_back(*at);
    }
    std::sort(axes.begin(), axes.end());
    if (!adds) std::reverse(axes.begin(), axes.end());
    for (int axis : axes) {
      const auto place = axes_.begin() + axis;
      if (adds) {
        axes_.insert(place, std::vector<int>());
        continue;
      }
      gone_.insert(place->begin(), place->end());  // a squeezed axis must have size 1 at run time
      axes_.erase(place);
    }
    return true;
  }

  // Takes the first (or last) factors of `left` whose product is `dim`; a factor that is too large
  // is split.
  bool Take(const Dim& dim, bool first, std::vector<int>& left, std::vector<int>& taken) {
    if (dim.size == 1) return true;
    if (left.empty()) return false;
    const auto end = [&]() { return first ? left.begin() : left.end() - 1; };
    if (!dim.known()) {
      if (!sizes_[At(*end())].Same(dim)) return false;
      taken.push_back(*end());
      left.erase(end());
      return true;
    }
    int64_t need = dim.size;
    while (need > 1) {
      if (left.empty()) return false;
      const int factor = *end();
      const Dim size = sizes_[At(factor)];
      if (!size.known() || size.size == 0) return false;
      if (need % size.size == 0) {
        need /= size.size;
        taken.insert(first ? taken.end() : taken.begin(), factor);
        left.erase(end());
      } else if (size.size % need == 0) {
        // The outer part keeps the factor's number; the inner part gets a new one.
        const int64_t rest = size.size / need;
        const int inner = static_cast<int>(sizes_.size());
        sizes_[At(factor)] = Dim(first ? need : rest);
        sizes_.push_back(Dim(first ? rest : need));
        source_.insert(std::find(source_.begin(), source_.end(), factor) + 1, inner);
        taken.insert(first ? taken.end() : taken.begin(), first ? factor : inner);
        if (first) left.front() = inner;
        need = 1;
      } else {
        return false;
      }
    }
    return need == 1;
  }

  bool FollowReshape(const PartialShape& to) {
    std::vector<int> left = order();
    std::vector<std::vector<int>> axes(At(to.rank()));
    int begin = 0, end = to.rank();
    // Sizes are matched from both ends as far as they are certainly equal; one axis may take what
    // remains.
    while (begin < end && (to[begin].known() || !to[begin].name.empty())) {
      if (!Take(to[begin], true, left, axes[At(begin)])) {
        if (!axes[At(begin)].empty()) return false;
        break;
      }
      ++begin;
    }
    while (end > begin + 1) {
      if (!Take(to[end - 1], false, left, axes[At(end - 1)])) return false;
      --end;
    }
    if (begin < end) {
      if (!to[begin].known()) {
        axes[At(begin)] = std::move(left);
      } else if (!Take(to[begin], false, left, axes[At(begin)]) || !left.empty()) {
        return false;
      }
    } else if (!left.empty()) {
      return false;
    }
    axes_ = std::move(axes);
    return true;
  }

  std::vector<Dim> sizes_;
  std::vector<int> source_;             // in the order in which the source stores them
  std::vector<std::vector<int>> axes_;  // the factors of each axis of the current value
  std::set<int> gone_;
};

class MovementMerger {
 public:
  MovementMerger(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    touched_.resize(graph_.nodes().size());
    for (uint32_t n = static_cast<uint32_t>(graph_.nodes().size()); n-- > 0;) {
      if (!touched_[n] && Moves(graph_.node(NodeId{n}))) ONCILLA_TRY(MergeUpTo(NodeId{n}));
    }
    return Status();
  }

 private:
  static bool Moves(const Node& node) {
    const std::string_view op = node.op->name;
    return op == "Transpose" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" ||
           op == "Flatten";
  }

  Status MergeUpTo(NodeId last) {
    std::vector<NodeId> chain = {last};  // from the last node to the first
    while (true) {
      const NodeId producer = graph_.value(graph_.node(chain.back()).inputs[0]).producer;
      if (producer == kNoNode || touched_[Index(producer)] || !Moves(graph_.node(producer))) break;
      chain.push_back(producer);
    }
    // If a reshape cannot be followed, the chain starts after it.
    while (chain.size() > 1) {
      ONCILLA_ASSIGN(const bool merged, Merge(chain));
      if (merged) break;
      chain.pop_back();
    }
    return Status();
  }

  Result<bool> Merge(const std::vector<NodeId>& chain) {
    const Node& last = graph_.node(chain.front());
    const ValueId x = graph_.node(chain.back()).inputs[0];
    const PartialShape &from = graph_.fact(x).shape, &to = graph_.fact(last.outputs[0]).shape;
    if (!from.ranked() || !to.ranked()) return false;
    Factors factors(from);
    int transposes = 0;
    bool single = true;
    for (size_t i = chain.size(); i-- > 0;) {
      const Node& node = graph_.node(chain[i]);
      if (!factors.Follow(graph_, node)) return false;
      if (node.op->name == "Transpose") ++transposes;
      if (i > 0 && transposes > 0) single &= uses_.Single(node.outputs[0]);
    }
    // Worth it only if it saves a transpose. Values in between must have no other readers, unless
    // no transpose remains.
    const std::vector<int> source = factors.source(), order = factors.order();
    const bool same = source == order;
    if (transposes < (same ? 1 : 2) || (!same && !single)) return false;

    ValueId y = x;
    std::vector<NodeId> nodes(chain.rbegin(), chain.rend());
    if (!same) {
      // Factors that stay adjacent form one axis, as far as their sizes are known.
      std::vector<Dim> sizes;
      std::vector<int> first;
      for (size_t i = 0; i < source.size(); ++i) {
        const Dim& size = factors.size(source[i]);
        if (i > 0 && size.known() && sizes.back().known()) {
          const auto before = std::find(order.begin(), order.end(), source[i - 1]);
          if (before + 1 != order.end() && before[1] == source[i]) {
            sizes.back().size = SaturatingMul(sizes.back().size, size.size);
            continue;
          }
        }
        sizes.push_back(size);
        first.push_back(source[i]);
      }
      if (sizes.size() > At(kMaxRank)) return false;
      AxisOrder perm;
      for (int f : order) {
        const auto at = std::find(first.begin(), first.end(), f);
        if (at != first.end()) perm.push_back(static_cast<int>(at - first.begin()));
      }
      ONCILLA_ASSIGN(y, AddReshape(y, PartialShape(sizes), nodes));
      if (y == kNoValue) return false;
      ONCILLA_ASSIGN(y, AddTranspose(patch_, y, perm, nodes));
    }
    ONCILLA_ASSIGN(y, AddReshape(y, to, nodes));
    if (y == kNoValue) return false;
    for (NodeId id : chain) touched_[Index(id)] = true;
    ONCILLA_TRY(patch_.Replace(last.outputs[0], y));
    return true;
  }

  // Reshapes x to `to`; kNoValue if the sizes cannot be expressed. An unknown size is copied from
  // the same axis of x, and one may be inferred (-1).
  Result<ValueId> AddReshape(ValueId x, const PartialShape& to, const std::vector<NodeId>& nodes) {
    const PartialShape from = patch_.fact(x).shape;
    if (from.rank() != to.rank() || !from.known()) {
      ONCILLA_ASSIGN(const ValueId view, AddView(patch_, x, to, nodes));
      if (view != kNoValue) return view;
    }
    std::vector<int64_t> sizes;
    bool same = from.rank() == to.rank(), open = false;
    for (int i = 0; i < to.rank(); ++i) {
      const bool copied = i < from.rank() && from[i].Same(to[i]);
      same &= copied;
      if (to[i].size == 0) return kNoValue;
      if (!to[i].known() && !copied && open) return kNoValue;
      open |= !to[i].known() && !copied;
      sizes.push_back(to[i].known() ? to[i].size : copied ? 0 : -1);
    }
    if (same) return x;
    AttrMap attrs;
    if (!to.known()) attrs = WriteAttrs(ReshapeAttrs{.zero_copies = true});
    const ValueId shape = patch_.AddConstant(Tensor::Int64s(sizes));
    return patch_.Add("Reshape", std::move(attrs), {x, shape}, nodes);
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
  std::vector<bool> touched_;
};

}  // namespace

Status MergeMovements(const Graph& graph, const PassContext&, Patch& patch) {
  return MovementMerger(graph, patch).Run();
}

}  // namespace oncilla
