// Recipes of the movement family. Ops that are strided boxes need only a row; the others are here.
#include "engine/ops/array/movement.h"

#include <algorithm>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/move.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// One axis of a pad, as the kernel's arguments.
struct PadArgs {
  int64_t out = 1, before = 0, start = 0, size = 1, in = 1;
  bool whole() const { return before == 0 && start == 0 && size == out && size == in; }
};

// Merges neighbouring axes: both without padding, or constant padding around whole rows.
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
  if (y.elements() == 0) return Recipe();
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
  // A source index may be computed up to twice the size of an axis away.
  const IndexType index(std::max(SaturatingMul(2, x.elements()), elements), IndexType::kPlaces);
  const bool value = node.has_input(2);
  DispatchBuilder b(cl::kMovementPad, "pad", index);
  b.Define({{"T", VectorType(bytes, width)},
            {"E", VectorType(bytes, 1)},
            {"I", index.name()},
            {"AXES", StrCat(axes.size())},
            {"MODE", StrCat(static_cast<int>(mode))},
            {"VALUE", Flag(value)}});
  b.Arg("x", In{0}).Arg("y", Out{0}).Arg("value", In{value ? 2 : 0});
  int64_t stride = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const PadArgs& a = axes[axes.size() - 1 - i];
    b.Index({{StrCat("n", i), a.out},
             {StrCat("before", i), a.before},
             {StrCat("s", i), a.start},
             {StrCat("k", i), a.size},
             {StrCat("d", i), stride}});
    stride *= a.in;
  }
  return b.Index("elements", elements).Flat(elements, caps).Alone();
}

Result<Recipe> ReverseSequence(const ReverseSequenceAttrs& attrs, const NodeView& node,
                               const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc();
  ONCILLA_ASSIGN(const int time, NormalizeAxis(attrs.time_axis, x.rank()));
  ONCILLA_ASSIGN(const int batch, NormalizeAxis(attrs.batch_axis, x.rank()));
  if (x.elements() == 0) return Recipe();
  const int first = std::min(time, batch), second = std::max(time, batch);
  const IndexType index(x.elements(), IndexType::kPlaces);
  DispatchBuilder b(cl::kMovementReverseSequence, "reverse_sequence", index);
  b.Define({{"T", std::string(MoveType(x.dtype))},
            {"I", index.name()},
            {"BATCH_FIRST", Flag(batch < time)},
            {"INDEX", TypeName(node.inputs[1].dtype)}});
  b.Arg("x", In{0}).Arg("lengths", In{1}).Arg("y", Out{0});
  b.Index({{"elements", x.elements()},
           {"p", x.shape[first]},
           {"middle", x.shape.Product(first + 1, second)},
           {"q", x.shape[second]},
           {"inner", x.shape.Product(second + 1, x.rank())}});
  return b.Error().Flat(x.elements(), caps).Alone();
}

// Copies the bytes.
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
