// How claims, measurements and known faults combine into capabilities.
#include "backends/opencl/runtime/capabilities.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "backends/opencl/runtime/discovery.h"
#include "backends/opencl/runtime/probe.h"
#include "backends/opencl/runtime/quirks.h"

namespace oncilla::opencl {
namespace {

// CPUs have wide vectors, keep "local" memory in their caches and therefore offer much of it. Some
// mobile GPUs share the first two traits but offer 32 KiB.
KernelShape NaturalShape(const DeviceFacts& facts) {
  return facts.native_float_width >= 4 && !facts.local_memory_is_real &&
                 facts.local_memory >= (128 << 10)
             ? KernelShape::kCpu
             : KernelShape::kGpu;
}

// Recognises vendors by the texts of their drivers. AMD's driver names chips: gfx9 and older have
// waves of 64 lanes, later ones of 32. Mesa's driver appends the chip in parentheses.
GpuFamily FamilyOf(const DeviceFacts& facts) {
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  if (facts.type != DeviceType::kGpu) return GpuFamily::kAny;
  const std::string& vendor = facts.vendor;
  if (has(vendor, "NVIDIA")) return GpuFamily::kNvidia;
  if (has(vendor, "Intel")) return GpuFamily::kIntel;
  if (has(vendor, "QUALCOMM") || has(vendor, "Qualcomm")) return GpuFamily::kAdreno;
  if (has(facts.name, "Mali") || vendor == "ARM" || vendor == "Arm") return GpuFamily::kMali;
  if (has(vendor, "AMD") || has(vendor, "Advanced Micro Devices")) {
    const std::string& name = facts.name;
    const bool wave32 = has(name, "gfx10") || has(name, "gfx11") || has(name, "gfx12") ||
                        has(name, "navi") || has(name, "NAVI");
    return wave32 ? GpuFamily::kAmdWave32 : GpuFamily::kAmdWave64;
  }
  return GpuFamily::kAny;
}

}  // namespace

std::string_view Name(KernelShape shape) { return shape == KernelShape::kCpu ? "cpu" : "gpu"; }

std::string_view Name(ByteDot dot) {
  return dot == ByteDot::kKhr ? "khr" : dot == ByteDot::kPtx ? "ptx" : "portable";
}
std::string_view Name(MatrixUnit unit) {
  return unit == MatrixUnit::kPtx ? "ptx" : unit == MatrixUnit::kWritten ? "written" : "none";
}

int64_t Capabilities::cores() const {
  constexpr int64_t kIntelUnits = 16;
  return family == GpuFamily::kIntel ? std::max<int64_t>(compute_units / kIntelUnits, 1)
                                     : compute_units;
}

int64_t Capabilities::Group(int64_t most) const {
  if (!local_groups) return 1;
  const int64_t limit = std::max<int64_t>(std::min(most, max_work_group), 1);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(limit)));
}

Capabilities MakeCapabilities(const DeviceFacts& facts, const ProbeResult& probe,
                              std::optional<KernelShape> forced) {
  Capabilities c;
  c.shape = forced.value_or(NaturalShape(facts));
  c.family = FamilyOf(facts);
  c.fp64 = probe.fp64;
  c.fp16_math = probe.fp16;
  c.local_groups = probe.local_groups;
  c.profiling = probe.profiling;
  c.max_work_group =
      probe.local_groups
          ? std::max<int64_t>(std::min(probe.max_work_group, facts.max_work_group), 1)
          : 1;
  if (facts.max_work_items[0] > 0) {
    c.max_work_group = std::min(c.max_work_group, facts.max_work_items[0]);
  }
  c.byte_dot = probe.byte_dot;
  c.matrix_unit = probe.local_groups ? probe.matrix_unit : MatrixUnit::kNone;
  c.sub_group = probe.local_groups ? probe.sub_group : 0;
  c.local_memory = facts.local_memory;
  c.compute_units = std::max<int64_t>(facts.compute_units, 1);
  c.vector_width = std::max<int64_t>(facts.native_float_width, 1);
  c.base_alignment = facts.base_alignment;
  c.max_allocation = facts.max_allocation;
  if (facts.parameter_bytes > 0) c.parameter_bytes = facts.parameter_bytes;
  c.max_loop_trips = probe.max_loop_trips;
  for (const Quirk& quirk : Quirks()) {
    if (Applies(quirk, facts)) quirk.apply(c);
  }
  return c;
}

Result<std::optional<KernelShape>> ForcedShapeFromEnvironment() {
  const char* text = std::getenv("ONCILLA_CL_SHAPE");
  if (text == nullptr || *text == '\0') return std::optional<KernelShape>();
  for (KernelShape shape : {KernelShape::kGpu, KernelShape::kCpu}) {
    if (Name(shape) == text) return std::optional<KernelShape>(shape);
  }
  return WithStage(InvalidArgument("ONCILLA_CL_SHAPE is '", text, "'; it may be gpu or cpu"),
                   Stage::kOptions);
}

Result<WinogradChoice> WinogradFromEnvironment() {
  const char* given = std::getenv("ONCILLA_CL_WINOGRAD");
  const std::string_view text = given == nullptr ? "" : given;
  if (text.empty()) return WinogradChoice::kEstimate;
  if (text == "none") return WinogradChoice::kNone;
  if (text == "2") return WinogradChoice::kTwo;
  if (text == "4") return WinogradChoice::kFour;
  return WithStage(InvalidArgument("ONCILLA_CL_WINOGRAD is '", text, "'; it may be none, 2 or 4"),
                   Stage::kOptions);
}

Result<std::optional<MatrixUnit>> ForcedMatrixFromEnvironment() {
  const char* given = std::getenv("ONCILLA_CL_MATRIX");
  const std::string_view text = given == nullptr ? "" : given;
  if (text.empty()) return std::optional<MatrixUnit>();
  for (const MatrixUnit unit : {MatrixUnit::kNone, MatrixUnit::kWritten}) {
    if (Name(unit) == text) return std::optional(unit);
  }
  return WithStage(InvalidArgument("ONCILLA_CL_MATRIX is '", text, "'; it may be none or written"),
                   Stage::kOptions);
}

Result<std::optional<bool>> ForcedViewsFromEnvironment() {
  const char* given = std::getenv("ONCILLA_CL_VIEWS");
  const std::string_view text = given == nullptr ? "" : given;
  if (text.empty()) return std::optional<bool>();
  if (text == "sub_buffers") return std::optional(true);
  if (text == "places") return std::optional(false);
  return WithStage(
      InvalidArgument("ONCILLA_CL_VIEWS is '", text, "'; it may be sub_buffers or places"),
      Stage::kOptions);
}

}  // namespace oncilla::opencl
