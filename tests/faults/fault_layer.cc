// An OpenCL layer (OPENCL_LAYERS=<this library>) between the loader and any driver: counts objects,
// bytes and calls, and fails, delays, hangs or loses the device when the test in this process says
// so. Every entry point that the backend calls is hooked. Releases never fail: no caller could
// handle that.
#include "tests/faults/fault_layer.h"

#include <CL/cl_layer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <tuple>

#include "backends/opencl/runtime/cl_calls.h"

namespace {

struct Rule {
  long at = 0;  // in the call's own count
  bool sticky = false;
  cl_int error = CL_SUCCESS;
};

struct State {
  std::mutex mutex;
  std::map<std::string_view, long> counts;
  std::map<std::string_view, Rule> rules;
  struct Buffer {
    size_t bytes = 0;
    int references = 1;
  };
  std::map<cl_mem, Buffer> buffers;
  long long bytes = 0, limit = 0;
};
State state;
std::atomic<long> live_objects{0}, until_lost{-1};
std::atomic<bool> lost{false}, hangs{false};
std::atomic<int> delay_us{0}, build_ms{0};
// Queues that are blocked, each by an event of the layer's own.
std::atomic<bool> blocks{false};
std::atomic<int> queue_room{0};
std::mutex block_mutex;
struct Blocked {
  cl_event event = nullptr;
  int commands = 0;
};
std::map<cl_command_queue, Blocked> blocked;

const cl_icd_dispatch* driver = nullptr;
cl_icd_dispatch table;

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Counts the call and returns the error with which it must fail, CL_SUCCESS for none.
cl_int FaultOf(std::string_view call) {
  cl_int error = CL_SUCCESS;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    const long number = ++state.counts[call];
    if (const auto rule = state.rules.find(call); rule != state.rules.end()) {
      const Rule& r = rule->second;
      if (number == r.at || (r.sticky && number > r.at)) error = r.error;
    }
  }
  if (StartsWith(call, "Enqueue") && until_lost >= 0 && until_lost-- == 0) lost = true;
  if (lost && (StartsWith(call, "Enqueue") || StartsWith(call, "Create") || call == "Flush" ||
               call == "Finish")) {
    return CL_INVALID_COMMAND_QUEUE;
  }
  if (lost && call == "WaitForEvents") return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (call == "WaitForEvents" || call == "Finish") {
    if (delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error;
}

// Called before and after a call that succeeded, for counting.
cl_int MayCreate(std::string_view call, size_t bytes) {
  if (call != "CreateBuffer") return CL_SUCCESS;
  const std::lock_guard<std::mutex> lock(state.mutex);
  const bool fits = state.limit == 0 || state.bytes + static_cast<long long>(bytes) <= state.limit;
  return fits ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}
void NoteBuffer(cl_mem buffer, size_t bytes) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.buffers[buffer] = {bytes};
  state.bytes += static_cast<long long>(bytes);
}
void ForgetBuffer(cl_mem buffer) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto it = state.buffers.find(buffer);
  if (it == state.buffers.end() || --it->second.references > 0) return;
  state.bytes -= static_cast<long long>(it->second.bytes);
  state.buffers.erase(it);
}

void KeepBuffer(cl_mem buffer) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto it = state.buffers.find(buffer);
  if (it != state.buffers.end()) ++it->second.references;
}

