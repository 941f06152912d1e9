// Bfc: recorded vectors, and each rule by itself. (bfc_model_test.cc tests all of them together.)
#include "engine/memory/bfc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/support/bfc_source.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Free chunks of a pool as places, by region and offset.
std::vector<Place> FreePlaces(const Bfc& bfc) {
  std::vector<Place> places;
  for (const auto& region : bfc.Snapshot().regions) {
    for (const auto& c : region.chunks) {
      if (!c.in_use) places.push_back({region.id, c.offset, c.bytes});
    }
  }
  return places;
}

TEST(Bfc, GrowsBySchedule) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB,
           .first_region_bytes = kMiB,
           .growth_factor = 3,
           .growth_cap_bytes = 8 * kMiB},
          &source);
  const auto take = [&](int64_t bytes) {
    const int64_t before = bfc.stats().pool_bytes;
    EXPECT_TRUE(bfc.Allocate(bytes, 0).ok());
    return bfc.stats().pool_bytes - before;
  };
  EXPECT_EQ(take(kMiB), kMiB);
  EXPECT_EQ(take(kMiB), 3 * kMiB);
  EXPECT_EQ(take(3 * kMiB), 8 * kMiB);  // 9, were it not for the cap; 2 are left of the last
  EXPECT_EQ(take(8 * kMiB), 8 * kMiB);
  EXPECT_EQ(take(20 * kMiB), 20 * kMiB);  // what is asked for is above the cap
  EXPECT_EQ(take(8 * kMiB), 8 * kMiB);
}

TEST(Bfc, BinsBySize) {
  EXPECT_EQ(Bfc::BinOf(0), 0);
  EXPECT_EQ(Bfc::BinOf(256), 0);
  EXPECT_EQ(Bfc::BinOf(511), 0);
  EXPECT_EQ(Bfc::BinOf(512), 1);
  EXPECT_EQ(Bfc::BinOf(1023), 1);
  EXPECT_EQ(Bfc::BinOf(1024), 2);
  EXPECT_EQ(Bfc::BinOf(256 * kMiB - 1), 19);
  EXPECT_EQ(Bfc::BinOf(256 * kMiB), 20);
  EXPECT_EQ(Bfc::BinOf(INT64_MAX), 20);
  EXPECT_EQ(Bfc::BinBytes(20), 256 * kMiB);
}

