// Slice and StridedSlice: one range per axis of x, from ONNX's or TensorFlow's notation.
//
// Both notations are first read into Bounds per axis, which may be partly known. Ranges are then
// computed from these by one shared rule.
#include <algorithm>

#include "engine/ops/array/movement.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// What is requested of one axis. An open bound is the edge of the axis at which the step starts or
// ends.
struct Bounds {
  bool begin_open = true, end_open = true;
  KnownInt begin, end;
  std::optional<int64_t> step = 1;
  bool shrink = false;  // take only the element at begin and drop the axis
  // If a negative step begins before the start of the axis, it takes the first element (ONNX),
  // otherwise no element (TensorFlow).
  bool begins_inside = false;
};

// The elements start, start + step, ... of one axis, `size` in number.
struct Range {
  int64_t start = 0, step = 1, size = 0;
};

// Computes the range. Everything that `bounds` depends on must be known.
Result<Range> Resolve(const Bounds& bounds, int64_t size, int axis) {
  if (bounds.shrink) {
    const int64_t begin = *bounds.begin.value;
    if (begin < -size || begin >= size) {
      return InvalidArgument("index ", begin, " is out of range for axis ", axis, " of size ",
                             size);
    }
    return Range{begin < 0 ? begin + size : begin, 1, 1};
  }
  // The negation of the most negative step would overflow; its neighbour reaches just as far.
  const int64_t step = std::max(*bounds.step, -kMaxInt64);
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  int64_t begin = bounds.begin_open ? (step > 0 ? low : high) : clamp(*bounds.begin.value);
  if (bounds.begins_inside && size > 0) begin = std::max<int64_t>(begin, 0);
  const int64_t end = bounds.end_open ? (step > 0 ? high : low) : clamp(*bounds.end.value);
  const int64_t span = step > 0 ? end - begin : begin - end;
  Range range{begin, step, 0};
  if (span > 0) range.size = (span - 1) / (step > 0 ? step : -step) + 1;
  if (range.size <= 1) range.step = 1;
  if (range.size == 0) range.start = 0;
  return range;
}

// The size of the range as far as it is known. A named size is kept if the range is the whole axis.
Result<Dim> RangeSize(const Bounds& bounds, const Dim& size, int axis) {
  if (bounds.shrink) {
    if (bounds.begin.value && size.known()) {
      ONCILLA_TRY(Resolve(bounds, size.size, axis).status());
    }
    return Dim(1);
  }
  if (!bounds.step) return Dim();
  const bool begin_known = bounds.begin_open || bounds.begin.value.has_value();
  const bool end_known = bounds.end_open || bounds.end.value.has_value();
  if (size.known() && begin_known && end_known) {
    ONCILLA_ASSIGN(const Range range, Resolve(bounds, size.size, axis));
    return Dim(range.size);
  }
  // No size reaches this: exporters write an open end as the largest int32 or int64.
  constexpr int64_t kFar = std::numeric_limits<int32_t>::max();
  const auto begin = bounds.begin.value, end = bounds.end.value;
  if (*bounds.step == 1) {
    const bool from_edge = bounds.begin_open || (begin && (*begin == 0 || *begin <= -kFar));
    const bool to_edge = bounds.end_open || (end && *end >= kFar) || bounds.end.dim.Same(size);
    if (from_edge && to_edge) return size;
  } else if (*bounds.step == -1) {
    const bool from_edge = bounds.begin_open || (begin && (*begin == -1 || *begin >= kFar));
    const bool to_edge = bounds.end_open || (end && *end <= -kFar);
    if (from_edge && to_edge) return size;
  }
  return Dim();
}

// A single box from ranges of x, in the order of x's axes, to a dense output.
Moves RangeMoves(const Shape& from, const std::vector<Range>& ranges) {
  const auto from_strides = RowMajorStrides(from);
  Shape sizes;
  for (const Range& range : ranges) sizes.push_back(range.size);
  const auto to_strides = RowMajorStrides(sizes);
  Move move;
  for (size_t i = 0; i < ranges.size(); ++i) {
    move.axes.push_back({ranges[i].size, ranges[i].step * from_strides[i], to_strides[i]});
    move.from_start += ranges[i].start * from_strides[i];
  }
  return {std::move(move)};
}

Result<Moves> BoundsMoves(const Shape& from, const std::vector<Bounds>& bounds) {
  std::vector<Range> ranges;
  for (int i = 0; i < from.rank(); ++i) {
    ONCILLA_ASSIGN(const Range range, Resolve(bounds[i], from[i], i));
    ranges.push_back(range);
  }
  return RangeMoves(from, ranges);
}

