// Movement ops: inference, geometry and rows. Slices are in movement_slice.cc.
#include "engine/ops/array/movement.h"

#include <algorithm>

#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

std::string Text(const std::vector<KnownInt>& ints) {
  std::string out = "[";
  for (const KnownInt& i : ints) {
    out += (out.size() > 1 ? "," : "") + (i.value ? std::to_string(*i.value) : StrCat(i.dim));
  }
  return out + "]";
}

// Solves for one unknown size of `to`, such that both shapes have the same number of elements. This
// works if every other size is known or is a named size that both sides have; otherwise the result
// is unknown. Sizes marked in `copied` equal those of `from` at the same position.
Dim LeftOver(const PartialShape& from, const std::vector<Dim>& to, size_t hole,
             const std::vector<bool>& copied) {
  std::vector<Dim> names;
  int64_t divisor = 1, total = 1;
  // Multiply what is known of `to`, then of `from`; named sizes cancel.
  for (size_t i = 0; i < to.size(); ++i) {
    if (i == hole || (copied[i] && !to[i].known())) continue;
    if (to[i].known()) {
      divisor = SaturatingMul(divisor, to[i].size);
    } else {
      names.push_back(to[i]);
    }
  }
  std::vector<Dim> left;
  for (size_t i = 0; i < from.dims().size(); ++i) {
    const Dim& d = from.dims()[i];
    if (d.known()) {
      total = SaturatingMul(total, d.size);
      continue;
    }
    if (i < to.size() && copied[i]) continue;
    auto same = std::find_if(names.begin(), names.end(), [&](const Dim& n) { return n.Same(d); });
    if (same != names.end()) {
      names.erase(same);
    } else {
      left.push_back(d);
    }
  }
  if (!names.empty() || divisor == 0) return Dim();
  if (left.size() == 1 && total == divisor) return left[0];
  if (!left.empty() || total % divisor != 0) return Dim();
  return Dim(total / divisor);
}

Result<Facts> InferReshape(const ReshapeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "shape"));
  ONCILLA_TRY(RequireRank(in[1], 1, "shape"));
  const PartialShape& from = in[0].shape;
  const auto asked = ReadKnownInts(in[1]);
  if (!asked.has_value()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (asked->size() > kMaxRank) {
    return Unsupported("rank ", asked->size(), " is above ", kMaxRank);
  }
  std::vector<Dim> dims;
  std::vector<bool> copied(asked->size());
  int hole = -1;             // the position of the -1
  int open = -1, opens = 0;  // sizes of which nothing is known
  // Classify each requested size: -1 (the hole), a copy (0), known, named, or unknown (open).
  for (size_t i = 0; i < asked->size(); ++i) {
    const KnownInt& size = (*asked)[i];
    dims.push_back(size.dim);
    if (size.value && *size.value < -1) {
      return InvalidArgument("shape has the size ", *size.value);
    }
    if (size.value && *size.value == -1) {
      if (hole >= 0) return InvalidArgument("shape has more than one -1");
      hole = static_cast<int>(i);
    } else if (size.value && *size.value == 0 && attrs.zero_copies) {
      if (from.ranked() && static_cast<int>(i) >= from.rank()) {
        return InvalidArgument("shape has a 0 at ", i, " but the input is ", from);
      }
      dims[i] = from.ranked() ? from[static_cast<int>(i)] : Dim();
      copied[i] = true;
    } else if (!size.dim.known() && size.dim.name.empty()) {
      open = static_cast<int>(i);
      ++opens;
    }
  }
  if (from.ranked()) {
    // If only one size is unknown, whether written as -1 or not, it must be what remains.
    if (hole >= 0 && opens == 0) dims[hole] = LeftOver(from, dims, hole, copied);
    if (hole < 0 && opens == 1) dims[open] = LeftOver(from, dims, open, copied);
  }
  // Refuse what can never fit, as soon as enough is known.
  PartialShape shape(std::move(dims));
  if (from.known() && (shape.known() || (hole >= 0 && opens == 0))) {
    bool settled = true;
    for (int i = 0; i < shape.rank(); ++i) settled &= i == hole || shape[i].known();
    if (settled && (!shape.known() || shape.ToShape().elements() != from.ToShape().elements())) {
      return InvalidArgument("cannot reshape ", from, " to ", Text(*asked));
    }
  }
  return Facts{SameElements(in[0], std::move(shape))};
}

