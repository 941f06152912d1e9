// Traces: the JSON against the format's rules, the message against its fields, and both against
// what a far device recorded itself.
#include "engine/session/trace.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/import/graph_builder.h"
#include "engine/import/wire/wire.h"  // protozero with the engine's own view
#include "tests/unit/support/far_session.h"

namespace oncilla {
namespace {

using Json = nlohmann::json;

class Traces : public testing::FarSession {
 protected:
  static constexpr int kNodes = 5;
  void SetUp() override {
    Open();
    const auto model = LoadTurns(kNodes);
    ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
    script_->step_us = 2000;
    script_->transfer_us = 1000;
    RunRequest request = Request(testing::Row(1, 2, 3, 4));
    request.profile = true;
    auto run = model->Run(request);
    ASSERT_TRUE(run.ok()) << run.status();
    report_ = run->report;
    model_ = model;
  }
  RunReport report_;
  std::shared_ptr<Model> model_;
};

TEST_F(Traces, ObeyTheRulesOfTheFormat) {
  const Json trace = Json::parse(ChromeTrace(report_));
  std::map<int, std::string> rows;
  std::map<int, std::vector<std::pair<double, double>>> slices;
  std::map<int, int> begun, ended;
  std::set<std::string> counters;
  for (const Json& event : trace["traceEvents"]) {
    const auto ph = event["ph"].get<std::string>();
    ASSERT_EQ(event["pid"], 1);
    ASSERT_TRUE(event["name"].is_string());
    if (ph == "M") {
      if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
      continue;
    }
    ASSERT_GE(event["ts"].get<double>(), 0);
    if (ph == "X") {
      ASSERT_GE(event["dur"].get<double>(), 0);
      ASSERT_TRUE(event["args"].is_object());
      slices[event["tid"]].emplace_back(event["ts"], event["dur"]);
      ASSERT_LE(event["ts"].get<double>() + event["dur"].get<double>(),
                static_cast<double>(report_.wall_ns) / 1000 + 1);
    } else if (ph == "s") {
      ++begun[event["id"]];
    } else if (ph == "f") {
      ++ended[event["id"]];
    } else {
      ASSERT_EQ(ph, "C");
      counters.insert(event["name"]);
      for (const auto& [name, value] : event["args"].items())
        ASSERT_TRUE(value.is_number()) << name;
    }
  }
  EXPECT_EQ(begun, ended) << "every arrow has a head";
  EXPECT_EQ(begun.size(), 2u) << "the feed and the fetch";
  for (const auto& [row, list] : slices) EXPECT_EQ(rows.count(row), 1u) << row;
  EXPECT_EQ(rows[1], "host");
  EXPECT_EQ(rows[4], "GPU:0");
  EXPECT_EQ(rows[5], "GPU:0 copies");
  ASSERT_EQ(slices[4].size(), static_cast<size_t>(kNodes));
  for (size_t i = 0; i + 1 < slices[4].size(); ++i) {
    EXPECT_LE(slices[4][i].first + slices[4][i].second, slices[4][i + 1].first + 0.002) << i;
  }
  ASSERT_EQ(slices[5].size(), 2u);
  EXPECT_LE(slices[5][0].first + slices[5][0].second, slices[4][0].first + 0.002) << "up, steps,";
  EXPECT_GE(slices[5][1].first + 0.002, slices[4][kNodes - 1].first) << "down";
  EXPECT_EQ(counters.count("GPU:0 pool bytes"), 1u);
  EXPECT_EQ(counters.count("GPU:0 fragmentation"), 1u);
}

// The far device's clock is the host's, so that its own records can be compared.
TEST_F(Traces, TellWhatTheDeviceDid) {
  std::vector<testing::FarScript::Span> steps;
  for (const auto& span : script_->Spans()) {
    if (span.kind == 's') steps.push_back(span);
  }
  ASSERT_EQ(report_.stats.steps.size(), static_cast<size_t>(kNodes));
  for (int i = 0; i < kNodes; ++i) {
    const auto& noted = steps[steps.size() - kNodes + static_cast<size_t>(i)];
    const StepProfile& told = report_.stats.steps[static_cast<size_t>(i)];
    EXPECT_EQ(told.end_ns - told.start_ns, noted.end_ns - noted.begin_ns) << i;
    EXPECT_EQ(told.output_bytes, 16);
    EXPECT_EQ(told.node, StrCat("turn", i));
  }
  const auto shares = SharesOf(report_);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].device, session_->device_set().names()[1]);
  EXPECT_GT(shares[0].busy, 0.1);
  EXPECT_LE(shares[0].busy, 1.01);
  EXPECT_GT(shares[0].copying, 0);
}

