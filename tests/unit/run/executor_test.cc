// The three stages together, on the CPU: plans per shape, segments where sizes depend on data, host
// nodes.
#include "engine/run/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include "engine/device/linked_backends.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using testing::HasSubstr;

class ExecutorTest : public testing::Test {
 protected:
  std::unique_ptr<Executor> Make(Graph graph, ExecutorOptions options = {}) {
    CompileOptions compile;
    compile.verify = true;
    auto compiled =
        Compile(std::move(graph), parts_.devices(), parts_.names(), *parts_.constants, compile);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) std::abort();  // every test needs it, and would only crash later
    return std::make_unique<Executor>(*compiled, parts_.devices(), parts_.pools(), parts_.owner,
                                      options);
  }

  Tensor Floats(Shape shape, std::vector<float> values) {
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  std::vector<float> Values(const Tensor& t) {
    auto span = t.As<float>();
    return {span.begin(), span.end()};
  }

  SessionParts parts_;
};

// y = relu(x + w) reshaped to [rows of x, -1], so that the target shape comes from x at run time.
Graph ShapeChain() {
  Graph graph(OpSet::Builtin());
  const ValueId x =
      graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim::Named("n"), Dim(2), Dim(2)})));
  const ValueId w =
      graph.AddConstant(Tensor::Of<float>(DType::kF32, {2}, std::vector<float>{1, -1}));
  const ValueId sum = graph.Add("sum", "Add", {}, {x, w}).value();
  const ValueId relu = graph.Add("relu", "Relu", {}, {sum}).value();
  const ValueId four = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{-1, 4}));
  const ValueId y = graph.Add("y", "Reshape", {}, {relu, four}).value();
  graph.AddOutput("y", y);
  return graph;
}

TEST_F(ExecutorTest, OnePlanPerShape) {
  auto executor = Make(ShapeChain());
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {1, 2, 3}) {
      std::vector<float> in(static_cast<size_t>(4 * n), 0.5f);
      auto out = executor->Run(std::vector<Tensor>{Floats({n, 2, 2}, in)}, {});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].shape(), (Shape{n, 4}));
      EXPECT_EQ(Values((*out)[0])[0], 1.5f);
      EXPECT_EQ(Values((*out)[0])[1], 0.0f);
    }
  }
  EXPECT_EQ(executor->counters().plans_made, 3);
  EXPECT_EQ(executor->counters().instances_made, 3);
}

// The plan of the last run is taken without a key; feeds whose contents fix shapes are a part of
// that.
TEST_F(ExecutorTest, ContentsThatFixShapesChooseThePlan) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim()})));
  const ValueId sizes = graph.AddInput("sizes", Fact::Of(DType::kI64, Shape{2}));
  graph.AddOutput("y", graph.Add("y", "Reshape", {}, {x, sizes}).value());
  ExecutorOptions options;
  options.max_plans = 2;
  auto executor = Make(std::move(graph), options);
  const auto run = [&](std::vector<int64_t> to) {
    auto out = executor->Run(
        std::vector<Tensor>{Floats({12}, std::vector<float>(12, 1)), Tensor::Int64s(to)}, {});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].shape() : Shape();
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run({3, 4}), (Shape{3, 4}));
    EXPECT_EQ(run({3, 4}), (Shape{3, 4}));
    EXPECT_EQ(run({4, 3}), (Shape{4, 3}));
  }
  EXPECT_EQ(executor->counters().plans_made, 2);
  // Plans that are dropped are made again.
  EXPECT_EQ(run({2, 6}), (Shape{2, 6}));
  EXPECT_EQ(run({6, 2}), (Shape{6, 2}));
  EXPECT_EQ(run({4, 3}), (Shape{4, 3}));
  EXPECT_EQ(executor->counters().plans_made, 5);
  EXPECT_EQ(executor->counters().plans_kept, 2);
}

