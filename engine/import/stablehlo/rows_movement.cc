// Ops of StableHLO that move elements.
#include <algorithm>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/stablehlo/builder.h"
#include "engine/import/xla/gather.h"
#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

// The sizes of the result, where all but one are known.
std::vector<int64_t> SizesOf(const HloType& type) { return type.sizes; }

Result<Values> LowerReshape(HloNode& b) {
  std::vector<int64_t> sizes = SizesOf(b.result_type());
  if (std::count(sizes.begin(), sizes.end(), -1) > 1) return Unsupported("to several open sizes");
  const PartialShape& shape = b.in_fact(0).shape;
  if (shape.known() && b.result_type().fixed() &&
      shape.ToShape() == Shape(sizes.begin(), sizes.end())) {
    return Values{b.in(0)};
  }
  return One(b.Add(ReshapeAttrs(), {b.in(0), b.Ints(std::move(sizes))}));
}

Result<Values> LowerDynamicReshape(HloNode& b) {
  ONCILLA_ASSIGN(const ValueId shape, b.Cast(b.in(1), DType::kI64, "shape"));
  return One(b.Add(ReshapeAttrs(), {b.in(0), shape}));
}

Result<Values> LowerTranspose(HloNode& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> perm, b.List("permutation"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_TRY(CheckAxes(perm, rank, "the axes"));
  if (static_cast<int>(perm.size()) != rank) return DataLoss("moves ", perm.size(), " axes");
  return One(b.Transpose(b.in(0), perm, ""));
}

Result<Values> LowerReverse(HloNode& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.List("dimensions"));
  if (axes.empty()) return Values{b.in(0)};
  return One(b.Add("Reverse", AttrMap(), {b.in(0), b.Ints(std::move(axes))}));
}

Result<Values> LowerSlice(HloNode& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> starts, b.List("start_indices"));
  ONCILLA_ASSIGN(std::vector<int64_t> ends, b.List("limit_indices"));
  ONCILLA_ASSIGN(std::vector<int64_t> steps, b.List("strides"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  const auto count = static_cast<size_t>(rank);
  if (starts.size() != count || ends.size() != count || steps.size() != count) {
    return DataLoss("is of other axes");
  }
  for (size_t i = 0; i < count; ++i) {
    const Dim& dim = b.in_fact(0).shape[static_cast<int>(i)];
    if (starts[i] < 0 || ends[i] < starts[i] || steps[i] < 1 ||
        (dim.known() && ends[i] > dim.size)) {
      return DataLoss("from ", starts[i], " to ", ends[i], " by ", steps[i], " of ", dim);
    }
  }
  // Only the axes that are cut.
  std::vector<int64_t> axes, from, to, by;
  for (size_t i = 0; i < count; ++i) {
    const Dim& dim = b.in_fact(0).shape[static_cast<int>(i)];
    if (starts[i] == 0 && steps[i] == 1 && dim.known() && ends[i] == dim.size) continue;
    axes.push_back(static_cast<int64_t>(i));
    from.push_back(starts[i]);
    to.push_back(ends[i]);
    by.push_back(steps[i]);
  }
  if (axes.empty()) return Values{b.in(0)};
  return One(
      b.Add("Slice", AttrMap(), {b.in(0), b.Ints(from), b.Ints(to), b.Ints(axes), b.Ints(by)}));
}

Result<Values> LowerRealDynamicSlice(HloNode& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  Values inputs = {b.in(0)};
  for (size_t i = 1; i < 4; ++i) {
    ONCILLA_ASSIGN(const ValueId list, b.Cast(b.in(i), DType::kI64, StrCat("list", i)));
    inputs.push_back(list);
  }
  inputs.insert(inputs.begin() + 3, b.Ints(OtherAxes(rank, {})));
  return One(b.Add("Slice", AttrMap(), std::move(inputs)));
}

// Scalars as a vector.
Result<ValueId> StartsFrom(HloNode& b, size_t first) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (b.inputs() != first + static_cast<size_t>(rank)) return DataLoss("starts for other axes");
  std::vector<int64_t> known;
  Values parts;
  for (size_t i = first; i < b.inputs(); ++i) {
    if (AllIntsKnown(b.in_fact(i))) {
      ONCILLA_ASSIGN(const int64_t start, b.KnownInt(i, "a start"));
      known.push_back(start);
    }
    ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(i), DType::kI64, StrCat("start", i)));
    ONCILLA_ASSIGN(const ValueId part,
                   b.Add(ReshapeAttrs(), {wide, b.Ints({1})}, StrCat("start_list", i)));
    parts.push_back(part);
  }
  if (known.size() == parts.size()) return b.Ints(std::move(known));
  return b.Add(ConcatAttrs{.axis = 0}, std::move(parts), "starts");
}

