// Which instructions fast code may use: the best that this processor has, or fewer on request.
#pragma once

#include <string_view>

#include "engine/base/status.h"

namespace oncilla::cpu {

// From `level` down only, for the whole process: on x86 avx512vnni, avx512, avxvnni, avx2 or sse4,
// anywhere baseline, which every processor of this architecture has. Before the first kernel is
// made. NotFound where this processor has less than that.
Status LimitInstructions(std::string_view level);
// As the environment's ONCILLA_CPU_TARGET asks, where it is set. Later calls repeat the answer.
Status LimitInstructionsAsAsked();

// Whether integer products may use AVX-512 VNNI or AVX-VNNI, where the processor has them.
bool MayUseVnni();

}  // namespace oncilla::cpu
