// The device on real drivers: recipes run, views, staging, the error word, memory, deadlines, and
// no leaked objects.
#include "backends/opencl/device.h"

#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

constexpr Source kTest{"test/kernels.cl", R"(
__kernel void scale(__global const float* restrict x, __global float* restrict y, const float f,
                    const int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] = f * x[i];
}
__kernel void shifted(__global const float* restrict x, const long at,
                      __global float* restrict y, const int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] = x[at + i];
}
__kernel void wide(__global long* restrict y, const long a, const ulong b, const uint c) {
  y[0] = a;
  y[1] = (long)b;
  y[2] = (long)c;
}
__kernel void reverse(__global const float* restrict x, __global float* restrict y,
                      __local float* tmp) {
  const int i = get_local_id(0), n = get_local_size(0);
  tmp[i] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[i] = tmp[n - 1 - i];
}
__kernel void pick(__global const float* restrict x, __global const int* restrict index,
                   __global float* restrict y, const int n, __global volatile int* run_error,
                   const int run_step) {
  int i = index[0];
  if (i < 0 || i >= n) {
    atomic_cmpxchg(run_error, 0, (run_step << 8) | 1);
    i = 0;
  }
  y[0] = n > 0 ? x[i] : 0.0f;
}
__kernel void slow(__global float* restrict y, const int n) {
  float s = y[0];
  for (int i = 0; i < n; ++i) s = s * 1.0001f + y[i & 3];
  y[0] = s;
}
)"};

