// Strided boxes (engine/ops/moves.h) as dispatches, and what kernels that walk over axes share.
//
//   MoveRow<ConcatMoves>("Concat")
#pragma once

#include "backends/opencl/recipe.h"
#include "engine/ops/moves.h"

namespace oncilla::opencl {

// Arguments of the kernels' index type: int, or long where a place may not fit one.
class Indices {
 public:
  // `reach`: the largest place, or number of work-items, that a kernel computes with.
  explicit Indices(int64_t reach) : wide_(reach > (int64_t{1} << 31) - 4096) {}
  std::string type() const { return wide_ ? "long" : "int"; }
  Arg operator()(int64_t value) const {
    if (wide_) return value;
    return static_cast<int32_t>(value);
  }

 private:
  bool wide_;
};

// A launch of one work-item per element along one axis.
void LaunchFlat(Dispatch& dispatch, int64_t elements, const Capabilities& caps);

// The type for moving elements of `bytes` in vectors of `width`: "uint", "uint4".
std::string VectorType(int64_t bytes, int64_t width);
// The widest vector, of at most 16 bytes, that evenly divides everything in `counts`.
int64_t VectorWidth(int64_t bytes, std::span<const int64_t> counts);

// Appends what copies the box between an input (or zeros) and an output of the node.
void AddMove(Recipe& recipe, Move move, int64_t element_bytes, const Capabilities& caps);
// y[i] = value for i < n, of elements of so many bytes.
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
