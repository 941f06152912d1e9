// Attributes and geometry of ops on the diagonals of matrices (the last two axes).
//
// Diagonal k of a matrix is at (i, i + k). A band of diagonals `lower` to `upper` is stored as [..,
// upper - lower + 1, longest], starting with the upper one; shorter ones are aligned left or right
// and padded. A single diagonal is stored without that first axis.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// MatrixDiagPart(x, *k, padding): the band k (one number, or lower and upper).
// MatrixDiag(diagonals, *k, *rows, *columns, padding): matrices of padding with this band; a size
// of -1 is the least that the band needs, or makes the matrix square.
// MatrixSetDiag(x, diagonals, *k): x with its band replaced.
struct DiagonalAttrs {
  // Alignment of the diagonals above the main one, then of those below it.
  std::string align = "right_left";  // or left_right, left_left, right_right
  void Fields(auto&& field) { field("align", align); }
};

struct Band {
  int64_t lower = 0, upper = 0;
  int64_t rows = 0, columns = 0, longest = 0;
  bool left_above = false, left_below = true;

  int64_t count() const { return upper - lower + 1; }
  // The length of diagonal k, and the index in its stored row at which it begins.
  int64_t Length(int64_t k) const;
  int64_t Begin(int64_t k) const;
};
// InvalidArgument when the band does not fit into a matrix of these sizes.
Result<Band> BandOf(const DiagonalAttrs& attrs, const std::vector<int64_t>& k, int64_t rows,
                    int64_t columns);
// The sizes of MatrixDiag's matrix, {rows, columns}, from the length of the stored diagonals.
Result<std::pair<int64_t, int64_t>> DiagSizes(const std::vector<int64_t>& k, int64_t longest,
                                              int64_t rows, int64_t columns);

}  // namespace oncilla
