// Pools over a device that counts: ownership, limits shared and not, returning memory, failures.
#include "engine/memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "backends/cpu/device.h"
#include "engine/base/thread_pool.h"
#include "engine/compile/constants.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr auto kConstants = MemoryCategory::kConstants;
constexpr auto kArena = MemoryCategory::kArena;

// Regions are numbers; everything but memory is refused.
class CountingDevice : public Device {
 public:
  CountingDevice() {
    info_.name = "counting";
    info_.memory_bytes = 8192 * kMiB;
    info_.max_allocation_bytes = 64 * kMiB;
    info_.alignment_bytes = 512;
  }
  const DeviceInfo& info() const override { return info_; }

  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    if (bytes > info_.max_allocation_bytes) return InvalidArgument("too large a region");
    if (held + bytes > physical) return Exhausted("the driver has no ", bytes, " bytes");
    const int64_t now = held += bytes;
    for (int64_t most = peak; most < now && !peak.compare_exchange_weak(most, now);) {
    }
    return std::unique_ptr<Region>(std::make_unique<Region>(bytes));
  }
  Status ReleaseRegion(std::unique_ptr<Region> region) override {
    if (stuck) return Internal("views are alive");
    held -= region->bytes();
    return Status();
  }

  Status CanRun(const NodeView&) const override { return No(); }
  Result<Packing> PackingFor(const NodeView&, int) const override { return No(); }
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView&, const EarlyEnd&) override {
    return No();
  }
  Result<std::vector<Tensor>> Evaluate(const NodeView&, std::span<const Tensor>) override {
    return No();
  }
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override { return No(); }
  Result<std::unique_ptr<Recording>> Record(std::vector<Step>) override { return No(); }
  Result<EventPtr> Submit(Queue&, const Recording&, std::span<const BufferView>,
                          const SubmitOptions&) override {
    return No();
  }
  Result<EventPtr> Transfer(Queue&, std::span<const Upload>, std::span<const Download>) override {
    return No();
  }
  bool Poll(const EventPtr&) override { return true; }
  Status Wait(const EventPtr&, Deadline) override { return No(); }

  std::atomic<int64_t> held{0}, peak{0};
  int64_t physical = INT64_MAX;
  bool stuck = false;

 private:
  static Status No() { return Unsupported("this device has only memory"); }
  DeviceInfo info_;
};

class PoolTest : public ::testing::Test {
 protected:
  PoolTest() {
    session_ = ledger_.AddOwner(OwnerKind::kSession, "s");
    model_ = ledger_.AddOwner(OwnerKind::kModel, "m", session_);
  }
  PoolOptions Options(int64_t limit) const {
    return {.name = "arenas", .device_name = "GPU:0", .limit_bytes = limit, .owner = session_};
  }

  Ledger ledger_;
  CountingDevice device_;
  OwnerId session_, model_;
};

TEST_F(PoolTest, DefaultLimitLeavesRoomForOthers) {
  DeviceInfo info;
  info.memory_bytes = 8192 * kMiB;
  EXPECT_EQ(DefaultLimitBytes(info), 8192 * kMiB - info.memory_bytes / 100 * 6);
  info.memory_bytes = 2048 * kMiB;
  EXPECT_EQ(DefaultLimitBytes(info), 1748 * kMiB);
  info.memory_bytes = 400 * kMiB;
  EXPECT_EQ(DefaultLimitBytes(info), 200 * kMiB);
  info.memory_bytes = 0;
  EXPECT_EQ(DefaultLimitBytes(info), INT64_MAX);
  EXPECT_EQ(Pool(&device_, &ledger_, {}).budget()->limit_bytes(),
            DefaultLimitBytes(device_.info()));
}

