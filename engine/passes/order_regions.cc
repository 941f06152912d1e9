// Finds regions of nodes with a free order and chooses an order for each node.
#include "engine/passes/order_regions.h"

#include <algorithm>

#include "engine/passes/min_cut.h"

namespace oncilla {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Costs. A transposed byte outweighs everything else. A Reshape in place of a transpose counts a
// little. A transpose before a node with a free order costs slightly more than one after it, so
// that what follows a convolution stays in its order.
constexpr int64_t kByte = 1 << 14, kView = 4, kEarly = 1;
constexpr int64_t kMostBytes = int64_t{1} << 34;
constexpr int64_t kGuessedSize = 16;

int64_t EstimateBytes(DType dtype, const PartialShape& shape) {
  int64_t bytes = std::max<int64_t>(1, BitsOf(dtype) / 8);
  for (const Dim& dim : shape.dims()) {
    bytes = SaturatingMul(bytes, dim.known() ? dim.size : kGuessedSize);
  }
  return std::clamp<int64_t>(bytes, 1, kMostBytes);
}

// A value that is not the result of a transpose, from which transposed forms are derived.
struct Source {
  struct Reader {
    int node = -1;    // index of a node with a free order, -1 for one with a fixed order
    AxisOrder order;  // the reader sees Transpose(value, order)
  };
  ValueId value = kNoValue;
  PartialShape shape;
  int64_t bytes = 0;  // an estimate where sizes are not known
  int maker = -1;     // index of the node with a free order that computes it
  AxisOrder frame;    // the order relative to the region's first node; empty: not visited
  std::vector<Reader> readers;
};

class RegionFinder {
 public:
  explicit RegionFinder(const Graph& graph) : graph_(graph) {}

  OrderPlan Run() {
    TraceOrigins();
    FindFreeNodes();
    FindReaders();
    for (int n = 0; n < static_cast<int>(plan_.nodes.size()); ++n) {
      if (!plan_.nodes[At(n)].frame.empty()) continue;
      Visit(n);
      Choose();
    }
    return std::move(plan_);
  }

 private:
  // ---- finding sources, and the nodes that read them ----

  void TraceOrigins() {
    plan_.origins.resize(graph_.values().size());
    for (uint32_t i = 0; i < graph_.values().size(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      if (value.fact.kind == ValueKind::kTensor && value.fact.shape.ranked()) {
        plan_.origins[i] = {ValueId{i}, SameOrder(value.fact.shape.rank())};
      }
    }
    is_transpose_.resize(graph_.nodes().size());
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      const auto order = OrderOf(graph_, node);
      if (!order || plan_.origins[Index(node.inputs[0])].source == kNoValue) continue;
      is_transpose_[n] = true;
      const Origin& from = plan_.origins[Index(node.inputs[0])];
      plan_.origins[Index(node.outputs[0])] = {from.source, Compose(from.order, *order)};
    }
  }

  void FindFreeNodes() {
    plan_.node_of.assign(graph_.nodes().size(), -1);
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (is_transpose_[n]) continue;
      auto free = FreeOrderOf(graph_, graph_.node(NodeId{n}));
      if (!free || free->rank < 2 || free->carried.empty()) continue;
      plan_.node_of[n] = static_cast<int>(plan_.nodes.size());
      plan_.nodes.push_back({NodeId{n}, *std::move(free), {}, {}});
    }
  }

  int AddSource(ValueId value, DType dtype, PartialShape shape) {
    Source source;
    source.value = value;
    source.bytes = EstimateBytes(dtype, shape);
    source.shape = std::move(shape);
    sources_.push_back(std::move(source));
    return static_cast<int>(sources_.size()) - 1;
  }

