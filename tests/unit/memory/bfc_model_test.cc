// Bfc against a naive model that implements the same rules by plain search: a million random steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "tests/unit/support/bfc_source.h"
#include "tests/unit/support/sanitized.h"

namespace oncilla {
namespace {

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
    freed_before = std::max<int64_t>(freed_before, 0);  // what does not wait serves always
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

// Every result is compared, and every 200 steps the whole state: order, sizes and merging of
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
  constexpr int kSteps = kSanitized ? 40'000 : 1'000'000;
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
  // All outcomes must have been frequent, or the random steps test too little.
  EXPECT_GT(placed, kSteps / 5);
  EXPECT_GT(refused, kSteps / 100);
  EXPECT_GT(reused_early, kSteps / 1000);
}

}  // namespace
}  // namespace oncilla
