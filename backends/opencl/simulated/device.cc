// Prepares without compiling. A real driver may allow a compiled kernel smaller groups than the
// device does (ClDevice::Prepare then asks for another recipe); that cannot be simulated.
#include "backends/opencl/simulated/device.h"

#include "backends/opencl/device.h"

namespace oncilla::opencl {

std::string SimulatedKernel::description() const { return DescriptionOf(recipe); }

SimulatedDevice::SimulatedDevice(const SimulatedRecord& record)
    : info_(InfoOf(record.facts, 0)), capabilities_(CapabilitiesOf(record)) {}

Status SimulatedDevice::CanRun(const NodeView& node) const {
  return FindRunnable(node, capabilities_).status();
}

Result<Packing> SimulatedDevice::PackingFor(const NodeView& node, int input) const {
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  Packing packing{"dense", node.inputs[static_cast<size_t>(input)].desc().bytes(), nullptr};
  if (row->packing != nullptr) {
    ONCILLA_ASSIGN(packing, row->packing(node, input, capabilities_));
    packing.write = nullptr;
  }
  return packing;
}

Result<std::unique_ptr<Kernel>> SimulatedDevice::Prepare(const NodeView& node, const EarlyEnd&) {
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  auto kernel = std::make_unique<SimulatedKernel>();
  ONCILLA_ASSIGN(kernel->recipe, row->make(node, capabilities_));
  ONCILLA_TRY(
      oncilla::In(CheckRecipe(kernel->recipe, capabilities_, static_cast<int>(node.inputs.size()),
                              static_cast<int>(node.outputs.size())),
                  StrCat("opencl cannot run ", node.op->name)));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Fact& fact = node.inputs[i];
    int64_t bytes = 0;
    const bool constant = fact.has_value() || fact.constant;
    if (!fact.absent() && !node.op->traits.IsPlanInput(i)) {
      bytes = fact.desc().bytes();
      if (constant) {
        ONCILLA_ASSIGN(const Packing packing, PackingFor(node, static_cast<int>(i)));
        bytes = packing.bytes;
      }
    }
    kernel->input_bytes.push_back(bytes);
    kernel->constant.push_back(constant);
  }
  if (!node.outputs.empty() && !node.outputs[0].absent()) {
    kernel->output_elements = node.outputs[0].desc().elements();
  }
  for (const Fact& fact : node.outputs) {
    kernel->output_bytes.push_back(fact.absent() ? 0 : fact.desc().bytes());
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::vector<Tensor>> SimulatedDevice::Evaluate(const NodeView&, std::span<const Tensor>) {
  return Refusal();
}

Result<std::unique_ptr<Region>> SimulatedDevice::AllocateRegion(int64_t bytes, const EarlyEnd&) {
  if (bytes <= 0 || bytes > capabilities_.max_allocation) {
    return Exhausted("a region of ", bytes, " bytes was asked for; the largest buffer of '",
                     info_.name, "' has ", capabilities_.max_allocation);
  }
  return std::make_unique<Region>(bytes);
}

Result<EventPtr> SimulatedDevice::Transfer(Queue&, std::span<const Upload>,
                                           std::span<const Download> downloads) {
  if (!downloads.empty()) return Refusal();
  return std::make_shared<Event>();
}

Status SimulatedDevice::Refusal() const {
  return Unsupported("'", info_.name, "' is simulated: it plans, and computes nothing");
}

}  // namespace oncilla::opencl