TEST_F(PoolTest, EveryByteOfTheDeviceHasAnOwner) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  EXPECT_EQ(device_.held, 0);
  {
    auto a = pool.Allocate(1000, {model_, kConstants});
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_EQ(a->bytes(), 1000);
    EXPECT_EQ(a->chunk_bytes(), 1024);
    EXPECT_EQ(a->view().offset % 512, 0);
    EXPECT_EQ(a->view().region->bytes(), 2 * kMiB);
    EXPECT_EQ(ledger_.Total(model_, "GPU:0").bytes, 1024);
    EXPECT_EQ(ledger_.TotalBytes("GPU:0"), device_.held);

    const OwnerId run = ledger_.AddOwner(OwnerKind::kRun, "1", model_);
    ASSERT_TRUE(a->Transfer({run, kArena}).ok());
    EXPECT_EQ(ledger_.Total(model_).bytes, 0);
    EXPECT_EQ(ledger_.Total(run).bytes, 1024);
    EXPECT_THAT(pool.Report(), HasSubstr("(1000 asked) by run '1' arena"));
    EXPECT_FALSE(a->Transfer({run + 100, kArena}).ok());
    EXPECT_EQ(a->account().owner, run);
  }
  EXPECT_EQ(pool.stats().bytes_in_use, 0);
  EXPECT_EQ(ledger_.TotalBytes("GPU:0"), 2 * kMiB);  // still held, by the session's pool
  EXPECT_EQ(ledger_.Lines()[0].category, MemoryCategory::kPool);
  EXPECT_EQ(pool.Trim(), 2 * kMiB);
  EXPECT_EQ(device_.held, 0);
  EXPECT_EQ(ledger_.TotalBytes(), 0);
}

TEST_F(PoolTest, UnknownOwnersGetNothing) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  EXPECT_EQ(pool.Allocate(100, {}).status().code(), Code::kInternal);
  EXPECT_EQ(pool.stats().bytes_in_use, 0);
}

// An owner may end before memory held for it is released; the limit must get back exactly what was
// taken.
TEST_F(PoolTest, HeldMemoryLeavesTheLimitAsItWas) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  const MemoryBudget& budget = *pool.budget();
  for (const OwnerId owner : {model_, OwnerId{12345}}) {
    HeldMemory held = pool.Hold({owner, MemoryCategory::kValues});
    const int64_t before = budget.used_bytes();
    EXPECT_TRUE(held.Set(5000).ok());
    EXPECT_TRUE(held.Set(7000).ok());
    EXPECT_EQ(budget.used_bytes(), before + 7000);
    EXPECT_TRUE(held.Set(2000).ok());
    HeldMemory moved = std::move(held);
    EXPECT_EQ(moved.bytes(), 2000);
    held = pool.Hold({owner, MemoryCategory::kValues});
    EXPECT_TRUE(held.Set(100).ok());
    held = std::move(moved);
    EXPECT_EQ(budget.used_bytes(), before + 2000);
    EXPECT_FALSE(held.Set(int64_t{1} << 50).ok());
    EXPECT_EQ(held.bytes(), 2000) << "a refused Set() must not change the count";
    held = HeldMemory();
    EXPECT_EQ(budget.used_bytes(), before);
    EXPECT_EQ(ledger_.Total(owner).bytes, 0);
  }
}

TEST_F(PoolTest, NoBytesNeedNoRegion) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  auto none = pool.Allocate(0, {model_, kArena});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->view().region, nullptr);
  EXPECT_EQ(device_.held, 0);
}

TEST_F(PoolTest, OutOfMemorySaysWhatIsNeededToActOnIt) {
  Pool pool(&device_, &ledger_, Options(10 * kMiB));
  auto a = pool.Allocate(6 * kMiB, {model_, kConstants});
  ASSERT_TRUE(a.ok());
  const Status status = pool.Allocate(5 * kMiB, {session_, kArena}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(Details(status).device, "GPU:0");
  EXPECT_EQ(Message(status),
            "GPU:0, pool 'arenas': out of memory: asked for 5242880 bytes; free in the pool 0, "
            "largest free chunk 0, could still be added 2097152, pool 8388608, limit 10485760, "
            "largest allocation 67108864; the most is held by model 'm' (8.00 MiB)");
  const Status large = pool.Allocate(65 * kMiB, {session_, kArena}).status();
  EXPECT_THAT(Message(large), HasSubstr("asked for 68157440 bytes, but the device's largest "
                                        "allocation is 67108864 bytes (2097152 bytes are free)"));
}

TEST_F(PoolTest, MovingKeepsOneOwnerOfTheChunk) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  Allocation a = *pool.Allocate(1000, {model_, kArena});
  Allocation b = std::move(a);
  EXPECT_EQ(a.bytes(), 0);
  EXPECT_EQ(b.bytes(), 1000);
  EXPECT_EQ(pool.stats().chunks_in_use, 1);
  Allocation c = *pool.Allocate(2000, {model_, kArena});
  c = std::move(b);
  EXPECT_EQ(pool.stats().chunks_in_use, 1);
  EXPECT_EQ(ledger_.Total(model_).bytes, 1024);
  c.Release();
  c.Release();
  EXPECT_EQ(pool.stats().chunks_in_use, 0);
  EXPECT_EQ(ledger_.Total(model_).bytes, 0);
}