  // The source that a value is derived from; -1 for constants, which are transposed at compile
  // time, and for values without axes to move.
  int SourceOf(ValueId id) {
    if (id == kNoValue) return -1;
    const Origin& origin = plan_.origins[Index(id)];
    if (origin.source == kNoValue || origin.order.size() < 2) return -1;
    if (graph_.value(origin.source).is_constant()) return -1;
    int& source = source_of_[Index(origin.source)];
    if (source < 0) {
      const Fact& fact = graph_.fact(origin.source);
      source = AddSource(origin.source, fact.dtype, fact.shape);
    }
    return source;
  }

  void AddReader(ValueId id, int node) {
    const int source = SourceOf(id);
    if (source < 0) return;
    sources_[At(source)].readers.push_back({node, plan_.origins[Index(id)].order});
    if (node >= 0) touched_[At(node)].push_back(source);
  }

  // Adds a source that only this node sees.
  Source& AddPrivate(int node, ValueId value, DType dtype, PartialShape shape) {
    const int source = AddSource(value, dtype, std::move(shape));
    touched_[At(node)].push_back(source);
    return sources_[At(source)];
  }

  void FindReaders() {
    touched_.resize(plan_.nodes.size());
    pinned_.resize(plan_.nodes.size());
    source_of_.assign(graph_.values().size(), -1);
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      // The shape of a value can be read in any order (see MoveShape).
      if (is_transpose_[n] || node.op->name == "Shape") continue;
      const int at = plan_.node_of[n];
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
        const ValueId id = node.inputs[At(i)];
        if (at < 0) {
          AddReader(id, -1);
          continue;
        }
        const FreeOrder& free = plan_.nodes[At(at)].free;
        const auto in = [&](const std::vector<int>& list) {
          return std::find(list.begin(), list.end(), i) != list.end();
        };
        AddReader(id, in(free.carried) ? at : -1);
        if (in(free.broadcast)) AddBroadcast(at, id);
      }
      if (at < 0) continue;
      for (ValueId id : node.outputs) {
        const Fact& fact = graph_.fact(id);
        if (plan_.nodes[At(at)].free.dropped.empty()) {
          const int source = SourceOf(id);
          sources_[At(source)].maker = at;
          touched_[At(at)].push_back(source);
          continue;
        }
        // Treats the result as if the dropped axes were still there; its readers want the old
        // order.
        std::vector<Dim> dims = fact.shape.dims();
        for (int axis : plan_.nodes[At(at)].free.dropped) dims.insert(dims.begin() + axis, Dim(1));
        AddPrivate(at, id, fact.dtype, PartialShape(std::move(dims))).maker = at;
        sources_.back().readers.push_back({-1, SameOrder(plan_.nodes[At(at)].free.rank)});
      }
    }
    for (const NamedValue& output : graph_.outputs()) AddReader(output.value, -1);
  }

  // An input of lower rank gets leading axes of size 1 if the node's order changes.
  void AddBroadcast(int node, ValueId id) {
    const Fact& fact = graph_.fact(id);
    if (graph_.value(plan_.origins[Index(id)].source).is_constant()) return;
    std::vector<Dim> dims = fact.shape.dims();
    if (std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 1; })) return;
    const int rank = plan_.nodes[At(node)].free.rank;
    dims.insert(dims.begin(), At(rank) - dims.size(), Dim(1));
    AddPrivate(node, id, fact.dtype, PartialShape(std::move(dims)))
        .readers.push_back({node, SameOrder(rank)});
  }

  // ---- one region ----

  // Collects the region of `first`: all nodes and sources linked to it. Each gets a frame, its
  // order of axes in the terms of node `first`.
  void Visit(int first) {
    region_nodes_ = {first};
    region_sources_.clear();
    OrderNode& start = plan_.nodes[At(first)];
    start.frame = start.chosen = SameOrder(start.free.rank);
    // A breadth-first search over nodes and the sources that they read or compute.
    for (size_t next = 0; next < region_nodes_.size(); ++next) {
      const int n = region_nodes_[next];
      for (int s : touched_[At(n)]) VisitSource(s, n);
    }
  }

  void VisitSource(int s, int from) {
    Source& source = sources_[At(s)];
    const auto meet = [&](int n, const AxisOrder& order) {
      if (n < 0) return;
      OrderNode& node = plan_.nodes[At(n)];
      const AxisOrder frame = Compose(source.frame, order);
      if (node.frame.empty()) {
        node.frame = node.chosen = frame;
        region_nodes_.push_back(n);
      } else if (node.frame != frame) {
        pinned_[At(n)] = true;
      }
    };
    // Its maker and readers were all met at the first visit, and frames do not change.
    if (!source.frame.empty()) return;
    AxisOrder order = SameOrder(source.shape.rank());
    for (const auto& reader : source.readers) {
      if (source.maker != from && reader.node == from) order = reader.order;
    }
    source.frame = Compose(plan_.nodes[At(from)].frame, Inverse(order));
    region_sources_.push_back(s);
    meet(source.maker, SameOrder(source.shape.rank()));
    for (const auto& reader : source.readers) meet(reader.node, reader.order);
  }

  // The order in which the source is stored.
  const AxisOrder& Stored(const Source& source) const {
    if (source.maker < 0 || pinned_[At(source.maker)]) return source.frame;
    return plan_.nodes[At(source.maker)].chosen;
  }
  bool IsFree(int node) const { return node >= 0 && !pinned_[At(node)]; }
  AxisOrder Wanted(const Source& source, const Source::Reader& reader) const {
    return IsFree(reader.node) ? plan_.nodes[At(reader.node)].chosen
                               : Compose(source.frame, reader.order);
  }

  static int64_t Cost(const Source& source, const AxisOrder& from, const AxisOrder& to) {
    if (from == to) return 0;
    const PartialShape stored = Reorder(source.shape, Compose(Inverse(source.frame), from));
    return KeepsBytes(stored, Compose(Inverse(from), to)) ? kView : source.bytes * kByte + kView;
  }

  int64_t Early(const Source& source) const {
    return graph_.value(source.value).producer == kNoNode ? 0 : kEarly;
  }

  int64_t TotalCost() const {
    int64_t total = 0;
    for (int s : region_sources_) {
      const Source& source = sources_[At(s)];
      const AxisOrder& stored = Stored(source);
      std::vector<AxisOrder> orders;
      for (const auto& reader : source.readers) {
        AxisOrder order = Wanted(source, reader);
        if (order == stored) continue;
        if (IsFree(reader.node)) total += Early(source);
        if (std::find(orders.begin(), orders.end(), order) != orders.end()) continue;
        int64_t cost = Cost(source, stored, order);
        for (const AxisOrder& other : orders) cost = std::min(cost, Cost(source, other, order));
        total = SaturatingAdd(total, cost);
        orders.push_back(std::move(order));
      }
    }
    return total;
  }

  // The orders that the region's border asks for.
  std::vector<AxisOrder> Candidates() const {
    std::vector<AxisOrder> orders;
    const auto add = [&](AxisOrder order) {
      if (std::find(orders.begin(), orders.end(), order) == orders.end()) {
        orders.push_back(std::move(order));
      }
    };
    for (int s : region_sources_) {
      const Source& source = sources_[At(s)];
      if (!IsFree(source.maker)) add(source.frame);
      for (const auto& reader : source.readers) {
        if (!IsFree(reader.node)) add(Wanted(source, reader));
      }
    }
    return orders;
  }

  // Local search: offer each candidate order to the region and keep it if the total cost drops.
  void Choose() {
    int64_t best = TotalCost();
    if (best == 0) return;
    constexpr int kMaxSweeps = 4;
    bool better = true;
    for (int sweep = 0; sweep < kMaxSweeps && better; ++sweep) {
      better = false;
      for (const AxisOrder& order : Candidates()) {
        std::vector<AxisOrder> before;
        for (int n : region_nodes_) before.push_back(plan_.nodes[At(n)].chosen);
        Switch(order);
        const int64_t cost = TotalCost();
        if (cost < best) {
          best = cost;
          better = plan_.changes = true;
          continue;
        }
        for (size_t i = 0; i < region_nodes_.size(); ++i) {
          plan_.nodes[At(region_nodes_[i])].chosen = std::move(before[i]);
        }
      }
    }
  }

  // Moves every node of the region that gains by it to this order, by a minimum cut.
  void Switch(const AxisOrder& order) {
    MinCut cut;  // side 1: in the new order
    std::vector<int> side(plan_.nodes.size(), MinCut::kSide0);
    for (int n : region_nodes_) {
      const OrderNode& node = plan_.nodes[At(n)];
      if (node.chosen == order)
        side[At(n)] = MinCut::kSide1;
      else if (IsFree(n))
        side[At(n)] = cut.Add();
    }
    const auto side_of = [&](int node, const AxisOrder& now) {
      if (IsFree(node)) return side[At(node)];
      return now == order ? MinCut::kSide1 : MinCut::kSide0;
    };
    for (int s : region_sources_) {
      const Source& source = sources_[At(s)];
      const AxisOrder& stored = Stored(source);
      const int maker = side_of(source.maker, stored);
      // One transpose to the new order, if the maker keeps the old one and any reader switches.
      const int any = cut.Add();
      cut.Cost(maker, any, Cost(source, stored, order));
      // One transpose to each old order that any reader keeps.
      std::vector<std::pair<AxisOrder, int>> kept;
      for (const auto& reader : source.readers) {
        AxisOrder now = Wanted(source, reader);
        const int at = side_of(reader.node, now);
        if (at != MinCut::kSide0) cut.Cost(any, at, MinCut::kForbidden);
        if (IsFree(reader.node) && Early(source) > 0) PayEarly(cut, maker, at, stored, now, order);
        if (at == MinCut::kSide1) continue;
        auto group = std::find_if(kept.begin(), kept.end(),
                                  [&](const auto& item) { return item.first == now; });
        if (group == kept.end()) {
          const int all = cut.Add();  // side 1: all readers of this order have switched
          const int64_t old_cost = Cost(source, stored, now), new_cost = Cost(source, order, now);
          cut.Cost(all, MinCut::kSide1, old_cost);
          cut.Cost(all, maker, new_cost - old_cost);
          group = kept.insert(kept.end(), {std::move(now), all});
        }
        cut.Cost(at, group->second, MinCut::kForbidden);
      }
    }
    const std::vector<bool> switched = cut.Solve();
    for (int n : region_nodes_) {
      if (IsFree(n) && switched[At(side[At(n)])]) plan_.nodes[At(n)].chosen = order;
    }
  }

  // The cost kEarly, due if the orders of the maker and a reader differ, written as a cut: a
  // constant, one cost for each of the two sides, and the remainder for both together.
  static void PayEarly(MinCut& cut, int maker, int reader, const AxisOrder& stored,
                       const AxisOrder& now, const AxisOrder& order) {
    const int64_t keep = stored != now, reader_switches = stored != order,
                  maker_switches = order != now;
    const auto pay_if_1 = [&](int at, int64_t cost) {
      if (cost > 0) cut.Cost(MinCut::kSide0, at, cost * kEarly);
      if (cost < 0) cut.Cost(at, MinCut::kSide1, -cost * kEarly);
    };
    pay_if_1(maker, maker_switches - keep);
    pay_if_1(reader, -maker_switches);
    cut.Cost(maker, reader, (reader_switches + maker_switches - keep) * kEarly);
  }

  const Graph& graph_;
  OrderPlan plan_;
  std::vector<bool> is_transpose_;
  std::vector<Source> sources_;
  std::vector<int> source_of_;             // by value id
  std::vector<std::vector<int>> touched_;  // by free node: sources that it reads or makes
  std::vector<bool> pinned_;  // by free node: its inputs disagree, so it keeps its order
  std::vector<int> region_nodes_, region_sources_;
};

}  // namespace

OrderPlan ChooseOrders(const Graph& graph) { return RegionFinder(graph).Run(); }

}  // namespace oncilla
