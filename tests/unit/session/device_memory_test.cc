// Memory options: the resulting plan, contradictions, and the origin of a limit.
#include "engine/session/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/free_memory.h"
#include "engine/base/thread_pool.h"
#include "engine/device/linked_backends.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

DeviceInfo EightGigabytes() {
  DeviceInfo info;
  info.type = "GPU";
  info.memory_bytes = 8 * kGiB;
  return info;
}
Result<DeviceMemoryPlan> PlanOf(const DeviceMemoryOptions& options) {
  return PlanDeviceMemory(options, EightGigabytes(), nullptr, "memory of 'GPU:0'");
}

TEST(DeviceMemory, EachWayToSetALimitSaysWhereItComesFrom) {
  auto plan = PlanOf({});
  EXPECT_EQ(plan->limit_bytes, DefaultLimitBytes(EightGigabytes()));
  EXPECT_EQ(plan->limit_source, "all of 8.00 GiB but 300 MiB or 6 %");
  EXPECT_EQ(plan->commit_bytes, 0);

  DeviceMemoryOptions options;
  options.limit_bytes = 100 * kMiB;
  EXPECT_EQ(PlanOf(options)->limit_bytes, 100 * kMiB);
  EXPECT_EQ(PlanOf(options)->limit_source, "as set");

  options = {};
  options.limit_fraction = 0.25;
  EXPECT_EQ(PlanOf(options)->limit_bytes, 2 * kGiB);
  EXPECT_EQ(PlanOf(options)->limit_source, "0.25 of 8.00 GiB");

  options = {};
  options.free_minus_bytes = kGiB;
  plan = PlanOf(options);
  EXPECT_EQ(plan->limit_bytes, DefaultLimitBytes(EightGigabytes()) - kGiB);
  EXPECT_THAT(plan->limit_source, HasSubstr("free memory is unknown"));
  EXPECT_THAT(plan->limit_source, HasSubstr("less 1.00 GiB"));
}

TEST(DeviceMemory, GrowthSchedulesAreChecked) {
  DeviceMemoryOptions options;
  options.growth_first_bytes = kMiB;
  EXPECT_EQ(PlanOf(options)->growth_first_bytes, kMiB);
  options.growth_cap_bytes = kMiB / 2;
  EXPECT_THAT(std::string(PlanOf(options).status().message()),
              HasSubstr("less than growth_first_bytes"));
  options.growth_first_bytes = 0;
  EXPECT_THAT(std::string(PlanOf(options).status().message()),
              HasSubstr("without growth_first_bytes"));
  options = {};
  options.growth_factor = 0.5;
  EXPECT_THAT(std::string(PlanOf(options).status().message()),
              HasSubstr("growth_factor is 0.5, not in [1, 16]"));
}

TEST(DeviceMemory, TheCpuTellsWhatIsFree) {
  std::vector<std::string> notes;
  const Backend& cpu = *LinkedBackends()[0];
  ThreadPool threads(1);
  OpenOptions open;
  open.threads = &threads;
  const DeviceInfo info = cpu.discover({}, notes)[0];
  const auto device = cpu.open(info, open).value();
  DeviceMemoryOptions options;
  options.free_minus_bytes = 64 * kMiB;
  const auto plan = PlanDeviceMemory(options, info, device.get(), "memory of 'CPU:0'");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->limit_source, HasSubstr("free "));
  EXPECT_THAT(plan->limit_source, ::testing::AnyOf(HasSubstr("(MemAvailable of /proc/meminfo)"),
                                                   HasSubstr("(the control group's memory.max)")));
  EXPECT_GT(plan->limit_bytes, 0);
  EXPECT_LT(plan->limit_bytes, info.memory_bytes);
  options.free_minus_bytes = info.memory_bytes;
  EXPECT_THAT(Message(PlanDeviceMemory(options, info, device.get(), "memory of 'CPU:0'").status()),
              HasSubstr(" bytes are free"));
}

TEST(DeviceMemory, MemAvailableIsReadAsTheKernelWritesIt) {
  EXPECT_EQ(MemAvailableIn("MemTotal:  100 kB\nMemFree: 3 kB\nMemAvailable:     42 kB\n"),
            42 * 1024);
  EXPECT_EQ(MemAvailableIn("MemAvailable: 7 kB"), 7 * 1024);
  EXPECT_EQ(MemAvailableIn("NotMemAvailable: 7 kB"), -1);
  EXPECT_EQ(MemAvailableIn("MemAvailable: none"), -1);
  EXPECT_EQ(MemAvailableIn("MemAvailable: 9223372036854775807 kB"), -1);
  EXPECT_EQ(MemAvailableIn("MemAvailable:"), -1);
  EXPECT_EQ(MemAvailableIn(""), -1);
}