TEST_F(PoolTest, CloseGivesBackEverythingAndAllocationsMayOutliveIt) {
  Allocation survivor;
  {
    Pool pool(&device_, &ledger_, Options(100 * kMiB));
    survivor = *pool.Allocate(3 * kMiB, {model_, kArena});
    Allocation other = *pool.Allocate(100, {session_, kArena});
    EXPECT_EQ(pool.Close(), 8 * kMiB);
    EXPECT_EQ(pool.Close(), 0);
    EXPECT_EQ(device_.held, 0);
    EXPECT_EQ(ledger_.TotalBytes(), 0);
    const Status status = pool.Allocate(1, {model_, kArena}).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_EQ(Message(status), "pool 'arenas' of GPU:0 is closed");
  }
  EXPECT_EQ(survivor.bytes(), 3 * kMiB);
  survivor.Release();
  EXPECT_EQ(ledger_.TotalBytes(), 0);
}

TEST_F(PoolTest, LimitsChangeWhileInUse) {
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  Allocation a = *pool.Allocate(2 * kMiB, {model_, kArena});
  pool.Allocate(4 * kMiB, {model_, kArena}).value().Release();
  pool.SetLimit(4 * kMiB);
  EXPECT_EQ(device_.held, 2 * kMiB);
  EXPECT_FALSE(pool.Allocate(4 * kMiB, {model_, kArena}).ok());
  pool.SetLimit(200 * kMiB);  // the budget of its own still says 100
  EXPECT_EQ(pool.stats().limit_bytes, 100 * kMiB);
  pool.budget()->SetLimit(200 * kMiB);
  EXPECT_TRUE(pool.Allocate(4 * kMiB, {model_, kArena}).ok());
  EXPECT_EQ(pool.stats().limit_bytes, 200 * kMiB);
}

TEST_F(PoolTest, ConstantsAreReservedInAsFewRegionsAsTheDeviceAllows) {
  const auto wanted_of = [](std::span<const Tensor> tensors) {
    std::vector<ConstantStore::Wanted> wanted;
    for (const Tensor& t : tensors) wanted.push_back({0, t, {.bytes = 30 * kMiB + 1, .write = {}}});
    return wanted;
  };
  const int64_t chunk = 30 * kMiB + 512;
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < 3; ++i) tensors.push_back(Tensor::Int64s(std::vector<int64_t>{i}));
  tensors.push_back(tensors[0]);  // the same bytes: one copy serves both
  const std::vector<ConstantStore::Wanted> wanted = wanted_of(tensors);
  Device* const devices[] = {&device_};
  PoolOptions options = Options(200 * kMiB);
  options.exact = true;
  {
    Pool pool(&device_, &ledger_, options);
    ConstantStore store(devices, {&pool}, model_);
    ASSERT_TRUE(store.Reserve(wanted).ok()) << store.Reserve(wanted);
    EXPECT_EQ(pool.stats().regions, 2);  // two and one: the largest allocation is 64 MiB
    EXPECT_EQ(pool.stats().pool_bytes, 3 * chunk);
    EXPECT_EQ(pool.stats().bytes_in_use, 0);
    ASSERT_TRUE(store.Reserve(wanted).ok());  // it is there
    EXPECT_EQ(pool.stats().pool_bytes, 3 * chunk);
  }
  {
    options.limit_bytes = 3 * chunk - 1;
    Pool pool(&device_, &ledger_, options);
    ConstantStore store(devices, {&pool}, model_);
    EXPECT_THAT(Message(store.Reserve(wanted)),
                HasSubstr("the constants take 90.00 MiB of a limit of 90.00 MiB"));
    EXPECT_EQ(pool.stats().bytes_in_use, 0);
  }
  options.limit_bytes = 200 * kMiB;
  device_.physical = 40 * kMiB;  // the limit has room, the driver has not: pieces may still fit
  Pool pool(&device_, &ledger_, options);
  ConstantStore store(devices, {&pool}, model_);
  EXPECT_TRUE(store.Reserve(wanted).ok());
}

