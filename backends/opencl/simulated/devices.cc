// The records of simulated devices. Sizes are those that the vendors' drivers are known to report
// (databases of clinfo, data sheets, OpenCL guides), not read from a device. Where drivers differ,
// the smaller number is used.
#include "backends/opencl/simulated/devices.h"

#include <algorithm>

#include "backends/opencl/device.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kKiB = int64_t{1} << 10, kGiB = int64_t{1} << 30;

// The properties that differ between the devices of one vendor.
struct Model {
  std::string id, name, version;
  int64_t compute_units, clock_mhz, memory, max_work_group;
};

SimulatedRecord Common(const Model& model) {
  SimulatedRecord r;
  r.id = model.id;
  DeviceFacts& f = r.facts;
  f.name = model.name;
  f.version = StrCat("OpenCL ", model.version);
  f.hardware_id = StrCat("simulated:", model.id);
  f.version_major = model.version[0] - '0';
  f.version_minor = model.version[2] - '0';
  f.type = DeviceType::kGpu;
  f.available = f.compiler = true;
  f.compute_units = model.compute_units;
  f.clock_mhz = model.clock_mhz;
  f.address_bits = 64;
  f.global_memory = model.memory;
  f.max_allocation = model.memory / 4;
  f.base_alignment = 128;
  f.local_memory_is_real = true;
  f.constant_memory = 64 * kKiB;
  f.max_work_group = model.max_work_group;
  f.max_work_items = {model.max_work_group, model.max_work_group, model.max_work_group};
  f.native_float_width = f.preferred_float_width = 1;
  f.profiling_timer_ns = 1;
  f.claims_int64 = true;
  r.probe.local_groups = r.probe.profiling = true;
  r.probe.max_work_group = model.max_work_group;
  return r;
}

// NVIDIA's OpenCL has no half arithmetic and no sub-groups, and offers 48 KiB of local memory even
// if the core has more.
SimulatedRecord Nvidia(const Model& model) {
  SimulatedRecord r = Common(model);
  r.facts.platform = "NVIDIA CUDA";
  r.facts.platform_version = "OpenCL 3.0 CUDA 12.4";
  r.facts.vendor = "NVIDIA Corporation";
  r.facts.driver = "550.54";
  r.facts.base_alignment = 512;
  r.facts.local_memory = 48 * kKiB;
  r.facts.parameter_bytes = 4352;
  r.facts.max_work_items[2] = 64;
  r.facts.claims_fp64 = r.probe.fp64 = true;
  r.probe.byte_dot = ByteDot::kPtx;
  r.probe.matrix_unit = MatrixUnit::kPtx;
  r.facts.extensions = {"cl_khr_byte_addressable_store", "cl_khr_fp64",
                        "cl_khr_int64_base_atomics",     "cl_nv_compiler_options",
                        "cl_nv_device_attribute_query",  "cl_nv_pragma_unroll"};
  return r;
}

SimulatedRecord Amd(const Model& model) {
  SimulatedRecord r = Common(model);
  r.facts.platform = "AMD Accelerated Parallel Processing";
  r.facts.platform_version = "OpenCL 2.1 AMD-APP (3602.0)";
  r.facts.vendor = "Advanced Micro Devices, Inc.";
  r.facts.driver = "3602.0 (HSA1.1,LC)";
  r.facts.max_allocation = model.memory / 20 * 17;
  r.facts.local_memory = 64 * kKiB;
  r.facts.parameter_bytes = 1024;
  r.facts.max_work_items = {1024, 1024, 1024};
  r.facts.claims_fp16 = r.probe.fp16 = r.facts.claims_fp64 = r.probe.fp64 = true;
  r.facts.claims_subgroups = true;
  r.facts.extensions = {"cl_amd_device_attribute_query", "cl_khr_byte_addressable_store",
                        "cl_khr_fp16", "cl_khr_fp64", "cl_khr_subgroups"};
  return r;
}

// Compute units are execution units of eight lanes. There is no double arithmetic.
SimulatedRecord Intel(const Model& model) {
  SimulatedRecord r = Common(model);
  r.facts.platform = "Intel(R) OpenCL Graphics";
  r.facts.platform_version = "OpenCL 3.0";
  r.facts.vendor = "Intel(R) Corporation";
  r.facts.driver = "24.13.29138";
  r.facts.local_memory = 64 * kKiB;
  r.facts.parameter_bytes = 2048;
  r.facts.claims_fp16 = r.probe.fp16 = r.facts.claims_subgroups = true;
  r.probe.sub_group = 8;
  r.facts.extensions = {"cl_intel_required_subgroup_size",
                        "cl_intel_subgroups",
                        "cl_intel_subgroups_short",
                        "cl_khr_byte_addressable_store",
                        "cl_khr_fp16",
                        "cl_khr_integer_dot_product",
                        "cl_khr_subgroups"};
  return r;
}

