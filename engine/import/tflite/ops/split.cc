// TFLite's ops that put tensors together or take them apart.
#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerConcat(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int(0));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(1));
  if (activation != 0 && b.any_quantised())
    return Unsupported("an activation of quantised numbers");
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
  b.Ignore(0);  // the number of parts, which sizes says as well
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
    {"CONCATENATION", 1, Options::kConcatenation, "", LowerConcat, kMoved},
    {"PACK", 1, Options::kPack, "", LowerPack, kMoved},
    {"SPLIT", 2, Options::kSplit, "", LowerSplit, kMoved},
    {"SPLIT_V", 3, Options::kSplitV, "", LowerSplitV, kMoved},
    {"UNPACK", 1, Options::kUnpack, "", LowerUnpack, kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteSplitRows() { return kRows; }

}  // namespace oncilla
