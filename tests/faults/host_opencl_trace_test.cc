// Traces of runs on a queue of the application, over the same layer as host_opencl_test.cc.
#include "tests/faults/host_opencl_parts.h"

namespace {

using namespace hosting;  // NOLINT: their parts
using ::testing::HasSubstr;

// The numbers at a path of field numbers in a protobuf message.
std::vector<uint64_t> Varints(const std::string& message, std::vector<uint64_t> path) {
  std::vector<uint64_t> found;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    const bool wanted = tag >> 3 == path.front();
    if ((tag & 7) == 0) {
      const uint64_t value = varint();
      if (wanted && path.size() == 1) found.push_back(value);
      continue;
    }
    if ((tag & 7) != 2) return {};  // none such in these messages
    const size_t size = varint();
    if (wanted && path.size() > 1) {
      const auto inside = Varints(message.substr(at, size), {path.begin() + 1, path.end()});
      found.insert(found.end(), inside.begin(), inside.end());
    }
    at += size;
  }
  return found;
}

// The run gives the same commands as without tracing: its stamps are between those of the host's
// kernels.
TEST_F(HostOpenCl, TracesOfEnqueuedRunsAreOnTheClockOfTheHostsQueue) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  const auto refused = oncilla::opencl::EnqueueTraced(*callable_, host_.queue, {x}, {y});
  EXPECT_EQ(refused.status().code(), ONCILLA_FAILED_PRECONDITION);
  EXPECT_THAT(refused.status().message(), HasSubstr("CL_QUEUE_PROFILING_ENABLE"));
  cl_command_queue queue =
      clCreateCommandQueue(host_.context, host_.device, CL_QUEUE_PROFILING_ENABLE, nullptr);
  clSetKernelArg(host_.make, 0, sizeof(in_), &in_);
  cl_event before = nullptr, after = nullptr;
  const size_t size = kCount;
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue, host_.make, 1, nullptr, &size, nullptr, 0, nullptr, &before),
      CL_SUCCESS);
  const auto run = oncilla::opencl::EnqueueTraced(*callable_, queue, {x}, {y}).value();
  const auto plain = oncilla::opencl::Enqueue(*callable_, queue, {x}, {y}).value();
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue, host_.make, 1, nullptr, &size, nullptr, 0, nullptr, &after),
      CL_SUCCESS);
  EXPECT_EQ(run.Trace().status().code(), ONCILLA_FAILED_PRECONDITION) << "not finished";
  ASSERT_TRUE(run.Finish().ok());
  ASSERT_TRUE(plain.Finish().ok());
  EXPECT_THAT(plain.Trace().status().message(), HasSubstr("not enqueued to be traced"));
  clFinish(queue);
  ExpectRight(host_.Read(out_));
  cl_ulong begin = 0, end = 0;
  clGetEventProfilingInfo(before, CL_PROFILING_COMMAND_END, sizeof(begin), &begin, nullptr);
  clGetEventProfilingInfo(after, CL_PROFILING_COMMAND_START, sizeof(end), &end, nullptr);
  clReleaseEvent(before);
  clReleaseEvent(after);
  clReleaseCommandQueue(queue);

  const std::string chrome = run.Trace().value();
  EXPECT_THAT(chrome, HasSubstr("\"name\":\"GPU:0\""));
  EXPECT_THAT(chrome, HasSubstr("\"op\":\"MatMul\""));
  // Every node's all_start_nanos (field 13 of NodeExecStats), of NodeExecStats (2) of
  // DeviceStepStats (1) of StepStats (1).
  const std::string metadata = run.Trace(ONCILLA_TRACE_STEP_STATS).value();
  const std::vector<uint64_t> starts = Varints(metadata, {1, 1, 2, 13});
  EXPECT_GE(starts.size(), 1u);
  for (const uint64_t start : starts) {
    EXPECT_GE(start, begin);
    EXPECT_LE(start, end);
  }
}

}  // namespace
