// Recipes of the movement family. Ops that are strided boxes need only a row; the rest is here.
#include <algorithm>

#include "backends/opencl/kernels.h"
#include "backends/opencl/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/movement.h"

namespace oncilla::opencl {
namespace {

// One axis of a pad as the kernel sees it.
struct PadArgs {
  int64_t out = 1, before = 0, start = 0, size = 1, in = 1;
  bool whole() const { return before == 0 && start == 0 && size == out && size == in; }
};

// Neighbours as one axis: both untouched, or constant pads around whole rows.
std::vector<PadArgs> Merged(PadMode mode, const std::vector<PadArgs>& axes) {
  std::vector<PadArgs> out;
  for (const PadArgs& a : axes) {
    PadArgs* last = out.empty() ? nullptr : &out.back();
    if (last != nullptr && a.whole() && (last->whole() || mode == PadMode::kConstant)) {
      *last = {last->out * a.out, last->before * a.out, last->start * a.out, last->size * a.out,
               last->in * a.out};
    } else {
      out.push_back(a);
    }
  }
  if (out.empty()) out.emplace_back();
  return out;
}

Result<Recipe> Pad(const PadAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const PadMode mode, ParsePadMode(attrs.mode));
  ONCILLA_ASSIGN(const auto pads, PadAxes(attrs, node));
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  std::vector<PadArgs> axes;
  for (int i = 0; i < y.rank(); ++i) {
    axes.push_back({y.shape[i], pads[i].before, pads[i].start, pads[i].size, x.shape[i]});
  }
  axes = Merged(mode, axes);
  const int64_t bytes = BytesOf(x.dtype);
  int64_t width = 1;
  PadArgs& inner = axes.back();
  if (mode == PadMode::kConstant || inner.whole()) {
    const int64_t counts[] = {inner.out, inner.before, inner.start, inner.size, inner.in};
    width = VectorWidth(bytes, counts);
    inner = {inner.out / width, inner.before / width, inner.start / width, inner.size / width,
             inner.in / width};
  }
  const int64_t elements = y.elements() / width;
  // A source may be looked for up to twice the size of an axis away.
  const Indices index(std::max(SaturatingMul(2, x.elements()), elements));
  const bool value = node.has_input(2);
  Dispatch d{.source = &cl::kMovementPad,
             .entry = "pad",
             .defines = {{"T", VectorType(bytes, width)},
                         {"E", VectorType(bytes, 1)},
                         {"I", index.type()},
                         {"AXES", StrCat(axes.size())},
                         {"MODE", StrCat(static_cast<int>(mode))},
                         {"VALUE", value ? "1" : "0"}},
             .args = {In{0}, Out{0}, In{value ? 2 : 0}}};
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const PadArgs& a = axes[i];
    for (int64_t v : {a.out, a.before, a.start, a.size, stride}) d.args.push_back(index(v));
    stride *= a.in;
  }
  d.args.push_back(index(elements));
  LaunchFlat(d, elements, caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> ReverseSequence(const ReverseSequenceAttrs& attrs, const NodeView& node,
                               const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc();
  ONCILLA_ASSIGN(const int time, NormalizeAxis(attrs.time_axis, x.rank()));
  ONCILLA_ASSIGN(const int batch, NormalizeAxis(attrs.batch_axis, x.rank()));
  Recipe recipe;
  if (x.elements() == 0) return recipe;
  const int first = std::min(time, batch), second = std::max(time, batch);
  const Indices index(x.elements());
  Dispatch d{.source = &cl::kMovementReverseSequence,
             .entry = "reverse_sequence",
             .defines = {{"T", std::string(MoveType(x.dtype))},
                         {"I", index.type()},
                         {"BATCH_FIRST", batch < time ? "1" : "0"},
                         {"INDEX", std::string(Name(node.inputs[1].dtype))}},
             .args = {In{0}, In{1}, Out{0}, index(x.elements()), index(x.shape[first]),
                      index(x.shape.Product(first + 1, second)), index(x.shape[second]),
                      index(x.shape.Product(second + 1, x.rank())), ErrorWord{}}};
  LaunchFlat(d, x.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// The same bytes.
Result<Recipe> Bitcast(const BitcastAttrs&, const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  AddMove(recipe, {0, 0, 0, 0, {{node.inputs[0].desc().bytes(), 1, 1}}}, 1, caps);
  return recipe;
}

const KernelRow kRows[] = {
    Row<Bitcast>("Bitcast", kNumbers),
    MoveRow<WholeMoves>("EnsureShape"),
    MoveRow<WholeMoves>("Reshape"),
    MoveRow<WholeMoves>("Squeeze"),
    MoveRow<WholeMoves>("Unsqueeze"),
    MoveRow<WholeMoves>("Flatten"),
    MoveRow<TransposeMoves>("Transpose"),
    MoveRow<ConcatMoves>("Concat"),
    MoveRow<SplitMoves>("Split"),
    MoveRow<SliceMoves>("Slice"),
    MoveRow<StridedSliceMoves>("StridedSlice"),
    MoveRow<TileMoves>("Tile"),
    MoveRow<ExpandMoves>("Expand"),
    Row<Pad>("Pad", kFixedSize),
    MoveRow<ReverseMoves>("Reverse"),
    MoveRow<RollMoves>("Roll"),
    Row<ReverseSequence>("ReverseSequence", kFixedSize),
    MoveRow<DepthToSpaceMoves>("DepthToSpace"),
    MoveRow<SpaceToDepthMoves>("SpaceToDepth"),
    MoveRow<SpaceToBatchMoves>("SpaceToBatch"),
    MoveRow<BatchToSpaceMoves>("BatchToSpace"),
};

}  // namespace

std::span<const KernelRow> MovementKernels() { return kRows; }

}  // namespace oncilla::opencl
