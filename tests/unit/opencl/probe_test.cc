// Capabilities from running kernels, not from claims: false claims, known faults, the choice of
// shape.
#include "backends/opencl/runtime/probe.h"

#include <gmock/gmock.h>

#include "backends/opencl/runtime/capabilities.h"
#include "backends/opencl/runtime/cl_objects.h"
#include "backends/opencl/runtime/quirks.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

// Replaces `from` by `to` in a kernel's text: a device with that arithmetic error.
struct Lie {
  std::string text;
  Source source;
  Lie(const Source& honest, std::string_view from, std::string_view to) : text(honest.text) {
    size_t at = text.find(from);
    EXPECT_NE(at, text.npos);
    for (; at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
    source = {honest.path, text};
  }
};

TEST(OpenClProbe, AnHonestDevicePassesAndLeavesNothing) {
  ONCILLA_NEEDS_OPENCL();
  const int64_t before = CountLiveObjects().total();
  const ProbeResult result = Probe(*TheTestDevice().found);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(CountLiveObjects().total(), before);
  if (TheTestDevice().found->facts.platform == "Portable Computing Language") {
    EXPECT_TRUE(result.fp64);
    EXPECT_TRUE(result.local_groups);
    EXPECT_TRUE(result.profiling);
    EXPECT_GE(result.max_work_group, 256);
    EXPECT_EQ(result.max_loop_trips, 0);
  }
}

TEST(OpenClProbe, AFalseClaimOfHalfIsDropped) {
  ONCILLA_NEEDS_OPENCL();
  FoundDevice device = *TheTestDevice().found;
  if (device.facts.claims_fp16) GTEST_SKIP() << "the device has half arithmetic";
  device.facts.claims_fp16 = true;
  const ProbeResult result = Probe(device);
  EXPECT_EQ(result.failure, "");
  EXPECT_FALSE(result.fp16);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_THAT(result.notes.back(), HasSubstr("no fp16 math: "));
}

// PoCL has no half arithmetic, so it is replaced by arithmetic in float.
TEST(OpenClProbe, HalfArithmeticIsBelievedOnlyWhenItIsRight) {
  ONCILLA_NEEDS_OPENCL();
  FoundDevice device = *TheTestDevice().found;
  device.facts.claims_fp16 = true;
  for (const std::string sum : {"a + b", "a - b"}) {
    const std::string text = StrCat(R"(
__kernel void fp16_ops(__global const half* restrict in, __global half* restrict out) {
  const float a = vload_half(0, in), b = vload_half(1, in);
  vstore_half()",
                                    sum, R"(, 0, out);
  vstore_half(a * b, 1, out);
  vstore_half(sqrt(a), 2, out);
  vstore_half(b, 3, out);
})");
    const Source source{"probe/fp16.cl", text};
    ProbeSources sources = ProbeSources::Embedded();
    sources.fp16 = &source;
    const ProbeResult result = Probe(device, sources);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(result.fp16, sum == "a + b");
    if (!result.fp16) {
      EXPECT_THAT(result.notes.back(), HasSubstr("half arithmetic gives wrong results"));
    }
  }
}

// The portable code of matrix units stands for NVIDIA's instructions here.
TEST(OpenClProbe, MatrixUnitsAreBelievedOnlyWhenEveryProductIsRight) {
  ONCILLA_NEEDS_OPENCL();
  FoundDevice device = *TheTestDevice().found;
  if (!Probe(device).local_groups) GTEST_SKIP() << "groups of one only";
  device.facts.extensions = {"cl_nv_device_attribute_query"};
  ProbeSources sources = ProbeSources::Embedded();
  const std::string dot4 = StrCat("#undef DOT_PTX\n", sources.dot4->text);
  const std::string written = StrCat("#undef MATRIX_PTX\n", sources.matrix->text);
  const Source portable{"probe/dot4.cl", dot4}, honest{"probe/matrix.cl", written};
  sources.dot4 = &portable;
  sources.matrix = &honest;
  EXPECT_EQ(Probe(device, sources).matrix_unit, MatrixUnit::kPtx);
  // A sum of each lane that is another's, and a matrix that lies the other way.
  for (const auto& [from, to] :
       {std::pair{"lane % 4 * 2 + 1, 1, lower.y", "lane % 4 * 2, 1, lower.y"},
        {"LOAD_MATRICES_TURNED(u,", "LOAD_MATRICES(u,"}}) {
    const Lie lie(honest, from, to);
    sources.matrix = &lie.source;
    const ProbeResult result = Probe(device, sources);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(result.matrix_unit, MatrixUnit::kNone);
    ASSERT_FALSE(result.notes.empty());
    EXPECT_THAT(result.notes.back(), HasSubstr("no products of matrices: "));
  }
  device.facts.extensions.clear();
  sources.matrix = &honest;
  EXPECT_EQ(Probe(device, sources).matrix_unit, MatrixUnit::kNone);
}

TEST(OpenClProbe, WrongDoublesAreDropped) {
  ONCILLA_NEEDS_OPENCL();
  if (!TheTestDevice().found->facts.claims_fp64) GTEST_SKIP() << "the device has no doubles";
  ProbeSources sources = ProbeSources::Embedded();
  const Lie lie(*sources.fp64, "a / b", "(double)((float)a / (float)b)");
  sources.fp64 = &lie.source;
  const ProbeResult result = Probe(*TheTestDevice().found, sources);
  EXPECT_EQ(result.failure, "");
  EXPECT_FALSE(result.fp64);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_THAT(result.notes.back(), HasSubstr("double arithmetic gives wrong results"));
}

TEST(OpenClProbe, BrokenBarriersLeaveGroupsOfOne) {
  ONCILLA_NEEDS_OPENCL();
  ProbeSources sources = ProbeSources::Embedded();
  const Lie lie(*sources.basics, "tmp[lid] += tmp[lid + s]", "tmp[lid] += 1");
  sources.basics = &lie.source;
  const FoundDevice& device = *TheTestDevice().found;
  const ProbeResult result = Probe(device, sources);
  EXPECT_EQ(result.failure, "");
  EXPECT_FALSE(result.local_groups);
  EXPECT_EQ(MakeCapabilities(device.facts, result, std::nullopt).Group(64), 1);
}

TEST(OpenClProbe, CappedLoopsAreMeasured) {
  ONCILLA_NEEDS_OPENCL();
  ProbeSources sources = ProbeSources::Embedded();
  const Lie lie(*sources.basics, "i < n", "i < min(n, 65535)");
  sources.basics = &lie.source;
  const ProbeResult result = Probe(*TheTestDevice().found, sources);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.max_loop_trips, 65535);
}

