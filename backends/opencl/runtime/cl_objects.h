// Owned OpenCL objects: one move-only handle per kind, functions that create them, and a count of
// those alive, so that tests and `close` can show that nothing was left behind.
//
// A handle keeps a pointer to its Api, which must outlive it. Handles are not synchronised.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "backends/opencl/runtime/cl_api.h"

namespace oncilla::opencl {

// Objects alive in this process, by kind, and those abandoned with a hung queue.
struct LiveObjects {
  int64_t contexts = 0, queues = 0, buffers = 0, programs = 0, kernels = 0, events = 0;
  int64_t abandoned = 0;
  int64_t total() const { return contexts + queues + buffers + programs + kernels + events; }
};
LiveObjects CountLiveObjects();

namespace internal {
enum class Kind { kContext, kQueue, kBuffer, kProgram, kKernel, kEvent };
void CountObject(Kind kind, int64_t change);
void CountAbandoned();

template <class T>
struct Traits;
#define ONCILLA_CL_TRAITS(type, call, kind_name)                     \
  template <>                                                        \
  struct Traits<type> {                                              \
    static constexpr Kind kKind = Kind::kind_name;                   \
    static void Release(const Api& api, type raw) { api.call(raw); } \
  };
ONCILLA_CL_TRAITS(cl_context, ReleaseContext, kContext)
ONCILLA_CL_TRAITS(cl_command_queue, ReleaseCommandQueue, kQueue)
ONCILLA_CL_TRAITS(cl_mem, ReleaseMemObject, kBuffer)
ONCILLA_CL_TRAITS(cl_program, ReleaseProgram, kProgram)
ONCILLA_CL_TRAITS(cl_kernel, ReleaseKernel, kKernel)
ONCILLA_CL_TRAITS(cl_event, ReleaseEvent, kEvent)
#undef ONCILLA_CL_TRAITS
}  // namespace internal

template <class T>
class Handle {
 public:
  Handle() = default;
  // Takes over one reference; a null object makes an empty handle.
  Handle(const Api& api, T raw) : api_(&api), raw_(raw) {
    if (raw_ != nullptr) internal::CountObject(internal::Traits<T>::kKind, 1);
  }
  Handle(Handle&& other) noexcept : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      Reset();
      api_ = other.api_;
      raw_ = std::exchange(other.raw_, nullptr);
    }
    return *this;
  }
  ~Handle() { Reset(); }

  T get() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }
  void Reset() {
    if (raw_ == nullptr) return;
    internal::Traits<T>::Release(*api_, raw_);
    internal::CountObject(internal::Traits<T>::kKind, -1);
    raw_ = nullptr;
  }
  // Drops the object without a call into the driver: for objects that a hung queue still uses,
  // whose release might never return.
  void Abandon() {
    if (raw_ == nullptr) return;
    internal::CountObject(internal::Traits<T>::kKind, -1);
    internal::CountAbandoned();
    raw_ = nullptr;
  }

 private:
  const Api* api_ = nullptr;
  T raw_ = nullptr;
};

using Context = Handle<cl_context>;
using CommandQueue = Handle<cl_command_queue>;
using Memory = Handle<cl_mem>;
using Program = Handle<cl_program>;
using KernelObject = Handle<cl_kernel>;
using EventObject = Handle<cl_event>;

// Retains an object of the application.
Result<Context> Retain(const Api& api, cl_context context);
Result<CommandQueue> Retain(const Api& api, cl_command_queue queue);
Result<Memory> Retain(const Api& api, cl_mem buffer);

Result<Context> CreateContext(const Api& api, cl_platform_id platform, cl_device_id device);
// In order.
Result<CommandQueue> CreateQueue(const Api& api, cl_context context, cl_device_id device,
                                 bool profiling);
Result<Memory> CreateBuffer(const Api& api, cl_context context, size_t bytes);
// `parent` is a buffer, never a sub-buffer; `origin` a multiple of the device's base alignment.
Result<Memory> CreateSubBuffer(const Api& api, cl_mem parent, size_t origin, size_t bytes);
// The failure of a build names `name` and contains the driver's log.
Result<Program> BuildFromSource(const Api& api, cl_context context, cl_device_id device,
                                std::string_view name, std::string_view source,
                                const std::string& options);
// The caller must make sure that the bytes are valid: drivers abort on damaged ones.
Result<Program> BuildFromBinary(const Api& api, cl_context context, cl_device_id device,
                                std::string_view name, std::string_view binary,
                                const std::string& options);
Result<std::string> BinaryOf(const Api& api, cl_program program);
Result<KernelObject> CreateKernel(const Api& api, cl_program program, const std::string& entry);

// True when the event is complete, has failed, or its state cannot be read: WaitFor would not
// block.
bool IsDone(const Api& api, cl_event event);
// The outcome of the command, which only clWaitForEvents returns; blocks until it is complete.
Status Outcome(const Api& api, cl_event event);
// The same, waiting until a deadline (waiter.h): OpenCL has no timed wait. DeadlineExceeded leaves
// the command running.
Status WaitFor(const Api& api, cl_event event, std::chrono::steady_clock::time_point deadline);

}  // namespace oncilla::opencl
