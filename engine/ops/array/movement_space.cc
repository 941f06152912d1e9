// Ops that reorder elements along axes, or exchange spatial axes with channels or batches:
// inference, geometry and rows.
#include <algorithm>

#include "engine/ops/array/movement.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferReverse(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "axes"));
  const PartialShape& from = in[0].shape;
  Fact out = Fact::Of(in[0].dtype, from);
  if (!from.ranked() || !AllIntsKnown(in[1])) return Facts{std::move(out)};
  ONCILLA_ASSIGN(const auto named, NeedInts(in[1], "axes"));
  ONCILLA_ASSIGN(const auto axes, NormalizeAxes(named, from.rank()));
  if (from.rank() == 1) {
    auto elements = CarriedElements(in[0]);
    if (elements && !axes.empty()) std::reverse(elements->begin(), elements->end());
    out = WithCarried(std::move(out), std::move(elements));
  }
  return Facts{std::move(out)};
}

Result<Facts> InferRoll(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "shifts"));
  ONCILLA_TRY(RequireInteger(in[2], "axes"));
  const Dim shifts = in[1].shape.elements(), axes = in[2].shape.elements();
  if (shifts.known() && axes.known() && shifts.size != axes.size) {
    return InvalidArgument("there are ", shifts.size, " shifts for ", axes.size, " axes");
  }
  if (in[0].shape.ranked() && AllIntsKnown(in[2])) {
    ONCILLA_ASSIGN(const auto named, NeedInts(in[2], "axes"));
    for (int64_t axis : named) {
      ONCILLA_TRY(NormalizeAxis(axis, in[0].shape.rank()).status());
    }
  }
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferReverseSequence(const ReverseSequenceAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "lengths"));
  ONCILLA_TRY(RequireRank(in[1], 1, "lengths"));
  const PartialShape& from = in[0].shape;
  if (from.ranked()) {
    ONCILLA_ASSIGN(const int time, NormalizeAxis(attrs.time_axis, from.rank()));
    ONCILLA_ASSIGN(const int batch, NormalizeAxis(attrs.batch_axis, from.rank()));
    if (time == batch) return InvalidArgument("time and batch are both axis ", time);
    const Dim lengths = in[1].shape.ranked() ? in[1].shape[0] : Dim();
    if (lengths.known() && from[batch].known() && lengths.size != from[batch].size) {
      return InvalidArgument("there are ", lengths.size, " lengths for ", from[batch].size,
                             " batches");
    }
  }
  return Facts{Fact::Of(in[0].dtype, from)};
}

// `block` to the power of the number of spatial axes.
Result<int64_t> BlockSize(int64_t block, const PartialShape& shape) {
  if (block < 1) return InvalidArgument("block is ", block);
  int64_t size = 1;
  if (!shape.ranked()) return size;
  if (shape.rank() < 3 || shape.rank() > 5) {
    return InvalidArgument("the input must be a batch of 1 to 3 spatial axes and channels, not ",
                           shape);
  }
  for (int i = 0; i < shape.rank() - 2; ++i) size = SaturatingMul(size, block);
  return size;
}

Result<Dim> Divided(const Dim& size, int64_t by, std::string_view what) {
  if (!size.known()) return Dim();
  if (size.size % by != 0) {
    return InvalidArgument(what, " of size ", size.size, " cannot be divided by ", by);
  }
  return Dim(size.size / by);
}

Dim Times(const Dim& size, int64_t by) {
  const Dim both[] = {size, Dim(by)};
  return ProductOf(both);
}

