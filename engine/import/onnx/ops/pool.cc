// ONNX's pools: channels-first, with transposes around the canonical channels-last ops.
#include <algorithm>

#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

struct Pool {
  int rank = 0;
  PoolWindow window;
  ValueId x = kNoValue;  // channels-last
};

Result<Pool> ReadPool(OnnxLowering& b) {
  Pool pool;
  ONCILLA_ASSIGN(pool.rank, b.Rank(0));
  if (pool.rank < 3 || pool.rank > 5) return Unsupported("with ", pool.rank - 2, " spatial axes");
  const int spatial = pool.rank - 2;
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, spatial, true));
  pool.window = window.As<PoolWindow>();
  ONCILLA_ASSIGN(pool.window.kernel, OnnxSpatialList(b, "kernel_shape", spatial));
  if (pool.window.kernel.empty()) return DataLoss("attribute 'kernel_shape' is missing");
  ONCILLA_ASSIGN(pool.window.ceil, b.Flag("ceil_mode", false));
  ONCILLA_ASSIGN(pool.x, b.ChannelsLast(b.in(0), pool.rank));
  return pool;
}

// Indices count with the last axis fastest; this converts them if a model wants the first spatial
// axis to be the fastest.
Result<ValueId> ColumnMajor(OnnxLowering& b, ValueId places, int rank) {
  if (rank == 3) return places;
  const PartialShape shape = b.in_fact(0).shape;
  int64_t count = 1;
  for (int axis = 2; axis < rank; ++axis) {
    if (!shape.ranked() || !shape[axis].known()) {
      return Unsupported("indices in column-major order of an input of unknown size");
    }
    count = SaturatingMul(count, std::max<int64_t>(shape[axis].size, 1));
  }
  const auto number = [&](int64_t v) { return b.Constant(Tensor::ScalarInt64(v)); };
  ONCILLA_ASSIGN(ValueId rest, b.Add("FloorMod", {}, {places, number(count)}, "within"));
  ONCILLA_ASSIGN(ValueId place, b.Add("Sub", {}, {places, rest}, "base"));
  for (int axis = rank - 1; axis >= 2; --axis) {
    const int64_t size = std::max<int64_t>(shape[axis].size, 1);
    count /= size;
    const std::string name = StrCat("axis", axis);
    ONCILLA_ASSIGN(const ValueId at, b.Add("FloorMod", {}, {rest, number(size)}, name));
    ONCILLA_ASSIGN(rest, b.Add("FloorDiv", {}, {rest, number(size)}, name + "_rest"));
    ONCILLA_ASSIGN(const ValueId step, b.Add("Mul", {}, {at, number(count)}, name + "_step"));
    ONCILLA_ASSIGN(place, b.Add("Add", {}, {place, step}, axis == 2 ? "places" : name + "_sum"));
  }
  return place;
}

Result<Values> LowerMaxPool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Pool pool, ReadPool(b));
  ONCILLA_ASSIGN(const bool by_column, b.Flag("storage_order", false));
  MaxPoolAttrs attrs = {pool.window};
  if (!b.wants(1)) {
    ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {pool.x}, "inner"));
    return One(b.ChannelsFirst(y, pool.rank));
  }
  attrs.with_indices = true;
  attrs.index_order = "nchw";
  ONCILLA_ASSIGN(const Values out, b.AddAll(attrs, {pool.x}, "inner"));
  ONCILLA_ASSIGN(const ValueId y, b.ChannelsFirst(out[0], pool.rank));
  ONCILLA_ASSIGN(ValueId places, b.ChannelsFirst(out[1], pool.rank, "indices"));
  if (by_column) {
    ONCILLA_ASSIGN(places, ColumnMajor(b, places, pool.rank));
  }
  return Values{y, places};
}

Result<Values> LowerAveragePool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Pool pool, ReadPool(b));
  ONCILLA_ASSIGN(const bool count_pads, b.Flag("count_include_pad", false));
  const AveragePoolAttrs attrs = {pool.window, count_pads};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {pool.x}, "inner"));
  return One(b.ChannelsFirst(y, pool.rank));
}

