// Names on the command line and in the file system; fixed values of random numbers.
#include "tools/oncilla/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/half.h"
#include "engine/base/hash.h"
#include "tools/oncilla/files/random_tensor.h"

namespace oncilla::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"image", "a=b", "a", "input_ids:0"};

TEST(SplitAssignmentTest, SplitsAtTheLastSignWithANameOnItsLeft) {
  const auto split = [](std::string_view text) { return *SplitAssignment(text, kNames, "input"); };
  EXPECT_EQ(split("image=cat.png"), std::pair(std::string("image"), std::string("cat.png")));
  EXPECT_EQ(split("a=b=c"), std::pair(std::string("a=b"), std::string("c")));
  EXPECT_EQ(split("a=x=y.npy"), std::pair(std::string("a"), std::string("x=y.npy")));
  EXPECT_EQ(split("a="), std::pair(std::string("a"), std::string()));
}

TEST(SplitAssignmentTest, ProposesNearNames) {
  const Status status = SplitAssignment("Imge=cat.png", kNames, "input").status();
  EXPECT_EQ(Message(status),
            "there is no input 'Imge'; did you mean 'image'? There is: image, a=b, a, "
            "input_ids:0");
  EXPECT_EQ(Details(status).stage, Stage::kOptions);
  EXPECT_THAT(Message(SplitAssignment("=x", kNames, "input").status()), HasSubstr("''"));
  EXPECT_THAT(Message(SplitAssignment("cat.png", kNames, "input").status()),
              HasSubstr("NAME=VALUE"));
}

TEST(FileNameTest, EncodesEveryOtherByte) {
  EXPECT_EQ(FileNameOf("logits"), "logits");
  EXPECT_EQ(FileNameOf("a/b:0 %"), "a%2Fb%3A0%20%25");
  EXPECT_EQ(FileNameOf("\xc3\xbc-_."), "%C3%BC-_.");
}

std::string Digest(const Tensor& tensor) {
  return Sha256Hex({reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
}

TEST(RandomTensorTest, IsUniformAndInRange) {
  const Tensor f32 = *RandomTensor(1, "x", {DType::kF32, {100, 100}});
  double sum = 0;
  for (float v : f32.As<float>()) {
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 1);
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kU64}) {
    const Tensor tensor = *RandomTensor(1, "x", {dtype, {5000}});
    std::array<int, 10> tenths{};
    const auto values = *ToDoubles(tensor);
    for (double v : values) {
      const double digit = IsFloat(dtype) ? v * 10 : v;
      ASSERT_GE(digit, 0);
      ASSERT_LT(digit, 10);
      ++tenths[static_cast<size_t>(digit)];
    }
    for (int count : tenths) EXPECT_NEAR(count, 500, 110) << dtype;
  }
  EXPECT_EQ(RandomTensor(1, "x", {DType::kString, {1}}).status().code(), Code::kUnimplemented);
}

TEST(RandomTensorTest, DependsOnSeedAndNameOnly) {
  const TensorDesc desc{DType::kI32, {64}};
  EXPECT_EQ(Digest(*RandomTensor(7, "x", desc)), Digest(*RandomTensor(7, "x", desc)));
  EXPECT_NE(Digest(*RandomTensor(7, "x", desc)), Digest(*RandomTensor(8, "x", desc)));
  EXPECT_NE(Digest(*RandomTensor(7, "x", desc)), Digest(*RandomTensor(7, "y", desc)));
}

// SplitMix64's first outputs from state 0 are published (Vigna's splitmix64.c): e220a8397b1dcdaf
// and 6e789e6aa1b965f4. A name of hash h with seed 0 starts from h, so the numbers below were
// computed by a few lines of Python from the header's words.
TEST(RandomTensorTest, GivesTheSameBytesOnEveryMachine) {
  EXPECT_THAT(RandomTensor(7, "x", {DType::kF32, {3}})->As<float>(),
              ElementsAre(9233014 * 0x1p-24f, 9455261 * 0x1p-24f, 6316755 * 0x1p-24f));
  EXPECT_THAT(RandomTensor(7, "x", {DType::kI64, {8}})->As<int64_t>(),
              ElementsAre(5, 5, 3, 6, 7, 0, 5, 3));
}

}  // namespace
}  // namespace oncilla::tool
