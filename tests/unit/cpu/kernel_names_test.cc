// A kernel's description begins with what really runs: plain code, or Winograd's method if the
// packed filter is transformed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/device.h"
#include "engine/base/thread_pool.h"
#include "engine/ops/op_set.h"

namespace oncilla::cpu {
namespace {

using ::testing::StartsWith;

class CpuKernelNames : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> notes;
    const DeviceInfo info = kBackend.discover({}, notes).at(0);
    auto opened = kBackend.open(info, {.threads = &threads_, .cache_dir = ""});
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
  }

  std::unique_ptr<Kernel> Prepare(const char* op, const Facts& in, const AttrMap& attrs = {}) {
    const OpDef* def = ops_->Find(op);
    auto out = def->infer(attrs, in);
    EXPECT_TRUE(out.ok()) << out.status();
    auto kernel = device_->Prepare({def, &attrs, in, *out, op});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return *std::move(kernel);
  }
  std::string Name(const char* op, const Facts& in) { return Prepare(op, in)->description(); }

  static Fact Data(const Shape& shape, DType dtype = DType::kF32) {
    return Fact::Of({dtype, shape});
  }
  static Fact Weights(const Shape& shape) {
    Fact fact = Data(shape);
    fact.constant = true;
    return fact;
  }

  const std::shared_ptr<const OpSet> ops_ = OpSet::Builtin();
  ThreadPool threads_{1};
  std::unique_ptr<Device> device_;
};

TEST_F(CpuKernelNames, PlainCodeSaysSo) {
  EXPECT_THAT(Name("Softmax", {Data({4, 300}, DType::kF64)}), StartsWith("plain"));
  EXPECT_THAT(Name("Softmax", {Data({4, 300})}), StartsWith("vectors"));
  EXPECT_THAT(Name("Add", {Data({4, 3}, DType::kF64), Data({3}, DType::kF64)}),
              StartsWith("plain"));
  EXPECT_THAT(Name("Add", {Data({4, 3}), Data({3})}), StartsWith("vectors"));
}

TEST_F(CpuKernelNames, WinogradsWayIsNamedWhereItIsTaken) {
  EXPECT_THAT(Name("Conv", {Data({1, 58, 58, 64}), Weights({3, 3, 64, 64})}),
              StartsWith("winograd 4x4"));
  // Where it would not be faster, filters are packed for the product.
  EXPECT_THAT(Name("Conv", {Data({1, 9, 9, 512}), Weights({3, 3, 512, 512})}), StartsWith("gemm"));
}

TEST_F(CpuKernelNames, AFilterThatCannotBeTransformedIsToldByTheFirstRun) {
  const Shape filter_shape{3, 3, 64, 64};
  Tensor filter = Tensor::Allocate({DType::kF32, filter_shape}).value();
  for (float& weight : filter.MutableAs<float>()) weight = 1;
  filter.MutableAs<float>()[5] = std::numeric_limits<float>::infinity();
  const Facts in = {Data({1, 58, 58, 64}), Fact::Constant(filter)};
  const OpDef* def = ops_->Find("Conv");
  const AttrMap attrs;
  const Facts out = def->infer(attrs, in).value();
  const NodeView node{def, &attrs, in, out, "y"};
  const Packing packing = device_->PackingFor(node, 1).value();
  std::vector<std::unique_ptr<Region>> regions;
  const auto view = [&](int64_t bytes) {
    regions.push_back(device_->AllocateRegion(bytes).value());
    return BufferView{regions.back().get(), 0, bytes};
  };
  const BufferView x = view(in[0].desc().bytes()), packed = view(packing.bytes);
  const BufferView y = view(out[0].desc().bytes());
  ASSERT_TRUE(packing.write(filter, {packed.host(), static_cast<size_t>(packed.bytes)}).ok());
  const auto kernel = device_->Prepare(node).value();
  Step step{kernel.get(), {{x}, {packed}}, {{y}}, view(kernel->scratch_bytes()), "y"};
  auto queue = device_->OpenQueue().value();
  const auto recording = device_->Record({step}).value();
  const EventPtr done = device_->Submit(*queue, *recording, {}, {}).value();
  ASSERT_TRUE(device_->Wait(done, kNoDeadline).ok());
  EXPECT_THAT(kernel->description(), StartsWith("gemm"));
}

}  // namespace
}  // namespace oncilla::cpu
