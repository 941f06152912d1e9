// The levels of instructions by name, and what they leave of those that the processor has.
#include "backends/cpu/instruction_set.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "hwy/per_target.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace oncilla::cpu {
namespace {

std::atomic<bool> may_use_newest = true;

// Of Highway. Asked once: each question makes Highway choose anew, from all there are.
int64_t ProcessorTargets() {
  static const int64_t targets = hwy::SupportedTargets();
  return targets;
}
std::atomic<int64_t> allowed_targets = ~int64_t{0};

struct Level {
  std::string_view name;
  int64_t target;  // of Highway
  bool newest;     // what came after AVX-512's first and AVX2's first instructions
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
    if ((ProcessorTargets() & candidate.target) == 0) {
      return NotFound("this processor has no ", hwy::TargetName(candidate.target));
    }
    allowed_targets = ~(candidate.target - 1);  // a better one has a lower bit
    hwy::DisableTargets(candidate.target - 1);
    // Whatever ran before has made a choice.
    hwy::GetChosenTarget().Update(ProcessorTargets() & allowed_targets);
    may_use_newest = candidate.newest;
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

bool MayUseTarget(int64_t target) { return (ProcessorTargets() & allowed_targets & target) != 0; }

#if HWY_ARCH_X86
namespace {
// A bit of what CPUID's leaf 7 gives: registers are eax, ebx, ecx, edx. Whether the system keeps
// the registers of `target` is a question that Highway asked.
bool HasFeature(int64_t target, unsigned part, int at, int bit) {
  unsigned registers[4] = {};
  if (!MayUseTarget(target) ||
      __get_cpuid_count(7, part, &registers[0], &registers[1], &registers[2], &registers[3]) == 0) {
    return false;
  }
  return (registers[at] >> bit & 1) != 0;
}
}  // namespace

bool MayUseAvx512Vnni() { return may_use_newest && HasFeature(HWY_AVX3, 0, 2, 11); }
bool MayUseAvxVnni() { return may_use_newest && HasFeature(HWY_AVX2, 1, 0, 4); }
bool MayUseAvx512Vbmi() { return may_use_newest && HasFeature(HWY_AVX3, 0, 2, 1); }
#else
bool MayUseAvx512Vnni() { return false; }
bool MayUseAvxVnni() { return false; }
bool MayUseAvx512Vbmi() { return false; }
#endif

}  // namespace oncilla::cpu
