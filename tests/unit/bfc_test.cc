// Bfc: recorded vectors, the rules one by one, and a million random steps against a naive model
// that states the same rules by plain search.
#include "engine/memory/bfc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ONCILLA_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONCILLA_SANITIZED 1
#endif
#ifndef ONCILLA_SANITIZED
#define ONCILLA_SANITIZED 0
#endif

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Numbers regions 0, 1, 2 ...; refuses what `refuse` says.
class TestSource : public RegionSource {
 public:
  Result<int> Allocate(int64_t bytes) override {
    asked.push_back(bytes);
    if (refuse && refuse(bytes)) return Exhausted("driver says no to ", bytes);
    if (lost) return Error(Code::kUnavailable, "device lost");
    sizes.push_back(bytes);
    return static_cast<int>(sizes.size()) - 1;
  }
  void Free(int region) override { freed.push_back(region); }
  int64_t available_bytes() const override { return available; }

  std::function<bool(int64_t)> refuse;
  bool lost = false;
  int64_t available = INT64_MAX;
  std::vector<int64_t> asked, sizes;
  std::vector<int> freed;
};

struct Place {
  int region;
  int64_t offset, bytes;
  friend bool operator==(const Place&, const Place&) = default;
};
std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << "(" << p.region << "," << p.offset << "," << p.bytes << ")";
}
Place PlaceOf(const Result<BfcChunk>& chunk) {
  if (!chunk.ok()) return {-2, 0, 0};
  return {chunk->region, chunk->offset, chunk->bytes};
}

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
  // Given back and taken again, whole.
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

