// Fast products of float matrices, and what convolutions make of them.
//
// B is packed once into panels of as many columns as a tile has; A is read where it stands. Rows of
// A may be apart by any step and may consist of several runs ("taps"), so that a convolution over a
// padded channels-last input is the same product: an output pixel is a row, a row of its window is
// a run. Sums start at bias and residual, so that a tile ends with bounds and a store.
//
// Matrices may be stored in 16 bits: A is widened tile by tile, B as it is read, and results are
// cut when a tile is done, so that sums are of float throughout. Where the processor multiplies and
// adds two bfloat16 in one step, B is packed as pairs of them, and A read as it is.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/base/half.h"
#include "engine/ops/math/activation.h"

namespace oncilla::cpu {

class Threads;  // kernel.h

// T: float, Half or BFloat16, in memory.
template <class T>
struct Epilogue {
  const T* bias = nullptr;      // one per column
  const T* residual = nullptr;  // laid out like C
  Activation activation = Activation::kNone;
};

// The sizes of C[row][column] = sum over taps t and i < run of A[row][t][i] * B[t * run +
// i][column].
struct ProductSizes {
  // Rows come in lines of `line_rows`; lines are counted over three axes.
  int64_t line_count[3] = {1, 1, 1};
  int64_t line_step[3] = {0, 0, 0};    // elements of A from one line's first row to the next's
  int64_t c_line_step[3] = {0, 0, 0};  // the same of C
  int64_t line_rows = 0;
  int64_t row_step = 0;           // elements from one row of A to the next
  int64_t run_step = 1;           // elements from one element of a run to the next
  const int64_t* taps = nullptr;  // where the runs of a row begin
  int64_t tap_count = 1;
  int64_t run = 0;
  int64_t columns = 0;
  int64_t c_step = 0;  // elements from one row of C to the next, within a line
  // Above 0: so many steps of K are added up apart, which keeps rounding errors of long sums small.
  // For one line, one tap, float and no epilogue.
  int64_t partial_sum = 0;

  int64_t lines() const { return line_count[0] * line_count[1] * line_count[2]; }
  int64_t rows() const { return lines() * line_rows; }
  int64_t depth() const { return tap_count * run; }  // K
};

// Elements (k, n) and (k + 1, n) of a packed B, side by side.
struct BFloat16Pair {
  BFloat16 first, second;
};
// Whether this processor has an instruction for them that is quicker than products of float, or
// that was asked for by name (instruction_set.h). Packings and kernels follow it.
bool MultipliesPairs();

// B is stored like the others, in 16 bits where these are of float, or as pairs where they are of
// bfloat16.
template <class T, class StoredB = T>
struct Product : ProductSizes {
  const T* a = nullptr;
  const StoredB* b = nullptr;  // packed
  T* c = nullptr;
  // Only for float and one tap: a factor for each element of a row of A, or null.
  const float* gate = nullptr;
  Epilogue<T> epilogue;
};

// Columns of a panel on this machine; packings are named after it.
int64_t PanelColumns();
// Rows of a tile and the instruction set, for descriptions ("14x32 AVX3").
const char* TileName();
const char* PairTileName();

// Elements that a packed B[depth][columns] takes: whole panels, the last one filled with zeros.
int64_t PackedElements(int64_t depth, int64_t columns);
// The same in elements of a packed form: a pair is one.
template <class Packed>
int64_t PackedCount(int64_t depth, int64_t columns) {
  return PackedElements(std::is_same_v<Packed, BFloat16Pair> ? depth / 2 + depth % 2 : depth,
                        columns);
}
// Packs panels [first, last) of B; element (k, n) stands at b[k * row_step + n * column_step].
template <class T, class Packed>
void PackPanels(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                int64_t first, int64_t last, Packed* to);
// All of it.
template <class T, class Packed>
void Pack(const Threads& threads, const T* b, int64_t row_step, int64_t column_step, int64_t depth,
          int64_t columns, Packed* to);

// How a product is cut into pieces of work: tasks over rows times tasks over panels.
struct Split {
  int64_t row_tasks = 1, panel_tasks = 1;
  int64_t tasks() const { return row_tasks * panel_tasks; }
};
// Depends on sizes only. `others` like products are computed in the same call.
Split SplitOf(const ProductSizes& product, int64_t others = 1);
// One piece; pieces are independent.
template <class T, class StoredB>
void RunTask(const Product<T, StoredB>& product, const Split& split, int64_t task);
// The whole product.
template <class StoredB>
void RunProduct(const Threads& threads, const Product<float, StoredB>& product);

// The sum of a[i] * b[i].
template <class T>
float Dot(const T* a, const T* b, int64_t count);

}  // namespace oncilla::cpu
