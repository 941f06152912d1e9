// TFLite's normalisations.
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

// The softmax of beta times x.
Result<Values> LowerSoftmax(TfliteLowering& b) {
  ONCILLA_ASSIGN(const float beta, b.Float(0));
  ValueId x = b.in(0);
  if (beta != 1) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{beta}));
    ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, factor}, "scaled"));
  }
  return One(b.Add(SoftmaxAttrs(), {x}));
}

Result<Values> LowerLogSoftmax(TfliteLowering& b) {
  return One(b.Add(SoftmaxAttrs{.log = true}, {b.in(0)}));
}

// x divided by the root of its sum of squares along the last axis; sums below 1e-6 count as 1e-6.
Result<Values> LowerL2Normalization(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  ONCILLA_ASSIGN(const ValueId squares, b.Add("ReduceSumSquare", ReduceAttrs{.keep_dims = true},
                                              {b.in(0), b.Ints({-1})}, "squares"));
  ONCILLA_ASSIGN(const ValueId norm, b.Add("Sqrt", {}, {squares}, "norm"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(b.dtype(), double{1e-6f}));
  ONCILLA_ASSIGN(const ValueId at_least, b.Add("Max", {}, {norm, least}, "at_least"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Div", {}, {b.in(0), at_least}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// y = x / (bias + alpha * sum of squares over 2 * radius + 1 channels) ^ beta. The canonical op
// divides alpha by the window's size first.
Result<Values> LowerLrn(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t radius, b.Int(0));
  ONCILLA_ASSIGN(const float bias, b.Float(1));
  ONCILLA_ASSIGN(const float alpha, b.Float(2));
  ONCILLA_ASSIGN(const float beta, b.Float(3));
  if (radius < 0 || radius > (1 << 20)) return InvalidArgument("the radius is ", radius);
  const int64_t size = 2 * radius + 1;
  return One(b.Add(LrnAttrs{.size = size,
                            .alpha = double{alpha} * static_cast<double>(size),
                            .beta = beta,
                            .bias = bias},
                   {b.in(0)}));
}

using Options = TfliteOptions;
constexpr auto kTaken = TfliteQuantised::kTaken;
constexpr TfliteOpRow kRows[] = {
    {"L2_NORMALIZATION", 1, Options::kL2Norm, "", LowerL2Normalization, kTaken,
     LowerQuantisedL2Normalization},
    {"LOCAL_RESPONSE_NORMALIZATION", 1, Options::kLocalResponseNormalization, "", LowerLrn},
    {"LOG_SOFTMAX", 1, Options::kNone, "", LowerLogSoftmax, kTaken, LowerQuantisedLogSoftmax},
    {"SOFTMAX", 1, Options::kSoftmax, "", LowerSoftmax, kTaken, LowerQuantisedSoftmax},
};

}  // namespace

std::span<const TfliteOpRow> TfliteNormRows() { return kRows; }

}  // namespace oncilla
