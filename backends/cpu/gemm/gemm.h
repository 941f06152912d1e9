// Fast products of float matrices, also used for convolutions.
//
// B is packed once into panels of as many columns as a tile has; A is read in place. Rows of A may
// have any stride and may consist of several runs ("taps"), so that a convolution over a padded
// channels-last input is the same product: an output pixel is a row, a row of its window is a run.
// Sums start at bias and residual, so that a tile ends with bounds and a store.
//
// Matrices may be stored in 16 bits: A is converted to float tile by tile, B as it is read, and
// results are rounded when a tile is done, so that all sums are of float. If the processor
// multiplies and adds two bfloat16 in one step, B is packed as pairs of them, and A is not
// converted.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

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
// Which taps of a convolution's windows read the input, and not only zeros around it. Taps are
// counted over three axes, the last one fastest.
struct SeenTaps {
  struct Range {
    int64_t begin, end;
  };
  int64_t count[3] = {1, 1, 1};  // of taps
  // Those that are seen: for each index along the lines' axes 1 and 2, and for each row of a line.
  std::vector<Range> axis[3];
};

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
  const SeenTaps* seen = nullptr;  // A is zero at all others, which may be left out; null: unknown
  int64_t run = 0;
  int64_t columns = 0;
  int64_t c_step = 0;  // elements from one row of C to the next, within a line
  // Above 0: sums are split into parts of so many steps of K, which keeps the rounding errors of
  // long sums small. Only for one line, one tap, float and no epilogue.
  int64_t partial_sum = 0;

  int64_t lines() const { return line_count[0] * line_count[1] * line_count[2]; }
  int64_t rows() const { return lines() * line_rows; }
  int64_t depth() const { return tap_count * run; }  // K
};

// Elements (k, n) and (k + 1, n) of a packed B, adjacent in memory.
struct BFloat16Pair {
  BFloat16 first, second;
};
// Whether this processor has an instruction for them that is faster than products of float, or that
// was requested by name (instruction_set.h). Packings and kernels depend on it.
bool MultipliesPairs();

// B has the same type as the others, or is float if these are 16-bit, or pairs if these are
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

// Columns of a panel on this machine; names of packings contain it.
int64_t PanelColumns();
// Rows of a tile and the instruction set, for descriptions ("14x32 AVX3").
const char* TileName();
const char* PairTileName();

// Number of elements of a packed B[depth][columns]: whole panels, the last one padded with zeros.
int64_t PackedElements(int64_t depth, int64_t columns);
// The same in elements of a packed form: a pair counts as one.
template <class Packed>
int64_t PackedCount(int64_t depth, int64_t columns) {
  return PackedElements(std::is_same_v<Packed, BFloat16Pair> ? depth / 2 + depth % 2 : depth,
                        columns);
}
// Packs panels [first, last) of B; element (k, n) is at b[k * row_step + n * column_step].
template <class T, class Packed>
void PackPanels(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                int64_t first, int64_t last, Packed* to);
// Packs all panels.
template <class T, class Packed>
void Pack(const Threads& threads, const T* b, int64_t row_step, int64_t column_step, int64_t depth,
          int64_t columns, Packed* to);

// How a product is divided into units of work: tasks over rows times tasks over panels.
struct Split {
  int64_t row_tasks = 1, panel_tasks = 1;
  int64_t tasks() const { return row_tasks * panel_tasks; }
};
// Depends on sizes only. `others` products of this size are computed in the same call.
Split SplitOf(const ProductSizes& product, int64_t others = 1);
// Computes one unit; units are independent.
template <class T, class StoredB>
void RunTask(const Product<T, StoredB>& product, const Split& split, int64_t task);
// Computes the whole product.
template <class StoredB>
void RunProduct(const Threads& threads, const Product<float, StoredB>& product);

// The sum of a[i] * b[i].
template <class T>
float Dot(const T* a, const T* b, int64_t count);

}  // namespace oncilla::cpu