TEST(DeviceShares, SayHowLongADeviceHadNothingToDoAndWhoWaited) {
  RunReport report;
  report.devices = {"CPU:0", "GPU:0"};
  report.wall_ns = 1000;
  const auto step = [&](const char* node, int64_t begin, int64_t end, int device = 1) {
    StepProfile& profile = report.stats.steps.emplace_back();
    profile.node = node;
    profile.device = device;
    profile.start_ns = begin;
    profile.end_ns = end;
  };
  // Steps may overlap, and need not stand in the order in which they ran.
  step("late", 700, 800);
  step("first", 100, 300);
  step("beside", 150, 350);
  step("second", 400, 500);
  step("elsewhere", 0, 1000, 0);
  const auto shares = SharesOf(report);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].gaps, 0);
  EXPECT_EQ(shares[0].waited, "");
  EXPECT_NEAR(shares[1].busy, 0.45, 1e-9);
  EXPECT_NEAR(shares[1].gaps, 0.25, 1e-9);
  EXPECT_EQ(shares[1].longest_gap_ns, 200);
  EXPECT_EQ(shares[1].waited, "late");
}

TEST_F(Traces, FollowMemoryWhileTheRunGoesOn) {
  // Before, around the only segment, and after; of both devices.
  ASSERT_EQ(report_.pool_samples.size(), 8u);
  const int64_t first_step = report_.stats.steps.front().start_ns;
  const int64_t last_step = report_.stats.steps.back().end_ns;
  int before = 0, after = 0;
  int64_t last = 0;
  for (const PoolSample& sample : report_.pool_samples) {
    EXPECT_GE(sample.at_ns, last);
    last = sample.at_ns;
    before += sample.at_ns <= first_step;
    after += sample.at_ns >= last_step;
  }
  EXPECT_EQ(before, 4);
  EXPECT_EQ(after, 4);
  for (const StepProfile& step : report_.stats.steps) EXPECT_GT(step.live_bytes, 0) << step.node;
  const auto peaks = PeaksOf(report_);
  ASSERT_EQ(peaks.size(), 1u) << "one op";
  EXPECT_EQ(peaks[0].device, session_->device_set().names()[1]);
  EXPECT_EQ(peaks[0].output_bytes, 16);
  int64_t most = 0;
  for (const StepProfile& step : report_.stats.steps) most = std::max(most, step.live_bytes);
  EXPECT_EQ(peaks[0].live_bytes, most);
  EXPECT_LE(most, model_->executables().memory().plans[0].plan->arena_bytes(1));
  const Json trace = Json::parse(ChromeTrace(report_));
  ASSERT_EQ(trace["otherData"]["peak_by_op"].size(), 1u);
  EXPECT_EQ(trace["otherData"]["peak_by_op"][0]["live_bytes"], most);
  int live = 0;
  for (const Json& event : trace["traceEvents"]) live += event["name"] == "GPU:0 live bytes";
  EXPECT_EQ(live, kNodes);
}

TEST_F(Traces, TellAsMuchAsTheirLevelAsksFor) {
  const auto trace = [&](TraceLevel level) {
    RunRequest request = Request(testing::Row(1, 2, 3, 4));
    request.trace = level;
    auto run = model_->Run(request);
    EXPECT_TRUE(run.ok()) << run.status();
    return run->report;
  };
  const auto host = [](const RunReport& report) {
    return std::any_of(report.stats.spans.begin(), report.stats.spans.end(),
                       [](const TraceSpan& s) { return s.kind == TraceSpan::kHost; });
  };
  const auto stamped = [](const RunReport& report) {
    return std::any_of(report.stats.steps.begin(), report.stats.steps.end(),
                       [](const StepProfile& s) { return s.end_ns != 0; });
  };
  const RunReport none = trace(TraceLevel::kNone), software = trace(TraceLevel::kSoftware),
                  hardware = trace(TraceLevel::kHardware), full = trace(TraceLevel::kFull);
  EXPECT_FALSE(none.traced);
  EXPECT_TRUE(none.stats.spans.empty() && none.stats.steps.empty() && none.pool_samples.empty());
  EXPECT_TRUE(host(software) && !stamped(software) && !software.pool_samples.empty());
  EXPECT_TRUE(!host(hardware) && stamped(hardware) && hardware.pool_samples.empty());
  EXPECT_TRUE(host(full) && stamped(full) && !full.pool_samples.empty());
  for (const RunReport* report : {&none, &software, &hardware, &full}) {
    EXPECT_TRUE(Json::accept(ChromeTrace(*report)));
  }
}