TEST_F(PoolTest, PoolsShareABudgetAndHelpEachOtherOut) {
  auto budget = std::make_shared<MemoryBudget>(16 * kMiB);
  PoolOptions options{
      .name = "arenas", .device_name = "GPU:0", .budget = budget, .owner = session_};
  Pool arenas(&device_, &ledger_, options);
  options.name = "constants of 'm'";
  options.exact = true;
  Pool constants(&device_, &ledger_, options);

  Allocation a = *arenas.Allocate(8 * kMiB, {model_, kArena});
  Allocation c = *constants.Allocate(6 * kMiB, {model_, kConstants});
  EXPECT_EQ(device_.held, 14 * kMiB);
  EXPECT_EQ(budget->used_bytes(), 14 * kMiB);
  const Status status = constants.Allocate(4 * kMiB, {model_, kConstants}).status();
  EXPECT_THAT(Message(status), HasSubstr("with other pools 14680064 of 16777216 bytes are taken"));
  EXPECT_EQ(device_.held, 14 * kMiB);

  a.Release();
  EXPECT_EQ(device_.held, 14 * kMiB);
  Allocation d = *constants.Allocate(4 * kMiB, {model_, kConstants});  // the arena's region goes
  EXPECT_EQ(device_.held, 10 * kMiB);

  // Unloading returns whole regions, at once.
  c.Release(), d.Release();
  EXPECT_EQ(constants.Close(), 10 * kMiB);
  EXPECT_EQ(device_.held, 0);
  EXPECT_EQ(budget->used_bytes(), 0);
  EXPECT_EQ(budget->peak_bytes(), 14 * kMiB);
  EXPECT_TRUE(arenas.Allocate(16 * kMiB, {model_, kArena}).ok());
}

TEST_F(PoolTest, PreallocationTakesTheLimitAtOnce) {
  PoolOptions options = Options(150 * kMiB);
  options.growth = false;
  Pool pool(&device_, &ledger_, options);
  EXPECT_EQ(device_.held, 0);
  Allocation a = *pool.Allocate(1, {model_, kArena});
  EXPECT_EQ(device_.held, 150 * kMiB);  // 64 + 64 + 22
  EXPECT_EQ(pool.stats().regions, 3);
}

TEST_F(PoolTest, ADriverThatRefusesIsAskedForLess) {
  device_.physical = 3 * kMiB;
  Pool pool(&device_, &ledger_, Options(100 * kMiB));
  Allocation a = *pool.Allocate(2 * kMiB, {model_, kArena});
  auto b = pool.Allocate(kMiB / 2, {model_, kArena});  // a step of 4 MiB, backed off to under 1
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_LE(device_.held, device_.physical);
  const Status status = pool.Allocate(2 * kMiB, {model_, kArena}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("refused: the driver has no"));
  EXPECT_EQ(pool.budget()->used_bytes(), device_.held);
}

TEST_F(PoolTest, ARegionThatTheDeviceKeepsIsNotCountedAsReturned) {
  Pool pool(&device_, &ledger_, Options(8 * kMiB));
  pool.Allocate(2 * kMiB, {model_, kArena}).value().Release();
  device_.stuck = true;
  EXPECT_EQ(pool.Trim(), 0);
  EXPECT_EQ(pool.abandoned_bytes(), 2 * kMiB);
  EXPECT_EQ(pool.budget()->available_bytes(), 6 * kMiB);
  device_.stuck = false;
  EXPECT_EQ(pool.Close(), 0);
}

// Two sessions on one device, each with a limit of its own: the device's total limits both.
TEST_F(PoolTest, SessionsShareADevicesTotal) {
  auto total = std::make_shared<MemoryBudget>(20 * kMiB);
  auto here = std::make_shared<MemoryBudget>(16 * kMiB, total);
  auto there = std::make_shared<MemoryBudget>(16 * kMiB, total);
  PoolOptions options{.device_name = "GPU:0", .exact = true, .owner = session_};
  options.budget = here;
  Pool first(&device_, &ledger_, options);
  options.budget = there;
  auto second = std::make_unique<Pool>(&device_, &ledger_, options);

  Allocation a = *first.Allocate(12 * kMiB, {model_, kArena});
  EXPECT_EQ(total->used_bytes(), 12 * kMiB);
  EXPECT_EQ(there->available_bytes(), 8 * kMiB);
  const Status status = second->Allocate(10 * kMiB, {model_, kArena}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("other sessions"));
  EXPECT_EQ(there->used_bytes(), 0);

  // Memory that the first session does not use at the moment is available to the second.
  a.Release();
  EXPECT_EQ(device_.held, 12 * kMiB);
  Allocation b = *second->Allocate(10 * kMiB, {model_, kArena});
  EXPECT_EQ(device_.held, 10 * kMiB);
  EXPECT_EQ(here->used_bytes(), 0);
  EXPECT_EQ(total->used_bytes(), 10 * kMiB);
  EXPECT_EQ(total->peak_bytes(), 12 * kMiB);
  EXPECT_EQ(second->Allocate(7 * kMiB, {model_, kArena}).status().code(),
            Code::kResourceExhausted);  // its own limit still holds
  b.Release();
  second.reset();
  there.reset();
  options = PoolOptions();
  EXPECT_TRUE(first.Allocate(16 * kMiB, {model_, kArena}).ok());
}

