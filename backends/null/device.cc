// A device that is there and can do nothing: every node is refused with a sentence, so placement
// sends it elsewhere. Each body says what belongs there in a working backend.
#include "backends/null/device.h"

namespace oncilla::null {
namespace {

class NullDevice : public Device {
 public:
  explicit NullDevice(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }

  // Look the op up in the families' rows, check dtypes and what is known of shapes. The text is
  // what users read in the placement report.
  Status CanRun(const NodeView& node) const override {
    return Unsupported("null has no kernel for ", node.op->name);
  }

  // How a kernel wants its constants. "dense" when it has no wish.
  Result<Packing> PackingFor(const NodeView& node, int input) const override {
    return Packing{"dense", node.inputs[input].desc().bytes(), nullptr};
  }

  // From a node with known sizes to something that can be launched.
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd&) override {
    return CanRun(node);
  }

  // Only for a device whose memory is the host's.
  Result<std::vector<Tensor>> Evaluate(const NodeView& node, std::span<const Tensor>) override {
    return CanRun(node);
  }

  // Really take the memory here: a lazy driver must be made to commit, or refuse.
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    return Exhausted("null has no memory for ", bytes, " bytes");
  }
  Status ReleaseRegion(std::unique_ptr<Region>) override { return Internal("null has no regions"); }

  // In-order queues; Submit and Transfer only enqueue, Wait waits and tells the truth.
  using Device::OpenQueue;
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override {
    return std::make_unique<Queue>();
  }
  Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) override {
    if (!steps.empty()) return Internal("null prepared no kernel");
    return std::make_unique<Recording>();
  }
  Result<EventPtr> Submit(Queue&, const Recording&, std::span<const BufferView>,
                          const SubmitOptions&) override {
    return std::make_shared<Event>();
  }
  Result<EventPtr> Transfer(Queue&, std::span<const Upload> uploads,
                            std::span<const Download> downloads) override {
    if (!uploads.empty() || !downloads.empty()) return Internal("null has no regions");
    return std::make_shared<Event>();
  }
  bool Poll(const EventPtr&) override { return true; }
  Status Wait(const EventPtr&, Deadline) override { return Status(); }

 private:
  const DeviceInfo info_;
};

std::vector<DeviceInfo> Discover(const DiscoverOptions&, std::vector<std::string>&) {
  DeviceInfo info;
  info.backend = "null";
  info.type = "GPU";
  info.name = "null";
  info.id = "null";
  return {info};
}

Result<std::unique_ptr<Device>> Open(const DeviceInfo& info, const OpenOptions&) {
  return std::unique_ptr<Device>(std::make_unique<NullDevice>(info));
}

}  // namespace

const Backend kBackend = {"null", &Discover, &Open};

}  // namespace oncilla::null
