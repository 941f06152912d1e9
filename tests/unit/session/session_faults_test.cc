// Refused memory: the n-th allocation of a session fails, for n = 1, 2, ... until a round needs
// fewer. Each time the failure must say so, the next run of the same session must be right, and
// after the close all memory must be freed.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>

#include "engine/session/model.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

// An application's memory, which may run out once.
struct Memory {
  std::atomic<int> fails_in = 0;  // 1: at the next request; 0 or less: no more
  std::atomic<int64_t> live_bytes = 0;

  std::shared_ptr<const HostMemory> Hooks() {
    auto hooks = std::make_shared<HostMemory>();
    hooks->allocate = [this](size_t bytes, size_t alignment) -> void* {
      if (fails_in > 0 && --fails_in == 0) return nullptr;
      live_bytes += static_cast<int64_t>(bytes);
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    hooks->release = [this](void* memory, size_t bytes) {
      live_bytes -= static_cast<int64_t>(bytes);
      std::free(memory);
    };
    return hooks;
  }
};

std::string TwoProducts() {
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 8}).Output("y", {"n", 4});
  std::vector<float> weights(8 * 16);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 9) / 4 - 1;
  graph.Floats("w", {8, 16}, weights);
  graph.Floats("v", {16, 4}, std::vector<float>(weights.begin(), weights.begin() + 64));
  graph.Node({"MatMul", {"x", "w"}, {"a"}, "a"});
  graph.Node({"Softmax", {"a"}, {"b"}, "b"});
  graph.Node({"MatMul", {"b", "v"}, {"y"}, "y"});
  return testing::OnnxModelText(graph);
}

// Rows whose results do not depend on the number of rows.
Result<std::vector<float>> FirstRow(Model& model, int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows * 8));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8) / 8;
  RunRequest request;
  request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {rows, 8}, values)}};
  ONCILLA_ASSIGN(const RunResult result, model.Run(request));
  const auto out = result.outputs[0].second.As<float>();
  return std::vector<float>(out.begin(), out.begin() + 4);
}

TEST(SessionFaults, WhicheverAllocationFails) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("net.onnx", TwoProducts());
  std::vector<float> right;
  int n = 0;
  for (bool met = true; met && n < 100; ++n) {
    Memory memory;
    memory.fails_in = n;  // in the first round, no failure
    RuntimeOptions options;
    options.host_memory = memory.Hooks();
    {
      auto session = Session::Create(Runtime::Create(options), SessionOptions{.device = "cpu"});
      ASSERT_TRUE(session.ok()) << session.status();
      auto model = (*session)->Load(path, {});
      ASSERT_TRUE(model.ok()) << model.status();
      int failures = 0;
      for (const int64_t rows : {3, 700, 3, 70, 700}) {
        auto first = FirstRow(**model, rows);
        if (!first.ok()) {
          ++failures;
          EXPECT_EQ(first.status().code(), Code::kResourceExhausted) << first.status();
          EXPECT_EQ(memory.fails_in, 0) << "no other allocation may have failed";
          first = FirstRow(**model, rows);
        }
        ASSERT_TRUE(first.ok()) << n << ": " << first.status();
        if (right.empty()) right = *first;
        EXPECT_THAT(*first, ::testing::Pointwise(::testing::FloatNear(1e-6f), right)) << n;
      }
      EXPECT_LE(failures, 1) << n;
      met = n == 0 || memory.fails_in == 0;
      (*session)->Close();
    }
    EXPECT_EQ(memory.live_bytes, 0) << n;
  }
  EXPECT_GT(n, 3);  // constants, and an arena for each shape
  EXPECT_LT(n, 100);
}

}  // namespace
}  // namespace oncilla