// Slices a list of partly known integers: x has rank 1, and `bounds` is for that axis.
Fact WithSlice(Fact out, const Fact& x, const Bounds& bounds) {
  const auto elements = CarriedElements(x);
  if (!elements || !bounds.step || !(bounds.begin_open || bounds.begin.value) ||
      !(bounds.end_open || bounds.shrink || bounds.end.value)) {
    return out;
  }
  const auto range = Resolve(bounds, static_cast<int64_t>(elements->size()), 0);
  if (!range.ok()) return out;
  std::vector<Dim> picked;
  for (int64_t i = 0; i < range->size; ++i) {
    picked.push_back((*elements)[static_cast<size_t>(range->start + i * range->step)]);
  }
  return WithCarried(std::move(out), std::move(picked));
}

// ONNX's starts, ends, axes and steps as bounds for every axis of x; nullopt while the axes are
// unknown.
Result<std::optional<std::vector<Bounds>>> ReadSlice(std::span<const Fact> in, int rank) {
  using Out = std::optional<std::vector<Bounds>>;
  static constexpr std::string_view kNames[] = {"", "starts", "ends", "axes", "steps"};
  std::optional<std::vector<KnownInt>> ints[5];
  std::optional<size_t> count;
  for (size_t i = 1; i < 5; ++i) {
    if (!Given(in, i)) continue;
    ints[i] = ReadKnownInts(in[i]);
    if (!ints[i]) continue;
    if (count && ints[i]->size() != *count) {
      return InvalidArgument(kNames[i], " has ", ints[i]->size(), " entries, not ", *count);
    }
    count = ints[i]->size();
  }
  if (!count) return Out();
  std::vector<int64_t> named;
  if (Given(in, 3)) {
    if (!AllIntsKnown(in[3])) return Out();
    ONCILLA_ASSIGN(named, NeedInts(in[3], "axes"));
  } else {
    if (static_cast<int64_t>(*count) > rank) {
      return InvalidArgument(*count, " starts do not fit rank ", rank);
    }
    for (size_t i = 0; i < *count; ++i) named.push_back(static_cast<int64_t>(i));
  }
  ONCILLA_TRY(NormalizeAxes(named, rank).status());
  std::vector<Bounds> bounds(static_cast<size_t>(rank));
  for (size_t i = 0; i < named.size(); ++i) {
    Bounds& b = bounds[static_cast<size_t>(named[i] < 0 ? named[i] + rank : named[i])];
    b.begin_open = b.end_open = false;
    b.begins_inside = true;
    if (ints[1]) b.begin = (*ints[1])[i];
    if (ints[2]) b.end = (*ints[2])[i];
    if (Given(in, 4)) b.step = ints[4] ? (*ints[4])[i].value : std::nullopt;
    if (b.step && *b.step == 0) return InvalidArgument("a step is 0");
  }
  return Out(std::move(bounds));
}

Result<Facts> InferSlice(const NoAttrs&, std::span<const Fact> in) {
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in[i].absent()) ONCILLA_TRY(RequireInteger(in[i], "starts, ends, axes and steps"));
  }
  const PartialShape& from = in[0].shape;
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const auto bounds, ReadSlice(in, from.rank()));
  PartialShape shape = PartialShape::OfRank(from.rank());
  if (bounds) {
    for (int i = 0; i < from.rank(); ++i) {
      ONCILLA_ASSIGN(shape[i], RangeSize((*bounds)[i], from[i], i));
    }
  }
  Fact out = Fact::Of(in[0].dtype, std::move(shape));
  if (bounds && from.rank() == 1) out = WithSlice(std::move(out), in[0], bounds->front());
  return Facts{std::move(out)};
}

// TensorFlow's notation, expanded to the axes of x.
struct StridedBounds {
  std::vector<Bounds> axes;
  std::vector<int> out_axes;  // in the output's order: an axis of x, or -1 for a new axis
};

