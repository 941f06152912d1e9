// Ledger: sums along the tree of owners, peaks, ended owners that still hold bytes, threads.
#include "engine/memory/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace oncilla {
namespace {

using ::testing::HasSubstr;
constexpr auto kConstants = MemoryCategory::kConstants;
constexpr auto kArena = MemoryCategory::kArena;
constexpr auto kPrograms = MemoryCategory::kPrograms;

TEST(Ledger, SumsGoUpTheTree) {
  Ledger ledger;
  const OwnerId session = ledger.AddOwner(OwnerKind::kSession, "main");
  const OwnerId model = ledger.AddOwner(OwnerKind::kModel, "resnet", session);
  const OwnerId plan = ledger.AddOwner(OwnerKind::kPlan, "b1", model);
  ASSERT_TRUE(ledger.Add("GPU:0", {model, kConstants}, 1000).ok());
  ASSERT_TRUE(ledger.Add("GPU:0", {plan, kArena}, 300).ok());
  ASSERT_TRUE(ledger.Add("CPU:0", {plan, kArena}, 20).ok());

  EXPECT_EQ(ledger.Total(model).bytes, 1000);
  EXPECT_EQ(ledger.Total(model).bytes_with_parts, 1320);
  EXPECT_EQ(ledger.Total(model, "GPU:0").bytes_with_parts, 1300);
  EXPECT_EQ(ledger.Total(session).bytes, 0);
  EXPECT_EQ(ledger.Total(session, "CPU:0").bytes_with_parts, 20);
  EXPECT_EQ(ledger.TotalBytes(), 1320);
  EXPECT_EQ(ledger.TotalBytes("CPU:0"), 20);
  EXPECT_EQ(ledger.TotalBytes("GPU:7"), 0);

  ASSERT_TRUE(ledger.Remove("GPU:0", {plan, kArena}, 300).ok());
  EXPECT_EQ(ledger.Total(model, "GPU:0").bytes_with_parts, 1000);
  EXPECT_EQ(ledger.Total(model, "GPU:0").peak_bytes, 1300);
}

TEST(Ledger, RefusesWhatDoesNotAddUp) {
  Ledger ledger;
  const OwnerId model = ledger.AddOwner(OwnerKind::kModel, "m");
  ASSERT_TRUE(ledger.Add("GPU:0", {model, kConstants}, 10).ok());
  const Status status = ledger.Remove("GPU:0", {model, kConstants}, 11);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("model 'm' gives back 11 bytes of constants on GPU:0"));
  EXPECT_FALSE(ledger.Remove("GPU:1", {model, kConstants}, 1).ok());
  EXPECT_FALSE(ledger.Remove("GPU:0", {model, kArena}, 1).ok());
  EXPECT_FALSE(ledger.Add("GPU:0", {model + 1, kConstants}, 1).ok());
  EXPECT_FALSE(ledger.Add("GPU:0", {model, kConstants}, -1).ok());
  EXPECT_FALSE(ledger.Add("GPU:1", {model, kConstants}, INT64_MAX - 9).ok());
  EXPECT_EQ(ledger.TotalBytes(), 10);
}

TEST(Ledger, AnEndedOwnerStaysWhileItHoldsBytes) {
  Ledger ledger;
  const OwnerId model = ledger.AddOwner(OwnerKind::kModel, "m");
  const OwnerId run = ledger.AddOwner(OwnerKind::kRun, "7", model);
  ASSERT_TRUE(ledger.Add("GPU:0", {run, kArena}, 64).ok());
  EXPECT_EQ(ledger.EndOwner(model), 64);
  EXPECT_EQ(ledger.EndOwner(run), 64);
  EXPECT_EQ(ledger.OwnerName(run), "run '7' (ended)");
  ASSERT_EQ(ledger.Lines().size(), 1u);
  EXPECT_EQ(ledger.Lines()[0].owner_name, "run '7' (ended)");
  ASSERT_TRUE(ledger.Remove("GPU:0", {run, kArena}, 64).ok());
  EXPECT_EQ(ledger.OwnerName(run), "no owner");
  EXPECT_EQ(ledger.OwnerName(model), "no owner");
  EXPECT_EQ(ledger.EndOwner(model), 0);
}

TEST(Ledger, ListsAndReports) {
  Ledger ledger;
  const OwnerId a = ledger.AddOwner(OwnerKind::kModel, "a");
  const OwnerId b = ledger.AddOwner(OwnerKind::kModel, "b");
  ASSERT_TRUE(ledger.Add("GPU:0", {a, kConstants}, 2048).ok());
  ASSERT_TRUE(ledger.Add("GPU:0", {b, kConstants}, 5120).ok());
  ASSERT_TRUE(ledger.Add("GPU:0", {a, kPrograms}, 1024).ok());
  ASSERT_TRUE(ledger.Add("CPU:0", {b, kArena}, 512).ok());
  ASSERT_TRUE(ledger.Remove("GPU:0", {b, kConstants}, 1024).ok());
  const auto top = ledger.TopOwners(1, "GPU:0");
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].owner, b);
  EXPECT_EQ(top[0].bytes, 4096);
  EXPECT_EQ(ledger.TopOwners(9).size(), 2u);
  EXPECT_EQ(ledger.EstimatedBytes("GPU:0"), 1024);
  EXPECT_EQ(ledger.AccountName({b, kArena}), "model 'b' arena");
  EXPECT_EQ(ledger.Report(), R"(CPU:0: 512 B
  512 B model 'b' arena, peak 512 B
GPU:0: 7.00 KiB, 1.00 KiB of it estimated
  4.00 KiB model 'b' constants, peak 5.00 KiB
  2.00 KiB model 'a' constants, peak 2.00 KiB
  1.00 KiB model 'a' programs (estimate), peak 1.00 KiB
)");
  EXPECT_EQ(ledger.Report("TPU:0"), "");
}

