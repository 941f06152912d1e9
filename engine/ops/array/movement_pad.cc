// Pad: inference, and for each position of the output the index in x that it is read from.
#include <algorithm>

#include "engine/ops/array/movement.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// Refuses pads that need more than one reflection or repetition of an axis.
Status CheckOnce(PadMode mode, int64_t begin, int64_t end, int64_t size, int axis) {
  const int64_t most = mode == PadMode::kReflect ? std::max<int64_t>(size - 1, 0) : size;
  if (begin >= 0 && end >= 0 && begin <= most && end <= most) return {};
  return InvalidArgument("pads ", begin, " and ", end, " of axis ", axis, " of size ", size,
                         " must be from 0 to ", most);
}

Result<PadAxis> AxisOf(PadMode mode, int64_t begin, int64_t end, int64_t size, int axis,
                       int64_t* padded) {
  PadAxis out;
  // The negation of the most negative pad would overflow; any pad near it crops everything anyway.
  constexpr int64_t kLeast = -std::numeric_limits<int64_t>::max();
  const int64_t crop_begin = std::max<int64_t>(-std::max(begin, kLeast), 0);
  const int64_t crop_end = std::max<int64_t>(-std::max(end, kLeast), 0);
  out.before = std::max<int64_t>(begin, 0);
  out.start = crop_begin;
  const int64_t after = std::max<int64_t>(end, 0);
  const int64_t cropped = SaturatingAdd(crop_begin, crop_end);
  if (cropped > size) {
    return InvalidArgument("pads ", begin, " and ", end, " crop more than axis ", axis, " of size ",
                           size);
  }
  out.size = size - cropped;
  *padded = SaturatingAdd(SaturatingAdd(out.before, out.size), after);
  if (*padded == std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("pads ", begin, " and ", end, " are too large");
  }
  if (mode != PadMode::kConstant && out.size == 0 && *padded > 0) {
    return InvalidArgument("axis ", axis, " has no element to pad with");
  }
  return out;
}

Result<Facts> InferPad(const PadAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "pads"));
  ONCILLA_ASSIGN(const PadMode mode, ParsePadMode(attrs.mode));
  if (Given(in, 2)) {
    if (in[2].dtype != in[0].dtype) {
      return InvalidArgument("value is ", in[2].dtype, ", not ", in[0].dtype);
    }
    const Dim count = in[2].shape.elements();
    if (count.known() && count.size != 1) {
      return InvalidArgument("value has ", count.size, " elements");
    }
  }
  const PartialShape& from = in[0].shape;
  const auto pads = ReadKnownInts(in[1]);
  if (pads && pads->size() % 2 != 0) {
    return InvalidArgument("pads has ", pads->size(), " entries, an odd number");
  }
  if (pads && from.ranked() && static_cast<int>(pads->size()) != 2 * from.rank()) {
    return InvalidArgument(pads->size(), " pads do not fit rank ", from.rank());
  }
  if (!from.ranked()) {
    if (!pads || pads->size() > 2 * kMaxRank) return Facts{Fact::Of(in[0].dtype, {})};
    return Facts{Fact::Of(in[0].dtype, PartialShape::OfRank(static_cast<int>(pads->size() / 2)))};
  }
  PartialShape shape = PartialShape::OfRank(from.rank());
  for (int i = 0; i < from.rank() && pads; ++i) {
    const auto& begin = (*pads)[i].value;
    const auto& end = (*pads)[i + from.rank()].value;
    if (!begin || !end) continue;
    if (*begin == 0 && *end == 0) {
      shape[i] = from[i];
    } else if (from[i].known()) {
      int64_t size = 0;
      if (attrs.once) ONCILLA_TRY(CheckOnce(mode, *begin, *end, from[i].size, i));
      ONCILLA_TRY(AxisOf(mode, *begin, *end, from[i].size, i, &size).status());
      shape[i] = Dim(size);
    }
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

constexpr OpDef kPadOps[] = {
    Op<InferPad>("Pad", {.inputs = {2, 3},
                         .plan_inputs = 0b10,
                         .axes = AxesBy(AxisRule::kPads, 1),
                         .storage = StorageRule::kCarries}),
};

// `at` modulo `period`, never negative.
int64_t Modulo(int64_t at, int64_t period) {
  const int64_t rest = at % period;
  return rest < 0 ? rest + period : rest;
}

}  // namespace

Result<PadMode> ParsePadMode(std::string_view text) {
  if (text == "constant") return PadMode::kConstant;
  if (text == "reflect") return PadMode::kReflect;
  if (text == "symmetric") return PadMode::kSymmetric;
  if (text == "edge") return PadMode::kEdge;
  if (text == "wrap") return PadMode::kWrap;
  return InvalidArgument("there is no pad mode '", text, "'");
}

Result<std::vector<PadAxis>> PadAxes(const PadAttrs& attrs, const NodeView& node) {
  ONCILLA_ASSIGN(const PadMode mode, ParsePadMode(attrs.mode));
  ONCILLA_ASSIGN(const auto pads, NeedInts(node.inputs[1], "pads"));
  const Shape from = node.inputs[0].shape.ToShape();
  std::vector<PadAxis> out;
  for (int i = 0; i < from.rank(); ++i) {
    int64_t padded = 0;
    ONCILLA_ASSIGN(const PadAxis axis,
                   AxisOf(mode, pads[i], pads[i + from.rank()], from[i], i, &padded));
    out.push_back(axis);
  }
  return out;
}

int64_t PadSource(PadMode mode, const PadAxis& axis, int64_t at) {
  const int64_t n = axis.size;
  int64_t i = at - axis.before;
  if (i < 0 || i >= n) {
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kReflect:  // 3 2 1 | 0 1 2 3 | 2 1 0
        i = n == 1 ? 0 : Modulo(i, 2 * n - 2);
        if (i >= n) i = 2 * n - 2 - i;
        break;
      case PadMode::kSymmetric:  // 2 1 0 | 0 1 2 | 2 1 0
        i = Modulo(i, 2 * n);
        if (i >= n) i = 2 * n - 1 - i;
        break;
      case PadMode::kEdge:
        i = i < 0 ? 0 : n - 1;
        break;
      case PadMode::kWrap:
        i = Modulo(i, n);
        break;
    }
  }
  return axis.start + i;
}

std::span<const OpDef> PadOps() { return kPadOps; }

}  // namespace oncilla
