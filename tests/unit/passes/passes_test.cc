// Each pass by itself: its result on a small graph, what it must not change, and that both compute
// the same.
#include <gtest/gtest.h>

#include "engine/base/early_end.h"
#include "engine/base/work_limits.h"
#include "engine/graph/print.h"
#include "tests/unit/support/graph_text.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using namespace testing;

Graph After(const GraphText& text, const std::vector<Pass>& passes) {
  return RunAndCompare(text.graph(), passes);
}
// The ops that are left, in order.
std::string Ops(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes()) {
    if (!out.empty()) out += ' ';
    out += node.op->name;
  }
  return out;
}
// Device passes need placed nodes.
Graph Placed(Graph graph) {
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) graph.SetDevice(NodeId{n}, 0);
  return graph;
}

const Pass kRemove{"remove no-ops", &RemoveNoOps}, kLower{"lower batch norm", &LowerBatchNorm},
    kScales{"fold scales", &FoldScales}, kFold{"fold constants", &FoldConstants},
    kMerge{"merge duplicates", &MergeDuplicates}, kFuse{"fuse epilogue", &FuseEpilogue},
    kSimplify{"simplify", &Simplify}, kMovements{"merge movements", &MergeMovements};

TEST(RemoveNoOps, WhatChangesNothing) {
  GraphText t;
  const PartialShape open({Dim::Named("n"), Dim(3)});
  ValueId x = t.Input("x", open);
  x = t.Add("Identity", {x});
  x = t.Add("Cast", {x}, {{"to", DType::kF32}});
  x = t.Transpose(x, {0, 1});
  x = t.Add("Reshape", {x, t.Ints({0, 3})}, {{"zero_copies", true}});
  x = t.Add("Pad", {x, t.Ints({0, 0, 0, 0})});
  x = t.Add("Concat", {x}, {{"axis", int64_t{0}}});
  x = t.Add("Slice", {x, t.Ints({0}), t.Ints({3}), t.Ints({1}), t.Ints({1})});
  t.Output("y", t.Add("Relu", {x}));
  const Graph after = After(t, {kRemove});
  EXPECT_EQ(Print(after),
            "input  %0 x f32[n,3]\n"
            "%1 f32[n,3] = Relu(%0) 'Relu8'\n"
            "output y %1\n");
}

TEST(RemoveNoOps, WhatMayChangeSomethingStays) {
  GraphText t;
  const ValueId x = t.Input("x", PartialShape({Dim(), Dim(3)}));
  const ValueId y = t.Add("Reshape", {x, t.Ints({-1, 3})});  // the size has no name
  t.Output("y", t.Add("Cast", {y}, {{"to", DType::kF64}}));
  EXPECT_EQ(Ops(After(t, {kRemove})), "Reshape Cast");

  GraphText moves;
  ValueId z = moves.Input("z", Shape{2, 3});
  z = moves.Add("Pad", {z, moves.Ints({0, 1, 0, -1})});  // of the same size
  z = moves.Add("Slice",
                {z, moves.Ints({-1}), moves.Ints({-9}), moves.Ints({1}), moves.Ints({-1})});
  z = moves.Add("Expand", {z, moves.Ints({1, 2, 3})});
  moves.Output("y", moves.Add("Concat", {z, z}, {{"axis", int64_t{0}}}));
  EXPECT_EQ(Ops(After(moves, {kRemove})), "Pad Slice Expand Concat");
}

TEST(LowerBatchNorm, BecomesAProductAndASum) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3, 4});
  const auto c = [&](int64_t n) { return t.Weights({n}); };
  t.Output("last", t.Add("BatchNorm", {x, c(4), c(4), c(4), c(4)}));
  t.Output("first", t.Add("BatchNorm", {x, c(3), c(3), c(3), c(3)}, {{"axis", int64_t{1}}}));
  EXPECT_EQ(Ops(After(t, {kLower, kFold})), "Mul Add Mul Add");
}

TEST(LowerBatchNorm, StatisticsOfTheRunStay) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 4}), mean = t.Input("mean", Shape{4});
  t.Output("y", t.Add("BatchNorm", {x, t.Weights({4}), t.Weights({4}), mean, t.Weights({4})}));
  EXPECT_EQ(Ops(After(t, {kLower, kFold})), "BatchNorm");
}

