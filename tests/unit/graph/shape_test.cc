// Shapes: saturating sizes, broadcasting and merging of partial knowledge.
#include "engine/tensor/shape.h"

#include <gtest/gtest.h>

#include "engine/base/half.h"
#include "engine/tensor/tensor.h"

namespace oncilla {
namespace {

TEST(Shape, ElementsSaturateInsteadOfOverflowing) {
  EXPECT_EQ(Shape({1 << 30, 1 << 30, 1 << 30}).elements(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Shape({1 << 30, 0, int64_t{1} << 62}).elements(), 0);
  EXPECT_EQ(Shape().elements(), 1);
}

TEST(Shape, BroadcastKeepsWhatIsKnown) {
  const PartialShape a({Dim::Named("n"), 1, 3}), b(Shape{5, 1});
  auto merged = BroadcastShapes(a, b);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(StrCat(*merged), "[n,5,3]");
  EXPECT_FALSE(BroadcastShapes(PartialShape(Shape{2}), PartialShape(Shape{3})).ok());
  EXPECT_FALSE(BroadcastShapes(PartialShape(), a)->ranked());
}

TEST(Shape, MergeRefusesContradiction) {
  EXPECT_EQ(StrCat(*MergeShapes(PartialShape({Dim(), 3}), PartialShape({Dim(2), Dim()}))), "[2,3]");
  EXPECT_FALSE(MergeShapes(PartialShape(Shape{2}), PartialShape(Shape{3})).ok());
}

TEST(Tensor, RefusesWhatNoHostCanHold) {
  auto t = Tensor::Allocate({DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}});
  EXPECT_EQ(t.status().code(), Code::kResourceExhausted);
}

TEST(Half, RoundsToNearestEvenAndBack) {
  for (uint32_t bits = 0; bits < 0x7c01; ++bits) {
    Half h;
    h.bits = static_cast<uint16_t>(bits);
    EXPECT_EQ(Half(static_cast<float>(h)).bits, bits);
  }
  EXPECT_EQ(Half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(1.0f + 0x1p-11f).bits, 0x3c00);  // a tie goes to even
  EXPECT_EQ(BFloat16(1.0f + 0x1p-8f).bits, 0x3f80);
}

}  // namespace
}  // namespace oncilla
