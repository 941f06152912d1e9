// Shapes that flow through inference as values: chains keep named sizes and settle reshapes.
#include "engine/graph/graph.h"
#include "engine/ops/known_ints.h"
#include "gtest/gtest.h"

namespace oncilla {
namespace {

class ShapeChainTest : public ::testing::Test {
 protected:
  ValueId Input(std::vector<Dim> dims, DType dtype = DType::kF32) {
    return graph_.AddInput("x", Fact::Of(dtype, PartialShape(std::move(dims))));
  }
  ValueId Ints(std::vector<int64_t> values) { return graph_.AddConstant(Tensor::Int64s(values)); }
  ValueId Scalar(int64_t value) { return graph_.AddConstant(Tensor::ScalarInt64(value)); }
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    auto added = graph_.AddNode("n", op, std::move(attrs), std::move(inputs));
    EXPECT_TRUE(added.ok()) << added.status();
    return added.ok() ? added->front() : kNoValue;
  }
  std::string FactOf(ValueId id) { return StrCat(graph_.fact(id)); }
  std::string ElementsOf(ValueId id) {
    const auto elements = CarriedElements(graph_.fact(id));
    if (!elements) return "nothing";
    return StrCat(PartialShape(*elements));
  }
  // x.shape[0] as TensorFlow takes it.
  ValueId First(ValueId shape) {
    return Add("StridedSlice", {shape, Ints({0}), Ints({1}), Ints({1})},
               {{"shrink_axis_mask", int64_t{1}}});
  }
  // TensorFlow's Pack of scalars.
  ValueId Pack(std::vector<ValueId> scalars) {
    std::vector<ValueId> parts;
    for (ValueId id : scalars) parts.push_back(Add("Unsqueeze", {id, Ints({0})}));
    return Add("Concat", parts);
  }

