// The CPU's message for an index out of range: which index, where, and the size. Cases can only
// test the words that all devices have.
#include "engine/device/device.h"
#include "engine/device/linked_backends.h"
#include "engine/import/graph_builder.h"
#include "engine/ops/op_set.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "gtest/gtest.h"

namespace oncilla {
namespace {

Tensor Ints(Shape shape, std::vector<int64_t> values) {
  return Tensor::Of<int64_t>(DType::kI64, std::move(shape), values);
}

// The failure of one node on the CPU.
std::string FailureOf(std::string_view op, AttrMap attrs, std::vector<Tensor> inputs) {
  std::vector<std::string> notes;
  for (const Backend* backend : LinkedBackends()) {
    if (backend->name != "cpu") continue;
    auto device = backend->open(backend->discover({}, notes)[0], {});
    EXPECT_TRUE(device.ok());
    const auto ops = OpSet::Builtin();
    const NodeView node{ops->Find(op), &attrs, {}, {}, "n"};
    auto out = (*device)->Evaluate(node, inputs);
    return out.ok() ? "no failure" : Message(out.status());
  }
  return "no CPU";
}

TEST(IndexErrorTest, NamesTheIndexTheAxisAndItsSize) {
  const Tensor x = Ints({3, 5}, std::vector<int64_t>(15));
  EXPECT_EQ(FailureOf("Gather", {{"axis", int64_t{1}}}, {x, Ints({2}, {0, 7})}),
            "index 7 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("Gather", {}, {x, Ints({1}, {-4})}),
            "index -4 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("Gather", {{"negative_indices", false}}, {x, Ints({1}, {-1})}),
            "index -1 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("GatherElements", {}, {x, Ints({1, 1}, {3})}),
            "index 3 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("GatherND", {}, {x, Ints({1, 2}, {0, 5})}),
            "index 5 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("ScatterElements", {}, {x, Ints({1, 1}, {-4}), Ints({1, 1}, {0})}),
            "index -4 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("ScatterND", {}, {x, Ints({1, 2}, {2, -6}), Ints({1}, {0})}),
            "index -6 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("ReverseSequence", {}, {x, Ints({5}, {1, 2, 3, 4, 0})}),
            "length 4 is out of range for axis 0 of size 3");
}

TEST(IndexErrorTest, StringsToo) {
  const Tensor x = Tensor::Strings({2}, {"a", "b"});
  EXPECT_EQ(FailureOf("Gather", {}, {x, Ints({1}, {2})}),
            "index 2 is out of range for axis 0 of size 2");
}

// The last thing for which a run waits comes after the node that fails.
TEST(IndexErrorTest, NamesTheNodeThoughMoreIsInLineBehindIt) {
  GraphBuilder g;
  const auto index = g.Placeholder(DType::kI32, PartialShape(Shape{1}), "index");
  const auto rows =
      g.Constant(Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{1, 2, 3, 4}));
  const auto y = g.Op("Gather", {rows, index}, {}, "y");
  const auto flat = g.Constant(Tensor::Of<int32_t>(DType::kI32, {1}, std::vector<int32_t>{2}));
  g.Op("Reshape", {y, flat}, {}, "flat");
  RuntimeOptions options;
  options.opencl_cpu_devices = true;
  const auto runtime = Runtime::Create(options);
  for (const std::string device : {"cpu", "cpu:plain", "gpu"}) {
    if (!runtime->Resolve(device).ok()) continue;
    const auto session = *Session::Create(runtime, SessionOptions{.device = device});
    const auto model = *session->LoadGraph(g.GraphDef().value(), "gather", {});
    RunRequest request;
    request.feeds = {{"index:0", Tensor::Of<int32_t>(DType::kI32, {1}, std::vector<int32_t>{99})}};
    request.fetches = {"y:0", "flat:0"};
    const Status failure = model->Run(request).status();
    EXPECT_EQ(failure.code(), Code::kInvalidArgument) << device << ": " << failure;
    EXPECT_EQ(Details(failure).node, "y") << device << ": " << failure;
    request.feeds[0].second = Tensor::Of<int32_t>(DType::kI32, {1}, std::vector<int32_t>{1});
    EXPECT_TRUE(model->Run(request).ok()) << device;
  }
}

}  // namespace
}  // namespace oncilla
