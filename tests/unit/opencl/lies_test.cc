// Devices with false claims: a driver compiles something other than its input, or has less than it
// claims. Opening the device detects that by running kernels, and the portable kernels then give
// the CPU's results. (probe_test.cc tests the detection alone.)
#include <gmock/gmock.h>

#include <functional>

#include "backends/opencl/device.h"
#include "engine/base/thread_pool.h"
#include "engine/device/checked_device.h"
#include "engine/device/linked_backends.h"
#include "tests/case_runner/run_case.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

using ::oncilla::testing::Case;
using ::oncilla::testing::Outcome;
using ::oncilla::testing::Verdict;
using ::testing::HasSubstr;

struct Lie {
  const Api* real = nullptr;
  std::function<void(std::string& source)> compile;  // what the driver makes of a source
  bool no_stamps = false, zero_stamps = false;
  size_t largest_group = 0;  // launched outside of the probes
} lie;

cl_program CL_API_CALL LyingCreateProgram(cl_context context, cl_uint count, const char** texts,
                                          const size_t* lengths, cl_int* error) {
  std::string text(texts[0], lengths[0]);
  if (lie.compile) lie.compile(text);
  const char* changed = text.c_str();
  const size_t length = text.size();
  return lie.real->CreateProgramWithSource(context, count, &changed, &length, error);
}
cl_int CL_API_CALL WatchedLaunch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t* offset, const size_t* global, const size_t* local,
                                 cl_uint count, const cl_event* events, cl_event* event) {
  size_t group = 1;
  for (cl_uint i = 0; i < dimensions; ++i) group *= local[i];
  lie.largest_group = std::max(lie.largest_group, group);
  return lie.real->EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count,
                                        events, event);
}
cl_int CL_API_CALL LyingProfilingInfo(cl_event event, cl_profiling_info info, size_t size,
                                      void* value, size_t* needed) {
  if (lie.no_stamps) return CL_PROFILING_INFO_NOT_AVAILABLE;
  const cl_int error = lie.real->GetEventProfilingInfo(event, info, size, value, needed);
  if (lie.zero_stamps) *static_cast<cl_ulong*>(value) = 0;
  return error;
}

// Replaces each `from` by `to` in all kernels.
void Replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

class OpenClLies : public ::testing::Test {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    found_ = *TheTestDevice().found;
    lie = Lie();
    lie.real = TheTestDevice().found->platform.api.get();
    auto api = std::make_shared<Api>(*lie.real);
    api->CreateProgramWithSource = &LyingCreateProgram;
    api->EnqueueNDRangeKernel = &WatchedLaunch;
    api->GetEventProfilingInfo = &LyingProfilingInfo;
    found_->platform.api = std::move(api);
    std::vector<std::string> notes;
    const Backend& cpu = *LinkedBackends()[0];
    reference_ =
        cpu.open(cpu.discover({}, notes)[0], {.threads = &threads_, .plain = true, .cache_dir = ""})
            .value();
  }

  Result<std::unique_ptr<ClDevice>> TryOpen() {
    DeviceInfo info;
    info.backend = "opencl";
    info.name = found_->facts.name;
    info.max_allocation_bytes = found_->facts.max_allocation;
    info.alignment_bytes = std::max<int64_t>(found_->facts.base_alignment, 128);
    return ClDevice::Open(*found_, info, {});
  }
  // The wrapped device; `cl` remains accessible to the test.
  std::unique_ptr<CheckedDevice> Open(const ClDevice** cl) {
    auto opened = TryOpen();
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    lie.largest_group = 0;
    *cl = opened->get();
    return std::make_unique<CheckedDevice>(*std::move(opened));
  }

  // Runs all small cases of these files that the device does not refuse; returns their number.
  int RunCases(Device& device, const std::vector<std::string>& names) {
    const auto ops = OpSet::Builtin();
    int passed = 0;
    for (const std::string& name : names) {
      auto cases = oncilla::testing::ReadCases(
          StrCat(ONCILLA_SOURCE_DIR "/tests/cases/", name, ".case"), *ops);
      EXPECT_TRUE(cases.ok()) << cases.status();
      for (const Case& c : *cases) {
        if (c.inputs[0].value.elements() > kMost || c.error) continue;
        const Outcome outcome = RunCase(c, *ops, device, *reference_, /*offset=*/true);
        EXPECT_NE(outcome.verdict, Verdict::kFail) << c.Where() << ": " << outcome.message;
        passed += outcome.verdict == Verdict::kPass;
      }
    }
    return passed;
  }

  static constexpr int64_t kMost = 4000;
  ThreadPool threads_{2};
  std::optional<FoundDevice> found_;
  std::unique_ptr<Device> reference_;
};

const std::vector<std::string> kGroupOps = {"softmax", "layernorm", "lrn"};

