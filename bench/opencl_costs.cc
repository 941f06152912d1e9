// What an OpenCL driver takes for itself, whatever is computed: launches, waits, transfers and
// copies on the first GPU, or on the first device of any kind where there is none. tools/gpu_check
// runs it.
//
//   opencl_costs                one line of JSON, in seconds and bytes per second
//   opencl_costs --views MODE   makes, uses and releases parts of one buffer, and prints "fine"
//   unless the
//                               driver crashes; MODE is apart, same_begin, overlap, or chain (the
//                               parts of a net of three steps whose memory is used again)
//
// Exits with 3 where there is no OpenCL device. Nothing is linked: the loader is opened at run
// time.
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Leave(int code, const std::string& why) {
  std::fprintf(stderr, "opencl_costs: %s\n", why.c_str());
  std::exit(code);
}

void* Library() {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (library == nullptr) Leave(3, "there is no libOpenCL.so.1");
  return library;
}

#define ENTRY(name) const decltype(&cl##name) name = Find<decltype(&cl##name)>("cl" #name)
template <class Function>
Function Find(const char* name) {
  void* const found = dlsym(Library(), name);
  if (found == nullptr) Leave(3, std::string("libOpenCL.so.1 has no ") + name);
  return reinterpret_cast<Function>(found);
}

// A device with a queue, a queue with time stamps, and the kernels.
struct Driver {
  ENTRY(GetPlatformIDs);
  ENTRY(GetDeviceIDs);
  ENTRY(GetDeviceInfo);
  ENTRY(CreateContext);
  ENTRY(CreateCommandQueue);
  ENTRY(CreateBuffer);
  ENTRY(CreateSubBuffer);
  ENTRY(ReleaseMemObject);
  ENTRY(CreateProgramWithSource);
  ENTRY(BuildProgram);
  ENTRY(CreateKernel);
  ENTRY(SetKernelArg);
  ENTRY(EnqueueNDRangeKernel);
  ENTRY(EnqueueReadBuffer);
  ENTRY(EnqueueWriteBuffer);
  ENTRY(EnqueueMapBuffer);
  ENTRY(Finish);
  ENTRY(Flush);
  ENTRY(GetEventInfo);
  ENTRY(GetEventProfilingInfo);
  ENTRY(ReleaseEvent);
  ENTRY(WaitForEvents);

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr, stamped = nullptr;
  cl_kernel step = nullptr, copy = nullptr;
  std::string name;

  Driver() {
    cl_platform_id platforms[16];
    cl_uint count = 0;
    GetPlatformIDs(16, platforms, &count);
    constexpr cl_device_type kTypes[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    for (const cl_device_type type : kTypes) {
      for (cl_uint i = 0; i < std::min<cl_uint>(count, 16) && device == nullptr; ++i) {
        GetDeviceIDs(platforms[i], type, 1, &device, nullptr);
      }
    }
    if (device == nullptr) Leave(3, "there is no OpenCL device");
    char text[256] = "";
    GetDeviceInfo(device, CL_DEVICE_NAME, sizeof(text) - 1, text, nullptr);
    for (const char c : std::string_view(text)) {
      if (c != '"' && c != '\\' && c >= ' ') name += c;
    }
    context = CreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = CreateCommandQueue(context, device, 0, nullptr);
    stamped = CreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, nullptr);
    const char* source =
        "__kernel void one(__global const float* a, __global float* b) { b[0] = a[0] + 1; }\n"
        "__kernel void copy(__global const float4* restrict a, __global float4* restrict b) {\n"
        "  const int i = get_global_id(0);\n  b[i] = a[i];\n}\n";
    cl_program program = CreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    if (BuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) {
      Leave(1, "the driver builds no program");
    }
    step = CreateKernel(program, "one", nullptr);
    copy = CreateKernel(program, "copy", nullptr);
  }

  cl_mem Buffer(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_mem made = CreateBuffer(context, flags, bytes, nullptr, nullptr);
    if (made == nullptr) Leave(1, "no buffer of " + std::to_string(bytes) + " bytes");
    return made;
  }
  void Launch(cl_command_queue on, cl_kernel kernel, cl_mem a, cl_mem b, size_t items = 1,
              size_t group = 1, cl_event* event = nullptr) {
    SetKernelArg(kernel, 0, sizeof(a), &a);
    SetKernelArg(kernel, 1, sizeof(b), &b);
    const cl_int error =
        EnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &group, 0, nullptr, event);
    if (error != CL_SUCCESS) Leave(1, "a launch gives " + std::to_string(error));
  }
};

// The shortest of some runs.
double Least(const std::function<void()>& work, int runs = 9) {
  work();
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double begin = Now();
    work();
    least = std::min(least, Now() - begin);
  }
  return least;
}

void Print(const char* key, double value, const char* more = ", ") {
  std::printf("\"%s\": %.4g%s", key, value, more);
}

