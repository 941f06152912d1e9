// Session options as text, JSON and TensorFlow's bytes; and which devices are visible to a session.
#include "engine/session/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oncilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SessionOptions Read(std::string_view bytes, std::vector<std::string>* notes = nullptr) {
  SessionOptions options;
  std::vector<std::string> own;
  const Status status = ReadSessionConfig(bytes, options, notes != nullptr ? *notes : own);
  EXPECT_TRUE(status.ok()) << status;
  return options;
}

Status Refused(std::string_view bytes) {
  SessionOptions options;
  options.threads = 5;
  std::vector<std::string> notes;
  const Status status = ReadSessionConfig(bytes, options, notes);
  EXPECT_FALSE(status.ok()) << bytes;
  EXPECT_EQ(Details(status).stage, Stage::kOptions);
  EXPECT_EQ(options.threads, 5);  // nothing is changed by half
  return status;
}

TEST(SessionConfig, TextAndJsonSayTheSame) {
  const SessionOptions text = Read(R"(
      device: "gpu:1"  # a comment
      strict: true
      threads: 3
      thread_pool: "vision"
      memory_limit_bytes: 5000000000
      max_concurrent_runs: 2
      watchdog_ms: 1500
      run_timeout_ms: 700
      device_count { key: "GPU" value: 2 }
      visible_devices: "1"
      visible_devices: "H100"
      log_device_placement: true)");
  EXPECT_EQ(text.device, "gpu:1");
  EXPECT_TRUE(text.strict);
  EXPECT_EQ(text.threads, 3);
  EXPECT_EQ(text.thread_pool, "vision");
  EXPECT_EQ(text.memory_limit_bytes, 5000000000);
  EXPECT_EQ(text.max_concurrent_runs, 2);
  EXPECT_EQ(text.watchdog_ms, 1500);
  EXPECT_EQ(text.run_timeout_ms, 700);
  EXPECT_EQ(text.device_count.at("GPU"), 2);
  EXPECT_THAT(text.visible_devices, ElementsAre("1", "H100"));
  EXPECT_TRUE(text.log_device_placement);

  for (TextForm form : {TextForm::kText, TextForm::kJson}) {
    const std::string printed = PrintSessionConfig(text, form);
    EXPECT_EQ(PrintSessionConfig(Read(printed), form), printed);
  }
  EXPECT_EQ(PrintSessionConfig(text, TextForm::kJson),
            PrintSessionConfig(
                Read(R"({"device": "gpu:1", "strict": true, "threads": 3, "thread_pool": "vision",
                "memory_limit_bytes": "5000000000",
                "max_concurrent_runs": 2, "watchdog_ms": "1500", "run_timeout_ms": 700,
                "device_count": {"GPU": 2},
                "visible_devices": ["1", "H100"], "log_device_placement": true})"),
                TextForm::kJson));
}

TEST(SessionConfig, ErrorsHaveTheirPlaceAndNearNames) {
  const auto refusal = [](std::string_view text) { return std::string(Message(Refused(text))); };
  EXPECT_EQ(refusal("threads: 2\n  strikt: true"),
            "the configuration: line 2, column 3: there is no option 'strikt'; did you mean "
            "'strict'?");
  EXPECT_EQ(refusal("{\"threads\": 2,\n \"strikt\": true}"),
            "the configuration: line 2, column 2: there is no option 'strikt'; did you mean "
            "'strict'?");
  EXPECT_THAT(refusal("device_memory { key: 'GPU' value { limit_byte: 5 } }"),
              testing::AllOf(HasSubstr("line 1, column 36"), HasSubstr("'limit_bytes'")));
  EXPECT_THAT(refusal("threads: 1\nthreads: 2"), HasSubstr("line 2, column 1: threads is given"));
  EXPECT_THAT(refusal("threads: 100000"),
              HasSubstr("column 10: threads is 100000; it must be in [0"));
  EXPECT_THAT(refusal("threads: two"), HasSubstr("threads is two, not a whole number"));
  EXPECT_THAT(refusal("device: gpu"), HasSubstr("device is gpu, not a text in quotes"));
  EXPECT_THAT(refusal("device: \"gpu"), HasSubstr("the string has no end"));
  EXPECT_THAT(refusal("fallback { on: 'device_lots' }"), HasSubstr("did you mean 'device_lost'?"));
  EXPECT_THAT(refusal("{\"threads\": 2"), HasSubstr("expected '}', found the end"));
  EXPECT_THAT(refusal("{\"threads\": 2} x"), HasSubstr("there is text after the object"));
  EXPECT_THAT(refusal("memory_limit_bytes: 2Q"), HasSubstr("2Q, not a number of bytes"));
}