Result<Values> LowerSliceAt(HloNode& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> sizes, b.List("slice_sizes"));
  if (sizes.empty()) return Values{b.in(0)};
  ONCILLA_ASSIGN(const ValueId starts, StartsFrom(b, 1));
  return One(LowerXlaSlice(b, b.in(0), starts, std::move(sizes)));
}

Result<Values> LowerUpdateAt(HloNode& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank == 0) return Values{b.in(1)};
  ONCILLA_ASSIGN(const ValueId starts, StartsFrom(b, 2));
  return One(DynamicUpdateSlice(b, b.in(0), b.in(1), starts));
}

Result<Values> LowerPad(HloNode& b) {
  XlaPadding padding;
  ONCILLA_ASSIGN(padding.low, b.List("edge_padding_low"));
  ONCILLA_ASSIGN(padding.high, b.List("edge_padding_high"));
  ONCILLA_ASSIGN(padding.interior, b.List("interior_padding"));
  return One(LowerXlaPad(b, b.in(0), b.in(1), padding));
}

Result<Values> LowerDynamicPad(HloNode& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> interior, b.KnownInts(4, "the interior padding"));
  if (AllIntsKnown(b.in_fact(2)) && AllIntsKnown(b.in_fact(3))) {
    XlaPadding padding;
    padding.interior = interior;
    ONCILLA_ASSIGN(padding.low, b.KnownInts(2, "the padding"));
    ONCILLA_ASSIGN(padding.high, b.KnownInts(3, "the padding"));
    return One(LowerXlaPad(b, b.in(0), b.in(1), padding));
  }
  if (std::count(interior.begin(), interior.end(), 0) != static_cast<ptrdiff_t>(interior.size())) {
    return Unsupported("between elements, of open sizes");
  }
  ONCILLA_ASSIGN(const ValueId low, b.Cast(b.in(2), DType::kI64, "low"));
  ONCILLA_ASSIGN(const ValueId high, b.Cast(b.in(3), DType::kI64, "high"));
  ONCILLA_ASSIGN(const ValueId pads, b.Add(ConcatAttrs{.axis = 0}, {low, high}, "pads"));
  return One(b.Add(PadAttrs(), {b.in(0), pads, b.in(1)}));
}

Result<Values> LowerConcatenate(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("dimension"));
  if (b.inputs() == 1) return Values{b.in(0)};
  return One(b.Add(ConcatAttrs{.axis = axis}, b.all_inputs()));
}

Result<std::vector<int64_t>> IntsOrNone(HloNode& b, std::string_view attr) {
  if (b.source().Find(b.op(), attr) == nullptr) return std::vector<int64_t>();
  return b.List(attr);
}

// Sizes that may be computed while running: -1 for such an axis, to whose size x is cut, unless it
// is known to have that size.
Result<std::vector<int64_t>> SliceSizes(HloNode& b, ValueId& x) {
  const auto dims = KnownInts(b.in_fact(2));
  const PartialShape shape = b.fact(x).shape;
  if (!dims.has_value() || !shape.ranked() || static_cast<int>(dims->size()) != shape.rank()) {
    return Unsupported("of slices whose sizes are computed while running");
  }
  std::vector<int64_t> sizes, cut;
  for (size_t i = 0; i < dims->size(); ++i) {
    const Dim& dim = (*dims)[i];
    sizes.push_back(dim.known() ? dim.size : -1);
    if (!dim.known() && !dim.Same(shape[static_cast<int>(i)])) {
      cut.push_back(static_cast<int64_t>(i));
    }
  }
  if (cut.empty()) return sizes;
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(2), DType::kI64, "sizes"));
  ONCILLA_ASSIGN(const ValueId ends,
                 b.Add(GatherAttrs{.axis = 0}, {wide, b.Ints(cut)}, "open_sizes"));
  const std::vector<int64_t> starts(cut.size(), 0);
  ONCILLA_ASSIGN(x, b.Add("Slice", AttrMap(), {x, b.Ints(starts), ends, b.Ints(cut)}, "part"));
  return sizes;
}

Result<Values> LowerGather(HloNode& b) {
  XlaGatherAxes axes;
  ONCILLA_ASSIGN(axes.offset_axes, b.List("offset_dims"));
  ONCILLA_ASSIGN(axes.collapsed_axes, b.List("collapsed_slice_dims"));
  ONCILLA_ASSIGN(axes.index_map, b.List("start_index_map"));
  ONCILLA_ASSIGN(axes.operand_batch, IntsOrNone(b, "operand_batching_dims"));
  ONCILLA_ASSIGN(axes.index_batch, IntsOrNone(b, "start_indices_batching_dims"));
  ONCILLA_ASSIGN(axes.index_vector_axis, b.Int("index_vector_dim"));
  std::vector<int64_t> sizes;
  ValueId x = b.in(0);
  if (b.op().name == "dynamic_gather") {
    if (!b.has(2)) return DataLoss("lacks slice sizes");
    ONCILLA_ASSIGN(sizes, SliceSizes(b, x));
  } else {
    ONCILLA_ASSIGN(sizes, b.List("slice_sizes"));
  }
  return One(LowerXlaGather(b, x, b.in(1), std::move(axes), sizes));
}

