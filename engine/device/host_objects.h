// HostObjects: how a device uses objects that the application made itself with the device's API:
// for OpenCL buffers, queues and events, as opaque handles.
//
// Nothing is copied. An object is retained while the engine holds it, and stays the application's.
// Handles must be valid and of the right kind, which no driver checks reliably.
#pragma once

#include <memory>
#include <span>

#include "engine/device/device.h"

namespace oncilla {

// A part of a buffer of the application's.
struct WrappedMemory {
  std::unique_ptr<Region> region;  // the whole buffer; released by Device::ReleaseRegion
  BufferView view;
  bool readable = true, writable = true;  // by kernels
};

// A copy from memory to memory of one device.
struct DeviceCopy {
  BufferView to, from;  // equally many bytes, which do not overlap
};

// An interface that a Device may implement too. Thread-safe like Device.
class HostObjects {
 public:
  virtual ~HostObjects() = default;

  // Bytes [offset, offset + bytes) of a buffer. InvalidArgument for a handle that is not a buffer,
  // belongs to another context, or is too small.
  virtual Result<WrappedMemory> WrapMemory(void* buffer, int64_t offset, int64_t bytes) = 0;
  // The buffer that holds a view, and the view's offset in it. Valid as long as the view's memory.
  virtual Result<std::pair<void*, int64_t>> MemoryOf(const BufferView& view) = 0;
  virtual bool Overlap(const BufferView& a, const BufferView& b) = 0;

  // Wraps an in-order queue of the application. It is never waited for or flushed, except by Wait
  // with a future deadline, and by the destructor of the Queue, which checks for a few seconds
  // whether the work on it is over and otherwise considers the device hung.
  virtual Result<std::unique_ptr<Queue>> WrapQueue(void* queue) = 0;
  // Whether commands on such a queue are time-stamped: OK, or why not.
  virtual Status CanProfile(void* queue) = 0;
  // Commands that are enqueued after this call begin after these events of the application.
  virtual Status EnqueueAfter(Queue& queue, std::span<void* const> events) = 0;
  // The API's own event of a submission, with a reference that the caller owns.
  virtual Result<void*> EventOf(const EventPtr& event) = 0;

  virtual Result<EventPtr> Copy(Queue& queue, std::span<const DeviceCopy> copies) = 0;
  // Copies made on the device because a kernel could not use an operand where it is.
  struct Staged {
    int64_t copies = 0, bytes = 0;
  };
  virtual Staged staged() const = 0;
};

// The application's objects that a device is made from: for OpenCL a cl_context and a cl_device_id
// (null: the context's only one), and the source of the API's entry points: a function that returns
// them by name, a library, or, with neither, the loader that the process has loaded.
struct HostHandles {
  void* context = nullptr;
  void* device = nullptr;
  std::string library = {};
  std::function<void*(const char* name)> entry_point = nullptr;
};

// A device made from objects of the application, for a Runtime to list. It keeps those objects
// alive as long as it lives.
struct HostDevice {
  DeviceInfo info;
  std::function<Result<std::unique_ptr<Device>>(const OpenOptions& options)> open;
};

}  // namespace oncilla