TEST(SessionConfig, BytesHaveUnitsWhereOneWantsThem) {
  EXPECT_EQ(Read("memory_limit_bytes: 512MiB").memory_limit_bytes, int64_t{512} << 20);
  EXPECT_EQ(Read("memory_limit_bytes: '2GB'").memory_limit_bytes, 2'000'000'000);
  EXPECT_EQ(Read(R"({"device_memory": {"*": {"limit_bytes": "1.5GiB"}}})")
                .device_memory.at("*")
                .limit_bytes,
            int64_t{3} << 29);
}

TEST(SessionConfig, AConfigProtoAsText) {
  std::vector<std::string> notes;
  const SessionOptions options = Read(R"(
      device_count { key: "GPU" value: 0 }
      intra_op_parallelism_threads: 2
      gpu_options { per_process_gpu_memory_fraction: 0.25 visible_device_list: "1,0"
                    polling_active_delay_usecs: 5 }
      graph_options { rewrite_options { auto_mixed_precision: ON } })",
                                      &notes);
  EXPECT_EQ(options.device_count.at("GPU"), 0);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.device_memory.at("GPU").limit_fraction, 0.25);
  EXPECT_THAT(options.visible_devices, ElementsAre("1", "0"));
  EXPECT_EQ(options.precision.storage, DType::kF16);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("polling_active_delay_usecs has no effect")));
  EXPECT_THAT(std::string(Message(Refused("gpu_options { alow_growth: true }"))),
              testing::AllOf(HasSubstr("line 1, column 15"), HasSubstr("'allow_growth'")));
}

TEST(SessionConfig, WhatIsNotGivenStays) {
  SessionOptions options;
  options.threads = 7;
  options.strict = true;
  std::vector<std::string> notes;
  ASSERT_TRUE(ReadSessionConfig("strict: false", options, notes).ok());
  EXPECT_EQ(options.threads, 7);
  EXPECT_FALSE(options.strict);
  EXPECT_EQ(PrintSessionConfig(SessionOptions(), TextForm::kText), "");
}

TEST(SessionConfig, TensorFlowsBytes) {
  // device_count {GPU: 0}, intra 2, inter 4, log_device_placement, and gpu_options with fraction
  // 0.25, allow_growth and visible_device_list "1,0"; written out by hand.
  const std::string gpu =
      std::string("\x09\0\0\0\0\0\0\xd0\x3f", 9) + "\x20\x01" + "\x2a\x03" + "1,0";
  const std::string bytes = std::string("\x0a\x07\x0a\x03GPU\x10\x00", 9) + "\x10\x02" +
                            "\x28\x04" + "\x32" + static_cast<char>(gpu.size()) + gpu + "\x40\x01";
  std::vector<std::string> notes;
  const SessionOptions options = Read(bytes, &notes);
  EXPECT_EQ(options.device_count.at("GPU"), 0);
  EXPECT_EQ(options.threads, 2);
  EXPECT_TRUE(options.log_device_placement);
  EXPECT_EQ(options.device_memory.at("GPU").limit_fraction, 0.25);
  EXPECT_THAT(options.visible_devices, ElementsAre("1", "0"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("inter_op_parallelism_threads has no effect")));
}

TEST(SessionConfig, TensorFlowsNamedThreads) {
  // session_inter_op_thread_pool {num_threads 3, global_name "pool"}, once and twice.
  const std::string one = std::string("\x62\x08\x08\x03\x12\x04") + "pool";
  EXPECT_EQ(Read(one).thread_pool, "pool");
  EXPECT_EQ(Read(one).threads, 3);
  EXPECT_EQ(Read(one + "\x10\x02").threads, 2);
  std::vector<std::string> notes;
  EXPECT_EQ(Read(one + one, &notes).thread_pool, "");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("several of session_inter_op_thread_pool")));
}

