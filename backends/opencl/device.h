// The OpenCL backend's devices: they turn recipes into kernels, recordings and events.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/opencl/recipes/recipe.h"
#include "backends/opencl/runtime/capabilities.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/memory.h"
#include "backends/opencl/runtime/probe.h"
#include "backends/opencl/runtime/program_cache.h"
#include "backends/opencl/runtime/queue.h"
#include "backends/opencl/runtime/recording.h"
#include "engine/device/free_memory.h"
#include "engine/device/host_objects.h"
#include "engine/device/tunable.h"

namespace oncilla::opencl {

class ClDevice;

struct ClDeviceOptions {
  std::string cache_folder;  // empty: no disk cache
  std::optional<KernelShape> shape;
  WinogradChoice winograd = WinogradChoice::kEstimate;
  std::optional<MatrixUnit> matrix_unit = {};
  std::optional<bool> sub_buffers = {};
  cl_context context = nullptr;     // the application's, to be retained; null: create one
  SharedObjects* shared = nullptr;  // where contexts of our own are found again; may be null
};

// The options that the environment and a caller set.
Result<ClDeviceOptions> DeviceOptionsOf(const OpenOptions& options);
// Opens a device that the backend has found, as its own type.
Result<std::unique_ptr<ClDevice>> OpenClDevice(const DeviceInfo& info, const OpenOptions& options);
// `ordinal` identifies the device if its driver reports no id.
DeviceInfo InfoOf(const DeviceFacts& facts, int ordinal);

class ClDevice : public Device, public TellsFreeMemory, public HostObjects, public Tunable {
 public:
  // Probes the device, or uses what an earlier process found. `info` is kept unchanged.
  static Result<std::unique_ptr<ClDevice>> Open(const FoundDevice& found, DeviceInfo info,
                                                const ClDeviceOptions& options);
  // Kernels, recordings, queues and regions must have been destroyed. Never waits for a hung
  // device.
  ~ClDevice() override { Close(); }

  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const { return capabilities_; }
  const DeviceFacts& facts() const { return found_.facts; }
  const ProbeResult& probe() const { return probe_; }
  const ProgramCache& programs() const { return *programs_; }

  Status CanRun(const NodeView& node) const override;
  Result<Packing> PackingFor(const NodeView& node, int input) const override;
  using Device::AllocateRegion, Device::OpenQueue, Device::Prepare;
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd& end) override;
  Result<std::vector<Tensor>> Evaluate(const NodeView& node,
                                       std::span<const Tensor> inputs) override;
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd& end) override;
  Status ReleaseRegion(std::unique_ptr<Region> region) override;
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions& options) override;
  Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) override;
  Result<EventPtr> Submit(Queue& queue, const Recording& recording,
                          std::span<const BufferView> externals,
                          const SubmitOptions& options) override;
  Result<EventPtr> Transfer(Queue& queue, std::span<const Upload> uploads,
                            std::span<const Download> downloads) override;
  bool Poll(const EventPtr& event) override;
  Status Wait(const EventPtr& event, Deadline deadline) override;
  // Available with cl_amd_device_attribute_query, or if the device uses host memory.
  std::optional<FreeMemory> free_memory() const override;
  // live_objects counts those of all OpenCL devices of the process.
  DeviceCounters counters() const override;
  Status UseTuning(const std::string& option,
                   std::function<void(const std::string&)> warn) override;
  void CloseBy(Deadline deadline) override { health_.close_by = deadline.time_since_epoch(); }
  void Close() override;

  // The functions of HostObjects (host_objects.cc).
  Result<WrappedMemory> WrapMemory(void* buffer, int64_t offset, int64_t bytes) override;
  Result<std::pair<void*, int64_t>> MemoryOf(const BufferView& view) override;
  bool Overlap(const BufferView& a, const BufferView& b) override;
  Result<std::unique_ptr<Queue>> WrapQueue(void* queue) override;
  Status EnqueueAfter(Queue& queue, std::span<void* const> events) override;
  Status CanProfile(void* queue) override;
  Result<void*> EventOf(const EventPtr& event) override;
  Result<EventPtr> Copy(Queue& queue, std::span<const DeviceCopy> copies) override;
  Staged staged() const override { return {staged_.copies, staged_.bytes}; }

  // Prepares a recipe that is not from the rows. `group_limit` is set to the largest group that all
  // kernels of the recipe allow, also when the recipe is refused for exceeding it.
  Result<std::unique_ptr<ClKernel>> PrepareRecipe(std::string op, const Recipe& recipe, int inputs,
                                                  int outputs, int64_t* group_limit = nullptr,
                                                  const EarlyEnd& end = {});

 private:
  ClDevice(const FoundDevice& found, DeviceInfo info) : found_(found), info_(std::move(info)) {}
  Status Start(const ClDeviceOptions& options);
  Status OpenContext(const ClDeviceOptions& options);
  // Warns, once per layer, of a table entry that is not a choice of that layer.
  void WarnOfIgnored(const Decision& decision);
  // FailedPrecondition once the device is closed.
  Status CheckOpen() const;
  cl_context context() const { return context_->context.get(); }
  const Api& api() const { return *found_.platform.api; }
  Result<Memory> Committed(Commitment commitment, const EarlyEnd& end);
  // Releases commitments that were not waited for and are complete; Unavailable when one has not
  // completed for as long as the watchdog allows.
  Status LookAfterLate(const EarlyEnd& end);
  // Checks a compiled kernel against the launch; sets `limit` to the largest group it allows.
  Status CheckKernel(const ClKernel::Launch& launch, int64_t& limit) const;
  // Locked around driver calls if the driver does not allow two at a time.
  std::unique_lock<std::mutex> Caller() const {
    return context_ == nullptr ? std::unique_lock<std::mutex>() : context_->Caller();
  }

  const FoundDevice found_;
  const DeviceInfo info_;
  ProbeResult probe_;
  Capabilities capabilities_;
  std::string cache_folder_;                      // of the options
  std::function<void(const std::string&)> warn_;  // of tables
  std::mutex ignored_mutex_;
  std::set<std::string> ignored_;  // layers that were told of
  std::shared_ptr<DiskCache> disk_;
  SharedObjects* shared_ = nullptr;
  std::string shared_name_;
  std::shared_ptr<DeviceContext> context_;
  Memory dummy_;
  std::unique_ptr<ProgramCache> programs_;
  std::mutex service_mutex_;
  CommandQueue service_;  // for commitments
  std::mutex late_mutex_;
  std::vector<Commitment> late_;
  std::mutex condemned_mutex_;
  std::vector<std::unique_ptr<ClRegion>> condemned_;  // released while still in use
  std::atomic<int64_t> flushes_{0}, waits_{0};
  DeviceObjects::Staged staged_;
  QueueHealth health_;
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> built_before_{0};  // it was closed
};

}  // namespace oncilla::opencl
