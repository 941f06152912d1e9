// Products of bytes with sums in i32, and what becomes of the sums:
//
//   y[r][c] = end(bias[c] + the sum over i < k of (x[r][i] - x_zero) * (w[i][c] - w_zero[c]))
//
// Weights are packed in panels of columns, in one of two ways. As quads where the processor
// multiplies and adds four bytes in one step (quad_sums.h): x is then u8 and w i8, four of K side
// by side. As pairs elsewhere: both are widened to 16 bits, x less its zero point, two of K side by
// side. Bytes of the other sign are moved by 128, and their zero points with them. Zero points are
// taken off at the end:
//
//   sum (x - a)(w - b) = sum x w - a (sum w - k b) - b sum x
//
// All sums wrap around, so the order in which they are added makes no difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/cpu/integer/requantize.h"
#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Weights as they are stored: element (i, c) stands at i * row + c * column.
struct ByteMatrix {
  const std::byte* data = nullptr;
  bool is_signed = false;
  int64_t k = 0, n = 0, row = 0, column = 0;
};

// How operands are packed on this processor.
struct ByteLayout {
  bool quads = false;
  int64_t panel = 0;  // columns
  int64_t depth = 0;  // of K, side by side
  // Bytes of an element of x and of w.
  int64_t bytes() const { return quads ? 1 : 2; }
  int64_t Steps(int64_t k) const { return (k + depth - 1) / depth; }
  int64_t Panels(int64_t n) const { return (n + panel - 1) / panel; }
  int64_t PanelBytes(int64_t k) const { return SaturatingMul(RowBytes(k), panel); }
  // Bytes of a row of x as ByteFiller writes it.
  int64_t RowBytes(int64_t k) const { return Steps(k) * depth * bytes(); }
  // "quads32", which packings are named after.
  std::string name() const;
};
ByteLayout LayoutOfBytes();

// What packed weights take: panels, then the sum of each column. Saturates.
int64_t PackedByteSize(int64_t k, int64_t n);
// Packs panels [first, last).
void PackBytes(const ByteMatrix& w, int64_t first, int64_t last, std::byte* to);

// Bytes of x, counted from some place in it on, that stand side by side in a row from `at` on.
struct ByteRun {
  int64_t from = 0, at = 0, bytes = 0;
};

// Writes bytes of x in the form that a product reads.
class ByteFiller {
 public:
  // `zero`: the zero point of the bytes as they are given.
  ByteFiller(bool is_signed, int32_t zero)
      : layout_(LayoutOfBytes()), is_signed_(is_signed), zero_(zero) {}
  // n of them, to place `at` of a row.
  void Fill(const std::byte* x, int64_t n, std::byte* row, int64_t at = 0) const;
  // Many runs, the same for each of many rows.
  void FillRuns(const std::byte* x, std::span<const ByteRun> runs, std::byte* row) const;
  // n that stand for the real number 0.
  void FillZeros(int64_t n, std::byte* row) const;

 private:
  const ByteLayout layout_;
  const bool is_signed_;
  const int32_t zero_;
};

// The rows of x.
struct ByteRows {
  int64_t count = 0;
  // Where they stand as the product reads them, `step` bytes apart; null: they must be filled in.
  const std::byte* in_place = nullptr;
  int64_t step = 0;
  bool is_signed = false;
  int32_t zero = 0;
  const int32_t* zeros = nullptr;  // one for each row, in place of `zero`; or null
};
// Whether rows of k bytes can be read where they stand.
bool ReadsInPlace(int64_t k, bool is_signed);
// Writes rows [first, last) with a ByteFiller, each RowBytes of the layout behind the one before;
// called in parallel, at most once for each row.
using FillByteRows = absl::FunctionRef<void(int64_t first, int64_t last, std::byte* to)>;

// What else a product is made of. Zero points are those of the bytes as they are given.
struct ByteEnd {
  const int32_t* bias = nullptr;      // of each column, or null
  std::vector<int32_t> weight_zeros;  // of each column; empty where all are 0
  bool weights_signed = false;
  const RequantizeRule* rule = nullptr;  // null: the sums are stored as they are
  std::byte* y = nullptr;                // rows of n
};

void MultiplyBytes(const Threads& threads, const std::byte* packed, int64_t k, int64_t n,
                   const ByteRows& rows, FillByteRows fill, const ByteEnd& end);

}  // namespace oncilla::cpu
