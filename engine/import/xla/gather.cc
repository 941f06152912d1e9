// Gather and Scatter as GatherND and ScatterND, or Gather where whole slices along one axis are
// taken.
//
// Both first bring the indices into one form: a row of indices in the last axis, in i64, with the
// batches that operand and indices share as indices of their own.
#include "engine/import/xla/gather.h"

#include <algorithm>

#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

// The operation with indices in that form.
struct Places {
  ValueId x = kNoValue, indices = kNoValue;
  std::vector<int64_t> map;    // operand axes of a row's indices
  std::vector<int64_t> sizes;  // of the windows, per operand axis
  int batch = 0;               // axes of the indices before the last
};

Result<ValueId> RowsLast(Lowering& b, ValueId indices, int64_t vector_axis) {
  const int rank = b.fact(indices).shape.rank();
  if (vector_axis < 0 || vector_axis > rank) return DataLoss("index axis ", vector_axis);
  if (vector_axis == rank) return b.Unsqueeze(indices, {rank}, "index_rows");
  std::vector<int64_t> perm = OtherAxes(rank, {vector_axis});
  perm.push_back(vector_axis);
  return b.Transpose(indices, perm, "index_rows");
}

// Adds the shared batches to each row.
Status AddBatches(Lowering& b, Places& p, const XlaGatherAxes& axes) {
  if (axes.operand_batch.size() != axes.index_batch.size()) {
    return DataLoss("different numbers of batch axes");
  }
  const int rank = b.fact(p.indices).shape.rank();
  for (size_t i = 0; i < axes.operand_batch.size(); ++i) {
    int64_t axis = axes.index_batch[i];
    if (axis > axes.index_vector_axis) --axis;
    if (axis < 0 || axis >= rank - 1) return DataLoss("a batch axis of the indices");
    const Dim dim = b.fact(p.indices).shape[static_cast<int>(axis)];
    if (!dim.known()) return Unsupported("batches of indices whose number is open");
    ONCILLA_ASSIGN(const ValueId count, CountsAlong(b, dim.size, static_cast<int>(axis), rank,
                                                    DType::kI64, "batch_count"));
    std::vector<XlaSize> sizes;
    for (int k = 0; k + 1 < rank; ++k) sizes.push_back(XlaSize::Axis(p.indices, k));
    sizes.push_back(XlaSize::Number(1));
    ONCILLA_ASSIGN(const ValueId shape, ShapeOf(b, sizes, StrCat("batch_rows", i)));
    ONCILLA_ASSIGN(const ValueId all,
                   b.Add("Expand", AttrMap(), {count, shape}, StrCat("batch", i)));
    ONCILLA_ASSIGN(p.indices,
                   b.Add(ConcatAttrs{.axis = rank - 1}, {p.indices, all}, StrCat("with_batch", i)));
    p.map.push_back(axes.operand_batch[i]);
  }
  return {};
}

Result<Places> PlacesOf(Lowering& b, ValueId x, ValueId indices, const XlaGatherAxes& axes,
                        std::vector<int64_t> sizes) {
  const PartialShape shape = b.fact(x).shape;
  if (!shape.ranked() || !b.fact(indices).shape.ranked()) {
    return Unsupported("tensors of unknown rank");
  }
  const int rank = shape.rank();
  if (static_cast<int>(sizes.size()) != rank) return DataLoss("slice sizes for other axes");
  ONCILLA_TRY(CheckAxes(axes.index_map, rank, "the indices"));
  std::vector<int64_t> gone = axes.collapsed_axes;
  gone.insert(gone.end(), axes.operand_batch.begin(), axes.operand_batch.end());
  ONCILLA_TRY(CheckAxes(gone, rank, "the collapsed axes"));
  for (int64_t axis : gone) {
    if (sizes[static_cast<size_t>(axis)] != 1) return DataLoss("a collapsed axis of other size");
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    if (size == -1 && !Names(axes.index_map, i) && !Names(gone, i)) continue;
    if (size == -1) return Unsupported("slices of open size along an axis with indices");
    if (size < 0 || (shape[i].known() && size > shape[i].size)) {
      return InvalidArgument("a slice of size ", size, " of ", shape);
    }
  }
  Places p{x, indices, axes.index_map, std::move(sizes), 0};
  ONCILLA_ASSIGN(p.indices, b.Cast(p.indices, DType::kI64, "index_type"));
  ONCILLA_ASSIGN(p.indices, RowsLast(b, p.indices, axes.index_vector_axis));
  p.batch = b.fact(p.indices).shape.rank() - 1;
  const Dim row = b.fact(p.indices).shape[p.batch];
  if (row.known() && row.size != static_cast<int64_t>(axes.index_map.size())) {
    return DataLoss("rows of ", row.size, " indices for ", axes.index_map.size(), " axes");
  }
  ONCILLA_TRY(AddBatches(b, p, axes));
  return p;
}