Result<Values> LowerScatter(HloNode& b) {
  XlaGatherAxes axes;
  ONCILLA_ASSIGN(axes.offset_axes, b.List("update_window_dims"));
  ONCILLA_ASSIGN(axes.collapsed_axes, b.List("inserted_window_dims"));
  ONCILLA_ASSIGN(axes.index_map, b.List("scatter_dims_to_operand_dims"));
  ONCILLA_ASSIGN(axes.operand_batch, IntsOrNone(b, "input_batching_dims"));
  ONCILLA_ASSIGN(axes.index_batch, IntsOrNone(b, "scatter_indices_batching_dims"));
  ONCILLA_ASSIGN(axes.index_vector_axis, b.Int("index_vector_dim"));
  if (b.inputs() != 3) return Unsupported("into several operands at once");
  ONCILLA_ASSIGN(const Graph body, b.Body(0));
  return One(LowerXlaScatter(b, b.in(0), b.in(1), b.in(2), std::move(axes), body));
}

Result<Values> LowerDimensionSize(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("dimension"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (axis < 0 || axis >= rank) return DataLoss("axis ", axis);
  const Dim& dim = b.in_fact(0).shape[static_cast<int>(axis)];
  if (dim.known()) {
    return One(b.Scalar(b.result_type().dtype, static_cast<double>(dim.size)));
  }
  ONCILLA_ASSIGN(const ValueId size,
                 b.Sizes(b.in(0), static_cast<int>(axis), static_cast<int>(axis) + 1, "size"));
  ONCILLA_ASSIGN(const ValueId scalar, b.Add(ReshapeAttrs(), {size, b.Ints({})}, "scalar"));
  return One(b.Cast(scalar, b.result_type().dtype, ""));
}

Result<Values> LowerDynamicIota(HloNode& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("iota_dimension"));
  const auto rank = static_cast<int64_t>(b.result_type().sizes.size());
  if (axis < 0 || axis >= rank) return DataLoss("along axis ", axis);
  ONCILLA_ASSIGN(const ValueId shape, b.Cast(b.in(0), DType::kI64, "shape"));
  ONCILLA_ASSIGN(const ValueId size,
                 b.Add("Slice", AttrMap(), {shape, b.Ints({axis}), b.Ints({axis + 1})}, "size"));
  ONCILLA_ASSIGN(const ValueId count, b.Add(ReshapeAttrs(), {size, b.Ints({})}, "count"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(ValueId x, b.Add("Range", AttrMap(), {zero, count, one}, "range"));
  ONCILLA_ASSIGN(x, b.Cast(x, b.result_type().dtype, "numbers"));
  std::vector<int64_t> trailing;
  for (int64_t i = axis + 1; i < rank; ++i) trailing.push_back(i - axis);
  ONCILLA_ASSIGN(x, b.Unsqueeze(x, trailing, "along"));
  if (rank == 1) return Values{x};
  return One(b.Add("Expand", AttrMap(), {x, shape}));
}

// The type of a different width has another axis, or one less, at the end.
Result<Values> LowerBitcast(HloNode& b) {
  const DType to = b.result_type().dtype;
  if (b.dtype() == to) return Values{b.in(0)};
  return One(b.Add(BitcastAttrs{.to = to}, {b.in(0)}));
}

constexpr HloOpRow kRows[] = {
    {"bitcast_convert", 1, LowerBitcast},
    {"concatenate", 1, LowerConcatenate},
    {"dynamic_gather", 3, LowerGather},
    {"dynamic_iota", 1, LowerDynamicIota},
    {"dynamic_pad", 5, LowerDynamicPad},
    {"dynamic_reshape", 2, LowerDynamicReshape},
    {"dynamic_slice", 1, LowerSliceAt},
    {"dynamic_update_slice", 2, LowerUpdateAt},
    {"gather", 2, LowerGather},
    {"get_dimension_size", 1, LowerDimensionSize},
    {"pad", 2, LowerPad},
    {"real_dynamic_slice", 4, LowerRealDynamicSlice},
    {"reshape", 1, LowerReshape},
    {"reverse", 1, LowerReverse},
    {"scatter", 3, LowerScatter},
    {"slice", 1, LowerSlice},
    {"transpose", 1, LowerTranspose},
};

}  // namespace

std::span<const HloOpRow> HloMovementRows() { return kRows; }

}  // namespace oncilla
