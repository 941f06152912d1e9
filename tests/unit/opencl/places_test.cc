// Kernels that take places instead of sub-buffers: the change of their text (places.h), and which
// devices have it. (device_test.cc and the cases run such kernels.)
#include "backends/opencl/runtime/places.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "backends/opencl/simulated/devices.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

TEST(OpenClPlaces, NothingChangesWithoutOperands) {
  EXPECT_EQ(*WithPlaces("__kernel void f(int n) {}", {"f", {}}), "__kernel void f(int n) {}");
}

TEST(OpenClPlaces, AKernelGetsParametersAtTheEndAndMovesItsOperandsFirst) {
  const std::string text =
      "void g(int f) {}\n"
      "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\nvoid f(__global const T(float)* "
      "x,\n"
      "#ifdef MORE\n  const int m,\n#endif\n  const int n) {\n  x[0];\n}\n";
  EXPECT_EQ(*WithPlaces(text, {"f", {"x"}}),
            "void g(int f) {}\n"
            "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
            "void f(__global const T(float)* x,\n"
            "#ifdef MORE\n  const int m,\n#endif\n  const int n, const ulong place_of_x) { "
            "x = (__global void*)((__global char*)x + place_of_x);\n  x[0];\n}\n");
}

TEST(OpenClPlaces, EachDefinitionIsChangedAndOthersAreNot) {
  const std::string text =
      "#if A\nvoid f(int* x) {}\n#else\nvoid f(int* x, int n) {}\n#endif\nvoid ff(int* x) {}";
  const std::string changed = *WithPlaces(text, {"f", {"x"}});
  EXPECT_THAT(changed, HasSubstr("f(int* x, const ulong place_of_x) { x ="));
  EXPECT_THAT(changed, HasSubstr("f(int* x, int n, const ulong place_of_x) { x ="));
  EXPECT_THAT(changed, HasSubstr("void ff(int* x) {}"));
}

TEST(OpenClPlaces, AKernelThatIsNotThereIsNamed) {
  EXPECT_THAT(WithPlaces("void f(int n) {}", {"g", {"x"}}).status().message(),
              HasSubstr("kernel g is not defined"));
}

TEST(OpenClPlaces, NvidiasDevicesHaveThemAndOthersHaveSubBuffers) {
  for (const SimulatedRecord& record : SimulatedRecords()) {
    EXPECT_EQ(CapabilitiesOf(record).sub_buffers, record.facts.platform != "NVIDIA CUDA")
        << record.id;
  }
  EXPECT_FALSE(CapabilitiesOf(**FindSimulated("h200")).sub_buffers);
}

TEST(OpenClPlaces, TheEnvironmentMayChoose) {
  constexpr const char* kName = "ONCILLA_CL_VIEWS";
  const char* before = std::getenv(kName);
  const std::string kept = before == nullptr ? "" : before;
  for (const auto& [text, choice] : {std::pair<const char*, std::optional<bool>>{"places", false},
                                     {"sub_buffers", true},
                                     {"", std::nullopt}}) {
    setenv(kName, text, 1);
    const auto read = ForcedViewsFromEnvironment();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, choice) << text;
  }
  setenv(kName, "views", 1);
  EXPECT_EQ(ForcedViewsFromEnvironment().status().code(), Code::kInvalidArgument);
  setenv(kName, kept.c_str(), 1);
}

}  // namespace
}  // namespace oncilla::opencl