TEST(OpenClProbe, WrongIntegersMakeADeviceUnusable) {
  ONCILLA_NEEDS_OPENCL();
  ProbeSources sources = ProbeSources::Embedded();
  const Lie lie(*sources.basics, "a * b", "(long)((int)a * (int)b)");
  sources.basics = &lie.source;
  EXPECT_THAT(Probe(*TheTestDevice().found, sources).failure,
              HasSubstr("64-bit integer arithmetic gives wrong results"));
}

TEST(OpenClProbe, ResultsSurviveTheirText) {
  ProbeResult r;
  r.fp64 = r.local_groups = true;
  r.max_work_group = 4096;
  r.sub_group = 8;
  r.matrix_unit = MatrixUnit::kPtx;
  r.notes = {"one", "two = 2"};
  EXPECT_EQ(ParseProbe(ToText(r)), r);
  r.failure = "no";
  EXPECT_EQ(ParseProbe(ToText(r)), r);
  EXPECT_EQ(ParseProbe(""), std::nullopt);
  EXPECT_EQ(ParseProbe("fp64=1\n"), std::nullopt);
  EXPECT_EQ(ParseProbe(ToText(r) + "fp32=1\n"), std::nullopt);
  EXPECT_EQ(ParseProbe(ToText(r) + "junk"), std::nullopt);
}

DeviceFacts Facts(std::string platform, std::string driver, int64_t width, int64_t local_kib,
                  bool real_local) {
  DeviceFacts f;
  f.platform = std::move(platform);
  f.driver = std::move(driver);
  f.native_float_width = width;
  f.local_memory = local_kib << 10;
  f.local_memory_is_real = real_local;
  f.max_work_group = 1024;
  f.max_work_items = {1024, 1024, 64};
  f.base_alignment = 128;
  return f;
}

