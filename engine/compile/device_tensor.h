// DeviceTensor: a tensor in memory of one of a session's devices, which runs take and give without
// a copy to the host; DeviceLink: that device, as what may outlive the session holds it.
//
// A device tensor is an immutable value that is cheap to copy: its memory is shared, counted in the
// session's ledger, and goes back to the device's pool with the last copy. Closing the session
// takes the memory away; what is asked of the tensor then fails with FailedPrecondition. Work on it
// is over: whoever makes one has waited.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class DeviceTensor;

// Thread-safe.
class DeviceLink : public std::enable_shared_from_this<DeviceLink> {
 public:
  // Everything given must live until Close(). `owner`: of what is written; `watchdog` as in
  // RunControl.
  DeviceLink(Device* device, Pool* pool, std::string device_name, OwnerId owner,
             std::chrono::milliseconds watchdog);
  ~DeviceLink();

  const std::string& device_name() const { return device_name_; }
  bool closed() const { return closed_; }
  // Takes memory for a tensor whose contents a run will write. ResourceExhausted.
  Result<DeviceTensor> Allocate(TensorDesc desc, OwnerId owner);
  // Copies a tensor of numbers to the device, on a queue of its own, and waits for it.
  Result<DeviceTensor> Write(const Tensor& tensor);
  Result<Tensor> Read(const DeviceTensor& tensor);
  // The device is about to go. Waits for nothing that hangs.
  void Close();

 private:
  Status Transfer(std::span<const Upload> uploads, std::span<const Download> downloads,
                  const Tensor& memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device* const device_;
  Pool* const pool_;
  const std::string device_name_;
  const OwnerId owner_;
  const std::chrono::milliseconds watchdog_;
  std::atomic<bool> closed_ = false;
  Mutex mutex_;  // held around use of the queue
  std::unique_ptr<Queue> queue_ ABSL_GUARDED_BY(mutex_);
};

class DeviceTensor {
 public:
  DeviceTensor() = default;  // invalid

  bool valid() const { return memory_ != nullptr; }
  const TensorDesc& desc() const { return desc_; }
  const std::string& device_name() const { return memory_->link->device_name(); }
  // A copy in host memory.
  Result<Tensor> Read() const;
  // The same elements under another shape of as many elements.
  DeviceTensor Reshaped(Shape shape) const;

  const std::shared_ptr<DeviceLink>& link() const { return memory_->link; }
  const BufferView& view() const { return memory_->allocation.view(); }

 private:
  friend class DeviceLink;
  struct Memory {
    std::shared_ptr<DeviceLink> link;
    Allocation allocation;
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
  Result<Tensor> ToHost() const {
    if (on_device()) return device_.Read();
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

// Keeps memory for good that a device may still write to.
void KeepForever(std::shared_ptr<const void> memory);

}  // namespace oncilla
