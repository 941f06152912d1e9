// The composition of a plan's memory, on plans small enough to count by hand.
#include "engine/compile/plan_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/run/executor.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

class PlanMemoryTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Plan> PlanOf(Graph graph, const Tensor& feed) {
    auto compiled =
        Compile(std::move(graph), parts_.devices(), parts_.names(), *parts_.constants, {});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    executor_ = std::make_unique<Executor>(*compiled, parts_.devices(), parts_.pools(),
                                           parts_.owner, ExecutorOptions());
    auto plan = executor_->PlanFor({&feed, 1});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }
  SessionParts parts_;
  std::unique_ptr<Executor> executor_;
};

// A matrix that no memory of this machine holds, between two small ones.
TEST_F(PlanMemoryTest, WhatNoAllocationHoldsIsNamed) {
  constexpr int64_t kMany = int64_t{1} << 20;
  Graph graph(OpSet::Builtin());
  const auto ones = [&](Shape shape) {
    return graph.AddConstant(
        Tensor::Of<float>(DType::kF32, std::move(shape), std::vector<float>(kMany, 1.0f)));
  };
  const ValueId x =
      graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim::Named("n"), Dim(1)})));
  const ValueId wide = graph.Add("wide", "MatMul", {}, {x, ones({1, kMany})}).value();
  graph.AddOutput("y", graph.Add("narrow", "MatMul", {}, {wide, ones({kMany, 1})}).value());
  auto compiled =
      Compile(std::move(graph), parts_.devices(), parts_.names(), *parts_.constants, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Executor executor(*compiled, parts_.devices(), parts_.pools(), parts_.owner, ExecutorOptions());
  const Tensor feed = Tensor::Of<float>(DType::kF32, {kMany, 1}, std::vector<float>(kMany));
  const Status refused = executor.PlanFor({&feed, 1}).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused;
  EXPECT_THAT(Message(refused),
              HasSubstr("node 'wide' (MatMul): its result 0 takes 4398046511104 bytes; the "
                        "largest allocation of the device is "));
  EXPECT_EQ(Details(refused).node, "wide");
}

// x [n, 64] -> wide [n, 4096] -> narrow [n, 16] -> sums of rows: 'narrow' reads the widest value.
TEST_F(PlanMemoryTest, ThePeakIsWhereTheMostIsLive) {
  Graph graph(OpSet::Builtin());
  const auto zeros = [&](Shape shape) {
    Tensor t = Tensor::Allocate({DType::kF32, std::move(shape)}).value();
    std::fill(t.mutable_bytes().begin(), t.mutable_bytes().end(), std::byte{0});
    return graph.AddConstant(t);
  };
  const ValueId x =
      graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim::Named("n"), Dim(64)})));
  const ValueId wide = graph.Add("wide", "MatMul", {}, {x, zeros({64, 4096})}).value();
  const ValueId narrow = graph.Add("narrow", "MatMul", {}, {wide, zeros({4096, 16})}).value();
  const ValueId square = graph.Add("square", "MatMul", {}, {narrow, zeros({16, 16})}).value();
  graph.AddOutput("y", square);
  const Tensor feed = Tensor::Of<float>(DType::kF32, {8, 64}, std::vector<float>(512));
  const auto plan = PlanOf(std::move(graph), feed);
  const std::vector<PlanMemory> memory = MemoryOf(*plan);
  ASSERT_EQ(memory.size(), 1u);
  const PlanMemory& m = memory[0];
  EXPECT_EQ(m.device, 0);
  EXPECT_EQ(m.arena_bytes, plan->arena_bytes(0));
  EXPECT_EQ(m.peak_node, "narrow");
  EXPECT_EQ(m.peak_op, "MatMul");
  ASSERT_GE(m.held.size(), 2u);
  EXPECT_EQ(m.held[0].node, "wide");
  EXPECT_EQ(m.held[0].bytes, 8 * 4096 * 4);
  int64_t held = 0;
  for (const HeldBytes& h : m.held) held += h.bytes;
  EXPECT_EQ(held, m.peak_bytes);
  EXPECT_LE(m.peak_bytes, m.arena_bytes);
  EXPECT_EQ(m.by_dtype.at(DType::kF32), 8 * (4096 + 16) * 4);
  ASSERT_FALSE(m.ops.empty());
  EXPECT_EQ(m.ops[0].op, "MatMul");
  EXPECT_EQ(m.ops[0].largest_node, "wide");
  EXPECT_EQ(m.ops[0].count, 2);  // the last one writes into the result
  EXPECT_THAT(PeakText(m, 1), HasSubstr("while node 'narrow' (MatMul) runs: holds 128.00 KiB of "
                                        "'wide' (MatMul)"));
  EXPECT_THAT(DTypesText(m.by_dtype), HasSubstr("f32 128.50 KiB"));
}

}  // namespace
}  // namespace oncilla
