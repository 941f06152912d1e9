// CheckedDevice: wraps any device and checks every call against device.h before passing it on, so
// that a mistake of the engine or of a backend fails where it is made and not in a driver. Used by
// tests, and by sessions with the `verify` option.
#pragma once

#include <memory>

#include "engine/device/device.h"
#include "engine/device/free_memory.h"
#include "engine/device/host_objects.h"

namespace oncilla {

// Failures are Internal and say which rule was broken: a view outside its region or misaligned, an
// operand or external without memory, a region released twice or not this device's, a queue, a
// recording or an event of another device, a packing that writes past its end, a step without
// kernel or scratch. What the wrapped device returns is checked too. Regions that are alive when
// the device is closed are reported in the log, because a driver that hangs may keep some.
class CheckedDevice : public Device, public TellsFreeMemory, public HostObjects {
 public:
  explicit CheckedDevice(std::unique_ptr<Device> device);
  ~CheckedDevice() override;

  const DeviceInfo& info() const override { return device_->info(); }
  Status CanRun(const NodeView& node) const override;
  Result<Packing> PackingFor(const NodeView& node, int input) const override;
  using Device::AllocateRegion, Device::Prepare;
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd& end) override;
  Result<std::vector<Tensor>> Evaluate(const NodeView& node,
                                       std::span<const Tensor> inputs) override;
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd& end) override;
  Status ReleaseRegion(std::unique_ptr<Region> region) override;
  using Device::OpenQueue;
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions& options) override;
  Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) override;
  Result<EventPtr> Submit(Queue& queue, const Recording& recording,
                          std::span<const BufferView> externals,
                          const SubmitOptions& options) override;
  Result<EventPtr> Transfer(Queue& queue, std::span<const Upload> uploads,
                            std::span<const Download> downloads) override;
  bool Poll(const EventPtr& event) override;
  Status Wait(const EventPtr& event, Deadline deadline) override;
  DeviceCounters counters() const override { return device_->counters(); }
  void CloseBy(Deadline deadline) override { device_->CloseBy(deadline); }
  void Close() override { device_->Close(); }
  std::optional<FreeMemory> free_memory() const override {
    const auto* tells = dynamic_cast<const TellsFreeMemory*>(device_.get());
    return tells == nullptr ? std::nullopt : tells->free_memory();
  }

  // HostObjects; Unimplemented where the wrapped device does not implement it.
  Result<WrappedMemory> WrapMemory(void* buffer, int64_t offset, int64_t bytes) override;
  Result<std::pair<void*, int64_t>> MemoryOf(const BufferView& view) override;
  bool Overlap(const BufferView& a, const BufferView& b) override;
  Result<std::unique_ptr<Queue>> WrapQueue(void* queue) override;
  Status EnqueueAfter(Queue& queue, std::span<void* const> events) override;
  Status CanProfile(void* queue) override;
  Result<void*> EventOf(const EventPtr& event) override;
  Result<EventPtr> Copy(Queue& queue, std::span<const DeviceCopy> copies) override;
  Staged staged() const override;

  // The objects made through this device that are still alive.
  struct Alive {
    int regions = 0, queues = 0, recordings = 0;
    bool operator==(const Alive&) const = default;
  };
  Alive alive() const;

 private:
  struct State;
  Status CheckView(const BufferView& view, std::string_view what) const;

  std::shared_ptr<State> state_;  // also of queues and recordings, which may outlive the device
  std::unique_ptr<Device> device_;
  HostObjects* const objects_;  // device_ as HostObjects, or null
};

}  // namespace oncilla