Result<Facts> InferSqueeze(const NoAttrs&, std::span<const Fact> in) {
  const PartialShape& from = in[0].shape;
  if (Given(in, 1)) ONCILLA_TRY(RequireInteger(in[1], "axes"));
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  std::vector<Dim> dims;
  if (!Given(in, 1)) {
    for (const Dim& d : from.dims()) {
      if (!d.known()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
      if (d.size != 1) dims.push_back(d);
    }
    return Facts{SameElements(in[0], PartialShape(std::move(dims)))};
  }
  if (!AllIntsKnown(in[1])) {
    const auto axes = KnownInts(in[1]);
    const int left = axes ? from.rank() - static_cast<int>(axes->size()) : -1;
    return Facts{Fact::Of(in[0].dtype, left < 0 ? PartialShape() : PartialShape::OfRank(left))};
  }
  ONCILLA_ASSIGN(const auto named, NeedInts(in[1], "axes"));
  ONCILLA_ASSIGN(const auto axes, NormalizeAxes(named, from.rank()));
  for (int i = 0; i < from.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      dims.push_back(from[i]);
    } else if (from[i].known() && from[i].size != 1) {
      return InvalidArgument("cannot squeeze axis ", i, " of size ", from[i].size);
    }
  }
  return Facts{SameElements(in[0], PartialShape(std::move(dims)))};
}

Result<Facts> InferUnsqueeze(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "axes"));
  const PartialShape& from = in[0].shape;
  const auto count = KnownInts(in[1]);
  if (!from.ranked() || !count) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (count->size() > kMaxRank) return Unsupported("rank ", count->size(), " is above ", kMaxRank);
  const int rank = from.rank() + static_cast<int>(count->size());
  if (rank > kMaxRank) return Unsupported("rank ", rank, " is above ", kMaxRank);
  if (!AllIntsKnown(in[1])) return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(rank))};
  ONCILLA_ASSIGN(const auto named, NeedInts(in[1], "axes"));
  ONCILLA_ASSIGN(const auto axes, NormalizeAxes(named, rank));
  std::vector<Dim> dims = from.dims();
  for (int axis : axes) dims.insert(dims.begin() + axis, Dim(1));
  return Facts{SameElements(in[0], PartialShape(std::move(dims)))};
}

Result<Facts> InferBitcast(const BitcastAttrs& attrs, std::span<const Fact> in) {
  auto plain = [](DType t) {
    return IsNumber(t) || IsComplex(t) || (IsSmallFloat(t) && !IsPacked(t));
  };
  // Elements that share bytes are read as others of as many bits, never as whole bytes.
  if (IsPacked(in[0].dtype) && IsPacked(attrs.to) && BitsOf(in[0].dtype) == BitsOf(attrs.to)) {
    return Facts{Fact::Of(attrs.to, in[0].shape)};
  }
  if (!plain(in[0].dtype) || !plain(attrs.to)) {
    return InvalidArgument("the bytes of ", in[0].dtype, " as ", attrs.to);
  }
  const int64_t from = BytesOf(in[0].dtype), to = BytesOf(attrs.to);
  PartialShape shape = in[0].shape;
  if (from == to || !shape.ranked()) return Facts{Fact::Of(attrs.to, std::move(shape))};
  std::vector<Dim> dims = shape.dims();
  if (from > to) {
    if (dims.size() == kMaxRank) return Unsupported("rank ", dims.size() + 1);
    dims.emplace_back(from / to);
  } else {
    if (dims.empty() || (dims.back().known() && dims.back().size != to / from)) {
      return InvalidArgument("Cannot bitcast from ", in[0].dtype, " to ", attrs.to, ": shape ",
                             shape);
    }
    dims.pop_back();
  }
  return Facts{Fact::Of(attrs.to, PartialShape(std::move(dims)))};
}