TEST(Bfc, VectorAOneFixedRegion) {
  TestSource source;
  Bfc bfc({.limit_bytes = kMiB, .growth = false}, &source);
  EXPECT_TRUE(source.asked.empty());  // nothing is taken before the first request

  auto a = bfc.Allocate(100);
  EXPECT_EQ(PlaceOf(a), (Place{0, 0, 256}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 256);
  auto b = bfc.Allocate(1000);
  EXPECT_EQ(PlaceOf(b), (Place{0, 256, 1024}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 1280);
  auto c = bfc.Allocate(5000);
  EXPECT_EQ(PlaceOf(c), (Place{0, 1280, 5120}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 6400);
  auto d = bfc.Allocate(256);
  EXPECT_EQ(PlaceOf(d), (Place{0, 6400, 256}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 6656);
  EXPECT_EQ(bfc.stats().fragmentation(), 0);
  EXPECT_THAT(source.asked, ElementsAre(kMiB));

  ASSERT_TRUE(bfc.Free(*b).ok());
  EXPECT_THAT(FreePlaces(bfc), ElementsAre(Place{0, 256, 1024}, Place{0, 6656, 1041920}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 5632);
  EXPECT_NEAR(bfc.stats().fragmentation(), 0.0010, 0.00005);

  auto e = bfc.Allocate(300);  // the best fit is the hole; 1024 >= 2 * 512, so it is split
  EXPECT_EQ(PlaceOf(e), (Place{0, 256, 512}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 6144);
  EXPECT_NEAR(bfc.stats().fragmentation(), 0.0005, 0.00005);
  auto f = bfc.Allocate(400);
  EXPECT_EQ(PlaceOf(f), (Place{0, 768, 512}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 6656);
  EXPECT_EQ(bfc.stats().fragmentation(), 0);

  ASSERT_TRUE(bfc.Free(*a).ok());
  EXPECT_EQ(FreePlaces(bfc)[0], (Place{0, 0, 256}));
  ASSERT_TRUE(bfc.Free(*e).ok());
  EXPECT_EQ(FreePlaces(bfc)[0], (Place{0, 0, 768}));
  ASSERT_TRUE(bfc.Free(*f).ok());
  EXPECT_EQ(FreePlaces(bfc)[0], (Place{0, 0, 1280}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 5376);
  EXPECT_NEAR(bfc.stats().fragmentation(), 0.0012, 0.00005);

  ASSERT_TRUE(bfc.Free(*d).ok());
  ASSERT_TRUE(bfc.Free(*c).ok());
  EXPECT_THAT(FreePlaces(bfc), ElementsAre(Place{0, 0, kMiB}));
  EXPECT_EQ(bfc.stats().bytes_in_use, 0);
  EXPECT_EQ(bfc.stats().fragmentation(), 0);

  auto g = bfc.Allocate(600000);  // 2 * 600064 > 1048576: not split, the pool is full
  EXPECT_EQ(PlaceOf(g), (Place{0, 0, kMiB}));
  EXPECT_EQ(bfc.stats().bytes_in_use, kMiB);
  EXPECT_EQ(bfc.stats().fragmentation(), 0);
  auto h = bfc.Allocate(300000);
  EXPECT_EQ(h.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(source.asked, ElementsAre(kMiB));  // no driver call for what cannot fit
}

TEST(Bfc, VectorBGrowth) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB}, &source);
  auto next = [&] { return bfc.stats().next_region_bytes / kMiB; };
  EXPECT_EQ(PlaceOf(bfc.Allocate(1000)), (Place{0, 0, 1024}));
  EXPECT_EQ(next(), 4);
  EXPECT_EQ(PlaceOf(bfc.Allocate(3 * kMiB)), (Place{1, 0, 4 * kMiB}));
  EXPECT_EQ(next(), 8);
  EXPECT_EQ(PlaceOf(bfc.Allocate(kMiB)), (Place{0, 1024, 2096128}));
  EXPECT_EQ(next(), 8);
  EXPECT_EQ(PlaceOf(bfc.Allocate(20 * kMiB)), (Place{2, 0, 32 * kMiB}));
  EXPECT_EQ(next(), 32);  // raised for this request, so not doubled after it
  EXPECT_EQ(PlaceOf(bfc.Allocate(5 * kMiB)), (Place{3, 0, 5 * kMiB}));
  EXPECT_EQ(next(), 64);
  EXPECT_THAT(source.sizes, ElementsAre(2 * kMiB, 4 * kMiB, 32 * kMiB, 32 * kMiB));
  const Status full = bfc.Allocate(60 * kMiB).status();
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_EQ(bfc.stats().growable_bytes, 30 * kMiB);
  EXPECT_EQ(bfc.stats().pool_bytes, 70 * kMiB);
  EXPECT_THAT(Message(full), HasSubstr(StrCat("could still be added ", 30 * kMiB)));
  EXPECT_EQ(source.asked.size(), 4u);
}

TEST(Bfc, NoBytesAreNoChunkAndNegativeIsRefused) {
  TestSource source;
  Bfc bfc({}, &source);
  auto none = bfc.Allocate(0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->region, -1);
  EXPECT_TRUE(bfc.Free(*none).ok());
  EXPECT_EQ(bfc.Allocate(-1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(bfc.Allocate(INT64_MAX).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(bfc.stats().allocations, 0);
}

TEST(Bfc, FreeingTwiceIsAnError) {
  TestSource source;
  Bfc bfc({}, &source);
  const BfcChunk a = *bfc.Allocate(100);
  ASSERT_TRUE(bfc.Free(a).ok());
  EXPECT_EQ(bfc.Free(a).code(), Code::kInternal);
  const BfcChunk b = *bfc.Allocate(100);  // the same place again
  EXPECT_EQ(b.offset, a.offset);
  EXPECT_EQ(bfc.Free(a).code(), Code::kInternal);
  EXPECT_TRUE(bfc.Free(b).ok());
}

TEST(Bfc, GranularityIsTheAlignmentRoundedToAPowerOfTwo) {
  TestSource source;
  EXPECT_EQ(Bfc({.alignment_bytes = 16}, &source).granularity(), 256);
  EXPECT_EQ(Bfc({.alignment_bytes = 512}, &source).granularity(), 512);
  EXPECT_EQ(Bfc({.alignment_bytes = 600}, &source).granularity(), 1024);
  Bfc bfc({.alignment_bytes = 4096}, &source);
  EXPECT_EQ(PlaceOf(bfc.Allocate(1)), (Place{0, 0, 4096}));
  EXPECT_EQ(PlaceOf(bfc.Allocate(4097)), (Place{0, 4096, 8192}));
}

TEST(Bfc, SplitsByTheFractionOfTheLimit) {
  TestSource source;
  Bfc bfc({.limit_bytes = kMiB, .growth = false, .fragmentation_fraction = 0.25}, &source);
  EXPECT_EQ(PlaceOf(bfc.Allocate(600000)), (Place{0, 0, 600064}));  // would waste 448512 >= 256 Ki
  // The remaining 448512 for 300000: would waste 148480, less than the cap.
  EXPECT_EQ(PlaceOf(bfc.Allocate(300000)), (Place{0, 600064, 448512}));
  // A cap that rounds to nothing never makes an empty chunk.
  TestSource other;
  Bfc tight({.limit_bytes = kMiB, .growth = false, .fragmentation_fraction = 1e-12}, &other);
  EXPECT_EQ(PlaceOf(tight.Allocate(kMiB - 256)), (Place{0, 0, kMiB - 256}));
  EXPECT_EQ(PlaceOf(tight.Allocate(256)), (Place{0, kMiB - 256, 256}));
  EXPECT_TRUE(FreePlaces(tight).empty());
}

TEST(Bfc, BacksOffByTenthsWhenTheDriverRefuses) {
  TestSource source;
  source.refuse = [](int64_t bytes) { return bytes > 3 * kMiB; };
  Bfc bfc({.limit_bytes = 4 * kMiB, .growth = false}, &source);
  ASSERT_TRUE(bfc.Allocate(1000).ok());
  // 4 MiB, then 0.9 of it rounded up each time, until 3 MiB; then what is left of the limit.
  EXPECT_THAT(source.asked[0], 4194304);
  EXPECT_THAT(source.asked[1], 3774976);
  EXPECT_THAT(source.asked[2], 3397632);
  EXPECT_THAT(source.asked[3], 3057920);
  EXPECT_EQ(source.sizes[0], 3057920);
  EXPECT_EQ(source.asked[4], 4 * kMiB - 3057920);

  TestSource never;
  never.refuse = [](int64_t) { return true; };
  Bfc hopeless({.limit_bytes = 100 * kMiB}, &never);
  const Status status = hopeless.Allocate(kMiB).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("driver says no to"));
  for (int64_t bytes : never.asked) EXPECT_GE(bytes, kMiB);  // never less than was asked for
}

TEST(Bfc, AFailureThatIsNotAboutRoomIsPassedOn) {
  TestSource source;
  source.lost = true;
  Bfc bfc({}, &source);
  const Status status = bfc.Allocate(100).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(Message(status), "device lost");
  EXPECT_EQ(source.asked.size(), 1u);
}

TEST(Bfc, NoRegionIsAboveTheLargestAllocation) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB, .max_region_bytes = 8 * kMiB}, &source);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(bfc.Allocate(8 * kMiB).ok());
  EXPECT_THAT(source.sizes, ::testing::Each(8 * kMiB));
  const Status status = bfc.Allocate(9 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "asked for 9437184 bytes, but the device's largest allocation is 8388608 bytes "
            "(4194304 bytes are free)");
  EXPECT_EQ(source.asked.size(), 12u);
}

TEST(Bfc, PreallocationTakesTheLimitInSeveralRegions) {
  TestSource source;
  Bfc bfc({.limit_bytes = 20 * kMiB, .max_region_bytes = 8 * kMiB, .growth = false}, &source);
  EXPECT_EQ(PlaceOf(bfc.Allocate(100)), (Place{2, 0, 256}));  // the best fit is in the smallest
  EXPECT_THAT(source.sizes, ElementsAre(8 * kMiB, 8 * kMiB, 4 * kMiB));
  EXPECT_EQ(bfc.stats().growable_bytes, 0);
  EXPECT_EQ(PlaceOf(bfc.Allocate(4 * kMiB)), (Place{0, 0, 4 * kMiB}));
  // The whole region is freed and allocated again.
  EXPECT_EQ(bfc.Close(), 20 * kMiB);
  ASSERT_TRUE(bfc.Allocate(100).ok());
  EXPECT_EQ(bfc.stats().pool_bytes, 20 * kMiB);
}

TEST(Bfc, ABudgetSharedWithOthersBoundsGrowth) {
  TestSource source;
  source.available = 3 * kMiB + 100;
  Bfc bfc({.limit_bytes = 100 * kMiB}, &source);
  EXPECT_EQ(bfc.Allocate(3 * kMiB + 1).status().code(), Code::kResourceExhausted);
  ASSERT_TRUE(bfc.Allocate(3 * kMiB).ok());
  EXPECT_THAT(source.asked, ElementsAre(3 * kMiB));
}

TEST(Bfc, RegionsAndChunksFitTheRequestWhenToldSo) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB, .exact = true}, &source);
  const BfcChunk large = *bfc.Allocate(20 * kMiB + 1);
  ASSERT_TRUE(bfc.Allocate(1000).ok());
  EXPECT_THAT(source.sizes, ElementsAre(20 * kMiB + 256, 1024));
  // What was reserved by asking and giving back is then handed out without a rest that is lost.
  ASSERT_TRUE(bfc.Free(large).ok());
  EXPECT_EQ(bfc.Allocate(19 * kMiB)->bytes, 19 * kMiB);
  EXPECT_EQ(bfc.Allocate(kMiB + 1)->bytes, kMiB + 256);
  EXPECT_EQ(source.sizes.size(), 2u);
  EXPECT_EQ(bfc.stats().free_in_pool(), 0);
}

TEST(Bfc, CollectsEmptyRegionsBeforeFailing) {
  TestSource source;
  Bfc bfc({.limit_bytes = 14 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(2 * kMiB), b = *bfc.Allocate(4 * kMiB);
  const BfcChunk c = *bfc.Allocate(8 * kMiB);
  ASSERT_TRUE(bfc.Free(a).ok() && bfc.Free(c).ok());
  EXPECT_TRUE(source.freed.empty());
  EXPECT_EQ(bfc.Allocate(11 * kMiB).status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(source.freed.empty());  // it would not have helped, so nothing was given back
  EXPECT_EQ(PlaceOf(bfc.Allocate(10 * kMiB)), (Place{3, 0, 10 * kMiB}));
  EXPECT_THAT(source.freed, ElementsAre(0, 2));
  EXPECT_EQ(bfc.stats().pool_bytes, 14 * kMiB);
  EXPECT_TRUE(bfc.Free(b).ok());
}

TEST(Bfc, TrimAndCloseGiveBackWhatTheySay) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(2 * kMiB), b = *bfc.Allocate(4 * kMiB);
  ASSERT_TRUE(bfc.Free(b).ok());
  EXPECT_EQ(bfc.Trim(), 4 * kMiB);
  EXPECT_EQ(bfc.Trim(), 0);
  EXPECT_THAT(source.freed, ElementsAre(1));
  EXPECT_EQ(bfc.stats().pool_bytes, 2 * kMiB);
  EXPECT_EQ(bfc.Close(), 2 * kMiB);
  EXPECT_EQ(bfc.Close(), 0);
  EXPECT_EQ(bfc.stats().bytes_in_use, 0);
  EXPECT_EQ(bfc.stats().requested_bytes, 0);
  EXPECT_EQ(bfc.Free(a).code(), Code::kInternal);
}

TEST(Bfc, ALowerLimitGivesBackWhatIsEmptyAndStopsGrowth) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(2 * kMiB), b = *bfc.Allocate(4 * kMiB);
  ASSERT_TRUE(bfc.Free(b).ok());
  bfc.SetLimit(5 * kMiB);
  EXPECT_EQ(bfc.stats().pool_bytes, 2 * kMiB);
  EXPECT_EQ(bfc.Allocate(4 * kMiB).status().code(), Code::kResourceExhausted);
  bfc.SetLimit(kMiB);  // below what is in use: that stays
  EXPECT_EQ(bfc.stats().pool_bytes, 2 * kMiB);
  EXPECT_EQ(bfc.stats().growable_bytes, 0);
  ASSERT_TRUE(bfc.Free(a).ok());
  EXPECT_TRUE(bfc.Allocate(kMiB).ok());  // inside the region that is still there
  bfc.SetLimit(100 * kMiB);
  EXPECT_TRUE(bfc.Allocate(50 * kMiB).ok());
}

// A pool that fills and empties repeatedly, as when models are loaded and unloaded, must not grow.
TEST(Bfc, TrimmedPoolsDoNotGrowFromTurnToTurn) {
  TestSource source;
  Bfc bfc({.limit_bytes = 1000 * kMiB}, &source);
  for (int turn = 0; turn < 40; ++turn) {
    const BfcChunk chunk = *bfc.Allocate(1000);
    EXPECT_EQ(bfc.stats().pool_bytes, 2 * kMiB) << turn;
    ASSERT_TRUE(bfc.Free(chunk).ok());
    EXPECT_EQ(bfc.Trim(), 2 * kMiB);
  }
  // Next to an allocation that stays.
  ASSERT_TRUE(bfc.Allocate(2 * kMiB).ok());
  for (int turn = 0; turn < 40; ++turn) {
    const BfcChunk chunk = *bfc.Allocate(1000);
    EXPECT_EQ(bfc.stats().pool_bytes, 6 * kMiB) << turn;
    ASSERT_TRUE(bfc.Free(chunk).ok());
    EXPECT_EQ(bfc.Trim(), 4 * kMiB);
  }
}

TEST(Bfc, StatisticsCountChunksNotRequests) {
  TestSource source;
  Bfc bfc({.limit_bytes = 100 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(1), b = *bfc.Allocate(1000);
  ASSERT_TRUE(bfc.Free(b).ok());
  BfcStats s = bfc.stats();
  EXPECT_EQ(s.allocations, 2);
  EXPECT_EQ(s.bytes_in_use, 256);
  EXPECT_EQ(s.requested_bytes, 1);
  EXPECT_EQ(s.peak_bytes_in_use, 1280);
  EXPECT_EQ(s.largest_allocation_bytes, 1024);
  EXPECT_EQ(s.largest_free_bytes, 2 * kMiB - 256);
  EXPECT_EQ(s.chunks_in_use, 1);
  bfc.ClearStats();
  s = bfc.stats();
  EXPECT_EQ(s.allocations, 0);
  EXPECT_EQ(s.largest_allocation_bytes, 0);
  EXPECT_EQ(s.peak_bytes_in_use, 256);
  EXPECT_TRUE(bfc.Free(a).ok());
}

// Freed while the device may still work with them.
TEST(Bfc, AChunkThatWaitsIsLeftAloneUntilItsStampIsReached) {
  TestSource source;
  Bfc bfc({.limit_bytes = 2 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(kMiB), b = *bfc.Allocate(kMiB);
  ASSERT_TRUE(bfc.Free(a, 7).ok());
  EXPECT_EQ(bfc.stats().waiting_bytes, kMiB);
  EXPECT_EQ(bfc.stats().bytes_in_use, kMiB);
  EXPECT_EQ(bfc.Free(a, 7).code(), Code::kInternal);
  const Status early = bfc.Allocate(1000).status();
  EXPECT_EQ(early.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(early), HasSubstr("the device may still use 1048576"));
  EXPECT_FALSE(bfc.Allocate(1000, 0, 6).ok());  // whose work comes behind stamp 6
  bfc.SetReached(6);
  EXPECT_FALSE(bfc.Allocate(1000).ok());
  bfc.SetReached(7);
  EXPECT_EQ(bfc.stats().waiting_bytes, 0);
  EXPECT_EQ(PlaceOf(bfc.Allocate(1000)), (Place{0, 0, 1024}));
  bfc.SetReached(3);  // it never goes back
  ASSERT_TRUE(bfc.Free(b, 7).ok());
  EXPECT_EQ(bfc.stats().waiting_bytes, 0);
}

TEST(Bfc, WhoComesBehindTheStampTakesTheChunkAtOnce) {
  TestSource source;
  Bfc bfc({.limit_bytes = 2 * kMiB}, &source);
  const BfcChunk a = *bfc.Allocate(kMiB), b = *bfc.Allocate(kMiB);
  ASSERT_TRUE(bfc.Free(a, 7).ok());
  const BfcChunk same = *bfc.Allocate(512 * 1024, 0, 7);
  EXPECT_EQ(same.offset, 0);
  EXPECT_EQ(bfc.stats().waiting_bytes, 512 * 1024);  // the rest still waits
  EXPECT_EQ(PlaceOf(bfc.Allocate(512 * 1024, 0, Bfc::kAnyStamp)),
            (Place{0, 512 * 1024, 512 * 1024}));
  EXPECT_TRUE(bfc.Free(b).ok());
}

TEST(Bfc, ChunksThatWaitAreMergedOnlyWhenNothingElseIsLeftAndTheCallerAllowsIt) {
  TestSource source;
  Bfc bfc({.limit_bytes = 3 * kMiB, .growth = false}, &source);
  BfcChunk chunks[] = {*bfc.Allocate(kMiB), *bfc.Allocate(kMiB), *bfc.Allocate(kMiB)};
  ASSERT_TRUE(bfc.Free(chunks[0], 5).ok() && bfc.Free(chunks[1], 6).ok());
  EXPECT_THAT(FreePlaces(bfc), ElementsAre(Place{0, 0, kMiB}, Place{0, kMiB, kMiB}));
  EXPECT_FALSE(bfc.Allocate(2 * kMiB).ok());
  EXPECT_FALSE(bfc.Allocate(2 * kMiB, 0, 6).ok());  // a stamp is asked for: nothing is merged
  EXPECT_EQ(FreePlaces(bfc).size(), 2u);
  const BfcChunk both = *bfc.Allocate(2 * kMiB, 0, Bfc::kAnyStamp);
  EXPECT_EQ(both.bytes, 2 * kMiB);
  ASSERT_TRUE(bfc.Free(both, 9).ok());
  // A merged chunk waits for the later stamp of its parts.
  ASSERT_TRUE(bfc.Free(chunks[2], 8).ok());
  EXPECT_FALSE(bfc.Allocate(4 * kMiB, 0, Bfc::kAnyStamp).ok());
  EXPECT_THAT(FreePlaces(bfc), ElementsAre(Place{0, 0, 3 * kMiB}));
  bfc.SetReached(8);
  EXPECT_EQ(bfc.stats().waiting_bytes, 3 * kMiB);
  bfc.SetReached(9);
  EXPECT_EQ(bfc.stats().waiting_bytes, 0);
}

TEST(Bfc, ARegionStaysWhileAChunkOfItWaits) {
  TestSource source;
  Bfc bfc({.limit_bytes = 4 * kMiB}, &source);
  ASSERT_TRUE(bfc.Free(*bfc.Allocate(kMiB), 5).ok());
  EXPECT_EQ(bfc.Trim(), 0);
  EXPECT_FALSE(bfc.Allocate(3 * kMiB).ok());  // nor is it collected
  EXPECT_TRUE(source.freed.empty());
  bfc.SetReached(5);
  EXPECT_EQ(bfc.Trim(), 2 * kMiB);
  ASSERT_TRUE(bfc.Free(*bfc.Allocate(kMiB), 6).ok());
  EXPECT_EQ(bfc.Close(), 2 * kMiB);
  EXPECT_EQ(bfc.stats().waiting_bytes, 0);
}

// TensorFlow's limit on the waste of an unsplit chunk, when no fraction is given.
TEST(Bfc, AChunkNeverWastes128MiB) {
  TestSource source;
  Bfc bfc({.limit_bytes = 1024 * kMiB, .growth = false}, &source);
  const BfcChunk all = *bfc.Allocate(1024 * kMiB - 128 * kMiB + 256);  // would waste less: whole
  EXPECT_EQ(all.bytes, 1024 * kMiB);
  ASSERT_TRUE(bfc.Free(all).ok());
  EXPECT_EQ(bfc.Allocate(1024 * kMiB - 128 * kMiB)->bytes, 1024 * kMiB - 128 * kMiB);
}

// The first region is no larger than a limit below it.
TEST(Bfc, TheFirstRegionIsTwoMiBOrTheLimit) {
  TestSource source;
  Bfc small({.limit_bytes = kMiB}, &source), large({.limit_bytes = 100 * kMiB}, &source);
  ASSERT_TRUE(small.Allocate(1).ok() && large.Allocate(1).ok());
  EXPECT_THAT(source.sizes, ElementsAre(kMiB, 2 * kMiB));
}

// Among chunks of one size the one at the lowest address is used.
TEST(Bfc, TheBestFitIsTheSmallestThenTheLowest) {
  TestSource source;
  Bfc bfc({.limit_bytes = kMiB, .growth = false}, &source);
  std::vector<BfcChunk> chunks;
  for (int64_t bytes : {1024, 256, 512, 256, 512, 256, 768, 256}) {
    chunks.push_back(*bfc.Allocate(bytes));
  }
  for (size_t i : {4u, 2u, 0u, 6u}) ASSERT_TRUE(bfc.Free(chunks[i]).ok());
  EXPECT_EQ(bfc.Allocate(512)->offset, chunks[2].offset);
  EXPECT_EQ(bfc.Allocate(512)->offset, chunks[4].offset);
  EXPECT_EQ(bfc.Allocate(512)->offset, chunks[6].offset);
}

// Pool unlocks while the device allocates a region: other threads then allocate and free chunks,
// and empty regions are freed. The chunk that the first thread was about to use may be gone then.
TEST(Bfc, OthersMayComeInWhileARegionIsTaken) {
  TestSource source;
  Bfc bfc({.limit_bytes = 64 * kMiB}, &source);
  std::vector<BfcChunk> others;
  int depth = 0;
  source.refuse = [&](int64_t) {
    if (++depth <= 3) {
      for (int i = 0; i < 8; ++i) others.push_back(*bfc.Allocate(256 + 256 * i));
      if (depth == 1) {
        EXPECT_TRUE(bfc.Free(others[others.size() / 2]).ok());
      }
    }
    --depth;
    return false;
  };
  std::vector<BfcChunk> chunks;
  for (int64_t bytes : {kMiB, 3 * kMiB, 5 * kMiB}) {
    Result<BfcChunk> chunk = bfc.Allocate(bytes);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    EXPECT_GE(chunk->bytes, bytes);
    chunks.push_back(*chunk);
  }
  // Every place belongs to one of them.
  std::map<std::pair<int, int64_t>, int64_t> places;
  for (const BfcSnapshot::Region& region : bfc.Snapshot().regions) {
    int64_t offset = 0;
    for (const BfcSnapshot::Chunk& chunk : region.chunks) {
      ASSERT_EQ(chunk.offset, offset);
      offset += chunk.bytes;
      if (chunk.in_use) places[{region.id, chunk.offset}] = chunk.bytes;
    }
    EXPECT_EQ(offset, region.bytes);
  }
  EXPECT_EQ(static_cast<int>(places.size()), bfc.stats().chunks_in_use);
  for (const BfcChunk& chunk : chunks) {
    EXPECT_EQ((places[{chunk.region, chunk.offset}]), chunk.bytes);
  }
}

}  // namespace
}  // namespace oncilla
