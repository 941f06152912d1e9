// DeviceTensor: a tensor in the memory of one of a session's devices, an input or output of runs
// without a copy to the host; DeviceLink: the reference to that device, which may outlive the
// session.
//
// A device tensor is an immutable value that is cheap to copy: its memory is shared, charged to the
// session's ledger, and returned to the device's pool with the last copy. Closing the session frees
// the memory; using the tensor then fails with FailedPrecondition. No work on its memory is in
// progress: the code that makes a device tensor has waited for it.
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
  // Everything given must live until Close(). `owner` is charged for tensors that are written;
  // `watchdog` is as in RunControl.
  DeviceLink(Device* device, Pool* pool, std::string device_name, OwnerId owner,
             std::chrono::milliseconds watchdog);
  ~DeviceLink();

  const std::string& device_name() const { return device_name_; }
  bool closed() const { return closing_.cancelled(); }
  // Allocates memory for a tensor whose contents a run will write. ResourceExhausted when there is
  // none.
  Result<DeviceTensor> Allocate(TensorDesc desc, OwnerId owner, const EarlyEnd& end = {});
  // Copies a tensor of numbers to the device, and waits for it.
  Result<DeviceTensor> Write(const Tensor& tensor);
  // Copies a device tensor to the host; ends early as `end` says.
  Result<Tensor> Read(const DeviceTensor& tensor, const EarlyEnd& end = {});
  // A tensor in a buffer of the application, which is retained while the tensor lives, at most
  // until Close(). Commands that write to the buffer must be complete when a run uses the tensor.
  Result<DeviceTensor> Wrap(TensorDesc desc, void* buffer, int64_t offset);
  // Copies a value of the same descriptor to a tensor that Wrap() made, and waits for it. Returns
  // true when the copy was made within the device.
  Result<bool> Fill(const DeviceTensor& to, const RunValue& from);
  // The application's handle of the buffer that holds the tensor, and the tensor's offset in it.
  Result<std::pair<void*, int64_t>> BufferOf(const DeviceTensor& tensor);
  bool Overlap(const DeviceTensor& a, const DeviceTensor& b);
  // The device as HostObjects, or null.
  HostObjects* objects() const { return objects_; }
  // Called before the device is destroyed. Does not wait for work that hangs.
  void Close();

 private:
  friend class DeviceTensor;
  // Work that was not waited for, and what it uses.
  struct Late {
    std::unique_ptr<Queue> queue;
    EventPtr event;
    std::shared_ptr<const void> used;
  };
  // Submits work to a queue that no other call uses meanwhile, and waits for it. `used` is kept
  // alive as long as the device may read or write it.
  Status Do(const std::function<Result<EventPtr>(Queue&)>& submit, std::shared_ptr<const void> used,
            const EarlyEnd& end = {});
  Status Await(const EventPtr& event, const EarlyEnd& end);
  // Counts the calls that use the device, so that Close() can wait for them; fails when the session
  // is closed.
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
  // Copies the tensor to host memory.
  Result<Tensor> Read(const EarlyEnd& end = {}) const;
  // A tensor with the same elements and another shape of as many elements.
  DeviceTensor Reshaped(Shape shape) const;

  const std::shared_ptr<DeviceLink>& link() const { return memory_->link; }
  const BufferView& view() const { return memory_->view; }
  // For buffers of the application: whether kernels may read and write them, and whether this
  // tensor is in one.
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
    const Region* wrapped = nullptr;  // the application's buffer, owned by the link
    bool readable = true, writable = false;
  };
  TensorDesc desc_;
  std::shared_ptr<const Memory> memory_;
};

// An input or output of a run: a tensor in host memory (strings and lists too) or one on a device.
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

}  // namespace oncilla
