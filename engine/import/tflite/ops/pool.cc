// TFLite's pools of images.
#include "engine/import/tflite/ops/window.h"

namespace oncilla {
namespace {

Result<PoolWindow> ReadWindow(const TfliteLowering& b) {
  PoolWindow window;
  ONCILLA_ASSIGN(window.auto_pad, TflitePadding(b));
  // Width stands before height.
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
  // The limits of an activation are other integers for each scale.
  if (activation != 0 && b.any_quantised())
    return Unsupported("an activation of quantised numbers");
  ONCILLA_ASSIGN(const ValueId y, b.Add(MaxPoolAttrs{window}, {b.in(0)}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// Padding does not count.
Result<Values> LowerAveragePool(TfliteLowering& b) {
  ONCILLA_ASSIGN(const PoolWindow window, ReadWindow(b));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(5));
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
    {"AVERAGE_POOL_2D", 1, Options::kPool2D, "", LowerAveragePool},
    {"L2_POOL_2D", 1, Options::kPool2D, "", LowerL2Pool},
    {"MAX_POOL_2D", 1, Options::kPool2D, "", LowerMaxPool, TfliteQuantised::kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TflitePoolRows() { return kRows; }

}  // namespace oncilla