// graph_options { rewrite_options { .. } }, by the numbers of rewriter_config.proto.
std::string Rewrites(const std::string& options) {
  const auto field10 = [](const std::string& bytes) {
    return "\x52" + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  return field10(field10(options));
}

TEST(SessionConfig, TensorFlowsMixedPrecision) {
  const std::string gpu = "\xb8\x01\x01";     // auto_mixed_precision: 23, ON
  const std::string cpu = "\xe8\x01\x03";     // auto_mixed_precision_cpu: 29, AGGRESSIVE
  const std::string mkl = "\xc8\x01\x01";     // auto_mixed_precision_mkl: 25, ON
  const std::string onednn = "\xf8\x01\x01";  // auto_mixed_precision_onednn_bfloat16: 31, ON
  const auto stored = [](const std::string& options) {
    std::vector<std::string> notes;
    const SessionOptions read = Read(Rewrites(options), &notes);
    EXPECT_THAT(notes, ElementsAre());
    // The result is printed in our own form, and must be readable again.
    const std::string printed = PrintSessionConfig(read, TextForm::kJson);
    EXPECT_EQ(Read(printed).precision.storage, read.precision.storage);
    return printed;
  };
  EXPECT_THAT(stored(gpu), HasSubstr("\"storage\": \"fp16\""));
  EXPECT_THAT(stored(cpu), HasSubstr("\"storage\": \"fp16\""));
  EXPECT_THAT(stored(gpu + cpu), HasSubstr("\"storage\": \"fp16\""));
  EXPECT_THAT(stored(mkl), HasSubstr("\"storage\": \"bf16\""));
  EXPECT_THAT(stored(onednn), HasSubstr("\"storage\": \"bf16\""));
  EXPECT_EQ(stored("\xb8\x01\x02"), stored(""));  // OFF
  EXPECT_EQ(stored(std::string("\xb8\x01\x00", 3)), stored(""));
  EXPECT_THAT(std::string(Message(Refused(Rewrites(gpu + onednn)))), HasSubstr("give one"));

  // No rewrites at all: disable_meta_optimizer is 19.
  std::vector<std::string> notes;
  EXPECT_FALSE(Read(Rewrites(gpu + "\x98\x01\x01"), &notes).precision.narrow());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("mixed precision has no effect")));
  // constant_folding: 3, OFF; and in graph_options build_cost_model: 4.
  notes.clear();
  EXPECT_TRUE(Read(Rewrites(gpu + "\x18\x02"), &notes).precision.narrow());
  Read("\x52\x02\x20\x01", &notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("graph_options.rewrite_options.constant_folding has"),
                                 HasSubstr("graph_options.build_cost_model has no effect")));
}

TEST(SessionConfig, RefusesWithTheReason) {
  EXPECT_THAT(std::string(Message(Refused("threads: 2\nstrikt: true"))),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("strikt")));
  EXPECT_THAT(std::string(Message(Refused("{\"threads\": }"))), HasSubstr("configuration"));
  EXPECT_THAT(std::string(Message(Refused("threads: -1"))), HasSubstr("threads is -1"));
  EXPECT_THAT(std::string(Message(Refused("memory_limit_fraction: 1.5"))), HasSubstr("1.5"));
  EXPECT_THAT(std::string(Message(Refused("memory_limit_fraction: nan"))), HasSubstr("nan"));
  EXPECT_THAT(std::string(Message(Refused("device_count { key: 'TPU' value: 1 }"))),
              HasSubstr("'TPU'"));
  EXPECT_THAT(std::string(Message(Refused("device_count { key: 'CPU' value: 0 }"))),
              HasSubstr("CPU is 0"));
  EXPECT_THAT(std::string(Message(Refused("\xff\xff\xff"))), HasSubstr("ConfigProto"));
  EXPECT_THAT(std::string(Message(Refused("fallback { on: 'rain' }"))), HasSubstr("'rain'"));
  EXPECT_THAT(std::string(Message(Refused("logical_devices { memory_limit_bytes: -1 }"))),
              HasSubstr("-1"));
}

TEST(SessionConfig, VirtualDevicesAndFallbacks) {
  // gpu_options.experimental.virtual_devices with one limit of 1024 MB.
  const std::string virtuals = "\x32\x0a\x4a\x08\x0a\x06\x0a\x04" + std::string("\0\0\x80\x44", 4);
  SessionOptions options;
  std::vector<std::string> notes;
  ASSERT_TRUE(ReadSessionConfig(virtuals, options, notes).ok());
  ASSERT_EQ(options.logical_devices.size(), 1u);
  EXPECT_EQ(options.logical_devices[0].physical, "GPU:0");
  EXPECT_EQ(options.logical_devices[0].memory_limit_bytes, 1 << 30);
  ASSERT_TRUE(ReadSessionConfig("fallback { on: 'device_lost' on: 'no_device' chain: 'cpu' }",
                                options, notes)
                  .ok());
  for (TextForm form : {TextForm::kText, TextForm::kJson}) {
    SessionOptions again;
    ASSERT_TRUE(ReadSessionConfig(PrintSessionConfig(options, form), again, notes).ok());
    ASSERT_EQ(again.logical_devices.size(), 1u);
    EXPECT_EQ(again.logical_devices[0].memory_limit_bytes, 1 << 30);
    EXPECT_EQ(again.fallback.on, options.fallback.on);
    EXPECT_EQ(again.fallback.chain, std::vector<std::string>{"cpu"});
  }
}