// In a program of its own, since some compilers refuse the whole program.
constexpr Source kGreedy{"test/greedy.cl", R"(
__kernel void greedy(__global float* restrict y) {
  __local float tmp[4 << 20];
  tmp[get_local_id(0)] = y[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[0] = tmp[0];
}
)"};

// The parameters of each kernel.
std::vector<std::string> NamesOf(const std::string& entry) {
  if (entry == "scale") return {"x", "y", "f", "n"};
  if (entry == "shifted") return {"x", "at", "y", "n"};
  if (entry == "wide") return {"y", "a", "b", "c"};
  if (entry == "reverse") return {"x", "y", "tmp"};
  if (entry == "pick") return {"x", "index", "y", "n", "run_error"};
  return {"y", "n"};
}

Dispatch Launch(std::string entry, std::vector<Arg> args, int64_t global = 1, int64_t local = 1) {
  std::vector<std::string> names = NamesOf(entry);
  names.resize(args.size());
  return {.source = &kTest,
          .entry = std::move(entry),
          .args = std::move(args),
          .names = std::move(names),
          .global = {global, 1, 1},
          .local = {local, 1, 1}};
}

DeviceInfo InfoOf(const FoundDevice& found) {
  DeviceInfo info;
  info.backend = "opencl";
  info.name = found.facts.name;
  info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
  return info;
}

// A device with one region and a queue; with sub-buffers, and with places instead.
class OpenClDevice : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    before_ = CountLiveObjects();
    ClDeviceOptions options;
    options.sub_buffers = GetParam();
    auto opened = ClDevice::Open(*TheTestDevice().found, InfoOf(*TheTestDevice().found), options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
    align_ = device_->info().alignment_bytes;
    region_ = *device_->AllocateRegion(64 * align_);
    queue_ = *device_->OpenQueue();
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    queue_.reset();
    EXPECT_TRUE(device_->ReleaseRegion(std::move(region_)).ok());
    device_.reset();
    EXPECT_EQ(CountLiveObjects().total(), before_.total()) << "OpenCL objects are left";
    EXPECT_EQ(CountLiveObjects().abandoned, before_.abandoned);
  }

  BufferView Slot(int64_t offset, int64_t bytes) { return {region_.get(), offset, bytes}; }
  template <class T>
  void Put(int64_t offset, const std::vector<T>& data) {
    const Upload upload{Slot(offset, static_cast<int64_t>(data.size() * sizeof(T))),
                        std::as_bytes(std::span<const T>(data))};
    auto event = device_->Transfer(*queue_, {&upload, 1}, {});
    ASSERT_TRUE(event.ok()) << event.status();
    ASSERT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  }
  template <class T>
  std::vector<T> Get(int64_t offset, size_t count) {
    std::vector<T> data(count);
    const Download download{std::as_writable_bytes(std::span<T>(data)),
                            Slot(offset, static_cast<int64_t>(count * sizeof(T)))};
    auto event = device_->Transfer(*queue_, {}, {&download, 1});
    EXPECT_TRUE(event.ok()) << event.status();
    if (event.ok()) {
      EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
    }
    return data;
  }
  std::unique_ptr<ClKernel> Kernel(Dispatch dispatch, int inputs, int outputs,
                                   int64_t scratch = 0) {
    Recipe recipe;
    recipe.dispatches.push_back(std::move(dispatch));
    recipe.scratch_bytes = scratch;
    auto kernel = device_->PrepareRecipe("Test", recipe, inputs, outputs);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel.ok() ? *std::move(kernel) : nullptr;
  }
  Status Run(std::vector<Step> steps, std::vector<BufferView> externals = {}) {
    auto recording = device_->Record(std::move(steps));
    if (!recording.ok()) return recording.status();
    auto event = device_->Submit(*queue_, **recording, externals, {});
    if (!event.ok()) return event.status();
    return device_->Wait(*event, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }

  LiveObjects before_;
  int64_t align_ = 0;
  std::unique_ptr<ClDevice> device_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<Queue> queue_;
};

TEST_P(OpenClDevice, RunsAChainInOrderAtAnyAlignedPlace) {
  auto twice = Kernel(Launch("scale", {In{0}, Out{0}, 2.0f, int32_t{5}}, 8, 4), 1, 1);
  auto thrice = Kernel(Launch("scale", {In{0}, Out{0}, 3.0f, int32_t{5}}, 8, 4), 1, 1);
  const BufferView a = Slot(align_, 20), b = Slot(3 * align_, 20), c = Slot(7 * align_, 20);
  Put<float>(0, std::vector<float>(static_cast<size_t>(16 * align_) / 4, -1.0f));
  Put<float>(a.offset, {1, 2, 3, 4, 5});
  EXPECT_TRUE(
      Run({{twice.get(), {{a}}, {{b}}, {}, "x"}, {thrice.get(), {{b}}, {{c}}, {}, "y"}}).ok());
  EXPECT_EQ(Get<float>(c.offset, 6), (std::vector<float>{6, 12, 18, 24, 30, -1}));
  EXPECT_EQ(Get<float>(b.offset, 6), (std::vector<float>{2, 4, 6, 8, 10, -1}));
  EXPECT_EQ(Get<float>(b.offset - 4, 1), std::vector<float>{-1});
}

TEST_P(OpenClDevice, PassesEveryKindOfScalar) {
  auto kernel = Kernel(Launch("wide", {Out{0}, int64_t{-1} << 40, uint64_t{1} << 63, ~0u}), 0, 1);
  EXPECT_TRUE(Run({{kernel.get(), {}, {{Slot(0, 24)}}, {}, "w"}}).ok());
  EXPECT_EQ(
      Get<int64_t>(0, 3),
      (std::vector<int64_t>{int64_t{-1} << 40, std::numeric_limits<int64_t>::min(), 0xffffffffll}));
}

TEST_P(OpenClDevice, GivesScratchAndLocalMemory) {
  if (!device_->capabilities().local_groups) GTEST_SKIP() << "groups of one only";
  Recipe recipe;
  const Scratch tmp = recipe.AddScratch(16, device_->capabilities());
  const Scratch other = recipe.AddScratch(16, device_->capabilities());
  EXPECT_EQ(other.offset % align_, 0);
  recipe.dispatches = {Launch("reverse", {In{0}, other, Local{16}}, 4, 4),
                       Launch("scale", {other, tmp, 10.0f, int32_t{4}}, 4, 1),
                       Launch("scale", {tmp, Out{0}, 1.0f, int32_t{3}}, 4, 1)};
  auto kernel = device_->PrepareRecipe("Test", recipe, 1, 1);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->scratch_bytes(), 2 * align_);
  Put<float>(0, {1, 2, 3, 4});
  Put<float>(align_, {9, 9, 9, 9});
  EXPECT_TRUE(Run({{kernel->get(),
                    {{Slot(0, 16)}},
                    {{Slot(align_, 12)}},
                    Slot(4 * align_, 2 * align_),
                    "s"}})
                  .ok());
  EXPECT_EQ(Get<float>(align_, 4), (std::vector<float>{40, 30, 20, 9}));
  const Status short_of =
      Run({{kernel->get(), {{Slot(0, 16)}}, {{Slot(align_, 12)}}, Slot(4 * align_, align_), "s"}});
  EXPECT_THAT(Message(short_of), HasSubstr("node 's' (Test): it needs"));
}

