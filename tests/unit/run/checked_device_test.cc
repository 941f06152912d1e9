// CheckedDevice: each rule is broken once, on a device without checks; and sessions that use it.
#include "engine/device/checked_device.h"

#include <gmock/gmock.h>

#include <cstring>

#include "engine/base/thread_pool.h"
#include "engine/device/linked_backends.h"
#include "engine/ops/op_set.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

// The error that the wrapped device makes.
enum class Lie { kNone, kShortRegion, kLongPacking, kNamelessPacking, kSilentKernel };

class TestRegion : public Region {
 public:
  explicit TestRegion(int64_t bytes) : Region(bytes), memory_(static_cast<size_t>(bytes)) {}
  std::byte* host() const override { return const_cast<std::byte*>(memory_.data()); }

 private:
  std::vector<std::byte> memory_;
};
class TestKernel : public Kernel {
 public:
  explicit TestKernel(std::string description) : description_(std::move(description)) {}
  int64_t scratch_bytes() const override { return 64; }
  std::string description() const override { return description_; }

 private:
  const std::string description_;
};

// A device that accepts everything and does nothing.
class Careless : public Device {
 public:
  explicit Careless(Lie lie) : lie_(lie) { info_.host_memory = true, info_.name = "careless"; }
  const DeviceInfo& info() const override { return info_; }
  Status CanRun(const NodeView&) const override { return {}; }
  Result<Packing> PackingFor(const NodeView&, int) const override {
    Packing packing;
    packing.name = lie_ == Lie::kNamelessPacking ? "" : "test";
    packing.bytes = 16;
    packing.write = [lie = lie_](const Tensor&, std::span<std::byte> to) {
      std::memset(to.data(), 1, to.size() + (lie == Lie::kLongPacking ? 1 : 0));
      return Status();
    };
    return packing;
  }
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView&, const EarlyEnd&) override {
    return std::make_unique<TestKernel>(lie_ == Lie::kSilentKernel ? "" : "test");
  }
  Result<std::vector<Tensor>> Evaluate(const NodeView&, std::span<const Tensor>) override {
    return std::vector<Tensor>();
  }
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    return std::make_unique<TestRegion>(bytes - (lie_ == Lie::kShortRegion ? 1 : 0));
  }
  Status ReleaseRegion(std::unique_ptr<Region>) override { return {}; }
  using Device::OpenQueue;
  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override {
    return std::make_unique<Queue>();
  }
  Result<std::unique_ptr<Recording>> Record(std::vector<Step>) override {
    return std::make_unique<Recording>();
  }
  Result<EventPtr> Submit(Queue&, const Recording&, std::span<const BufferView>,
                          const SubmitOptions&) override {
    return std::make_shared<Event>();
  }
  Result<EventPtr> Transfer(Queue&, std::span<const Upload>, std::span<const Download>) override {
    return std::make_shared<Event>();
  }
  bool Poll(const EventPtr&) override { return true; }
  Status Wait(const EventPtr&, Deadline) override { return {}; }

 private:
  const Lie lie_;
  DeviceInfo info_;
};

class CheckedDeviceTest : public ::testing::Test {
 protected:
  static std::unique_ptr<CheckedDevice> Make(Lie lie = Lie::kNone) {
    return std::make_unique<CheckedDevice>(std::make_unique<Careless>(lie));
  }
  NodeView Relu() const { return {ops_->Find("Relu"), &attrs_, facts_, facts_, "node"}; }
  static std::string Why(const Status& status) {
    EXPECT_EQ(status.code(), Code::kInternal) << status;
    return Message(status);
  }

  const std::shared_ptr<const OpSet> ops_ = OpSet::Builtin();
  const AttrMap attrs_ = {};
  Facts facts_ = {Fact::Of({DType::kF32, {4}})};
  std::unique_ptr<CheckedDevice> device_ = Make();
};

TEST_F(CheckedDeviceTest, GoodCallsPassAndEverythingIsCounted) {
  auto region = *device_->AllocateRegion(256);
  auto queue = *device_->OpenQueue();
  auto kernel = *device_->Prepare(Relu());
  const BufferView view{region.get(), 64, 16}, scratch{region.get(), 128, 64};
  auto recording = device_->Record({{kernel.get(), {{view}}, {{{}, 0}}, scratch, "n"}});
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(device_->alive(), (CheckedDevice::Alive{1, 1, 1}));
  float out[4];
  HostRegion host(out, sizeof(out));
  const BufferView externals[] = {{&host, 0, 16}};
  const auto event = device_->Submit(*queue, **recording, externals, {});
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_TRUE(device_->Poll(*event));
  EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
  recording->reset();
  queue.reset();
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
  EXPECT_EQ(device_->alive(), CheckedDevice::Alive{});
}

