// An application with OpenCL objects of its own (public headers only): its kernel computes the
// feed, the net runs in its context, its kernel reads the output. Runs over the fault layer, whose
// counts show that nothing is copied to the host, that its queue is only enqueued to, and that
// nothing is leaked.
#include "tests/faults/host_opencl_parts.h"

namespace {

using namespace hosting;  // NOLINT: their parts
using ::testing::HasSubstr;

TEST_F(HostOpenCl, TheDeviceIsListedAsBorrowed) {
  const auto devices = runtime_->Devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_THAT(devices[1].name, HasSubstr("device:GPU:0"));
  EXPECT_EQ(devices[1].note, "borrowed from the application");
  char name[256] = {};
  clGetDeviceInfo(host_.device, CL_DEVICE_NAME, sizeof(name), name, nullptr);
  EXPECT_EQ(devices[1].driver_name, name);
}

TEST_F(HostOpenCl, RunsBetweenKernelsOfTheHostWithoutACopy) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  EXPECT_EQ(oncilla::opencl::RunInto(*callable_, {x}, {y}).status().code(), ONCILLA_OK);
  host_.Make(in_);
  clFinish(host_.queue);
  Faults()->reset();
  const oncilla_run_cost cost = oncilla::opencl::RunInto(*callable_, {x}, {y}).value();
  EXPECT_EQ(cost.copies, 0);
  EXPECT_EQ(cost.copied_bytes, 0);
  EXPECT_EQ(cost.device_copies, 0);
  EXPECT_EQ(Calls("EnqueueReadBuffer"), 0);
  EXPECT_EQ(Calls("EnqueueWriteBuffer"), 0);
  EXPECT_EQ(Calls("EnqueueCopyBuffer"), 0);
  EXPECT_EQ(Calls("CreateBuffer"), 0);
  EXPECT_GT(Calls("EnqueueNDRangeKernel"), 0);
  host_.Twice(out_, last_);
  ExpectRight(host_.Read(last_), 2);
}

TEST_F(HostOpenCl, ResultsAreBuffersForTheHost) {
  host_.Make(in_);
  clFinish(host_.queue);
  oncilla::RunOptions options;
  options.keep_all = true;
  const auto result = model_->Run({{"x:0", Wrap(in_).value()}}, options).value();
  EXPECT_THAT(result.report(), HasSubstr("0 copies"));
  const oncilla::opencl::Place place = oncilla::opencl::BufferOf(result[0]).value();
  EXPECT_EQ(place.bytes, kBytes);
  auto* buffer = static_cast<cl_mem>(place.buffer);
  cl_context context = nullptr;
  clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof(context), static_cast<void*>(&context),
                     nullptr);
  EXPECT_EQ(context, host_.context);
  ExpectRight(host_.Read(buffer, place.offset));
  const auto x = Wrap(in_).value();
  EXPECT_EQ(oncilla::opencl::BufferOf(x).value().buffer, in_);
  const auto on_host = x.Read().value();
  EXPECT_EQ(oncilla::opencl::BufferOf(on_host).status().code(), ONCILLA_INVALID_ARGUMENT);
}