TEST(OpenClCapabilities, ShapeFollowsVectorsAndLocalMemoryNotTypeOrVendor) {
  auto shape = [](const DeviceFacts& f) { return MakeCapabilities(f, {}, std::nullopt).shape; };
  EXPECT_EQ(shape(Facts("pocl", "3.1", 16, 1024, false)), KernelShape::kCpu);
  EXPECT_EQ(shape(Facts("rusticl", "25.0", 1, 32, false)), KernelShape::kGpu);
  EXPECT_EQ(shape(Facts("a mobile GPU", "1.0", 4, 32, false)), KernelShape::kGpu);
  EXPECT_EQ(shape(Facts("NVIDIA CUDA", "580.1", 1, 48, true)), KernelShape::kGpu);
  EXPECT_EQ(MakeCapabilities(Facts("x", "1", 1, 32, true), {}, KernelShape::kCpu).shape,
            KernelShape::kCpu);
}

TEST(OpenClCapabilities, FamiliesOfGpusAreToldByTheirDriversWords) {
  const auto caps = [](std::string vendor, std::string name, DeviceType type = DeviceType::kGpu) {
    DeviceFacts f = Facts("x", "1", 1, 32, true);
    f.vendor = std::move(vendor);
    f.name = std::move(name);
    f.type = type;
    f.compute_units = 512;
    return MakeCapabilities(f, {}, std::nullopt);
  };
  EXPECT_EQ(caps("NVIDIA Corporation", "NVIDIA H200").family, GpuFamily::kNvidia);
  EXPECT_EQ(caps("Advanced Micro Devices, Inc.", "gfx1030").family, GpuFamily::kAmdWave32);
  EXPECT_EQ(caps("AMD", "AMD Radeon RX 6700 XT (radeonsi, navi22)").family, GpuFamily::kAmdWave32);
  EXPECT_EQ(caps("Advanced Micro Devices, Inc.", "gfx90a:sramecc+:xnack-").family,
            GpuFamily::kAmdWave64);
  EXPECT_EQ(caps("Intel(R) Corporation", "Intel(R) Arc(TM) A770").family, GpuFamily::kIntel);
  EXPECT_EQ(caps("Intel(R) Corporation", "Intel(R) Arc(TM) A770").cores(), 32);
  EXPECT_EQ(caps("ARM", "Mali-G710 MC10").family, GpuFamily::kMali);
  EXPECT_EQ(caps("QUALCOMM", "QUALCOMM Adreno(TM)").family, GpuFamily::kAdreno);
  EXPECT_EQ(caps("Intel(R) Corporation", "AMD EPYC", DeviceType::kCpu).family, GpuFamily::kAny);
  EXPECT_EQ(caps("someone", "something").cores(), 512);
}

TEST(OpenClCapabilities, KnownFaultsApplyInTheirRangeOnly) {
  auto caps = [](std::string platform, std::string driver) {
    return MakeCapabilities(Facts(std::move(platform), std::move(driver), 1, 32, true), {},
                            std::nullopt);
  };
  EXPECT_EQ(caps("rusticl", "22.3.6").max_loop_trips, 65536);
  EXPECT_EQ(caps("rusticl", "25.0.7").max_loop_trips, 0);
  EXPECT_FALSE(caps("rusticl", "25.0.7").program_binaries);
  EXPECT_TRUE(caps("Oclgrind", "Oclgrind 21.10").one_caller);
  EXPECT_FALSE(caps("NVIDIA CUDA", "580.95").one_caller);
  for (const Quirk& quirk : Quirks()) EXPECT_GT(quirk.reason.size(), 20u);
}

TEST(OpenClCapabilities, GroupsAreThePowersOfTwoThatWork) {
  Capabilities c;
  EXPECT_EQ(c.Group(256), 1);
  c.local_groups = true;
  c.max_work_group = 96;
  EXPECT_EQ(c.Group(256), 64);
  EXPECT_EQ(c.Group(48), 32);
}

}  // namespace
}  // namespace oncilla::opencl
