// Strided boxes (engine/ops/array/moves.h) as dispatches, and what kernels that iterate over axes
// share.
//
//   MoveRow<ConcatMoves>("Concat")
#pragma once

#include "backends/opencl/recipes/recipe.h"
#include "engine/ops/array/moves.h"

namespace oncilla::opencl {

// The type for moving elements of `bytes` in vectors of `width`: "uint", "uint4".
std::string VectorType(int64_t bytes, int64_t width);
// The widest vector, of at most 16 bytes, that evenly divides everything in `counts`.
int64_t VectorWidth(int64_t bytes, std::span<const int64_t> counts);

// Appends a copy of the box between an input (or zeros) and an output of the node.
void AddMove(Recipe& recipe, Move move, int64_t element_bytes, const Capabilities& caps);
// y[i] = value for i < n, with elements of so many bytes.
void AddFill(Recipe& recipe, Arg to, int64_t n, int64_t value, int64_t element_bytes,
             const Capabilities& caps);

namespace internal {
template <auto F>
Result<Recipe> MakeMoves(const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(Moves moves, MovesOf<F>(node));
  Recipe recipe;
  for (Move& move : moves) {
    const int64_t bytes = BytesOf(node.outputs[move.output].dtype);
    AddMove(recipe, std::move(move), bytes, caps);
  }
  return recipe;
}
}  // namespace internal

template <auto F>
constexpr KernelRow MoveRow(std::string_view op) {
  return {op, kFixedSize, &internal::MakeMoves<F>, nullptr, nullptr};
}

}  // namespace oncilla::opencl