// The application's queue is blocked by an event of its own, so that a wait for it would never end.
TEST_F(HostOpenCl, AForeignQueueIsOnlyEnqueuedTo) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  cl_event gate = clCreateUserEvent(host_.context, nullptr);
  ASSERT_EQ(clEnqueueBarrierWithWaitList(host_.queue, 1, &gate, nullptr), CL_SUCCESS);
  host_.Make(in_);
  void* event = nullptr;
  const auto first =
      oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}, {}, &event).value();
  EXPECT_FALSE(first.Done());
  Faults()->reset();
  host_.Twice(out_, in_);  // in place of the feed, from what came of it
  const auto second = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value();
  EXPECT_EQ(Calls("Finish"), 0);
  EXPECT_EQ(Calls("WaitForEvents"), 0);
  EXPECT_EQ(Calls("Flush"), 0);
  EXPECT_EQ(Calls("EnqueueReadBuffer"), 0);
  EXPECT_EQ(Calls("EnqueueWriteBuffer"), 0);
  EXPECT_EQ(Calls("CreateBuffer"), 0);
  EXPECT_FALSE(second.Done());
  EXPECT_EQ(Calls("Flush"), 0) << "Done() must not flush";
  EXPECT_EQ(second.Finish(0).code(), ONCILLA_DEADLINE_EXCEEDED);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  auto* done = static_cast<cl_event>(event);
  EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
  EXPECT_TRUE(first.Done());
  EXPECT_TRUE(first.Finish().ok());
  EXPECT_TRUE(first.Finish(0).ok()) << "a second Finish() must succeed";
  EXPECT_TRUE(second.Finish().ok());
  ExpectRight(host_.Read(in_), 2);
  clReleaseEvent(done);
  clReleaseEvent(gate);
}

TEST_F(HostOpenCl, EventsOrderRunsAcrossQueues) {
  host_.Make(in_);
  cl_command_queue other = clCreateCommandQueue(host_.context, host_.device, 0, nullptr);
  cl_event gate = clCreateUserEvent(host_.context, nullptr);
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  clFinish(host_.queue);
  const auto run = oncilla::opencl::Enqueue(*callable_, other, {x}, {y}, {gate}).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(run.Done());
  clSetUserEventStatus(gate, CL_COMPLETE);
  EXPECT_TRUE(run.Finish().ok());
  ExpectRight(host_.Read(out_));
  clReleaseEvent(gate);
  clReleaseCommandQueue(other);
}

TEST_F(HostOpenCl, ErrorsInDataAreToldByFinish) {
  oncilla::GraphBuilder g;
  const auto table = g.Constant({8, 2}, std::vector<float>(16, 3.0F), "table");
  const auto rows = g.Placeholder(ONCILLA_INT32, {4}, "rows");
  const auto axis = g.Constant(oncilla::Tensor::Of<int32_t>({}, {0}).value());
  g.Op("GatherV2", {table, rows, axis}, "picked");
  auto model = session_->Load(g).value();
  oncilla::CallableOptions options;
  options.inputs = {"rows:0"};
  options.outputs = {"picked:0"};
  const auto pick = model.MakeCallable(options).value();
  cl_mem indices = host_.Buffer(16), picked = host_.Buffer(32);
  const auto in = oncilla::opencl::Wrap(*session_, indices, ONCILLA_INT32, {4}).value();
  const auto out = oncilla::opencl::Wrap(*session_, picked, ONCILLA_FLOAT32, {4, 2}).value();
  const cl_int good[] = {0, 1, 7, 3}, bad[] = {0, 1, 800, 3};
  for (const cl_int* values : {good, bad, good}) {
    clEnqueueWriteBuffer(host_.queue, indices, CL_TRUE, 0, 16, values, 0, nullptr, nullptr);
    const auto run = oncilla::opencl::Enqueue(pick, host_.queue, {in}, {out}).value();
    const oncilla::Status status = run.Finish();
    if (values == good) {
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(host_.Read(picked, 0, 8), std::vector<float>(8, 3.0F));
    } else {
      EXPECT_EQ(status.code(), ONCILLA_INVALID_ARGUMENT);
      EXPECT_EQ(status.node(), "picked");
      EXPECT_THAT(status.message(), HasSubstr("out of range"));
    }
  }
}

