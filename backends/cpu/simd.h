// Compiles a source once per instruction set; the program chooses one at run time.
//
// A source with a fast kernel starts with
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "backends/cpu/<its name>"
//   // clang-format off
//   #include "backends/cpu/simd.h"
//   // clang-format on
// before all other includes. SSSE3 and the AVX-512 variants beyond the first bring nothing to float
// code and are left out.
#pragma once

#if defined(ONCILLA_FEW_SIMD_TARGETS)  // AVX2 and the baseline, for builds that are not for speed
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif

#include "hwy/foreach_target.h"