TEST_F(CheckedDeviceTest, MemoryOutsideRegionsIsRefused) {
  auto region = *device_->AllocateRegion(256);
  auto kernel = *device_->Prepare(Relu());
  const BufferView good{region.get(), 0, 16}, scratch{region.get(), 128, 64};
  auto record = [&](BufferView in, BufferView out, BufferView spare) {
    return Why(device_->Record({{kernel.get(), {{in}}, {{out}}, spare, "n"}}).status());
  };
  EXPECT_THAT(record({region.get(), 192, 65}, good, scratch),
              HasSubstr("an input of node 'n' [192, +65) lies outside its region of 256 bytes"));
  EXPECT_THAT(record(good, {region.get(), -64, 16}, scratch), HasSubstr("an output of node 'n'"));
  EXPECT_THAT(record({region.get(), 8, 16}, good, scratch), HasSubstr("not a multiple of 64"));
  EXPECT_THAT(record(good, {}, scratch), HasSubstr("has no memory"));
  EXPECT_THAT(record(good, good, {}), HasSubstr("needs 64 bytes of scratch and has 0"));
  EXPECT_THAT(Why(device_->Record({{nullptr, {}, {}, {}, "n"}}).status()), HasSubstr("no kernel"));
  auto queue = *device_->OpenQueue();
  auto recording = *device_->Record({{kernel.get(), {{{}, 1}}, {{good}}, scratch, "n"}});
  EXPECT_THAT(Why(device_->Submit(*queue, *recording, {&good, 1}, {}).status()),
              HasSubstr("external 1 has no memory"));
  const std::byte bytes[32] = {};
  const Upload long_one{good, bytes};
  EXPECT_THAT(Why(device_->Transfer(*queue, {&long_one, 1}, {}).status()), HasSubstr("an upload"));
  std::byte room[32];
  const Download too_much{room, good};
  EXPECT_THAT(Why(device_->Transfer(*queue, {}, {&too_much, 1}).status()), HasSubstr("a download"));
  EXPECT_THAT(Why(device_->AllocateRegion(0).status()), HasSubstr("a region of 0 bytes"));
  recording.reset();
  EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
}

TEST_F(CheckedDeviceTest, ThingsOfAnotherDeviceAreRefused) {
  const auto other = Make();
  auto region = *device_->AllocateRegion(256);
  auto queue = *device_->OpenQueue(), others_queue = *other->OpenQueue();
  auto recording = *device_->Record({}), others_recording = *other->Record({});
  EXPECT_THAT(Why(device_->Submit(*others_queue, *recording, {}, {}).status()),
              HasSubstr("a queue of another device"));
  EXPECT_THAT(Why(device_->Submit(*queue, *others_recording, {}, {}).status()),
              HasSubstr("a recording of another device"));
  EXPECT_THAT(Why(device_->Transfer(*others_queue, {}, {}).status()), HasSubstr("a queue of"));
  const EventPtr event = *other->Submit(*others_queue, *others_recording, {}, {});
  EXPECT_THAT(Why(device_->Wait(event, kNoDeadline)), HasSubstr("no event of ours"));
  EXPECT_THAT(Why(device_->Wait(nullptr, kNoDeadline)), HasSubstr("no event of ours"));
  EXPECT_FALSE(device_->Poll(event));
  EXPECT_THAT(Why(other->ReleaseRegion(std::move(region))), HasSubstr("not a region of this"));
}

TEST_F(CheckedDeviceTest, UnreadyNodesAreRefused) {
  facts_[0].shape = PartialShape({Dim()});
  EXPECT_THAT(Why(device_->Prepare(Relu()).status()), HasSubstr("Relu: input 0 is"));
  EXPECT_THAT(Why(device_->PackingFor(Relu(), 0).status()), HasSubstr("input 0 is not a constant"));
  EXPECT_THAT(Why(device_->Evaluate(Relu(), {}).status()), HasSubstr("does not evaluate"));
}

TEST_F(CheckedDeviceTest, ABackendThatLiesIsFound) {
  EXPECT_THAT(Why(Make(Lie::kShortRegion)->AllocateRegion(64).status()),
              HasSubstr("asked for a region of 64 bytes, got 63"));
  EXPECT_THAT(Why(Make(Lie::kSilentKernel)->Prepare(Relu()).status()),
              HasSubstr("without description"));
  const Tensor constant = *Tensor::Allocate({DType::kF32, {4}});
  facts_[0] = Fact::Constant(constant);
  EXPECT_THAT(Why(Make(Lie::kNamelessPacking)->PackingFor(Relu(), 0).status()),
              HasSubstr("without name"));
  std::vector<std::byte> to(16);
  EXPECT_TRUE(Make()->PackingFor(Relu(), 0)->write(constant, to).ok());
  EXPECT_EQ(to[15], std::byte{1});
  const auto packing = Make(Lie::kLongPacking)->PackingFor(Relu(), 0);
  EXPECT_THAT(Why(packing->write(constant, to)), HasSubstr("writes past its 16 bytes"));
}

TEST_F(CheckedDeviceTest, SessionsThatVerifyUseIt) {
  // The environment of the unit tests asks for it (main.cc).
  const auto session = Session::Create(Runtime::Create({}), SessionOptions{.device = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->options().verify);
  EXPECT_NE(dynamic_cast<CheckedDevice*>((*session)->device_set().devices()[0]), nullptr);
}

}  // namespace
}  // namespace oncilla
