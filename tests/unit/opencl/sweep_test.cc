// Every call of a driver fails once: for each kind of call and n = 1, 2, ... the n-th one while a
// model is compiled, run and closed, until a round makes fewer calls than that. Each round must end
// in an error that names the call or in the right result; then, without faults, the same devices
// and pools must give the right result; and after the close no driver object may be left.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "backends/opencl/device.h"
#include "engine/base/thread_pool.h"
#include "engine/device/checked_device.h"
#include "engine/device/linked_backends.h"
#include "engine/run/executor.h"
#include "tests/unit/support/opencl_device.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

struct Sweep {
  const Api* real = nullptr;
  std::string_view call;  // the kind that fails
  int in = 0;             // 1: the next one; 0 or less: none
  cl_int error = CL_SUCCESS;
} sweep;

bool Due(std::string_view call) { return call == sweep.call && sweep.in > 0 && --sweep.in == 0; }

// A call of the table that fails when it is due. `kName` is the address of its name.
template <auto kMember, const char* kName, class Function>
struct Failing;
template <auto kMember, const char* kName, class... Arguments>
struct Failing<kMember, kName, cl_int(CL_API_CALL*)(Arguments...)> {
  static cl_int CL_API_CALL Call(Arguments... arguments) {
    return Due(kName) ? sweep.error : (sweep.real->*kMember)(arguments...);
  }
};
// Calls that make an object take a cl_int* last.
template <auto kMember, const char* kName, class Object, class... Arguments>
struct Failing<kMember, kName, Object*(CL_API_CALL*)(Arguments...)> {
  static Object* CL_API_CALL Call(Arguments... arguments) {
    if (!Due(kName)) return (sweep.real->*kMember)(arguments...);
    *std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)) = sweep.error;
    return nullptr;
  }
};

// Releases are left out: nothing can be done about a driver that cannot release an object.
#define SWEPT_CALLS(X)          \
  X(CreateContext)              \
  X(CreateCommandQueue)         \
  X(CreateBuffer)               \
  X(CreateSubBuffer)            \
  X(CreateProgramWithSource)    \
  X(CreateProgramWithBinary)    \
  X(BuildProgram)               \
  X(GetProgramInfo)             \
  X(GetProgramBuildInfo)        \
  X(CreateKernel)               \
  X(SetKernelArg)               \
  X(GetKernelWorkGroupInfo)     \
  X(EnqueueNDRangeKernel)       \
  X(EnqueueReadBuffer)          \
  X(EnqueueWriteBuffer)         \
  X(EnqueueCopyBuffer)          \
  X(EnqueueFillBuffer)          \
  X(EnqueueMigrateMemObjects)   \
  X(EnqueueMarkerWithWaitList)  \
  X(EnqueueBarrierWithWaitList) \
  X(Flush)                      \
  X(Finish)                     \
  X(WaitForEvents)              \
  X(GetEventInfo)               \
  X(GetEventProfilingInfo)      \
  X(SetEventCallback)

#define SWEPT_NAME(name) constexpr char kName##name[] = #name;
SWEPT_CALLS(SWEPT_NAME)
#undef SWEPT_NAME

std::shared_ptr<const Api> FailingApi(const Api& real) {
  auto api = std::make_shared<Api>(real);
#define SWEPT_WRAP(name) api->name = &Failing<&Api::name, kName##name, decltype(Api::name)>::Call;
  SWEPT_CALLS(SWEPT_WRAP)
#undef SWEPT_WRAP
  return api;
}

// Packed weights, a program of several launches, a node in the middle that OpenCL leaves to the
// CPU, two outputs.
Graph Net() {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of({DType::kF32, {4, 6}}));
  std::vector<float> weights(6 * 8);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
  const ValueId w = graph.AddConstant(Tensor::Of<float>(DType::kF32, {6, 8}, weights));
  const ValueId product = graph.Add("product", "MatMul", {}, {x, w}).value();
  const ValueId ints = graph.Add("ints", "Cast", {{"to", DType::kI32}}, {product}).value();
  const ValueId axis = graph.AddConstant(Tensor::Int64s(std::vector<int64_t>{1}));
  const ValueId norms = graph.Add("norms", "ReduceL2", {}, {ints, axis}).value();
  const ValueId floats = graph.Add("floats", "Cast", {{"to", DType::kF32}}, {norms}).value();
  graph.AddOutput("y", graph.Add("y", "Relu", {}, {floats}).value());
  graph.AddOutput("z", graph.Add("z", "Softmax", {}, {product}).value());
  return graph;
}

