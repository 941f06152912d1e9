// Transposes move through nodes that can compute in another order, meet and cancel.
#include <gtest/gtest.h>

#include "engine/graph/print.h"
#include "tests/unit/support/graph_text.h"

namespace oncilla {
namespace {

using namespace testing;

Graph Optimised(const GraphText& text) { return RunAndCompare(text.graph(), GraphPasses()); }
int Transposes(const Graph& graph) { return CountOps(graph, "Transpose"); }

// Convolutions in ONNX's layout, with batch norm, a shortcut and a classifier.
TEST(MoveTransposes, ResidualNetKeepsOneAtItsInput) {
  GraphText t;
  ValueId x = t.ConvFirst(t.Input("x", Shape{1, 3, 8, 8}), 3, 4, 3);
  x = t.Add("Relu", {x});
  ValueId y = t.ConvFirst(x, 4, 4, 3);
  y = t.ToFirst(t.Add(
      "BatchNorm", {t.ToLast(y), t.Weights({4}), t.Weights({4}), t.Weights({4}), t.Weights({4})}));
  y = t.Add("Relu", {t.Add("Add", {y, x})});
  y = t.ToFirst(t.Add("ReduceMean", {t.ToLast(y), t.Ints({1, 2})}, {{"keep_dims", true}}));
  y = t.Add("Flatten", {y});
  t.Output("y", t.Add("MatMul", {y, t.Weights({4, 2})}));
  const Graph after = Optimised(t);
  EXPECT_EQ(Transposes(after), 1);
  EXPECT_EQ(after.nodes()[0].op->name, "Transpose") << Print(after);
}

// A channels-first result must still be channels first.
TEST(MoveTransposes, FetchedValuesKeepTheirOrder) {
  GraphText t;
  const ValueId x = t.Add("Relu", {t.ConvFirst(t.Input("x", Shape{2, 3, 5, 7}), 3, 4, 3)});
  const ValueId y = t.Add("Sigmoid", {t.ConvFirst(x, 4, 2, 1)});
  t.Output("x", x);
  t.Output("y", y);
  EXPECT_EQ(Transposes(Optimised(t)), 3);
}

// Squeeze and excitation: a channel's factor is broadcast over the image.
TEST(MoveTransposes, FactorsPerChannel) {
  GraphText t;
  const ValueId x = t.ConvFirst(t.Input("x", Shape{1, 3, 6, 6}), 3, 4, 3);
  ValueId s = t.ToFirst(t.Add("ReduceMean", {t.ToLast(x), t.Ints({1, 2})}, {{"keep_dims", true}}));
  s = t.Add("HardSigmoid", {t.ConvFirst(t.Add("Relu", {t.ConvFirst(s, 4, 2, 1)}), 2, 4, 1)});
  t.Output("y", t.ConvFirst(t.Add("Mul", {x, s}), 4, 3, 3));
  EXPECT_EQ(Transposes(Optimised(t)), 2);
}

// Every op that names axes, between two convolutions.
TEST(MoveTransposes, OpsThatNameAxes) {
  GraphText t;
  const ValueId x = t.ConvFirst(t.Input("x", Shape{2, 3, 6, 5}), 3, 4, 3);
  const auto parts = t.AddAll("Split", {x}, {{"axis", int64_t{1}}, {"parts", int64_t{2}}});
  ValueId y = t.Add("Concat", {parts[1], parts[0]}, {{"axis", int64_t{-3}}});
  y = t.Add("Pad", {y, t.Ints({0, 1, 2, 3, 0, 0, 1, -1})});
  y = t.Add("Slice", {y, t.Ints({1, 0}), t.Ints({9, 7}), t.Ints({2, -1})});
  y = t.Add("Slice", {y, t.Ints({0, 1}), t.Ints({2, 4})});
  y = t.Add("Softmax", {y}, {{"axis", int64_t{1}}});
  y = t.Add("Reverse", {y, t.Ints({3})});
  y = t.Add("Roll", {y, t.Ints({1, 2}), t.Ints({1, 2})});
  y = t.Add("Tile", {y, t.Ints({1, 1, 1, 2})});
  y = t.Add("CumSum", {y, t.Ints({2})});
  y = t.Add("Gather", {y, t.Ints({2, 0, 1})}, {{"axis", int64_t{1}}});
  y = t.Add("PRelu", {y, t.Weights({3, 1, 1})});
  y = t.Add("Where", {t.Add("Greater", {y, t.Floats({}, {0.5f})}), y, t.Add("Neg", {y})});
  y = t.Add("Clip", {y, t.Floats({}, {-3}), t.Floats({}, {3})});
  const ValueId top = t.Add("ReduceMax", {y, t.Ints({-3})}, {{"keep_dims", true}});
  y = t.Add("Sub", {y, top});
  t.Output("y", t.Add("ReduceSum", {t.ConvFirst(y, 3, 2, 3), t.Ints({2, 3})}));
  const Graph after = Optimised(t);
  EXPECT_EQ(Transposes(after), 1) << Print(after);
}

// Reductions that drop axes must return the rest in its original order.
TEST(MoveTransposes, DroppedAxes) {
  GraphText t;
  const ValueId x = t.ConvFirst(t.Input("x", Shape{2, 3, 6, 5}), 3, 4, 3);
  t.Output("pixels", t.Add("ReduceMean", {x, t.Ints({1})}));
  t.Output("columns", t.Add("ReduceMax", {x, t.Ints({2})}));
  t.Output("classes", t.Add("ArgMax", {x}, {{"axis", int64_t{1}}}));
  t.Output("all", t.Add("ReduceSum", {x}));
  // The small [2,4,5] is transposed instead of the picture.
  const Graph after = Optimised(t);
  EXPECT_EQ(Transposes(after), 2) << Print(after);
}

TEST(MoveTransposes, SizesThatAreNotKnown) {
  GraphText t;
  const PartialShape open({Dim::Named("n"), Dim(3), Dim(), Dim()});
  const ValueId x = t.ConvFirst(t.Input("x", open), 3, 4, 3);
  const ValueId shape = t.Add("Shape", {x});
  t.Output("shape", shape);
  const ValueId rows = t.Add("Gather", {shape, t.Ints({2})});
  t.Output("rows", rows);
  t.Output("y", t.ConvFirst(t.Add("Relu6", {x}), 4, 4, 3));
  const Graph after = Optimised(t);
  EXPECT_EQ(Transposes(after), 2) << Print(after);
}

TEST(MoveTransposes, UnknownRanksAreLeftAlone) {
  GraphText t;
  const ValueId x = t.Input("x", PartialShape());
  t.Output("y", t.Add("Relu", {x}));
  const Graph after = Optimised(t);
  EXPECT_EQ(Print(after), Print(t.graph()));
}

// Never more bytes than before: if a large operand is not transposed, a small one's transpose is
// not moved either.
TEST(MoveTransposes, NeverTransposesMoreThanBefore) {
  GraphText t;
  const ValueId small = t.ToFirst(t.Input("small", Shape{1, 1, 8, 8}));  // [1,8,1,8]
  const ValueId large = t.Input("large", Shape{16, 8, 8, 8});
  t.Output("y", t.Add("Add", {t.Add("Relu", {small}), large}));
  const Graph after = Optimised(t);
  EXPECT_EQ(Transposes(after), 1);
  EXPECT_EQ(StrCat(after.fact(after.outputs()[0].value).shape), "[16,8,8,8]");
  for (const Node& node : after.nodes()) {
    if (node.op->name != "Transpose") continue;
    EXPECT_EQ(after.fact(node.outputs[0]).shape.elements().size, 64);
  }
}

// x + x^T requires two orders at once.
TEST(MoveTransposes, ContradictionsStay) {
  GraphText t;
  const ValueId x = t.Add("Relu", {t.Input("x", Shape{4, 4})});
  const ValueId y = t.Add("Add", {x, t.Transpose(x, {1, 0})});
  t.Output("y", t.Transpose(t.Add("Exp", {y}), {1, 0}));
  EXPECT_LE(Transposes(Optimised(t)), 2);
}

}  // namespace
}  // namespace oncilla
