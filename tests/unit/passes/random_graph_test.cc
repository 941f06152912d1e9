// Random graphs of movements, elementwise ops, reductions and convolutions: the passes must not
// change results, must terminate, and must never transpose more bytes than before.
//
// A graph is a list of random steps. It is built twice: with all sizes known, and with some of its
// inputs' sizes open.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/graph/print.h"
#include "engine/passes/axis_order.h"
#include "engine/passes/precision.h"
#include "tests/unit/support/graph_text.h"
#include "tests/unit/support/run_graph.h"

namespace oncilla {
namespace {

using namespace testing;

class Dice {
 public:
  explicit Dice(uint32_t seed) : state_(seed * 2654435761u + 12345) {}
  int Below(int64_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int>((state_ >> 8) % static_cast<uint32_t>(n));
  }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class T>
  const T& One(const std::vector<T>& list) {
    return list[static_cast<size_t>(Below(static_cast<int64_t>(list.size())))];
  }

 private:
  uint32_t state_;
};

// Draws random steps; shapes are read from a graph in which every size is known, so that the same
// random numbers give the same steps, no matter which sizes the built graph knows.
class RandomGraph {
 public:
  RandomGraph(uint32_t seed, bool open) : dice_(seed), open_(open) {
    for (int i = 0; i < 2; ++i) AddInput(i);
    const int steps = 6 + dice_.Below(18);
    for (int i = 0; i < steps; ++i) Step();
    for (int i = 0; i < 3; ++i) {
      const size_t at = values_.size() - 1 - Size(dice_.Below(i == 0 ? 1 : Int(values_.size())));
      const std::string name = "y" + std::to_string(i);
      known_.Output(name, values_[at].known);
      built_.Output(name, values_[at].built);
    }
  }
  const Graph& graph() const { return built_.graph(); }

 private:
  struct Pair {
    ValueId known, built;
  };
  static size_t Size(int i) { return static_cast<size_t>(i); }
  static int Int(size_t i) { return static_cast<int>(i); }

  void AddInput(int i) {
    std::vector<Dim> dims, partly;
    for (int64_t size : {2, 3 + dice_.Below(2), 4, 2 + dice_.Below(3)}) {
      dims.push_back(Dim(size));
      // Open sizes are fed with 2.
      const bool hidden = size == 2 && dice_.Chance(70);
      partly.push_back(!hidden ? Dim(size) : dice_.Chance(50) ? Dim::Named("n") : Dim());
    }
    const std::string name = "x" + std::to_string(i);
    const ValueId known = known_.Input(name, PartialShape(dims));
    values_.push_back({known, built_.Input(name, PartialShape(open_ ? partly : dims))});
  }

  Shape ShapeOf(const Pair& p) const { return known_.shape(p.known).ToShape(); }

  // Adds a node to both graphs; constants are made for each.
  Pair Add(std::string_view op, const std::vector<Pair>& inputs, const AttrMap& attrs = {}) {
    std::vector<ValueId> known, built;
    for (const Pair& p : inputs) {
      known.push_back(p.known);
      built.push_back(p.built);
    }
    return {known_.Add(op, known, attrs), built_.Add(op, built, attrs)};
  }
  Pair Ints(const std::vector<int64_t>& values) {
    return {known_.Ints(values), built_.Ints(values)};
  }
  Pair Weights(const Shape& shape) { return {known_.Weights(shape), built_.Weights(shape)}; }

  std::vector<int64_t> RandomOrder(int rank) {
    std::vector<int64_t> order(Size(rank));
    std::iota(order.begin(), order.end(), 0);
    // The orders of layouts come more often than others.
    if (rank == 4 && dice_.Chance(60)) {
      return dice_.Chance(50) ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 3, 1, 2};
    }
    for (int i = rank; i > 1; --i) std::swap(order[Size(i - 1)], order[Size(dice_.Below(i))]);
    return order;
  }

