// A process forked after the runtime was used: every run and every opening must fail with a
// message, and never wait for threads that only the parent has.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/session/model.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

constexpr const char* kAdvice = "forked from one that was using Oncilla";

bool Refused(const Status& status) {
  return status.code() == Code::kFailedPrecondition &&
         Message(status).find(kAdvice) != std::string::npos;
}

// The exit status of a child that calls `body`; it is killed when it hangs.
template <class Body>
int InChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(Fork, ChildrenAreToldAndMayStartAnew) {
  const testing::TemporaryFolder folder;
  testing::OnnxGraphText graph;
  graph.Input("x", {2}).Output("y", {2});
  graph.Node({"Neg", {"x"}, {"y"}, "y"});
  const std::string path = folder.Write("neg.onnx", testing::OnnxModelText(graph));
  RuntimeOptions options;
  options.threads = 2;
  RunRequest request;
  const std::vector<float> values = {1, 2};
  request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {2}, values)}};
  const auto runtime = Runtime::Create(options);
  const auto session = *Session::Create(runtime, SessionOptions{.device = "cpu"});
  const auto model = *session->Load(path, {});
  ASSERT_TRUE(model->Run(request).ok());
  EXPECT_EQ(InChild([&] {
              if (!Refused(model->Run(request).status())) return 1;
              if (!Refused(model->RunAsync(request).status())) return 2;
              if (!Refused(session->Load(path, {}).status())) return 3;
              if (!Refused(Session::Create(runtime, SessionOptions{.device = "cpu"}).status())) {
                return 4;
              }
              return 0;
            }),
            0);
  EXPECT_EQ(InChild([&] {
              auto own = Session::Create(Runtime::Create(options), SessionOptions{.device = "cpu"});
              if (!own.ok()) return 1;
              auto loaded = (*own)->Load(path, {});
              return loaded.ok() && (*loaded)->Run(request).ok() ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(model->Run(request).ok()) << "the parent must still run";
}

// Threads of drivers stay in the parent as well: a child must be told so at once, and can use the
// CPU.
TEST(Fork, ChildrenHaveTheCpuWhereTheParentUsedOpenCl) {
  const testing::TemporaryFolder folder;
  testing::OnnxGraphText graph;
  graph.Input("x", {2}).Output("y", {2});
  graph.Node({"Neg", {"x"}, {"y"}, "y"});
  const std::string path = folder.Write("neg.onnx", testing::OnnxModelText(graph));
  RuntimeOptions options;
  options.threads = 2;
  options.opencl_cpu_devices = true;
  RunRequest request;
  const std::vector<float> values = {1, 2};
  request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {2}, values)}};
  const auto runtime = Runtime::Create(options);
  if (!runtime->Resolve("gpu").ok()) GTEST_SKIP() << "not run: no OpenCL device";
  const auto session = *Session::Create(runtime, SessionOptions{.device = "gpu"});
  const auto model = *session->Load(path, {});
  ASSERT_TRUE(model->Run(request).ok());
  EXPECT_EQ(InChild([&] {
              const auto begin = std::chrono::steady_clock::now();
              const auto own = Runtime::Create(options);
              const Status gpu = Session::Create(own, SessionOptions{.device = "gpu"}).status();
              if (gpu.code() != Code::kNotFound) return 1;
              const std::string text(Message(gpu));
              if (text.find("was forked from one") == std::string::npos) return 2;
              if (text.find("fork before the first use of OpenCL") == std::string::npos) return 3;
              auto there = Session::Create(own, SessionOptions{.device = "auto"});
              if (!there.ok()) return 4;
              auto loaded = (*there)->Load(path, {});
              if (!loaded.ok() || !(*loaded)->Run(request).ok()) return 5;
              const auto took = std::chrono::steady_clock::now() - begin;
              return took < std::chrono::seconds(1) ? 0 : 6;
            }),
            0);
  EXPECT_TRUE(model->Run(request).ok()) << "the parent must still run";
}

}  // namespace
}  // namespace oncilla
