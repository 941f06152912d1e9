// Inverted residuals and gates: what is fused to one node, what must not be, and that both compute
// the same.
#include <gtest/gtest.h>

#include "engine/graph/print.h"
#include "engine/passes/pass.h"
#include "tests/unit/support/graph_text.h"

namespace oncilla {
namespace {

using namespace testing;

const Pass kResiduals{"fuse inverted residuals", &FuseInvertedResiduals};
const Pass kGates{"fuse gates", &FuseGates};

// An image is large enough if its expanded tensor of 64 channels is.
constexpr int64_t kLarge = 64, kSmall = 16, kMany = 64;

class Blocks : public ::testing::Test {
 protected:
  static AttrMap With(int64_t pad, int64_t groups, std::string activation = "relu6") {
    return {{"pads", std::vector<int64_t>{pad, pad, pad, pad}},
            {"groups", groups},
            {"activation", std::move(activation)}};
  }
  // Weights that bounds do not cut all of.
  ValueId Filter(const Shape& shape, int64_t terms) {
    const ValueId positive = t.Weights(shape);
    std::vector<float> values;
    for (const float v : t.graph().fact(positive).value.As<float>()) {
      values.push_back((v - 0.5f) * 4 / static_cast<float>(terms));
    }
    return t.Floats(shape, values);
  }
  ValueId Expand(ValueId x, int64_t in) {
    return t.Add("Conv", {x, Filter({1, 1, in, kMany}, in), t.Weights({kMany})}, With(0, 1));
  }
  ValueId Depthwise(ValueId x, AttrMap more = {}) {
    AttrMap attrs = With(1, kMany);
    for (auto& [name, value] : more) attrs[name] = value;
    return t.Add("Conv", {x, Filter({3, 3, 1, kMany}, 9), t.Weights({kMany})}, attrs);
  }
  ValueId Project(ValueId x, int64_t out, std::vector<ValueId> residual = {}) {
    std::vector<ValueId> inputs = {x, Filter({1, 1, kMany, out}, kMany), t.Weights({out})};
    inputs.insert(inputs.end(), residual.begin(), residual.end());
    return t.Add("Conv", inputs, With(0, 1, "none"));
  }
  ValueId Mean(ValueId x) {
    return t.Add("ReduceMean", {x, t.Ints({1, 2})}, {{"keep_dims", true}});
  }

  // The ops that are left, in order.
  std::string After(const std::vector<Pass>& passes) {
    Graph graph = t.graph();
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) graph.SetDevice(NodeId{n}, 0);
    const Graph after = RunAndCompare(graph, passes, 1e-5);
    std::string out;
    for (const Node& node : after.nodes()) {
      if (!out.empty()) out += ' ';
      out += node.op->name;
    }
    return out;
  }
  std::string Fused() { return After({kResiduals, kGates}); }

  GraphText t;
};

TEST_F(Blocks, ExpandDepthwiseAndProjectBecomeOne) {
  const ValueId x = t.Input("x", Shape{2, kLarge, kLarge, 8});
  t.Output("y", Project(Depthwise(Expand(x, 8)), 8, {x}));
  EXPECT_EQ(Fused(), "InvertedResidual");
}

TEST_F(Blocks, OneAfterTheOther) {
  ValueId x = t.Input("x", PartialShape({Dim::Named("n"), Dim(kLarge), Dim(kLarge), Dim(8)}));
  for (int i = 0; i < 2; ++i) x = Project(Depthwise(Expand(x, 8)), 8, {x});
  t.Output("y", x);
  EXPECT_EQ(Fused(), "InvertedResidual InvertedResidual");
}

TEST_F(Blocks, StridesAndActivationsAreTakenAlong) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 8});
  const std::vector<int64_t> two = {2, 2};
  const AttrMap strides = {{"strides", two},
                           {"activation", std::string("silu")},
                           {"pads", std::vector<int64_t>{}},
                           {"auto_pad", std::string("same_upper")}};
  t.Output("y", Project(Depthwise(Expand(x, 8), strides), 12));
  EXPECT_EQ(Fused(), "InvertedResidual");
}

TEST_F(Blocks, AFirstLayerIsExpand) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 3});
  const ValueId first =
      t.Add("Conv", {x, Filter({3, 3, 3, kMany}, 27), t.Weights({kMany})}, With(1, 1));
  t.Output("y", Project(Depthwise(first), 8));
  EXPECT_EQ(Fused(), "InvertedResidual");
}

TEST_F(Blocks, AWindowOverManyChannelsIsNot) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 8});
  const ValueId first =
      t.Add("Conv", {x, Filter({3, 3, 8, kMany}, 72), t.Weights({kMany})}, With(1, 1));
  t.Output("y", Project(Depthwise(first), 8));
  EXPECT_EQ(Fused(), "Conv InvertedResidual");
}

TEST_F(Blocks, SmallOnesStayApart) {
  const ValueId x = t.Input("x", Shape{1, kSmall, kSmall, 8});
  t.Output("y", Project(Depthwise(Expand(x, 8)), 8, {x}));
  EXPECT_EQ(Fused(), "Conv Conv Conv");
}

