// DeviceTensor: a tensor in memory of one of a session's devices, which runs take and give without
// a copy to the host; DeviceLink: that device, as what may outlive the session holds it.
//
// A device tensor is an immutable value that is cheap to copy: its memory is shared, counted in the
// session's ledger, and goes back to the device's pool with the last copy. Closing the session
// takes the memory away; what is asked of the tensor then fails with FailedPrecondition. Work on it
// is over: whoever makes one has waited.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/base/mutex.h"
#include "engine/device/host_objects.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class DeviceTensor;
class RunValue;

// Thread-safe.
class DeviceLink : public std::enable_shared_from_this<DeviceLink> {
 public:
  // Everything given must live until Close(). `owner`: of what is written; `watchdog` as in
  // RunControl.
  DeviceLink(Device* device, Pool* pool, std::string device_name, OwnerId owner,
             std::chrono::milliseconds watchdog);
  ~DeviceLink();

  const std::string& device_name() const { return device_name_; }
  bool closed() const { return closing_.cancelled(); }
  // Takes memory for a tensor whose contents a run will write. ResourceExhausted.
  Result<DeviceTensor> Allocate(TensorDesc desc, OwnerId owner, const EarlyEnd& end = {});
  // Copies a tensor of numbers to the device, and waits for it.
  Result<DeviceTensor> Write(const Tensor& tensor);
  // The other way; ends early as `end` says.
  Result<Tensor> Read(const DeviceTensor& tensor, const EarlyEnd& end = {});
  // A tensor in a buffer of the application's, which is retained as long as the tensor lives, at
  // most until Close(). Whatever writes to the buffer must be over when a run takes the tensor.
  Result<DeviceTensor> Wrap(TensorDesc desc, void* buffer, int64_t offset);
  // Copies a value of the same descriptor to a tensor that Wrap() made, and waits for it. True when
  // it went from memory to memory of the device.
  Result<bool> Fill(const DeviceTensor& to, const RunValue& from);
  // The buffer that holds the tensor, as the application knows such, and where it begins there.
  Result<std::pair<void*, int64_t>> BufferOf(const DeviceTensor& tensor);
  bool Overlap(const DeviceTensor& a, const DeviceTensor& b);
  // What the device is too, or null.
  HostObjects* objects() const { return objects_; }
  // The device is about to go. Waits for nothing that hangs.
  void Close();

 private:
  friend class DeviceTensor;
  // Work that was not waited for to its end, and what it uses.
  struct Late {
    std::unique_ptr<Queue> queue;
    EventPtr event;
    std::shared_ptr<const void> used;
  };
  // Submits work to a queue that nobody else has meanwhile, and waits for it. `used` is kept for as
  // long as the device may read or write it.
  Status Do(const std::function<Result<EventPtr>(Queue&)>& submit, std::shared_ptr<const void> used,
            const EarlyEnd& end = {});
  Status Await(const EventPtr& event, const EarlyEnd& end);
  // Counts who uses the device, for Close() to wait; the failure of a session that is closed.
  Status Enter();
  void Leave();
  void ReleaseWrapped(const Region* region);

  Device* const device_;
  HostObjects* const objects_;
  Pool* const pool_;
  const std::string device_name_;
  const OwnerId owner_;
  const std::chrono::milliseconds watchdog_;
  const CancellationToken closing_ = CancellationToken::Create();
  Mutex mutex_;
  int active_ ABSL_GUARDED_BY(mutex_) = 0;  // calls that use the device
  std::vector<std::unique_ptr<Queue>> idle_ ABSL_GUARDED_BY(mutex_);
  std::vector<Late> late_ ABSL_GUARDED_BY(mutex_);
  Mutex wrapped_mutex_;
  std::map<const Region*, std::unique_ptr<Region>> wrapped_ ABSL_GUARDED_BY(wrapped_mutex_);
};

class DeviceTensor {
 public:
  DeviceTensor() = default;  // invalid

  bool valid() const { return memory_ != nullptr; }
  const TensorDesc& desc() const { return desc_; }
  const std::string& device_name() const { return memory_->link->device_name(); }
  // A copy in host memory.
  Result<Tensor> Read(const EarlyEnd& end = {}) const;
  // The same elements under another shape of as many elements.
  DeviceTensor Reshaped(Shape shape) const;

  const std::shared_ptr<DeviceLink>& link() const { return memory_->link; }
  const BufferView& view() const { return memory_->view; }
  // Of the application's buffers: whether kernels may read and write them, and whether it is one.
  bool readable() const { return memory_->readable; }
  bool writable() const { return memory_->writable; }
  bool wrapped() const { return memory_->wrapped != nullptr; }
  bool SameMemory(const DeviceTensor& other) const { return memory_ == other.memory_; }

 private:
  friend class DeviceLink;
  struct Memory {
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      if (wrapped != nullptr) link->ReleaseWrapped(wrapped);
    }
    std::shared_ptr<DeviceLink> link;
    Allocation allocation;  // the pool's, or none
    BufferView view;
    const Region* wrapped = nullptr;  // the application's, which the link has
    bool readable = true, writable = false;
  };
  TensorDesc desc_;
  std::shared_ptr<const Memory> memory_;
};

// What a run takes and gives: a tensor of the host (strings and lists too) or one on a device.
class RunValue {
 public:
  RunValue() = default;                                          // invalid
  RunValue(Tensor host) : host_(std::move(host)) {}              // NOLINT: either is a value
  RunValue(DeviceTensor device) : device_(std::move(device)) {}  // NOLINT
  bool valid() const { return on_device() || host_.valid(); }
  bool on_device() const { return device_.valid(); }
  const TensorDesc& desc() const { return on_device() ? device_.desc() : host_.desc(); }
  const Tensor& host() const { return host_; }
  const DeviceTensor& device() const { return device_; }
  Result<Tensor> ToHost(const EarlyEnd& end = {}) const {
    if (on_device()) return device_.Read(end);
    return host_;
  }
  RunValue Reshaped(Shape shape) const {
    if (on_device()) return device_.Reshaped(std::move(shape));
    return host_.Reshaped(std::move(shape));
  }

 private:
  Tensor host_;
  DeviceTensor device_;
};

// Once the queue of the event is gone: whether the work was given up, so that the device may still
// read and write what it uses, whenever it wakes up.
bool WasGivenUp(Device& device, const EventPtr& event);
// Keeps memory for good that a device may still write to.
void KeepForever(std::shared_ptr<const void> memory);

}  // namespace oncilla
