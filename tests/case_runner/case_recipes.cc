// Cases as nodes, and nodes as recipes; see case_recipes.h.
#include "tests/case_runner/case_recipes.h"

namespace oncilla::testing {

std::vector<opencl::Capabilities> KindsOfDevices() {
  opencl::Capabilities gpu;
  gpu.fp64 = gpu.fp16_math = gpu.local_groups = true;
  gpu.max_work_group = 1024;
  gpu.local_memory = 48 << 10;
  gpu.compute_units = 64;
  gpu.max_allocation = int64_t{1} << 32;
  opencl::Capabilities small_gpu = gpu;  // a phone's
  small_gpu.fp64 = false;
  small_gpu.max_work_group = 64;
  small_gpu.local_memory = 16 << 10;
  small_gpu.compute_units = 4;
  opencl::Capabilities bare = small_gpu;  // the floor: no groups, no optional types
  bare.fp16_math = bare.local_groups = false;
  bare.max_work_group = 1;
  opencl::Capabilities intel = gpu;
  intel.family = opencl::GpuFamily::kIntel;
  intel.fp64 = false;
  intel.compute_units = 512;
  intel.sub_group = 8;
  intel.byte_dot = opencl::ByteDot::kKhr;
  opencl::Capabilities nvidia = gpu;
  nvidia.family = opencl::GpuFamily::kNvidia;
  nvidia.byte_dot = opencl::ByteDot::kPtx;
  nvidia.matrix_unit = opencl::MatrixUnit::kPtx;
  opencl::Capabilities mali = small_gpu;
  mali.family = opencl::GpuFamily::kMali;
  std::vector<opencl::Capabilities> all = {gpu, small_gpu, bare, intel, nvidia, mali};
  for (const int64_t width : {4, 8, 16}) {
    opencl::Capabilities cpu = gpu;
    cpu.shape = opencl::KernelShape::kCpu;
    cpu.fp16_math = width == 16;
    cpu.max_work_group = 4096;
    cpu.local_memory = 1 << 20;
    cpu.compute_units = 8;
    cpu.vector_width = width;
    all.push_back(cpu);
  }
  for (const opencl::KernelShape shape : {opencl::KernelShape::kGpu, opencl::KernelShape::kCpu}) {
    for (const auto choice : {opencl::WinogradChoice::kTwo, opencl::WinogradChoice::kFour}) {
      opencl::Capabilities caps = gpu;
      caps.shape = shape;
      caps.vector_width = 16;
      caps.winograd = choice;
      all.push_back(caps);
    }
  }
  return all;
}

Result<std::optional<opencl::Recipe>> RecipeOf(const Case& c, const OpSet& ops,
                                               const opencl::Capabilities& caps) {
  const std::optional<opencl::Recipe> none;
  if (c.error) return none;
  const OpDef& op = *ops.Find(c.op);
  Facts in;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseInput& input = c.inputs[i];
    const bool known = input.constant || op.traits.IsPlanInput(i);
    in.push_back(input.absent ? Fact::Absent()
                 : known      ? Fact::Constant(input.value)
                              : Fact::Of(input.value.desc()));
  }
  ONCILLA_ASSIGN(const Facts out, op.infer(c.attrs, in));
  for (const Fact& fact : out) {
    if (!fact.fixed()) return none;
  }
  const NodeView node{&op, &c.attrs, in, out, c.op};
  const auto row = opencl::FindRunnable(node, caps);
  if (!row.ok()) return none;
  ONCILLA_ASSIGN(opencl::Recipe recipe, (*row)->make(node, caps));
  return std::optional<opencl::Recipe>(std::move(recipe));
}

}  // namespace oncilla::testing