Result<Facts> InferFlatten(const FlattenAttrs& attrs, std::span<const Fact> in) {
  const PartialShape& from = in[0].shape;
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(2))};
  const int rank = from.rank();
  if (attrs.axis < -rank || attrs.axis > rank) {
    return InvalidArgument("axis ", attrs.axis, " is out of range for rank ", rank);
  }
  const auto axis = static_cast<size_t>(attrs.axis < 0 ? attrs.axis + rank : attrs.axis);
  const std::span<const Dim> dims(from.dims());
  PartialShape shape({ProductOf(dims.subspan(0, axis)), ProductOf(dims.subspan(axis))});
  return Facts{SameElements(in[0], std::move(shape))};
}

// The permutation `perm`, as axes of x.
Result<std::vector<int>> Permutation(std::span<const Fact> in, int rank) {
  std::vector<int> perm;
  if (!Given(in, 1)) {
    for (int i = rank; i-- > 0;) perm.push_back(i);
    return perm;
  }
  ONCILLA_ASSIGN(const auto named, NeedInts(in[1], "perm"));
  if (static_cast<int>(named.size()) != rank) {
    return InvalidArgument("perm ", ToString(AttrValue(named)), " does not fit rank ", rank);
  }
  ONCILLA_TRY(NormalizeAxes(named, rank).status());
  for (int64_t axis : named) perm.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  return perm;
}

Result<Facts> InferTranspose(const NoAttrs&, std::span<const Fact> in) {
  const PartialShape& from = in[0].shape;
  if (Given(in, 1)) {
    ONCILLA_TRY(RequireInteger(in[1], "perm"));
    const auto count = KnownInts(in[1]);
    if (!from.ranked()) {
      if (!count || count->size() > kMaxRank) return Facts{Fact::Of(in[0].dtype, PartialShape())};
      return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(static_cast<int>(count->size())))};
    }
    if (!AllIntsKnown(in[1])) {
      return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(from.rank()))};
    }
  }
  if (!from.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const auto perm, Permutation(in, from.rank()));
  std::vector<Dim> dims;
  for (int axis : perm) dims.push_back(from[axis]);
  PartialShape shape(std::move(dims));
  if (from.rank() <= 1) return Facts{SameElements(in[0], std::move(shape))};
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferConcat(const ConcatAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSameDType(in));
  int rank = -1;
  for (const Fact& fact : in) {
    if (fact.absent()) return InvalidArgument("an input is missing");
    if (!fact.shape.ranked()) continue;
    if (rank >= 0 && fact.shape.rank() != rank) {
      return InvalidArgument("inputs differ in rank: ", rank, " and ", fact.shape.rank());
    }
    rank = fact.shape.rank();
  }
  if (rank < 0) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (rank == 0) return InvalidArgument("scalars have no axis to concatenate on");
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, rank));
  PartialShape shape = PartialShape::OfRank(rank);
  std::optional<std::vector<Dim>> elements(std::in_place);
  Dim along(0);
  for (size_t k = 0; k < in.size(); ++k) {
    PartialShape other = in[k].shape.ranked() ? in[k].shape : PartialShape::OfRank(rank);
    const Dim size = other[axis];
    if (size.known() && along.known()) {
      along = Dim(SaturatingAdd(along.size, size.size));
    } else if (!(size.known() && size.size == 0)) {
      along = along.known() && along.size == 0 ? size : Dim();
    }
    other[axis] = Dim();
    auto merged = MergeShapes(shape, other);
    if (!merged.ok()) {
      return InvalidArgument("input ", k, " of shape ", in[k].shape, " does not fit ", in[0].shape,
                             " outside axis ", axis);
    }
    shape = *std::move(merged);
    const auto part = rank == 1 ? CarriedElements(in[k]) : std::nullopt;
    if (part && elements) {
      elements->insert(elements->end(), part->begin(), part->end());
    } else if (elements && size.known() && size.size <= kMaxKnownInts && rank == 1) {
      elements->resize(elements->size() + static_cast<size_t>(size.size));
    } else {
      elements.reset();
    }
  }
  shape[axis] = along;
  return Facts{WithCarried(Fact::Of(in[0].dtype, std::move(shape)), std::move(elements))};
}