TEST_F(HostOpenCl, PartsOfBuffersServe) {
  cl_uint bits = 0;
  clGetDeviceInfo(host_.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, nullptr);
  const size_t aligned = bits / 8;
  cl_mem big = host_.Buffer(4 * aligned + 3 * kBytes);
  const cl_buffer_region region = {aligned, kBytes};
  cl_mem part =
      clCreateSubBuffer(big, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr);
  host_.Make(part);
  clFinish(host_.queue);
  const auto x = Wrap(part).value();
  for (const size_t offset : {aligned + kBytes, aligned + kBytes + sizeof(float)}) {
    const auto y = Wrap(big, offset).value();
    const oncilla_run_cost cost = oncilla::opencl::RunInto(*callable_, {x}, {y}).value();
    EXPECT_EQ(cost.copies, 0);
    ExpectRight(host_.Read(big, offset));
    const auto run = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value();
    EXPECT_TRUE(run.Finish().ok());
    ExpectRight(host_.Read(big, offset));
  }
  // The feed at an unaligned offset too.
  clEnqueueCopyBuffer(host_.queue, part, big, 0, aligned + kBytes + 4, kBytes, 0, nullptr, nullptr);
  clFinish(host_.queue);
  const auto odd = Wrap(big, aligned + kBytes + 4).value(), y = Wrap(out_).value();
  ASSERT_TRUE(oncilla::opencl::RunInto(*callable_, {odd}, {y}).ok());
  ExpectRight(host_.Read(out_));
  clReleaseMemObject(part);
}

TEST_F(HostOpenCl, WhatCannotBeWrittenStraightIsCopiedOnTheDevice) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  host_.Make(in_);
  clFinish(host_.queue);
  // Onto the feed, and with a time limit, after which nothing may be written.
  oncilla_run_cost cost = oncilla::opencl::RunInto(*callable_, {x}, {y}, 60000).value();
  EXPECT_EQ(cost.device_copies, 1);
  EXPECT_EQ(cost.device_copied_bytes, static_cast<int64_t>(kBytes));
  EXPECT_EQ(cost.copies, 0);
  ExpectRight(host_.Read(out_));
  cost = oncilla::opencl::RunInto(*callable_, {x}, {x}).value();
  EXPECT_EQ(cost.device_copies, 1);
  EXPECT_EQ(cost.copies, 0);
  ExpectRight(host_.Read(in_));
  const auto run = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {x});
  EXPECT_THAT(run.status().message(), HasSubstr("overlaps an input"));
}

