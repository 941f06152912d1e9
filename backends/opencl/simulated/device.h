// SimulatedDevice: a device that supports planning but not running.
//
// It chooses kernels as ClDevice does, from the same rows with the capabilities of a record, and
// keeps their recipes instead of compiling them. Memory is counted but not allocated: uploads are
// dropped, and Submit refuses. For tools and tests; no backend offers it.
#pragma once

#include <memory>
#include <vector>

#include "backends/opencl/recipes/recipe.h"
#include "backends/opencl/simulated/devices.h"

namespace oncilla::opencl {

// The launches of a node.
struct SimulatedKernel : Kernel {
  Recipe recipe;
  // Bytes of the operands, in the node's order; 0 for operands that no kernel reads: absent ones,
  // and values that were used while planning.
  std::vector<int64_t> input_bytes, output_bytes;
  std::vector<bool> constant;   // of the inputs
  int64_t output_elements = 0;  // of the first output

  int64_t scratch_bytes() const override { return recipe.scratch_bytes; }
  std::string description() const override;
};

class SimulatedDevice : public Device {
 public:
  explicit SimulatedDevice(const SimulatedRecord& record);

  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const { return capabilities_; }

  Status CanRun(const NodeView& node) const override;
  // The sizes of the device's packings; nothing is packed.
  Result<Packing> PackingFor(const NodeView& node, int input) const override;
  using Device::AllocateRegion, Device::Prepare;
  // A SimulatedKernel.
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd& end) override;
  Result<std::vector<Tensor>> Evaluate(const NodeView& node, std::span<const Tensor>) override;
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd& end) override;
  Status ReleaseRegion(std::unique_ptr<Region>) override { return Status(); }
  using Device::OpenQueue;
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override {
    return std::make_unique<Queue>();
  }
  Result<std::unique_ptr<Recording>> Record(std::vector<Step>) override { return Refusal(); }
  Result<EventPtr> Submit(Queue&, const Recording&, std::span<const BufferView>,
                          const SubmitOptions&) override {
    return Refusal();
  }
  // Uploads are dropped; downloads are refused, since there is nothing to read.
  Result<EventPtr> Transfer(Queue&, std::span<const Upload>,
                            std::span<const Download> downloads) override;
  bool Poll(const EventPtr&) override { return true; }
  Status Wait(const EventPtr&, Deadline) override { return Status(); }

 private:
  Status Refusal() const;

  const DeviceInfo info_;
  const Capabilities capabilities_;
};

}  // namespace oncilla::opencl