TEST(FoldScales, FactorsAndTermsMoveIntoWeights) {
  GraphText t;
  ValueId x = t.Input("x", Shape{1, 5, 5, 3});
  x = t.Add("Conv", {x, t.Weights({2, 2, 3, 4}), t.Weights({4})});
  x = t.Add("Mul", {t.Add("Add", {x, t.Weights({4})}), t.Weights({1, 1, 1, 4})});
  x = t.Add("Add", {x, t.Floats({}, {0.5f})});
  x = t.Add("ConvTranspose", {x, t.Weights({2, 2, 3, 4})},
            {{"strides", std::vector<int64_t>{2, 2}}});
  x = t.Add("Add", {t.Add("Mul", {t.Weights({3}), x}), t.Weights({3})});
  t.Output("y", t.Add("Mul", {t.Add("MatMul", {x, t.Weights({3, 2})}), t.Floats({1}, {3})}));
  const Graph after = After(t, {kScales, kFold});
  EXPECT_EQ(Ops(after), "Conv ConvTranspose MatMul") << Print(after);
}

TEST(FoldScales, OtherAxesAndOtherReadersStay) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{1, 4, 4, 3});
  const ValueId conv = t.Add("Conv", {x, t.Weights({1, 1, 3, 4})});
  t.Output("rows", t.Add("Mul", {conv, t.Weights({4, 1, 1})}));
  t.Output("channels", t.Add("Mul", {conv, t.Weights({4})}));  // conv has two readers
  const ValueId active =
      t.Add("Conv", {x, t.Weights({1, 1, 3, 4})}, {{"activation", std::string("relu")}});
  t.Output("active", t.Add("Add", {active, t.Weights({4})}));
  const ValueId turned = t.Add("MatMul", {x, t.Weights({2, 3})}, {{"transpose_b", true}});
  t.Output("turned", t.Add("Mul", {turned, t.Weights({2})}));
  EXPECT_EQ(Ops(After(t, {kScales, kFold})), "Conv Mul Mul Conv Add MatMul Mul");
}

TEST(FoldScalesAhead, FactorsAndTermsMoveIntoTheReader) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{1, 5, 5, 4});
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  const auto affine = [&](const Shape& shape) {
    return t.Add("Add", {t.Add("Mul", {t.Weights(shape), t.Add("Tanh", {x})}), t.Weights(shape)});
  };
  t.Output("channels", t.Add("Conv", {affine({4}), t.Weights({2, 2, 4, 3})}));
  t.Output("one", t.Add("Conv", {affine({}), t.Weights({1, 1, 2, 6}), t.Weights({6})},
                        {{"groups", int64_t{2}}}));
  t.Output("deep", t.Add("Conv", {affine({1, 1, 4}), t.Weights({3, 3, 1, 4})},
                         {{"groups", int64_t{4}}, {"auto_pad", std::string("valid")}}));
  t.Output("padded", t.Add("Conv", {t.Add("Mul", {x, t.Weights({4})}), t.Weights({3, 3, 4, 2})},
                           {{"pads", pads}}));
  const Graph after = After(t, {kMerge, {"fold scales ahead", &FoldScalesAhead}, kFold, kMerge});
  EXPECT_EQ(Ops(after), "Tanh Conv Conv Conv Conv") << Print(after);
}

TEST(FoldScalesAhead, PaddingGroupsAndOtherReadersStay) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{1, 5, 5, 4});
  const ValueId sum = t.Add("Add", {x, t.Weights({4})});
  t.Output("padded", t.Add("Conv", {sum, t.Weights({3, 3, 4, 2})},
                           {{"auto_pad", std::string("same_upper")}}));
  t.Output("groups", t.Add("Conv", {t.Add("Mul", {x, t.Weights({4})}), t.Weights({1, 1, 2, 4})},
                           {{"groups", int64_t{2}}}));
  const ValueId read = t.Add("Mul", {x, t.Weights({4})});
  t.Output("read", read);
  t.Output("twice", t.Add("Conv", {read, t.Weights({1, 1, 4, 4})}));
  // The constant stretches what it meets.
  const ValueId one = t.Input("one", Shape{1, 1, 1, 1});
  t.Output("stretched",
           t.Add("Conv", {t.Add("Mul", {one, t.Weights({4})}), t.Weights({1, 1, 4, 2})}));
  EXPECT_EQ(Ops(After(t, {{"fold scales ahead", &FoldScalesAhead}, kFold})),
            "Add Conv Mul Conv Mul Conv Mul Conv");
}

