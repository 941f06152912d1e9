// Simplifying strided boxes: axes are sorted and contiguous ones merged.
#include "engine/ops/array/moves.h"

#include <algorithm>

namespace oncilla {

int64_t Move::elements() const {
  int64_t n = 1;
  for (const MoveAxis& axis : axes) {
    if (axis.size == 0) return 0;
    n = SaturatingMul(n, axis.size);
  }
  return n;
}

Move ZeroMove(const Shape& to) { return {kZeros, 0, 0, 0, {{to.elements(), 0, 1}}}; }

Move Simplified(Move move) {
  if (move.elements() == 0) {
    move.axes.assign(1, {0, 1, 1});
    return move;
  }
  auto& axes = move.axes;
  axes.erase(
      std::remove_if(axes.begin(), axes.end(), [](const MoveAxis& a) { return a.size == 1; }),
      axes.end());
  std::stable_sort(axes.begin(), axes.end(),
                   [](const MoveAxis& a, const MoveAxis& b) { return a.to > b.to; });
  for (size_t i = axes.size(); i-- > 1;) {
    MoveAxis& outer = axes[i - 1];
    const MoveAxis& inner = axes[i];
    if (outer.from == inner.size * inner.from && outer.to == inner.size * inner.to) {
      outer = {outer.size * inner.size, inner.from, inner.to};
      axes.erase(axes.begin() + static_cast<int64_t>(i));
    }
  }
  return move;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = SaturatingMul(strides[i + 1], std::max<int64_t>(shape[i + 1], 1));
  }
  return strides;
}

}  // namespace oncilla
