// The application's own objects: its buffers become regions, and its queues become queues that the
// backend only enqueues to. The objects are retained, never created. Everything that a handle can
// be asked is checked before the handle is used, because drivers accept objects of another context
// and run the work there.
#include <algorithm>

#include "backends/opencl/backend.h"
#include "backends/opencl/device.h"

namespace oncilla::opencl {
namespace {

Status Refuse(Status status) { return WithStage(std::move(status), Stage::kOptions); }

// One property of a buffer. InvalidArgument for a handle that the driver does not recognise as a
// buffer.
template <class T>
Result<T> Ask(const Api& api, cl_mem buffer, cl_mem_info what) {
  T value{};
  const cl_int error = api.GetMemObjectInfo(buffer, what, sizeof(value), &value, nullptr);
  if (error == CL_SUCCESS) return value;
  return Refuse(WithDriverCode(InvalidArgument("the cl_mem is not valid: clGetMemObjectInfo gives ",
                                               ErrorName(error), " (", error, ")"),
                               error));
}

template <class T>
Result<T> Ask(const Api& api, cl_command_queue queue, cl_command_queue_info what) {
  T value{};
  const cl_int error = api.GetCommandQueueInfo(queue, what, sizeof(value), &value, nullptr);
  if (error == CL_SUCCESS) return value;
  return Refuse(WithDriverCode(
      InvalidArgument("the cl_command_queue is not valid: clGetCommandQueueInfo gives ",
                      ErrorName(error), " (", error, ")"),
      error));
}

Status CheckContext(cl_context theirs, cl_context ours, std::string_view what) {
  if (theirs == ours) return Status();
  return Refuse(InvalidArgument("the ", what, " belongs to another cl_context than the session's"));
}

}  // namespace

Result<WrappedMemory> ClDevice::WrapMemory(void* buffer, int64_t offset, int64_t bytes) {
  if (buffer == nullptr) return Refuse(InvalidArgument("the cl_mem is null"));
  if (offset < 0 || bytes <= 0) {
    return Refuse(InvalidArgument(bytes, " bytes at ", offset, " are not a range of a cl_mem"));
  }
  auto raw = static_cast<cl_mem>(buffer);
  const auto lock = Caller();
  ONCILLA_ASSIGN(const auto type, Ask<cl_mem_object_type>(api(), raw, CL_MEM_TYPE));
  if (type != CL_MEM_OBJECT_BUFFER) {
    return Refuse(InvalidArgument("the cl_mem is not a buffer but an object of type ", type));
  }
  ONCILLA_ASSIGN(const auto context, Ask<cl_context>(api(), raw, CL_MEM_CONTEXT));
  ONCILLA_TRY(CheckContext(context, this->context(), "cl_mem"));
  ONCILLA_ASSIGN(const auto size, Ask<size_t>(api(), raw, CL_MEM_SIZE));
  if (static_cast<uint64_t>(offset) > size || static_cast<uint64_t>(bytes) > size - offset) {
    return Refuse(
        InvalidArgument("the cl_mem has ", size, " bytes; ", bytes, " at ", offset, " do not fit"));
  }
  ONCILLA_ASSIGN(const auto flags, Ask<cl_mem_flags>(api(), raw, CL_MEM_FLAGS));
  // OpenCL has no sub-buffers of sub-buffers, so a part of a sub-buffer is made as a part of its
  // parent.
  ONCILLA_ASSIGN(const auto whole, Ask<cl_mem>(api(), raw, CL_MEM_ASSOCIATED_MEMOBJECT));
  size_t whole_size = size;
  if (whole != nullptr) {
    ONCILLA_ASSIGN(const auto begin, Ask<size_t>(api(), raw, CL_MEM_OFFSET));
    ONCILLA_ASSIGN(whole_size, Ask<size_t>(api(), whole, CL_MEM_SIZE));
    offset = SaturatingAdd(offset, static_cast<int64_t>(begin));
    raw = whole;
  }
  ONCILLA_ASSIGN(Memory retained, Retain(api(), raw));
  WrappedMemory wrapped;
  wrapped.region =
      std::make_unique<ClRegion>(api(), std::move(retained), static_cast<int64_t>(whole_size),
                                 capabilities_.base_alignment, capabilities_.sub_buffers);
  wrapped.view = {wrapped.region.get(), offset, bytes};
  wrapped.readable = (flags & CL_MEM_WRITE_ONLY) == 0;
  wrapped.writable = (flags & CL_MEM_READ_ONLY) == 0;
  return wrapped;
}

Result<std::pair<void*, int64_t>> ClDevice::MemoryOf(const BufferView& view) {
  ONCILLA_ASSIGN(ClRegion * region, RegionOf(view));
  return std::pair<void*, int64_t>(region->raw(), view.offset);
}

bool ClDevice::Overlap(const BufferView& a, const BufferView& b) {
  const auto region_a = RegionOf(a), region_b = RegionOf(b);
  return region_a.ok() && region_b.ok() && (*region_a)->raw() == (*region_b)->raw() &&
         a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Result<std::unique_ptr<Queue>> ClDevice::WrapQueue(void* queue) {
  if (queue == nullptr) return Refuse(InvalidArgument("the cl_command_queue is null"));
  auto* raw = static_cast<cl_command_queue>(queue);
  const auto lock = Caller();
  ONCILLA_ASSIGN(const auto context, Ask<cl_context>(api(), raw, CL_QUEUE_CONTEXT));
  ONCILLA_TRY(CheckContext(context, this->context(), "cl_command_queue"));
  ONCILLA_ASSIGN(const auto device, Ask<cl_device_id>(api(), raw, CL_QUEUE_DEVICE));
  if (device != found_.id) {
    return Refuse(InvalidArgument("the cl_command_queue is of another device than ", info_.name));
  }
  ONCILLA_ASSIGN(const auto kind,
                 Ask<cl_command_queue_properties>(api(), raw, CL_QUEUE_PROPERTIES));
  constexpr cl_command_queue_properties kOnDevice = 1 << 2;  // of OpenCL 2.0
  if ((kind & (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | kOnDevice)) != 0) {
    return Refuse(Error(Code::kUnimplemented,
                        "the cl_command_queue is out of order; give one that is in order, and ",
                        "events to wait for"));
  }
  ONCILLA_ASSIGN(CommandQueue retained, Retain(api(), raw));
  // Time stamps are checked only if they are requested (CanProfile).
  return std::unique_ptr<Queue>(std::make_unique<ClQueue>(
      api(), std::move(retained), health_, flushes_,
      ClQueue::Options{.owner = QueueOwner::kApplication, .stamps = true}));
}

Status ClDevice::CanProfile(void* queue) {
  const auto lock = Caller();
  ONCILLA_ASSIGN(const auto kind,
                 Ask<cl_command_queue_properties>(api(), static_cast<cl_command_queue>(queue),
                                                  CL_QUEUE_PROPERTIES));
  if ((kind & CL_QUEUE_PROFILING_ENABLE) == 0) {
    return Refuse(Error(Code::kFailedPrecondition,
                        "the run cannot be traced: the cl_command_queue was made without ",
                        "CL_QUEUE_PROFILING_ENABLE, so that its commands leave no time stamps"));
  }
  if (!capabilities_.profiling) {
    return Refuse(Unsupported("the run cannot be traced: events of ", info_.name,
                              " have no time stamps that make sense"));
  }
  return Status();
}

Status ClDevice::EnqueueAfter(Queue& queue, std::span<void* const> events) {
  if (events.empty()) return Status();
  std::vector<cl_event> raw;
  const auto lock = Caller();
  for (void* event : events) {
    if (event == nullptr) return Refuse(InvalidArgument("a cl_event to wait for is null"));
    raw.push_back(static_cast<cl_event>(event));
    cl_context context = nullptr;
    const cl_int error =
        api().GetEventInfo(raw.back(), CL_EVENT_CONTEXT, sizeof(context), &context, nullptr);
    if (error != CL_SUCCESS) {
      return Refuse(WithDriverCode(
          InvalidArgument("a cl_event to wait for is not valid: clGetEventInfo gives ",
                          ErrorName(error), " (", error, ")"),
          error));
    }
    ONCILLA_TRY(CheckContext(context, this->context(), "cl_event"));
  }
  return static_cast<ClQueue&>(queue).EnqueueAfter(raw);
}

Result<void*> ClDevice::EventOf(const EventPtr& event) {
  const auto& mine = static_cast<const ClEvent&>(*event);
  if (!mine.last) return Internal("the event of a submission that is over was asked for");
  ONCILLA_TRY(Check(api().RetainEvent(mine.last.get()), "clRetainEvent"));
  return static_cast<void*>(mine.last.get());
}

Result<EventPtr> ClDevice::Copy(Queue& queue, std::span<const DeviceCopy> copies) {
  const auto lock = Caller();
  return static_cast<ClQueue&>(queue).Copy(copies);
}

Result<HostDevice> Borrow(const HostHandles& handles) {
  if (handles.context == nullptr) return Refuse(InvalidArgument("the cl_context is null"));
  std::shared_ptr<const Api> api;
  if (handles.entry_point) {
    ONCILLA_ASSIGN(api, ApiFrom(handles.entry_point));
  } else {
    LibraryOptions library = LibraryOptions::FromEnvironment();
    if (!handles.library.empty()) library.library = handles.library;
    ONCILLA_ASSIGN(api, OpenApi(library));
  }
  auto* context = static_cast<cl_context>(handles.context);
  // The devices of the context. This is the first call with the handle, so it also shows whether
  // the handle is valid.
  size_t bytes = 0;
  cl_int error = api->GetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes);
  std::vector<cl_device_id> devices(error == CL_SUCCESS ? bytes / sizeof(cl_device_id) : 0);
  if (!devices.empty()) {
    error = api->GetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr);
  }
  if (error != CL_SUCCESS || devices.empty()) {
    return Refuse(WithDriverCode(
        InvalidArgument("the cl_context is not valid, or not of the OpenCL library that Oncilla ",
                        "uses: clGetContextInfo gives ", ErrorName(error), " (", error, ")"),
        error));
  }
  auto* device = static_cast<cl_device_id>(handles.device);
  if (device == nullptr && devices.size() > 1) {
    return Refuse(InvalidArgument("the cl_context has ", devices.size(), " devices; name one"));
  }
  if (device == nullptr) device = devices[0];
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
    return Refuse(InvalidArgument("the cl_device_id is none of the cl_context's devices"));
  }
  Platform platform{api, nullptr, "the application's"};
  error =
      api->GetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform.id), &platform.id, nullptr);
  ONCILLA_TRY(Check(error, "clGetDeviceInfo(CL_DEVICE_PLATFORM)"));
  const FoundDevice found = Describe(platform, device);
  HostDevice borrowed;
  borrowed.info = InfoOf(found.facts, 0);
  if (!found.problem.empty()) {
    return WithStage(Unsupported("the cl_context's device '", borrowed.info.name,
                                 "' cannot be used: ", found.problem),
                     Stage::kDevice);
  }
  ONCILLA_ASSIGN(Context retained, Retain(*api, context));
  // Keeps the table of functions alive for as long as the objects that were made with it.
  struct Kept {
    std::shared_ptr<const Api> api;
    Context context;
  };
  auto kept = std::make_shared<Kept>(Kept{api, std::move(retained)});
  borrowed.open = [found, info = borrowed.info,
                   kept](const OpenOptions& options) -> Result<std::unique_ptr<Device>> {
    ONCILLA_ASSIGN(ClDeviceOptions own, DeviceOptionsOf(options));
    own.context = kept->context.get();
    ONCILLA_ASSIGN(auto opened, ClDevice::Open(found, info, own));
    return std::unique_ptr<Device>(std::move(opened));
  };
  return borrowed;
}

}  // namespace oncilla::opencl
