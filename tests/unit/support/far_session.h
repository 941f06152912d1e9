// A session on a far device (far_device.h), and a model of many steps with a known result.
#pragma once

#include <gtest/gtest.h>

#include "engine/session/model.h"
#include "engine/session/runtime.h"
#include "tests/unit/support/far_device.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::testing {

// `nodes` products, each of which rotates a row of four numbers one position to the right.
inline std::string Turns(int nodes) {
  OnnxGraphText graph;
  graph.Input("x", {"n", 4}).Output("y", {"n", 4});
  graph.Floats("turn", {4, 4}, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string next = i + 1 == nodes ? "y" : StrCat("t", i);
    graph.Node({"MatMul", {last, "turn"}, {next}, StrCat("turn", i)});
    last = next;
  }
  return OnnxModelText(graph);
}

inline Tensor Row(float a, float b, float c, float d) {
  return Tensor::Of<float>(DType::kF32, {1, 4}, std::vector<float>{a, b, c, d});
}

class FarSession : public ::testing::Test {
 protected:
  void Open(SessionOptions options = {}) {
    script_ = NewFarScript();
    RuntimeOptions runtime;
    runtime.threads = 2;
    runtime.more_backends = {FarBackend()};
    options.device = "gpu";
    auto session = Session::Create(Runtime::Create(runtime), options);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
  }
  std::shared_ptr<Model> LoadTurns(int nodes) {
    auto model = session_->Load(folder_.Write(StrCat("turns", nodes, ".onnx"), Turns(nodes)), {});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  // A copy on the second device.
  Result<DeviceTensor> Uploaded(const Tensor& tensor) {
    DeviceSet& devices = session_->device_set();
    ONCILLA_ASSIGN(const RunValue copy, devices.ToDevice(tensor, devices.names()[1]));
    return copy.device();
  }
  static RunRequest Request(Tensor x) {
    RunRequest request;
    request.feeds = {{"x", std::move(x)}};
    return request;
  }
  static std::vector<float> Values(const Tensor& t) {
    return {t.As<float>().begin(), t.As<float>().end()};
  }

  const TemporaryFolder folder_;
  std::shared_ptr<FarScript> script_;
  std::shared_ptr<Session> session_;
};

}  // namespace oncilla::testing
