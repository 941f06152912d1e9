// Custom ops of MediaPipe's models, whose semantics are published, by name. Options that are the
// bytes of a C struct are read as 32-bit integers.
#include <algorithm>
#include <cstring>

#include "engine/import/tflite/lowering.h"
#include "engine/import/tflite/ops/image_landmarks.h"

namespace oncilla {
namespace {

// The integers of a struct; at least `count` of them must exist.
Result<std::vector<int64_t>> Struct(const TfliteLowering& b, size_t count) {
  const std::string_view bytes = b.custom_options();
  if (bytes.size() / 4 < count) return DataLoss("has options of ", bytes.size(), " bytes");
  std::vector<int64_t> out;
  for (size_t i = 0; i < count; ++i) {
    int32_t value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    out.push_back(value);
  }
  return out;
}

// A transposed convolution with a bias: the filter is [out, height, width, in], and the output's
// size follows from the padding (1: same, 2: valid) and the strides of width and height after it.
Result<Values> LowerTransposeBias(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> options, Struct(b, 3));
  const PartialShape &x = b.in_fact(0).shape, &filter = b.in_fact(1).shape;
  if (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kF32) return Unsupported("of ", b.dtype());
  if (!x.ranked() || x.rank() != 4 || !filter.known() || filter.rank() != 4) {
    return Unsupported("of an image ", x, " and a filter ", filter);
  }
  if (options[0] != 1 && options[0] != 2) return Unsupported("padding ", options[0]);
  ConvTransposeAttrs attrs;
  attrs.strides = {options[2], options[1]};
  attrs.pads.assign(4, 0);
  for (size_t i = 0; i < 2 && options[0] == 1; ++i) {
    const Dim &size = x[static_cast<int>(i) + 1], &taps = filter[static_cast<int>(i) + 1];
    const int64_t stride = attrs.strides[i];
    if (!size.known() || stride < 1) return Unsupported("of an image ", x, " in steps of ", stride);
    const int64_t rest = size.size < 1 ? 0 : (size.size - 1) % stride;
    const int64_t pad = std::max<int64_t>(0, taps.size - rest - 1);
    attrs.pads[i] = pad / 2;
    attrs.pads[i + 2] = pad - pad / 2;
  }
  ONCILLA_ASSIGN(const ValueId weights, b.Transpose(b.in(1), {1, 2, 0, 3}, "filter"));
  return One(b.Add(attrs, {b.in(0), weights, b.in(2)}));
}

// Reads the options of a pool for an image of known size. The padding before the image equals that
// after it, or is one less.
struct PoolOptions {
  bool same = false;
  int64_t strides[2], window[2];  // of height and width
};
Result<PoolOptions> ReadPool(const TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> options, Struct(b, 6));
  PoolOptions pool = {options[0] == 1, {options[2], options[1]}, {options[4], options[3]}};
  if (options[0] != 1 && options[0] != 2) return Unsupported("padding ", options[0]);
  if (options[5] != 0) return Unsupported("with the activation ", options[5]);
  constexpr int64_t kMost = 1 << 16;
  for (size_t i = 0; i < 2; ++i) {
    if (std::min(pool.strides[i], pool.window[i]) < 1 ||
        std::max(pool.strides[i], pool.window[i]) > kMost) {
      return InvalidArgument("a window of ", pool.window[i], " in steps of ", pool.strides[i]);
    }
  }
  const PartialShape& x = b.in_fact(0).shape;
  if (b.dtype() != DType::kF32 || !x.known() || x.rank() != 4 || x.elements().size < 1) {
    return Unsupported("of ", b.in_fact(0));
  }
  for (int i = 0; i < 4; ++i) {
    if (x[i].size > (1 << 20)) return Unsupported("of ", b.in_fact(0));
  }
  return pool;
}

// How far the first window starts before the image.
int64_t Border(int64_t size, int64_t windows, int64_t window, int64_t stride) {
  return std::max<int64_t>(0, (windows - 1) * stride + window - size) / 2;
}

// The values 0, step, 2 * step, .. minus `border`, shaped to broadcast along an axis with `behind`
// axes after it.
ValueId Begins(TfliteLowering& b, int64_t count, int64_t step, int64_t border, int behind) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * step - border);
  Shape shape = {count};
  for (int i = 0; i < behind; ++i) shape.push_back(1);
  return b.Constant(Tensor::Of<int64_t>(DType::kI64, shape, values));
}

