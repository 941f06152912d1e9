// TFLite's ops that rearrange, join or split tensors.
#include <algorithm>
#include <cmath>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/ops/quantize_lookup.h"

namespace oncilla {
namespace {

// The new shape is an input, or in old files only an option.
Result<Values> LowerReshape(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> stated, b.IntList(0));
  if (b.has_complex()) {
    std::vector<int64_t> sizes = stated;
    if (b.has(1)) {
      ONCILLA_ASSIGN(sizes, b.KnownInts(1, "the shape"));
    }
    sizes.push_back(2);
    return One(b.Add("Reshape", {}, {b.in(0), b.Ints(sizes)}));
  }
  if (b.has(1)) return One(b.Add("Reshape", {}, {b.in(0), b.in(1)}));
  return One(b.Add("Reshape", {}, {b.in(0), b.Ints(stated)}));
}

Result<Values> LowerSqueeze(TfliteLowering& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.IntList(0));
  if (b.has_complex()) {
    // The axis of complex parts comes after the axes that the file has.
    if (axes.empty()) return Unsupported("of complex numbers along axes that it does not name");
    for (int64_t& axis : axes) axis -= axis < 0 ? 1 : 0;
  }
  if (axes.empty()) return One(b.Add("Squeeze", {}, {b.in(0)}));
  return One(b.Add("Squeeze", {}, {b.in(0), b.Ints(axes)}));
}

// The axis may be a number or a list of one number.
Result<Values> LowerExpandDims(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(1, "the axis"));
  return One(b.Add("Unsqueeze", {}, {b.in(0), b.Ints({axis})}));
}

Result<Values> LowerTranspose(TfliteLowering& b) {
  return One(b.Add("Transpose", {}, {b.in(0), b.in(1)}));
}

Result<Values> LowerSlice(TfliteLowering& b) { return LowerSliceBySize(b); }

Result<Values> LowerStridedSlice(TfliteLowering& b) {
  StridedSliceAttrs masks;
  ONCILLA_ASSIGN(masks.begin_mask, b.Int(0));
  ONCILLA_ASSIGN(masks.end_mask, b.Int(1));
  ONCILLA_ASSIGN(masks.ellipsis_mask, b.Int(2));
  ONCILLA_ASSIGN(masks.new_axis_mask, b.Int(3));
  ONCILLA_ASSIGN(masks.shrink_axis_mask, b.Int(4));
  ONCILLA_ASSIGN(const bool offset, b.Flag(5));
  if (offset) return Unsupported("with ends that are counted from the beginnings");
  return One(b.Add(masks, {b.in(0), b.in(1), b.in(2), b.in(3)}));
}

// The integer that represents zero in a quantised tensor, which is the padding.
Result<ValueId> PadValue(TfliteLowering& b) {
  if (b.has(2)) return b.in(2);
  if (!IsQuantised(b.tensor(0))) return kNoValue;
  const std::vector<int64_t>& zero = b.tensor(0).quantization.zero_point;
  return b.Scalar(b.dtype(), zero.empty() ? 0 : static_cast<double>(zero[0]));
}

Result<Values> LowerPad(TfliteLowering& b) {
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, 1));
  ONCILLA_ASSIGN(const ValueId value, PadValue(b));
  return One(b.Add("Pad", {}, {b.in(0), pads, value}));
}

Result<Values> LowerMirrorPad(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t mode, b.Enum(0));
  if (mode != 0 && mode != 1) return Unsupported("mode ", mode);
  ONCILLA_ASSIGN(const ValueId pads, PadsOf(b, 1));
  return One(
      b.Add(PadAttrs{.mode = mode == 0 ? "reflect" : "symmetric", .once = true}, {b.in(0), pads}));
}

Result<Values> LowerDepthToSpace(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.Int(0));
  return One(b.Add(DepthToSpaceAttrs{.block = block}, {b.in(0)}));
}

Result<Values> LowerSpaceToDepth(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.Int(0));
  return One(b.Add(SpaceToDepthAttrs{.block = block}, {b.in(0)}));
}