// Returns nullopt while even the number of entries is unknown.
Result<std::optional<StridedBounds>> ReadStridedSlice(const StridedSliceAttrs& attrs,
                                                      std::span<const Fact> in, int rank) {
  using Out = std::optional<StridedBounds>;
  static constexpr std::string_view kNames[] = {"", "begin", "end", "strides"};
  std::optional<std::vector<KnownInt>> ints[4];
  std::optional<size_t> count;
  for (size_t i = 1; i < 4; ++i) {
    ints[i] = ReadKnownInts(in[i]);
    if (!ints[i]) continue;
    if (count && ints[i]->size() != *count) {
      return InvalidArgument(kNames[i], " has ", ints[i]->size(), " entries, not ", *count);
    }
    count = ints[i]->size();
  }
  if (!count) return Out();
  if (*count > 32) return InvalidArgument("there are ", *count, " entries");
  // Count the axes that entries cover; the ellipsis stands for the remaining ones.
  auto bit = [](int64_t mask, size_t i) { return (mask >> i & 1) != 0; };
  int taken = 0, ellipses = 0;  // axes of x that the entries cover
  for (size_t i = 0; i < *count; ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      ++ellipses;
    } else if (!bit(attrs.new_axis_mask, i)) {
      ++taken;
    }
  }
  if (ellipses > 1) return InvalidArgument("there is more than one ellipsis");
  if (taken > rank) return InvalidArgument(taken, " ranges do not fit rank ", rank);
  StridedBounds out;
  auto whole = [&](int n) {
    for (; n > 0; --n) {
      out.out_axes.push_back(static_cast<int>(out.axes.size()));
      out.axes.emplace_back();
    }
  };
  for (size_t i = 0; i < *count; ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      whole(rank - taken);
      continue;
    }
    if (bit(attrs.new_axis_mask, i)) {
      out.out_axes.push_back(-1);
      continue;
    }
    Bounds b;
    b.begin_open = bit(attrs.begin_mask, i);
    b.end_open = bit(attrs.end_mask, i);
    if (ints[1]) b.begin = (*ints[1])[i];
    if (ints[2]) b.end = (*ints[2])[i];
    b.step = ints[3] ? (*ints[3])[i].value : std::nullopt;
    if (b.step && *b.step == 0) return InvalidArgument("a stride is 0");
    b.shrink = bit(attrs.shrink_axis_mask, i);
    if (b.shrink) {
      if (b.step && *b.step < 0) {
        return InvalidArgument("a single index has the stride ", *b.step);
      }
      // With begin_mask set, a single index takes the first element, as in TensorFlow.
      if (b.begin_open) b.begin.value = 0;
      b.begin_open = false;
      b.step = 1;
    } else {
      out.out_axes.push_back(static_cast<int>(out.axes.size()));
    }
    out.axes.push_back(std::move(b));
  }
  whole(rank - static_cast<int>(out.axes.size()));
  return Out(std::move(out));
}

Result<Facts> InferStridedSlice(const StridedSliceAttrs& attrs, std::span<const Fact> in) {
  for (size_t i = 1; i < 4; ++i) ONCILLA_TRY(RequireInteger(in[i], "begin, end and strides"));
  const PartialShape& from = in[0].shape;
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const auto bounds, ReadStridedSlice(attrs, in, from.rank()));
  if (!bounds) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (bounds->out_axes.size() > kMaxRank) {
    return Unsupported("rank ", bounds->out_axes.size(), " is above ", kMaxRank);
  }
  std::vector<Dim> sizes;
  for (int i = 0; i < from.rank(); ++i) {
    ONCILLA_ASSIGN(Dim size, RangeSize(bounds->axes[i], from[i], i));
    sizes.push_back(std::move(size));
  }
  std::vector<Dim> dims;
  for (int axis : bounds->out_axes) dims.push_back(axis < 0 ? Dim(1) : sizes[axis]);
  Fact out = Fact::Of(in[0].dtype, PartialShape(std::move(dims)));
  if (from.rank() == 1 && out.shape.rank() <= 1) {
    out = WithSlice(std::move(out), in[0], bounds->axes.front());
  }
  return Facts{std::move(out)};
}

constexpr OpDef kSliceOps[] = {
    Op<InferSlice>("Slice", {.inputs = {3, 5},
                             .plan_inputs = 0b11110,
                             .axes = AxesBy(AxisRule::kSlice, 3),
                             .storage = StorageRule::kCarries}),
    Op<InferStridedSlice>("StridedSlice", {.inputs = {4, 4},
                                           .plan_inputs = 0b1110,
                                           .axes = AxesBy(AxisRule::kStrided),
                                           .storage = StorageRule::kCarries}),
};

}  // namespace

Result<Moves> SliceMoves(const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto bounds, ReadSlice(node.inputs, from.rank()));
  if (!bounds) return Internal("the value of starts, ends, axes or steps is not known");
  for (const Bounds& b : *bounds) {
    if (!b.step || !(b.begin_open || b.begin.value) || !(b.end_open || b.end.value)) {
      return Internal("the value of starts, ends or steps is not known");
    }
  }
  return BoundsMoves(from, *bounds);
}

Result<Moves> StridedSliceMoves(const StridedSliceAttrs& attrs, const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto bounds, ReadStridedSlice(attrs, node.inputs, from.rank()));
  if (!bounds) return InvalidArgument("begin, end and strides do not determine the range");
  for (const Bounds& b : bounds->axes) {
    if (!b.step || !(b.begin_open || b.begin.value) || !(b.end_open || b.shrink || b.end.value)) {
      return InvalidArgument("begin, end and strides do not determine the range");
    }
  }
  return BoundsMoves(from, bounds->axes);
}

std::span<const OpDef> SliceOps() { return kSliceOps; }

}  // namespace oncilla
