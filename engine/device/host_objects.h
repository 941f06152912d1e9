// HostObjects: what a device can do with objects that the application made itself with the API that
// the device is reached by: for OpenCL its buffers, queues and events, as opaque handles.
//
// Nothing is copied. An object is retained while the engine holds it and belongs to the application
// all the time; the handle must be a valid one of its kind, which no driver checks reliably.
#pragma once

#include <memory>
#include <span>

#include "engine/device/device.h"

namespace oncilla {

// A part of a buffer of the application's.
struct WrappedMemory {
  std::unique_ptr<Region> region;  // of the whole buffer; goes back by Device::ReleaseRegion
  BufferView view;
  bool readable = true, writable = true;  // by kernels
};

// From memory to memory of one device.
struct DeviceCopy {
  BufferView to, from;  // of as many bytes, which do not overlap
};

// What a Device may be too. Thread-safe as Device is.
class HostObjects {
 public:
  virtual ~HostObjects() = default;

  // Bytes [offset, offset + bytes) of a buffer. InvalidArgument for what is no buffer, is another
  // context's, or is too small.
  virtual Result<WrappedMemory> WrapMemory(void* buffer, int64_t offset, int64_t bytes) = 0;
  // The buffer that a view lies in, and where it begins there. Valid as long as the view's memory.
  virtual Result<std::pair<void*, int64_t>> MemoryOf(const BufferView& view) = 0;
  virtual bool Overlap(const BufferView& a, const BufferView& b) = 0;

  // A queue of the application's, in order. Nothing here waits for it, or flushes it, but Wait with
  // a deadline ahead, and the end of the Queue, which looks for a few seconds whether the work on
  // it is over and otherwise takes the device for hung.
  virtual Result<std::unique_ptr<Queue>> WrapQueue(void* queue) = 0;
  // Whether what is enqueued on such a queue leaves time stamps: OK, or why not.
  virtual Status CanProfile(void* queue) = 0;
  // What is enqueued after this begins after these events of the application's.
  virtual Status EnqueueAfter(Queue& queue, std::span<void* const> events) = 0;
  // The event of a submission as the API's own, with a reference that is the caller's.
  virtual Result<void*> EventOf(const EventPtr& event) = 0;

  virtual Result<EventPtr> Copy(Queue& queue, std::span<const DeviceCopy> copies) = 0;
  // Copies made on the device because a kernel could not take an operand where it lies.
  struct Staged {
    int64_t copies = 0, bytes = 0;
  };
  virtual Staged staged() const = 0;
};

// What the application has, for a device over it: of OpenCL a cl_context and a cl_device_id (null:
// the context's only one), and where its entry points come from: a function that knows them by
// name, a library, or, with neither, the loader that the process has.
struct HostHandles {
  void* context = nullptr;
  void* device = nullptr;
  std::string library = {};
  std::function<void*(const char* name)> entry_point = nullptr;
};

// A device over objects of the application's, for a Runtime to list. Keeps them as long as it
// lives.
struct HostDevice {
  DeviceInfo info;
  std::function<Result<std::unique_ptr<Device>>(const OpenOptions& options)> open;
};

}  // namespace oncilla