TEST(DeviceMemory, ContradictionsNameBoth) {
  struct Wrong {
    DeviceMemoryOptions options;
    const char* first;
    const char* second;
  };
  const Wrong all[] = {
      {{.limit_bytes = 1, .limit_fraction = 0.5}, "limit_bytes", "limit_fraction"},
      {{.limit_bytes = 1, .free_minus_bytes = 5}, "limit_bytes", "free_minus_bytes"},
      {{.limit_fraction = 0.5, .free_minus_bytes = 5}, "limit_fraction", "free_minus_bytes"},
      {{.preallocate_bytes = 1, .preallocate_fraction = 0.5},
       "preallocate_bytes",
       "preallocate_fraction"},
      {{.limit_bytes = 10, .reserve_bytes = 11}, "reserve_bytes", "limit_bytes"},
      {{.limit_bytes = 10, .preallocate_bytes = 11}, "preallocate_bytes", "limit_bytes"},
      {{.limit_fraction = 0.5, .reserve_bytes = 5 * kGiB}, "reserve_bytes", "0.5 of 8.00 GiB"},
      {{.preallocate_bytes = 8 * kGiB}, "preallocate_bytes", "300 MiB or 6 %"},
      {{.limit_bytes = -1}, "limit_bytes", "-1"},
      {{.limit_fraction = 1.5}, "limit_fraction", "1.5"},
      {{.limit_fraction = -0.1}, "limit_fraction", "-0.1"},
      {{.free_minus_bytes = -2}, "free_minus_bytes", "-2"},
      {{.free_minus_bytes = 9 * kGiB}, "free_minus_bytes", " bytes are free"},
      {{.preallocate_bytes = -1}, "preallocate_bytes", "-1"},
      {{.preallocate_fraction = 2}, "preallocate_fraction", "2"},
      {{.reserve_bytes = -1}, "reserve_bytes", "-1"},
      {{.fragmentation = 1}, "fragmentation", "[0, 1)"},
  };
  for (const Wrong& wrong : all) {
    const Status status = PlanOf(wrong.options).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << wrong.first << ' ' << wrong.second;
    EXPECT_EQ(Details(status).stage, Stage::kOptions);
    EXPECT_THAT(Message(status), HasSubstr("memory of 'GPU:0': "));
    EXPECT_THAT(Message(status), HasSubstr(wrong.first));
    EXPECT_THAT(Message(status), HasSubstr(wrong.second));
  }
}

TEST(DeviceMemory, WhatIsTakenBeforehand) {
  EXPECT_EQ(PlanOf({.limit_bytes = kGiB, .preallocate_fraction = 1})->commit_bytes, kGiB);
  EXPECT_EQ(PlanOf({.limit_bytes = kGiB, .preallocate_bytes = kMiB})->commit_bytes, kMiB);
  const auto both =
      PlanOf({.limit_bytes = kGiB, .preallocate_bytes = kMiB, .reserve_bytes = 2 * kMiB});
  EXPECT_EQ(both->commit_bytes, 2 * kMiB);
  EXPECT_EQ(both->reserve_bytes, 2 * kMiB);
}

TEST(DeviceMemory, TheClosestNameWins) {
  ListedDevice gpu;
  gpu.name = LocalDeviceName("GPU", 1);
  gpu.info.type = "GPU";
  std::map<std::string, DeviceMemoryOptions> options;
  EXPECT_EQ(OptionsFor(options, gpu).value(), DeviceMemoryOptions());
  const auto add = [&](const char* key, int64_t limit) { options[key].limit_bytes = limit; };
  add("", 1);
  EXPECT_EQ(OptionsFor(options, gpu)->limit_bytes, 1);
  add("*", 2);
  EXPECT_EQ(OptionsFor(options, gpu)->limit_bytes, 2);
  add("GPU", 3);
  add("CPU", 4);
  EXPECT_EQ(OptionsFor(options, gpu)->limit_bytes, 3);
  add("GPU:1", 5);
  add("GPU:0", 6);
  EXPECT_EQ(OptionsFor(options, gpu)->limit_bytes, 5);
  add(gpu.name.c_str(), 7);
  EXPECT_EQ(OptionsFor(options, gpu)->limit_bytes, 7);
}

