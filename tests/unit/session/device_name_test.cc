// Device names: every form and its printed form, what is refused, the relations, and merging.
#include "engine/placement/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oncilla {
namespace {

DeviceName Name(std::string_view text) {
  auto name = DeviceName::Parse(text);
  EXPECT_TRUE(name.ok()) << name.status();
  return name.ok() ? *name : DeviceName();
}

TEST(DeviceName, EveryFormPrintsLong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", ""},
      {"/", ""},
      {"/job:localhost/replica:0/task:0/device:GPU:0",
       "/job:localhost/replica:0/task:0/device:GPU:0"},
      {"/device:CPU:3/task:2/replica:1/job:w_1", "/job:w_1/replica:1/task:2/device:CPU:3"},
      {"/job:ps", "/job:ps"},
      {"/task:7", "/task:7"},
      {"/job:*/replica:*/task:*/device:*", ""},
      {"/job:*", ""},
      {"/device:GPU", "/device:GPU:*"},
      {"/device:GPU:*", "/device:GPU:*"},
      {"/device:*:3", "/device:*:3"},
      {"/device:XLA_CPU:0", "/device:XLA_CPU:0"},
      {"/device:gpu:0", "/device:GPU:0"},  // as TensorFlow's Python; other types are case-sensitive
      {"/device:xla_cpu:0", "/device:xla_cpu:0"},
      {"/cpu:0", "/device:CPU:0"},
      {"/CPU:0", "/device:CPU:0"},
      {"/gpu:1", "/device:GPU:1"},
      {"/GPU:*", "/device:GPU:*"},
      {"/gpu", "/device:GPU:*"},
      {"/job:a/gpu:1", "/job:a/device:GPU:1"},
      {"/job:a/job:b", "/job:b"},
      {"/device:GPU:1/device:CPU", "/device:CPU:*"},
      {"/task:007", "/task:7"},
      {"GPU:0", "/device:GPU:0"},
      {"gpu:0", "/device:GPU:0"},
      {"cpu:0", "/device:CPU:0"},
      {"CPU", "/device:CPU:*"},
      {"device:GPU:0", "/device:GPU:0"},
      {"job:ps/task:1", "/job:ps/task:1"},
      {"TPU:2", "/device:TPU:2"},
      {"TPU:*", "/device:TPU:*"},
  };
  for (const auto& [text, printed] : cases) {
    EXPECT_EQ(Name(text).text(), printed) << text;
    EXPECT_EQ(Name(printed), Name(text)) << text;  // printing loses nothing
  }
}

TEST(DeviceName, RefusesTheRestAndSaysWhere) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/job:", "expected a job name at the end"},
      {"/job:1a", "expected a job name at '1a'"},
      {"/job:_a", "expected a job name at '_a'"},
      {"/job:a b", "expected '/' or the end at ' b'"},
      {"/job:a-b", "expected '/' or the end at '-b'"},
      {"/replica:x", "expected a number or '*' at 'x'"},
      {"/replica:-1", "expected a number or '*' at '-1'"},
      {"/task:1x", "expected '/' or the end at 'x'"},
      {"/task:2147483648", "expected a number below 2^31"},
      {"/task:99999999999999999999999", "expected a number below 2^31"},
      {"/device:", "expected a device type at the end"},
      {"/device:GPU:", "expected a number or '*' at the end"},
      {"/gpu:", "expected a number or '*' at the end"},
      {"/gpux:0", "expected '/' or the end at 'x:0'"},
      {"/tpu:0", "expected /job:"},
      {"//", "expected /job:"},
      {"/job:a/", "expected /job:"},
      {"TPU", "expected ':' and a device number at the end"},
      {"TPU:0x", "expected the end at 'x'"},
      {"8:0", "expected a device type at '8:0'"},
      {" ", "expected a device type at ' '"},
      {"/job:\xc3\xa4", "expected a job name"},
  };
  for (const auto& [text, reason] : cases) {
    const Status status = DeviceName::Parse(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(Message(status), ::testing::HasSubstr(reason)) << text;
    EXPECT_THAT(Message(status), ::testing::HasSubstr(StrCat("'", text, "'")));
  }
}

