// TensorFlow's ops that rearrange elements.
#include <algorithm>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/computed_axis.h"
#include "engine/import/tf/ops/formula.h"
#include "engine/import/tf/ops/window.h"

namespace oncilla {

Result<StridedSliceAttrs> ReadSliceMasks(const TfLowering& b) {
  StridedSliceAttrs masks;
  ONCILLA_ASSIGN(masks.begin_mask, b.attrs().Int("begin_mask"));
  ONCILLA_ASSIGN(masks.end_mask, b.attrs().Int("end_mask"));
  ONCILLA_ASSIGN(masks.ellipsis_mask, b.attrs().Int("ellipsis_mask"));
  ONCILLA_ASSIGN(masks.new_axis_mask, b.attrs().Int("new_axis_mask"));
  ONCILLA_ASSIGN(masks.shrink_axis_mask, b.attrs().Int("shrink_axis_mask"));
  return masks;
}

// Assigns `value` to a slice of x. The tensor of x's flat indices is sliced in the same way, which
// gives the index of each element of `value`.
Result<ValueId> UpdateTfSlice(TfLowering& b, ValueId x, ValueId value, std::string_view role) {
  ONCILLA_ASSIGN(const StridedSliceAttrs masks, ReadSliceMasks(b));
  const ValueId zero = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {x}, "shape"));
  ONCILLA_ASSIGN(const ValueId size, b.Add("Size", {}, {x}, "size"));
  ONCILLA_ASSIGN(const ValueId numbers, b.Add("Range", {}, {zero, size, one}, "numbers"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Reshape", {}, {numbers, shape}, "places"));
  ONCILLA_ASSIGN(const ValueId slice, b.Add(masks, {places, b.in(1), b.in(2), b.in(3)}, "slice"));
  ONCILLA_ASSIGN(const ValueId to, b.Add("Reshape", {}, {slice, b.Ints({-1, 1})}, "to"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Add("Shape", {}, {slice}, "sizes"));
  ONCILLA_ASSIGN(const ValueId spread, b.Add("Expand", {}, {value, sizes}, "spread"));
  ONCILLA_ASSIGN(const ValueId updates, b.Add("Reshape", {}, {spread, b.Ints({-1})}, "updates"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {x, b.Ints({-1})}, "flat"));
  ONCILLA_ASSIGN(const ValueId written, b.Add("ScatterND", {}, {flat, to, updates}, "written"));
  return b.Add("Reshape", {}, {written, shape}, role);
}

namespace {

Result<Values> LowerSqueeze(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, b.attrs().Ints("squeeze_dims"));
  if (axes.empty()) return One(b.Add("Squeeze", {}, {b.in(0)}));
  return One(b.Add("Squeeze", {}, {b.in(0), b.Ints(axes)}));
}

Result<Values> LowerExpandDims(TfLowering& b) {
  if (AllIntsKnown(b.in_fact(1))) {
    ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(1, "the axis"));
    return One(b.Add("Unsqueeze", {}, {b.in(0), b.Ints({axis})}));
  }
  return One(b.Add("Unsqueeze", {}, {b.in(0), b.in(1)}));
}

Result<Values> AddConcat(TfLowering& b, size_t axis_input, size_t first, size_t count) {
  const auto begin = b.all_inputs().begin() + static_cast<long>(first);
  Values parts(begin, begin + static_cast<long>(count));
  if (IsComputed(b, axis_input)) return ConcatAlong(b, parts, b.in(axis_input));
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(axis_input, "the axis"));
  return One(b.Add(ConcatAttrs{.axis = axis}, std::move(parts)));
}
Result<Values> LowerConcatV2(TfLowering& b) {
  return AddConcat(b, b.inputs() - 1, 0, b.inputs() - 1);
}
Result<Values> LowerConcat(TfLowering& b) { return AddConcat(b, 0, 1, b.inputs() - 1); }

