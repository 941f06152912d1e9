// A device without any function, as a template: every node is refused with a reason, so placement
// assigns it to another device. Each body states what belongs there in a working backend.
#include "backends/null/device.h"

namespace oncilla::null {
namespace {

class NullDevice : public Device {
 public:
  explicit NullDevice(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }

  // Look up the op in the rows of the families, check dtypes, and check shapes as far as they are
  // known. Users read the text in the placement report.
  Status CanRun(const NodeView& node) const override {
    return Unsupported("null has no kernel for ", node.op->name);
  }

  // The layout in which a kernel wants its constants; "dense" for the usual one.
  Result<Packing> PackingFor(const NodeView& node, int input) const override {
    return Packing{"dense", node.inputs[input].desc().bytes(), nullptr};
  }

  // Turns a node with known sizes into something that can be launched.
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd&) override {
    return CanRun(node);
  }

  // Only for a device whose memory is the host's.
  Result<std::vector<Tensor>> Evaluate(const NodeView& node, std::span<const Tensor>) override {
    return CanRun(node);
  }

  // Make sure that the memory is really there: a lazy driver must be made to commit it, or to
  // refuse.
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    return Exhausted("null has no memory for ", bytes, " bytes");
  }
  Status ReleaseRegion(std::unique_ptr<Region>) override { return Internal("null has no regions"); }

  // Queues are in order. Submit and Transfer only enqueue; Wait waits and reports what failed.
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