TEST_F(ExecutorTest, ResultsAreComputedInMemoryOfTheCaller) {
  auto executor = Make(ShapeChain());
  alignas(64) std::byte memory[32];
  const std::span<std::byte> host[] = {memory};
  const OutputTargets targets{.graph = &executor->compiled(), .host = host};
  RunControl control;
  control.into = &targets;
  const std::vector<Tensor> two = {Floats({2, 2, 2}, std::vector<float>(8, 0.5f))};
  auto out = executor->Run(two, control);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].bytes().data(), memory);
  EXPECT_EQ(Values((*out)[0])[0], 1.5f);
  // Three rows do not fit there.
  const std::vector<Tensor> three = {Floats({3, 2, 2}, std::vector<float>(12, 0.5f))};
  out = executor->Run(three, control);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NE((*out)[0].bytes().data(), memory);
  EXPECT_EQ((*out)[0].shape(), (Shape{3, 4}));
}

// Weights stay in the model's mapped file, at any address, until they are packed.
TEST_F(ExecutorTest, ConstantsAtOddAddressesArePacked) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  std::vector<std::byte> file(1 + weights.size() * sizeof(float));
  std::memcpy(file.data() + 1, weights.data(), weights.size() * sizeof(float));
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{1, 3}));
  const ValueId w =
      graph.AddConstant(Tensor::View({DType::kF32, {3, 2}}, std::span(file).subspan(1), nullptr));
  graph.AddOutput("y", graph.Add("y", "MatMul", {}, {x, w}).value());
  auto executor = Make(std::move(graph));
  auto out = executor->Run(std::vector<Tensor>{Floats({1, 3}, {1, 10, 100})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values((*out)[0]), (std::vector<float>{531, 642}));
}

TEST_F(ExecutorTest, ElementwiseChainsRunInPlaceAndViewsCostNothing) {
  auto executor = Make(ShapeChain());
  auto plan = executor->PlanFor(std::vector<Tensor>{Floats({1, 2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->steps_on(0), 1);     // one fused step; the reshape has none
  EXPECT_EQ((*plan)->arena_bytes(0), 0);  // everything happens in the output's own memory
  EXPECT_TRUE((*plan)->outputs[0].direct);
}

TEST_F(ExecutorTest, RunsTellWhatBecameOfEachNode) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim(), Dim(2)})));
  const ValueId relu = graph.Add("relu", "Relu", {}, {x}).value();
  const ValueId sizes = graph.Add("sizes", "Shape", {}, {relu}).value();
  const ValueId back = graph
                           .Add("back", "Reverse", {},
                                {sizes, graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{0}))})
                           .value();
  const ValueId view = graph.Add("view", "Reshape", {}, {x, back}).value();
  graph.AddOutput("y", graph.Add("y", "Neg", {}, {view}).value());
  graph.AddOutput("found", graph.Add("found", "NonZero", {}, {x}).value());
  auto executor = Make(std::move(graph));
  RunStats stats;
  RunControl control;
  control.stats = &stats;
  auto out = executor->Run(std::vector<Tensor>{Floats({3, 2}, {1, 0, 3, 4, 5, 6})}, control);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), (Shape{2, 3}));
  std::map<std::string, NodeFate> fates;
  const Graph& compiled = executor->compiled().graph;
  for (uint32_t n = 0; n < compiled.nodes().size(); ++n) {
    fates[compiled.node(NodeId{n}).name] = stats.fates[n];
  }
  EXPECT_EQ(fates["relu"], NodeFate::kUnneeded);  // only its shape is asked for
  EXPECT_EQ(fates["sizes"], NodeFate::kSettled);
  EXPECT_EQ(fates["back"], NodeFate::kSettled);
  EXPECT_EQ(fates["view"], NodeFate::kView);
  EXPECT_EQ(fates["y"], NodeFate::kStep);
  EXPECT_EQ(fates["found"], NodeFate::kHost);
}

