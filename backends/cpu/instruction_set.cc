// The levels of instructions by name, and what they leave of those that the processor has.
#include "backends/cpu/instruction_set.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "hwy/per_target.h"
#include "hwy/targets.h"

namespace oncilla::cpu {
namespace {

std::atomic<bool> may_use_vnni = true;

struct Level {
  std::string_view name;
  int64_t target;  // of Highway
  bool vnni;
};
constexpr Level kLevels[] = {
#if HWY_ARCH_X86
    {"avx512vnni", HWY_AVX3, true},
    {"avx512", HWY_AVX3, false},
    {"avxvnni", HWY_AVX2, true},
    {"avx2", HWY_AVX2, false},
    {"sse4", HWY_SSE4, false},
#endif
    {"baseline", HWY_STATIC_TARGET, false},
};

}  // namespace

Status LimitInstructions(std::string_view level) {
  std::string known;
  for (const Level& candidate : kLevels) {
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    if (candidate.name != level) continue;
    if ((hwy::SupportedTargets() & candidate.target) == 0) {
      return NotFound("this processor has no ", hwy::TargetName(candidate.target));
    }
    hwy::DisableTargets(candidate.target - 1);  // a better one has a lower bit
    may_use_vnni = candidate.vnni;
    return Status();
  }
  return InvalidArgument("there is no instruction set '", level, "' here: one of ", known);
}

Status LimitInstructionsAsAsked() {
  static const Status status = [] {
    const char* asked = std::getenv("ONCILLA_CPU_TARGET");
    if (asked == nullptr || *asked == '\0') return Status();
    return In(LimitInstructions(asked), "ONCILLA_CPU_TARGET");
  }();
  return status;
}

bool MayUseVnni() { return may_use_vnni; }

}  // namespace oncilla::cpu