// Every pool is short at times and asks all others to free memory, from all threads at once.
TEST_F(PoolTest, SessionsOfOneDeviceNeverDeadlock) {
  constexpr int64_t kTotal = 24 * kMiB;
  auto total = std::make_shared<MemoryBudget>(kTotal);
  std::atomic<int64_t> got = 0, refused = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int life = 0; life < 8; ++life) {  // sessions come and go
        auto budget = std::make_shared<MemoryBudget>(20 * kMiB, total);
        PoolOptions options{.device_name = "GPU:0", .budget = budget, .owner = session_};
        options.exact = random() % 2 == 0;
        Pool arenas(&device_, &ledger_, options), constants(&device_, &ledger_, options);
        std::vector<Allocation> live;
        for (int step = 0; step < 100; ++step) {
          Pool& pool = random() % 2 == 0 ? arenas : constants;
          if (random() % 5 < 3) {
            auto a =
                pool.Allocate(1 + static_cast<int64_t>(random() % (4 * kMiB)), {model_, kArena});
            (a.ok() ? got : refused)++;
            if (a.ok()) live.push_back(std::move(*a));
          } else if (!live.empty()) {
            live.erase(live.begin() + static_cast<int64_t>(random() % live.size()));
          }
          EXPECT_LE(total->used_bytes(), kTotal);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(got, 100);
  EXPECT_GT(refused, 10);
  EXPECT_LE(device_.peak, kTotal);
  EXPECT_EQ(device_.held, 0);
  EXPECT_EQ(total->used_bytes(), 0);
}

TEST_F(PoolTest, CommittedMemoryIsKeptFromOthersAndReservesFromTrimToo) {
  auto budget = std::make_shared<MemoryBudget>(150 * kMiB);
  PoolOptions options{.name = "arenas",
                      .device_name = "GPU:0",
                      .budget = budget,
                      .exact = true,
                      .reserve_bytes = 50 * kMiB,
                      .owner = session_};
  Pool pool(&device_, &ledger_, options);
  options.name = "others";
  options.reserve_bytes = 0;
  Pool others(&device_, &ledger_, options);
  EXPECT_EQ(*pool.Commit(100 * kMiB), 100 * kMiB);
  EXPECT_EQ(device_.held, 100 * kMiB);  // 64 + 36: the largest allocation is 64
  EXPECT_EQ(pool.stats().regions, 2);
  EXPECT_EQ(ledger_.TotalBytes(), 100 * kMiB);
  EXPECT_FALSE(others.Allocate(60 * kMiB, {model_, kArena}).ok());
  EXPECT_EQ(device_.held, 100 * kMiB);
  {
    Allocation a = *pool.Allocate(30 * kMiB, {model_, kArena});  // no driver call
    EXPECT_EQ(device_.held, 100 * kMiB);
  }
  EXPECT_EQ(pool.Trim(), 36 * kMiB);  // the rest is the reserve
  EXPECT_EQ(pool.Trim(), 0);
  EXPECT_EQ(device_.held, 64 * kMiB);
  EXPECT_TRUE(others.Allocate(60 * kMiB, {model_, kArena}).ok());
  const Status status = pool.Commit(200 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("209715200 bytes were to be taken beforehand"));
}

TEST_F(PoolTest, SharedFacesUseTheSameRegionsAndCloseNothing) {
  Pool pool(&device_, &ledger_, Options(64 * kMiB));
  ASSERT_TRUE(pool.Commit(16 * kMiB).ok());
  Allocation a;
  {
    const std::unique_ptr<Pool> face = pool.Share();
    a = *face->Allocate(8 * kMiB, {model_, kConstants});
    EXPECT_EQ(face->Close(), 0);
  }
  EXPECT_EQ(device_.held, 16 * kMiB);
  EXPECT_EQ(pool.stats().bytes_in_use, a.chunk_bytes());
  a.Release();
  EXPECT_EQ(pool.stats().bytes_in_use, 0);
  EXPECT_EQ(pool.Close(), 16 * kMiB);
}

TEST_F(PoolTest, MemoryTheDeviceStillUsesWaitsForItsStamp) {
  Pool pool(&device_, &ledger_, Options(2 * kMiB));
  Allocation a = *pool.Allocate(2 * kMiB, {model_, kArena});
  a.Release(5);
  EXPECT_EQ(ledger_.Total(model_).bytes, 0);
  EXPECT_FALSE(pool.Allocate(kMiB, {model_, kArena}).ok());
  EXPECT_EQ(pool.Trim(), 0);
  pool.SetReached(5);
  EXPECT_TRUE(pool.Allocate(kMiB, {model_, kArena}).ok());
}

TEST_F(PoolTest, AShortageIsReportedWholeOnce) {
  std::vector<PoolShortage> seen;
  PoolOptions options = Options(10 * kMiB);
  options.on_shortage = [&](const PoolShortage& shortage) { seen.push_back(shortage); };
  Pool pool(&device_, &ledger_, options);
  Allocation a = *pool.Allocate(6 * kMiB, {model_, kConstants});
  EXPECT_TRUE(seen.empty());
  EXPECT_FALSE(pool.Allocate(5 * kMiB, {session_, kArena}).ok());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].asked_bytes, 5 * kMiB);
  EXPECT_EQ(seen[0].asked_by, "session 's' arena");
  EXPECT_THAT(seen[0].text, HasSubstr("asked: 5242880 (5.00 MiB) by session 's' arena"));
  EXPECT_THAT(seen[0].text, HasSubstr("by model 'm' constants"));
  EXPECT_THAT(seen[0].json, HasSubstr(R"("asked_bytes":5242880,"asked_by":"session 's' arena")"));
  EXPECT_THAT(seen[0].json, HasSubstr(R"("owner":"model 'm' constants")"));
}

