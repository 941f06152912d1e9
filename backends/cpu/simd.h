// Which instruction sets the fast kernels are compiled for; include before any Highway header.
//
// A fast kernel is one source compiled once per set (hwy/foreach_target.h) and chosen when the
// program runs. SSSE3 and the AVX-512 variants beyond the base one bring nothing to float code.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
