// Landmarks and crops of MediaPipe's models with attention. Matrices are [1, 4, 4]; their first two
// rows give the source position of x and y: x' = m0 * x + m1 * y + m3.
#include "engine/import/tflite/ops/image_landmarks.h"

#include <algorithm>
#include <cmath>

#include "engine/import/tflite/flex_buffer.h"

namespace oncilla {
namespace {

// Builds small graphs of single numbers from formulas. The first error is kept until Done().
class Formula {
 public:
  Formula(TfliteLowering& b, std::string prefix) : b_(b), prefix_(std::move(prefix)) {}

  ValueId Number(double value) { return Keep(b_.Scalar(DType::kF32, value)); }
  ValueId Op(std::string_view op, Values inputs, AttrMap attrs = {}) {
    if (!status_.ok()) return kNoValue;
    return Keep(b_.Add(op, std::move(attrs), std::move(inputs), StrCat(prefix_, next_++)));
  }
  ValueId Add(ValueId a, ValueId c) { return Op("Add", {a, c}); }
  ValueId Sub(ValueId a, ValueId c) { return Op("Sub", {a, c}); }
  ValueId Mul(ValueId a, ValueId c) { return Op("Mul", {a, c}); }
  ValueId Mul(ValueId a, double c) { return Op("Mul", {a, Number(c)}); }
  ValueId Neg(ValueId a) { return Op("Neg", {a}); }
  ValueId Reshape(ValueId a, std::vector<int64_t> shape) {
    return Op("Reshape", {a, b_.Ints(std::move(shape))});
  }
  // The elements at `places` along `axis`; if there is one place, the axis is removed.
  ValueId Take(ValueId a, const std::vector<int64_t>& places, int64_t axis) {
    return Op("Gather", {a, b_.Ints(places)},
              WriteAttrs(GatherAttrs{.axis = axis, .negative_indices = false}));
  }
  ValueId TakeOne(ValueId a, int64_t place, int64_t axis) {
    return Op("Gather", {a, b_.Constant(Tensor::ScalarInt64(place))},
              WriteAttrs(GatherAttrs{.axis = axis, .negative_indices = false}));
  }
  ValueId Reduce(std::string_view op, ValueId a) {
    return Op(op, {a, b_.Ints({0})}, WriteAttrs(ReduceAttrs{.keep_dims = false}));
  }
  const Status& status() const { return status_; }
  Result<Values> Done(Result<ValueId> last) {
    if (!status_.ok()) return status_;
    return One(std::move(last));
  }

 private:
  ValueId Keep(Result<ValueId> value) {
    if (value.ok()) return *value;
    if (status_.ok()) status_ = value.status();
    return kNoValue;
  }

  TfliteLowering& b_;
  const std::string prefix_;
  int next_ = 0;
  Status status_;
};

// Options by name. A missing option is zero.
struct NamedOptions {
  FlexValue map;
  Status status;
  int64_t Int(std::string_view key) { return Get(key, &FlexValue::Int); }
  double Float(std::string_view key) { return Get(key, &FlexValue::Float); }
  std::vector<int64_t> Ints(std::string_view key) {
    std::vector<int64_t> out;
    const Result<FlexValue> list = map.Find(key);
    const Result<int64_t> count = list.ok() ? list->Count() : Result<int64_t>(list.status());
    Keep(count.status());
    for (int64_t i = 0; count.ok() && i < *count; ++i) {
      const Result<FlexValue> value = list->Element(i);
      const Result<int64_t> number = value.ok() ? value->Int() : Result<int64_t>(value.status());
      Keep(number.status());
      if (!number.ok()) break;
      out.push_back(*number);
    }
    return out;
  }