// A pool that fills and empties in turns, as one does whose models come and go.
TEST(Bfc, TrimmedPoolsDoNotGrowFromTurnToTurn) {
  TestSource source;
  Bfc bfc({.limit_bytes = 1000 * kMiB}, &source);
  for (int turn = 0; turn < 40; ++turn) {
    const BfcChunk chunk = *bfc.Allocate(1000);
    EXPECT_EQ(bfc.stats().pool_bytes, 2 * kMiB) << turn;
    ASSERT_TRUE(bfc.Free(chunk).ok());
    EXPECT_EQ(bfc.Trim(), 2 * kMiB);
  }
  // Beside one that stays.
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
  // What is merged waits for the later stamp of its parts.
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

// TensorFlow's cap on what an unsplit chunk may waste, when no fraction is given.
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

// Among chunks of one size the lowest address.
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

// The same rules by plain search over plain lists.
struct NaiveChunk {
  int64_t bytes;
  bool used;
  int64_t stamp = 0;
  bool Joins(bool stamped) const { return !used && (stamped || stamp == 0); }
};
struct Naive {
  BfcOptions options;
  int64_t granularity;
  std::function<bool(int64_t)> refuse;
  std::map<int, std::vector<NaiveChunk>> regions = {};
  int64_t next = 0;
  int next_region = 0;
  int64_t reached = 0;

  int64_t Up(int64_t bytes) const { return (bytes + granularity - 1) / granularity * granularity; }
  int64_t Down(int64_t bytes) const { return bytes / granularity * granularity; }
  int64_t Pool() const {
    int64_t sum = 0;
    for (const auto& [id, chunks] : regions) {
      for (const NaiveChunk& c : chunks) sum += c.bytes;
    }
    return sum;
  }
  bool Fit(int64_t rounded, int64_t freed_before, Place* place) {
    std::vector<NaiveChunk>* best = nullptr;
    size_t best_index = 0;
    for (auto& [id, chunks] : regions) {
      int64_t offset = 0;
      for (size_t i = 0; i < chunks.size(); offset += chunks[i].bytes, ++i) {
        if (chunks[i].used || chunks[i].bytes < rounded) continue;
        if (chunks[i].stamp > freed_before) continue;
        if (best != nullptr && (*best)[best_index].bytes <= chunks[i].bytes) continue;
        best = &chunks, best_index = i;
        *place = {id, offset, chunks[i].bytes};
      }
    }
    if (best == nullptr) return false;
    const int64_t all = place->bytes;
    const int64_t cap = options.fragmentation_fraction > 0
                            ? static_cast<int64_t>(options.fragmentation_fraction *
                                                   static_cast<double>(options.limit_bytes))
                            : 128 * kMiB;
    (*best)[best_index].used = true;
    const int64_t stamp = std::exchange((*best)[best_index].stamp, 0);
    if (all - rounded >= granularity && (all >= 2 * rounded || all - rounded >= cap)) {
      (*best)[best_index].bytes = place->bytes = rounded;
      best->insert(best->begin() + static_cast<int64_t>(best_index) + 1,
                   {all - rounded, false, stamp});
    }
    return true;
  }
  bool Add(int64_t bytes, int64_t least) {
    while (refuse(bytes)) {
      bytes = std::min(Up(bytes - bytes / 10), bytes - granularity);
      if (bytes < least) return false;
    }
    regions[next_region++] = {{.bytes = bytes, .used = false}};
    return true;
  }
  bool Extend(int64_t rounded) {
    const int64_t room = Down(std::max<int64_t>(0, options.limit_bytes - Pool()));
    if (rounded > room) return false;
    bool raised = false;
    for (; rounded > next; raised = true) next *= 2;
    if (!Add(Down(std::min({next, room, options.max_region_bytes})), rounded)) return false;
    if (!raised) next *= 2;
    while (!options.growth) {
      const int64_t more = Down(std::min(options.limit_bytes - Pool(), options.max_region_bytes));
      if (more < granularity || !Add(more, std::max(granularity, more / 4))) break;
    }
    return true;
  }
  bool Allocate(int64_t bytes, int64_t freed_before, Place* place) {
    const int64_t rounded = Up(bytes);
    if (rounded > options.max_region_bytes) return false;
    if (Fit(rounded, freed_before, place)) return true;
    if (Extend(rounded)) return Fit(rounded, freed_before, place);
    if (freed_before == Bfc::kAnyStamp && MergeWaiting(rounded)) {
      return Fit(rounded, freed_before, place);
    }
    int64_t empty = 0;
    for (const auto& [id, chunks] : regions) empty += IsEmpty(chunks) ? chunks[0].bytes : 0;
    if (empty == 0 || Down(options.limit_bytes - Pool()) + empty < rounded) return false;
    Trim();
    return Extend(rounded) && Fit(rounded, freed_before, place);
  }
  static bool IsEmpty(const std::vector<NaiveChunk>& chunks) {
    return chunks.size() == 1 && chunks[0].Joins(false);
  }
  // The chunk at `i`, which is free, with its free neighbours; returns where the whole is.
  static size_t Merge(std::vector<NaiveChunk>& chunks, size_t i, bool stamped) {
    auto absorb_next = [&](size_t left) {
      chunks[left].bytes += chunks[left + 1].bytes;
      chunks[left].stamp = std::max(chunks[left].stamp, chunks[left + 1].stamp);
      chunks.erase(chunks.begin() + static_cast<int64_t>(left) + 1);
    };
    while (i + 1 < chunks.size() && chunks[i + 1].Joins(stamped)) absorb_next(i);
    for (; i > 0 && chunks[i - 1].Joins(stamped); --i) absorb_next(i - 1);
    return i;
  }
  void Free(const Place& place, int64_t stamp) {
    std::vector<NaiveChunk>& chunks = regions[place.region];
    size_t i = 0;
    for (int64_t offset = 0; offset < place.offset; ++i) offset += chunks[i].bytes;
    chunks[i].used = false;
    chunks[i].stamp = stamp > reached ? stamp : 0;
    if (chunks[i].stamp == 0) Merge(chunks, i, false);
  }
  // The chunk that waits for the earliest stamp above `after`; null: none does.
  std::vector<NaiveChunk>* Waiting(int64_t after, size_t* index) {
    std::vector<NaiveChunk>* found = nullptr;
    for (auto& [id, chunks] : regions) {
      for (size_t i = 0; i < chunks.size(); ++i) {
        if (chunks[i].stamp <= after) continue;
        if (found != nullptr && (*found)[*index].stamp <= chunks[i].stamp) continue;
        found = &chunks, *index = i;
      }
    }
    return found;
  }
  void SetReached(int64_t stamp) {
    reached = std::max(reached, stamp);
    size_t i = 0;
    for (std::vector<NaiveChunk>* chunks; (chunks = Waiting(0, &i)) != nullptr;) {
      if ((*chunks)[i].stamp > reached) return;
      (*chunks)[i].stamp = 0;
      Merge(*chunks, i, false);
    }
  }
  bool MergeWaiting(int64_t rounded) {
    int64_t after = 0;
    size_t i = 0;
    for (std::vector<NaiveChunk>* chunks; (chunks = Waiting(after, &i)) != nullptr;) {
      after = (*chunks)[i].stamp;
      i = Merge(*chunks, i, true);
      if ((*chunks)[i].bytes >= rounded) return true;
    }
    return false;
  }
  int64_t Trim() {
    int64_t bytes = 0;
    std::erase_if(regions, [&](const auto& entry) {
      const bool empty = IsEmpty(entry.second);
      if (empty) bytes += entry.second[0].bytes;
      return empty;
    });
    if (bytes == 0) return 0;
    int64_t largest = 0;
    for (const auto& [id, chunks] : regions) {
      int64_t sum = 0;
      for (const NaiveChunk& c : chunks) sum += c.bytes;
      largest = std::max(largest, sum);
    }
    next = largest == 0 ? Up(options.growth ? 2 * kMiB : options.limit_bytes)
                        : std::min(next, 2 * largest);
    return bytes;
  }
};

void ExpectSameState(const Bfc& bfc, const Naive& naive) {
  const BfcSnapshot snapshot = bfc.Snapshot();
  ASSERT_EQ(snapshot.regions.size(), naive.regions.size());
  int64_t in_use = 0, largest_free = 0, waiting = 0;
  for (const auto& region : snapshot.regions) {
    const auto& expected = naive.regions.at(region.id);
    ASSERT_EQ(region.chunks.size(), expected.size());
    int64_t offset = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& c = region.chunks[i];
      ASSERT_EQ(c.offset, offset);
      ASSERT_EQ(c.offset % snapshot.granularity, 0);
      ASSERT_EQ(c.bytes, expected[i].bytes);
      ASSERT_EQ(c.in_use, expected[i].used);
      ASSERT_EQ(c.stamp, expected[i].stamp);
      waiting += c.stamp > 0 ? c.bytes : 0;
      // Two free neighbours would have been merged, unless one waits.
      ASSERT_FALSE(i > 0 && expected[i].Joins(false) && expected[i - 1].Joins(false));
      (c.in_use ? in_use : largest_free) =
          c.in_use ? in_use + c.bytes : std::max(largest_free, c.bytes);
      offset += c.bytes;
    }
    ASSERT_EQ(offset, region.bytes);
  }
  ASSERT_EQ(snapshot.stats.bytes_in_use, in_use);
  ASSERT_EQ(snapshot.stats.largest_free_bytes, largest_free);
  ASSERT_EQ(snapshot.stats.waiting_bytes, waiting);
  ASSERT_EQ(snapshot.stats.pool_bytes, naive.Pool());
}