// A value that planning computed is uploaded when an instance is made; the arena must not overwrite
// it later in a run, or the second run reads something else.
TEST_F(ExecutorTest, WhatPlanningComputedIsThereInTheNextRunToo) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim(), Dim(2)})));
  const ValueId sizes = graph.Add("sizes", "Shape", {}, {x}).value();
  const ValueId floats = graph.Add("floats", "Cast", {{"to", DType::kF32}}, {sizes}).value();
  ValueId y = graph.Add("sum", "Add", {}, {x, floats}).value();
  for (int64_t i = 0; i < 6; ++i) {
    const ValueId axis = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{i % 2}));
    y = graph.Add(StrCat("reverse", i), "Reverse", {}, {y, axis}).value();
  }
  graph.AddOutput("y", y);
  auto executor = Make(std::move(graph));
  for (int run = 0; run < 3; ++run) {
    auto out = executor->Run(std::vector<Tensor>{Floats({3, 2}, {1, 20, 3, 40, 5, 60})}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), testing::ElementsAre(62, 8, 42, 6, 22, 4)) << "run " << run;
  }
  EXPECT_EQ(executor->counters().instances_made, 1);
}

// A step of a decoder: a token, whose shape stays, is appended to a cache, which grows; `begin` is
// where the window on the cache begins.
Graph GrowingCache() {
  Graph graph(OpSet::Builtin());
  const ValueId token = graph.AddInput("token", Fact::Of(DType::kF32, Shape{1, 2}));
  const ValueId cache =
      graph.AddInput("cache", Fact::Of(DType::kF32, PartialShape({Dim(), Dim(2)})));
  const ValueId begin = graph.AddInput("begin", Fact::Of(DType::kI64, Shape{1}));
  const auto ints = [&](int64_t i) {
    return graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{i}));
  };
  const ValueId weight =
      graph.AddConstant(Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{0, 1, 1, 0}));
  const ValueId turned = graph.Add("turned", "MatMul", {}, {token, weight}).value();
  const ValueId all = graph.Add("all", "Concat", {{"axis", int64_t{0}}}, {cache, turned}).value();
  const ValueId window = graph.Add("window", "Slice", {}, {all, begin, ints(99), ints(0)}).value();
  const ValueId sum =
      graph.Add("sum", "ReduceSum", {{"keep_dims", true}}, {window, ints(0)}).value();
  graph.AddOutput("y", graph.Add("y", "Softplus", {}, {sum}).value());
  graph.AddOutput("all", all);
  return graph;
}

std::map<std::string, const Kernel*> KernelsOf(const Plan& plan) {
  std::map<std::string, const Kernel*> kernels;
  for (const Stretch& stretch : plan.stretches) {
    for (const PlannedStep& step : stretch.steps) {
      kernels[plan.compiled->graph.node(step.node).name] = step.kernel.get();
    }
  }
  return kernels;
}

// Scatter overwrites its first input, unless that has another reader or is one of the updates.
TEST_F(ExecutorTest, ScatterWritesOverItsFirstInput) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{3}));
  const ValueId at = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{2, 0, 1}));
  const auto scatter = [&](const char* name, ValueId to, ValueId updates) {
    return graph.Add(name, "ScatterElements", {{"axis", int64_t{0}}}, {to, at, updates}).value();
  };
  const ValueId a = graph.Add("a", "Neg", {}, {x}).value();
  const ValueId b = graph.Add("b", "Abs", {}, {x}).value();
  graph.AddOutput("over", scatter("over", a, b));
  const ValueId c = graph.Add("c", "Exp", {}, {x}).value();
  graph.AddOutput("turned", scatter("turned", c, c));
  const ValueId d = graph.Add("d", "Sqrt", {}, {x}).value();
  graph.AddOutput("kept", scatter("kept", d, b));
  graph.AddOutput("d", d);
  auto executor = Make(std::move(graph));
  for (int round = 0; round < 2; ++round) {
    const std::vector<Tensor> in = {Floats({3}, {0, 1, 4})};
    auto out = executor->Run(in, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), testing::ElementsAre(1, 4, 0));
    EXPECT_THAT(Values((*out)[1]), testing::ElementsAre(std::exp(1.f), std::exp(4.f), 1));
    EXPECT_THAT(Values((*out)[2]), testing::ElementsAre(1, 4, 0));
    EXPECT_THAT(Values((*out)[3]), testing::ElementsAre(0, 1, 2));
    const auto plan = executor->PlanFor(in, {}).value();
    std::map<std::string, bool> over;
    for (const PlannedStep& step : plan->stretches[0].steps) {
      over[plan->compiled->graph.node(step.node).name] =
          step.inputs[0].kind == Home::kStorage && step.inputs[0].index == step.outputs[0].index;
    }
    EXPECT_TRUE(over["over"]);
    EXPECT_FALSE(over["turned"]);
    EXPECT_FALSE(over["kept"]);
  }
}

