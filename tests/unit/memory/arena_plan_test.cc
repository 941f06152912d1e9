// Arena packing: always valid, optimal on chains, near the lower bound on random lifetimes, and the
// verifier detects every kind of mistake.
#include "engine/memory/arena_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace oncilla {
namespace {

using ::testing::HasSubstr;

int64_t MostLiveBySteps(const std::vector<BufferUse>& uses, int64_t alignment) {
  int64_t most = 0;
  for (const BufferUse& at : uses) {
    int64_t live = 0;
    for (const BufferUse& use : uses) {
      if (use.first > at.first || use.last < at.first) continue;
      live += (use.bytes + alignment - 1) / alignment * alignment;
    }
    most = std::max(most, live);
  }
  return most;
}

std::vector<BufferUse> RandomUses(uint32_t seed, int count, int steps, int longest) {
  std::mt19937 random(seed);
  std::vector<BufferUse> uses;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % static_cast<uint32_t>(steps));
    const int length = static_cast<int>(random() % static_cast<uint32_t>(longest));
    uses.push_back({static_cast<int64_t>(random() % 100'000), first, first + length});
  }
  return uses;
}

TEST(Arena, NothingNeedsNothing) {
  auto plan = PackArena({}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes(), 0);
  EXPECT_TRUE(plan->block_bytes.empty());
  const BufferUse empty[] = {{0, 0, 3}, {0, 1, 1}};
  plan = PackArena(empty, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes(), 0);
  EXPECT_EQ(plan->places[0].block, -1);
  EXPECT_TRUE(CheckArena(*plan, empty, {}).ok());
}

TEST(Arena, ChainsAreOptimal) {
  for (int count : {1, 2, 3, 10, 100, 1000}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      std::mt19937 random(seed);
      std::vector<BufferUse> uses;
      for (int i = 0; i < count; ++i) {
        uses.push_back({static_cast<int64_t>(random() % 1'000'000 + 1), i, i + 1});
      }
      auto plan = PackArena(uses, {});
      ASSERT_TRUE(plan.ok());
      EXPECT_TRUE(CheckArena(*plan, uses, {}).ok()) << CheckArena(*plan, uses, {});
      EXPECT_EQ(plan->bytes(), MostLiveBySteps(uses, 256));
      EXPECT_EQ(plan->block_bytes.size(), 1u);
    }
  }
}

TEST(Arena, RandomLifetimesStayNearTheLowerBound) {
  double sum = 0;
  int plans = 0;
  for (uint32_t seed = 0; seed < 18; ++seed) {
    const int count = 10 + static_cast<int>(seed) * 10;
    // Short and long lifetimes, few and many neighbours.
    const auto uses = RandomUses(seed, count, count, seed % 3 == 0 ? count : 2 + seed % 7);
    const ArenaOptions options{.alignment_bytes = 64, .work = 2'000'000};
    auto plan = PackArena(uses, options);
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(CheckArena(*plan, uses, options).ok()) << CheckArena(*plan, uses, options);
    EXPECT_EQ(plan->lower_bound, MostLiveBySteps(uses, 64));
    ASSERT_GE(plan->bytes(), plan->lower_bound);
    EXPECT_LE(plan->bytes(), plan->lower_bound * 5 / 4) << seed;
    sum += static_cast<double>(plan->bytes()) / static_cast<double>(plan->lower_bound);
    ++plans;
  }
  EXPECT_LE(sum / plans, 1.04);
}

TEST(Arena, AnyAmountOfWorkIsValidAndMoreIsNoWorse) {
  const auto uses = RandomUses(5, 200, 200, 20);
  int64_t before = INT64_MAX;
  for (int64_t work : {0, 1'000, 100'000, 2'000'000}) {
    const ArenaOptions options{.work = work};
    auto plan = PackArena(uses, options);
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(CheckArena(*plan, uses, options).ok());
    EXPECT_LE(plan->bytes(), before);
    before = plan->bytes();
  }
}

TEST(Arena, TheSamePlanEveryTime) {
  const auto uses = RandomUses(3, 150, 150, 30);
  auto a = PackArena(uses, {}), b = PackArena(uses, {});
  EXPECT_EQ(a->places, b->places);
}

// The order of a packing is reused for buffers of other sizes, or the search continues.
TEST(Arena, AnOrderServesOtherSizes) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<BufferUse> uses = RandomUses(seed, 150, 60, 12);
    const ArenaOptions options{.work = 300'000};
    auto first = PackArena(uses, options);
    ASSERT_TRUE(first.ok());
    for (BufferUse& use : uses) use.bytes += use.bytes / 50;
    for (int round = 0; round < 5; ++round) {
      uses[static_cast<size_t>(round)].bytes *= 2;
      auto alone = PackArena(uses, options), next = PackArena(uses, options, &first->found);
      ASSERT_TRUE(alone.ok() && next.ok());
      EXPECT_TRUE(CheckArena(*next, uses, options).ok());
      EXPECT_TRUE(next->found.excess <= first->found.excess || next->bytes() <= alone->bytes());
    }
    uses.pop_back();  // of as many buffers only
    auto alone = PackArena(uses, options), next = PackArena(uses, options, &first->found);
    ASSERT_TRUE(alone.ok() && next.ok());
    EXPECT_EQ(next->places, alone->places);
  }
}