TEST(FoldConstants, WhatIsKnownIsComputed) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3});
  const ValueId size = t.Add("Cast", {t.Add("Size", {x})}, {{"to", DType::kF32}});
  t.Output("y", t.Add("Div", {t.Add("ReduceSum", {x}), size}));
  EXPECT_EQ(Ops(After(t, {kFold})), "ReduceSum Div");
}

TEST(FoldConstants, LargeRepetitionsStay) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{});
  const ValueId many = t.Add("Expand", {t.Weights({4}), t.Ints({100000, 4})});
  t.Output("y", t.Add("Mul", {many, x}));
  const ValueId few = t.Add("Expand", {t.Weights({4}), t.Ints({10, 4})});
  t.Output("z", t.Add("Mul", {few, x}));
  EXPECT_EQ(Ops(After(t, {kFold})), "Expand Mul Mul");
}

// Sizes that depend on data, and strings: their memory does not follow from shapes.
TEST(FoldConstants, WhatGrowsBeyondItsFactsStays) {
  const auto folded = [](int64_t limit) {
    GraphText t;
    const std::vector<ValueId> ranges =
        t.AddAll("RaggedRange", {t.Ints({0}), t.Ints({limit}), t.Ints({1})});
    t.Output("y", t.Add("Mul", {ranges[1], t.Input("x", Shape{}, DType::kI64)}));
    return Ops(RunOnly(t.graph(), std::vector<Pass>{kFold}));
  };
  EXPECT_EQ(folded(100), "Mul");
  EXPECT_EQ(folded(100000), "RaggedRange Mul");            // a result of 800 KB
  EXPECT_EQ(folded(int64_t{1} << 40), "RaggedRange Mul");  // refused before it is made
  GraphText t;
  const ValueId word = t.Strings({1}, {std::string(60000, 'x')});
  t.Output("y", t.Add("Expand", {word, t.Ints({2000})}));
  EXPECT_EQ(Ops(RunOnly(t.graph(), std::vector<Pass>{kFold})), "Expand");
}

TEST(FoldConstants, WhatFailsStaysToFailWhenItIsRun) {
  GraphText t;
  const ValueId zero = t.Ints({0}), one = t.Ints({1});
  t.Output("y", t.Add("FloorDiv", {one, zero}));
  EXPECT_EQ(Ops(RunOnly(t.graph(), std::vector<Pass>{kFold})), "FloorDiv");
}

TEST(MergeDuplicates, EqualNodesAndConstantsBecomeOne) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3});
  const ValueId a = t.Add("Add", {x, t.Floats({}, {2})}), b = t.Add("Add", {x, t.Floats({}, {2})});
  const ValueId c = t.Add("Add", {x, t.Floats({}, {3})});
  t.Output("y", t.Add("Mul", {t.Add("Relu", {a}), t.Add("Relu", {b})}));
  t.Output("z", t.Add("Mul", {t.Add("Softmax", {c}), t.Add("Softmax", {c}, {{"log", true}})}));
  EXPECT_EQ(Ops(After(t, {kMerge})), "Add Relu Mul Add Softmax Softmax Mul");
}

TEST(FuseEpilogue, BiasResidualAndActivation) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{1, 4, 4, 3}), r = t.Input("r", Shape{1, 4, 4, 5});
  ValueId y = t.Add("Add", {t.Weights({5}), t.Add("Conv", {x, t.Weights({1, 1, 3, 5})})});
  y = t.Add("Relu", {t.Add("Add", {r, y})});
  t.Output("y", t.Add("Gelu", {t.Add("MatMul", {y, t.Weights({5, 2})})}));
  const Graph after = RunAndCompare(Placed(t.graph()), std::vector<Pass>{kFuse, kFold});
  EXPECT_EQ(Ops(after), "Conv MatMul") << Print(after);
  EXPECT_EQ(after.nodes()[0].inputs.size(), 4u);
}