TEST_P(OpenClDevice, UnalignedViewsGoByOffsetOrByCopy) {
  auto by_offset =
      Kernel(Launch("shifted", {In{0}, Offset{false, 0, 4}, Out{0}, int32_t{3}}, 4, 1), 1, 1);
  auto by_copy = Kernel(Launch("scale", {In{0}, Out{0}, 1.0f, int32_t{3}}, 4, 1), 1, 1);
  for (const ClKernel* kernel : {by_offset.get(), by_copy.get()}) {
    Put<float>(0, std::vector<float>(static_cast<size_t>(8 * align_) / 4, -1.0f));
    Put<float>(align_ + 12, {5, 6, 7});
    // The output is unaligned too, and always by copy: what surrounds it must stay.
    const BufferView in = Slot(align_ + 12, 12), out = Slot(3 * align_ + 4, 16);
    EXPECT_TRUE(Run({{kernel, {{in}}, {{out}}, {}, "v"}}).ok());
    EXPECT_EQ(Get<float>(3 * align_, 6), (std::vector<float>{-1, 5, 6, 7, -1, -1}));
    // The same through external slots.
    Put<float>(3 * align_, {0, 0, 0, 0, 0, 0});
    EXPECT_TRUE(Run({{kernel, {{{}, 1}}, {{{}, 0}}, {}, "v"}}, {out, in}).ok());
    EXPECT_EQ(Get<float>(3 * align_, 6), (std::vector<float>{0, 5, 6, 7, 0, 0}));
  }
}

TEST_P(OpenClDevice, ExternalSlotsChangeFromRunToRun) {
  auto kernel = Kernel(Launch("scale", {In{0}, Out{0}, 2.0f, int32_t{1}}), 1, 1);
  auto recording = device_->Record({{kernel.get(), {{{}, 0}}, {{Slot(0, 4)}}, {}, "e"}});
  ASSERT_TRUE(recording.ok()) << recording.status();
  Put<float>(align_, {4});
  Put<float>(2 * align_, {5});
  for (int i = 1; i <= 2; ++i) {
    const BufferView in = Slot(i * align_, 4);
    auto event = device_->Submit(*queue_, **recording, {&in, 1}, {});
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
    EXPECT_EQ(Get<float>(0, 1)[0], i == 1 ? 8 : 10);
  }
  EXPECT_FALSE(device_->Submit(*queue_, **recording, {}, {}).ok());
}

TEST_P(OpenClDevice, BadDataNamesItsNodeAndTheQueueGoesOn) {
  auto kernel = Kernel(Launch("pick", {In{0}, In{1}, Out{0}, int32_t{3}, ErrorWord{}}), 2, 1);
  Put<float>(0, {1, 2, 3});
  Put<int32_t>(align_, {1});
  Put<int32_t>(2 * align_, {7});
  auto step = [&](int64_t index_at, std::string name) {
    return Step{kernel.get(),
                {{Slot(0, 12)}, {Slot(index_at, 4)}},
                {{Slot(3 * align_, 4)}},
                {},
                std::move(name)};
  };
  const Status status = Run({step(align_, "good"), step(2 * align_, "bad")});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Message(status), "node 'bad' (Test): an index is out of range");
  EXPECT_EQ(Details(status).node, "bad");
  EXPECT_EQ(Details(status).stage, Stage::kRun);
  // The same recording works again once the data is good.
  Put<int32_t>(2 * align_, {2});
  EXPECT_TRUE(Run({step(align_, "good"), step(2 * align_, "bad")}).ok());
  EXPECT_EQ(Get<float>(3 * align_, 1)[0], 3);
}