// Every answer is compared, and every 200 steps the whole state: order, sizes and merging of
// chunks.
TEST(Bfc, AgreesWithTheNaiveModel) {
  struct Variant {
    BfcOptions options;
    bool stamps = false;  // half of what is freed waits for the device
  };
  const Variant variants[] = {
      {{.limit_bytes = 64 * kMiB}},
      {{.limit_bytes = 64 * kMiB, .growth = false}},
      {{.limit_bytes = 48 * kMiB + 77,
        .max_region_bytes = 6 * kMiB + 300,
        .alignment_bytes = 1024}},
      {{.limit_bytes = 40 * kMiB, .max_region_bytes = 16 * kMiB, .growth = false}},
      {{.limit_bytes = 64 * kMiB, .fragmentation_fraction = 0.001}},
      {{.limit_bytes = 64 * kMiB}, true},
      {{.limit_bytes = 40 * kMiB, .max_region_bytes = 16 * kMiB, .growth = false}, true},
      {{.limit_bytes = 16 * kMiB, .fragmentation_fraction = 0.01}, true},
  };
  constexpr int kSteps = ONCILLA_SANITIZED ? 40'000 : 1'000'000;
  constexpr int kStepsEach = kSteps / static_cast<int>(std::size(variants));
  int64_t refused = 0, placed = 0, reused_early = 0;
  for (uint32_t variant = 0; variant < std::size(variants); ++variant) {
    SCOPED_TRACE(variant);
    const auto& [options, stamps] = variants[variant];
    // Refuses by size and by how often it was asked for it: the same for both.
    auto refusal = [variant](std::map<int64_t, int>* seen) {
      return [variant, seen](int64_t bytes) {
        return variant % 2 == 1 ? false : (++(*seen)[bytes] + bytes / 256) % 7 == 0;
      };
    };
    std::map<int64_t, int> seen_here, seen_there;
    TestSource source;
    source.refuse = refusal(&seen_here);
    Bfc bfc(options, &source);
    Naive naive{
        .options = options, .granularity = bfc.granularity(), .refuse = refusal(&seen_there)};
    naive.options.max_region_bytes = naive.Down(naive.options.max_region_bytes);
    naive.next = naive.Up(naive.options.growth ? 2 * kMiB : naive.options.limit_bytes);

    std::mt19937 random(variant + 1);
    std::vector<std::pair<BfcChunk, Place>> live;
    int64_t in_use = 0, requested = 0, peak = 0;
    std::map<int64_t, int64_t> asked_of;
    for (int step = 1; step <= kStepsEach; ++step) {
      const uint32_t what = random() % 1000;
      // Phases that fill the pool and phases that empty it.
      const uint32_t allocate_share = step / 1000 % 2 == 0 ? 700 : 350;
      if (what == 999) {
        ASSERT_EQ(bfc.Trim(), naive.Trim());
      } else if (stamps && what >= 980) {
        const int64_t reached = step - static_cast<int64_t>(random() % 200);
        bfc.SetReached(reached);
        naive.SetReached(reached);
      } else if (what < allocate_share) {
        const int64_t bytes = 1 + static_cast<int64_t>(random() % (int64_t{1} << (random() % 24)));
        const uint32_t choice = random() % 3;
        const int64_t freed_before = !stamps || choice == 0 ? 0
                                     : choice == 1          ? Bfc::kAnyStamp
                                                            : step - 100;
        Place expected{};
        const bool fits = naive.Allocate(bytes, freed_before, &expected);
        const int64_t waiting = bfc.stats().waiting_bytes;
        auto chunk = bfc.Allocate(bytes, step, freed_before);
        ASSERT_EQ(chunk.ok(), fits) << "step " << step << ": " << chunk.status();
        (fits ? placed : refused)++;
        if (!fits) continue;
        ASSERT_EQ(PlaceOf(chunk), expected) << "step " << step;
        reused_early += bfc.stats().waiting_bytes < waiting;
        live.emplace_back(*chunk, expected);
        asked_of[chunk->id] = bytes;
        in_use += chunk->bytes, requested += bytes;
        peak = std::max(peak, in_use);
      } else if (!live.empty()) {
        const size_t victim = random() % live.size();
        std::swap(live[victim], live.back());
        const auto [chunk, place] = live.back();
        live.pop_back();
        const int64_t stamp = stamps && random() % 2 == 0 ? step : 0;
        ASSERT_TRUE(bfc.Free(chunk, stamp).ok());
        naive.Free(place, stamp);
        in_use -= chunk.bytes, requested -= asked_of[chunk.id];
        asked_of.erase(chunk.id);
      }
      const BfcStats s = bfc.stats();
      ASSERT_EQ(s.bytes_in_use, in_use);
      ASSERT_EQ(s.requested_bytes, requested);
      ASSERT_EQ(s.peak_bytes_in_use, peak);
      ASSERT_LE(s.pool_bytes, s.limit_bytes);
      ASSERT_EQ(s.chunks_in_use, static_cast<int>(live.size()));
      if (step % 200 == 0) ExpectSameState(bfc, naive);
      if (HasFatalFailure()) return;
    }
    for (const auto& [chunk, place] : live) ASSERT_TRUE(bfc.Free(chunk).ok());
    bfc.SetReached(kStepsEach);
    for (const auto& region : bfc.Snapshot().regions) EXPECT_EQ(region.chunks.size(), 1u);
    const int64_t pool = bfc.stats().pool_bytes;
    EXPECT_EQ(bfc.Close(), pool);
    EXPECT_EQ(source.freed.size(), source.sizes.size());
  }
  // The mix is worth something: all outcomes were frequent.
  EXPECT_GT(placed, kSteps / 5);
  EXPECT_GT(refused, kSteps / 100);
  EXPECT_GT(reused_early, kSteps / 1000);
}

}  // namespace
}  // namespace oncilla
