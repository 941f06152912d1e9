// Plans for simulated devices.
#include <gmock/gmock.h>

#include "backends/opencl/simulated/device.h"
#include "engine/compile/plan.h"
#include "engine/import/model_source.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/session_parts.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::opencl {
namespace {

using oncilla::testing::TemporaryFolder;
using ::testing::HasSubstr;

// A convolution, a depthwise one, a mean over the image, a product, a softmax.
std::string SmallNet() {
  oncilla::testing::OnnxGraphText net;
  const auto weights = [&](const std::string& name, const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 13) / 13 - 0.5f;
    net.Floats(name, shape, values);
  };
  using Node = oncilla::testing::OnnxNodeText;
  weights("w1", {32, 16, 3, 3});
  weights("w2", {32, 1, 3, 3});
  weights("w3", {32, 40});
  net.Input("x", {1, 16, 28, 28}).Output("y", {1, 40});
  Node conv("Conv", {"x", "w1"}, {"a"}, "conv");
  net.Node(conv.Ints("pads", {1, 1, 1, 1}));
  Node depthwise("Conv", {"a", "w2"}, {"b"}, "depthwise");
  net.Node(depthwise.Ints("pads", {1, 1, 1, 1}).Int("group", 32));
  net.Node(Node("Relu", {"b"}, {"c"}, "relu"));
  net.Node(Node("GlobalAveragePool", {"c"}, {"d"}, "mean"));
  net.Node(Node("Flatten", {"d"}, {"e"}, "flat"));
  net.Node(Node("MatMul", {"e", "w3"}, {"f"}, "product"));
  net.Node(Node("Softmax", {"f"}, {"y"}, "softmax"));
  return OnnxModelText(net);
}

class OpenClSimulated : public ::testing::Test {
 protected:
  // The plan of the small net in which the device is preferred.
  void Plan(const SimulatedRecord& record) {
    plan_.reset();
    constants_.reset();
    pool_.reset();  // before its device
    device_ = std::make_unique<SimulatedDevice>(record);
    devices_ = {parts_.cpu.get(), device_.get()};
    pool_ = std::make_unique<Pool>(device_.get(), &parts_.ledger, PoolOptions{});
    constants_ = std::make_unique<ConstantStore>(std::span<Device* const>(devices_),
                                                 std::vector<Pool*>{parts_.pool.get(), pool_.get()},
                                                 parts_.owner);
    const auto model = OpenModel(folder_.Write("small.onnx", SmallNet()), {});
    ASSERT_TRUE(model.ok()) << model.status();
    auto module = (*model)->Import({}, OpSet::Builtin());
    ASSERT_TRUE(module.ok()) << module.status();
    CompileOptions options;
    options.verify = true;
    options.placement.preferred = 1;
    const std::vector<std::string> names = {parts_.names()[0],
                                            "/job:localhost/replica:0/task:0/device:GPU:0"};
    const auto compiled = Compile(*std::move(module), devices_, names, *constants_, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    SegmentStart start;
    for (const NamedValue& input : (*compiled)->graph.inputs()) {
      start.available.emplace_back(input.value, (*compiled)->graph.fact(input.value));
    }
    auto plan = MakePlan(*compiled, devices_, start);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
  }
  // The kernels of all steps on the device, in order.
  std::vector<const SimulatedKernel*> Kernels() const {
    std::vector<const SimulatedKernel*> kernels;
    for (const Stretch& stretch : plan_->stretches) {
      if (stretch.device != 1) continue;
      for (const PlannedStep& step : stretch.steps) {
        kernels.push_back(dynamic_cast<const SimulatedKernel*>(step.kernel.get()));
      }
    }
    return kernels;
  }

  SessionParts parts_;
  TemporaryFolder folder_;
  std::unique_ptr<SimulatedDevice> device_;
  std::vector<Device*> devices_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<ConstantStore> constants_;
  std::shared_ptr<oncilla::Plan> plan_;
};

TEST_F(OpenClSimulated, EachDevicePlansTheWholeNet) {
  ASSERT_EQ(SimulatedRecords().size(), 10u);
  for (const SimulatedRecord& record : SimulatedRecords()) {
    SCOPED_TRACE(record.id);
    Plan(record);
    ASSERT_NE(plan_, nullptr);
    EXPECT_TRUE(plan_->complete);
    EXPECT_EQ(plan_->steps_on(0), 0);
    const Capabilities caps = CapabilitiesOf(record);
    const auto kernels = Kernels();
    EXPECT_GE(kernels.size(), 5u);
    for (const SimulatedKernel* kernel : kernels) {
      ASSERT_NE(kernel, nullptr);
      EXPECT_FALSE(kernel->recipe.dispatches.empty());
      EXPECT_FALSE(kernel->description().empty());
      for (const Dispatch& d : kernel->recipe.dispatches) {
        EXPECT_LE(d.local[0] * d.local[1] * d.local[2], caps.max_work_group);
        for (const Arg& arg : d.args) {
          if (const auto* in = std::get_if<In>(&arg)) {
            EXPECT_GT(kernel->input_bytes.at(static_cast<size_t>(in->index)), 0);
          }
        }
      }
    }
  }
}

// The rules between facts and capabilities apply to records too.
TEST_F(OpenClSimulated, RecordsAreDevicesAsDriversTellOfThem) {
  for (const SimulatedRecord& record : SimulatedRecords()) {
    SCOPED_TRACE(record.id);
    const Capabilities caps = CapabilitiesOf(record);
    EXPECT_EQ(caps.shape, KernelShape::kGpu);
    EXPECT_TRUE(caps.local_groups);
    EXPECT_EQ(caps.compute_units, record.facts.compute_units);
    EXPECT_GE(caps.local_memory, 32 << 10);
    EXPECT_LE(caps.max_work_group, record.facts.max_work_group);
    EXPECT_EQ(caps.fp64, record.facts.claims_fp64);
    EXPECT_TRUE(*FindSimulated(record.id) == &record);
  }
  const auto unknown = FindSimulated("voodoo");
  EXPECT_EQ(unknown.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(unknown.status()), HasSubstr("rtx3060"));
}

TEST_F(OpenClSimulated, ComputesNothing) {
  SimulatedDevice device(SimulatedRecords()[0]);
  const auto queue = device.OpenQueue();
  ASSERT_TRUE(queue.ok());
  EXPECT_THAT(Message(device.Submit(**queue, Recording(), {}, {}).status()),
              HasSubstr("simulated"));
  EXPECT_FALSE(device.Record({}).ok());
  std::vector<std::byte> bytes(4);
  const auto region = device.AllocateRegion(4);
  ASSERT_TRUE(region.ok());
  const BufferView view{region->get(), 0, 4};
  const Download download{bytes, view};
  EXPECT_FALSE(device.Transfer(**queue, {}, {&download, 1}).ok());
  const Upload upload{view, bytes};
  EXPECT_TRUE(device.Transfer(**queue, {&upload, 1}, {}).ok());
  EXPECT_EQ(device.AllocateRegion(int64_t{1} << 50).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace oncilla::opencl