std::vector<ListedDevice> Three() {
  std::vector<ListedDevice> devices(5);
  const char* names[] = {"EPYC", "Card One", "Card Two", "Other Three", "a processor"};
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].info.type = i == 0 ? "CPU" : "GPU";
    devices[i].info.name = names[i];
    devices[i].info.id = StrCat("0000:0", i, ":00.0");
    if (i == 4) continue;  // not usable
    devices[i].name = LocalDeviceName(devices[i].info.type, i == 0 ? 0 : static_cast<int>(i) - 1);
  }
  devices[4].note = "an OpenCL device of type CPU";
  return devices;
}

std::vector<std::string> Names(const std::vector<ListedDevice>& devices) {
  std::vector<std::string> out;
  for (const ListedDevice& d : devices) {
    if (!d.name.empty()) out.push_back(d.short_name() + " " + d.info.name);
  }
  return out;
}

TEST(VisibleDevices, AreChosenByWhateverNamesThem) {
  const auto all = Three();
  auto see = [&](std::vector<std::string> entries) {
    return Names(SeeOnly(all, entries, "").value());
  };
  EXPECT_THAT(see({"1"}), ElementsAre("CPU:0 EPYC", "GPU:0 Card Two"));
  EXPECT_THAT(see({"GPU:2", "0"}),
              ElementsAre("CPU:0 EPYC", "GPU:0 Other Three", "GPU:1 Card One"));
  EXPECT_THAT(see({"0000:02:00.0"}), ElementsAre("CPU:0 EPYC", "GPU:0 Card Two"));
  EXPECT_THAT(see({"three", "gpu:2"}), ElementsAre("CPU:0 EPYC", "GPU:0 Other Three"));
  EXPECT_THAT(see({}), ElementsAre("CPU:0 EPYC"));
}

TEST(VisibleDevices, TheOthersSayWhyTheyAreNotThere) {
  const std::vector<std::string> second = {"1"};
  const auto seen = SeeOnly(Three(), second, "hidden").value();
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[2].note, "hidden");
  EXPECT_EQ(seen[4].note, "an OpenCL device of type CPU");
  const auto first = SeeFirst(Three(), 1, "one is enough");
  EXPECT_THAT(Names(first), ElementsAre("CPU:0 EPYC", "GPU:0 Card One"));
  EXPECT_EQ(first[2].note, "one is enough");
}

TEST(VisibleDevices, UnknownAndAmbiguousEntriesAreRefused) {
  for (const char* entry : {"3", "GPU:7", "-1", "CPU:0", "processor", "Radeon"}) {
    const std::vector<std::string> entries = {entry};
    const Status status = SeeOnly(Three(), entries, "").status();
    EXPECT_EQ(status.code(), Code::kNotFound) << entry;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("GPU:1 (Card Two)"));
  }
  const std::vector<std::string> card = {"card"};
  EXPECT_EQ(SeeOnly(Three(), card, "").status().code(), Code::kInvalidArgument);
}

TEST(VisibleDevices, SpecsAreResolvedAmongThem) {
  const std::vector<std::string> second = {"1"};
  const auto seen = SeeOnly(Three(), second, "hidden").value();
  EXPECT_EQ(ResolveDevice("auto", seen, {}).value(), 1u);
  EXPECT_EQ(ResolveDevice("gpu", seen, {}).value(), 1u);
  EXPECT_EQ(ResolveDevice("/device:CPU:0", seen, {}).value(), 0u);
  const std::vector<std::string> notes = {"a note"};
  const Status status = ResolveDevice("gpu:1", seen, notes).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("GPU:0 (Card Two); a note"));
  const std::vector<std::string> none = {};
  EXPECT_EQ(ResolveDevice("auto", SeeOnly(Three(), none, "").value(), {}).value(), 0u);
}

}  // namespace
}  // namespace oncilla