TEST_P(OpenClDevice, WaitingForTheDownloadTellsOfTheKernelsBeforeIt) {
  auto kernel = Kernel(Launch("pick", {In{0}, In{1}, Out{0}, int32_t{3}, ErrorWord{}}), 2, 1);
  auto recording = device_->Record(
      {{kernel.get(), {{Slot(0, 12)}, {Slot(align_, 4)}}, {{Slot(2 * align_, 4)}}, {}, "pick"}});
  ASSERT_TRUE(recording.ok());
  std::vector<float> result(1);
  const Download download{std::as_writable_bytes(std::span(result)), Slot(2 * align_, 4)};
  // One flush and one wait for a run, and its failure must not be reported for the next one.
  for (const int32_t index : {9, 1, -1, 2}) {
    const std::vector<int32_t> indices = {index};
    const Upload upload{Slot(align_, 4), std::as_bytes(std::span(indices))};
    const DeviceCounters before = device_->counters();
    ASSERT_TRUE(device_->Transfer(*queue_, {&upload, 1}, {}).ok());
    auto submitted = device_->Submit(*queue_, **recording, {}, {});
    ASSERT_TRUE(submitted.ok());
    if (index == -1) {  // also when it has long failed by the time of the next call
      while (!device_->Poll(*submitted)) std::this_thread::yield();
    }
    auto event = device_->Transfer(*queue_, {}, {&download, 1});
    ASSERT_TRUE(event.ok());
    const Status status = device_->Wait(*event, kNoDeadline);
    EXPECT_EQ(Message(status),
              index < 0 || index > 2 ? "node 'pick' (Test): an index is out of range" : "");
    const DeviceCounters after = device_->counters();
    EXPECT_EQ(after.waits - before.waits, 1);
    EXPECT_EQ(after.flushes - before.flushes, index == -1 ? 2 : 1);
    EXPECT_EQ(Message(device_->Wait(*submitted, kNoDeadline)), Message(status));
  }
}

TEST_P(OpenClDevice, AbsentAndEmptyOperandsAreHarmless) {
  auto kernel = Kernel(Launch("pick", {In{0}, In{1}, Out{0}, int32_t{0}, ErrorWord{}}), 2, 1);
  Put<int32_t>(align_, {5});
  const Status status =
      Run({{kernel.get(), {{BufferView{}}, {Slot(align_, 4)}}, {{Slot(0, 4)}}, {}, "absent"}});
  EXPECT_EQ(Message(status), "node 'absent' (Test): an index is out of range");
  auto nothing = Kernel(Launch("scale", {In{0}, Out{0}, 1.0f, int32_t{0}}, 0, 1), 1, 1);
  EXPECT_TRUE(Run({{nothing.get(), {{Slot(0, 0)}}, {{Slot(0, 0)}}, {}, "empty"}}).ok());
  EXPECT_TRUE(Run({}).ok());
}