// Nodes about whose inputs the same is known are taken from the previous plan, and no others.
TEST_F(ExecutorTest, PlansShareWhatIsTheSame) {
  auto executor = Make(GrowingCache());
  const auto feeds = [&](int64_t rows, int64_t begin) {
    std::vector<float> cache(static_cast<size_t>(2 * rows));
    std::iota(cache.begin(), cache.end(), 1.0f);
    return std::vector<Tensor>{Floats({1, 2}, {10, 20}), Floats({rows, 2}, cache),
                               Tensor::Int64s(std::vector<int64_t>{begin})};
  };
  for (const auto& [rows, begin] : {std::pair<int64_t, int64_t>{1, 0},
                                    {2, 0},
                                    {2, 1},
                                    {3, 1},
                                    {2, 2},
                                    {1, 1},
                                    {5, 3},
                                    {0, 0}}) {
    auto out = executor->Run(feeds(rows, begin), {});
    ASSERT_TRUE(out.ok()) << out.status();
    auto alone = Make(GrowingCache())->Run(feeds(rows, begin), {});
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ((*out)[i].shape(), (*alone)[i].shape());
      EXPECT_EQ(Values((*out)[i]), Values((*alone)[i])) << rows << " rows from " << begin;
    }
  }
  const auto plan_for = [&](int64_t rows, int64_t begin) {
    return KernelsOf(*executor->PlanFor(feeds(rows, begin), {}).value());
  };
  const auto four = plan_for(4, 0), later = plan_for(4, 1), more = plan_for(6, 1);
  ASSERT_TRUE(four.contains("turned") && four.contains("all") && four.contains("window"));
  EXPECT_EQ(four.at("turned"), more.at("turned"));
  EXPECT_EQ(four.at("all"), later.at("all"));
  EXPECT_NE(later.at("all"), more.at("all"));
  EXPECT_NE(four.at("window"), later.at("window"));
  executor->DropIdle();
  EXPECT_NE(plan_for(7, 1).at("turned"), four.at("turned"));
}

TEST_F(ExecutorTest, RefusesAnotherShapeByName) {
  auto executor = Make(ShapeChain());
  auto out = executor->Run(std::vector<Tensor>{Floats({1, 3, 2}, {1, 2, 3, 4, 5, 6})}, {});
  EXPECT_EQ(out.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(out.status()), HasSubstr("input 'x' must be f32[n,2,2], not f32[1,3,2]"));
  EXPECT_EQ(Details(out.status()).stage, Stage::kOptions);
}

TEST_F(ExecutorTest, PlansAreBounded) {
  ExecutorOptions options;
  options.max_plans = 4;
  auto executor = Make(ShapeChain(), options);
  for (int64_t n = 1; n <= 40; ++n) {
    std::vector<float> in(static_cast<size_t>(4 * n), 1.0f);
    ASSERT_TRUE(executor->Run(std::vector<Tensor>{Floats({n, 2, 2}, in)}, {}).ok());
  }
  EXPECT_EQ(executor->counters().plans_made, 40);
  EXPECT_EQ(executor->counters().plans_kept, 4u);
}