// The order p was a float in early opsets.
Result<int64_t> NormOrder(OnnxLowering& b) {
  if (b.version() >= 2) return b.Int("p", 2);
  ONCILLA_ASSIGN(const float p, b.Float("p", 2));
  if (!(p >= 1 && p <= 64) || p != static_cast<float>(static_cast<int>(p))) {
    return Unsupported("with p = ", p);
  }
  return static_cast<int64_t>(p);
}

Result<Values> LowerLpPool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Pool pool, ReadPool(b));
  ONCILLA_ASSIGN(const int64_t p, NormOrder(b));
  ONCILLA_ASSIGN(const ValueId y, b.Add(LpPoolAttrs{pool.window, p}, {pool.x}, "inner"));
  return One(b.ChannelsFirst(y, pool.rank));
}

// A reduction over all spatial axes, which remain with size one.
Result<Values> LowerGlobalPool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  std::string_view op = "ReduceMean";
  int64_t power = 1;  // of the magnitudes that are summed
  if (b.op() == "GlobalMaxPool") op = "ReduceMax";
  if (b.op() == "GlobalLpPool") {
    ONCILLA_ASSIGN(const int64_t p, NormOrder(b));
    if (p < 1) return InvalidArgument("p is ", p);
    op = p == 1 ? "ReduceL1" : p == 2 ? "ReduceL2" : "ReduceSum";
    power = p > 2 ? p : 1;
  }
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  if (axes.empty()) return Unsupported("without spatial axes");
  ONCILLA_ASSIGN(ValueId x, b.ChannelsLast(b.in(0), rank));
  if (power > 1) {
    ONCILLA_ASSIGN(const ValueId size, b.Add("Abs", {}, {x}, "magnitudes"));
    ONCILLA_ASSIGN(const ValueId p, b.Scalar(b.dtype(), static_cast<double>(power)));
    ONCILLA_ASSIGN(x, b.Add("Pow", {}, {size, p}, "powers"));
  }
  ONCILLA_ASSIGN(ValueId y,
                 b.Add(op, ReduceAttrs{.keep_dims = true}, {x, b.Ints(std::move(axes))}, "inner"));
  if (power > 1) {
    ONCILLA_ASSIGN(const ValueId root, b.Scalar(b.dtype(), 1 / static_cast<double>(power)));
    ONCILLA_ASSIGN(y, b.Add("Pow", {}, {y, root}, "root"));
  }
  return One(b.ChannelsFirst(y, rank));
}

// A tensor of `sizes` with the first input's values at the flat indices `places`, and zeros
// elsewhere.
Result<ValueId> PlaceValues(OnnxLowering& b, ValueId sizes, ValueId places,
                            const std::string& name) {
  ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceProd", ReduceAttrs{.keep_dims = true},
                                            {sizes, b.Ints({0})}, name + "_count"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  ONCILLA_ASSIGN(const ValueId zeros, b.Add("Fill", {}, {count, zero}, name + "_zeros"));
  ONCILLA_ASSIGN(const ValueId values,
                 b.Add("Reshape", {}, {b.in(0), b.Ints({-1})}, name + "_values"));
  ONCILLA_ASSIGN(const ValueId flat,
                 b.Add("ScatterElements", {}, {zeros, places, values}, name + "_placed"));
  return b.Add("Reshape", {}, {flat, sizes}, name);
}

// The input sizes of MaxPool, assuming that no window extended beyond the input's end.
Result<std::vector<int64_t>> SizesBeforePool(OnnxLowering& b, const PartialShape& shape) {
  const int spatial = shape.rank() - 2;
  ONCILLA_ASSIGN(const auto kernel, OnnxSpatialList(b, "kernel_shape", spatial));
  ONCILLA_ASSIGN(const auto strides, OnnxSpatialList(b, "strides", spatial));
  ONCILLA_ASSIGN(const auto pads, OnnxSpatialList(b, "pads", 2 * spatial));
  if (kernel.empty()) return DataLoss("attribute 'kernel_shape' is missing");
  std::vector<int64_t> sizes = {shape[0].size, shape[1].size};
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i), end = static_cast<size_t>(i + spatial);
    const int64_t stride = strides.empty() ? 1 : strides[at];
    const int64_t padding = pads.empty() ? 0 : SaturatingAdd(pads[at], pads[end]);
    if (stride < 1 || kernel[at] < 1 || padding < 0) {
      return InvalidArgument("kernel ", kernel[at], ", stride ", stride, ", padding ", padding);
    }
    const int64_t steps = SaturatingMul(std::max<int64_t>(shape[i + 2].size - 1, 0), stride);
    sizes.push_back(SaturatingAdd(steps, kernel[at]) - padding);
    if (sizes.back() < 0) return InvalidArgument("the padding ", padding, " exceeds the result");
  }
  return sizes;
}

