// ONNX's ops that rearrange elements. Parameters that are inputs in later opsets were attributes
// before.
#include <algorithm>
#include <cmath>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// A list that is attribute `name` before opset `since`, and input `input` from that opset on.
Result<ValueId> AttrOrInput(OnnxLowering& b, std::string_view name, int64_t since, size_t input) {
  if (b.version() >= since) return b.in(input);
  ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList(name));
  return list.empty() ? kNoValue : b.Ints(std::move(list));
}

Result<Values> LowerReshape(OnnxLowering& b) {
  ValueId shape = b.in(1);
  if (b.version() < 5) {
    ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList("shape"));
    shape = b.Ints(std::move(list));
  }
  if (shape == kNoValue) return DataLoss("input shape is missing");
  ONCILLA_ASSIGN(const bool zeros, b.Flag("allowzero", false));
  return One(b.Add(ReshapeAttrs{.zero_copies = !zeros}, {b.in(0), shape}));
}

Result<Values> LowerSqueeze(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId axes, AttrOrInput(b, "axes", 13, 1));
  return One(b.Add("Squeeze", {}, {b.in(0), axes}));
}

Result<Values> LowerUnsqueeze(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId axes, AttrOrInput(b, "axes", 13, 1));
  if (axes == kNoValue) return DataLoss("axes are missing");
  return One(b.Add("Unsqueeze", {}, {b.in(0), axes}));
}

Result<Values> LowerFlatten(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 1));
  return One(b.Add(FlattenAttrs{.axis = axis}, {b.in(0)}));
}

Result<Values> LowerTranspose(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> perm, b.IntList("perm"));
  const ValueId order = b.HasAttr("perm") ? b.Ints(std::move(perm)) : kNoValue;
  return One(b.Add("Transpose", {}, {b.in(0), order}));
}

Result<Values> LowerConcat(OnnxLowering& b) {
  // Before opset 4 the axis had a default.
  if (b.version() >= 4 && !b.HasAttr("axis")) return DataLoss("attribute 'axis' is missing");
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 1));
  return One(b.Add(ConcatAttrs{.axis = axis}, b.all_inputs()));
}

// The sizes of `parts` equal parts of an axis whose size is not known yet; kNoValue if the axis is
// known to divide equally. A run in which it does not is refused.
Result<ValueId> EqualParts(OnnxLowering& b, int64_t axis, int64_t parts) {
  int64_t at = axis;
  if (b.in_fact(0).shape.ranked() || axis < 0) {
    ONCILLA_ASSIGN(const int rank, b.Rank(0));
    ONCILLA_ASSIGN(at, NormalizeAxis(axis, rank));
  }
  const PartialShape& shape = b.in_fact(0).shape;
  const Dim whole = shape.ranked() ? shape[static_cast<int>(at)] : Dim();
  if (whole.known() && whole.size % parts != 0) {
    return InvalidArgument("axis ", axis, " of size ", whole.size, " has no ", parts,
                           " equal parts, and no sizes are given");
  }
  if (whole.known()) return kNoValue;
  ONCILLA_ASSIGN(const ValueId size,
                 b.Add(ShapeAttrs{.start = at, .end = at + 1}, {b.in(0)}, "size"));
  ONCILLA_ASSIGN(const ValueId each, b.Add("FloorDiv", {}, {size, b.Ints({parts})}, "part"));
  return b.Add("Expand", {}, {each, b.Ints({parts})}, "parts");
}

Result<Values> LowerSplit(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 0));
  ONCILLA_ASSIGN(ValueId sizes, AttrOrInput(b, "split", 13, 1));
  if (b.version() < 2 && b.has(1)) sizes = b.in(1);
  ONCILLA_ASSIGN(const int64_t parts, b.Int("num_outputs", static_cast<int64_t>(b.outputs())));
  if (parts < static_cast<int64_t>(b.outputs())) {
    return InvalidArgument("has ", b.outputs(), " outputs and num_outputs = ", parts);
  }
  // The last part may be smaller only if num_outputs (opset 18) is given.
  if (sizes == kNoValue && b.version() < 18 && parts > 1) {
    ONCILLA_ASSIGN(sizes, EqualParts(b, axis, parts));
  }
  return b.AddAll(SplitAttrs{.axis = axis, .parts = parts}, {b.in(0), sizes});
}

Result<Values> LowerSlice(OnnxLowering& b) {
  if (b.version() >= 10) return One(b.Add("Slice", {}, b.all_inputs()));
  ONCILLA_ASSIGN(std::vector<int64_t> starts, b.IntList("starts"));
  ONCILLA_ASSIGN(std::vector<int64_t> ends, b.IntList("ends"));
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.IntList("axes"));
  Values inputs = {b.in(0), b.Ints(std::move(starts)), b.Ints(std::move(ends))};
  if (!axes.empty()) inputs.push_back(b.Ints(std::move(axes)));
  return One(b.Add("Slice", {}, std::move(inputs)));
}