  void Step() {
    const Pair x =
        values_[values_.size() - 1 - Size(dice_.Below(std::min<int64_t>(4, Int(values_.size()))))];
    const Shape shape = ShapeOf(x);
    const int rank = shape.rank();
    if (rank == 0) return;
    const int axis = dice_.Below(rank);
    const AttrMap on_axis = {{"axis", int64_t{dice_.Chance(50) ? axis : axis - rank}}};
    Pair y = x;
    switch (dice_.Below(17)) {
      case 0:
      case 1:
      case 2:
      case 3:
        y = Add("Transpose", {x, Ints(RandomOrder(rank))});
        break;
      case 4:
        y = Add(dice_.One<std::string_view>({"Relu", "Tanh", "Sigmoid", "Neg", "HardSwish"}), {x});
        break;
      case 5: {  // with a constant that is stretched
        Shape other(shape.begin() + dice_.Below(rank), shape.end());
        for (int i = 0; i < other.rank(); ++i) {
          if (dice_.Chance(50)) other[i] = 1;
        }
        y = Add(dice_.One<std::string_view>({"Add", "Mul", "Sub", "Max", "PRelu"}),
                {x, Weights(other)});
        break;
      }
      case 6:
      case 7:  // with any value that fits, in either order
        for (size_t i = values_.size(); i-- > 0;) {
          const auto both = BroadcastShapes(PartialShape(shape), PartialShape(ShapeOf(values_[i])));
          if (!both.ok() || both->elements().size > 4000 || !dice_.Chance(60)) continue;
          y = dice_.Chance(50) ? Add("Add", {x, values_[i]}) : Add("Mul", {values_[i], x});
          break;
        }
        break;
      case 8:
        if (shape.elements() < 2000) {
          y = Add("Concat", {x, dice_.Chance(50) ? Add("Neg", {x}) : x}, on_axis);
        }
        break;
      case 9: {
        const int64_t from = shape[axis] > 1 ? dice_.Below(shape[axis] - 1) : 0;
        y = Add("Slice", {x, Ints({from}), Ints({from + 1 + dice_.Below(3)}), Ints({axis})});
        break;
      }
      case 10: {
        std::vector<int64_t> pads(Size(2 * rank));
        pads[Size(axis)] = dice_.Below(2);
        pads[Size(rank + dice_.Below(rank))] = dice_.Below(2);
        y = Add("Pad", {x, Ints(pads)});
        break;
      }
      case 11: {
        const std::vector<int64_t> axes = rank > 1 && dice_.Chance(50)
                                              ? std::vector<int64_t>{axis, (axis + 1) % rank}
                                              : std::vector<int64_t>{axis};
        y = Add(dice_.One<std::string_view>({"ReduceMean", "ReduceMax", "ReduceSum"}),
                {x, Ints(axes)}, {{"keep_dims", dice_.Chance(50)}});
        break;
      }
      case 12:
        y = Add("Softmax", {x}, on_axis);
        break;
      case 13: {  // neighbours become one axis, or one axis becomes two
        std::vector<int64_t> sizes(shape.begin(), shape.end());
        if (rank > 1 && (rank > 4 || dice_.Chance(50))) {
          const size_t at = Size(dice_.Below(rank - 1));
          sizes[at] *= sizes[at + 1];
          sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at) + 1);
          if (dice_.Chance(30)) sizes[0] = -1;
        } else if (shape[axis] % 2 == 0 && shape[axis] > 0) {
          sizes[Size(axis)] /= 2;
          sizes.insert(sizes.begin() + axis, 2);
        }
        y = Add("Reshape", {x, Ints(sizes)});
        break;
      }
      case 14:
        if (rank < 5 && dice_.Chance(60)) {
          y = Add("Unsqueeze", {x, Ints({axis})});
        } else if (shape[axis] == 1) {
          y = Add("Squeeze", {x, Ints({axis})});
        }
        break;
      case 15:
        if (rank == 4 && shape.elements() < 3000) {
          const int64_t out = 2 + dice_.Below(3), kernel = dice_.Chance(50) ? 1 : 3;
          y = {known_.ConvFirst(x.known, shape[1], out, kernel),
               built_.ConvFirst(x.built, shape[1], out, kernel)};
        }
        break;
      case 16:
        if (rank >= 2) y = Add("MatMul", {x, Weights({shape.back(), 3})});
        break;
    }
    values_.push_back(y);
  }

  Dice dice_;
  const bool open_;
  GraphText known_, built_;
  std::vector<Pair> values_;
};