Result<Values> LowerSplit(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("num_split"));
  if (IsComputed(b, 0)) return SplitAlong(b, b.in(1), kNoValue, b.in(0), parts);
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(0, "the axis"));
  // The canonical op makes the last part smaller if the size does not divide equally; TensorFlow
  // refuses that.
  const PartialShape& shape = b.in_fact(1).shape;
  if (!shape.ranked()) return SplitAlong(b, b.in(1), kNoValue, b.in(0), parts);
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, shape.rank()));
  const Dim& whole = shape[at];
  if (!whole.known()) {
    ONCILLA_ASSIGN(const ValueId sizes, EqualSizes(b, b.in(1), at, parts));
    return b.AddAll(SplitAttrs{.axis = axis, .parts = parts}, {b.in(1), sizes});
  }
  if (parts < 1 || whole.size % parts != 0) {
    return InvalidArgument("Number of ways to split should evenly divide the split dimension, but ",
                           "got ", parts, " for a size of ", whole.size);
  }
  return b.AddAll(SplitAttrs{.axis = axis, .parts = parts}, {b.in(1)});
}

// Computed sizes are read at plan time, including a -1.
Result<Values> LowerSplitV(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("num_split"));
  if (IsComputed(b, 2)) return SplitAlong(b, b.in(0), b.in(1), b.in(2), parts);
  if (!IsComputed(b, 1)) return LowerSplitSizes(b);
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(2, "the axis"));
  return b.AddAll(SplitAttrs{.axis = axis, .parts = parts}, {b.in(0), b.in(1)});
}

Result<Values> LowerPack(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  return LowerPackParts(b, axis);
}

Result<Values> LowerUnpack(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  ONCILLA_ASSIGN(const int64_t count, b.attrs().Int("num"));
  return LowerUnpackParts(b, axis, count);
}

Result<Values> LowerSlice(TfLowering& b) { return LowerSliceBySize(b); }
Result<Values> LowerUpdate(TfLowering& b) { return LowerDynamicUpdateSlice(b); }
Result<Values> LowerXlaSlice(TfLowering& b) { return LowerDynamicSlice(b); }

Result<Values> LowerStridedSlice(TfLowering& b) {
  ONCILLA_ASSIGN(const StridedSliceAttrs masks, ReadSliceMasks(b));
  return One(b.Add(masks, b.all_inputs()));
}

Result<Values> LowerPad(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, 1));
  if (b.op() == "PadV2") return One(b.Add("Pad", {}, {b.in(0), pads, b.in(2)}));
  return One(b.Add("Pad", {}, {b.in(0), pads}));
}

Result<Values> LowerMirrorPad(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, b.attrs().String("mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") return Unsupported("mode ", mode);
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, 1));
  return One(b.Add(PadAttrs{.mode = mode == "REFLECT" ? "reflect" : "symmetric", .once = true},
                   {b.in(0), pads}));
}

Result<Values> LowerBlocks(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.attrs().Int("block_size"));
  ONCILLA_ASSIGN(const TfLayout layout, ReadLayout(b));
  ValueId x = b.in(0);
  if (layout.channels_first) {
    ONCILLA_ASSIGN(x, b.ChannelsLast(x, layout.rank));
  }
  const std::string_view role = layout.channels_first ? "inner" : "";
  ONCILLA_ASSIGN(x, b.op() == "DepthToSpace" ? b.Add(DepthToSpaceAttrs{.block = block}, {x}, role)
                                             : b.Add(SpaceToDepthAttrs{.block = block}, {x}, role));
  return layout.channels_first ? One(b.ChannelsFirst(x, layout.rank)) : Values{x};
}

// The old forms: one block size for height and width, and paddings or crops for both.
Result<Values> LowerOldBlocks(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.attrs().Int("block_size"));
  return One(b.Add(b.op(), {}, {b.in(0), b.Ints({block, block}), b.in(1)}));
}

