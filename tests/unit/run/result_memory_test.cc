// Memory of results: released memory is reused by the next run, memory that the application keeps
// is not, and nothing outlives the executor.
#include "engine/tensor/result_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "engine/run/executor.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

constexpr int64_t kElements = int64_t{1} << 16;  // 256 KiB

// y = -x
std::unique_ptr<Executor> Negate(SessionParts& parts) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim::Named("n")})));
  graph.AddOutput("y", graph.Add("y", "Neg", {}, {x}).value());
  auto compiled = Compile(std::move(graph), parts.devices(), parts.names(), *parts.constants, {});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) std::abort();
  return std::make_unique<Executor>(*compiled, parts.devices(), parts.pools(), parts.owner,
                                    ExecutorOptions());
}

Tensor Input(int64_t elements, float value) {
  const std::vector<float> values(static_cast<size_t>(elements), value);
  return Tensor::Of<float>(DType::kF32, {elements}, values);
}

Tensor RunOnce(Executor& executor, int64_t elements, float value) {
  auto results = executor.Run(std::vector<Tensor>{Input(elements, value)}, {});
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) std::abort();
  return results->at(0);
}

void ExpectAll(const Tensor& tensor, float value) {
  for (const float y : tensor.As<float>()) ASSERT_EQ(y, value);
}

TEST(ResultMemoryOfRuns, ServesTheNextRunOnceTheResultIsGone) {
  SessionParts parts;
  const auto executor = Negate(parts);
  Tensor first = RunOnce(*executor, kElements, 1);
  const void* const place = first.bytes().data();
  first = Tensor();
  Tensor second = RunOnce(*executor, kElements, 2);
  EXPECT_EQ(second.bytes().data(), place);
  EXPECT_TRUE(second.unshared());  // the application may write to it
  ExpectAll(second, -2);
}

TEST(ResultMemoryOfRuns, LeavesResultsAloneThatAreKept) {
  SessionParts parts;
  const auto executor = Negate(parts);
  const Tensor first = RunOnce(*executor, kElements, 1);
  const Tensor part = RunOnce(*executor, kElements, 2).Reshaped({2, kElements / 2});
  const Tensor third = RunOnce(*executor, kElements, 3);
  ExpectAll(first, -1);
  ExpectAll(part, -2);
  ExpectAll(third, -3);
}

TEST(ResultMemoryOfRuns, FitsResultsThatGrowALittle) {
  SessionParts parts;
  const auto executor = Negate(parts);
  const void* place = nullptr;
  {
    const Tensor first = RunOnce(*executor, kElements + 1, 1);
    place = first.bytes().data();
  }
  const Tensor second = RunOnce(*executor, kElements + kElements / 16, 2);
  EXPECT_EQ(second.bytes().data(), place);
  ExpectAll(second, -2);
}

TEST(ResultMemoryOfRuns, ResultsOutliveTheExecutor) {
  SessionParts parts;
  auto executor = Negate(parts);
  const Tensor result = RunOnce(*executor, kElements, 1);
  executor.reset();
  ExpectAll(result, -1);
}

TEST(ResultMemoryOfRuns, ResultsAreLetGoOfOnOtherThreads) {
  SessionParts parts;
  const auto executor = Negate(parts);
  std::thread holder;
  for (int round = 1; round < 20; ++round) {
    Tensor result = RunOnce(*executor, kElements, static_cast<float>(round));
    ExpectAll(result, static_cast<float>(-round));
    if (holder.joinable()) holder.join();
    holder = std::thread([other = std::move(result)] {});  // lets go of it during the next run
  }
  holder.join();
}

// A block as Tensor makes them.
ResultMemory::Block BlockOf(int64_t bytes) {
  ResultMemory::Block block;
  block.allocated = std::malloc(static_cast<size_t>(bytes));
  block.data = block.allocated;
  block.bytes = bytes;
  return block;
}

constexpr int64_t kSize = int64_t{1} << 20;

TEST(ResultMemory, KeepsNoMoreThanARunsResults) {
  ResultMemory memory;
  memory.Keep(BlockOf(kSize));  // nothing is expected yet
  EXPECT_EQ(memory.kept_bytes(), 0);
  memory.Expect(2 * kSize);
  for (int i = 0; i < 4; ++i) memory.Keep(BlockOf(kSize));
  EXPECT_EQ(memory.kept_bytes(), 2 * kSize);
  memory.Expect(kSize);  // the next run's results are smaller
  EXPECT_EQ(memory.kept_bytes(), kSize);
  memory.Clear();
  EXPECT_EQ(memory.kept_bytes(), 0);
}

TEST(ResultMemory, GivesBlocksThatFit) {
  ResultMemory memory;
  memory.Expect(4 * kSize);
  memory.Keep(BlockOf(kSize));
  EXPECT_EQ(memory.Take(kSize + 1).allocated, nullptr);
  EXPECT_EQ(memory.Take(kSize / 2).allocated, nullptr);  // it would waste half of it
  const ResultMemory::Block block = memory.Take(kSize);
  EXPECT_NE(block.allocated, nullptr);
  EXPECT_EQ(memory.kept_bytes(), 0);
  std::free(block.allocated);
}

TEST(ResultMemory, KeepsNothingOfVeryLargeResults) {
  ResultMemory memory;
  memory.Expect(ResultMemory::kMost + 1);
  memory.Keep(BlockOf(kSize));
  EXPECT_EQ(memory.kept_bytes(), 0);
}

TEST(ResultMemory, RoundsToAnEighth) {
  EXPECT_EQ(ResultMemory::Rounded(100), 100);
  EXPECT_EQ(ResultMemory::Rounded(kSize), kSize);
  EXPECT_EQ(ResultMemory::Rounded(kSize + 1), kSize + kSize / 8);
  EXPECT_EQ(ResultMemory::Rounded(2 * kSize - 1), 2 * kSize);
}

}  // namespace
}  // namespace oncilla