Result<Values> LowerReverseSequence(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t time, b.Int(0));
  ONCILLA_ASSIGN(const int64_t batch, b.Int(1));
  return One(
      b.Add(ReverseSequenceAttrs{.time_axis = time, .batch_axis = batch}, {b.in(0), b.in(1)}));
}

// Sparse constants are decoded when they are read.
Result<Values> LowerDensify(TfliteLowering& b) {
  if (!b.in_fact(0).constant) return Unsupported("of a value that is not a constant");
  return Values{b.in(0)};
}

Result<Values> LowerUpdateSlice(TfliteLowering& b) { return LowerDynamicUpdateSlice(b); }

// Bytes with different scales are converted to the output's scale in float, by one table for each
// input.
Result<Values> LowerQuantisedConcat(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int(0));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(1));
  if (activation != 0) return Unsupported("an activation of quantised numbers");
  for (size_t i = 0; i < b.inputs(); ++i) {
    if (!b.has(i)) return DataLoss("input ", i, " is missing");
  }
  const bool same = b.CheckMoved().ok();
  if (!same && b.output_type() != DType::kU8) return b.CheckMoved();
  if (!same) ONCILLA_TRY(CheckTfliteBytes(b, b.inputs()));
  Values parts = b.all_inputs();
  const TfliteTensor& to = b.output_tensor();
  for (size_t i = 0; i < parts.size() && !same; ++i) {
    const TfliteTensor& from = b.tensor(i);
    if (SameQuantisation(from, to)) continue;
    const float factor = from.quantization.scale[0] * (1.0f / to.quantization.scale[0]);
    const float offset = static_cast<float>(-TfliteZeroOf(from)) * factor;
    ONCILLA_ASSIGN(Tensor table, TfliteTableOf(DType::kU8, DType::kU8, [&](int64_t x) {
                     const float y = std::round(static_cast<float>(x) * factor + offset);
                     const float cut = std::isnan(y) ? 0.0f : std::clamp(y, -1e6f, 1e6f);
                     return static_cast<int64_t>(cut) + TfliteZeroOf(to);
                   }));
    ONCILLA_ASSIGN(parts[i], TfliteLookup(b, parts[i], std::move(table), StrCat("part", i)));
  }
  return One(b.Add(ConcatAttrs{.axis = axis}, std::move(parts)));
}

// The border of a quantised tensor is filled with the integer that represents zero.
Result<Values> LowerSpaceToBatch(TfliteLowering& b) {
  const int64_t zero = IsQuantised(b.tensor(0)) ? TfliteZeroOf(b.tensor(0)) : 0;
  if (zero == 0) return One(b.Add("SpaceToBatch", {}, {b.in(0), b.in(1), b.in(2)}));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const std::vector<int64_t> borders, b.KnownInts(2, "the paddings"));
  const auto axes = static_cast<int>(borders.size() / 2);
  if (borders.size() % 2 != 0 || axes >= rank) {
    return InvalidArgument(borders.size(), " paddings of a tensor of rank ", rank);
  }
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  for (int i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (std::min(borders[2 * at], borders[2 * at + 1]) < 0) {
      return InvalidArgument("a padding is negative");
    }
    pads[at + 1] = borders[2 * at];
    pads[at + 1 + static_cast<size_t>(rank)] = borders[2 * at + 1];
  }
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype()));
  const auto number = static_cast<double>(zero);
  if (number < range.least || number > range.most) return DataLoss("a zero point is ", zero);
  ONCILLA_ASSIGN(const ValueId border, b.Scalar(b.dtype(), number));
  ONCILLA_ASSIGN(const ValueId padded, b.Add("Pad", {}, {b.in(0), b.Ints(pads), border}, "padded"));
  const std::vector<int64_t> none(borders.size(), 0);
  ONCILLA_ASSIGN(const ValueId flat,
                 b.Add("Reshape", {}, {b.Ints(none), b.Ints({axes, 2})}, "none"));
  return One(b.Add("SpaceToBatch", {}, {padded, b.in(1), flat}));
}

Result<Values> LowerConcat(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int(0));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(1));
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(ConcatAttrs{.axis = axis}, b.all_inputs(), b.Inner(activation)));
  return One(b.Activated(y, activation));
}

