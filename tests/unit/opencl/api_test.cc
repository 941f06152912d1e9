// Opening OpenCL: where it is searched, the result when it is absent, errors, counted handles.
#include <gmock/gmock.h>

#include "backends/opencl/runtime/cl_objects.h"
#include "backends/opencl/runtime/discovery.h"
#include "backends/opencl/runtime/installed_drivers.h"
#include "tests/unit/support/opencl_device.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

LibraryOptions Only(std::vector<std::string> loaders, std::vector<std::string> drivers) {
  LibraryOptions options;
  options.loaders = std::move(loaders);
  options.drivers = std::move(drivers);
  return options;
}

// The device computes 1 + 2, so the whole chain of objects works.
void ExpectWorks(const FoundDevice& d) {
  const Api& api = *d.platform.api;
  auto context = CreateContext(api, d.platform.id, d.id);
  ASSERT_TRUE(context.ok()) << context.status();
  auto queue = CreateQueue(api, context->get(), d.id, false);
  ASSERT_TRUE(queue.ok()) << queue.status();
  auto buffer = CreateBuffer(api, context->get(), 64);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  auto program = BuildFromSource(api, context->get(), d.id, "add",
                                 "__kernel void add(__global int* a) { a[2] = a[0] + a[1]; }", "");
  ASSERT_TRUE(program.ok()) << program.status();
  auto kernel = CreateKernel(api, program->get(), "add");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int32_t data[3] = {1, 2, 0};
  cl_mem mem = buffer->get();
  const size_t one = 1;
  ASSERT_EQ(api.SetKernelArg(kernel->get(), 0, sizeof(mem), &mem), CL_SUCCESS);
  ASSERT_EQ(api.EnqueueWriteBuffer(queue->get(), mem, CL_TRUE, 0, sizeof(data), data, 0, nullptr,
                                   nullptr),
            CL_SUCCESS);
  ASSERT_EQ(api.EnqueueNDRangeKernel(queue->get(), kernel->get(), 1, nullptr, &one, &one, 0,
                                     nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(
      api.EnqueueReadBuffer(queue->get(), mem, CL_TRUE, 0, sizeof(data), data, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(data[2], 3);
}

TEST(OpenClApi, AbsenceIsAnEmptyListWithAReason) {
  const Opened opened = OpenPlatforms(Only({"libNoOpenCL.so.1"}, {"libno-driver.so"}));
  EXPECT_TRUE(opened.platforms.empty());
  EXPECT_THAT(opened.reason, HasSubstr("libNoOpenCL.so.1"));
  const Discovery discovery = Discover(Only({}, {}));
  EXPECT_TRUE(discovery.devices.empty());
  EXPECT_THAT(discovery.reason, HasSubstr("no OpenCL library"));
}

TEST(OpenClApi, ALibraryThatIsNotOpenClIsRefusedByName) {
  LibraryOptions options;
  options.library = "libm.so.6";
  const Opened opened = OpenPlatforms(options);
  EXPECT_TRUE(opened.platforms.empty());
  EXPECT_THAT(opened.reason, HasSubstr("libm.so.6 has no clGetPlatformIDs"));
  EXPECT_THAT(opened.reason, HasSubstr("not an installable driver"));
}

// The same files as the loaders find; invalid or unreadable ones are skipped.
TEST(OpenClApi, InstalledDriversAreThoseThatTheLoaderWouldOpen) {
  const oncilla::testing::TemporaryFolder folder;
  folder.Write("a.icd", "libfirst.so.1\nlibother.so\n");
  folder.Write("b.icd", "/opt/second.so \r\n");
  folder.Write("c.icd", "");
  folder.Write("d.txt", "libno.so\n");
  using Names = std::vector<std::string>;
  DriverChoice choice;
  choice.folder = folder.path();
  EXPECT_EQ(InstalledDrivers(choice), Names({"libfirst.so.1", "/opt/second.so"}));
  choice.vendors = "b.icd";
  EXPECT_EQ(InstalledDrivers(choice), Names({"/opt/second.so"}));
  choice.vendors = folder.File("a.icd");
  EXPECT_EQ(InstalledDrivers(choice), Names({"libfirst.so.1"}));
  choice.vendors = "/lib/libdriver.so";
  choice.filenames = "libx.so::liby.so";
  EXPECT_EQ(InstalledDrivers(choice), Names({"libx.so", "liby.so", "/lib/libdriver.so"}));
  choice = {.filenames = "", .vendors = "", .folder = folder.File("nothing")};
  EXPECT_TRUE(InstalledDrivers(choice).empty());
}

TEST(OpenClApi, TheLoaderGivesAWorkingDevice) {
  ONCILLA_NEEDS_OPENCL();
  ExpectWorks(*TheTestDevice().found);
}

TEST(OpenClApi, ADriverWorksWithoutALoader) {
  const Discovery discovery = Discover(Only({"libNoOpenCL.so.1"}, {"libpocl.so.2"}));
  if (discovery.devices.empty()) GTEST_SKIP() << "not run: no PoCL to open without a loader";
  EXPECT_EQ(discovery.devices[0].platform.library, "libpocl.so.2");
  ExpectWorks(discovery.devices[0]);
}

TEST(OpenClApi, FactsAreInBytesAndPlausible) {
  ONCILLA_NEEDS_OPENCL();
  const DeviceFacts& f = TheTestDevice().found->facts;
  EXPECT_FALSE(f.name.empty());
  EXPECT_FALSE(f.driver.empty());
  EXPECT_GE(f.version_major * 10 + f.version_minor, 12);
  EXPECT_EQ(f.base_alignment & (f.base_alignment - 1), 0);
  // The claim is used to place sub-buffers, so it must be enough for one.
  const FoundDevice& d = *TheTestDevice().found;
  auto context = CreateContext(*d.platform.api, d.platform.id, d.id);
  auto buffer =
      CreateBuffer(*d.platform.api, context->get(), static_cast<size_t>(2 * f.base_alignment));
  ASSERT_TRUE(buffer.ok());
  EXPECT_TRUE(
      CreateSubBuffer(*d.platform.api, buffer->get(), static_cast<size_t>(f.base_alignment), 4)
          .ok());
}

TEST(OpenClApi, ErrorsHaveNamesCodesAndTheDriversNumber) {
  const Status exhausted = Check(CL_INVALID_BUFFER_SIZE, "clCreateBuffer");
  EXPECT_EQ(exhausted.code(), Code::kResourceExhausted);
  EXPECT_EQ(Message(exhausted), "clCreateBuffer: CL_INVALID_BUFFER_SIZE (-61)");
  EXPECT_EQ(Details(exhausted).driver_code, -61);
  EXPECT_EQ(Details(exhausted).stage, Stage::kDevice);
  for (cl_int error : {-4, -5, -6}) EXPECT_EQ(Check(error, "x").code(), Code::kResourceExhausted);
  EXPECT_EQ(Check(-36, "x").code(), Code::kUnavailable);
  EXPECT_EQ(Message(Check(-12345, "x")), "x: error -12345 (-12345)");
}

TEST(OpenClApi, AFailedBuildKeepsTheLogAndTheLine) {
  ONCILLA_NEEDS_OPENCL();
  const FoundDevice& d = *TheTestDevice().found;
  auto context = CreateContext(*d.platform.api, d.platform.id, d.id);
  ASSERT_TRUE(context.ok());
  auto program = BuildFromSource(*d.platform.api, context->get(), d.id, "norm/bad.cl",
                                 "#line 41 \"norm/bad.cl\"\n__kernel void k() { oops; }", "");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(program.status()), HasSubstr("oops"));
  EXPECT_EQ(Details(program.status()).driver_code, -11);
}

TEST(OpenClApi, ReleasedAndMovedHandlesAreCountedOnce) {
  ONCILLA_NEEDS_OPENCL();
  const FoundDevice& d = *TheTestDevice().found;
  const LiveObjects before = CountLiveObjects();
  {
    auto context = CreateContext(*d.platform.api, d.platform.id, d.id);
    ASSERT_TRUE(context.ok());
    auto buffer = CreateBuffer(*d.platform.api, context->get(), 4096);
    ASSERT_TRUE(buffer.ok());
    Memory moved = *std::move(buffer);
    Memory other;
    other = std::move(moved);
    EXPECT_EQ(CountLiveObjects().buffers, before.buffers + 1);
    EXPECT_EQ(CountLiveObjects().contexts, before.contexts + 1);
  }
  EXPECT_EQ(CountLiveObjects().total(), before.total());
}

}  // namespace
}  // namespace oncilla::opencl
