// Products of bytes with sums in i32, and the conversion of the sums:
//
//   y[r][c] = end(bias[c] + the sum over i < k of (x[r][i] - x_zero) * (w[i][c] - w_zero[c]))
//
// Weights are packed in panels of columns, in one of two ways. As quads if the processor multiplies
// and adds four bytes in one step (quad_sums.h): x is then u8 and w i8, with four elements along K
// adjacent. Otherwise as pairs: both are widened to 16 bits, x minus its zero point, with two
// elements along K adjacent. Bytes of the other signedness are offset by 128, and their zero points
// with them. Zero points are subtracted at the end:
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

// Weights as they are stored: element (i, c) is at i * row + c * column.
struct ByteMatrix {
  const std::byte* data = nullptr;
  bool is_signed = false;
  int64_t k = 0, n = 0, row = 0, column = 0;
};

// k x n, dense.
inline ByteMatrix DenseBytes(const std::byte* data, bool is_signed, int64_t k, int64_t n) {
  return {data, is_signed, k, n, n, 1};
}

// How operands are packed on this processor.
struct ByteLayout {
  bool quads = false;
  int64_t panel = 0;  // columns
  int64_t depth = 0;  // adjacent elements along K
  // Bytes of an element of x and of w.
  int64_t bytes() const { return quads ? 1 : 2; }
  int64_t Steps(int64_t k) const { return (k + depth - 1) / depth; }
  int64_t Panels(int64_t n) const { return (n + panel - 1) / panel; }
  int64_t PanelBytes(int64_t k) const { return SaturatingMul(RowBytes(k), panel); }
  // Bytes of a row of x as ByteFiller writes it.
  int64_t RowBytes(int64_t k) const { return Steps(k) * depth * bytes(); }
  // "quads32", which names of packings contain.
  std::string name() const;
};
ByteLayout LayoutOfBytes();

// The size of packed weights: panels, then the sum of each column. Saturates.
int64_t PackedByteSize(int64_t k, int64_t n);
// Packs panels [first, last).
void PackBytes(const ByteMatrix& w, int64_t first, int64_t last, std::byte* to);

// Packs all panels.
void PackAllBytes(const Threads& threads, const ByteMatrix& w, std::byte* to);
// How constant weights like `w` are packed; `order` is part of the packing's name.
CpuPacking PackingOfBytes(const ByteMatrix& w, std::string_view order);

// Bytes of x at an offset that are contiguous in a row from `at` on.
struct ByteRun {
  int64_t from = 0, at = 0, bytes = 0;
};

// Writes bytes of x in the form that a product reads.
class ByteFiller {
 public:
  // `zero`: the zero point of the bytes as they are passed.
  ByteFiller(bool is_signed, int32_t zero)
      : layout_(LayoutOfBytes()), is_signed_(is_signed), zero_(zero) {}
  // Writes n of them at offset `at` of a row.
  void Fill(const std::byte* x, int64_t n, std::byte* row, int64_t at = 0) const;
  // Writes many runs, the same ones for each of many rows.
  void FillRuns(const std::byte* x, std::span<const ByteRun> runs, std::byte* row) const;
  // Writes n that represent the real number 0.
  void FillZeros(int64_t n, std::byte* row) const;

 private:
  const ByteLayout layout_;
  const bool is_signed_;
  const int32_t zero_;
};

// The rows of x.
struct ByteRows {
  int64_t count = 0;
  // The rows in the form that the product reads, `step` bytes apart; null: they must be written
  // first.
  const std::byte* in_place = nullptr;
  int64_t step = 0;
  bool is_signed = false;
  int32_t zero = 0;
  const int32_t* zeros = nullptr;  // one for each row, in place of `zero`; or null
};
// Whether rows of k bytes can be read without being copied.
bool ReadsInPlace(int64_t k, bool is_signed);
// Writes rows [first, last) with a ByteFiller, each RowBytes of the layout behind the one before;
// called in parallel, at most once for each row.
using FillByteRows = absl::FunctionRef<void(int64_t first, int64_t last, std::byte* to)>;

// The further operands of a product. Zero points are those of the bytes as they are passed.
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