TEST_F(PoolTest, ThreadsAndPoolsTogether) {
  auto budget = std::make_shared<MemoryBudget>(24 * kMiB);
  PoolOptions options{.device_name = "GPU:0", .budget = budget, .owner = session_};
  Pool first(&device_, &ledger_, options), second(&device_, &ledger_, options);
  std::atomic<int64_t> got = 0, refused = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Allocation> live;
      for (int step = 0; step < 400; ++step) {
        Pool& pool = random() % 2 == 0 ? first : second;
        if (random() % 5 < 3) {
          auto a = pool.Allocate(1 + static_cast<int64_t>(random() % (2 * kMiB)), {model_, kArena});
          if (a.ok()) {
            live.push_back(std::move(*a));
          } else {
            EXPECT_EQ(a.status().code(), Code::kResourceExhausted);
          }
          (a.ok() ? got : refused)++;
        } else if (!live.empty()) {
          live.erase(live.begin() + static_cast<int64_t>(random() % live.size()));
        }
        if (random() % 50 == 0) pool.Trim();
        EXPECT_LE(budget->used_bytes(), 24 * kMiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(got, 100);
  EXPECT_EQ(first.stats().bytes_in_use + second.stats().bytes_in_use, 0);
  EXPECT_EQ(ledger_.TotalBytes(), device_.held);
  EXPECT_EQ(budget->used_bytes(), device_.held);
  first.Close();
  second.Close();
  EXPECT_EQ(device_.held, 0);
  EXPECT_EQ(ledger_.TotalBytes(), 0);
}

TEST(Pool, OnTheCpuTheBytesAreReal) {
  std::vector<std::string> notes;
  const std::vector<DeviceInfo> found = cpu::kBackend.discover({}, notes);
  ASSERT_EQ(found.size(), 1u);
  ThreadPool threads(1);
  OpenOptions open;
  open.threads = &threads;
  auto device = cpu::kBackend.open(found[0], open);
  ASSERT_TRUE(device.ok()) << device.status();
  Ledger ledger;
  const OwnerId session = ledger.AddOwner(OwnerKind::kSession, "s");
  Pool pool(device->get(), &ledger, {.name = "arenas", .device_name = "CPU:0", .owner = session});
  Allocation a = *pool.Allocate(100'000, {session, kArena});
  Allocation b = *pool.Allocate(100'000, {session, kArena});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.view().host()) % 256, 0u);
  std::memset(a.view().host(), 1, 100'000);
  std::memset(b.view().host(), 2, 100'000);
  EXPECT_EQ(static_cast<int>(a.view().host()[99'999]), 1);
  a.Release(), b.Release();
  EXPECT_EQ(pool.Close(), 2 * kMiB);
}

}  // namespace
}  // namespace oncilla
