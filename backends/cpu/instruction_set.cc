// The instruction levels by name, and how a level limits the instructions that are used.
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

// Extensions that are newer than the instructions that define their Highway target.
enum class Newest { kNone, kByteProducts, kAll };
std::atomic<Newest> may_use_newest = Newest::kAll;
std::atomic<bool> bf16_by_name = false;

// Highway's targets for this processor. Cached, because each query makes Highway choose again from
// all targets.
int64_t ProcessorTargets() {
  static const int64_t targets = hwy::SupportedTargets();
  return targets;
}
std::atomic<int64_t> allowed_targets = ~int64_t{0};

struct Level {
  std::string_view name;
  int64_t target;  // one of Highway's
  Newest newest;
};
constexpr Level kLevels[] = {
#if HWY_ARCH_X86
    {"avx512bf16", HWY_AVX3, Newest::kAll},
    {"avx512vnni", HWY_AVX3, Newest::kByteProducts},
    {"avx512", HWY_AVX3, Newest::kNone},
    {"avxvnni", HWY_AVX2, Newest::kByteProducts},
    {"avx2", HWY_AVX2, Newest::kNone},
    {"sse4", HWY_SSE4, Newest::kNone},
#endif
    {"baseline", HWY_STATIC_TARGET, Newest::kNone},
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
    allowed_targets = ~(candidate.target - 1);  // a better target has a lower bit
    hwy::DisableTargets(candidate.target - 1);
    // Code that ran before may have made Highway choose already.
    hwy::GetChosenTarget().Update(ProcessorTargets() & allowed_targets);
    may_use_newest = candidate.newest;
    bf16_by_name = candidate.newest == Newest::kAll;
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
// Whether CPUID's leaf 7 sets a bit; registers are eax, ebx, ecx, edx. Highway has already checked
// that the operating system saves the registers of `target`.
bool HasFeature(Newest newest, int64_t target, unsigned part, int at, int bit) {
  unsigned registers[4] = {};
  if (may_use_newest.load() < newest || !MayUseTarget(target) ||
      __get_cpuid_count(7, part, &registers[0], &registers[1], &registers[2], &registers[3]) == 0) {
    return false;
  }
  return (registers[at] >> bit & 1) != 0;
}
}  // namespace

bool MayUseAvx512Vnni() { return HasFeature(Newest::kByteProducts, HWY_AVX3, 0, 2, 11); }
bool MayUseAvxVnni() { return HasFeature(Newest::kByteProducts, HWY_AVX2, 1, 0, 4); }
bool MayUseAvx512Vbmi() { return HasFeature(Newest::kByteProducts, HWY_AVX3, 0, 2, 1); }
bool MayUseAvx512Bf16() { return HasFeature(Newest::kAll, HWY_AVX3, 1, 0, 5); }
bool PrefersAvx512Bf16() {
  if (!MayUseAvx512Bf16()) return false;
  if (bf16_by_name) return true;
  unsigned most = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &most, &b, &c, &d) != 0 && b == signature_AMD_ebx &&
         c == signature_AMD_ecx && d == signature_AMD_edx;
}
#else
bool MayUseAvx512Vnni() { return false; }
bool MayUseAvxVnni() { return false; }
bool MayUseAvx512Vbmi() { return false; }
bool MayUseAvx512Bf16() { return false; }
bool PrefersAvx512Bf16() { return false; }
#endif

}  // namespace oncilla::cpu