TEST_P(OpenClDevice, RefusesWhatDriversAbortOn) {
  const int64_t most = device_->capabilities().max_work_group;
  auto prepare = [&](Dispatch d) {
    Recipe recipe;
    recipe.dispatches.push_back(std::move(d));
    return Message(device_->PrepareRecipe("Test", recipe, 1, 1).status());
  };
  const int64_t local = device_->capabilities().local_memory;
  EXPECT_THAT(prepare(Launch("reverse", {In{0}, Out{0}, Local{local + 1}})),
              HasSubstr("bytes of local memory, the device has"));
  EXPECT_THAT(prepare(Launch("reverse", {In{0}, Out{0}, Local{16}}, 2 * most, 2 * most)),
              HasSubstr("it needs groups of"));
  EXPECT_THAT(prepare(Launch("reverse", {In{0}, Out{0}, Local{16}}, 7, 2)),
              HasSubstr("not a multiple of local size"));
  EXPECT_THAT(prepare(Launch("scale", {In{1}, Out{0}})), HasSubstr("there is no input 1"));
  // What only the compiled program tells: a kernel's own arrays, which kernels there are.
  Dispatch greedy = Launch("greedy", {Out{0}});
  greedy.source = &kGreedy;
  EXPECT_THAT(prepare(std::move(greedy)),
              ::testing::AnyOf(HasSubstr("local memory"), HasSubstr("shared data")));
  EXPECT_THAT(prepare(Launch("unknown", {Out{0}})),
              ::testing::AnyOf(HasSubstr("clCreateKernel(unknown)"),
                               HasSubstr("kernel unknown is not defined")));
  auto short_of = Kernel(Launch("scale", {In{0}, Out{0}}), 1, 1);
  EXPECT_FALSE(Run({{short_of.get(), {{Slot(0, 4)}}, {{Slot(0, 4)}}, {}, "a"}}).ok());
  EXPECT_FALSE(
      Run({{short_of.get(), {{Slot(60 * align_, 5 * align_)}}, {{Slot(0, 4)}}, {}, "o"}}).ok());
}

TEST_P(OpenClDevice, ADeadlineLeavesTheWorkRunning) {
  constexpr int kTrips = 60000;
  Recipe recipe;
  for (int i = 0; i < 400; ++i) {
    recipe.dispatches.push_back(Launch("slow", {Out{0}, int32_t{kTrips}}));
  }
  auto kernel = device_->PrepareRecipe("Test", recipe, 0, 1);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto recording = device_->Record({{kernel->get(), {}, {{Slot(0, 16)}}, {}, "slow"}});
  ASSERT_TRUE(recording.ok()) << recording.status();
  Put<float>(0, {0, 0, 0, 0});
  auto event = device_->Submit(*queue_, **recording, {}, {});
  ASSERT_TRUE(event.ok());
  const Status late = device_->Wait(*event, std::chrono::steady_clock::now());
  if (TheTestDevice().found->facts.platform != "Oclgrind") {  // which works while submitting
    EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  }
  EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  EXPECT_TRUE(device_->Poll(*event));
  EXPECT_TRUE(device_->Wait(*event, std::chrono::steady_clock::now()).ok());
}

TEST_P(OpenClDevice, AnEventMayBeDroppedOrOutliveItsQueue) {
  auto kernel = Kernel(Launch("pick", {In{0}, In{1}, Out{0}, int32_t{3}, ErrorWord{}}), 2, 1);
  auto recording = device_->Record(
      {{kernel.get(), {{Slot(0, 12)}, {Slot(align_, 4)}}, {{Slot(2 * align_, 4)}}, {}, "p"}});
  ASSERT_TRUE(recording.ok());
  Put<int32_t>(align_, {-1});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(device_->Submit(*queue_, **recording, {}, {}).ok());  // dropped at once
  }
  auto event = device_->Submit(*queue_, **recording, {}, {});
  ASSERT_TRUE(event.ok());
  queue_.reset();
  EXPECT_EQ(Message(device_->Wait(*event, kNoDeadline)),
            "node 'p' (Test): an index is out of range");
}

TEST_P(OpenClDevice, ProfilesEachStepWhereTheDriverTells) {
  auto kernel = Kernel(Launch("slow", {Out{0}, int32_t{60000}}), 0, 1);
  auto recording = device_->Record({{kernel.get(), {}, {{Slot(0, 16)}}, {}, "a"},
                                    {kernel.get(), {}, {{Slot(align_, 16)}}, {}, "b"}});
  ASSERT_TRUE(recording.ok());
  // Only a queue with stamps reports times.
  auto untold = device_->Submit(*queue_, **recording, {}, {.profile = true});
  ASSERT_TRUE(untold.ok());
  ASSERT_TRUE(device_->Wait(*untold, kNoDeadline).ok());
  EXPECT_TRUE((*untold)->step_times().empty());
  queue_ = *device_->OpenQueue({.stamps = true});
  auto event = device_->Submit(*queue_, **recording, {}, {.profile = true});
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  const std::vector<StepTime> times = (*event)->step_times();
  if (!device_->capabilities().profiling) {
    EXPECT_TRUE(times.empty());
    return;
  }
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[1].step, 1);
  for (const StepTime& t : times) EXPECT_GE(t.end_ns, t.start_ns);
  EXPECT_GE(times[1].start_ns, times[0].start_ns);
}