Result<ValueId> Whole(TfliteLowering& b, int64_t value) {
  return b.Constant(Tensor::ScalarInt64(value));
}

// The maxima, and the position of each in its window: row * width + column, as a float with 0.1
// added.
Result<Values> LowerMaxPoolArgmax(TfliteLowering& b) {
  if (b.outputs() != 2) return DataLoss("has ", b.outputs(), " outputs");
  ONCILLA_ASSIGN(const PoolOptions pool, ReadPool(b));
  const Shape x = b.in_fact(0).shape.ToShape();
  MaxPoolAttrs attrs;
  attrs.kernel = {pool.window[0], pool.window[1]};
  attrs.strides = {pool.strides[0], pool.strides[1]};
  attrs.auto_pad = pool.same ? "same_upper" : "valid";
  attrs.with_indices = true;
  ONCILLA_ASSIGN(const Values y, b.AddAll(attrs, {b.in(0)}, "pool"));
  const PartialShape out = b.fact(y[0]).shape;
  if (!out.known()) return Unsupported("of ", b.in_fact(0));
  ValueId begins[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t border =
        pool.same ? Border(x[i + 1], out[i + 1].size, pool.window[i], pool.strides[i]) : 0;
    begins[i] = Begins(b, out[i + 1].size, pool.strides[i], border, 2 - i);
  }
  ONCILLA_ASSIGN(const ValueId image, Whole(b, x.Product(1, 4)));
  ONCILLA_ASSIGN(const ValueId row, Whole(b, x.Product(2, 4)));
  ONCILLA_ASSIGN(const ValueId channels, Whole(b, x[3]));
  ONCILLA_ASSIGN(const ValueId width, Whole(b, pool.window[1]));
  ONCILLA_ASSIGN(const ValueId place, b.Add("FloorMod", {}, {y[1], image}, "place"));
  ONCILLA_ASSIGN(const ValueId at_row, b.Add("Div", {}, {place, row}, "row"));
  ONCILLA_ASSIGN(const ValueId in_row, b.Add("FloorMod", {}, {place, row}, "in_row"));
  ONCILLA_ASSIGN(const ValueId at_column, b.Add("Div", {}, {in_row, channels}, "column"));
  ONCILLA_ASSIGN(const ValueId down, b.Add("Sub", {}, {at_row, begins[0]}, "down"));
  ONCILLA_ASSIGN(const ValueId right, b.Add("Sub", {}, {at_column, begins[1]}, "right"));
  ONCILLA_ASSIGN(const ValueId rows, b.Add("Mul", {}, {down, width}, "rows"));
  ONCILLA_ASSIGN(const ValueId index, b.Add("Add", {}, {rows, right}, "index"));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(index, DType::kF32, "real"));
  ONCILLA_ASSIGN(const ValueId tenth, b.Scalar(DType::kF32, double{0.1f}));
  ONCILLA_ASSIGN(const ValueId indices, b.Add("Add", {}, {real, tenth}, "indices"));
  return Values{y[0], indices};
}

