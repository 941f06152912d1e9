// Graphs and patches: inference when nodes are added; order, names and dead code after a patch.
#include "engine/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/patch.h"
#include "engine/graph/print.h"
#include "engine/graph/verify.h"

namespace oncilla {
namespace {

using testing::HasSubstr;

Graph Chain() {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{2, 3}));
  const ValueId shape = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{3, -1}));
  const ValueId flat = graph.Add("flat", "Reshape", {}, {x, shape}).value();
  const ValueId probs = graph.Add("probs", "Softmax", {{"axis", int64_t{1}}}, {flat}).value();
  graph.SetValueName(flat, "flat:0");
  graph.AddOutput("probs", probs);
  return graph;
}

TEST(Graph, PrintsStably) {
  EXPECT_EQ(Print(Chain()),
            "input  %0 x f32[2,3]\n"
            "const  %1 i64[2] = 3,-1\n"
            "%2 f32[3,2] = Reshape(%0, %1) 'flat'\n"
            "%3 f32[3,2] = Softmax(%2) {axis=1} 'probs'\n"
            "output probs %3\n");
  EXPECT_TRUE(Verify(Chain()).ok());
}

TEST(Graph, RefusalNamesTheNode) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{2}));
  auto bad = graph.Add("probs", "Softmax", {{"axis", int64_t{5}}}, {x});
  EXPECT_THAT(Message(bad.status()),
              HasSubstr("node 'probs' (Softmax): axis 5 is out of range for rank 1"));
  EXPECT_EQ(Details(bad.status()).node, "probs");
  EXPECT_EQ(graph.Add("n", "Nope", {}, {x}).status().code(), Code::kUnimplemented);
  EXPECT_THAT(Message(graph.Add("n", "Softmax", {{"axes", int64_t{1}}}, {x}).status()),
              HasSubstr("no attribute 'axes'"));
}

TEST(Patch, ReplacesAndDropsWhatNobodyNeeds) {
  const Graph graph = Chain();
  Patch patch(graph);
  // Softmax of x directly, reshaped after.
  const ValueId soft = patch.Add("Softmax", {}, {graph.inputs()[0].value}, {NodeId{1}}).value();
  const ValueId out = patch.Add("Reshape", {}, {soft, ValueId{1}}, {NodeId{0}, NodeId{1}}).value();
  ASSERT_TRUE(patch.Replace(graph.outputs()[0].value, out).ok());
  auto next = patch.Apply();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(Verify(*next).ok()) << Verify(*next);
  EXPECT_EQ(Print(*next),
            "input  %0 x f32[2,3]\n"
            "const  %2 i64[2] = 3,-1\n"
            "%1 f32[2,3] = Softmax(%0) 'probs'\n"
            "%3 f32[3,2] = Reshape(%1, %2) 'flat'\n"
            "output probs %3\n");
  EXPECT_THAT(next->nodes()[1].sources, testing::ElementsAre("flat", "probs"));
}

TEST(Patch, RefusesAnotherDType) {
  const Graph graph = Chain();
  Patch patch(graph);
  const ValueId other = patch.AddConstant(Tensor::ScalarInt64(1));
  EXPECT_FALSE(patch.Replace(graph.outputs()[0].value, other).ok());
}

TEST(Inference, ReshapeKeepsNamedSizes) {
  Graph graph(OpSet::Builtin());
  const ValueId x =
      graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim::Named("n"), Dim(4), Dim(3)})));
  const ValueId shape = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{0, -1}));
  const ValueId y = graph.Add("y", "Reshape", {{"zero_copies", true}}, {x, shape}).value();
  EXPECT_EQ(StrCat(graph.fact(y)), "f32[n,12]");
}

}  // namespace
}  // namespace oncilla