// The largest start along each axis of the map, as an i64 vector.
Result<ValueId> LastStarts(Lowering& b, const Places& p) {
  std::vector<XlaSize> sizes;
  std::vector<int64_t> windows;
  for (int64_t axis : p.map) {
    sizes.push_back(XlaSize::Axis(p.x, axis));
    windows.push_back(p.sizes[static_cast<size_t>(axis)]);
  }
  ONCILLA_ASSIGN(const ValueId whole, ShapeOf(b, sizes, "extent"));
  if (AllIntsKnown(b.fact(whole))) {
    ONCILLA_ASSIGN(std::vector<int64_t> last, NeedInts(b.fact(whole), "the extent"));
    for (size_t i = 0; i < last.size(); ++i) last[i] -= windows[i];
    return b.Ints(std::move(last));
  }
  return b.Add("Sub", AttrMap(), {whole, b.Ints(std::move(windows))}, "last_starts");
}

// Adds an axis per window of more than one element, along which the indices count.
Result<ValueId> WithWindows(Lowering& b, const Places& p) {
  ValueId indices = p.indices;
  for (size_t i = 0; i < p.map.size(); ++i) {
    const int64_t size = p.sizes[static_cast<size_t>(p.map[i])];
    if (size == 1) continue;
    const int rank = b.fact(indices).shape.rank();
    if (rank >= kMaxRank) return Unsupported("windows along too many axes");
    ONCILLA_ASSIGN(const ValueId apart,
                   b.Unsqueeze(indices, {rank - 1}, StrCat("window_apart", i)));
    // [size, row] numbers that count in the column of this axis.
    std::vector<int64_t> steps(
        static_cast<size_t>(SaturatingMul(size, static_cast<int64_t>(p.map.size()))), 0);
    for (int64_t k = 0; k < size; ++k) {
      steps[static_cast<size_t>(k) * p.map.size() + i] = k;
    }
    const ValueId offsets = b.Constant(
        Tensor::Of<int64_t>(DType::kI64, {size, static_cast<int64_t>(p.map.size())}, steps));
    ONCILLA_ASSIGN(indices, b.Add("Add", AttrMap(), {apart, offsets}, StrCat("window", i)));
  }
  return indices;
}

// Bounds on what the windows of a file may add to the indices.
Status CheckWindows(const Places& p) {
  int64_t total = 1;
  for (int64_t axis : p.map) total = SaturatingMul(total, p.sizes[static_cast<size_t>(axis)]);
  constexpr int64_t kMost = int64_t{1} << 24;
  return total > kMost ? Unsupported("windows of ", total, " elements") : Status();
}

// The operand's axes in the order in which GatherND and ScatterND see them: those of the map, then
// the others.
std::vector<int64_t> MapFirst(const Places& p, int rank) {
  std::vector<int64_t> perm = p.map;
  for (int64_t axis : OtherAxes(rank, p.map)) perm.push_back(axis);
  return perm;
}

// The order of axes in which windows come out of (or go into) the canonical ops: for each operand
// axis, its place after the batches; -1 for one of which a window has no axis.
struct WindowOrder {
  std::vector<int64_t> place;      // per operand axis
  std::vector<int64_t> unit_axes;  // operand axes of the map with windows of one element
  int count = 0;
};

WindowOrder OrderOf(const Places& p, int rank) {
  WindowOrder order;
  order.place.assign(static_cast<size_t>(rank), -1);
  for (int64_t axis : p.map) {
    if (p.sizes[static_cast<size_t>(axis)] == 1) {
      order.unit_axes.push_back(axis);
    } else {
      order.place[static_cast<size_t>(axis)] = order.count++;
    }
  }
  for (int64_t axis : OtherAxes(rank, p.map))
    order.place[static_cast<size_t>(axis)] = order.count++;
  return order;
}

// The axes of a window in the result, in order: operand axes that are not collapsed.
std::vector<int64_t> WindowAxes(const XlaGatherAxes& axes, int rank) {
  std::vector<int64_t> gone = axes.collapsed_axes;
  gone.insert(gone.end(), axes.operand_batch.begin(), axes.operand_batch.end());
  return OtherAxes(rank, gone);
}