TEST(Ledger, EntryFollowsASizeAndLeavesNothing) {
  Ledger ledger;
  const OwnerId session = ledger.AddOwner(OwnerKind::kSession, "s");
  {
    LedgerEntry entry(&ledger, "GPU:0", {session, kPrograms});
    entry.Set(100);
    entry.Set(40);
    EXPECT_EQ(ledger.TotalBytes("GPU:0"), 40);
    LedgerEntry moved = std::move(entry);
    LedgerEntry other(&ledger, "GPU:0", {session, kPrograms});
    other.Set(5);
    EXPECT_EQ(ledger.TotalBytes("GPU:0"), 45);
    other = std::move(moved);
    EXPECT_EQ(ledger.TotalBytes("GPU:0"), 40);
  }
  EXPECT_EQ(ledger.TotalBytes(), 0);
}

TEST(Ledger, ThreadsAddUp) {
  Ledger ledger;
  const OwnerId session = ledger.AddOwner(OwnerKind::kSession, "s");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const OwnerId run = ledger.AddOwner(OwnerKind::kRun, StrCat(t, ".", i), session);
        EXPECT_TRUE(ledger.Add("GPU:0", {run, kArena}, 10).ok());
        EXPECT_GE(ledger.TotalBytes(), 10);
        if (i % 3 != 0) {
          EXPECT_TRUE(ledger.Remove("GPU:0", {run, kArena}, 10).ok());
        }
        ledger.EndOwner(run);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.TotalBytes(), 4 * 100 * 10);
  EXPECT_EQ(ledger.Lines().size(), 400u);
}

TEST(Ledger, TheTimelineKeepsTheLastChanges) {
  Ledger ledger;
  const OwnerId session = ledger.AddOwner(OwnerKind::kSession, "main");
  const OwnerId model = ledger.AddOwner(OwnerKind::kModel, "m", session);
  ASSERT_TRUE(ledger.Add("GPU:0", {model, kConstants}, 1000).ok());
  EXPECT_TRUE(ledger.Timeline().empty());
  ledger.StartTimeline(3);
  EXPECT_TRUE(ledger.Timeline().empty());
  ASSERT_TRUE(ledger.Add("GPU:0", {session, MemoryCategory::kPool}, 500).ok());
  ASSERT_TRUE(ledger.Add("GPU:0", {model, kArena}, 200).ok());
  int64_t dropped = -1;
  std::vector<MemoryEvent> events = ledger.Timeline(&dropped);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(events[1].device, "GPU:0");
  EXPECT_EQ(events[1].in_use_bytes, 1200);
  EXPECT_EQ(events[1].taken_bytes, 1700);
  EXPECT_EQ(events[1].change_bytes, 200);
  EXPECT_EQ(events[1].what, "model 'm' arena");
  EXPECT_LE(events[0].time_ns, events[1].time_ns);
  ASSERT_TRUE(ledger.Remove("GPU:0", {model, kArena}, 200).ok());
  ASSERT_TRUE(ledger.Add("CPU:0", {model, kArena}, 7).ok());
  events = ledger.Timeline(&dropped);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(dropped, 1);
  EXPECT_EQ(events[0].change_bytes, 200);
  EXPECT_EQ(events[1].change_bytes, -200);
  EXPECT_EQ(events[1].in_use_bytes, 1000);
  EXPECT_EQ(events[2].device, "CPU:0");
  EXPECT_EQ(events[2].taken_bytes, 7);
  ledger.StartTimeline(0);
  ASSERT_TRUE(ledger.Add("CPU:0", {model, kArena}, 7).ok());
  EXPECT_TRUE(ledger.Timeline().empty());
}

TEST(Ledger, PeaksAreReset) {
  Ledger ledger;
  const OwnerId model = ledger.AddOwner(OwnerKind::kModel, "m");
  ASSERT_TRUE(ledger.Add("GPU:0", {model, kArena}, 1000).ok());
  ASSERT_TRUE(ledger.Remove("GPU:0", {model, kArena}, 900).ok());
  EXPECT_EQ(ledger.Total(model).peak_bytes, 1000);
  ledger.ResetPeaks();
  EXPECT_EQ(ledger.Total(model).peak_bytes, 100);
  EXPECT_EQ(ledger.Lines()[0].peak_bytes, 100);
}

}  // namespace
}  // namespace oncilla