// Inputs: x, and the position in its window for each element. Elements without a source are zero;
// if several have the same target, the last one is kept; targets outside of the image are dropped.
Result<Values> LowerMaxUnpool(TfliteLowering& b) {
  ONCILLA_ASSIGN(const PoolOptions pool, ReadPool(b));
  if (b.dtype(1) != DType::kF32) return Unsupported("places of ", b.dtype(1));
  const Shape x = b.in_fact(0).shape.ToShape();
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t sizes[2] = {SaturatingMul(x[1], pool.window[0]),
                            SaturatingMul(x[2], pool.window[1])};
  const int64_t count = SaturatingMul(SaturatingMul(sizes[0], sizes[1]), SaturatingMul(x[0], x[3]));
  if (count >= kMost) return Unsupported("to ", count, " elements");
  ValueId begins[2], limits[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t border = Border(sizes[i], x[i + 1], pool.window[i], pool.strides[i]);
    begins[i] = Begins(b, x[i + 1], pool.strides[i], border, 2 - i);
    ONCILLA_ASSIGN(limits[i], Whole(b, sizes[i]));
  }
  ONCILLA_ASSIGN(const ValueId width, Whole(b, pool.window[1]));
  ONCILLA_ASSIGN(const ValueId none, Whole(b, 0));
  ONCILLA_ASSIGN(const ValueId channels, Whole(b, x[3]));
  ONCILLA_ASSIGN(const ValueId outside, Whole(b, count));
  ONCILLA_ASSIGN(const ValueId index, b.Cast(b.in(1), DType::kI64, "index"));
  // Quotients and remainders truncate towards zero.
  ONCILLA_ASSIGN(const ValueId down, b.Add("Div", {}, {index, width}, "down"));
  ONCILLA_ASSIGN(const ValueId right, b.Add("TruncMod", {}, {index, width}, "right"));
  ONCILLA_ASSIGN(const ValueId row, b.Add("Add", {}, {down, begins[0]}, "row"));
  ONCILLA_ASSIGN(const ValueId column, b.Add("Add", {}, {right, begins[1]}, "column"));
  ValueId inside = kNoValue;
  for (int i = 0; i < 2; ++i) {
    const ValueId at = i == 0 ? row : column;
    const std::string name = i == 0 ? "row" : "column";
    ONCILLA_ASSIGN(const ValueId from, b.Add("GreaterEqual", {}, {at, none}, name + "_from"));
    ONCILLA_ASSIGN(const ValueId to, b.Add("Less", {}, {at, limits[i]}, name + "_to"));
    ONCILLA_ASSIGN(const ValueId good, b.Add("And", {}, {from, to}, name + "_inside"));
    if (i == 0) {
      inside = good;
    } else {
      ONCILLA_ASSIGN(inside, b.Add("And", {}, {inside, good}, "inside"));
    }
  }
  const ValueId images = Begins(b, x[0], sizes[0], 0, 3);  // in rows of the result
  const ValueId depth = Begins(b, x[3], 1, 0, 0);
  ONCILLA_ASSIGN(const ValueId all_rows, b.Add("Add", {}, {row, images}, "all_rows"));
  ONCILLA_ASSIGN(const ValueId pixels, b.Add("Mul", {}, {all_rows, limits[1]}, "pixels"));
  ONCILLA_ASSIGN(const ValueId pixel, b.Add("Add", {}, {pixels, column}, "pixel"));
  ONCILLA_ASSIGN(const ValueId begin, b.Add("Mul", {}, {pixel, channels}, "begin"));
  ONCILLA_ASSIGN(const ValueId place, b.Add("Add", {}, {begin, depth}, "place"));
  ONCILLA_ASSIGN(const ValueId safe, b.Add("Where", {}, {inside, place, outside}, "safe"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Reshape", {}, {safe, b.Ints({-1, 1})}, "places"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {b.in(0), b.Ints({-1})}, "flat"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  // One additional element receives everything that lies outside.
  ONCILLA_ASSIGN(const ValueId zeros, b.Add("Fill", {}, {b.Ints({count + 1}), zero}, "zeros"));
  ONCILLA_ASSIGN(const ValueId all,
                 b.Add(ScatterNDAttrs{.negative_indices = false}, {zeros, places, flat}, "all"));
  ONCILLA_ASSIGN(const ValueId kept,
                 b.Add("Slice", {}, {all, b.Ints({0}), b.Ints({count})}, "kept"));
  return One(b.Add("Reshape", {}, {kept, b.Ints({x[0], sizes[0], sizes[1], x[3]})}));
}

constexpr TfliteOpRow kRows[] = {
    {"Convolution2DTransposeBias", 3, TfliteOptions::kNone, "", LowerTransposeBias},
    {"Landmarks2TransformMatrix", 1, TfliteOptions::kNone, "", LowerTransformMatrix},
    {"MaxPoolingWithArgmax2D", 1, TfliteOptions::kNone, "", LowerMaxPoolArgmax},
    {"MaxUnpooling2D", 2, TfliteOptions::kNone, "", LowerMaxUnpool},
    {"TransformLandmarks", 2, TfliteOptions::kNone, "", LowerTransformLandmarks},
    {"TransformTensorBilinear", 2, TfliteOptions::kNone, "", LowerTransformTensor},
};

}  // namespace

std::span<const TfliteOpRow> TfliteCustomRows() { return kRows; }

}  // namespace oncilla