TEST(FuseEpilogue, WhatOthersReadOrWhatStretchesStays) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{1, 4, 4, 3}), r = t.Input("r", Shape{1, 1, 4, 5});
  const ValueId fetched = t.Add("Conv", {x, t.Weights({1, 1, 3, 5})});
  t.Output("fetched", fetched);
  t.Output("relu", t.Add("Relu", {fetched}));
  // A residual of another shape, and what comes behind an activation.
  const ValueId other =
      t.Add("Conv", {x, t.Weights({1, 1, 3, 5})}, {{"activation", std::string("relu")}});
  t.Output("sum", t.Add("Add", {t.Add("Conv", {x, t.Weights({1, 1, 3, 5})}), r}));
  t.Output("twice", t.Add("Add", {other, t.Weights({5})}));
  const Graph after = RunAndCompare(Placed(t.graph()), std::vector<Pass>{kFuse, kFold});
  EXPECT_EQ(Ops(after), "Conv Relu Conv Conv Add Add") << Print(after);
}

TEST(Simplify, TransposesAndViews) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3, 4});
  t.Output("round", t.Transpose(t.Transpose(x, {2, 0, 1}), {1, 2, 0}));
  t.Output("one", t.Transpose(t.Transpose(x, {2, 0, 1}), {2, 0, 1}));
  const ValueId ones = t.Input("ones", Shape{2, 1, 5, 1});
  t.Output("view", t.Transpose(ones, {0, 3, 1, 2}));
  t.Output("flat", t.Add("Reshape", {t.Add("Unsqueeze", {x, t.Ints({0})}), t.Ints({6, 4})}));
  EXPECT_EQ(Ops(After(t, {kSimplify, kRemove})), "Transpose Reshape Reshape");
}

TEST(Simplify, ViewsOfSizesThatAreNotKnown) {
  GraphText t;
  const ValueId x = t.Input("x", PartialShape({Dim::Named("n"), Dim(), Dim(), Dim(1)}));
  t.Output("y", t.ToFirst(x));
  EXPECT_EQ(Ops(After(t, {kSimplify})), "Squeeze Unsqueeze");
}

TEST(Simplify, ProductsReadTransposedOperands) {
  GraphText t;
  const ValueId q = t.Input("q", Shape{2, 6, 3, 4}), k = t.Input("k", Shape{2, 6, 3, 4});
  const ValueId a = t.Transpose(q, {0, 2, 1, 3}), b = t.Transpose(k, {0, 2, 3, 1});
  t.Output("heads", t.Add("MatMul", {a, b}));
  const ValueId m = t.Input("m", Shape{5, 7});
  t.Output("whole", t.Add("MatMul", {t.Transpose(m, {1, 0}), m}));
  t.Output("flag", t.Add("MatMul", {m, t.Transpose(m, {1, 0})},
                         {{"transpose_a", true}, {"transpose_b", true}}));
  const Graph after = After(t, {kSimplify});
  EXPECT_EQ(Ops(after), "Transpose Transpose MatMul MatMul MatMul") << Print(after);
  // Rows stay whole.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(StrCat(after.fact(after.nodes()[static_cast<size_t>(i)].outputs[0]).shape),
              "[2,3,6,4]");
  }
}

TEST(Simplify, ClipsThatAreActivations) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3});
  const ValueId zero = t.Floats({}, {0}), six = t.Floats({}, {6}), one = t.Floats({}, {1});
  t.Output("relu6", t.Add("Clip", {x, zero, six}));
  t.Output("relu", t.Add("Clip", {x, zero}));
  t.Output("other", t.Add("Clip", {x, zero, one}));
  t.Output("none", t.Add("Clip", {x, kNoValue, six}));
  // Some exporters write bounds of one element; of more axes than x they would lift the result.
  t.Output("vectors", t.Add("Clip", {x, t.Floats({1}, {0}), t.Floats({1}, {6})}));
  t.Output("lifted", t.Add("Clip", {x, t.Floats({1, 1, 1, 1, 1}, {0}), six}));
  EXPECT_EQ(Ops(After(t, {kSimplify})), "Relu6 Relu Clip Clip Relu6 Clip");
}