  Graph graph_{OpSet::Builtin()};
};

const Dim kBatch = Dim::Named("batch");

TEST_F(ShapeChainTest, PackedShapeKeepsTheBatch) {
  const ValueId x = Input({kBatch, 7, 7, 64});
  const ValueId batch = First(Add("Shape", {x}));
  EXPECT_EQ(FactOf(batch), "i64[]");
  EXPECT_EQ(ElementsOf(batch), "[batch]");
  const ValueId shape = Pack({batch, Scalar(3136)});
  EXPECT_EQ(ElementsOf(shape), "[batch,3136]");
  EXPECT_EQ(FactOf(Add("Reshape", {x, shape})), "f32[batch,3136]");
}

TEST_F(ShapeChainTest, MinusOneBesideANamedSizeIsWhatIsLeft) {
  const ValueId x = Input({kBatch, 7, 7, 64});
  const ValueId shape = Pack({First(Add("Shape", {x})), Scalar(-1)});
  // A negative element is not propagated, so it is unknown here, but folded below.
  EXPECT_EQ(ElementsOf(shape), "[batch,?]");
  EXPECT_EQ(FactOf(Add("Reshape", {x, shape})), "f32[batch,3136]");
}

TEST_F(ShapeChainTest, ConstantReshapesKeepTheBatch) {
  const ValueId x = Input({kBatch, 7, 7, 64});
  EXPECT_EQ(FactOf(Add("Reshape", {x, Ints({-1, 3136})})), "f32[batch,3136]");
  EXPECT_EQ(FactOf(Add("Reshape", {x, Ints({-1, 64})})), "f32[?,64]");
  EXPECT_EQ(FactOf(Add("Reshape", {x, Ints({0, -1})}, {{"zero_copies", true}})), "f32[batch,3136]");
  const ValueId unnamed = Input({Dim(), 2, 3});
  EXPECT_EQ(FactOf(Add("Reshape", {unnamed, Ints({0, -1})}, {{"zero_copies", true}})), "f32[?,6]");
  EXPECT_EQ(FactOf(Add("Flatten", {x})), "f32[batch,3136]");
}

// Exporters compute ends of slices from sizes; without their values the rank or the sizes of what
// follows would be unknown.
TEST_F(ShapeChainTest, ArithmeticOnKnownSizesIsComputed) {
  const ValueId x = Input({kBatch, 7, 10, Dim()});
  const ValueId shape = Add("Shape", {x});
  EXPECT_EQ(ElementsOf(Add("Mul", {shape, Ints({1, 2, 3, 4})})), "[batch,14,30,?]");
  EXPECT_EQ(ElementsOf(Add("Add", {shape, Ints({0, 2, -3, 1})})), "[batch,9,?,?]");
  EXPECT_EQ(ElementsOf(Add("Sub", {shape, Ints({1, 2, 11, 1})})), "[?,5,?,?]");
  EXPECT_EQ(ElementsOf(Add("FloorDiv", {shape, Scalar(4)})), "[?,1,2,?]");
  EXPECT_EQ(ElementsOf(Add("Div", {shape, Ints({1, 0, 3, 1})})), "[?,?,3,?]");
  EXPECT_EQ(ElementsOf(Add("FloorMod", {shape, Scalar(4)})), "[?,3,2,?]");
  EXPECT_EQ(ElementsOf(Add("Max", {shape, Scalar(8)})), "[?,8,10,?]");
  EXPECT_EQ(ElementsOf(Add("Mul", {shape, Scalar(INT64_MAX)})), "nothing");
  const ValueId small = Add("Cast", {shape}, {{"to", DType::kI8}});
  const ValueId many = graph_.AddConstant(Tensor::Of<int8_t>(DType::kI8, Shape{}, std::vector<int8_t>{20}));
  EXPECT_EQ(ElementsOf(Add("Mul", {small, many})), "nothing");  // 140 and 200 are no int8
  const ValueId end =
      Add("Min", {Add("Mul", {Pack({Add("Gather", {shape, Scalar(1)})}), Ints({2})}), Ints({5})});
  EXPECT_EQ(FactOf(Add("Slice", {x, Ints({0}), end, Ints({1}), Ints({1})})), "f32[batch,5,10,?]");
}

TEST_F(ShapeChainTest, GatherSliceSplitAndSqueezePickElements) {
  const ValueId shape = Add("Shape", {Input({kBatch, Dim(5), Dim::Named("time"), Dim()})});
  EXPECT_EQ(ElementsOf(shape), "[batch,5,time,?]");
  EXPECT_EQ(ElementsOf(Add("Gather", {shape, Ints({2, -4})})), "[time,batch]");
  EXPECT_EQ(ElementsOf(Add("Gather", {shape, Scalar(1)})), "[5]");
  EXPECT_TRUE(graph_.fact(Add("Gather", {shape, Scalar(1)})).has_value());
  EXPECT_EQ(ElementsOf(Add("Slice", {shape, Ints({-2}), Ints({-5}), Ints({0}), Ints({-1})})),
            "[time,5,batch]");
  EXPECT_EQ(ElementsOf(Add("StridedSlice", {shape, Ints({0}), Ints({0}), Ints({2})},
                           {{"end_mask", int64_t{1}}})),
            "[batch,time]");
  auto parts = graph_.AddNode("s", "Split", {{"parts", int64_t{4}}}, {shape});
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(ElementsOf((*parts)[2]), "[time]");
  EXPECT_EQ(ElementsOf((*parts)[3]), "nothing");
  EXPECT_EQ(ElementsOf(Add("Squeeze", {(*parts)[0]})), "[batch]");
  EXPECT_EQ(FactOf(Add("Squeeze", {(*parts)[0]})), "i64[]");
}

TEST_F(ShapeChainTest, KnownSizesBecomeValues) {
  const ValueId x = Input({2, 3, 4});
  EXPECT_TRUE(graph_.fact(Add("Shape", {x})).has_value());
  EXPECT_EQ(ElementsOf(Add("Size", {x})), "[24]");
  EXPECT_EQ(ElementsOf(Add("Rank", {Input({Dim(), Dim()})})), "[2]");
  const ValueId part = Add("Shape", {Input({kBatch, 3})}, {{"start", int64_t{1}}});
  EXPECT_TRUE(graph_.fact(part).has_value());
}

TEST_F(ShapeChainTest, ShapesBuiltFromANamedSize) {
  const ValueId batch = First(Add("Shape", {Input({kBatch, 3})}));
  const ValueId shape = Pack({batch, Scalar(4)});
  const ValueId zero = graph_.AddConstant(Tensor::Scalar(0));
  EXPECT_EQ(FactOf(Add("Fill", {shape, zero})), "f32[batch,4]");
  EXPECT_EQ(FactOf(Add("Range", {Scalar(0), batch, Scalar(1)})), "i64[batch]");
  EXPECT_EQ(FactOf(Add("Expand", {Input({1, 4}), shape})), "f32[batch,4]");
  EXPECT_EQ(FactOf(Add("Tile", {Input({1, 4}), shape})), "f32[batch,16]");
  EXPECT_EQ(ElementsOf(Add("Expand", {batch, Ints({3})})), "[batch,batch,batch]");
  EXPECT_EQ(ElementsOf(Add("Fill", {Ints({2}), batch})), "[batch,batch]");
}

TEST_F(ShapeChainTest, WholeAxesKeepTheirNames) {
  const ValueId x = Input({kBatch, 8, 4});
  EXPECT_EQ(FactOf(Add("Slice", {x, Ints({0, 2}), Ints({INT32_MAX, 6})})), "f32[batch,4,4]");
  EXPECT_EQ(FactOf(Add("StridedSlice", {x, Ints({0, 1}), Ints({0, 3}), Ints({1, 1})},
                       {{"begin_mask", int64_t{1}}, {"end_mask", int64_t{1}}})),
            "f32[batch,2,4]");
  EXPECT_EQ(FactOf(Add("Slice", {x, Ints({1}), Ints({INT32_MAX})})), "f32[?,8,4]");
  EXPECT_EQ(FactOf(Add("Slice", {x, Ints({-1}), Ints({INT64_MIN}), Ints({0}), Ints({-1})})),
            "f32[batch,8,4]");
  EXPECT_EQ(FactOf(Add("Pad", {x, Ints({0, 1, 0, 0, 1, 0})})), "f32[batch,10,4]");
  EXPECT_EQ(FactOf(Add("Transpose", {x, Ints({1, 0, 2})})), "f32[8,batch,4]");
  EXPECT_EQ(FactOf(Add("Concat", {x, x}, {{"axis", int64_t{1}}})), "f32[batch,16,4]");
  EXPECT_EQ(FactOf(Add("Concat", {x, x})), "f32[?,8,4]");
  EXPECT_EQ(FactOf(Add("Gather", {x, Ints({0, 1})}, {{"axis", int64_t{1}}})), "f32[batch,2,4]");
}

}  // namespace
}  // namespace oncilla