// GPUs of phones share the memory of the processor.
SimulatedRecord Phone(const Model& model) {
  SimulatedRecord r = Common(model);
  r.facts.local_memory = 32 * kKiB;
  r.facts.parameter_bytes = 1024;
  r.facts.unified_memory = true;
  r.facts.claims_fp16 = r.probe.fp16 = r.facts.claims_subgroups = true;
  return r;
}

SimulatedRecord Adreno(const Model& model) {
  SimulatedRecord r = Phone(model);
  r.facts.platform = "QUALCOMM Snapdragon(TM)";
  r.facts.platform_version = "OpenCL 3.0 QUALCOMM build: 0676.53";
  r.facts.vendor = "QUALCOMM";
  r.facts.driver = "OpenCL 3.0 QUALCOMM build: 0676.53 Compiler E031.41";
  r.facts.extensions = {"cl_khr_byte_addressable_store",
                        "cl_khr_fp16",
                        "cl_khr_subgroups",
                        "cl_qcom_perf_hint",
                        "cl_qcom_recordable_queues",
                        "cl_qcom_reqd_sub_group_size"};
  return r;
}

// Local memory is ordinary memory. Drivers prefer vectors of four floats, but registers hold one.
SimulatedRecord Mali(const Model& model) {
  SimulatedRecord r = Phone(model);
  r.facts.platform = "ARM Platform";
  r.facts.platform_version = "OpenCL 3.0 v1.r38p1";
  r.facts.vendor = "ARM";
  r.facts.driver = "3.0";
  r.facts.local_memory_is_real = false;
  r.facts.preferred_float_width = 4;
  r.facts.extensions = {"cl_arm_integer_dot_product_int8", "cl_khr_byte_addressable_store",
                        "cl_khr_fp16", "cl_khr_subgroups"};
  return r;
}

std::vector<SimulatedRecord> MakeRecords() {
  return {
      Nvidia({"h200", "NVIDIA H200", "3.0", 132, 1980, 141 * kGiB, 1024}),
      Nvidia({"a100", "NVIDIA A100-SXM4-40GB", "3.0", 108, 1410, 40 * kGiB, 1024}),
      Nvidia({"rtx3060", "NVIDIA GeForce RTX 3060", "3.0", 28, 1777, 12 * kGiB, 1024}),
      // One of the board's two chips, since the driver shows them as two devices.
      Amd({"mi250", "gfx90a:sramecc+:xnack-", "2.0", 104, 1700, 64 * kGiB, 256}),
      // RDNA's drivers count pairs of the compute units in the data sheet.
      Amd({"rx6700", "gfx1031", "2.0", 20, 2424, 12 * kGiB, 256}),
      Amd({"rx7900", "gfx1100", "2.0", 48, 2304, 24 * kGiB, 256}),
      Intel({"a770", "Intel(R) Arc(TM) A770 Graphics", "3.0", 512, 2400, 16 * kGiB, 1024}),
      Intel({"iris_xe", "Intel(R) Iris(R) Xe Graphics", "3.0", 96, 1300, 12 * kGiB, 512}),
      Adreno({"adreno740", "QUALCOMM Adreno(TM) 740", "3.0", 6, 680, 4 * kGiB, 1024}),
      Mali({"mali_g710", "Mali-G710 MC10", "3.0", 10, 850, 4 * kGiB, 1024}),
  };
}

}  // namespace

std::span<const SimulatedRecord> SimulatedRecords() {
  static const std::vector<SimulatedRecord> records = MakeRecords();
  return records;
}

Result<const SimulatedRecord*> FindSimulated(std::string_view id) {
  std::string known;
  for (const SimulatedRecord& record : SimulatedRecords()) {
    if (record.id == id) return &record;
    known += StrCat(known.empty() ? "" : ", ", record.id);
  }
  return InvalidArgument("no simulated device '", id, "'; there is: ", known);
}

Capabilities CapabilitiesOf(const SimulatedRecord& record) {
  Capabilities caps = MakeCapabilities(record.facts, record.probe, {});
  caps.base_alignment = std::max(caps.base_alignment, InfoOf(record.facts, 0).alignment_bytes);
  return caps;
}

}  // namespace oncilla::opencl