// The sizes of the parts of an axis of size `size`, as far as they are known.
Result<std::vector<Dim>> PartSizes(const SplitAttrs& attrs, std::span<const Fact> in,
                                   const Dim& size) {
  if (attrs.parts < 0 || attrs.parts > 1 << 20) return InvalidArgument("parts is ", attrs.parts);
  const auto parts = static_cast<size_t>(attrs.parts);
  if (Given(in, 1)) {
    ONCILLA_TRY(RequireInteger(in[1], "sizes"));
    const auto sizes = ReadKnownInts(in[1]);
    if (!sizes) {
      if (parts > 0) return std::vector<Dim>(parts);
      return Error(Code::kFailedPrecondition, "neither sizes nor the number of parts is known");
    }
    if (parts > 0 && sizes->size() != parts) {
      return InvalidArgument("there are ", sizes->size(), " sizes for ", parts, " parts");
    }
    std::vector<Dim> out;
    int64_t sum = 0;
    int hole = -1;
    bool whole = true;
    for (size_t i = 0; i < sizes->size(); ++i) {
      const KnownInt& s = (*sizes)[i];
      out.push_back(s.dim);
      whole &= s.value.has_value();
      if (!s.value) continue;
      if (*s.value < -1) return InvalidArgument("a part has the size ", *s.value);
      if (*s.value == -1) {
        if (hole >= 0) return InvalidArgument("more than one part has the size -1");
        hole = static_cast<int>(i);
      } else {
        sum = SaturatingAdd(sum, *s.value);
      }
    }
    if (size.known() && (sum > size.size || (whole && hole < 0 && sum != size.size))) {
      return InvalidArgument("parts of ", sum, " in all do not fit an axis of size ", size.size);
    }
    if (hole >= 0 && whole && size.known()) out[hole] = Dim(size.size - sum);
    return out;
  }
  if (parts == 0) return InvalidArgument("needs sizes or a number of parts");
  // Equal parts; as in ONNX, the last one is smaller if they do not divide the axis.
  std::vector<Dim> out(parts);
  if (parts == 1) out[0] = size;
  if (size.known() && parts > 1) {
    const int64_t each = size.size / attrs.parts + (size.size % attrs.parts != 0);
    const int64_t last = size.size - each * (attrs.parts - 1);
    if (last < 0) {
      return InvalidArgument("an axis of size ", size.size, " is too short for ", parts, " parts");
    }
    out.assign(parts, Dim(each));
    out.back() = Dim(last);
  }
  return out;
}

Result<Facts> InferSplit(const SplitAttrs& attrs, std::span<const Fact> in) {
  const PartialShape& from = in[0].shape;
  int axis = 0;
  Dim size;
  if (from.ranked()) {
    ONCILLA_ASSIGN(axis, NormalizeAxis(attrs.axis, from.rank()));
    size = from[axis];
  }
  ONCILLA_ASSIGN(const auto sizes, PartSizes(attrs, in, size));
  const auto elements = from.ranked() && from.rank() == 1 ? CarriedElements(in[0]) : std::nullopt;
  Facts out;
  size_t at = 0;
  bool placed = elements.has_value();  // whether it is known where the next part begins
  for (const Dim& part : sizes) {
    PartialShape shape = from;
    if (from.ranked()) shape[axis] = part;
    Fact fact = Fact::Of(in[0].dtype, std::move(shape));
    placed = placed && part.known() && at + static_cast<size_t>(part.size) <= elements->size();
    if (placed) {
      const auto begin = elements->begin() + static_cast<int64_t>(at);
      fact = WithCarried(std::move(fact), std::vector<Dim>(begin, begin + part.size));
      at += static_cast<size_t>(part.size);
    }
    out.push_back(std::move(fact));
  }
  return out;
}

