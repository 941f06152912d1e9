// The free memory that an OpenCL device reports: AMD's query if available, the host's if memory is
// shared, else nothing.
#include <gtest/gtest.h>

#include "backends/opencl/device.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

struct Driver {
  const Api* real = nullptr;
  size_t free_kib = 0;
} driver;

cl_int CL_API_CALL TellFree(cl_device_id device, cl_device_info info, size_t size, void* value,
                            size_t* needed) {
  if (info != 0x4039) return driver.real->GetDeviceInfo(device, info, size, value, needed);
  if (size < 2 * sizeof(size_t)) return CL_INVALID_VALUE;
  static_cast<size_t*>(value)[0] = driver.free_kib;
  static_cast<size_t*>(value)[1] = driver.free_kib / 2;
  return CL_SUCCESS;
}

TEST(OpenClMemory, FreeMemoryIsWhatTheDriverTells) {
  ONCILLA_NEEDS_OPENCL();
  FoundDevice found = *TheTestDevice().found;
  driver.real = TheTestDevice().found->platform.api.get();
  auto api = std::make_shared<Api>(*driver.real);
  api->GetDeviceInfo = &TellFree;
  found.platform.api = std::move(api);
  const auto ask = [&] {
    DeviceInfo info;
    info.backend = "opencl";
    info.name = found.facts.name;
    info.max_allocation_bytes = found.facts.max_allocation;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    auto device = ClDevice::Open(found, info, {});
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? (*device)->free_memory() : std::nullopt;
  };
  driver.free_kib = 1000;
  found.facts.unified_memory = false;
  EXPECT_FALSE(ask().has_value());  // no source reports it
  found.facts.extensions.push_back("cl_amd_device_attribute_query");
  const auto told = ask();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->bytes, 1000 * 1024);
  EXPECT_EQ(told->source, "cl_amd_device_attribute_query");
  // More than the device has is nonsense.
  driver.free_kib = static_cast<size_t>(found.facts.global_memory) / 1024 + 1;
  EXPECT_FALSE(ask().has_value());
  found.facts.unified_memory = true;
  const auto shared = ask();
  ASSERT_TRUE(shared.has_value());
  EXPECT_GT(shared->bytes, 0);
  EXPECT_LE(shared->bytes, found.facts.global_memory);
  EXPECT_NE(shared->source.find("which the device shares"), std::string::npos);
}

}  // namespace
}  // namespace oncilla::opencl
