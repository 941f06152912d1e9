// Capabilities: what a recipe may rely on, as a plain value per device.
//
// Derived from a driver's claims (facts), the results of tiny kernels (probe) and the table of
// known faults (quirks). Recipes use this and never a vendor's name. A value that could not be
// measured keeps a conservative default, with which the portable kernels run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla::opencl {

struct DeviceFacts;  // discovery.h
struct ProbeResult;  // probe.h
class TunedTable;    // recipes/choices.h

// The two kinds of kernels that heavy ops have: kGpu is many small work-items sharing tiles in
// local memory; kCpu is one work-item per group with wide private vectors and packed operands.
enum class KernelShape { kGpu, kCpu };
std::string_view Name(KernelShape shape);  // "gpu", "cpu"

// GPU architectures that need different tiles: by the number of lanes of a wave and the speed of
// local memory. Only speed and the order of sums may depend on it.
enum class GpuFamily { kAny, kNvidia, kAmdWave32, kAmdWave64, kIntel, kMali, kAdreno };

// Which convolutions use Winograd's method (recipes/winograd.h): those that are expected to be
// faster, none, or, for tests, all that can with tiles of 2 x 2 or of 4 x 4.
enum class WinogradChoice { kEstimate, kNone, kTwo, kFour };

// What computes dot4 of cl_kernels/common/dot4.clh: portable code, the extension
// cl_khr_integer_dot_product, or NVIDIA's instruction as inline PTX.
enum class ByteDot { kPortable, kKhr, kPtx };
std::string_view Name(ByteDot dot);  // "portable", "khr", "ptx"

// What multiplies matrices of 16-bit numbers (cl_kernels/common/matrix_unit.clh): nothing; NVIDIA's
// tensor cores by inline PTX; or, for tests on any device, portable code.
enum class MatrixUnit { kNone, kPtx, kWritten };
std::string_view Name(MatrixUnit unit);  // "none", "ptx", "written"

struct Capabilities {
  KernelShape shape = KernelShape::kGpu;
  GpuFamily family = GpuFamily::kAny;
  WinogradChoice winograd = WinogradChoice::kEstimate;
  bool fp64 = false;           // double arithmetic
  bool fp16_math = false;      // half arithmetic; half as storage always works (vload_half)
  bool local_groups = false;   // barriers and local memory work: groups may be larger than 1
  bool profiling = false;      // events have usable time stamps
  int64_t max_work_group = 1;  // of a kernel that uses barriers, as its driver says once built
  ByteDot byte_dot = ByteDot::kPortable;
  MatrixUnit matrix_unit = MatrixUnit::kNone;
  int64_t sub_group = 0;  // lanes of sub-groups with block reads and shuffles; 0: none
  int64_t local_memory = 0;
  int64_t compute_units = 1;
  int64_t vector_width = 1;  // floats in a native vector
  int64_t base_alignment = 128;
  int64_t max_allocation = 0;
  int64_t parameter_bytes = 1024;  // of all arguments of a kernel together
  // A loop of one work-item must have fewer trips; 0: no limit.
  int64_t max_loop_trips = 0;
  // Calls into the driver must not overlap, not even on different queues.
  bool one_caller = false;
  // Whether parts of a buffer can be objects of their own; else kernels get the offsets of their
  // operands (places.h).
  bool sub_buffers = true;
  // Binaries of programs are worth keeping and safe to load.
  bool program_binaries = true;
  // Measurements on devices of this class; null: only generic choices.
  std::shared_ptr<const TunedTable> tuned = nullptr;

  // Units with local memory of their own that run whole groups: a compute unit, except that Intel's
  // drivers count execution units, of which sixteen share one.
  int64_t cores() const;
  // The largest power of two that is at most max_work_group, `most` and a group's real limit.
  int64_t Group(int64_t most) const;
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

// Pure. `forced` overrides the choice of shape by native vector width and local memory.
Capabilities MakeCapabilities(const DeviceFacts& facts, const ProbeResult& probe,
                              std::optional<KernelShape> forced);

// $ONCILLA_CL_SHAPE: gpu, cpu, or unset for the device's own; anything else fails.
Result<std::optional<KernelShape>> ForcedShapeFromEnvironment();
// $ONCILLA_CL_WINOGRAD: none, 2, 4, or unset for the estimate; anything else fails.
Result<WinogradChoice> WinogradFromEnvironment();
// $ONCILLA_CL_MATRIX: none, written, or unset for what the probe found; anything else fails.
Result<std::optional<MatrixUnit>> ForcedMatrixFromEnvironment();
// $ONCILLA_CL_VIEWS: sub_buffers, places, or unset for what the driver's row says; anything else
// fails.
Result<std::optional<bool>> ForcedViewsFromEnvironment();

}  // namespace oncilla::opencl