Result<Facts> InferDepthToSpace(const DepthToSpaceAttrs& attrs, std::span<const Fact> in) {
  if (attrs.order != "dcr" && attrs.order != "crd") {
    return InvalidArgument("order is '", attrs.order, "', neither dcr nor crd");
  }
  PartialShape shape = in[0].shape;
  ONCILLA_ASSIGN(const int64_t size, BlockSize(attrs.block, shape));
  if (shape.ranked()) {
    const int channels = shape.rank() - 1;
    ONCILLA_ASSIGN(shape[channels], Divided(shape[channels], size, "the channel axis"));
    for (int i = 1; i < channels; ++i) shape[i] = Times(shape[i], attrs.block);
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferSpaceToDepth(const SpaceToDepthAttrs& attrs, std::span<const Fact> in) {
  PartialShape shape = in[0].shape;
  ONCILLA_ASSIGN(const int64_t size, BlockSize(attrs.block, shape));
  if (shape.ranked()) {
    const int channels = shape.rank() - 1;
    shape[channels] = Times(shape[channels], size);
    for (int i = 1; i < channels; ++i) {
      ONCILLA_ASSIGN(shape[i], Divided(shape[i], attrs.block, "a spatial axis"));
    }
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

// The change that SpaceToBatch or BatchToSpace makes to one of the spatial axes, 1 to n.
struct BlockAxis {
  int64_t block = 1, before = 0, after = 0;  // before and after: pads or crops
};

// Returns nullopt while one of the values is unknown.
Result<std::optional<std::vector<BlockAxis>>> ReadBlocks(std::span<const Fact> in,
                                                         std::string_view pads) {
  using Out = std::optional<std::vector<BlockAxis>>;
  ONCILLA_TRY(RequireInteger(in[1], "block"));
  ONCILLA_TRY(RequireInteger(in[2], pads));
  ONCILLA_TRY(RequireRank(in[1], 1, "block"));
  ONCILLA_TRY(RequireRank(in[2], 2, pads));
  if (!AllIntsKnown(in[1]) || !in[2].has_value()) return Out();
  ONCILLA_ASSIGN(const auto blocks, NeedInts(in[1], "block"));
  ONCILLA_ASSIGN(const auto around, NeedInts(in[2], pads));
  if (in[2].value.shape() != Shape{static_cast<int64_t>(blocks.size()), 2}) {
    return InvalidArgument(pads, " of shape ", in[2].shape, " do not fit ", blocks.size(),
                           " blocks");
  }
  std::vector<BlockAxis> out;
  for (size_t i = 0; i < blocks.size(); ++i) {
    out.push_back({blocks[i], around[2 * i], around[2 * i + 1]});
    if (blocks[i] < 1) return InvalidArgument("block has ", blocks[i]);
    if (out[i].before < 0 || out[i].after < 0) {
      return InvalidArgument(pads, " has ", std::min(out[i].before, out[i].after));
    }
  }
  if (in[0].shape.ranked() && in[0].shape.rank() <= static_cast<int>(out.size())) {
    return InvalidArgument(out.size(), " blocks do not fit rank ", in[0].shape.rank());
  }
  return Out(std::move(out));
}

int64_t BlockProduct(const std::vector<BlockAxis>& axes) {
  int64_t product = 1;
  for (const BlockAxis& axis : axes) product = SaturatingMul(product, axis.block);
  return product;
}

PartialShape OfSameRank(const PartialShape& shape) {
  return shape.ranked() ? PartialShape::OfRank(shape.rank()) : shape;
}

Result<Facts> InferSpaceToBatch(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const auto axes, ReadBlocks(in, "pads"));
  if (!axes || !in[0].shape.ranked()) {
    return Facts{Fact::Of(in[0].dtype, OfSameRank(in[0].shape))};
  }
  PartialShape shape = in[0].shape;
  shape[0] = Times(shape[0], BlockProduct(*axes));
  for (int i = 1; i <= static_cast<int>(axes->size()); ++i) {
    const BlockAxis& axis = (*axes)[i - 1];
    if (axis.block == 1 && axis.before == 0 && axis.after == 0) continue;
    if (shape[i].known()) {
      shape[i] = SaturatingAdd(shape[i].size, SaturatingAdd(axis.before, axis.after));
    }
    ONCILLA_ASSIGN(shape[i], Divided(shape[i], axis.block, "a padded axis"));
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferBatchToSpace(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const auto axes, ReadBlocks(in, "crops"));
  if (!axes || !in[0].shape.ranked()) {
    return Facts{Fact::Of(in[0].dtype, OfSameRank(in[0].shape))};
  }
  PartialShape shape = in[0].shape;
  const int64_t product = BlockProduct(*axes);
  if (product != 1) {
    ONCILLA_ASSIGN(shape[0], Divided(shape[0], product, "the batch axis"));
  }
  for (int i = 1; i <= static_cast<int>(axes->size()); ++i) {
    const BlockAxis& axis = (*axes)[i - 1];
    if (axis.block == 1 && axis.before == 0 && axis.after == 0) continue;
    if (!shape[i].known()) continue;
    const int64_t whole = SaturatingMul(shape[i].size, axis.block);
    const int64_t crops = SaturatingAdd(axis.before, axis.after);
    if (crops > whole) {
      return InvalidArgument("crops ", axis.before, " and ", axis.after, " are more than axis ", i,
                             " of size ", whole);
    }
    shape[i] = Dim(whole - crops);
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

constexpr OpDef kSpaceOps[] = {
    Op<InferReverse>("Reverse", {.inputs = {2, 2},
                                 .plan_inputs = 0b10,
                                 .axes = AxesBy(AxisRule::kAxesInput, 1),
                                 .storage = StorageRule::kCarries}),
    Op<InferRoll>("Roll", {.inputs = {3, 3},
                           .plan_inputs = 0b110,
                           .axes = AxesBy(AxisRule::kAxesInput, 2),
                           .storage = StorageRule::kCarries}),
    Op<InferReverseSequence>("ReverseSequence", {.inputs = {2, 2}}),
    Op<InferDepthToSpace>("DepthToSpace", {.axes = Samples(), .storage = StorageRule::kCarries}),
    Op<InferSpaceToDepth>("SpaceToDepth", {.axes = Samples(), .storage = StorageRule::kCarries}),
    Op<InferSpaceToBatch>(
        "SpaceToBatch", {.inputs = {3, 3}, .plan_inputs = 0b110, .storage = StorageRule::kCarries}),
    Op<InferBatchToSpace>(
        "BatchToSpace", {.inputs = {3, 3}, .plan_inputs = 0b110, .storage = StorageRule::kCarries}),
};

// Pixels are [N, spatial.., rest]; along a spatial axis each index is block * size + offset. This
// describes how the same pixels are stored in the other tensor: a stride per block and a stride per
// offset for each spatial axis.
struct BlockSide {
  std::vector<int64_t> offset_strides;
  int64_t batch_stride = 0;
  std::vector<int64_t> block_strides;
};

// All blocks in one move, if there are no pads or crops.
Move WholeBlocks(const Shape& pixels, const std::vector<BlockAxis>& blocks, const BlockSide& side,
                 std::span<const MoveAxis> rest, bool to_pixels) {
  const auto strides = RowMajorStrides(pixels);
  Move move;
  auto add = [&](int64_t size, int64_t pixel, int64_t other) {
    move.axes.push_back({size, to_pixels ? other : pixel, to_pixels ? pixel : other});
  };
  add(pixels[0], strides[0], side.batch_stride);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int axis = static_cast<int>(i) + 1;
    const int64_t block = blocks[i].block;
    add(pixels[axis] / block, strides[axis] * block, side.block_strides[i]);
    add(block, strides[axis], side.offset_strides[i]);
  }
  for (const MoveAxis& axis : rest) add(axis.size, axis.from, axis.to);
  return move;
}

// DepthToSpace and its inverse: the offset within a block is part of the channel.
Moves DepthMoves(const Shape& pixels, const Shape& blocks, int64_t block, bool depth_last,
                 bool to_pixels) {
  const int spatial = pixels.rank() - 2;
  const auto strides = RowMajorStrides(blocks);
  const int64_t depth = pixels.back();
  BlockSide side;
  side.batch_stride = strides[0];
  int64_t size = 1;
  for (int i = spatial; i-- > 0; size *= block) {
    side.offset_strides.insert(side.offset_strides.begin(), depth_last ? size * depth : size);
  }
  side.block_strides.assign(strides.begin() + 1, strides.begin() + 1 + spatial);
  const MoveAxis channels{depth, 1, depth_last ? 1 : size};
  return {WholeBlocks(pixels, std::vector<BlockAxis>(static_cast<size_t>(spatial), {block, 0, 0}),
                      side, {&channels, 1}, to_pixels)};
}

// The offsets [begin, end) into a block that have pixels in the same range [low, high) of blocks.
struct OffsetGroup {
  int64_t begin = 0, end = 0, low = 0, high = 0;
};

// There are at most three groups: as the offset grows, each end of the range of blocks moves once.
std::vector<OffsetGroup> GroupsOf(const BlockAxis& axis, int64_t pixels, int64_t blocks) {
  const auto up = [&](int64_t x) { return x <= 0 ? 0 : (x - 1) / axis.block + 1; };
  const auto at = [&](int64_t offset) {
    const int64_t shift = axis.before - offset;  // pixel = block index * block - shift
    return std::pair(up(shift), std::min(blocks, up(SaturatingAdd(pixels, shift))));
  };
  std::vector<OffsetGroup> groups;
  for (int64_t begin = 0; begin < axis.block;) {
    const auto same = at(begin);
    int64_t last = begin, beyond = axis.block;  // bisect for the last offset with this range
    while (beyond - last > 1) {
      const int64_t middle = last + (beyond - last) / 2;
      (at(middle) == same ? last : beyond) = middle;
    }
    if (same.second > same.first) groups.push_back({begin, beyond, same.first, same.second});
    begin = beyond;
  }
  return groups;
}

// SpaceToBatch and its inverse: the offset within a block is part of the batch. With pads or crops
// there is a move for each combination of the axes' groups that reaches pixels.
Result<Moves> BatchMoves(const Shape& pixels, const Shape& batches,
                         const std::vector<BlockAxis>& blocks, bool to_pixels) {
  for (const Shape* shape : {&pixels, &batches}) {
    if (shape->elements() == std::numeric_limits<int64_t>::max()) {
      return Exhausted("a tensor of the shape ", *shape);
    }
  }
  if (batches.elements() == 0) return Moves();
  if (pixels.elements() == 0) return to_pixels ? Moves() : Moves{ZeroMove(batches)};
  const size_t n = blocks.size();
  const auto pixel_strides = RowMajorStrides(pixels), strides = RowMajorStrides(batches);
  const MoveAxis rest{pixels.Product(static_cast<int>(n) + 1, pixels.rank()), 1, 1};
  const int64_t batch = pixels[0];
  std::vector<int64_t> offset_strides(n);
  int64_t places = 1;
  bool plain = true;
  for (size_t i = n; i-- > 0; places *= blocks[i].block) {
    offset_strides[i] = places * batch * strides[0];
    plain &= blocks[i].before == 0 && blocks[i].after == 0;
  }
  if (plain) {
    const auto first = strides.begin() + 1;
    BlockSide side{offset_strides, strides[0], {first, first + static_cast<int64_t>(n)}};
    return Moves{WholeBlocks(pixels, blocks, side, {&rest, 1}, to_pixels)};
  }
  std::vector<std::vector<OffsetGroup>> groups;
  size_t combinations = 1;
  for (size_t i = 0; i < n; ++i) {
    const auto axis = static_cast<int>(i) + 1;
    groups.push_back(GroupsOf(blocks[i], pixels[axis], batches[axis]));
    combinations *= groups.back().size();
  }
  Moves moves;
  if (!to_pixels) moves.push_back(ZeroMove(batches));
  for (size_t combination = 0; combination < combinations; ++combination) {
    Move move;
    int64_t pixel_start = 0, batch_start = 0;
    auto add = [&](int64_t size, int64_t pixel, int64_t other) {
      move.axes.push_back({size, to_pixels ? other : pixel, to_pixels ? pixel : other});
    };
    add(batch, pixel_strides[0], strides[0]);
    size_t left = combination;
    for (size_t i = n; i-- > 0;) {
      const OffsetGroup& group = groups[i][left % groups[i].size()];
      left /= groups[i].size();
      const int64_t block = blocks[i].block, stride = pixel_strides[i + 1];
      add(group.high - group.low, block * stride, strides[i + 1]);
      add(group.end - group.begin, stride, offset_strides[i]);
      pixel_start += (group.low * block - blocks[i].before + group.begin) * stride;
      batch_start += group.begin * offset_strides[i] + group.low * strides[i + 1];
    }
    add(rest.size, 1, 1);
    move.from_start = to_pixels ? batch_start : pixel_start;
    move.to_start = to_pixels ? pixel_start : batch_start;
    moves.push_back(std::move(move));
  }
  return moves;
}

}  // namespace

Result<Moves> ReverseMoves(const NodeView& node) {
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto named, NeedInts(node.inputs[1], "axes"));
  ONCILLA_ASSIGN(const auto axes, NormalizeAxes(named, shape.rank()));
  const auto strides = RowMajorStrides(shape);
  Move move;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reversed = std::binary_search(axes.begin(), axes.end(), i) && shape[i] > 0;
    move.axes.push_back({shape[i], reversed ? -strides[i] : strides[i], strides[i]});
    if (reversed) move.from_start += (shape[i] - 1) * strides[i];
  }
  return Moves{std::move(move)};
}

Result<Moves> RollMoves(const NodeView& node) {
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto shifts, NeedInts(node.inputs[1], "shifts"));
  ONCILLA_ASSIGN(const auto named, NeedInts(node.inputs[2], "axes"));
  if (shape.elements() == 0) return Moves();
  std::vector<int64_t> total(static_cast<size_t>(shape.rank()));
  for (size_t i = 0; i < named.size(); ++i) {
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(named[i], shape.rank()));
    const int64_t size = shape[axis];
    total[axis] = ((total[axis] + shifts[i] % size) % size + size) % size;
  }
  // Each rolled axis doubles the number of boxes: its end moves to the front, its front after that.
  const auto strides = RowMajorStrides(shape);
  Moves moves(1);
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t size = shape[i], shift = total[i];
    Moves longer;
    for (const Move& move : moves) {
      auto add = [&](int64_t from, int64_t to, int64_t count) {
        Move part = move;
        part.from_start += from * strides[i];
        part.to_start += to * strides[i];
        part.axes.push_back({count, strides[i], strides[i]});
        longer.push_back(std::move(part));
      };
      add(0, shift, size - shift);
      if (shift != 0) add(size - shift, 0, shift);
    }
    moves = std::move(longer);
  }
  return moves;
}

