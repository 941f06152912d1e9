// TFLite's pools of images.
#include "engine/import/tflite/ops/quantize.h"
#include "engine/import/tflite/ops/window.h"

namespace oncilla {
namespace {

Result<PoolWindow> ReadWindow(const TfliteLowering& b) {
  PoolWindow window;
  ONCILLA_ASSIGN(window.auto_pad, TflitePadding(b));
  // The options have the width before the height.
  ONCILLA_ASSIGN(const int64_t stride_width, b.Int(1));
  ONCILLA_ASSIGN(const int64_t stride_height, b.Int(2));
  ONCILLA_ASSIGN(const int64_t width, b.Int(3));
  ONCILLA_ASSIGN(const int64_t height, b.Int(4));
  window.strides = {stride_height, stride_width};
  window.kernel = {height, width};
  return window;
}

Result<Values> LowerMaxPool(TfliteLowering& b) {
  ONCILLA_ASSIGN(const PoolWindow window, ReadWindow(b));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(5));
  if (activation != 0 && b.any_quantised()) {
    ONCILLA_TRY(CheckTfliteIntegers(b, 1));
    ONCILLA_ASSIGN(const TfliteIntegers range,
                   TfliteActivated(b.output_tensor(), b.output_type(), activation));
    if (range.least > range.most) return Unsupported("with a zero point that cuts everything");
    ONCILLA_ASSIGN(const ValueId most, b.Add(MaxPoolAttrs{window}, {b.in(0)}, "linear"));
    ONCILLA_ASSIGN(const ValueId low, b.Scalar(b.output_type(), range.least));
    ONCILLA_ASSIGN(const ValueId high, b.Scalar(b.output_type(), range.most));
    return One(b.Add("Clip", {}, {most, low, high}));
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(MaxPoolAttrs{window}, {b.in(0)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// The mean of integers, with ties rounded away from zero. Means of bytes over n places that are no
// ties are at least 1 / 2n away from one, so that adding half of this tells ties in float, whatever
// the device's division; other means are computed in double, whose quotients are exact enough.
Result<Values> AddIntegerAverage(TfliteLowering& b, const PoolWindow& window, int64_t activation) {
  ONCILLA_TRY(CheckTfliteIntegers(b, 1));
  if (!SameQuantisation(b.tensor(0), b.output_tensor())) {
    return Unsupported("of quantised tensors whose scales differ");
  }
  const DType to = b.output_type();
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteActivated(b.output_tensor(), to, activation));
  constexpr int64_t kMostInFloat = 1024;
  const int64_t places = SaturatingMul(window.kernel[0], window.kernel[1]);
  const bool in_float = BitsOf(to) == 8 && places >= 1 && places <= kMostInFloat;
  const DType real = in_float ? DType::kF32 : DType::kF64;
  const double over = in_float ? 0.25 / static_cast<double>(places) : 0;
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(0), real, "wide"));
  ONCILLA_ASSIGN(const ValueId mean, b.Add(AveragePoolAttrs{window}, {wide}, "mean"));
  ONCILLA_ASSIGN(const ValueId size, b.Add("Abs", {}, {mean}, "size"));
  ONCILLA_ASSIGN(const ValueId half, b.Scalar(real, 0.5 + over));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Add", {}, {size, half}, "above"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Floor", {}, {above}, "steps"));
  ONCILLA_ASSIGN(const ValueId sign, b.Add("Sign", {}, {mean}, "sign"));
  ONCILLA_ASSIGN(const ValueId rounded, b.Add("Mul", {}, {steps, sign}, "rounded"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(real, range.least));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(real, range.most));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {rounded, least, most}, "cut"));
  return One(b.Cast(cut, to, ""));
}

// Elements of the padding do not count in the average.
Result<Values> LowerAveragePool(TfliteLowering& b) {
  ONCILLA_ASSIGN(const PoolWindow window, ReadWindow(b));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(5));
  if (b.any_quantised()) return AddIntegerAverage(b, window, activation);
  ONCILLA_ASSIGN(const ValueId y, b.Add(AveragePoolAttrs{window}, {b.in(0)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// The root of the mean of squares.
Result<Values> LowerL2Pool(TfliteLowering& b) {
  ONCILLA_ASSIGN(const PoolWindow window, ReadWindow(b));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(5));
  ONCILLA_ASSIGN(const ValueId squares, b.Add("Square", {}, {b.in(0)}, "squares"));
  ONCILLA_ASSIGN(const ValueId mean, b.Add(AveragePoolAttrs{window}, {squares}, "mean"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Sqrt", {}, {mean}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"AVERAGE_POOL_2D", 1, Options::kPool2D, "", LowerAveragePool, TfliteQuantised::kTaken},
    {"L2_POOL_2D", 1, Options::kPool2D, "", LowerL2Pool},
    {"MAX_POOL_2D", 1, Options::kPool2D, "", LowerMaxPool, TfliteQuantised::kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TflitePoolRows() { return kRows; }

}  // namespace oncilla
