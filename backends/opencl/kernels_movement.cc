// Recipes of the movement family: the boxes that engine/ops computes, one launch each.
//
// Elements are moved as unsigned words of their size, or as wider ones where every run of the box
// is a multiple of them.
#include <algorithm>
#include <limits>

#include "backends/opencl/kernels.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/movement.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kTile = 16;

std::string_view WordOf(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    case 8:
      return "ulong";
    default:
      return "uint4";
  }
}

// Halves all counts of elements of twice the size, while that is exact; returns the word's bytes.
int64_t Widen(Move& move, int64_t bytes) {
  MoveAxis& inner = move.axes.back();
  if (inner.from != 1 || inner.to != 1) return bytes;
  while (bytes < 16) {
    bool even = inner.size % 2 == 0 && move.from_start % 2 == 0 && move.to_start % 2 == 0;
    for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
      even = even && move.axes[i].from % 2 == 0 && move.axes[i].to % 2 == 0;
    }
    if (!even) break;
    bytes *= 2;
    inner.size /= 2;
    move.from_start /= 2;
    move.to_start /= 2;
    for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
      move.axes[i].from /= 2;
      move.axes[i].to /= 2;
    }
  }
  return bytes;
}

// The axis along which x is contiguous, when that is not the one along which y is; else -1.
int SourceInner(const Move& move) {
  const auto& axes = move.axes;
  if (axes.size() < 2 || axes.back().from == 1) return -1;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i].from == 1 && axes[i].size >= 4 && axes.back().size >= 4) return static_cast<int>(i);
  }
  return -1;
}

Result<Dispatch> MakeMove(Move move, int64_t bytes, int64_t input_elements, int64_t output_elements,
                          const Capabilities& caps) {
  move = Simplified(std::move(move));
  if (move.axes.empty()) move.axes.push_back({1, 1, 1});
  const int64_t word = Widen(move, bytes);
  const int64_t elements = move.elements();
  auto& axes = move.axes;
  const bool local = caps.shape == KernelShape::kGpu;
  int source_inner = SourceInner(move);
  if (kTile * kTile > caps.max_work_group ||
      (local && kTile * (kTile + 1) * word > caps.local_memory)) {
    source_inner = -1;
  }
  if (source_inner >= 0) {  // beside the innermost
    std::rotate(axes.begin() + source_inner, axes.begin() + source_inner + 1, axes.end() - 1);
  }
  const int rank = static_cast<int>(axes.size());
  auto axis = [&](int i) -> const MoveAxis& { return axes[axes.size() - 1 - i]; };
  const int64_t inner = axis(0).size, second = rank > 1 ? axis(1).size : 1;
  const int64_t outer = elements == 0 ? 0 : elements / (inner * second);

  Dispatch d{.source = &cl::kMovementMove};
  bool flat = false;
  int64_t group = 1;
  if (source_inner >= 0 && DivideUp(second, kTile) <= 65535 && outer <= 65535) {
    d.entry = "transpose";
    d.local = {kTile, kTile, 1};
    d.global = {RoundUp(inner, kTile), RoundUp(second, kTile), outer};
  } else {
    d.entry = "move";
    // Short rows would leave most of a group idle; some drivers count groups beyond the first axis
    // in 16 bits. Few sizes of groups: some drivers compile a kernel anew for each.
    flat = rank > 1 && (inner < 32 || second > 65535 || outer > 65535);
    group = caps.Group(!flat && rank > 1 && inner < 256 ? 64 : 256);
    d.local = {group, 1, 1};
    d.global = {RoundUp(flat ? elements : inner, group), flat ? 1 : second, flat ? 1 : outer};
  }
  // Work-items beyond the box compute places up to a group or a tile past it.
  const int64_t most = std::max({input_elements, output_elements, elements});
  const bool wide = most > std::numeric_limits<int32_t>::max() / 2;
  auto push = [&](int64_t value) {
    if (wide) {
      d.args.push_back(value);
    } else {
      d.args.push_back(static_cast<int32_t>(value));
    }
  };
  d.args = {In{move.input}, Out{move.output}};
  push(move.from_start);
  push(move.to_start);
  for (int i = 0; i < rank; ++i) {
    push(axis(i).size);
    push(axis(i).from);
    push(axis(i).to);
  }
  d.defines = {{"T", std::string(WordOf(word))},
               {"IDX", wide ? "long" : "int"},
               {"RANK", StrCat(rank)},
               {"FLAT", flat ? "1" : "0"},
               {"UNIT", axis(0).from == 1 && axis(0).to == 1 ? "1" : "0"},
               {"GROUP", StrCat(group)},
               {"TILE", StrCat(kTile)},
               {"USE_LOCAL", local ? "1" : "0"}};
  return d;
}

Result<Recipe> MakeMoves(const Moves& moves, const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  for (const Move& move : moves) {
    if (move.elements() == 0) continue;
    const TensorDesc from = node.inputs[static_cast<size_t>(move.input)].desc();
    const TensorDesc to = node.outputs[static_cast<size_t>(move.output)].desc();
    ONCILLA_ASSIGN(Dispatch d,
                   MakeMove(move, BytesOf(from.dtype), from.elements(), to.elements(), caps));
    recipe.dispatches.push_back(std::move(d));
  }
  return recipe;
}

template <auto F>
constexpr KernelRow MoveRow(std::string_view op) {
  return {op, kFixedSize,
          [](const NodeView& node, const Capabilities& caps) -> Result<Recipe> {
            ONCILLA_ASSIGN(const Moves moves, MovesOf<F>(node));
            return MakeMoves(moves, node, caps);
          },
          nullptr, nullptr};
}

constexpr KernelRow kRows[] = {
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
};

}  // namespace

std::span<const KernelRow> MovementKernels() { return kRows; }

}  // namespace oncilla::opencl
