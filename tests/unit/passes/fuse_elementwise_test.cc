// Elementwise chains and trees in one node: which nodes are fused, which are not, and that results
// do not change.
#include <gmock/gmock.h>

#include "engine/run/executor.h"
#include "tests/unit/support/pass_parts.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;
using testing::OpsOf;
using testing::Scalar;

class FuseElementwiseTest : public testing::PassTest {
 protected:
  FuseElementwiseTest() : graph_(OpSet::Builtin()) {}
  ValueId Input(const char* name, PartialShape shape) {
    return graph_.AddInput(name, Fact::Of(DType::kF32, std::move(shape)));
  }
  ValueId Add(const char* name, std::string_view op, std::vector<ValueId> inputs,
              AttrMap attrs = {}) {
    return graph_.Add(name, op, std::move(attrs), std::move(inputs)).value();
  }
  Graph Fused() { return After(graph_, {{"fuse elementwise", &FuseElementwise}}); }

  Graph graph_;
};

TEST_F(FuseElementwiseTest, ADiamondBecomesOneProgram) {
  const ValueId x = Input("x", Shape{4, 6}), bias = Input("bias", Shape{6});
  const ValueId half = graph_.AddConstant(Scalar(0.5f));
  const ValueId sum = Add("sum", "Add", {x, bias});
  const ValueId s = Add("s", "Sigmoid", {sum});
  const ValueId p = Add("p", "Mul", {sum, s});
  graph_.AddOutput("y", Add("y", "Mul", {p, half}));
  const Graph after = Fused();
  EXPECT_THAT(Print(after),
              HasSubstr("FusedElementwise(%0, %1) {program=[Add 0 1,Sigmoid t0,Mul t0 "
                        "t1,Mul t2 #0.5]} @0 'y'"));
  EXPECT_EQ(after.nodes().size(), 1u);
  EXPECT_THAT(after.node(NodeId{0}).sources, ::testing::UnorderedElementsAre("sum", "s", "p", "y"));
  ExpectSameResults(graph_, after, 0);
}

TEST_F(FuseElementwiseTest, SizesThatAreNotKnownAreTheSameWhereNothingStretches) {
  const ValueId x = Input("x", PartialShape({Dim(), Dim(), Dim(6)}));
  const ValueId other = Input("other", PartialShape({Dim(), Dim(6)}));
  const ValueId scale =
      graph_.AddConstant(Tensor::Of<float>(DType::kF32, {6}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  const ValueId a = Add("a", "Mul", {x, scale});
  const ValueId b = Add("b", "Add", {a, scale});
  // This may stretch b, so b stays outside.
  graph_.AddOutput("y", Add("y", "Relu", {Add("c", "Add", {b, other})}));
  EXPECT_EQ(OpsOf(Fused()), "FusedElementwise FusedElementwise");
}

TEST_F(FuseElementwiseTest, FetchedAndSmallerValuesStayApart) {
  const ValueId x = Input("x", Shape{4, 6}), row = Input("row", Shape{6});
  // Per row: fused, it would be computed four times over.
  const ValueId gate = Add("gate", "Exp", {row});
  const ValueId a = Add("a", "Mul", {x, gate});
  const ValueId b = Add("b", "Abs", {a});
  graph_.AddOutput("b", b);
  graph_.AddOutput("c", Add("c", "Neg", {b}));
  const Graph after = Fused();
  EXPECT_EQ(OpsOf(after), "Exp FusedElementwise Neg");
  ExpectSameResults(graph_, after, 0);
}

TEST_F(FuseElementwiseTest, AReaderInBetweenKeepsTheOrder) {
  // x -> a -> softmax -> c, and a -> c: a has a reader outside, which comes before c.
  const ValueId x = Input("x", Shape{4, 6});
  const ValueId a = Add("a", "Exp", {x});
  const ValueId soft = Add("soft", "Softmax", {a});
  graph_.AddOutput("c", Add("c", "Mul", {a, soft}));
  const Graph after = Fused();
  EXPECT_EQ(OpsOf(after), "Exp Softmax Mul");
}

TEST_F(FuseElementwiseTest, ManyInputsEndAGroup) {
  ValueId sum = Input("x0", Shape{3});
  for (int i = 1; i < 40; ++i) {
    sum = Add(StrCat("s", i).c_str(), "Add", {sum, Input(StrCat("x", i).c_str(), Shape{3})});
  }
  graph_.AddOutput("y", sum);
  const Graph after = Fused();
  EXPECT_LE(after.nodes().size(), 4u);
  for (const Node& node : after.nodes()) EXPECT_LE(node.inputs.size(), 16u);
  ExpectSameResults(graph_, after, 0);
}

TEST_F(FuseElementwiseTest, ConditionsCastsAndIntegers) {
  const ValueId x = Input("x", Shape{5, 7});
  const ValueId zero = graph_.AddConstant(Scalar(0)), ten = graph_.AddConstant(Scalar(10));
  const ValueId positive = Add("positive", "Greater", {x, zero});
  const ValueId picked = Add("picked", "Where", {positive, zero, ten});
  const ValueId scaled = Add("scaled", "Mul", {x, picked});
  graph_.AddOutput("y", Add("y", "Cast", {scaled}, {{"to", DType::kI32}}));
  const Graph after = Fused();
  EXPECT_EQ(OpsOf(after), "FusedElementwise") << Print(after);
  ExpectSameResults(graph_, after, 0);
}

// Sizes computed from shapes must stay visible to planning.
TEST_F(FuseElementwiseTest, ShapeArithmeticIsLeftAlone) {
  const ValueId x = Input("x", PartialShape({Dim::Named("n"), Dim(4)}));
  const ValueId shape = Add("shape", "Shape", {x});
  const ValueId two = graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>{2, 2}));
  const ValueId one = graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>{1, 1}));
  const ValueId doubled = Add("doubled", "Mul", {shape, two});
  const ValueId target = Add("target", "FloorDiv", {Add("less", "Sub", {doubled, one}), one});
  const ValueId back = Add("back", "FloorDiv", {Add("more", "Add", {target, one}), two});
  graph_.AddOutput("y", Add("y", "Reshape", {x, back}));
  EXPECT_EQ(Fused().nodes().size(), graph_.nodes().size());
}

}  // namespace
}  // namespace oncilla