TEST_F(HostOpenCl, WhatDoesNotFitIsRefused) {
  const auto refused = [](const auto& result, oncilla_code code, const char* text) {
    EXPECT_EQ(result.status().code(), code);
    EXPECT_THAT(result.status().message(), HasSubstr(text));
  };
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  refused(Wrap(nullptr), ONCILLA_INVALID_ARGUMENT, "null");
  refused(Wrap(in_, 4), ONCILLA_INVALID_ARGUMENT, "do not fit");
  refused(Wrap(in_, 0, {kRows + 1, kWidth}), ONCILLA_INVALID_ARGUMENT, "do not fit");
  refused(Wrap(in_, 2, {1, kWidth}), ONCILLA_INVALID_ARGUMENT, "not a multiple of its elements");
  refused(Wrap(in_, SIZE_MAX - 3, {1, kWidth}), ONCILLA_INVALID_ARGUMENT, "offset");
  refused(oncilla::opencl::Wrap(*session_, in_, ONCILLA_STRING, {1}), ONCILLA_INVALID_ARGUMENT,
          "no bytes");
  {
    Host other;
    ASSERT_TRUE(other.ok);
    refused(Wrap(other.Buffer(kBytes)), ONCILLA_INVALID_ARGUMENT, "another cl_context");
    refused(oncilla::opencl::Enqueue(*callable_, other.queue, {x}, {y}), ONCILLA_INVALID_ARGUMENT,
            "another cl_context");
    cl_event event = nullptr;
    clEnqueueMarkerWithWaitList(other.queue, 0, nullptr, &event);
    refused(oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}, {event}),
            ONCILLA_INVALID_ARGUMENT, "another cl_context");
    clReleaseEvent(event);
    clFinish(other.queue);
  }
  Host disorderly(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  refused(oncilla::opencl::MakeRuntime(nullptr), ONCILLA_INVALID_ARGUMENT, "null");
  oncilla::opencl::HostOptions nowhere;
  nowhere.library = "libno_such_opencl.so.9";
  refused(oncilla::opencl::MakeRuntime(host_.context, nowhere), ONCILLA_NOT_FOUND,
          "libno_such_opencl");
  cl_command_queue unordered = clCreateCommandQueue(
      host_.context, host_.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, nullptr);
  ASSERT_NE(unordered, nullptr);
  refused(oncilla::opencl::Enqueue(*callable_, unordered, {x}, {y}), ONCILLA_UNIMPLEMENTED,
          "out of order");
  clReleaseCommandQueue(unordered);
  // Flags.
  cl_mem constant = host_.Buffer(kBytes, CL_MEM_READ_ONLY);
  cl_mem sink = host_.Buffer(kBytes, CL_MEM_WRITE_ONLY);
  const auto read_only = Wrap(constant).value(), write_only = Wrap(sink).value();
  refused(oncilla::opencl::RunInto(*callable_, {x}, {read_only}), ONCILLA_INVALID_ARGUMENT,
          "CL_MEM_READ_ONLY");
  refused(oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {read_only}),
          ONCILLA_INVALID_ARGUMENT, "CL_MEM_READ_ONLY");
  refused(oncilla::opencl::RunInto(*callable_, {write_only}, {y}), ONCILLA_INVALID_ARGUMENT,
          "CL_MEM_WRITE_ONLY");
  EXPECT_TRUE(oncilla::opencl::RunInto(*callable_, {read_only}, {write_only}).ok());
  // Shapes and places.
  const auto small = Wrap(out_, 0, {1, kWidth}).value();
  refused(oncilla::opencl::RunInto(*callable_, {x}, {small}), ONCILLA_INVALID_ARGUMENT,
          "output 'y:0' is f32[4,32]");
  refused(oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {small}), ONCILLA_INVALID_ARGUMENT,
          "output 'y:0' is f32[4,32]");
  const auto on_host = oncilla::Tensor::Of<float>({1, kWidth}, std::vector<float>(kWidth)).value();
  refused(oncilla::opencl::Enqueue(*callable_, host_.queue, {on_host}, {small}),
          ONCILLA_INVALID_ARGUMENT, "must be on the device");
  refused(oncilla::opencl::RunInto(*callable_, {x}, {on_host}), ONCILLA_INVALID_ARGUMENT,
          "host memory");
  const auto pool = session_->Upload(on_host).value();
  refused(oncilla::opencl::RunInto(*callable_, {pool}, {pool}), ONCILLA_INVALID_ARGUMENT,
          "buffer of the application's");
  // The session must still work after these failures.
  host_.Make(in_);
  clFinish(host_.queue);
  ASSERT_TRUE(oncilla::opencl::RunInto(*callable_, {x}, {y}).ok());
  ExpectRight(host_.Read(out_));
}

TEST_F(HostOpenCl, GraphsThatNeedTheHostAreRefusedByName) {
  oncilla::GraphBuilder g;
  const auto x = g.Placeholder(ONCILLA_FLOAT32, {8}, "x");
  const auto zero = g.Constant(oncilla::Tensor::Of<float>({}, {0}).value());
  const auto where =
      g.Op("Where", {g.Op("Greater", {x, zero}, "positive", ONCILLA_BOOL)}, "where", ONCILLA_INT64);
  g.Op("Cast", {where}, "y", ONCILLA_INT64);
  auto model = session_->Load(g).value();
  oncilla::CallableOptions options;
  options.inputs = {"x:0"};
  options.outputs = {"where:0"};
  const auto call = model.MakeCallable(options).value();
  const auto in = oncilla::opencl::Wrap(*session_, in_, ONCILLA_FLOAT32, {8}).value();
  const auto out = oncilla::opencl::Wrap(*session_, out_, ONCILLA_INT64, {8, 1}).value();
  const auto run = oncilla::opencl::Enqueue(call, host_.queue, {in}, {out});
  EXPECT_EQ(run.status().code(), ONCILLA_UNIMPLEMENTED);
  EXPECT_THAT(run.status().message(), HasSubstr("node 'where"));
}