// [batch.., windows as they come] to XLA's result: axes of size one put back, all moved to where
// the offset axes are.
Result<ValueId> Placed(Lowering& b, ValueId y, const Places& p, const XlaGatherAxes& axes,
                       int rank) {
  WindowOrder order = OrderOf(p, rank);
  const std::vector<int64_t> window = WindowAxes(axes, rank);
  std::vector<int64_t> added;
  for (int64_t axis : window) {
    if (order.place[static_cast<size_t>(axis)] >= 0) continue;
    order.place[static_cast<size_t>(axis)] = order.count++;
    added.push_back(p.batch + order.place[static_cast<size_t>(axis)]);
  }
  ONCILLA_ASSIGN(y, b.Unsqueeze(y, added, "window_axes"));
  // Collapsed axes outside the map have size one too, and are dropped.
  std::vector<int64_t> dropped;
  for (int64_t axis : OtherAxes(rank, window)) {
    const int64_t place = order.place[static_cast<size_t>(axis)];
    if (place >= 0) dropped.push_back(p.batch + place);
  }
  if (!dropped.empty()) {
    ONCILLA_ASSIGN(y, b.Add("Squeeze", AttrMap(), {y, b.Ints(dropped)}, "collapsed"));
  }
  const int out_rank = p.batch + static_cast<int>(window.size());
  if (axes.offset_axes.size() != window.size()) return DataLoss("offset axes for other windows");
  ONCILLA_TRY(CheckAxes(axes.offset_axes, out_rank, "the offset axes"));
  std::vector<int64_t> perm(static_cast<size_t>(out_rank), -1);
  for (size_t i = 0; i < window.size(); ++i) {
    int64_t place = p.batch + order.place[static_cast<size_t>(window[i])];
    const int64_t at = place;
    for (int64_t gone : dropped) place -= gone < at ? 1 : 0;
    perm[static_cast<size_t>(axes.offset_axes[i])] = place;
  }
  int64_t next = 0;
  for (int64_t& axis : perm) {
    if (axis < 0) axis = next++;
  }
  return b.Transpose(y, perm, "");
}

}  // namespace

Result<ValueId> LowerXlaGather(Lowering& b, ValueId x, ValueId indices, XlaGatherAxes axes,
                               const std::vector<int64_t>& sizes) {
  ONCILLA_ASSIGN(Places p, PlacesOf(b, x, indices, axes, sizes));
  ONCILLA_TRY(CheckWindows(p));
  const PartialShape shape = b.fact(p.x).shape;
  const int rank = shape.rank();
  ONCILLA_ASSIGN(const ValueId last, LastStarts(b, p));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(p.indices, b.Add("Min", AttrMap(), {p.indices, last}, "index_cut"));
  ONCILLA_ASSIGN(p.indices, b.Add("Max", AttrMap(), {p.indices, zero}, "index_inside"));
  // Axes without an index begin at zero.
  std::vector<int64_t> cut, ends;
  for (int64_t axis : OtherAxes(rank, p.map)) {
    const Dim& dim = shape[static_cast<int>(axis)];
    const int64_t size = p.sizes[static_cast<size_t>(axis)];
    if (size == -1 || (dim.known() && dim.size == size)) continue;
    cut.push_back(axis);
    ends.push_back(size);
  }
  if (!cut.empty()) {
    const std::vector<int64_t> starts(cut.size(), 0);
    ONCILLA_ASSIGN(p.x, b.Add("Slice", AttrMap(), {p.x, b.Ints(starts), b.Ints(ends), b.Ints(cut)},
                              "operand_part"));
  }
  if (p.map.size() == 1 && p.sizes[static_cast<size_t>(p.map[0])] == 1) {
    ONCILLA_ASSIGN(const ValueId flat,
                   b.Add("Squeeze", AttrMap(), {p.indices, b.Ints({p.batch})}, "index_list"));
    const int64_t axis = p.map[0];
    ONCILLA_ASSIGN(ValueId y, b.Add(GatherAttrs{.axis = axis, .negative_indices = false},
                                    {p.x, flat}, "slices"));
    // The batches come where the axis was; they belong before all others.
    std::vector<int64_t> perm;
    for (int i = 0; i < p.batch; ++i) perm.push_back(axis + i);
    for (int64_t i = 0; i < axis; ++i) perm.push_back(i);
    for (int64_t i = axis + p.batch; i < rank - 1 + p.batch; ++i) perm.push_back(i);
    ONCILLA_ASSIGN(y, b.Transpose(y, perm, "batches_first"));
    return Placed(b, y, p, axes, rank);
  }
  ONCILLA_ASSIGN(const ValueId operand, b.Transpose(p.x, MapFirst(p, rank), "operand_axes"));
  ONCILLA_ASSIGN(const ValueId rows, WithWindows(b, p));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(GatherNDAttrs{.negative_indices = false}, {operand, rows}, "windows"));
  return Placed(b, y, p, axes, rank);
}

