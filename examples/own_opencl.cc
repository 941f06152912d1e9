// A net between two OpenCL kernels of the application's own, on the application's queue.
//   own_opencl
// Its context, queue and buffers are lent; nothing is copied, and nothing waits until the end.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cmath>
#include <oncilla/oncilla_opencl.hpp>

#include "examples/show.h"

namespace {

const char* const kKernels =
    "kernel void camera(global float* x) { int i = get_global_id(0); x[i] = i * 0.5f; }"
    "kernel void screen(global const float* y, global float* out) {"
    "  int i = get_global_id(0); out[i] = y[i] + 100.0f; }";

void Launch(cl_command_queue queue, cl_kernel kernel, std::vector<cl_mem> buffers, size_t size) {
  for (cl_uint i = 0; i < buffers.size(); ++i) {
    clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
  }
  clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr);
}

}  // namespace

int main() {
  // What the application has anyway.
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_uint count = 0;
  if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0 ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count) != CL_SUCCESS) {
    std::printf("this machine has no OpenCL\n");
    return 0;
  }
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  cl_program program =
      clCreateProgramWithSource(context, 1, const_cast<const char**>(&kKernels), nullptr, nullptr);
  clBuildProgram(program, 1, &device, "", nullptr, nullptr);
  cl_kernel camera = clCreateKernel(program, "camera", nullptr);
  cl_kernel screen = clCreateKernel(program, "screen", nullptr);
  cl_mem frame = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * 4, nullptr, nullptr);
  cl_mem scores = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * 4, nullptr, nullptr);
  cl_mem shown = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * 4, nullptr, nullptr);
  {
    // The device of the context is GPU:0 of this runtime.
    auto runtime = oncilla::opencl::MakeRuntime(context).value();
    auto session = oncilla::Session::Create(runtime).value();
    oncilla::GraphBuilder g;
    const auto x = g.Placeholder(ONCILLA_FLOAT32, {1, 4}, "x");
    const auto w = g.Constant({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, "w");
    const auto y = g.MatMul(x, w, "y");
    auto model = session.Load(g).value();
    oncilla::CallableOptions options;
    options.inputs = {x.tensor()};
    options.outputs = {y.tensor()};
    auto net = model.MakeCallable(options).value();
    // Names for parts of the application's buffers.
    auto in = oncilla::opencl::Wrap(session, frame, ONCILLA_FLOAT32, {1, 4}).value();
    auto out = oncilla::opencl::Wrap(session, scores, ONCILLA_FLOAT32, {1, 2}).value();
    // All of this is enqueued; the order of the queue does the rest.
    Launch(queue, camera, {frame}, 4);
    auto run = oncilla::opencl::Enqueue(net, queue, {in}, {out}).value();
    Launch(queue, screen, {scores, shown}, 2);
    float values[2] = {};
    clEnqueueReadBuffer(queue, shown, CL_TRUE, 0, sizeof(values), values, 0, nullptr, nullptr);
    // Whether the net found anything wrong with its data is told here.
    const oncilla::Status status = run.Finish();
    show::Expect(status.ok(), "the run: " + (status.ok() ? std::string("OK") : status.message()));
    show::Expect(values[0] == 117 && values[1] == 120,
                 "on the screen: " + std::to_string(values[0]) + ' ' + std::to_string(values[1]));
    // The same with the engine's own queue, behind a clFinish; what it cost.
    clFinish(queue);
    const oncilla_run_cost cost = oncilla::opencl::RunInto(net, {in}, {out}).value();
    show::Expect(cost.copies == 0 && cost.device_copies == 0,
                 "copies: " + std::to_string(cost.copies) + " with the host, " +
                     std::to_string(cost.device_copies) + " on the device");
  }  // gives back what it has taken, and its references
  for (cl_mem buffer : {frame, scores, shown}) clReleaseMemObject(buffer);
  clReleaseKernel(camera);
  clReleaseKernel(screen);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}
