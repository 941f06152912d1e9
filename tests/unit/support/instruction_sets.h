// Tests of vector code on every instruction set of this machine. To be included first: the sets
// that backends/cpu/simd.h leaves out must be known before Highway's headers are read.
#pragma once

#if defined(ONCILLA_FEW_SIMD_TARGETS)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace oncilla::cpu {

// Calls fn() with each set of instructions that was compiled and runs here, the baseline included.
template <class F>
void ForInstructionSets(F&& fn) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    fn();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace oncilla::cpu