TEST(Arena, NoBlockIsAboveTheLargestAllocation) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const auto uses = RandomUses(seed, 120, 60, 12);
    const ArenaOptions options{
        .alignment_bytes = 512, .max_block_bytes = 250'000, .work = 1'000'000};
    auto plan = PackArena(uses, options);
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(CheckArena(*plan, uses, options).ok()) << CheckArena(*plan, uses, options);
    EXPECT_GT(plan->block_bytes.size(), 1u);
    EXPECT_LE(plan->bytes(), plan->lower_bound * 3 / 2);
  }
  // Three that fill a block each and meet in pairs: two blocks, no more.
  const BufferUse chain[] = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}};
  auto plan = PackArena(chain, {.alignment_bytes = 1, .max_block_bytes = 1500});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->block_bytes, (std::vector<int64_t>{1000, 1000}));
}

TEST(Arena, RefusesWhatCannotBe) {
  const BufferUse large[] = {{10, 0, 1}, {5000, 0, 1}};
  const Status status = PackArena(large, {.max_block_bytes = 4999}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("buffer 1 has 5000 bytes"));
  const BufferUse backwards[] = {{10, 2, 1}};
  EXPECT_EQ(PackArena(backwards, {}).status().code(), Code::kInvalidArgument);
  const BufferUse negative[] = {{-1, 0, 1}};
  EXPECT_EQ(PackArena(negative, {}).status().code(), Code::kInvalidArgument);
  const BufferUse huge[] = {{INT64_MAX / 2, 0, 1}, {INT64_MAX / 2, 0, 1}, {INT64_MAX / 2, 0, 1}};
  EXPECT_EQ(PackArena(huge, {}).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(MaxLiveBytes(huge, 256), INT64_MAX);
}

TEST(Arena, TheVerifierSeesEveryMistake) {
  const std::vector<BufferUse> uses = {{300, 0, 1}, {300, 1, 2}, {300, 2, 3}};
  const ArenaOptions options{.alignment_bytes = 256, .max_block_bytes = 1024};
  const ArenaPlan good = *PackArena(uses, options);
  ASSERT_TRUE(CheckArena(good, uses, options).ok());
  auto broken = [&](auto change) {
    ArenaPlan plan = good;
    change(plan);
    return Message(CheckArena(plan, uses, options));
  };
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places[1] = p.places[0]; }),
              HasSubstr("buffers 0 and 1 are live together and share bytes"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places[1].offset += 1; }), HasSubstr("aligned"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places[1].offset = -256; }), HasSubstr("offset -256"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places[1].block = 1; }), HasSubstr("block 1"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places[2].block = -1; }), HasSubstr("block -1"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.block_bytes[0] = 512; }), HasSubstr("a block of 512"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.block_bytes[0] = 2048; }), HasSubstr("the most is 1024"));
  EXPECT_THAT(broken([](ArenaPlan& p) { p.places.pop_back(); }), HasSubstr("2 places"));
}

TEST(Arena, FiveThousandBuffers) {
  for (int longest : {5, 200, 5000}) {
    const auto uses = RandomUses(1, 5000, 5000, longest);
    auto plan = PackArena(uses, {.work = 5'000'000});
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(CheckArena(*plan, uses, {}).ok());
    EXPECT_LE(plan->bytes(), plan->lower_bound * 5 / 4);
  }
}

TEST(Arena, PrintsByBlockAndOffset) {
  const std::vector<BufferUse> uses = {{300, 0, 1}, {1000, 1, 2}, {0, 0, 9}, {200, 2, 3}};
  EXPECT_EQ(ArenaText(*PackArena(uses, {}), uses),
            R"(arena of 1536 bytes (1.50 KiB) in 1 blocks; at most 1536 live at once
block 0: 1536 bytes
  0 + 1000: buffer 1, steps 1-2
  1024 + 300: buffer 0, steps 0-1
  1024 + 200: buffer 3, steps 2-3
)");
}

}  // namespace
}  // namespace oncilla