// The first version of Reverse has a flag per axis.
Result<Values> LowerReverse(TfLowering& b) {
  const Fact& flags = b.in_fact(1);
  if (!flags.has_value() || flags.dtype != DType::kBool) {
    return Unsupported("which axes are reversed is computed while running");
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < flags.value.bytes().size(); ++i) {
    if (flags.value.bytes()[i] != std::byte{0}) axes.push_back(static_cast<int64_t>(i));
  }
  return One(b.Add("Reverse", {}, {b.in(0), b.Ints(std::move(axes))}));
}

Result<Values> LowerReverseSequence(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t time, b.attrs().Int("seq_dim"));
  ONCILLA_ASSIGN(const int64_t batch, b.attrs().Int("batch_dim"));
  return One(
      b.Add(ReverseSequenceAttrs{.time_axis = time, .batch_axis = batch}, {b.in(0), b.in(1)}));
}

// `num` numbers from start to stop: start + i * step, where the last one is exactly stop.
Result<Values> LowerLinSpace(TfLowering& b) {
  const DType dtype = b.in_fact(0).dtype;
  if (AllIntsKnown(b.in_fact(2))) {
    ONCILLA_ASSIGN(const int64_t num, b.KnownInt(2, "num"));
    if (num <= 0) return InvalidArgument("Requires num > 0: ", num);
  } else {
    ONCILLA_ASSIGN(const ValueId none, b.Scalar(b.in_fact(2).dtype, 0));
    ONCILLA_ASSIGN(const ValueId some, b.Add("Greater", {}, {b.in(2), none}, "some"));
    const ValueId text = b.Constant(Tensor::Strings({}, {"Requires num > 0:"}));
    ONCILLA_TRY(b.AddAll("Assert", {}, {some, text, b.in(2)}, "check").status());
  }
  ONCILLA_ASSIGN(const ValueId count, b.Cast(b.in(2), DType::kI64, "count"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId last, b.Add("Sub", {}, {count, one}, "last"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Max", {}, {last, one}, "steps"));
  ONCILLA_ASSIGN(const ValueId divisor, b.Cast(steps, dtype, "divisor"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Sub", {}, {b.in(1), b.in(0)}, "whole"));
  ONCILLA_ASSIGN(const ValueId step, b.Add("Div", {}, {whole, divisor}, "step"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Range", {}, {zero, count, one}, "places"));
  ONCILLA_ASSIGN(const ValueId index, b.Cast(places, dtype, "index"));
  ONCILLA_ASSIGN(const ValueId way, b.Add("Mul", {}, {index, step}, "way"));
  ONCILLA_ASSIGN(const ValueId value, b.Add("Add", {}, {b.in(0), way}, "values"));
  // A single number has the value of start, not of stop.
  ONCILLA_ASSIGN(const ValueId at_last, b.Add("Equal", {}, {places, steps}, "at_last"));
  return One(b.Add("Where", {}, {at_last, b.in(1), value}));
}

Result<Values> LowerBitcast(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("type"));
  return One(b.Add(BitcastAttrs{.to = to}, {b.in(0)}));
}

Result<Values> LowerSliceUpdate(TfLowering& b) {
  return One(UpdateTfSlice(b, b.in(0), b.in(4), ""));
}

Result<Values> LowerTranspose(TfLowering& b) {
  return One(b.Add("Transpose", {}, {b.in(0), b.in(1)}));
}

// The letters of both layouts, and the position of each letter of the second one in the first.
struct Layouts {
  std::string from, to;
  std::vector<int64_t> place_in_from, place_in_to;
};
Result<Layouts> ReadLayouts(const TfLowering& b) {
  Layouts out;
  ONCILLA_ASSIGN(out.from, b.attrs().String("src_format"));
  ONCILLA_ASSIGN(out.to, b.attrs().String("dst_format"));
  if (out.from.size() != out.to.size() || out.from.empty() || out.from.size() > 5) {
    return InvalidArgument("Source format must be of as many letters as the destination's: '",
                           out.from, "', '", out.to, "'");
  }
  for (char c : out.to) {
    const size_t at = out.from.find(c);
    if (at == std::string::npos || out.from.find(c, at + 1) != std::string::npos) {
      return InvalidArgument("the formats '", out.from, "' and '", out.to, "' do not match");
    }
    out.place_in_from.push_back(static_cast<int64_t>(at));
  }
  for (char c : out.from) out.place_in_to.push_back(static_cast<int64_t>(out.to.find(c)));
  return out;
}

// Translates axis numbers from one layout to the other.
Result<Values> LowerDimMap(TfLowering& b) {
  ONCILLA_ASSIGN(const Layouts layouts, ReadLayouts(b));
  ONCILLA_ASSIGN(const ValueId map, b.Cast(b.Ints(layouts.place_in_to), b.in_fact(0).dtype, "map"));
  return One(b.Add(GatherAttrs{.axis = 0}, {map, b.in(0)}));
}

// Reorders one number, or one pair, per axis (or per spatial axis) to the other layout.
Result<Values> LowerVecPermute(TfLowering& b) {
  ONCILLA_ASSIGN(Layouts layouts, ReadLayouts(b));
  const PartialShape& x = b.in_fact(0).shape;
  if (!x.ranked() || x.rank() < 1 || !x[0].known()) {
    return Unsupported("the number of axes is not known");
  }
  if (x[0].size + 2 == std::ssize(layouts.from)) {
    std::vector<int64_t> spatial;
    std::string from;
    for (char c : layouts.from) {
      if (c != 'N' && c != 'C') from += c;
    }
    for (char c : layouts.to) {
      if (c != 'N' && c != 'C') spatial.push_back(static_cast<int64_t>(from.find(c)));
    }
    layouts.place_in_from = std::move(spatial);
  }
  if (x[0].size != std::ssize(layouts.place_in_from)) {
    return InvalidArgument("the input ", x, " does not fit the format '", layouts.from, "'");
  }
  return One(b.Add(GatherAttrs{.axis = 0}, {b.in(0), b.Ints(layouts.place_in_from)}));
}

// Sets or changes rows of x, by indices that wrap around.
Result<Values> LowerInplace(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add(ShapeAttrs{.start = 0, .end = 1, .to = DType::kI32}, {b.in(0)}, "rows"));
  ONCILLA_ASSIGN(const ValueId list, b.Add("Reshape", {}, {b.in(1), b.Ints({-1})}, "list"));
  ONCILLA_ASSIGN(const ValueId wrapped, b.Add("FloorMod", {}, {list, sizes}, "wrapped"));
  ONCILLA_ASSIGN(const ValueId indices, b.Add("Unsqueeze", {}, {wrapped, b.Ints({1})}, "indices"));
  const ScatterNDAttrs attrs = {.reduction = b.op() == "InplaceUpdate" ? "none" : "add"};
  ValueId updates = b.in(2);
  if (b.op() == "InplaceSub") {
    ONCILLA_ASSIGN(updates, b.Add("Neg", {}, {updates}, "updates"));
  }
  return One(b.Add(attrs, {b.in(0), indices, updates}));
}

Result<Values> LowerParallelConcat(TfLowering& b) {
  return One(b.Add(ConcatAttrs{.axis = 0}, b.all_inputs()));
}

// The offset of each of several tensors in their Concat, from the axis and their shapes: zero, and
// along the axis the sum of the sizes before it.
Result<Values> LowerConcatOffset(TfLowering& b) {
  const DType dtype = b.dtype(1);
  TfFormula f(b);
  const ValueId rank = f("Squeeze", {f(ShapeAttrs{}, {b.in(1)})});
  const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
  const ValueId axis = f("FloorMod", {f.Cast(b.in(0), DType::kI64), rank});
  const ValueId along = f("Equal", {f("Range", {zero, rank, one}), axis});
  const ValueId mask = f.Cast(along, dtype);
  const ValueId text = b.Constant(
      Tensor::Strings({}, {"All dimensions except the axis of concatenation must match"}));
  Values out;
  ValueId before = f("Sub", {b.in(1), b.in(1)});
  for (size_t i = 1; i < b.inputs(); ++i) {
    const ValueId same = f("Equal", {b.in(i), b.in(1)});
    const ValueId all = f("ReduceAll", {f("Or", {same, along})});
    ONCILLA_TRY(f.status());
    if (i > 1) ONCILLA_TRY(b.AddAll(AssertAttrs{}, {all, text, b.in(i)}, "check").status());
    out.push_back(before);
    before = f("Add", {before, f("Mul", {b.in(i), mask})});
  }
  return f.Done(std::move(out));
}

// TensorFlow leaves the contents uninitialised; here they are zeros.
Result<Values> LowerEmpty(TfLowering& b) {
  ONCILLA_ASSIGN(const DType dtype, b.attrs().Type("dtype"));
  ValueId value = kNoValue;
  if (dtype == DType::kString) {
    value = b.Constant(Tensor::Strings({}, {""}));
  } else {
    ONCILLA_ASSIGN(value, b.Scalar(dtype, 0));
  }
  return One(b.Add("Fill", {}, {b.in(0), value}));
}

constexpr TfOpRow kRows[] = {
    {"BatchToSpaceND", 3, "BatchToSpace"},
    {"BatchToSpace", 2, "", LowerOldBlocks},
    {"Bitcast", 1, "", LowerBitcast},
    {"BroadcastTo", 2, "Expand"},
    {"Concat", 2, "", LowerConcat},
    {"ConcatOffset", 2, "", LowerConcatOffset},
    {"ConcatV2", 2, "", LowerConcatV2},
    {"ConjugateTranspose", 2, "", LowerTranspose},
    {"DataFormatDimMap", 1, "", LowerDimMap},
    {"DataFormatVecPermute", 1, "", LowerVecPermute},
    {"DeepCopy", 1, "Identity"},
    {"DepthToSpace", 1, "", LowerBlocks},
    {"Empty", 1, "", LowerEmpty},
    {"ExpandDims", 2, "", LowerExpandDims},
    {"InplaceAdd", 3, "", LowerInplace},
    {"InplaceSub", 3, "", LowerInplace},
    {"InplaceUpdate", 3, "", LowerInplace},
    {"LinSpace", 3, "", LowerLinSpace},
    {"MirrorPad", 2, "", LowerMirrorPad},
    {"Pack", 1, "", LowerPack},
    {"Pad", 2, "", LowerPad},
    {"PadV2", 3, "", LowerPad},
    {"ParallelConcat", 1, "", LowerParallelConcat},
    {"Reshape", 2, "Reshape"},
    {"Reverse", 2, "", LowerReverse},
    {"ReverseSequence", 2, "", LowerReverseSequence},
    {"ReverseV2", 2, "Reverse"},
    {"Roll", 3, "Roll"},
    {"Slice", 3, "", LowerSlice},
    {"SpaceToBatch", 2, "", LowerOldBlocks},
    {"SpaceToBatchND", 3, "SpaceToBatch"},
    {"SpaceToDepth", 1, "", LowerBlocks},
    {"Split", 2, "", LowerSplit},
    {"SplitV", 3, "", LowerSplitV},
    {"Squeeze", 1, "", LowerSqueeze},
    {"StridedSlice", 4, "", LowerStridedSlice},
    {"TensorStridedSliceUpdate", 5, "", LowerSliceUpdate},
    {"Tile", 2, "Tile"},
    {"Transpose", 2, "", LowerTranspose},
    {"Unpack", 1, "", LowerUnpack},
    {"XlaDynamicSlice", 3, "", LowerXlaSlice},
    {"XlaDynamicUpdateSlice", 3, "", LowerUpdate},
};

}  // namespace

std::span<const TfOpRow> TfMovementRows() { return kRows; }

}  // namespace oncilla