Result<Facts> InferTile(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "repeats"));
  const PartialShape& from = in[0].shape;
  const auto repeats = ReadKnownInts(in[1]);
  if (repeats && from.ranked() && static_cast<int>(repeats->size()) != from.rank()) {
    return InvalidArgument(repeats->size(), " repeats do not fit rank ", from.rank());
  }
  if (repeats) {
    for (const KnownInt& r : *repeats) {
      if (r.value && *r.value < 0) return InvalidArgument("repeats has ", *r.value);
    }
  }
  if (!from.ranked()) {
    if (!repeats || repeats->size() > kMaxRank) return Facts{Fact::Of(in[0].dtype, {})};
    return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(static_cast<int>(repeats->size())))};
  }
  std::vector<Dim> dims(from.dims().size());
  for (size_t i = 0; i < dims.size() && repeats; ++i) {
    const Dim both[] = {from.dims()[i], (*repeats)[i].dim};
    dims[i] = ProductOf(both);
  }
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferExpand(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "shape"));
  ONCILLA_TRY(RequireRank(in[1], 1, "shape"));
  const auto asked = ReadKnownInts(in[1]);
  if (!asked) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (asked->size() > kMaxRank) return Unsupported("rank ", asked->size(), " is above ", kMaxRank);
  std::vector<Dim> dims;
  for (const KnownInt& size : *asked) {
    if (size.value && *size.value < 0) return InvalidArgument("shape has the size ", *size.value);
    dims.push_back(size.dim);
  }
  ONCILLA_ASSIGN(PartialShape shape, BroadcastShapes(in[0].shape, PartialShape(std::move(dims))));
  Fact out = Fact::Of(in[0].dtype, std::move(shape));
  const auto element = CarriedElements(in[0]);
  const Dim count = out.shape.elements();
  if (element && element->size() == 1 && out.shape.ranked() && out.shape.rank() <= 1 &&
      count.known() && count.size <= kMaxKnownInts) {
    return Facts{WithCarried(std::move(out),
                             std::vector<Dim>(static_cast<size_t>(count.size), element->front()))};
  }
  return Facts{std::move(out)};
}

Result<Facts> InferEnsureShape(const EnsureShapeAttrs& attrs, std::span<const Fact> in) {
  std::vector<Dim> dims;
  for (int64_t d : attrs.dims) {
    if (d < -1) return InvalidArgument("attribute 'dims' contains ", d);
    dims.push_back(d < 0 ? Dim() : Dim(d));
  }
  const PartialShape asked(std::move(dims));
  auto merged = MergeShapes(in[0].shape, asked);
  if (!merged.ok()) {
    return InvalidArgument("Shape of tensor ", in[0].shape,
                           " is not compatible with expected shape ", asked, ".");
  }
  Fact out = in[0];
  out.shape = *std::move(merged);
  out.constant = false;
  return Facts{std::move(out)};
}

constexpr OpDef kMovementOps[] = {
    Op<InferReshape>("Reshape", {.inputs = {2, 2},
                                 .plan_inputs = 0b10,
                                 .is_view = true,
                                 .axes = AxesBy(AxisRule::kRegroups),
                                 .storage = StorageRule::kCarries}),
    Op<InferSqueeze>("Squeeze", {.inputs = {1, 2},
                                 .plan_inputs = 0b10,
                                 .is_view = true,
                                 .axes = AxesBy(AxisRule::kRegroups),
                                 .storage = StorageRule::kCarries}),
    Op<InferUnsqueeze>("Unsqueeze", {.inputs = {2, 2},
                                     .plan_inputs = 0b10,
                                     .is_view = true,
                                     .axes = AxesBy(AxisRule::kRegroups),
                                     .storage = StorageRule::kCarries}),
    Op<InferFlatten>("Flatten", {.inputs = {1, 1},
                                 .is_view = true,
                                 .axes = AxesBy(AxisRule::kRegroups),
                                 .storage = StorageRule::kCarries}),
    Op<InferBitcast>("Bitcast", {.axes = AxesBy(AxisRule::kRegroups)}),
    Op<InferTranspose>("Transpose", {.inputs = {1, 2},
                                     .plan_inputs = 0b10,
                                     .axes = AxesBy(AxisRule::kPermutes),
                                     .storage = StorageRule::kCarries}),
    Op<InferConcat>(
        "Concat",
        {.inputs = {1, kVariadic}, .axes = AlongAxisOfAll(0), .storage = StorageRule::kCarries}),
    Op<InferSplit>("Split", {.inputs = {1, 2},
                             .plan_inputs = 0b10,
                             .axes = AlongAxis(0),
                             .storage = StorageRule::kCarries}),
    Op<InferTile>("Tile", {.inputs = {2, 2},
                           .plan_inputs = 0b10,
                           .axes = AxesBy(AxisRule::kPerAxis, 1),
                           .storage = StorageRule::kCarries}),
    Op<InferExpand>("Expand", {.inputs = {2, 2},
                               .plan_inputs = 0b10,
                               .axes = AxesBy(AxisRule::kStretches, 1),
                               .storage = StorageRule::kCarries}),
    Op<InferEnsureShape>("EnsureShape", {.inputs = {1, 1}, .is_view = true}),
};

}  // namespace