namespace {

std::string_view ReductionName(XlaFold fold, bool truth) {
  switch (fold) {
    case XlaFold::kSecond:
      return "none";
    case XlaFold::kAdd:
      return truth ? "" : "add";
    case XlaFold::kMul:
      return truth ? "" : "mul";
    case XlaFold::kMax:
      return truth ? "" : "max";
    case XlaFold::kMin:
      return truth ? "" : "min";
    default:
      return "";
  }
}

// XLA's updates to [batch.., windows as ScatterND takes them].
Result<ValueId> UpdateRows(Lowering& b, ValueId updates, const Places& p, const XlaGatherAxes& axes,
                           int rank) {
  const WindowOrder order = OrderOf(p, rank);
  const std::vector<int64_t> window = WindowAxes(axes, rank);
  const int out_rank = p.batch + static_cast<int>(window.size());
  if (b.fact(updates).shape.rank() != out_rank || axes.offset_axes.size() != window.size()) {
    return DataLoss("updates of rank ", b.fact(updates).shape.rank(), ", not ", out_rank);
  }
  ONCILLA_TRY(CheckAxes(axes.offset_axes, out_rank, "the window axes"));
  std::vector<int64_t> perm = OtherAxes(out_rank, axes.offset_axes);
  std::vector<int64_t> units;
  std::vector<std::pair<int64_t, int64_t>> moved;  // the place of a window axis, and the axis
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t place = order.place[static_cast<size_t>(window[i])];
    if (place >= 0) {
      moved.emplace_back(place, axes.offset_axes[i]);
    } else {
      units.push_back(axes.offset_axes[i]);
    }
  }
  std::sort(moved.begin(), moved.end());
  for (const auto& [place, axis] : moved) perm.push_back(axis);
  const auto end = static_cast<int64_t>(perm.size());
  perm.insert(perm.end(), units.begin(), units.end());
  ONCILLA_ASSIGN(ValueId rows, b.Transpose(updates, perm, "update_axes"));
  if (!units.empty()) {
    std::vector<int64_t> squeezed;
    for (size_t i = 0; i < units.size(); ++i) squeezed.push_back(end + static_cast<int64_t>(i));
    ONCILLA_ASSIGN(rows, b.Add("Squeeze", AttrMap(), {rows, b.Ints(squeezed)}, "update_rows"));
  }
  // Inserted axes outside the map, of size one, are there for ScatterND.
  std::vector<int64_t> inserted;
  for (int64_t axis : OtherAxes(rank, window)) {
    const int64_t place = order.place[static_cast<size_t>(axis)];
    if (place >= 0) inserted.push_back(p.batch + place);
  }
  std::sort(inserted.begin(), inserted.end());
  return b.Unsqueeze(rows, inserted, "update_inserted");
}

// Whether every row of indices is known to be inside.
bool KnownInside(const Lowering& b, const Places& p) {
  const Fact& indices = b.fact(p.indices);
  if (!indices.has_value()) return false;
  const Result<std::vector<int64_t>> values = ToInt64s(indices.value);
  if (!values.ok()) return false;
  for (size_t i = 0; i < values->size(); ++i) {
    const int64_t axis = p.map[i % p.map.size()];
    const Dim& dim = b.fact(p.x).shape[static_cast<int>(axis)];
    if (!dim.known() || (*values)[i] < 0 ||
        (*values)[i] > dim.size - p.sizes[static_cast<size_t>(axis)]) {
      return false;
    }
  }
  return true;
}

// Sends rows that are not inside to a slice that is added behind the operand's first axis: as the
// axes are ordered now, that of the map's first index.
Status MoveOutside(Lowering& b, Places& p, ValueId& operand) {
  ONCILLA_ASSIGN(const ValueId last, LastStarts(b, p));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId above,
                 b.Add("LessEqual", AttrMap(), {p.indices, last}, "not_above"));
  ONCILLA_ASSIGN(const ValueId below,
                 b.Add("GreaterEqual", AttrMap(), {p.indices, zero}, "not_below"));
  ONCILLA_ASSIGN(const ValueId each, b.Add("And", AttrMap(), {above, below}, "each_inside"));
  ONCILLA_ASSIGN(const ValueId inside, b.Add("ReduceAll", ReduceAttrs{.keep_dims = true},
                                             {each, b.Ints({p.batch})}, "inside"));
  // The windows of such a row begin at zero of all axes but the first.
  std::vector<XlaSize> sizes = {XlaSize::Axis(operand, 0)};
  for (size_t i = 1; i < p.map.size(); ++i) sizes.push_back(XlaSize::Number(0));
  ONCILLA_ASSIGN(const ValueId outside, ShapeOf(b, sizes, "outside"));
  ONCILLA_ASSIGN(p.indices,
                 b.Add("Where", AttrMap(), {inside, p.indices, outside}, "index_inside"));
  const int rank = b.fact(operand).shape.rank();
  std::vector<int64_t> pads(2 * static_cast<size_t>(rank), 0);
  pads[static_cast<size_t>(rank)] = p.sizes[static_cast<size_t>(p.map[0])];
  ONCILLA_ASSIGN(operand, b.Add(PadAttrs(), {operand, b.Ints(pads)}, "operand_longer"));
  return {};
}

}  // namespace