 private:
  void Keep(const Status& failed) {
    if (status.ok() && !failed.ok()) status = failed;
  }
  template <class T>
  T Get(std::string_view key, Result<T> (FlexValue::*read)() const) {
    const Result<FlexValue> value = map.Find(key);
    const Result<T> number = value.ok() ? ((*value).*read)() : Result<T>(value.status());
    Keep(number.status());
    return number.ok() ? *number : T();
  }
};

Result<NamedOptions> ReadOptions(const TfliteLowering& b) {
  NamedOptions out;
  ONCILLA_ASSIGN(out.map, FlexValue::Root(b.custom_options()));
  return out;
}

Status CheckPoints(const TfliteLowering& b, const std::vector<int64_t>& points) {
  const Dim count = b.in_fact(0).shape.elements();
  if (b.dtype() != DType::kF32 || !count.known() || count.size % 3 != 0) {
    return Unsupported("of ", b.in_fact(0));
  }
  for (const int64_t point : points) {
    if (point < 0 || point >= count.size / 3) {
      return InvalidArgument("there is no landmark ", point, " of ", count.size / 3);
    }
  }
  return {};
}

// The rotation that makes the line between two landmarks level, and the bounding box of other
// landmarks after this rotation.
struct Crop {
  ValueId cosine, sine, width, height, x, y;  // x and y: the centre, rotated back
};
Crop CropOf(Formula& f, ValueId xs, ValueId ys, ValueId turn) {
  Crop crop = {f.Op("Cos", {turn}), f.Op("Sin", {turn}), kNoValue, kNoValue, kNoValue, kNoValue};
  const ValueId u = f.Sub(f.Mul(xs, crop.cosine), f.Mul(ys, crop.sine));
  const ValueId v = f.Add(f.Mul(xs, crop.sine), f.Mul(ys, crop.cosine));
  const ValueId u_most = f.Reduce("ReduceMax", u), u_least = f.Reduce("ReduceMin", u);
  const ValueId v_most = f.Reduce("ReduceMax", v), v_least = f.Reduce("ReduceMin", v);
  crop.width = f.Sub(u_most, u_least);
  crop.height = f.Sub(v_most, v_least);
  const ValueId u_middle = f.Mul(f.Add(u_most, u_least), 0.5);
  const ValueId v_middle = f.Mul(f.Add(v_most, v_least), 0.5);
  crop.x = f.Add(f.Mul(u_middle, crop.cosine), f.Mul(v_middle, crop.sine));
  crop.y = f.Sub(f.Mul(v_middle, crop.cosine), f.Mul(u_middle, crop.sine));
  return crop;
}

// [1, 4, 4] from two rows of three numbers. In version 1 the third row also has its one in the
// third column, and the offsets are in the fourth column.
Result<Values> Matrix(TfliteLowering& b, Formula& f, const Values& rows) {
  const ValueId none = f.Number(0), one = f.Number(1);
  Values cells = {rows[0], rows[1], none, rows[2], rows[3], rows[4], none, rows[5],
                  none,    none,    one,  none,    none,    none,    none, one};
  for (ValueId& cell : cells) cell = f.Reshape(cell, {1});
  const ValueId flat = f.Op("Concat", std::move(cells), WriteAttrs(ConcatAttrs{.axis = 0}));
  if (!f.status().ok()) return f.status();
  return One(b.Add("Reshape", {}, {flat, b.Ints({1, 4, 4})}));
}

// Version 1: landmarks are numbers up to landmarks_range, and the matrix is in pixels.
Result<Values> AddFirstMatrix(TfliteLowering& b, NamedOptions& o) {
  const std::vector<int64_t> input = o.Ints("input_hw"), output = o.Ints("output_hw");
  const std::vector<int64_t> subset = o.Ints("subset");
  const int64_t left = o.Int("left_rotation_idx"), right = o.Int("right_rotation_idx");
  const auto range = static_cast<double>(o.Int("landmarks_range"));
  const double factor = o.Float("bbox_size_multiplier");
  if (o.Int("dimensions") != 3) return Unsupported("of landmarks of other than 3 numbers");
  ONCILLA_TRY(o.status);
  ONCILLA_TRY(CheckPoints(b, subset));
  ONCILLA_TRY(CheckPoints(b, {left, right}));
  if (input.size() != 2 || output.size() != 2 || subset.empty() || !(range > 0) || factor == 0 ||
      std::min({input[0], input[1]}) < 1 || std::min({output[0], output[1]}) < 2) {
    return InvalidArgument("its sizes are none");
  }
  Formula f(b, "step");
  const ValueId points = f.Reshape(b.in(0), {-1, 3});
  const ValueId xs = f.TakeOne(points, 0, 1), ys = f.TakeOne(points, 1, 1);
  const ValueId rise = f.Sub(f.TakeOne(ys, right, 0), f.TakeOne(ys, left, 0));
  const ValueId run = f.Sub(f.TakeOne(xs, right, 0), f.TakeOne(xs, left, 0));
  const ValueId turn = f.Neg(f.Op("Atan", {f.Op("Div", {rise, run})}));
  const Crop crop = CropOf(f, f.Take(xs, subset, 0), f.Take(ys, subset, 0), turn);
  const ValueId wide = f.Mul(crop.width, factor / range);
  const ValueId tall = f.Mul(crop.height, factor / range);
  const ValueId x = f.Sub(f.Mul(crop.x, 2.0 / range), f.Number(1));
  const ValueId y = f.Sub(f.Mul(crop.y, 2.0 / range), f.Number(1));
  const ValueId a = f.Mul(crop.cosine, wide), c = f.Mul(crop.sine, tall);
  const ValueId d = f.Neg(f.Mul(crop.sine, wide)), e = f.Mul(crop.cosine, tall);
  const auto cells = [&](ValueId p, ValueId q, ValueId offset, int64_t size) {
    const double half = (static_cast<double>(size) - 1.0) / 2.0;
    const ValueId shift = f.Add(f.Sub(offset, f.Add(p, q)), f.Number(1));
    return Values{f.Mul(p, half * 2.0 / (static_cast<double>(output[1]) - 1.0)),
                  f.Mul(q, half * 2.0 / (static_cast<double>(output[0]) - 1.0)),
                  f.Mul(shift, half)};
  };
  Values rows = cells(a, c, x, input[1]);
  for (const ValueId cell : cells(d, e, y, input[0])) rows.push_back(cell);
  return Matrix(b, f, rows);
}

Result<Values> AddSecondMatrix(TfliteLowering& b, NamedOptions& o) {
  const std::vector<int64_t> subset = o.Ints("subset_idxs");
  const int64_t left = o.Int("left_rotation_idx"), right = o.Int("right_rotation_idx");
  const double target = o.Float("target_rotation_radians");
  const auto height = static_cast<double>(o.Int("output_height"));
  const auto width = static_cast<double>(o.Int("output_width"));
  const double scale_x = o.Float("scale_x"), scale_y = o.Float("scale_y");
  ONCILLA_TRY(o.status);
  ONCILLA_TRY(CheckPoints(b, subset));
  ONCILLA_TRY(CheckPoints(b, {left, right}));
  if (subset.empty() || !(height > 0) || !(width > 0) || !(scale_x > 0) || !(scale_y > 0)) {
    return InvalidArgument("its sizes are none");
  }
  Formula f(b, "step");
  const ValueId points = f.Reshape(b.in(0), {-1, 3});
  const ValueId xs = f.TakeOne(points, 0, 1), ys = f.TakeOne(points, 1, 1);
  const ValueId rise = f.Sub(f.TakeOne(ys, right, 0), f.TakeOne(ys, left, 0));
  const ValueId run = f.Sub(f.TakeOne(xs, right, 0), f.TakeOne(xs, left, 0));
  const ValueId turn = f.Sub(f.Number(target), f.Op("Atan2", {rise, run}));
  const Crop crop = CropOf(f, f.Take(xs, subset, 0), f.Take(ys, subset, 0), turn);
  const ValueId wide = f.Mul(crop.width, scale_x / width);
  const ValueId tall = f.Mul(crop.height, scale_y / height);
  // Maps a pixel of the crop to the image: relative to the crop's centre, scaled, rotated back, and
  // moved to the centre of the box.
  const auto cells = [&](ValueId p, ValueId q, ValueId offset) {
    const ValueId shift = f.Add(f.Mul(p, width / 2), f.Mul(q, height / 2));
    return Values{p, q, f.Sub(offset, shift)};
  };
  Values rows = cells(f.Mul(crop.cosine, wide), f.Mul(crop.sine, tall), crop.x);
  for (const ValueId cell :
       cells(f.Neg(f.Mul(crop.sine, wide)), f.Mul(crop.cosine, tall), crop.y)) {
    rows.push_back(cell);
  }
  return Matrix(b, f, rows);
}

// The first two rows of input 1, as single numbers m[0] to m[7].
Result<Values> Cells(TfliteLowering& b, Formula& f) {
  const Dim count = b.in_fact(1).shape.elements();
  if (b.dtype(1) != DType::kF32 || !count.known() || count.size < 8) {
    return Unsupported("by a matrix ", b.in_fact(1));
  }
  const ValueId flat = f.Reshape(b.in(1), {-1});
  Values cells;
  for (int64_t i = 0; i < 8; ++i) cells.push_back(f.TakeOne(flat, i, 0));
  return cells;
}

}  // namespace

Result<Values> LowerTransformMatrix(TfliteLowering& b) {
  ONCILLA_ASSIGN(NamedOptions options, ReadOptions(b));
  if (b.version() == 1) return AddFirstMatrix(b, options);
  if (b.version() == 2) return AddSecondMatrix(b, options);
  return Unsupported("in version ", b.version());
}

// Transforms x and y of each landmark; a third number is kept. Version 1 has options, and its scale
// includes offsets.
Result<Values> LowerTransformLandmarks(TfliteLowering& b) {
  const PartialShape shape = b.in_fact(0).shape;
  if (b.dtype() != DType::kF32 || !shape.known() || shape.rank() < 1) {
    return Unsupported("of ", b.in_fact(0));
  }
  int64_t dimensions = shape[shape.rank() - 1].size;
  double scale = 1;
  if (b.version() == 1) {
    ONCILLA_ASSIGN(NamedOptions options, ReadOptions(b));
    ONCILLA_ASSIGN(const FlexValue given, options.map.Find("dimensions"));
    ONCILLA_ASSIGN(const FlexValue scaled, options.map.Find("scale"));
    dimensions = given.nothing() ? 3 : options.Int("dimensions");
    scale = scaled.nothing() ? 1 : options.Float("scale");
    ONCILLA_TRY(options.status);
  } else if (b.version() != 2) {
    return Unsupported("in version ", b.version());
  }
  if ((dimensions != 2 && dimensions != 3) || shape.elements().size % dimensions != 0) {
    return Unsupported("of ", b.in_fact(0), " as landmarks of ", dimensions, " numbers");
  }
  Formula f(b, "step");
  ONCILLA_ASSIGN(const Values m, Cells(b, f));
  const ValueId points = f.Reshape(b.in(0), {-1, dimensions});
  const ValueId x = f.Take(points, {0}, 1), y = f.Take(points, {1}, 1);
  const auto row = [&](size_t at) {
    return f.Add(f.Add(f.Mul(x, m[at]), f.Mul(y, m[at + 1])), f.Mul(m[at + 3], scale));
  };
  Values parts = {row(0), row(4)};
  if (dimensions == 3) parts.push_back(f.Take(points, {2}, 1));
  const ValueId all = f.Op("Concat", std::move(parts), WriteAttrs(ConcatAttrs{.axis = 1}));
  if (!f.status().ok()) return f.status();
  std::vector<int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i].size);
  return f.Done(b.Add("Reshape", {}, {all, b.Ints(sizes)}));
}

