// Kernels that take places instead of sub-buffers: the rewriting of their text (places.h), and
// which devices use it. (device_test.cc and the cases run such kernels.)
#include "backends/opencl/runtime/places.h"

#include <gmock/gmock.h>

#include <optional>

#include "backends/opencl/simulated/devices.h"
#include "tests/unit/support/environment.h"

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
  EXPECT_THAT(WithPlaces("void f(int n) {}", {"f", {""}}).status().message(),
              HasSubstr("kernel f has an operand without a name"));
}

TEST(OpenClPlaces, NvidiasDevicesHaveThemAndOthersHaveSubBuffers) {
  for (const SimulatedRecord& record : SimulatedRecords()) {
    EXPECT_EQ(CapabilitiesOf(record).sub_buffers, record.facts.platform != "NVIDIA CUDA")
        << record.id;
  }
  EXPECT_FALSE(CapabilitiesOf(**FindSimulated("h200")).sub_buffers);
}

TEST(OpenClPlaces, TheEnvironmentMayChoose) {
  ExpectChosenByEnvironment<std::optional<bool>>(
      "ONCILLA_CL_VIEWS", ForcedViewsFromEnvironment,
      {{"places", false}, {"sub_buffers", true}, {"", std::nullopt}}, "views");
}

}  // namespace
}  // namespace oncilla::opencl
