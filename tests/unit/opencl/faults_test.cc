// Drivers that fail: out of memory at any point, lost or hung devices, objects that cannot be
// created. Faults are put into a copy of the function table, so that a particular call fails.
#include <gmock/gmock.h>

#include "backends/opencl/device.h"
#include "engine/ops/op_set.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

// What the faulty calls do; the real ones are called through `real`.
struct Faults {
  const Api* real = nullptr;
  int create_buffer_in = -1;  // this many calls from now; negative: never
  int write_in = -1;
  int launch_in = -1;
  cl_int launch_error = CL_OUT_OF_RESOURCES;
  cl_int wait_error = CL_SUCCESS;
  bool no_kernel = false;
  bool hang = false;
  size_t group_limit = 0;
} faults;

bool Due(int& in) { return in >= 0 && in-- == 0; }

cl_mem CL_API_CALL FaultyCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                      void* host, cl_int* error) {
  if (Due(faults.create_buffer_in)) {
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return nullptr;
  }
  return faults.real->CreateBuffer(context, flags, size, host, error);
}
cl_int CL_API_CALL FaultyWrite(cl_command_queue queue, cl_mem to, cl_bool wait, size_t offset,
                               size_t size, const void* from, cl_uint count, const cl_event* events,
                               cl_event* event) {
  if (Due(faults.write_in)) return CL_OUT_OF_HOST_MEMORY;
  return faults.real->EnqueueWriteBuffer(queue, to, wait, offset, size, from, count, events, event);
}
cl_int CL_API_CALL FaultyLaunch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                const size_t* offset, const size_t* global, const size_t* local,
                                cl_uint count, const cl_event* events, cl_event* event) {
  if (Due(faults.launch_in)) return faults.launch_error;
  return faults.real->EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count,
                                           events, event);
}
cl_int CL_API_CALL FaultyWait(cl_uint count, const cl_event* events) {
  const cl_int error = faults.real->WaitForEvents(count, events);
  return faults.wait_error != CL_SUCCESS ? faults.wait_error : error;
}
cl_int CL_API_CALL FaultyEventInfo(cl_event event, cl_event_info info, size_t size, void* value,
                                   size_t* needed) {
  const cl_int error = faults.real->GetEventInfo(event, info, size, value, needed);
  if (faults.hang) *static_cast<cl_int*>(value) = CL_RUNNING;
  return error;
}
cl_kernel CL_API_CALL FaultyCreateKernel(cl_program program, const char* name, cl_int* error) {
  if (faults.no_kernel) {
    *error = CL_SUCCESS;
    return nullptr;
  }
  return faults.real->CreateKernel(program, name, error);
}
cl_int CL_API_CALL FaultyGroupInfo(cl_kernel kernel, cl_device_id device,
                                   cl_kernel_work_group_info info, size_t size, void* value,
                                   size_t* needed) {
  const cl_int error =
      faults.real->GetKernelWorkGroupInfo(kernel, device, info, size, value, needed);
  if (info == CL_KERNEL_WORK_GROUP_SIZE && faults.group_limit != 0) {
    *static_cast<size_t*>(value) = faults.group_limit;
  }
  return error;
}

class OpenClFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    before_ = CountLiveObjects();
    FoundDevice found = *TheTestDevice().found;
    auto api = std::make_shared<Api>(*found.platform.api);
    faults = Faults{.real = TheTestDevice().found->platform.api.get()};
    api->CreateBuffer = &FaultyCreateBuffer;
    api->EnqueueWriteBuffer = &FaultyWrite;
    api->EnqueueNDRangeKernel = &FaultyLaunch;
    api->WaitForEvents = &FaultyWait;
    api->GetEventInfo = &FaultyEventInfo;
    api->CreateKernel = &FaultyCreateKernel;
    api->GetKernelWorkGroupInfo = &FaultyGroupInfo;
    found.platform.api = std::move(api);
    DeviceInfo info;
    info.backend = "opencl";
    info.name = found.facts.name;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    auto opened = ClDevice::Open(found, info, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    faults = Faults{.real = faults.real};
    device_.reset();
    if (!abandons_) {
      EXPECT_EQ(CountLiveObjects().abandoned, before_.abandoned);
      EXPECT_EQ(CountLiveObjects().total(), before_.total()) << "OpenCL objects are left";
    }
  }

  // A node of the op set with one float input of `n` elements.
  std::unique_ptr<Kernel> PrepareOne(std::string_view op, int64_t n) {
    const std::shared_ptr<const OpSet> ops = OpSet::Builtin();
    const AttrMap attrs;
    const Facts in = {Fact::Of({DType::kF32, {n}})};
    const Facts out = in;
    auto kernel = device_->Prepare({ops->Find(op), &attrs, in, out, "node"});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel.ok() ? *std::move(kernel) : nullptr;
  }

  LiveObjects before_;
  bool abandons_ = false;
  std::unique_ptr<ClDevice> device_;
};