TEST_P(OpenClDevice, CountsFlushesAndWaits) {
  auto kernel = Kernel(Launch("scale", {In{0}, Out{0}, 2.0f, int32_t{1}}), 1, 1);
  Put<float>(0, {1});
  const DeviceCounters before = device_->counters();
  std::vector<Step> steps(50, Step{kernel.get(), {{Slot(0, 4)}}, {{Slot(align_, 4)}}, {}, "n"});
  EXPECT_TRUE(Run(steps).ok());
  const DeviceCounters after = device_->counters();
  EXPECT_EQ(after.flushes - before.flushes, 3);  // the first 8 launches, 32, and the rest
  EXPECT_EQ(after.waits - before.waits, 1);
}

TEST_P(OpenClDevice, MemoryLimitsAreErrorsWithNumbers) {
  const int64_t most = device_->capabilities().max_allocation;
  auto region = device_->AllocateRegion(most + 1);
  EXPECT_EQ(region.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(region.status()), HasSubstr(StrCat(most)));
  EXPECT_EQ(device_->AllocateRegion(0).status().code(), Code::kInvalidArgument);
}

TEST_P(OpenClDevice, ARegionInUseIsNotReleasedUnderARecording) {
  auto kernel = Kernel(Launch("scale", {In{0}, Out{0}, 2.0f, int32_t{1}}), 1, 1);
  auto region = device_->AllocateRegion(4 * align_);
  ASSERT_TRUE(region.ok());
  const BufferView view{region->get(), align_, 4};
  Put<float>(0, {21});
  {
    auto recording = device_->Record({{kernel.get(), {{Slot(0, 4)}}, {{view}}, {}, "n"}});
    ASSERT_TRUE(recording.ok());
    const Status early = device_->ReleaseRegion(*std::move(region));
    EXPECT_THAT(Message(early), HasSubstr("while a recording uses it"));
    auto event = device_->Submit(*queue_, **recording, {}, {});  // still safe
    ASSERT_TRUE(event.ok());
    EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  }
}

TEST_P(OpenClDevice, QueuesOfSeveralThreadsDoNotDisturbEachOther) {
  auto kernel = Kernel(Launch("scale", {In{0}, Out{0}, 2.0f, int32_t{4}}, 4, 1), 1, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto region = *device_->AllocateRegion(4 * align_);
      {
        auto queue = *device_->OpenQueue();
        const BufferView in{region.get(), 0, 16}, out{region.get(), align_, 16};
        auto recording = device_->Record({{kernel.get(), {{in}}, {{out}}, {}, "n"}});
        ASSERT_TRUE(recording.ok());
        for (int i = 0; i < 30; ++i) {
          const float value = static_cast<float>(100 * t + i);
          const std::vector<float> data(4, value);
          std::vector<float> result(4);
          const Upload upload{in, std::as_bytes(std::span(data))};
          const Download download{std::as_writable_bytes(std::span(result)), out};
          ASSERT_TRUE(device_->Transfer(*queue, {&upload, 1}, {}).ok());
          ASSERT_TRUE(device_->Submit(*queue, **recording, {}, {}).ok());
          auto event = device_->Transfer(*queue, {}, {&download, 1});
          ASSERT_TRUE(event.ok());
          ASSERT_TRUE(device_->Wait(*event, kNoDeadline).ok());
          ASSERT_EQ(result, std::vector<float>(4, 2 * value));
        }
      }
      EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
    });
  }
  for (std::thread& t : threads) t.join();
}

INSTANTIATE_TEST_SUITE_P(Views, OpenClDevice, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "sub_buffers" : "places"; });

}  // namespace
}  // namespace oncilla::opencl