Result<Moves> WholeMoves(const NodeView& node) {
  return Moves{{0, 0, 0, 0, {{node.inputs[0].desc().elements(), 1, 1}}}};
}

Result<Moves> TransposeMoves(const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape(), to = node.outputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto perm, Permutation(node.inputs, from.rank()));
  const auto from_strides = RowMajorStrides(from), to_strides = RowMajorStrides(to);
  Move move;
  for (int i = 0; i < to.rank(); ++i) {
    move.axes.push_back({to[i], from_strides[perm[i]], to_strides[i]});
  }
  return Moves{std::move(move)};
}

Result<Moves> ConcatMoves(const ConcatAttrs& attrs, const NodeView& node) {
  const Shape to = node.outputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, to.rank()));
  const int64_t outer = to.Product(0, axis), inner = to.Product(axis + 1, to.rank());
  const int64_t to_row = to[axis] * inner;
  Moves moves;
  int64_t start = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const int64_t row = node.inputs[k].shape[axis].size * inner;
    moves.push_back({static_cast<int>(k), 0, 0, start, {{outer, row, to_row}, {row, 1, 1}}});
    start += row;
  }
  return moves;
}

Result<Moves> SplitMoves(const SplitAttrs& attrs, const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, from.rank()));
  const int64_t outer = from.Product(0, axis), inner = from.Product(axis + 1, from.rank());
  const int64_t from_row = from[axis] * inner;
  Moves moves;
  int64_t start = 0;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const int64_t row = node.outputs[k].shape[axis].size * inner;
    moves.push_back({0, static_cast<int>(k), start, 0, {{outer, from_row, row}, {row, 1, 1}}});
    start += row;
  }
  return moves;
}

Result<Moves> TileMoves(const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape(), to = node.outputs[0].shape.ToShape();
  const auto from_strides = RowMajorStrides(from), to_strides = RowMajorStrides(to);
  ONCILLA_ASSIGN(const auto repeats, NeedInts(node.inputs[1], "repeats"));
  Move move;
  for (int i = 0; i < from.rank(); ++i) {
    move.axes.push_back({repeats[i], 0, from[i] * to_strides[i]});
    move.axes.push_back({from[i], from_strides[i], to_strides[i]});
  }
  return Moves{std::move(move)};
}

Result<Moves> ExpandMoves(const NodeView& node) {
  const Shape from = node.inputs[0].shape.ToShape(), to = node.outputs[0].shape.ToShape();
  const auto from_strides = RowMajorStrides(from), to_strides = RowMajorStrides(to);
  const int lead = to.rank() - from.rank();
  Move move;
  for (int i = 0; i < to.rank(); ++i) {
    const int at = i - lead;
    const bool stretched = at < 0 || from[at] != to[i];
    move.axes.push_back({to[i], stretched ? 0 : from_strides[at], to_strides[i]});
  }
  return Moves{std::move(move)};
}

std::span<const OpDef> MovementOps() { return kMovementOps; }

}  // namespace oncilla