// Ten times as many simultaneous runs as there may be instances: the others wait.
TEST_F(ExecutorTest, InstancesAreBounded) {
  ExecutorOptions options;
  options.max_instances = 2;
  auto executor = Make(ShapeChain(), options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        const float value = static_cast<float>(i + round);
        auto out = executor->Run(std::vector<Tensor>{Floats({1, 2, 2}, {value, 0, 0, 0})}, {});
        if (!out.ok() || Values((*out)[0])[0] != value + 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(executor->counters().instances_made, 1);
  EXPECT_LE(executor->counters().instances_made, 2);
}

// The shape of the reshape is fed: its contents are part of the plan's key.
TEST_F(ExecutorTest, ContentsThatFixShapesArePartOfTheKey) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{4}));
  const ValueId shape = graph.AddInput("shape", Fact::Of(DType::kI64, Shape{2}));
  const ValueId neg = graph.Add("neg", "Neg", {}, {x}).value();
  graph.AddOutput("y", graph.Add("y", "Reshape", {}, {neg, shape}).value());
  auto executor = Make(std::move(graph));
  const Tensor in = Floats({4}, {1, 2, 3, 4});
  for (const auto& want : {std::vector<int64_t>{2, 2}, std::vector<int64_t>{4, 1}}) {
    auto out = executor->Run(std::vector<Tensor>{in, Tensor::Int64s(want)}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].shape(), Shape(want.begin(), want.end()));
    EXPECT_EQ(Values((*out)[0])[3], -4);
  }
  EXPECT_EQ(executor->counters().plans_made, 2);
}

// A device computes the shape: the plan ends there, and the next segment uses the result.
TEST_F(ExecutorTest, ComputedShapesEndASegment) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{4}));
  // 1 x 4 from a softmax: the sum of no real model, but its value is not known beforehand.
  const ValueId big = graph.AddInput("big", Fact::Of(DType::kF32, PartialShape::OfRank(1)));
  const ValueId soft = graph.Add("soft", "Softmax", {}, {big}).value();
  const ValueId cast = graph.Add("cast", "Cast", {{"to", DType::kI64}}, {soft}).value();
  const ValueId neg = graph.Add("neg", "Neg", {}, {x}).value();
  const ValueId y = graph.Add("y", "Reshape", {}, {neg, cast}).value();
  graph.AddOutput("y", graph.Add("z", "Abs", {}, {y}).value());
  auto executor = Make(std::move(graph));
  RunStats stats;
  RunControl control;
  control.stats = &stats;
  // softmax of one element is 1, of which a shape [1] does not fit four elements.
  auto bad =
      executor->Run(std::vector<Tensor>{Floats({4}, {1, 2, 3, 4}), Floats({1}, {7})}, control);
  EXPECT_EQ(bad.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(bad.status()), HasSubstr("node 'y' (Reshape): cannot reshape [4] to [1]"));
}

TEST_F(ExecutorTest, OutputsMayBeInputsConstantsAndTheSameValue) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, Shape{2}));
  const ValueId c = graph.AddConstant(Tensor::Scalar(3));
  const ValueId y = graph.Add("y", "Neg", {}, {x}).value();
  graph.AddOutput("x", x);
  graph.AddOutput("c", c);
  graph.AddOutput("y", y);
  graph.AddOutput("again", y);
  auto executor = Make(std::move(graph));
  auto out = executor->Run(std::vector<Tensor>{Floats({2}, {1, 2})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values((*out)[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(Values((*out)[1]), (std::vector<float>{3}));
  EXPECT_EQ(Values((*out)[2]), (std::vector<float>{-1, -2}));
  EXPECT_EQ(Values((*out)[3]), (std::vector<float>{-1, -2}));
}

TEST_F(ExecutorTest, ADeadlineThatPassedIsToldAndTheNextRunWorks) {
  auto executor = Make(ShapeChain());
  RunControl control;
  control.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const std::vector<Tensor> in{Floats({1, 2, 2}, {1, 2, 3, 4})};
  EXPECT_EQ(executor->Run(in, control).status().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(executor->Run(in, {}).ok());
}

}  // namespace
}  // namespace oncilla