// Called before something is enqueued on a queue; uses the driver's own functions.
void BlockQueue(cl_command_queue queue) {
  std::unique_lock<std::mutex> lock(block_mutex);
  for (auto it = blocked.find(queue); it != blocked.end(); it = blocked.find(queue)) {
    const int room = queue_room;
    if (room == 0 || it->second.commands < room) {
      ++it->second.commands;
      return;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  if (!blocks) return;
  cl_context context = nullptr;
  cl_int error =
      driver->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  if (error != CL_SUCCESS) return;
  cl_event event = driver->clCreateUserEvent(context, &error);
  if (error != CL_SUCCESS) return;
  driver->clEnqueueBarrierWithWaitList(queue, 1, &event, nullptr);
  driver->clRetainCommandQueue(queue);  // no other one may have its address meanwhile
  blocked[queue] = {event, 1};
}
void Block(int on) {
  const std::lock_guard<std::mutex> lock(block_mutex);
  blocks = on != 0;
  if (on != 0) return;
  for (const auto& [queue, block] : blocked) {
    driver->clSetUserEventStatus(block.event, CL_COMPLETE);
    driver->clFinish(queue);
    driver->clReleaseEvent(block.event);
    driver->clReleaseCommandQueue(queue);
  }
  blocked.clear();
}

template <auto kMember, const char* kName, class Function>
struct Hook;

// Calls that return a code. An event that they create is counted by the last argument.
template <auto kMember, const char* kName, class... Arguments>
struct Hook<kMember, kName, cl_int(CL_API_CALL*)(Arguments...)> {
  static cl_int CL_API_CALL Call(Arguments... arguments) {
    constexpr std::string_view kCall = kName;
    const cl_int fault = FaultOf(kCall);
    if (fault != CL_SUCCESS && !StartsWith(kCall, "Release")) return fault;
    const auto all = std::tuple(arguments...);
    if constexpr (StartsWith(kCall, "Enqueue")) {
      if (blocks) BlockQueue(std::get<0>(all));
    }
    if constexpr (kCall == "BuildProgram") {
      if (build_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(build_ms));
    }
    if constexpr (kCall == "ReleaseMemObject") ForgetBuffer(std::get<0>(all));
    if constexpr (kCall == "RetainMemObject") KeepBuffer(std::get<0>(all));
    const cl_int result = (driver->*kMember)(arguments...);
    if (result != CL_SUCCESS) return result;
    if constexpr (StartsWith(kCall, "Release")) --live_objects;
    if constexpr (StartsWith(kCall, "Retain")) ++live_objects;
    if constexpr (StartsWith(kCall, "Enqueue")) {
      if (std::get<sizeof...(Arguments) - 1>(all) != nullptr) ++live_objects;
    }
    if constexpr (kCall == "GetEventInfo") {
      // Hanging work never completes, even if the driver reports that it did.
      if (hangs && std::get<1>(all) == CL_EVENT_COMMAND_EXECUTION_STATUS &&
          std::get<3>(all) != nullptr) {
        *static_cast<cl_int*>(std::get<3>(all)) = CL_RUNNING;
      }
    }
    return result;
  }

 private:
  static constexpr bool StartsWith(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
  }
};

// Calls that create an object, with the code in the last argument.
template <auto kMember, const char* kName, class Object, class... Arguments>
struct Hook<kMember, kName, Object*(CL_API_CALL*)(Arguments...)> {
  static Object* CL_API_CALL Call(Arguments... arguments) {
    constexpr std::string_view kCall = kName;
    const auto all = std::tuple(arguments...);
    cl_int* code = std::get<sizeof...(Arguments) - 1>(all);
    cl_int fault = FaultOf(kCall);
    if constexpr (kCall == "CreateBuffer") {
      if (fault == CL_SUCCESS) fault = MayCreate(kCall, std::get<2>(all));
    }
    if (fault != CL_SUCCESS) {
      if (code != nullptr) *code = fault;
      return nullptr;
    }
    Object* object = (driver->*kMember)(arguments...);
    if (object != nullptr) ++live_objects;
    if constexpr (kCall == "CreateBuffer") {
      if (object != nullptr) NoteBuffer(object, std::get<2>(all));
    }
    return object;
  }
};

#define FAULT_NAME(name) constexpr char kName##name[] = #name;
ONCILLA_CL_CALLS(FAULT_NAME)
#undef FAULT_NAME

void Fail(const char* call, long n, int sticky, int error) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  // Names are compared by their text, but kept by reference: to the layer's own.
#define FAULT_KNOWN(name) \
  if (std::strcmp(call, #name) == 0) call = kName##name;
  ONCILLA_CL_CALLS(FAULT_KNOWN)
#undef FAULT_KNOWN
  state.rules[call] = {state.counts[call] + n, sticky != 0, error};
}
long Count(const char* call) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto it = state.counts.find(call);
  return it == state.counts.end() ? 0 : it->second;
}
void Reset() {
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.counts.clear();
  state.rules.clear();
  state.limit = 0;
  until_lost = -1;
  lost = false;
  hangs = false;
  delay_us = build_ms = queue_room = 0;
}
long LiveObjects() { return live_objects; }
long long LiveBytes() {
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.bytes;
}
void LimitMemory(long long bytes) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.limit = bytes;
}
void Delay(int microseconds) { delay_us = microseconds; }
void Hang(int on) { hangs = on != 0; }
void QueueRoom(int commands) { queue_room = commands; }
void SlowBuild(int milliseconds) { build_ms = milliseconds; }
void LoseAfter(long enqueues) { until_lost = enqueues; }

// Plausible errors of drivers. Memory: -4 -5 -6; a lost device: -36, -14, NVIDIA's -9999.
const char* const kCalls[] = {"CreateContext:-6",
                              "CreateContext:-2",
                              "CreateCommandQueue:-6",
                              "CreateCommandQueue:-5",
                              "CreateBuffer:-4",
                              "CreateBuffer:-61",
                              "CreateBuffer:-6",
                              "CreateSubBuffer:-4",
                              "CreateSubBuffer:-13",
                              "CreateProgramWithSource:-6",
                              "CreateProgramWithBinary:-42",
                              "CreateProgramWithBinary:-6",
                              "BuildProgram:-11",
                              "BuildProgram:-6",
                              "BuildProgram:-3",
                              "GetProgramInfo:-5",
                              "GetProgramBuildInfo:-5",
                              "CreateKernel:-46",
                              "CreateKernel:-6",
                              "SetKernelArg:-6",
                              "SetKernelArg:-38",
                              "GetKernelWorkGroupInfo:-5",
                              "EnqueueNDRangeKernel:-5",
                              "EnqueueNDRangeKernel:-4",
                              "EnqueueNDRangeKernel:-36",
                              "EnqueueNDRangeKernel:-54",
                              "EnqueueReadBuffer:-5",
                              "EnqueueReadBuffer:-36",
                              "EnqueueWriteBuffer:-5",
                              "EnqueueWriteBuffer:-4",
                              "EnqueueCopyBuffer:-5",
                              "EnqueueFillBuffer:-5",
                              "EnqueueMigrateMemObjects:-4",
                              "EnqueueMarkerWithWaitList:-5",
                              "EnqueueBarrierWithWaitList:-5",
                              "Flush:-36",
                              "Flush:-5",
                              "Finish:-5",
                              "WaitForEvents:-14",
                              "WaitForEvents:-5",
                              "WaitForEvents:-9999",
                              "GetEventInfo:-5",
                              "GetEventProfilingInfo:-7",
                              "SetEventCallback:-6",
                              nullptr};

const FaultControl kControl = {&Fail,        &Count, &Reset,    &LiveObjects, &LiveBytes,
                               &LimitMemory, &Delay, &Hang,     &Block,       &SlowBuild,
                               &LoseAfter,   kCalls, &QueueRoom};

}  // namespace

extern "C" {

CL_API_ENTRY const FaultControl* oncilla_faults() { return &kControl; }

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t size, void* value,
                                               size_t* needed) {
  if (info != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (needed != nullptr) *needed = sizeof(version);
  if (value != nullptr && size < sizeof(version)) return CL_INVALID_VALUE;
  if (value != nullptr) std::memcpy(value, &version, sizeof(version));
  return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target,
                                            cl_uint* given, const cl_icd_dispatch** layer) {
  driver = target;
  const size_t bytes = std::min(sizeof(table), size_t{entries} * sizeof(void*));
  std::memcpy(&table, target, bytes);
#define FAULT_HOOK(name) \
  table.cl##name =       \
      &Hook<&cl_icd_dispatch::cl##name, kName##name, decltype(cl_icd_dispatch::cl##name)>::Call;
  ONCILLA_CL_CALLS(FAULT_HOOK)
#undef FAULT_HOOK
  *given = static_cast<cl_uint>(bytes / sizeof(void*));
  *layer = &table;
  return CL_SUCCESS;
}

}  // extern "C"
