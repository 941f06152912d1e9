// DeviceContext: the cl_context of a physical device, shared by the devices that sessions of one
// runtime open on it, and by compilations, which may outlive them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backends/opencl/runtime/cl_objects.h"

namespace oncilla::opencl {

struct DeviceContext {
  DeviceContext(std::shared_ptr<const Api> table, Context made)
      : api(std::move(table)), context(std::move(made)) {}
  ~DeviceContext() {
    if (hung) context.Abandon();
  }
  // Locked around driver calls if the driver does not allow two at a time.
  std::unique_lock<std::mutex> Caller() {
    return one_caller ? std::unique_lock<std::mutex>(mutex) : std::unique_lock<std::mutex>();
  }

  const std::shared_ptr<const Api> api;
  Context context;
  std::atomic<bool> one_caller{false};
  // Whether some object of it was abandoned: a release might never return.
  std::atomic<bool> hung{false};
  std::mutex mutex;
};

}  // namespace oncilla::opencl