// Copies by the driver's own stamps: they must not overlap with each other or the steps, be in the
// queue's order, and lie within the run.
TEST(TracesOnOpenCl, CopiesAreTimedByTheDriver) {
  RuntimeOptions runtime = RuntimeOptionsFromEnvironment();
  runtime.opencl_cpu_devices = true;
  auto made = Runtime::Create(runtime);
  if (!made->Resolve("gpu").ok()) GTEST_SKIP() << "not run: no OpenCL";
  auto session = *Session::Create(made, SessionOptions{.device = "gpu"});
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{256, 1024}), "x");
  g.Op("Tanh", {g.Op("Exp", {x})}, {}, "y");
  auto model = session->LoadGraph(*g.GraphDef(), "net", {});
  ASSERT_TRUE(model.ok()) << model.status();
  RunRequest request;
  request.feeds = {{"x:0", *Tensor::Allocate({DType::kF32, Shape{256, 1024}})}};
  ASSERT_TRUE((*model)->Run(request).ok());
  request.trace = TraceLevel::kFull;
  auto run = (*model)->Run(request);
  ASSERT_TRUE(run.ok()) << run.status();
  const RunReport& report = run->report;
  if (report.stats.steps.front().end_ns == 0) GTEST_SKIP() << "the driver gives no stamps";
  int copies = 0;
  int64_t up_end = 0, down_begin = 0;
  for (const TraceSpan& span : report.stats.spans) {
    if (span.kind == TraceSpan::kHost) continue;
    ++copies;
    EXPECT_TRUE(span.by_device);
    EXPECT_LE(span.begin_ns, span.end_ns);
    EXPECT_EQ(span.bytes, 256 * 1024 * 4);
    (span.kind == TraceSpan::kUpload ? up_end : down_begin) =
        span.kind == TraceSpan::kUpload ? span.end_ns : span.begin_ns;
    EXPECT_GE(span.begin_ns, report.begin_ns);
    EXPECT_LE(span.end_ns, report.begin_ns + report.wall_ns);
  }
  EXPECT_EQ(copies, 2);
  EXPECT_LE(up_end, report.stats.steps.front().start_ns);
  EXPECT_GE(down_begin, report.stats.steps.back().end_ns);
}

TEST_F(Traces, AreStepStatsToo) {
  const std::string bytes = RunMetadata(report_);
  protozero::pbf_reader metadata(bytes);
  ASSERT_TRUE(metadata.next(1));
  protozero::pbf_reader step_stats = metadata.get_message();
  std::map<std::string, std::vector<std::string>> nodes;
  while (step_stats.next(1)) {
    protozero::pbf_reader device = step_stats.get_message();
    std::string name;
    while (device.next()) {
      if (device.tag() == 1) {
        name = device.get_string();
      } else if (device.tag() == 2) {
        protozero::pbf_reader node = device.get_message();
        int64_t micros = 0, nanos = 0, took = 0, took_nanos = 0;
        std::string node_name, label;
        while (node.next()) {
          switch (node.tag()) {
            case 1:
              node_name = node.get_string();
              break;
            case 2:
              micros = node.get_int64();
              break;
            case 5:
              took = node.get_int64();
              break;
            case 8:
              label = node.get_string();
              break;
            case 13:
              nanos = node.get_int64();
              break;
            case 16:
              took_nanos = node.get_int64();
              break;
            default:
              node.skip();
          }
        }
        EXPECT_EQ(micros, nanos / 1000);
        EXPECT_EQ(took, took_nanos / 1000);
        EXPECT_GE(took_nanos, 0);
        EXPECT_FALSE(label.empty());
        nodes[name].push_back(node_name);
      } else {
        device.skip();
      }
    }
  }
  const std::string gpu = session_->device_set().names()[1];
  EXPECT_THAT(nodes[gpu], ::testing::ElementsAre("turn0", "turn1", "turn2", "turn3", "turn4"));
  EXPECT_THAT(nodes[gpu + "/stream:copies"], ::testing::ElementsAre("MEMCPYHtoD", "MEMCPYDtoH"));
}

}  // namespace
}  // namespace oncilla