TEST(DeviceMemory, EverySpellingOfANameCounts) {
  ListedDevice gpu;
  gpu.name = LocalDeviceName("GPU", 1);
  gpu.info.type = "GPU";
  for (const char* key : {"gpu:1", "/gpu:1", "device:GPU:1", "/job:localhost/device:GPU:1"}) {
    EXPECT_EQ(OptionsFor({{key, {.limit_bytes = 5}}, {"GPU", {}}}, gpu)->limit_bytes, 5) << key;
  }
  EXPECT_EQ(OptionsFor({{"gpu:0", {.limit_bytes = 5}}}, gpu)->limit_bytes, 0);
  const Status twice =
      AllMemoryOptions({{"gpu:1", {.limit_bytes = 5}}, {"GPU:1", {.limit_bytes = 6}}}, 0, 0)
          .status();
  EXPECT_THAT(Message(twice), HasSubstr("'GPU:1' and 'gpu:1' mean the same; give one"));
}

TEST(DeviceMemory, KeysOfNoDeviceAreKnown) {
  ListedDevice cpu, gpu;
  cpu.name = LocalDeviceName("CPU", 0);
  cpu.info.type = cpu.info.name = "CPU";
  gpu.name = LocalDeviceName("GPU", 0);
  gpu.info.type = gpu.info.name = "GPU";
  const std::map<std::string, DeviceMemoryOptions> keys = {
      {"*", {}}, {"CPU", {}}, {"GPU", {}}, {"gpu:0", {}}, {"GPU:9", {}}, {"NPU:0", {}}};
  const ListedDevice both[] = {cpu, gpu};
  const auto absent = AbsentKeys(keys, both, true);
  ASSERT_EQ(absent.size(), 2u);
  EXPECT_THAT(absent[0], HasSubstr("'GPU:9' is not there; did you mean 'GPU:0'"));
  EXPECT_THAT(absent[0], HasSubstr("There is: CPU:0 (CPU), GPU:0 (GPU)"));
  EXPECT_THAT(absent[1], HasSubstr("'NPU:0' is not there"));
  // Where no driver was asked, a GPU may be there.
  EXPECT_TRUE(AbsentKeys({{"GPU:9", {}}, {"CPU:0", {}}}, {both, 1}, false).empty());
  EXPECT_EQ(AbsentKeys({{"CPU:1", {}}}, {both, 1}, false).size(), 1u);
}

TEST(DeviceMemory, ShortFormsMeanEveryDevice) {
  const auto all = [](std::map<std::string, DeviceMemoryOptions> given, int64_t bytes,
                      double fraction) {
    return AllMemoryOptions(std::move(given), bytes, fraction);
  };
  EXPECT_TRUE(all({}, 0, 0)->empty());
  EXPECT_EQ(all({}, 100, 0)->at("*").limit_bytes, 100);
  const auto merged = all({{"GPU", {.limit_bytes = 5}}, {"*", {.reserve_bytes = 7}}}, 100, 0);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->at("GPU").limit_bytes, 5);
  EXPECT_EQ(merged->at("*").limit_bytes, 100);
  EXPECT_EQ(merged->at("*").reserve_bytes, 7);
  EXPECT_EQ(all({{"", {.limit_bytes = 5}}}, 0, 0)->at("*").limit_bytes, 5);

  const auto refusal = [&](std::map<std::string, DeviceMemoryOptions> given, int64_t bytes,
                           double fraction) {
    const Status status = all(std::move(given), bytes, fraction).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return Message(status);
  };
  EXPECT_THAT(refusal({}, 100, 0.5),
              HasSubstr("memory_limit_bytes is 100 and memory_limit_fraction is 0.5"));
  EXPECT_THAT(refusal({{"*", {.limit_bytes = 5}}}, 100, 0),
              HasSubstr("memory_limit_bytes and device_memory of '*'"));
  EXPECT_THAT(refusal({{"*", {.reserve_bytes = 200}}}, 100, 0), HasSubstr("reserve_bytes"));
  EXPECT_THAT(refusal({{"", {}}, {"*", {}}}, 0, 0), HasSubstr("both '*' and ''"));
  EXPECT_THAT(refusal({{"the big one", {}}}, 0, 0), HasSubstr("'the big one'"));
  EXPECT_THAT(refusal({{"GPU:1", {.limit_bytes = 1, .limit_fraction = 0.5}}}, 0, 0),
              HasSubstr("device_memory of 'GPU:1': limit_bytes"));
}

}  // namespace
}  // namespace oncilla
