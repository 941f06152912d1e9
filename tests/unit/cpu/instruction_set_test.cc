// Instructions of the CPU backend are limited for a whole process, so each test runs in its own.
#include "backends/cpu/instruction_set.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/integer/byte_product.h"

namespace oncilla::cpu {
namespace {

TEST(InstructionSetDeathTest, ALimitHoldsWhateverRanBefore) {
  const ByteLayout best = LayoutOfBytes();
  EXPECT_EXIT(
      {
        const bool limited = LimitInstructions("baseline").ok();
        const ByteLayout layout = LayoutOfBytes();
        const bool fewer = layout.panel < best.panel || best.panel <= 8;
        // Asking again changes nothing.
        const bool same = LayoutOfBytes().panel == layout.panel;
        std::_Exit(limited && fewer && same && !layout.quads && !MayUseAvx512Vnni() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InstructionSetDeathTest, ProductsOfBFloat16AreAskedForByNameAndTurnedOffByLesserLevels) {
  if (!MayUseAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16";
  EXPECT_EXIT(
      {
        const bool limited = LimitInstructions("avx512bf16").ok();
        std::_Exit(limited && MayUseAvx512Bf16() && PrefersAvx512Bf16() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        const bool limited = LimitInstructions("avx512vnni").ok();
        const bool off = !MayUseAvx512Bf16() && !PrefersAvx512Bf16() && !MultipliesPairs();
        std::_Exit(limited && off ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InstructionSetDeathTest, TheEnvironmentIsAskedOnce) {
  EXPECT_EXIT(
      {
        setenv("ONCILLA_CPU_TARGET", "mmx", 1);
        const Status status = LimitInstructionsAsAsked();
        const bool named = Message(status).find("ONCILLA_CPU_TARGET") != std::string::npos &&
                           Message(status).find("baseline") != std::string::npos;
        std::_Exit(!status.ok() && named ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace oncilla::cpu