TEST(MergeMovements, ChainsComeDownToOneTransposeOrNone) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 5, 6, 12});
  // Pixels to tokens: the channels were last all along.
  const ValueId tokens =
      t.Transpose(t.Add("Reshape", {t.ToFirst(x), t.Ints({2, 12, 30})}), {0, 2, 1});
  t.Output("tokens", t.Add("Relu", {tokens}));
  // A shuffle of groups of channels.
  ValueId y = t.Add("Reshape", {t.ToFirst(x), t.Ints({2, 3, 4, 5, 6})});
  y = t.Add("Reshape", {t.Transpose(y, {0, 2, 1, 3, 4}), t.Ints({2, 12, 5, 6})});
  t.Output("shuffled", t.Add("Relu", {t.ToLast(y)}));
  const Graph after = After(t, {kMovements, kRemove});
  EXPECT_EQ(Ops(after), "Reshape Relu Reshape Transpose Reshape Relu") << Print(after);
}

TEST(MergeMovements, SizesThatAreNotKnown) {
  GraphText t;
  const ValueId x = t.Input("x", PartialShape({Dim::Named("n"), Dim(), Dim(), Dim(8)}));
  const ValueId flat =
      t.Add("Reshape", {t.ToFirst(x), t.Ints({0, 8, -1})}, {{"zero_copies", true}});
  t.Output("tokens", t.Transpose(flat, {0, 2, 1}));
  EXPECT_EQ(Ops(After(t, {kMovements})), "Reshape");
}

TEST(MergeMovements, WhatOthersReadStays) {
  GraphText t;
  const ValueId x = t.Input("x", Shape{2, 3, 4, 5});
  const ValueId a = t.Transpose(x, {0, 2, 1, 3});
  t.Output("a", a);
  const ValueId b = t.Add("Reshape", {a, t.Ints({8, 15})});
  t.Output("b", t.Transpose(b, {1, 0}));
  EXPECT_EQ(Ops(After(t, {kMovements})), "Transpose Reshape Transpose");
}

// A value that becomes known must give its readers better facts.
TEST(Patch, FactsGrow) {
  GraphText t;
  const ValueId x = t.Input("x", PartialShape({Dim::Named("n"), Dim(24)}));
  // Inference does not compute this, folding does.
  const ValueId size = t.Add("Neg", {t.Ints({-6})});
  const ValueId shape = t.Add("Concat", {t.Ints({-1}), size, t.Ints({4})});
  const ValueId y = t.Add("Reshape", {x, shape});
  EXPECT_EQ(StrCat(t.shape(y)), "[?,?,4]");
  t.Output("y", t.Add("Relu", {y}));
  const Graph after = After(t, {kFold});
  EXPECT_EQ(StrCat(after.fact(after.outputs()[0].value)), "f32[n,6,4]") << Print(after);
}

// A pass may take long on a large graph, so limits of the work are checked before each.
TEST(RunPasses, EndsBeforeTheNextPassWhenTheWorkIsCancelled) {
  GraphText t;
  t.Output("y", t.Add("Relu", {t.Add("Identity", {t.Input("x", Shape{2, 3})})}));
  const std::vector<Pass> passes = {kRemove,
                                    {"never", [](const Graph&, const PassContext&, Patch&) {
                                       return Internal("the work was cancelled before");
                                     }}};
  SessionParts parts;
  const EarlyEnd end = {.cancel = CancellationToken::Create()};
  PipelineOptions options;
  options.observe = [&](std::string_view, const Graph&) { end.cancel.Cancel(); };
  const WorkScope scope({nullptr, &end});
  auto after = RunPasses(t.graph(), passes, PassContext{parts.devices()}, options);
  EXPECT_EQ(after.status().code(), Code::kCancelled) << after.status().message();
}

}  // namespace
}  // namespace oncilla