Result<ValueId> LowerXlaScatter(Lowering& b, ValueId x, ValueId indices, ValueId updates,
                                XlaGatherAxes axes, const Graph& body) {
  const std::optional<XlaFold> fold = FoldOf(body);
  if (fold == XlaFold::kFirst) return x;
  const std::string_view reduction =
      fold.has_value() ? ReductionName(*fold, b.fact(x).dtype == DType::kBool) : "";
  if (reduction.empty()) return Unsupported("a scatter with a body of its own");
  const PartialShape shape = b.fact(x).shape;
  if (!shape.ranked() || !b.fact(updates).shape.ranked()) {
    return Unsupported("tensors of unknown rank");
  }
  const int rank = shape.rank();
  // Windows are as large as the updates' axes for them.
  const std::vector<int64_t> window = WindowAxes(axes, rank);
  if (axes.offset_axes.size() != window.size()) return DataLoss("window axes for other windows");
  ONCILLA_TRY(CheckAxes(axes.offset_axes, b.fact(updates).shape.rank(), "the window axes"));
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (size_t i = 0; i < window.size(); ++i) {
    const Dim& dim = b.fact(updates).shape[static_cast<int>(axes.offset_axes[i])];
    const Dim& whole = shape[static_cast<int>(window[i])];
    if (!dim.known() && !dim.Same(whole)) return Unsupported("updates of open size");
    if (!dim.known()) return Unsupported("updates of open size");
    sizes[static_cast<size_t>(window[i])] = dim.size;
  }
  ONCILLA_ASSIGN(Places p, PlacesOf(b, x, indices, axes, sizes));
  if (rank == 0) return Unsupported("a scatter into a scalar");
  // An axis without an index that an update fills in part gets the index zero.
  for (int64_t axis : OtherAxes(rank, p.map)) {
    const Dim& dim = shape[static_cast<int>(axis)];
    const bool whole = dim.known() && dim.size == sizes[static_cast<size_t>(axis)];
    if (whole && (axis > 0 || !p.map.empty())) continue;  // one axis at least has an index
    std::vector<int64_t> pads(2 * static_cast<size_t>(p.batch + 1), 0);
    pads.back() = 1;
    ONCILLA_ASSIGN(p.indices,
                   b.Add(PadAttrs(), {p.indices, b.Ints(pads)}, StrCat("index_zero", axis)));
    p.map.push_back(axis);
  }
  ONCILLA_TRY(CheckWindows(p));
  ONCILLA_ASSIGN(const ValueId rows, UpdateRows(b, updates, p, axes, rank));
  const std::vector<int64_t> perm = MapFirst(p, rank);
  ONCILLA_ASSIGN(ValueId operand, b.Transpose(p.x, perm, "operand_axes"));
  const bool inside = KnownInside(b, p);
  const ValueId arranged = operand;
  if (!inside) ONCILLA_TRY(MoveOutside(b, p, operand));
  ONCILLA_ASSIGN(const ValueId places, WithWindows(b, p));
  const ScatterNDAttrs attrs = {.reduction = std::string(reduction), .negative_indices = false};
  const bool moved = !std::is_sorted(perm.begin(), perm.end());
  ONCILLA_ASSIGN(ValueId y,
                 b.Add(attrs, {operand, places, rows}, inside && !moved ? "" : "written"));
  if (!inside) {
    ONCILLA_ASSIGN(const ValueId end, b.Sizes(arranged, 0, 1, "operand_end"));
    ONCILLA_ASSIGN(
        y, b.Add("Slice", AttrMap(), {y, b.Ints({0}), end, b.Ints({0})}, moved ? "shorter" : ""));
  }
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return b.Transpose(y, back, "");
}

}  // namespace oncilla