TEST_F(HostOpenCl, BuffersLiveAsLongAsTheyAreUsed) {
  host_.Make(in_);
  clFinish(host_.queue);
  cl_mem own = clCreateBuffer(host_.context, CL_MEM_READ_WRITE, kBytes, nullptr, nullptr);
  clEnqueueCopyBuffer(host_.queue, in_, own, 0, 0, kBytes, 0, nullptr, nullptr);
  clFinish(host_.queue);
  cl_event gate = clCreateUserEvent(host_.context, nullptr);
  clEnqueueBarrierWithWaitList(host_.queue, 1, &gate, nullptr);
  std::unique_ptr<oncilla::opencl::EnqueuedRun> run;
  {
    const auto x = Wrap(own).value(), y = Wrap(out_).value();
    EXPECT_EQ(clReleaseMemObject(own), CL_SUCCESS);  // the application's only reference
    run = std::make_unique<oncilla::opencl::EnqueuedRun>(
        oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value());
  }
  clSetUserEventStatus(gate, CL_COMPLETE);
  EXPECT_TRUE(run->Finish().ok());
  ExpectRight(host_.Read(out_));
  clReleaseEvent(gate);
}

TEST_F(HostOpenCl, NothingIsUsedAfterCloseNorStaysBehind) {
  // Drivers hold references of their own.
  const auto references = [](auto get, auto object, auto what) {
    cl_uint count = 0;
    get(object, what, sizeof(count), &count, nullptr);
    return count;
  };
  host_.Make(in_);
  clFinish(host_.queue);
  const auto buffer_before = references(clGetMemObjectInfo, in_, CL_MEM_REFERENCE_COUNT);
  const auto queue_before =
      references(clGetCommandQueueInfo, host_.queue, CL_QUEUE_REFERENCE_COUNT);
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  const auto run = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value();
  const auto unchecked = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value();
  EXPECT_TRUE(run.Finish().ok());
  ASSERT_EQ(clFinish(host_.queue), CL_SUCCESS);
  ASSERT_TRUE(session_->Close().ok());
  EXPECT_EQ(references(clGetMemObjectInfo, in_, CL_MEM_REFERENCE_COUNT), buffer_before);
  EXPECT_EQ(references(clGetCommandQueueInfo, host_.queue, CL_QUEUE_REFERENCE_COUNT), queue_before);
  EXPECT_EQ(unchecked.Finish().code(), ONCILLA_FAILED_PRECONDITION);
  EXPECT_EQ(oncilla::opencl::RunInto(*callable_, {x}, {y}).status().code(),
            ONCILLA_FAILED_PRECONDITION);
  EXPECT_EQ(oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).status().code(),
            ONCILLA_FAILED_PRECONDITION);
  EXPECT_EQ(oncilla::opencl::BufferOf(x).status().code(), ONCILLA_FAILED_PRECONDITION);
  EXPECT_EQ(x.Read().status().code(), ONCILLA_FAILED_PRECONDITION);
  EXPECT_EQ(Wrap(in_).status().code(), ONCILLA_FAILED_PRECONDITION);
  callable_ = nullptr;
  model_ = nullptr;
  session_ = nullptr;
  runtime_ = nullptr;
  EXPECT_EQ(references(clGetContextInfo, host_.context, CL_CONTEXT_REFERENCE_COUNT),
            context_before_);
  ExpectRight(host_.Read(out_));
}