TEST_F(OpenClFaults, MemoryRefusedAtOnceOrLazilyIsExhaustedAndNothingLeaks) {
  const int64_t before = CountLiveObjects().buffers;
  faults.create_buffer_in = 0;
  const Status at_once = device_->AllocateRegion(1 << 20).status();
  EXPECT_EQ(at_once.code(), Code::kResourceExhausted);
  EXPECT_EQ(Details(at_once).driver_code, -4);
  for (const int in : {0, 1}) {  // a lazy driver: the first use of either end
    faults.write_in = in;
    const Status lazily = device_->AllocateRegion(1 << 20).status();
    EXPECT_EQ(lazily.code(), Code::kResourceExhausted);
    EXPECT_THAT(Message(lazily), HasSubstr("committing 1048576 bytes: CL_OUT_OF_HOST_MEMORY"));
  }
  faults.wait_error = CL_OUT_OF_RESOURCES;
  EXPECT_EQ(device_->AllocateRegion(1 << 20).status().code(), Code::kResourceExhausted);
  faults.wait_error = CL_SUCCESS;
  EXPECT_EQ(CountLiveObjects().buffers, before);
  auto region = device_->AllocateRegion(1 << 20);
  EXPECT_TRUE(region.ok());
  EXPECT_TRUE(device_->ReleaseRegion(*std::move(region)).ok());
}

TEST_F(OpenClFaults, AFailedLaunchNamesItsNodeAndTheDeviceGoesOn) {
  auto region = *device_->AllocateRegion(4096);
  auto queue = *device_->OpenQueue();
  const auto kernel = PrepareOne("Relu", 4);
  const BufferView view{region.get(), 0, 16};
  auto recording = device_->Record({{kernel.get(), {{view}}, {{view}}, {}, "first"},
                                    {kernel.get(), {{view}}, {{view}}, {}, "second"}});
  ASSERT_TRUE(recording.ok());
  faults.launch_in = 1;
  const Status no_memory = device_->Submit(*queue, **recording, {}, {}).status();
  EXPECT_EQ(no_memory.code(), Code::kResourceExhausted);
  EXPECT_EQ(Details(no_memory).node, "second");
  EXPECT_THAT(Message(no_memory), HasSubstr("node 'second' (Relu): clEnqueueNDRangeKernel"));
  faults.launch_in = 0;
  faults.launch_error = CL_INVALID_COMMAND_QUEUE;
  EXPECT_EQ(device_->Submit(*queue, **recording, {}, {}).status().code(), Code::kUnavailable);
  auto event = device_->Submit(*queue, **recording, {}, {});
  ASSERT_TRUE(event.ok());
  faults.wait_error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  EXPECT_EQ(device_->Wait(*event, kNoDeadline).code(), Code::kUnavailable);
  EXPECT_EQ(device_->Wait(*event, kNoDeadline).code(), Code::kUnavailable) << "it stays so";
  faults.wait_error = CL_SUCCESS;
  event = device_->Submit(*queue, **recording, {}, {});
  ASSERT_TRUE(event.ok());
  EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  queue.reset();
  recording->reset();
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
}

TEST_F(OpenClFaults, AKernelThatIsNotThereIsNeverLaunched) {
  const auto kernel = PrepareOne("Relu", 4);
  auto region = *device_->AllocateRegion(4096);
  const BufferView view{region.get(), 0, 16};
  faults.no_kernel = true;
  const Status status = device_->Record({{kernel.get(), {{view}}, {{view}}, {}, "n"}}).status();
  EXPECT_THAT(Message(status), HasSubstr("the driver gave no object and no error"));
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
}

TEST_F(OpenClFaults, RecipesAreMadeAgainForKernelsWithSmallerGroups) {
  if (device_->capabilities().max_work_group < 64) GTEST_SKIP() << "groups are small anyway";
  faults.group_limit = 32;
  const auto kernel = PrepareOne("Relu", 1000);
  ASSERT_NE(kernel, nullptr);
  EXPECT_THAT(kernel->description(), HasSubstr("local=32"));
}

TEST_F(OpenClFaults, AHungDeviceIsGivenUpAndNeverWaitedFor) {
  abandons_ = true;
  auto region = *device_->AllocateRegion(4096);
  auto queue = *device_->OpenQueue();
  auto kernel = PrepareOne("Relu", 4);
  const BufferView view{region.get(), 0, 16};
  auto recording = device_->Record({{kernel.get(), {{view}}, {{view}}, {}, "n"}});
  ASSERT_TRUE(recording.ok());
  auto event = device_->Submit(*queue, **recording, {}, {});
  ASSERT_TRUE(event.ok());
  faults.hang = true;
  const auto begin = std::chrono::steady_clock::now();
  const Status late = device_->Wait(*event, begin + std::chrono::milliseconds(50));
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(device_->Poll(*event));
  queue.reset();
  EXPECT_EQ(device_->Wait(*event, kNoDeadline).code(), Code::kUnavailable);
  recording->reset();
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
  kernel.reset();
  device_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_GT(CountLiveObjects().abandoned, before_.abandoned);
  EXPECT_EQ(CountLiveObjects().contexts, before_.contexts);
}

TEST_F(OpenClFaults, AFailedTransferLeavesTheCallersMemoryAlone) {
  auto region = *device_->AllocateRegion(4096);
  auto queue = *device_->OpenQueue();
  std::vector<float> data(8);
  const Upload uploads[] = {{{region.get(), 0, 32}, std::as_bytes(std::span(data))},
                            {{region.get(), 64, 32}, std::as_bytes(std::span(data))}};
  faults.write_in = 1;
  EXPECT_EQ(device_->Transfer(*queue, uploads, {}).status().code(), Code::kResourceExhausted);
  const Upload beyond{{region.get(), 4000, 200}, std::as_bytes(std::span(data))};
  EXPECT_FALSE(device_->Transfer(*queue, {&beyond, 1}, {}).ok());
  const Upload short_of{{region.get(), 0, 16}, std::as_bytes(std::span(data))};
  EXPECT_FALSE(device_->Transfer(*queue, {&short_of, 1}, {}).ok());
  queue.reset();
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
}

}  // namespace
}  // namespace oncilla::opencl