// Inputs: the axis, x.
Result<Values> LowerSplit(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.Int(0));
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(0, "the axis"));
  if (parts != static_cast<int64_t>(b.outputs())) {
    return DataLoss("has ", b.outputs(), " outputs for ", parts, " parts");
  }
  const PartialShape& shape = b.in_fact(1).shape;
  if (shape.ranked()) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, shape.rank()));
    if (shape[at].known() && shape[at].size % parts != 0) {
      return InvalidArgument("an axis of ", shape[at].size, " in ", parts, " equal parts");
    }
  }
  return b.AddAll(SplitAttrs{.axis = axis, .parts = parts}, {b.in(1)});
}

// Inputs: x, sizes, the axis.
Result<Values> LowerSplitV(TfliteLowering& b) {
  b.Ignore(0);  // the number of parts, which the sizes imply
  return LowerSplitSizes(b);
}

Result<Values> LowerPack(TfliteLowering& b) {
  b.Ignore(0);  // the number of inputs
  ONCILLA_ASSIGN(const int64_t axis, b.Int(1));
  return LowerPackParts(b, axis);
}

Result<Values> LowerUnpack(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t count, b.Int(0));
  ONCILLA_ASSIGN(const int64_t axis, b.Int(1));
  if (count != static_cast<int64_t>(b.outputs())) {
    return DataLoss("has ", b.outputs(), " outputs for ", count, " parts");
  }
  return LowerUnpackParts(b, axis, count);
}

using Options = TfliteOptions;
constexpr auto kMoved = TfliteQuantised::kMoved;
constexpr TfliteOpRow kRows[] = {
    {"BATCH_TO_SPACE_ND", 3, Options::kNone, "BatchToSpace", nullptr, kMoved},
    {"BROADCAST_TO", 2, Options::kNone, "Expand", nullptr, kMoved},
    {"CONCATENATION", 1, Options::kConcatenation, "", LowerConcat, TfliteQuantised::kTaken,
     LowerQuantisedConcat},
    {"DENSIFY", 1, Options::kNone, "", LowerDensify, kMoved},
    {"DEPTH_TO_SPACE", 1, Options::kDepthToSpace, "", LowerDepthToSpace, kMoved},
    {"DYNAMIC_UPDATE_SLICE", 3, Options::kNone, "", LowerUpdateSlice, kMoved},
    {"EXPAND_DIMS", 2, Options::kNone, "", LowerExpandDims, kMoved},
    {"MIRROR_PAD", 2, Options::kMirrorPad, "", LowerMirrorPad, kMoved},
    {"PACK", 1, Options::kPack, "", LowerPack, kMoved},
    {"PAD", 2, Options::kNone, "", LowerPad, kMoved},
    {"PADV2", 3, Options::kNone, "", LowerPad, kMoved},
    {"RESHAPE", 1, Options::kReshape, "", LowerReshape, kMoved},
    {"REVERSE_SEQUENCE", 2, Options::kReverseSequence, "", LowerReverseSequence, kMoved},
    {"REVERSE_V2", 2, Options::kNone, "Reverse", nullptr, kMoved},
    {"SLICE", 3, Options::kNone, "", LowerSlice, kMoved},
    {"SPACE_TO_BATCH_ND", 3, Options::kNone, "", LowerSpaceToBatch, kMoved},
    {"SPACE_TO_DEPTH", 1, Options::kSpaceToDepth, "", LowerSpaceToDepth, kMoved},
    {"SPLIT", 2, Options::kSplit, "", LowerSplit, kMoved},
    {"SPLIT_V", 3, Options::kSplitV, "", LowerSplitV, kMoved},
    {"SQUEEZE", 1, Options::kSqueeze, "", LowerSqueeze, kMoved},
    {"STRIDED_SLICE", 4, Options::kStridedSlice, "", LowerStridedSlice, kMoved},
    {"TILE", 2, Options::kNone, "Tile", nullptr, kMoved},
    {"TRANSPOSE", 2, Options::kNone, "", LowerTranspose, kMoved},
    {"UNPACK", 1, Options::kUnpack, "", LowerUnpack, kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteMovementRows() { return kRows; }

}  // namespace oncilla