// The application blocks the work while the session closes: the work's memory must not be reused.
TEST_F(HostOpenCl, ClosingDoesNotWaitForAQueueThatIsHeldUp) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  cl_event gate = clCreateUserEvent(host_.context, nullptr);
  clEnqueueBarrierWithWaitList(host_.queue, 1, &gate, nullptr);
  const auto run = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value();
  Faults()->reset();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(Calls("Finish"), 0);
  EXPECT_EQ(run.Finish().code(), ONCILLA_FAILED_PRECONDITION);
  callable_ = nullptr;
  model_ = nullptr;
  session_ = nullptr;
  runtime_ = nullptr;
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ExpectRight(host_.Read(out_));  // even so
  clReleaseEvent(gate);
}

// The layer counts the application's objects too.
TEST(HostOpenClObjects, AreAllGivenBack) {
  if (Faults() == nullptr) GTEST_SKIP() << "not run: the layer is not in the process";
  Faults()->reset();
  const long objects = Faults()->live_objects();
  const long long bytes = Faults()->live_bytes();
  {
    Host host;
    ASSERT_TRUE(host.ok);
    auto runtime = oncilla::opencl::MakeRuntime(host.context).value();
    auto session = oncilla::Session::Create(runtime).value();
    oncilla::GraphBuilder net;
    Net(net);
    auto model = session.Load(net).value();
    oncilla::CallableOptions options;
    options.inputs = {"x:0"};
    options.outputs = {"y:0"};
    const auto call = model.MakeCallable(options).value();
    cl_mem in = host.Buffer(kBytes), out = host.Buffer(kBytes);
    host.Make(in);
    const auto x = oncilla::opencl::Wrap(session, in, ONCILLA_FLOAT32, {kRows, kWidth}).value();
    const auto y = oncilla::opencl::Wrap(session, out, ONCILLA_FLOAT32, {kRows, kWidth}).value();
    for (int i = 0; i < 300; ++i) {  // most of them never asked for
      const auto run = oncilla::opencl::Enqueue(call, host.queue, {x}, {y}).value();
      if (i % 100 == 0) {
        EXPECT_TRUE(run.Finish().ok());
      }
    }
    ExpectRight(host.Read(out));
  }
  EXPECT_EQ(Faults()->live_objects(), objects);
  EXPECT_EQ(Faults()->live_bytes(), bytes);
}

// Each call made while enqueueing a run fails once, with each plausible error.
TEST_F(HostOpenCl, FailuresOfTheDriverAreToldAndLeaveTheSessionUsable) {
  const auto x = Wrap(in_).value(), y = Wrap(out_).value();
  host_.Make(in_);
  ASSERT_TRUE(oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}).value().Finish().ok());
  int failed = 0;
  for (const char* const* c = Faults()->calls; *c != nullptr; ++c) {
    const char* colon = std::strchr(*c, ':');
    const std::string call(*c, colon);
    if (call == "WaitForEvents" || call == "GetEventInfo") continue;  // asked for by Finish
    for (long n = 1; n <= 3; ++n) {
      Faults()->reset();
      Faults()->fail(call.c_str(), n, 0, std::atoi(colon + 1));
      void* event = nullptr;
      auto run = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y}, {}, &event);
      Faults()->reset();
      if (run.ok()) {
        EXPECT_TRUE(run->Finish().ok());
        clReleaseEvent(static_cast<cl_event>(event));
      } else {
        ++failed;
        EXPECT_NE(run.status().message(), "");
      }
      auto again = oncilla::opencl::Enqueue(*callable_, host_.queue, {x}, {y});
      ASSERT_TRUE(again.ok()) << *c << ' ' << n << ": " << again.status().message();
      ASSERT_TRUE(again->Finish().ok()) << *c << ' ' << n;
      ExpectRight(host_.Read(out_));
    }
  }
  EXPECT_GE(failed, 4);
}

}  // namespace
