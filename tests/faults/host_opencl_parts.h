// What the tests of an application with OpenCL objects of its own share: the application, a small
// net, and a session in the application's context. Public headers only.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <oncilla/oncilla_graph.hpp>
#include <oncilla/oncilla_opencl.hpp>
#include <thread>

#include "tests/faults/fault_layer.h"

namespace hosting {

inline constexpr int kRows = 4, kWidth = 32, kCount = kRows * kWidth;
inline constexpr size_t kBytes = kCount * sizeof(float);

inline const FaultControl* Faults() {
  const char* path = std::getenv("OPENCL_LAYERS");
  void* layer = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  auto get = layer == nullptr
                 ? nullptr
                 : reinterpret_cast<const FaultControl* (*)()>(dlsym(layer, "oncilla_faults"));
  return get == nullptr ? nullptr : get();
}

inline const char* const kSource =
    "kernel void make(global float* x) {"
    "  int i = get_global_id(0); x[i] = (float)(i % 7) * 0.25f - 0.5f; }"
    "kernel void twice(global const float* y, global float* out) {"
    "  int i = get_global_id(0); out[i] = 2.0f * y[i]; }";

// The objects of an application before it uses Oncilla.
class Host {
 public:
  explicit Host(cl_command_queue_properties properties = 0) {
    cl_platform_id platform = nullptr;
    cl_uint count = 0;
    if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0) return;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count) != CL_SUCCESS) return;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = clCreateCommandQueue(context, device, properties, nullptr);
    program =
        clCreateProgramWithSource(context, 1, const_cast<const char**>(&kSource), nullptr, nullptr);
    if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return;
    make = clCreateKernel(program, "make", nullptr);
    twice = clCreateKernel(program, "twice", nullptr);
    ok = make != nullptr && twice != nullptr;
  }
  ~Host() {
    for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
    if (make != nullptr) clReleaseKernel(make);
    if (twice != nullptr) clReleaseKernel(twice);
    if (program != nullptr) clReleaseProgram(program);
    if (queue != nullptr) clReleaseCommandQueue(queue);
    if (context != nullptr) clReleaseContext(context);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  cl_mem Buffer(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    buffers.push_back(clCreateBuffer(context, flags, bytes, nullptr, nullptr));
    return buffers.back();
  }
  void Make(cl_mem x) {
    clSetKernelArg(make, 0, sizeof(x), &x);
    const size_t size = kCount;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, make, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
  }
  void Twice(cl_mem y, cl_mem out) {
    clSetKernelArg(twice, 0, sizeof(y), &y);
    clSetKernelArg(twice, 1, sizeof(out), &out);
    const size_t size = kCount;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, twice, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
  }
  std::vector<float> Read(cl_mem buffer, size_t offset = 0, size_t count = kCount) {
    std::vector<float> values(count);
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, count * sizeof(float),
                                  values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel make = nullptr, twice = nullptr;
  std::vector<cl_mem> buffers;
  bool ok = false;
};

inline float FeedAt(int i) { return static_cast<float>(i % 7) * 0.25F - 0.5F; }
inline float WeightAt(int i) { return static_cast<float>(i % 5) * 0.125F - 0.25F; }

// y = tanh(x @ w).
inline void Net(oncilla::GraphBuilder& g) {
  const auto x = g.Placeholder(ONCILLA_FLOAT32, {-1, kWidth}, "x");
  std::vector<float> weights(kWidth * kWidth);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = WeightAt(static_cast<int>(i));
  const auto w = g.Constant({kWidth, kWidth}, weights, "w");
  g.Op("Tanh", {g.MatMul(x, w, "product")}, "y");
}

inline std::vector<float> Right() {
  std::vector<float> y(kCount);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kWidth; ++c) {
      double sum = 0;
      for (int k = 0; k < kWidth; ++k) {
        sum += static_cast<double>(FeedAt(r * kWidth + k)) * WeightAt(k * kWidth + c);
      }
      y[r * kWidth + c] = static_cast<float>(std::tanh(sum));
    }
  }
  return y;
}

inline void ExpectRight(const std::vector<float>& got, float factor = 1) {
  const std::vector<float> right = Right();
  ASSERT_EQ(got.size(), right.size());
  for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(got[i], factor * right[i], 1e-5) << i;
}

class HostOpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Faults() == nullptr) GTEST_SKIP() << "not run: the layer is not in the process";
    ASSERT_TRUE(host_.ok);
    in_ = host_.Buffer(kBytes);
    out_ = host_.Buffer(kBytes);
    last_ = host_.Buffer(kBytes);
    host_.Make(in_);
    clFinish(host_.queue);
    clGetContextInfo(host_.context, CL_CONTEXT_REFERENCE_COUNT, sizeof(context_before_),
                     &context_before_, nullptr);
    runtime_ =
        std::make_unique<oncilla::Runtime>(oncilla::opencl::MakeRuntime(host_.context).value());
    session_ = std::make_unique<oncilla::Session>(oncilla::Session::Create(*runtime_).value());
    oncilla::GraphBuilder net;
    Net(net);
    model_ = std::make_unique<oncilla::Model>(session_->Load(net).value());
    callable_ = std::make_unique<oncilla::Callable>(Call({"x:0"}, {"y:0"}));
  }
  oncilla::Callable Call(std::vector<std::string> inputs, std::vector<std::string> outputs) {
    oncilla::CallableOptions options;
    options.inputs = std::move(inputs);
    options.outputs = std::move(outputs);
    return model_->MakeCallable(options).value();
  }
  oncilla::Result<oncilla::Tensor> Wrap(cl_mem buffer, size_t offset = 0,
                                        std::vector<int64_t> dims = {kRows, kWidth}) {
    return oncilla::opencl::Wrap(*session_, buffer, ONCILLA_FLOAT32, dims, offset);
  }
  static long Calls(const char* call) { return Faults()->count(call); }

  Host host_;
  std::unique_ptr<oncilla::Runtime> runtime_;
  std::unique_ptr<oncilla::Session> session_;
  std::unique_ptr<oncilla::Model> model_;
  std::unique_ptr<oncilla::Callable> callable_;
  cl_mem in_ = nullptr, out_ = nullptr, last_ = nullptr;
  cl_uint context_before_ = 0;
};

}  // namespace hosting