TEST(DeviceName, LocalDevicesAreComplete) {
  const DeviceName name = DeviceName::Local("GPU", 2);
  EXPECT_EQ(name.text(), "/job:localhost/replica:0/task:0/device:GPU:2");
  EXPECT_EQ(name.short_text(), "GPU:2");
  EXPECT_TRUE(name.complete());
  EXPECT_FALSE(Name("/device:GPU:2").complete());
  EXPECT_TRUE(Name("/").empty());
  EXPECT_EQ(Name("/job:a").short_text(), "*:*");
}

TEST(DeviceName, Relations) {
  const DeviceName gpu0 = DeviceName::Local("GPU", 0);
  EXPECT_TRUE(IsSpecification(Name("/"), gpu0));
  EXPECT_TRUE(IsSpecification(Name("/gpu:0"), gpu0));
  EXPECT_TRUE(IsSpecification(Name("/device:GPU"), Name("/device:GPU:1")));
  EXPECT_FALSE(IsSpecification(Name("/device:GPU:1"), Name("/device:GPU")));
  EXPECT_FALSE(IsSpecification(Name("/job:localhost/gpu:1"), gpu0));
  EXPECT_FALSE(IsSpecification(Name("/job:a"), Name("/task:1")));

  EXPECT_TRUE(IsCompleteSpecification(Name("/gpu:*"), gpu0));
  EXPECT_TRUE(IsCompleteSpecification(gpu0, gpu0));
  EXPECT_FALSE(IsCompleteSpecification(Name("/gpu:1"), gpu0));
  EXPECT_FALSE(IsCompleteSpecification(Name("/gpu:1"), Name("/gpu:1")));

  EXPECT_TRUE(Compatible(Name("/job:a"), Name("/gpu:1")));
  EXPECT_TRUE(Compatible(Name("/gpu:*"), Name("/gpu:1")));
  EXPECT_FALSE(Compatible(Name("/gpu:0"), Name("/gpu:1")));
  EXPECT_FALSE(Compatible(Name("/job:a/gpu:0"), Name("/job:b")));
}

TEST(DeviceName, MergeInItsThreeModes) {
  struct Case {
    std::string_view target, other;
    // Printed results, or the word after "incompatible".
    std::string_view strict, soft, override_;
  };
  const Case cases[] = {
      {"/job:a", "/gpu:1", "/job:a/device:GPU:1", "/job:a/device:GPU:1", "/job:a/device:GPU:1"},
      {"/device:GPU", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1"},
      {"/device:GPU:1", "/device:GPU", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1"},
      {"/job:a", "/job:b", "jobs", "jobs", "jobs"},
      {"/replica:1", "/replica:2", "replicas", "replicas", "replicas"},
      {"/task:1", "/task:2", "tasks", "tasks", "tasks"},
      {"/job:a/gpu:1", "/cpu:0", "types", "/job:a", "/job:a/device:CPU:0"},
      {"/gpu:1", "/device:CPU", "types", "", "/device:CPU:1"},
      {"/gpu:1", "/gpu:2", "ids", "/device:GPU:*", "/device:GPU:2"},
      {"/gpu:1", "/task:3/gpu:2", "ids", "/task:3/device:GPU:*", "/task:3/device:GPU:2"},
  };
  for (const Case& c : cases) {
    for (auto [mode, expected] :
         {std::pair(MergeMode::kStrict, c.strict), std::pair(MergeMode::kSoft, c.soft),
          std::pair(MergeMode::kOverride, c.override_)}) {
      DeviceName target = Name(c.target);
      const Status status = Merge(target, Name(c.other), mode);
      if (!expected.empty() && expected[0] != '/') {
        EXPECT_EQ(status.code(), Code::kInvalidArgument);
        EXPECT_THAT(Message(status), ::testing::HasSubstr(StrCat("incompatible ", expected, ": ")));
      } else {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(target.text(), expected) << c.target << " + " << c.other;
      }
    }
  }
  DeviceName target = Name("/job:x/gpu:0");
  EXPECT_EQ(Message(Merge(target, Name("/job:y"))),
            "Cannot merge devices with incompatible jobs: '/job:x/device:GPU:0' and '/job:y'");
}

TEST(DeviceName, ScopesNestByComponent) {
  EXPECT_EQ(Nest(Name("/job:a/gpu:1"), Name("/job:b/device:CPU")).text(), "/job:b/device:CPU:1");
  EXPECT_EQ(Nest(Name("/gpu:1"), DeviceName()).text(), "/device:GPU:1");
}

}  // namespace
}  // namespace oncilla