// Samples the image bilinearly, for each pixel of the result at the position that the matrix gives;
// outside the image it is zero. Version 2 measures positions from the corners of pixels.
Result<Values> LowerTransformTensor(TfliteLowering& b) {
  ONCILLA_ASSIGN(NamedOptions options, ReadOptions(b));
  std::vector<int64_t> sizes = {options.Int("output_height"), options.Int("output_width")};
  if (b.version() == 1) {
    sizes = options.Ints("output_size");
    ONCILLA_ASSIGN(const FlexValue mode, options.map.Find("mode"));
    if (!mode.nothing()) {
      ONCILLA_ASSIGN(const std::string_view text, mode.Text());
      if (text != "bilinear") return Unsupported("with the mode ", text);
    }
  } else if (b.version() != 2) {
    return Unsupported("in version ", b.version());
  }
  ONCILLA_TRY(options.status);
  const PartialShape shape = b.in_fact(0).shape;
  constexpr int64_t kMost = 1 << 12;
  if (b.dtype() != DType::kF32 || !shape.known() || shape.rank() != 4 || shape[0].size != 1 ||
      shape.elements().size < 1 || std::max(shape[1].size, shape[2].size) > kMost) {
    return Unsupported("of ", b.in_fact(0));
  }
  constexpr int64_t kMostPixels = 1 << 22;
  if (sizes.size() != 2 || std::min(sizes[0], sizes[1]) < 1 ||
      std::max(sizes[0], sizes[1]) > kMost || sizes[0] * sizes[1] > kMostPixels) {
    return InvalidArgument("its sizes are none, or too large");
  }
  const int64_t height = shape[1].size, width = shape[2].size, channels = shape[3].size;
  std::vector<float> columns, rows;
  for (int64_t y = 0; y < sizes[0]; ++y) {
    for (int64_t x = 0; x < sizes[1]; ++x) {
      columns.push_back(static_cast<float>(x));
      rows.push_back(static_cast<float>(y));
    }
  }
  const Shape list = {sizes[0] * sizes[1], 1};
  const ValueId x = b.Constant(Tensor::Of<float>(DType::kF32, list, columns));
  const ValueId y = b.Constant(Tensor::Of<float>(DType::kF32, list, rows));
  Formula f(b, "step");
  ONCILLA_ASSIGN(const Values m, Cells(b, f));
  ValueId at[2], low[2], inside = kNoValue;
  for (size_t i = 0; i < 2; ++i) {
    const size_t row = i == 0 ? 0 : 4;
    ValueId offset = m[row + 3];
    if (b.version() == 2) {
      const ValueId halves = f.Mul(f.Add(m[row], m[row + 1]), 0.5);
      offset = f.Add(offset, f.Sub(halves, f.Number(0.5)));
    }
    at[i] = f.Add(f.Add(f.Mul(x, m[row]), f.Mul(y, m[row + 1])), offset);
    low[i] = f.Op("Floor", {at[i]});
    const auto last = static_cast<double>(i == 0 ? width - 1 : height - 1);
    const ValueId from = f.Op("GreaterEqual", {at[i], f.Number(0)});
    const ValueId to = f.Op("LessEqual", {at[i], f.Number(last)});
    const ValueId good = f.Op("And", {from, to});
    inside = i == 0 ? good : f.Op("And", {inside, good});
  }
  const ValueId image = f.Reshape(b.in(0), {height * width, channels});
  // A pixel after the last one is only needed with weight zero, if the point itself is inside.
  const auto pixel = [&](double right, double down) {
    const auto place = [&](size_t i, double step, int64_t size) {
      const ValueId moved = f.Add(low[i], f.Number(step));
      return f.Op("Clip", {moved, f.Number(0), f.Number(static_cast<double>(size - 1))});
    };
    const ValueId across = place(0, right, width), along = place(1, down, height);
    const ValueId flat = f.Add(f.Mul(along, static_cast<double>(width)), across);
    const ValueId index = f.Op("Cast", {f.Reshape(flat, {-1})}, WriteAttrs(CastAttrs{DType::kI32}));
    return f.Op("Gather", {image, index}, WriteAttrs(GatherAttrs{.negative_indices = false}));
  };
  const ValueId right = f.Sub(at[0], low[0]), down = f.Sub(at[1], low[1]);
  const auto between = [&](ValueId first, ValueId second, ValueId weight) {
    const ValueId rest = f.Sub(f.Number(1), weight);
    return f.Add(f.Mul(first, rest), f.Mul(second, weight));
  };
  const ValueId upper = between(pixel(0, 0), pixel(1, 0), right);
  const ValueId lower = between(pixel(0, 1), pixel(1, 1), right);
  const ValueId y_all = f.Op("Where", {inside, between(upper, lower, down), f.Number(0)});
  if (!f.status().ok()) return f.status();
  return f.Done(b.Add("Reshape", {}, {y_all, b.Ints({1, sizes[0], sizes[1], channels})}));
}

}  // namespace oncilla
