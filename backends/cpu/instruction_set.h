// Which instructions fast code may use: the best of this processor, or fewer on request.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla::cpu {

// Limits the whole process to `level` and lower: on x86 avx512bf16, avx512vnni, avx512, avxvnni,
// avx2 or sse4, anywhere baseline, which every processor of this architecture has. BF16 and VNNI
// are allowed by their levels, not required: without them they are avx512 and avx2. To be called
// before the first kernel is made. NotFound if this processor has no AVX-512, AVX2 or SSE4.
Status LimitInstructions(std::string_view level);
// Applies the environment variable ONCILLA_CPU_TARGET, if it is set. Later calls return the same
// result.
Status LimitInstructionsAsAsked();

// Whether `target`, one of Highway's, may be used. Do not call hwy::SupportedTargets instead: in
// version 1.0 that call discards the limit.
bool MayUseTarget(int64_t target);
// Instructions that this version of Highway does not support: whether the processor has them and
// they may be used. Products of four bytes, on vectors of 512 and of 256 bits; lookups in 128
// bytes; products of two bfloat16.
bool MayUseAvx512Vnni();
bool MayUseAvxVnni();
bool MayUseAvx512Vbmi();
bool MayUseAvx512Bf16();
// Whether those are also faster than products of float. They are on AMD's processors (nearly twice
// as fast on Zen 5). On Intel's (Emerald Rapids) one takes two cycles, in which two units for float
// do the work of two of them; there the level avx512bf16 must be requested by name.
bool PrefersAvx512Bf16();

}  // namespace oncilla::cpu