// The bytes that transposes move, without those that only move axes of size 1.
int64_t TransposedBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Transpose") continue;
    const auto order = OrderOf(graph, node);
    const PartialShape& from = graph.fact(node.inputs[0]).shape;
    if (!order || KeepsBytes(from, *order)) continue;
    if (graph.value(node.inputs[0]).is_constant()) continue;
    bytes += graph.fact(node.outputs[0]).desc().bytes();
  }
  return bytes;
}

constexpr uint32_t kGraphs = 600;

TEST(RandomGraphs, PassesKeepWhatIsComputed) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const RandomGraph random(seed, false);
    // Unneeded nodes are removed before anything is counted.
    auto needed = Patch(random.graph()).Apply();
    ASSERT_TRUE(needed.ok());
    const Graph after = RunAndCompare(*needed, GraphPasses(), 1e-4);
    EXPECT_LE(TransposedBytes(after), TransposedBytes(*needed)) << "before:\n"
                                                                << Print(*needed) << "after:\n"
                                                                << Print(after);
    if (HasFailure()) break;
  }
}

TEST(RandomGraphs, OpenSizes) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RunAndCompare(RandomGraph(seed, true).graph(), GraphPasses(), 1e-4);
    if (HasFailure()) break;
  }
}

TEST(RandomGraphs, FusionsKeepWhatIsComputed) {
  std::vector<Pass> passes(GraphPasses().begin(), GraphPasses().end());
  passes.insert(passes.end(), DevicePasses().begin(), DevicePasses().end());
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Graph graph = RandomGraph(seed, seed % 2 == 1).graph();
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) graph.SetDevice(NodeId{n}, 0);
    const Graph fused = RunAndCompare(graph, passes, 1e-4);
    RunAndCompare(fused, LastPasses(), 1e-4);
    if (HasFailure()) break;
  }
}

// Narrow storage as a pass that terminates.
Status NarrowAll(const Graph& graph, const PassContext& given, Patch& patch) {
  StorageRequest request;
  request.options.storage = DType::kF16;
  PrecisionReport report;
  PassContext context = given;
  context.storage = &request;
  context.precision = &report;
  return NarrowStorage(graph, context, patch);
}

TEST(RandomGraphs, NarrowStorageKeepsWhatIsComputedAndTheBorders) {
  static constexpr Pass kNarrow[] = {{"narrow storage", &NarrowAll}};
  int narrow = 0, compared = 0;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Graph graph = RandomGraph(seed, seed % 2 == 1).graph();
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) graph.SetDevice(NodeId{n}, 0);
    const Graph after = RunOnly(graph, kNarrow);
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      EXPECT_EQ(after.fact(after.outputs()[i].value).dtype,
                graph.fact(graph.outputs()[i].value).dtype);
    }
    bool any = false;
    for (const Value& value : after.values()) any |= value.fact.dtype == DType::kF16;
    narrow += any;
    // Products of products grow beyond any bound on the errors; those that stay small are compared.
    const auto feeds = RandomFeeds(graph, 7);
    std::vector<Tensor> values;
    const auto expected = RunGraph(graph, feeds, &values), actual = RunGraph(after, feeds);
    ASSERT_TRUE(expected.ok() && actual.ok());
    double largest = 0;
    for (const Tensor& value : values) {
      if (!value.valid() || value.dtype() != DType::kF32) continue;
      for (const float v : value.As<float>()) largest = std::max(largest, std::abs(double{v}));
    }
    if (!(largest < 100)) continue;
    ++compared;
    for (size_t i = 0; i < expected->size(); ++i) {
      if ((*expected)[i].dtype() != DType::kF32) continue;
      const auto a = (*expected)[i].As<float>(), b = (*actual)[i].As<float>();
      ASSERT_EQ(a.size(), b.size());
      for (size_t k = 0; k < a.size(); ++k) {
        ASSERT_NEAR(a[k], b[k], 0.01 * (1 + largest)) << Print(graph) << Print(after);
      }
    }
  }
  EXPECT_GT(narrow, 100);
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace oncilla