void Launches(Driver& d, cl_mem a, cl_mem b) {
  constexpr int kCount = 200;
  const auto many = [&](cl_command_queue on, bool events, int flush) {
    std::vector<cl_event> made(events ? kCount : 0);
    for (int i = 0; i < kCount; ++i) {
      d.Launch(on, d.step, a, b, 1, 1, events ? &made[static_cast<size_t>(i)] : nullptr);
      if (flush > 0 && i % flush == 0) d.Flush(on);
    }
    d.Finish(on);
    for (cl_event event : made) d.ReleaseEvent(event);
  };
  Print("launch_s", Least([&] { many(d.queue, false, 0); }) / kCount);
  Print("launch_flushed_s", Least([&] { many(d.queue, false, 32); }) / kCount);
  Print("launch_stamped_s", Least([&] { many(d.stamped, true, 0); }) / kCount);
  Print("finish_s", Least(
                        [&] {
                          d.Launch(d.queue, d.step, a, b);
                          d.Finish(d.queue);
                        },
                        50));
  Print("poll_s", Least(
                      [&] {
                        cl_event event = nullptr;
                        d.Launch(d.queue, d.step, a, b, 1, 1, &event);
                        d.Flush(d.queue);
                        cl_int state = CL_QUEUED;
                        do {
                          d.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                                         &state, nullptr);
                        } while (state > CL_COMPLETE);
                        d.ReleaseEvent(event);
                      },
                      50));
}

void Transfers(Driver& d, cl_mem on_device, size_t bytes) {
  std::vector<char> pageable(bytes, 1);
  cl_mem host = d.Buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  void* const mapped = d.EnqueueMapBuffer(d.queue, host, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                          bytes, 0, nullptr, nullptr, nullptr);
  if (mapped == nullptr) Leave(1, "no memory of the host's is mapped");
  std::memset(mapped, 1, bytes);
  std::printf("{\"bytes\": %zu, ", bytes);
  for (const auto& [kind, at] :
       {std::pair("pageable", static_cast<void*>(pageable.data())), std::pair("mapped", mapped)}) {
    void* const memory = at;  // clang 14 does not let lambdas capture structured bindings
    Print((std::string(kind) + "_up_s").c_str(), Least([&] {
            d.EnqueueWriteBuffer(d.queue, on_device, CL_FALSE, 0, bytes, memory, 0, nullptr,
                                 nullptr);
            d.Finish(d.queue);
          }));
    Print((std::string(kind) + "_down_s").c_str(), Least([&] {
            d.EnqueueReadBuffer(d.queue, on_device, CL_FALSE, 0, bytes, memory, 0, nullptr,
                                nullptr);
            d.Finish(d.queue);
          }));
  }
  Print("memcpy_s", Least([&] { std::memcpy(mapped, pageable.data(), bytes); }), "}");
  d.ReleaseMemObject(host);
}

int Costs() {
  Driver d;
  cl_ulong memory = 0;
  d.GetDeviceInfo(d.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(memory), &memory, nullptr);
  const size_t large = std::min<size_t>(256 << 20, memory / 8);
  cl_mem a = d.Buffer(large), b = d.Buffer(large);
  std::printf("{\"device\": \"%s\", ", d.name.c_str());
  Launches(d, a, b);
  double least = 1e9;
  for (int i = 0; i < 9; ++i) {
    cl_event event = nullptr;
    d.Launch(d.stamped, d.copy, a, b, large / 16 / 64 * 64, 64, &event);
    d.WaitForEvents(1, &event);
    cl_ulong begin = 0, end = 0;
    d.GetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, nullptr);
    d.GetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr);
    if (end > begin) least = std::min(least, 1e-9 * static_cast<double>(end - begin));
    d.ReleaseEvent(event);
  }
  Print("copy_bytes_per_s", 2 * static_cast<double>(large) / least);
  std::printf("\"transfers\": [");
  const size_t sizes[] = {4096, 602112, std::min<size_t>(64 << 20, large)};
  for (const size_t& bytes : sizes) {
    if (&bytes != sizes) std::printf(", ");
    Transfers(d, a, bytes);
  }
  std::printf("]}\n");
  return 0;
}

// Parts of one buffer: where they begin, and their sizes.
int Views(const std::string& mode) {
  std::vector<std::pair<size_t, size_t>> parts;
  if (mode == "apart") parts = {{0, 4096}, {4096, 4096}, {8192, 4096}};
  if (mode == "same_begin") parts = {{0, 8192}, {16384, 4096}, {0, 4096}};
  if (mode == "overlap") parts = {{0, 8192}, {16384, 4096}, {4096, 8192}};
  if (mode == "chain") parts = {{0, 614400}, {614400, 460800}, {0, 460800}, {460800, 54272}};
  if (parts.empty()) Leave(2, "--views takes apart, same_begin, overlap or chain");
  Driver d;
  cl_mem whole = d.Buffer(2 << 20);
  std::vector<cl_mem> made;
  for (const auto& [origin, size] : parts) {
    const cl_buffer_region region{origin, size};
    made.push_back(d.CreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr));
    if (made.back() == nullptr) Leave(1, "no part of a buffer");
  }
  for (int run = 0; run < 3; ++run) {
    for (size_t i = 0; i + 1 < made.size(); ++i) d.Launch(d.queue, d.step, made[i], made[i + 1]);
    d.Finish(d.queue);
  }
  for (cl_mem part : made) d.ReleaseMemObject(part);
  d.ReleaseMemObject(whole);
  std::printf("fine\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return Costs();
  if (argc == 3 && std::string_view(argv[1]) == "--views") return Views(argv[2]);
  Leave(2, "usage: opencl_costs [--views MODE]");
}