// Writes values back to the positions that MaxPool returned; all other elements are zero. Positions
// are flat indices in a tensor of the result's sizes, which output_shape states if they do not
// follow from the windows.
Result<Values> LowerMaxUnpool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  const PartialShape shape = b.in_fact(0).shape;
  if (!shape.known() || rank < 3) return Unsupported("of an input of unknown size");
  ONCILLA_ASSIGN(const std::vector<int64_t> inferred, SizesBeforePool(b, shape));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Reshape", {}, {b.in(1), b.Ints({-1})}, "places"));
  if (!b.has(2)) {
    ONCILLA_ASSIGN(const ValueId y, PlaceValues(b, b.Ints(inferred), places, "unpooled"));
    return One(b.Add("Identity", {}, {y}));
  }
  ONCILLA_ASSIGN(const ValueId asked, b.Cast(b.in(2), DType::kI64, "asked"));
  ONCILLA_ASSIGN(const ValueId y, PlaceValues(b, asked, places, "unpooled"));
  if (SaturatingMul(shape[0].size, shape[1].size) != 1) return One(b.Add("Identity", {}, {y}));
  // In ONNX's own test, which has one channel, positions are counted in a tensor without
  // output_shape, and the additional elements of the result are at its ends. The same is done here
  // if all positions are within that smaller tensor.
  int64_t count = 1;
  for (int64_t size : inferred) count = SaturatingMul(count, size);
  const ValueId last = b.Constant(Tensor::ScalarInt64(std::max<int64_t>(count - 1, 0)));
  ONCILLA_ASSIGN(const ValueId within, b.Add("Min", {}, {places, last}, "places_within"));
  ONCILLA_ASSIGN(const ValueId small, PlaceValues(b, b.Ints(inferred), within, "small"));
  ONCILLA_ASSIGN(ValueId more, b.Add("Sub", {}, {asked, b.Ints(inferred)}, "more"));
  ONCILLA_ASSIGN(more, b.Add("Max", {}, {more, b.Constant(Tensor::ScalarInt64(0))}, "more_only"));
  ONCILLA_ASSIGN(const ValueId surplus,
                 b.Add(ConcatAttrs{.axis = 0},
                       {b.Ints(std::vector<int64_t>(inferred.size(), 0)), more}, "surplus"));
  ONCILLA_ASSIGN(const ValueId padded, b.Add("Pad", {}, {small, surplus}, "with_surplus"));
  ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", ReduceAttrs{.keep_dims = false},
                                           {places, b.Ints({0})}, "last_place"));
  ONCILLA_ASSIGN(const ValueId fits, b.Add("LessEqual", {}, {most, last}, "fits"));
  return One(b.Add("Where", {}, {fits, padded, y}));
}

constexpr OnnxOpRow kRows[] = {
    {"AveragePool", 1, kNewestOnnxOpset, 1, "", LowerAveragePool},
    {"GlobalAveragePool", 1, kNewestOnnxOpset, 1, "", LowerGlobalPool},
    {"GlobalLpPool", 1, kNewestOnnxOpset, 1, "", LowerGlobalPool},
    {"GlobalMaxPool", 1, kNewestOnnxOpset, 1, "", LowerGlobalPool},
    {"LpPool", 1, kNewestOnnxOpset, 1, "", LowerLpPool},
    {"MaxPool", 1, kNewestOnnxOpset, 1, "", LowerMaxPool},
    {"MaxUnpool", 9, kNewestOnnxOpset, 2, "", LowerMaxUnpool},
};

}  // namespace

std::span<const OnnxOpRow> OnnxPoolRows() { return kRows; }

}  // namespace oncilla