Result<Moves> DepthToSpaceMoves(const DepthToSpaceAttrs& attrs, const NodeView& node) {
  return DepthMoves(node.outputs[0].shape.ToShape(), node.inputs[0].shape.ToShape(), attrs.block,
                    attrs.order == "dcr", /*to_pixels=*/true);
}

Result<Moves> SpaceToDepthMoves(const SpaceToDepthAttrs& attrs, const NodeView& node) {
  return DepthMoves(node.inputs[0].shape.ToShape(), node.outputs[0].shape.ToShape(), attrs.block,
                    /*depth_last=*/true, /*to_pixels=*/false);
}

Result<Moves> SpaceToBatchMoves(const NodeView& node) {
  ONCILLA_ASSIGN(const auto blocks, ReadBlocks(node.inputs, "pads"));
  if (!blocks) return Internal("the value of block or pads is not known");
  return BatchMoves(node.inputs[0].shape.ToShape(), node.outputs[0].shape.ToShape(), *blocks,
                    /*to_pixels=*/false);
}

Result<Moves> BatchToSpaceMoves(const NodeView& node) {
  ONCILLA_ASSIGN(const auto blocks, ReadBlocks(node.inputs, "crops"));
  if (!blocks) return Internal("the value of block or crops is not known");
  return BatchMoves(node.outputs[0].shape.ToShape(), node.inputs[0].shape.ToShape(), *blocks,
                    /*to_pixels=*/true);
}

std::span<const OpDef> SpaceOps() { return kSpaceOps; }

}  // namespace oncilla