// Extends pads that are given for some axes to all of them.
Result<ValueId> PadsOfAllAxes(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId axes, b.Cast(b.in(3), DType::kI64, "axes"));
  const ValueId count = b.Ints({rank});
  if (b.in_fact(3).has_value()) {
    ONCILLA_ASSIGN(const auto given, b.KnownInts(3, "the list of axes"));
    for (int64_t axis : given) ONCILLA_TRY(NormalizeAxis(axis, rank).status());
  }
  ONCILLA_ASSIGN(const ValueId begins, b.Add("FloorMod", {}, {axes, count}, "begins"));
  ONCILLA_ASSIGN(const ValueId ends, b.Add("Add", {}, {begins, count}, "ends"));
  ONCILLA_ASSIGN(const ValueId places,
                 b.Add(ConcatAttrs{.axis = 0}, {begins, ends}, "places_of_pads"));
  const ValueId none = b.Ints(std::vector<int64_t>(2 * static_cast<size_t>(rank), 0));
  return b.Add(ScatterElementsAttrs{.axis = 0}, {none, places, b.in(1)}, "pads");
}

Result<Values> LowerPad(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "constant"));
  ValueId pads = b.in(1), value = b.in(2);
  if (b.version() < 11) {
    ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList(b.version() < 2 ? "paddings" : "pads"));
    ONCILLA_ASSIGN(const float number, b.Float("value", 0));
    pads = b.Ints(std::move(list));
    ONCILLA_ASSIGN(value, b.Scalar(b.dtype(), double{number}));
  } else if (b.has(3)) {
    ONCILLA_ASSIGN(pads, PadsOfAllAxes(b));
  }
  if (pads == kNoValue) return DataLoss("the list of pads is missing");
  if (mode != "constant") value = kNoValue;
  return One(b.Add(PadAttrs{.mode = std::move(mode)}, {b.in(0), pads, value}));
}

Result<Values> LowerDepthToSpace(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.NeedInt("blocksize"));
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return InvalidArgument("mode is '", mode, "'");
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  const DepthToSpaceAttrs attrs = {.block = block, .order = mode == "CRD" ? "crd" : "dcr"};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerSpaceToDepth(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t block, b.NeedInt("blocksize"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  std::string mode = "DCR";
  if (b.version() >= 28) {
    ONCILLA_ASSIGN(mode, b.String("mode", "DCR"));
    if (mode != "DCR" && mode != "CRD") return InvalidArgument("mode is '", mode, "'");
  }
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(ValueId y, b.Add(SpaceToDepthAttrs{.block = block}, {x}, "inner"));
  if (mode == "CRD") {
    // From (position in the block, channel) to (channel, position): a transpose within the
    // channels.
    const PartialShape shape = b.in_fact(0).shape;
    if (!shape.ranked() || rank != 4 || !shape[1].known()) {
      return Unsupported("the number of channels is not known");
    }
    const int64_t places = SaturatingMul(block, block);
    ONCILLA_ASSIGN(y, b.Add(ReshapeAttrs{.zero_copies = true},
                            {y, b.Ints({0, 0, 0, places, shape[1].size})}, "places"));
    ONCILLA_ASSIGN(y, b.Transpose(y, {0, 1, 2, 4, 3}, "channels_outside"));
    const int64_t channels = SaturatingMul(places, shape[1].size);
    ONCILLA_ASSIGN(
        y, b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, 0, channels})}, "crd"));
  }
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerReverseSequence(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t time_axis, b.Int("time_axis", 0));
  ONCILLA_ASSIGN(const int64_t batch_axis, b.Int("batch_axis", 1));
  return One(b.Add(ReverseSequenceAttrs{.time_axis = time_axis, .batch_axis = batch_axis},
                   {b.in(0), b.in(1)}));
}