TEST_F(OpenClLies, BarriersThatDoNotHoldLeaveGroupsOfOne) {
  // Only in the probe, which alone adds in this way: what other kernels would do is no matter.
  lie.compile = [](std::string& text) {
    Replace(text, "tmp[lid] += tmp[lid + s]", "tmp[lid] += 1");
  };
  const ClDevice* cl = nullptr;
  const auto device = Open(&cl);
  ASSERT_NE(device, nullptr);
  EXPECT_FALSE(cl->capabilities().local_groups);
  EXPECT_EQ(cl->capabilities().max_work_group, 1);
  EXPECT_GT(RunCases(*device, kGroupOps), 20);
  EXPECT_EQ(lie.largest_group, 1u);
}

TEST_F(OpenClLies, GroupsThatAreTooLargeAreHalved) {
  if (TheTestDevice().found->facts.max_work_group < 64) GTEST_SKIP() << "groups are small anyway";
  lie.compile = [](std::string& text) {
    Replace(text, "tmp[lid] += tmp[lid + s]",
            "tmp[lid] += get_local_size(0) > 16 ? 1 : tmp[lid + s]");
  };
  const ClDevice* cl = nullptr;
  const auto device = Open(&cl);
  ASSERT_NE(device, nullptr);
  EXPECT_TRUE(cl->capabilities().local_groups);
  EXPECT_EQ(cl->capabilities().max_work_group, 16);
  EXPECT_GT(RunCases(*device, kGroupOps), 20);
  EXPECT_LE(lie.largest_group, 16u);
}

TEST_F(OpenClLies, DoublesThatAreFloatsGoToTheCpu) {
  if (!TheTestDevice().found->facts.claims_fp64) GTEST_SKIP() << "the device has no doubles";
  lie.compile = [](std::string& text) {
    Replace(text, "out[2] = a / b;", "out[2] = (double)((float)a / (float)b);");
  };
  const ClDevice* cl = nullptr;
  const auto device = Open(&cl);
  ASSERT_NE(device, nullptr);
  EXPECT_FALSE(cl->capabilities().fp64);
  const auto ops = OpSet::Builtin();
  const AttrMap attrs;
  const Facts doubles = {Fact::Of({DType::kF64, {4}})};
  EXPECT_THAT(Message(device->CanRun({ops->Find("Exp"), &attrs, doubles, doubles, "node"})),
              HasSubstr("f64"));
  lie.compile = nullptr;
  EXPECT_GT(RunCases(*device, {"exp", "cast"}), 20);
}

TEST_F(OpenClLies, LoopsThatStopEarlyAreKeptShort) {
  lie.compile = [](std::string& text) { Replace(text, "i < n; ++i", "i < min(n, 5000); ++i"); };
  const ClDevice* cl = nullptr;
  const auto device = Open(&cl);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(cl->capabilities().max_loop_trips, 5000);
  // One long sum: split up, or left to the CPU with that reason, but never cut short.
  Case c;
  c.op = "ReduceSum";
  c.same_as_cpu = true;
  auto ones = Tensor::Allocate({DType::kF32, {1, 20000}});
  for (float& v : ones->MutableAs<float>()) v = 1;
  c.inputs.resize(2);
  c.inputs[0].value = *std::move(ones);
  c.inputs[1].value = Tensor::Int64s(std::vector<int64_t>{1});
  const Outcome outcome = RunCase(c, *OpSet::Builtin(), *device, *reference_, /*offset=*/false);
  EXPECT_NE(outcome.verdict, Verdict::kFail) << outcome.message;
}

TEST_F(OpenClLies, TimesThatAreAbsentOrZeroAreNotReported) {
  for (const bool absent : {true, false}) {
    lie.no_stamps = absent, lie.zero_stamps = !absent;
    const ClDevice* cl = nullptr;
    const auto device = Open(&cl);
    ASSERT_NE(device, nullptr);
    EXPECT_FALSE(cl->capabilities().profiling);
    const auto ops = OpSet::Builtin();
    const AttrMap attrs;
    const Facts facts = {Fact::Of({DType::kF32, {4}})};
    auto kernel = *device->Prepare({ops->Find("Relu"), &attrs, facts, facts, "node"});
    auto region = *device->AllocateRegion(4096);
    const BufferView view{region.get(), 0, 16};
    auto queue = *device->OpenQueue();
    auto recording = *device->Record({{kernel.get(), {{view}}, {{view}}, {}, "node"}});
    const auto event = device->Submit(*queue, *recording, {}, {.profile = true});
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_TRUE(device->Wait(*event, kNoDeadline).ok());
    for (const StepTime& time : (*event)->step_times()) {
      EXPECT_EQ(time.start_ns, 0);
      EXPECT_EQ(time.end_ns, 0);
    }
    recording.reset();
    queue.reset();
    EXPECT_TRUE(device->ReleaseRegion(std::move(region)).ok());
  }
}

TEST_F(OpenClLies, WrongIntegersOrNoCompilerAtAllMakeItUnusable) {
  lie.compile = [](std::string& text) {
    Replace(text, "out[0] = a * b;", "out[0] = (int)(a * b);");
  };
  EXPECT_THAT(Message(TryOpen().status()), HasSubstr("64-bit integer arithmetic"));
  lie.compile = [](std::string& text) { text = "no OpenCL C"; };
  const Status status = TryOpen().status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("probe/basics.cl"));
}

}  // namespace
}  // namespace oncilla::opencl
