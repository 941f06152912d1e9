// Creation of OpenCL objects. Every result is checked for an error and for null, because PoCL
// crashes on null handles instead of refusing them.
#include "backends/opencl/runtime/cl_objects.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "backends/opencl/runtime/waiter.h"

namespace oncilla::opencl {
namespace {

std::atomic<int64_t> live_counts[6];
std::atomic<int64_t> abandoned_count{0};

int64_t Live(internal::Kind kind) {
  return live_counts[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}

template <class T>
Result<Handle<T>> Made(const Api& api, T raw, cl_int error, std::string_view call) {
  Handle<T> handle(api, raw);
  ONCILLA_TRY(Check(error, call));
  if (!handle) return Internal(call, ": the driver gave no object and no error");
  return handle;
}

std::string BuildLog(const Api& api, cl_program program, cl_device_id device) {
  size_t size = 0;
  if (api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS) {
    return "(the driver gives no log)";
  }
  std::string log(size, '\0');
  if (size > 0) {
    api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  }
  log.resize(std::min(log.find('\0'), log.size()));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
  constexpr size_t kMostBytes = 16 << 10;
  if (log.size() > kMostBytes) log.replace(kMostBytes, log.npos, "\n(log cut)");
  return log.empty() ? "(the driver's log is empty)" : log;
}

Status Build(const Api& api, cl_program program, cl_device_id device, std::string_view name,
             const std::string& options) {
  const cl_int error = api.BuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return Status();
  Status status = Check(error, StrCat("building ", name, " with '", options, "'"));
  return WithDriverCode(
      WithStage(Error(status.code(), Message(status), ":\n", BuildLog(api, program, device)),
                Stage::kDevice),
      error);
}

}  // namespace

namespace internal {
void CountObject(Kind kind, int64_t change) {
  live_counts[static_cast<size_t>(kind)].fetch_add(change, std::memory_order_relaxed);
}
void CountAbandoned() { abandoned_count.fetch_add(1, std::memory_order_relaxed); }
}  // namespace internal

LiveObjects CountLiveObjects() {
  using internal::Kind;
  return {.contexts = Live(Kind::kContext),
          .queues = Live(Kind::kQueue),
          .buffers = Live(Kind::kBuffer),
          .programs = Live(Kind::kProgram),
          .kernels = Live(Kind::kKernel),
          .events = Live(Kind::kEvent),
          .abandoned = abandoned_count.load(std::memory_order_relaxed)};
}

Result<Context> Retain(const Api& api, cl_context context) {
  ONCILLA_TRY(Check(api.RetainContext(context), "clRetainContext"));
  return Context(api, context);
}

Result<CommandQueue> Retain(const Api& api, cl_command_queue queue) {
  ONCILLA_TRY(Check(api.RetainCommandQueue(queue), "clRetainCommandQueue"));
  return CommandQueue(api, queue);
}

Result<Memory> Retain(const Api& api, cl_mem buffer) {
  ONCILLA_TRY(Check(api.RetainMemObject(buffer), "clRetainMemObject"));
  return Memory(api, buffer);
}

Result<Context> CreateContext(const Api& api, cl_platform_id platform, cl_device_id device) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int error = CL_SUCCESS;
  cl_context raw = api.CreateContext(properties, 1, &device, nullptr, nullptr, &error);
  return Made(api, raw, error, "clCreateContext");
}

Result<CommandQueue> CreateQueue(const Api& api, cl_context context, cl_device_id device,
                                 bool profiling) {
  cl_int error = CL_SUCCESS;
  cl_command_queue raw =
      api.CreateCommandQueue(context, device, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
  return Made(api, raw, error, "clCreateCommandQueue");
}

Result<Memory> CreateBuffer(const Api& api, cl_context context, size_t bytes) {
  cl_int error = CL_SUCCESS;
  cl_mem raw = api.CreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  return Made(api, raw, error, StrCat("clCreateBuffer of ", bytes, " bytes"));
}

Result<Memory> CreateSubBuffer(const Api& api, cl_mem parent, size_t origin, size_t bytes) {
  const cl_buffer_region region{origin, bytes};
  cl_int error = CL_SUCCESS;
  // No flags: the sub-buffer inherits its parent's.
  cl_mem raw = api.CreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  return Made(api, raw, error, StrCat("clCreateSubBuffer of ", bytes, " bytes at ", origin));
}

Result<Program> BuildFromSource(const Api& api, cl_context context, cl_device_id device,
                                std::string_view name, std::string_view source,
                                const std::string& options) {
  const char* text = source.data();
  const size_t length = source.size();
  cl_int error = CL_SUCCESS;
  cl_program raw = api.CreateProgramWithSource(context, 1, &text, &length, &error);
  ONCILLA_ASSIGN(Program program, Made(api, raw, error, "clCreateProgramWithSource"));
  ONCILLA_TRY(Build(api, program.get(), device, name, options));
  return program;
}

Result<Program> BuildFromBinary(const Api& api, cl_context context, cl_device_id device,
                                std::string_view name, std::string_view binary,
                                const std::string& options) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t length = binary.size();
  cl_int error = CL_SUCCESS, of_device = CL_SUCCESS;
  cl_program raw =
      api.CreateProgramWithBinary(context, 1, &device, &length, &bytes, &of_device, &error);
  if (error == CL_SUCCESS) error = of_device;
  ONCILLA_ASSIGN(Program program, Made(api, raw, error, "clCreateProgramWithBinary"));
  ONCILLA_TRY(Build(api, program.get(), device, name, options));
  return program;
}

Result<std::string> BinaryOf(const Api& api, cl_program program) {
  size_t size = 0;  // the context has one device, so there is one binary
  ONCILLA_TRY(
      Check(api.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
            "clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)"));
  std::string binary(size, '\0');
  char* at = binary.data();
  if (size > 0) {
    ONCILLA_TRY(Check(api.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(at), &at, nullptr),
                      "clGetProgramInfo(CL_PROGRAM_BINARIES)"));
  }
  return binary;
}

Result<KernelObject> CreateKernel(const Api& api, cl_program program, const std::string& entry) {
  if (program == nullptr) return Internal("clCreateKernel(", entry, "): no program");
  cl_int error = CL_SUCCESS;
  cl_kernel raw = api.CreateKernel(program, entry.c_str(), &error);
  return Made(api, raw, error, StrCat("clCreateKernel(", entry, ")"));
}

bool IsDone(const Api& api, cl_event event) {
  cl_int state = CL_QUEUED;
  const cl_int error =
      api.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  return error != CL_SUCCESS || state <= CL_COMPLETE;
}

Status Outcome(const Api& api, cl_event event) {
  const cl_int error = api.WaitForEvents(1, &event);
  if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    // Some drivers report here what went wrong (a lack of memory, for example); others claim
    // success.
    cl_int state = CL_COMPLETE;
    if (api.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state,
                         nullptr) == CL_SUCCESS &&
        state < 0 && state != -1) {
      return Check(state, "a command failed");
    }
  }
  return Check(error, "clWaitForEvents");
}

Status WaitFor(const Api& api, cl_event event, std::chrono::steady_clock::time_point deadline) {
  if (deadline == std::chrono::steady_clock::time_point::max()) return Outcome(api, event);
  return Waiter(api, /*looks_closely=*/false).Wait(event, deadline);
}

}  // namespace oncilla::opencl
