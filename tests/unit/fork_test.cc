// A process forked after the runtime was used: told so by every run and opening, never left to wait
// for threads that stayed in the parent.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/session/model.h"
#include "tests/unit/onnx_text.h"
#include "tests/unit/temporary.h"

namespace oncilla {
namespace {

constexpr const char* kAdvice = "forked from one that was using Oncilla";

bool Refused(const Status& status) {
  return status.code() == Code::kFailedPrecondition &&
         Message(status).find(kAdvice) != std::string::npos;
}

// The exit status of a child that does `body`, which is killed when it hangs.
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
  EXPECT_TRUE(model->Run(request).ok()) << "the parent goes on";
}

}  // namespace
}  // namespace oncilla