TEST_F(Blocks, SizesMustBeKnown) {
  const ValueId x = t.Input("x", PartialShape({Dim(1), Dim::Named("h"), Dim(kLarge), Dim(8)}));
  t.Output("y", Project(Depthwise(Expand(x, 8)), 8, {x}));
  EXPECT_EQ(Fused(), "Conv Conv Conv");
}

TEST_F(Blocks, WhatOthersReadStays) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 8});
  const ValueId expanded = Expand(x, 8);
  t.Output("y", Project(Depthwise(expanded), 8));
  t.Output("z", t.Add("Neg", {expanded}));
  EXPECT_EQ(Fused(), "Conv InvertedResidual Neg");
}

TEST_F(Blocks, WhatIsFetchedStays) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 8});
  const ValueId filtered = Depthwise(Expand(x, 8));
  t.Output("y", Project(filtered, 8));
  t.Output("filtered", filtered);
  EXPECT_EQ(Fused(), "InvertedResidual Conv");  // expand and depthwise
}

TEST_F(Blocks, WeightsThatAreComputedStayApart) {
  const ValueId x = t.Input("x", Shape{1, kLarge, kLarge, 8});
  const ValueId filter = t.Input("f", Shape{1, 1, kMany, 8});
  t.Output("y", t.Add("Conv", {Depthwise(Expand(x, 8)), filter}, With(0, 1)));
  EXPECT_EQ(Fused(), "InvertedResidual Conv");
}

TEST_F(Blocks, SqueezeAndExcitation) {
  const ValueId x = t.Input("x", Shape{2, kLarge, kLarge, 8});
  const ValueId filtered = Depthwise(Expand(x, 8));
  ValueId gate = t.Add("Conv", {Mean(filtered), Filter({1, 1, kMany, 4}, kMany)}, With(0, 1));
  gate = t.Add("Conv", {gate, Filter({1, 1, 4, kMany}, 4)}, With(0, 1, "sigmoid"));
  t.Output("y", Project(t.Add("Mul", {filtered, gate}), 8, {x}));
  EXPECT_EQ(Fused(), "InvertedResidual Conv Conv GatedConv");
}

TEST_F(Blocks, TheMeanIsTakenInSmallOnesToo) {
  const ValueId x = t.Input("x", Shape{2, kSmall, kSmall, 8});
  const ValueId filtered = Depthwise(Expand(x, 8));
  t.Output("y", t.Add("Mul", {Mean(filtered), filtered}));
  EXPECT_EQ(Fused(), "Conv InvertedResidual Mul");
}

TEST_F(Blocks, OtherMeansStay) {
  const ValueId x = t.Input("x", Shape{2, kSmall, kSmall, 8});
  const ValueId filtered = Depthwise(Expand(x, 8));
  const ValueId mean = t.Add("ReduceMean", {filtered, t.Ints({1})}, {{"keep_dims", true}});
  t.Output("y", t.Add("Mul", {mean, filtered}));
  EXPECT_EQ(Fused(), "Conv Conv ReduceMean Mul");
}

TEST_F(Blocks, AGateOnEitherSide) {
  const ValueId x = t.Input("x", Shape{2, kLarge, kLarge, kMany}),
                gate = t.Input("g", Shape{2, 1, 1, kMany});
  t.Output("left", Project(t.Add("Mul", {gate, x}), 8));
  t.Output("right", Project(t.Add("Mul", {x, gate}), 8));
  EXPECT_EQ(Fused(), "GatedConv GatedConv");
}

TEST_F(Blocks, WhatIsNoGateStays) {
  const ValueId x = t.Input("x", Shape{2, kLarge, kLarge, kMany});
  const auto with = [&](const std::string& name, const Shape& shape) {
    return t.Add("Mul", {x, t.Input(name, shape)});
  };
  t.Output("one", Project(with("a", {1, 1, 1, kMany}), 8));        // of no sample
  t.Output("each", Project(with("b", {2, kLarge, 1, kMany}), 8));  // of rows
  t.Output("all", Project(with("c", {2, 1, 1, 1}), 8));            // of no channel
  t.Output("window", Depthwise(with("d", {2, 1, 1, kMany})));
  EXPECT_EQ(Fused(), "Mul Conv Mul Conv Mul Conv Mul Conv");
}

TEST_F(Blocks, GatesOfSmallPicturesStay) {
  const ValueId x = t.Input("x", Shape{2, 5, 6, kMany}), gate = t.Input("g", Shape{2, 1, 1, kMany});
  t.Output("y", Project(t.Add("Mul", {x, gate}), 8));
  EXPECT_EQ(Fused(), "Mul Conv");
}

TEST_F(Blocks, AProductThatOthersReadStays) {
  const ValueId x = t.Input("x", Shape{2, kLarge, kLarge, kMany}),
                gate = t.Input("g", Shape{2, 1, 1, kMany});
  const ValueId product = t.Add("Mul", {x, gate});
  t.Output("y", Project(product, 8));
  t.Output("z", t.Add("Neg", {product}));
  EXPECT_EQ(Fused(), "Mul Conv Neg");
}

}  // namespace
}  // namespace oncilla
