// Merging adjacent axes of a broadcast into one.
#include "engine/ops/broadcast.h"

namespace oncilla {

bool BroadcastAxes::dense(int operand) const {
  int64_t expected = 1;
  for (int i = rank; i-- > 0; expected *= sizes[i]) {
    if (strides[operand][i] != expected) return false;
  }
  return true;
}

bool BroadcastAxes::scalar(int operand) const {
  for (int i = 0; i < rank; ++i) {
    if (strides[operand][i] != 0) return false;
  }
  return true;
}

BroadcastAxes MergeBroadcast(const Shape& out, std::span<const Shape> inputs) {
  BroadcastAxes axes;
  axes.elements = out.elements();
  axes.strides.resize(inputs.size());
  if (axes.elements == 0) {
    axes.rank = 1;
    return axes;
  }
  // The dense strides of each input, aligned with the output's last axis; 0 where it is broadcast.
  std::vector<BroadcastAxes::Strides> full(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    int64_t step = 1;
    for (int i = out.rank(), j = inputs[k].rank(); j-- > 0;) {
      --i;
      full[k][i] = inputs[k][j] == 1 ? 0 : step;
      step *= inputs[k][j];
    }
  }
  // Merge an axis with the one before it if that is contiguous for every input.
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == 1) continue;
    const int last = axes.rank - 1;
    bool merges = axes.rank > 0;
    for (size_t k = 0; k < inputs.size() && merges; ++k) {
      merges = axes.strides[k][last] == full[k][i] * out[i];
    }
    const int to = merges ? last : axes.rank++;
    axes.sizes[to] = (merges ? axes.sizes[to] : 1) * out[i];
    for (size_t k = 0; k < inputs.size(); ++k) axes.strides[k][to] = full[k][i];
  }
  return axes;
}

}  // namespace oncilla