// The parts of a session, with a driver that may fail.
class Parts {
 public:
  explicit Parts(ThreadPool* threads) {
    std::vector<std::string> notes;
    const Backend& backend = *LinkedBackends()[0];
    devices_.push_back(std::make_unique<CheckedDevice>(
        backend.open(backend.discover({}, notes)[0], {.threads = threads, .cache_dir = ""})
            .value()));
  }

  Status Open(const FoundDevice& found, const std::string& cache_folder) {
    DeviceInfo info;
    info.backend = "opencl";
    info.name = found.facts.name;
    info.max_allocation_bytes = found.facts.max_allocation;
    info.memory_bytes = found.facts.global_memory;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    ONCILLA_ASSIGN(auto device, ClDevice::Open(found, info, {cache_folder, std::nullopt}));
    devices_.push_back(std::make_unique<CheckedDevice>(std::move(device)));
    for (const auto& d : devices_) {
      list_.push_back(d.get());
      pools_.push_back(std::make_unique<Pool>(d.get(), &ledger_, PoolOptions{}));
    }
    return Status();
  }

  // Compiles unless that is done, and runs.
  Result<std::vector<Tensor>> Run(const Tensor& x) {
    if (constants_ == nullptr) {
      constants_ = std::make_unique<ConstantStore>(list_, PoolList(), owner_);
    }
    if (executor_ == nullptr) {
      CompileOptions options;
      options.placement.preferred = 1;
      options.verify = true;
      ONCILLA_ASSIGN(auto compiled, Compile(Net(), list_, names_, *constants_, options));
      executor_ = std::make_unique<Executor>(std::move(compiled), list_, PoolList(), owner_,
                                             ExecutorOptions{});
    }
    RunStats stats;
    RunControl control;
    control.profile = true;
    control.stats = &stats;
    return executor_->Run(std::vector<Tensor>{x}, control);
  }

  // Destroys everything, as when a session is closed.
  void Close() {
    executor_.reset();
    constants_.reset();
    for (const auto& pool : pools_) pool->Close();
    for (const auto& device : devices_) {
      EXPECT_EQ(device->alive(), CheckedDevice::Alive{}) << device->info().name;
    }
    for (const std::string& name : names_) EXPECT_EQ(ledger_.TotalBytes(name), 0);
  }

 private:
  std::vector<Pool*> PoolList() const {
    std::vector<Pool*> list;
    for (const auto& pool : pools_) list.push_back(pool.get());
    return list;
  }

  std::vector<std::unique_ptr<CheckedDevice>> devices_;
  std::vector<Device*> list_;
  const std::vector<std::string> names_ = {"CPU:0", "GPU:0"};
  Ledger ledger_;
  const OwnerId owner_ = ledger_.AddOwner(OwnerKind::kModel, "test");
  std::vector<std::unique_ptr<Pool>> pools_;
  std::unique_ptr<ConstantStore> constants_;
  std::unique_ptr<Executor> executor_;
};

class OpenClSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    found_ = *TheTestDevice().found;
    sweep = Sweep();
    sweep.real = found_->platform.api.get();
    found_->platform.api = FailingApi(*sweep.real);
    std::vector<float> values(4 * 6);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5) - 1.5f;
    x_ = Tensor::Of<float>(DType::kF32, {4, 6}, values);
    Parts parts(&threads_);
    ASSERT_TRUE(parts.Open(*found_, cache_.path()).ok());
    auto right = parts.Run(x_);
    ASSERT_TRUE(right.ok()) << right.status();
    right_ = *std::move(right);
    parts.Close();
  }

  void ExpectRight(const std::vector<Tensor>& out, const std::string& where) {
    ASSERT_EQ(out.size(), right_.size()) << where;
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i].desc(), right_[i].desc()) << where;
      EXPECT_TRUE(std::ranges::equal(out[i].bytes(), right_[i].bytes())) << where;
    }
  }

  // One round; returns true when the fault occurred.
  bool Round(std::string_view call, int n, cl_int error, const std::string& cache_folder) {
    const std::string where = StrCat(n, ". cl", call, " gives ", ErrorName(error));
    const LiveObjects before = CountLiveObjects();
    bool met = false;
    {
      Parts parts(&threads_);
      sweep.call = call, sweep.in = n, sweep.error = error;
      const Status opened = parts.Open(*found_, cache_folder);
      if (opened.ok()) {
        const auto out = parts.Run(x_);
        met = sweep.in == 0;
        sweep.in = 0;
        if (out.ok()) {
          ExpectRight(*out, where);
        } else {
          EXPECT_TRUE(met) << where << ": " << out.status();
          ExpectClean(out.status(), where);
        }
        const auto again = parts.Run(x_);
        EXPECT_TRUE(again.ok()) << "after: " << where << ": " << again.status();
        if (again.ok()) ExpectRight(*again, "after: " + where);
      } else {
        met = sweep.in == 0;
        sweep.in = 0;
        EXPECT_TRUE(met) << where << ": " << opened;
        ExpectClean(opened, where);
      }
      parts.Close();
    }
    EXPECT_EQ(CountLiveObjects().total(), before.total()) << where << " leaves objects";
    EXPECT_EQ(CountLiveObjects().abandoned, before.abandoned) << where;
    return met;
  }

  // Failures must contain the driver's error.
  static void ExpectClean(const Status& status, const std::string& where) {
    EXPECT_THAT(Message(status), HasSubstr(ErrorName(sweep.error))) << where;
    EXPECT_THAT(Message(status), HasSubstr("cl")) << where;
  }

  // All rounds of a call; returns their number.
  int All(std::string_view call, cl_int error, const std::string& cache_folder) {
    int n = 1;
    while (n < 1000 && !HasFailure() && Round(call, n, error, cache_folder)) ++n;
    EXPECT_LT(n, 1000);
    return n - 1;
  }

  ThreadPool threads_{2};
  const oncilla::testing::TemporaryFolder cache_;
  std::optional<FoundDevice> found_;
  Tensor x_;
  std::vector<Tensor> right_;
};

TEST_F(OpenClSweep, WhateverCallFailsTheErrorIsCleanAndTheNextRunRight) {
  std::map<std::string, int> met;
  const auto all = [&](std::string_view call) {
    for (const cl_int error : {CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE}) {
      met[std::string(call)] = All(call, error, cache_.path());
    }
  };
#define SWEPT_ALL(name) all(kName##name);
  SWEPT_CALLS(SWEPT_ALL)
#undef SWEPT_ALL
  for (const char* call : {"CreateContext", "CreateBuffer", "CreateCommandQueue", "SetKernelArg",
                           "EnqueueNDRangeKernel", "EnqueueReadBuffer", "EnqueueWriteBuffer",
                           "WaitForEvents", "CreateProgramWithBinary", "CreateKernel"}) {
    EXPECT_GT(met[call], 0) << call;
  }
}

// A capability that failed only because memory was short must not be cached.
TEST_F(OpenClSweep, AFailureOfTheMomentIsNotKept) {
  if (!found_->facts.claims_fp64) GTEST_SKIP() << "the device has no doubles";
  const oncilla::testing::TemporaryFolder fresh;
  const auto has_doubles = [&] {
    DeviceInfo info;
    info.alignment_bytes = 128;
    auto device = ClDevice::Open(*found_, info, {fresh.path(), std::nullopt});
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() && (*device)->capabilities().fp64;
  };
  sweep.call = kNameBuildProgram, sweep.in = 2, sweep.error = CL_OUT_OF_HOST_MEMORY;
  EXPECT_FALSE(has_doubles());
  EXPECT_EQ(sweep.in, 0);
  EXPECT_TRUE(has_doubles());
}

// Without cached programs: compilation of kernels and probing of devices.
TEST_F(OpenClSweep, WhateverBuildFails) {
  for (const std::string_view call :
       {std::string_view(kNameBuildProgram), std::string_view(kNameCreateProgramWithSource)}) {
    EXPECT_GT(All(call, CL_OUT_OF_HOST_MEMORY, ""), 0) << call;
  }
}

}  // namespace
}  // namespace oncilla::opencl