// Crops or pads the middle of some axes to the requested sizes; an odd element is cut or added at
// the end.
Result<Values> LowerCenterCropPad(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.IntList("axes"));
  if (!b.HasAttr("axes")) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  std::vector<char> listed(static_cast<size_t>(rank), 0);
  for (int64_t& axis : axes) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, rank));
    if (listed[static_cast<size_t>(at)]++ != 0) return InvalidArgument("axis ", at, " twice");
    axis = at;
  }
  const Dim given = b.in_fact(1).shape.elements();
  if (given.known() && given.size != std::ssize(axes)) {
    return InvalidArgument("there are ", given.size, " sizes for ", axes.size(), " axes");
  }
  // The difference per axis; half of it goes to the beginning, rounded towards zero in both cases.
  ONCILLA_ASSIGN(const ValueId asked, b.Cast(b.in(1), DType::kI64, "asked"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Sizes(b.in(0), 0, rank, "sizes"));
  ONCILLA_ASSIGN(const ValueId own, b.Add("Gather", {}, {sizes, b.Ints(axes)}, "own"));
  ONCILLA_ASSIGN(const ValueId more, b.Add("Sub", {}, {asked, own}, "more"));
  const ValueId two = b.Constant(Tensor::ScalarInt64(2));
  ONCILLA_ASSIGN(const ValueId before, b.Add("Div", {}, {more, two}, "before"));
  ONCILLA_ASSIGN(const ValueId behind, b.Add("Sub", {}, {more, before}, "behind"));
  ONCILLA_ASSIGN(const ValueId both, b.Add(ConcatAttrs{.axis = 0}, {before, behind}, "both"));
  // The pads of all axes are gathered from this list; axes that are not named take the zero at its
  // end.
  const ValueId zero = b.Ints({0});
  ONCILLA_ASSIGN(const ValueId pool, b.Add(ConcatAttrs{.axis = 0}, {both, zero}, "pool"));
  std::vector<int64_t> places(2 * static_cast<size_t>(rank), 2 * std::ssize(axes));
  for (size_t i = 0; i < axes.size(); ++i) {
    places[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
    places[static_cast<size_t>(axes[i] + rank)] = static_cast<int64_t>(i + axes.size());
  }
  ONCILLA_ASSIGN(const ValueId pads,
                 b.Add("Gather", {}, {pool, b.Ints(std::move(places))}, "pads"));
  return One(b.Add("Pad", {}, {b.in(0), pads}));
}

// Before opset 6: repeats along one axis; axis and count are numbers of the input's type.
Result<Values> LowerTileAlongAxis(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const std::vector<double> tiles, b.KnownNumbers(1, "how often to repeat"));
  ONCILLA_ASSIGN(const std::vector<double> axes, b.KnownNumbers(2, "the axis"));
  const auto whole = [](const std::vector<double>& list) {
    return list.size() == 1 && list[0] >= 0 && list[0] <= 1e9 && list[0] == std::floor(list[0]);
  };
  if (!whole(tiles) || !whole(axes)) return InvalidArgument("tiles and axis must be whole numbers");
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(static_cast<int64_t>(axes[0]), rank));
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(axis)] = static_cast<int64_t>(tiles[0]);
  return One(b.Add("Tile", {}, {b.in(0), b.Ints(std::move(repeats))}));
}

// com.microsoft's Pad had its pads as an input before ONNX's did; they may also be a matrix of one
// row.
Result<Values> LowerMicrosoftPad(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.String("mode", "constant"));
  const ValueId value = mode == "constant" ? b.in(2) : kNoValue;
  ONCILLA_ASSIGN(const int rank, b.Rank(1, "the list of pads"));
  ValueId pads = b.in(1);
  if (rank == 2) {
    ONCILLA_ASSIGN(pads, b.Add("Squeeze", {}, {pads, b.Ints({0})}, "pads"));
  }
  return One(b.Add(PadAttrs{.mode = std::move(mode)}, {b.in(0), pads, value}));
}

Result<Values> LowerExpandDims(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(1, "the axis"));
  return One(b.Add("Unsqueeze", {}, {b.in(0), b.Ints({axis})}));
}

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"ExpandDims", 1, kNewestOnnxMicrosoft, 2, "", LowerExpandDims},
    {"Pad", 1, kNewestOnnxMicrosoft, 2, "", LowerMicrosoftPad},
};
constexpr OnnxOpRow kRows[] = {
    {"CenterCropPad", 18, kNewestOnnxOpset, 2, "", LowerCenterCropPad},
    {"Concat", 1, kNewestOnnxOpset, 1, "", LowerConcat},
    {"DepthToSpace", 1, kNewestOnnxOpset, 1, "", LowerDepthToSpace},
    {"Expand", 8, kNewestOnnxOpset, 2, "Expand"},
    {"Flatten", 1, kNewestOnnxOpset, 1, "", LowerFlatten},
    {"Pad", 1, kNewestOnnxOpset, 1, "", LowerPad},
    {"Reshape", 1, kNewestOnnxOpset, 1, "", LowerReshape},
    {"ReverseSequence", 10, kNewestOnnxOpset, 2, "", LowerReverseSequence},
    {"Slice", 1, kNewestOnnxOpset, 1, "", LowerSlice},
    {"SpaceToDepth", 1, kNewestOnnxOpset, 1, "", LowerSpaceToDepth},
    {"Split", 1, kNewestOnnxOpset, 1, "", LowerSplit},
    {"Squeeze", 1, kNewestOnnxOpset, 1, "", LowerSqueeze},
    {"Tile", 1, 5, 3, "", LowerTileAlongAxis},
    {"Tile", 6, kNewestOnnxOpset, 2, "Tile"},
    {"Transpose", 1, kNewestOnnxOpset, 1, "", LowerTranspose},
    {"Unsqueeze", 1, kNewestOnnxOpset, 1, "", LowerUnsqueeze},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftMovementRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxMovementRows() { return kRows; }

}  // namespace oncilla
