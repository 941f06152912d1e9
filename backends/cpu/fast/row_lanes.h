// Reductions and normalisations of rows of floats on vectors, with the best instruction set of this
// machine. Sums are computed in a fixed order that depends on the length only: vectors of partial
// sums over some thousand elements, and the sum of those in double; they agree with a double sum to
// about 1e-6. Products are computed in double.
#pragma once

#include <cstdint>

namespace oncilla::cpu {

enum class RowReduction : uint8_t { kSum, kSumSquare, kSumAbs, kMax, kMin, kProduct, kLogSumExp };

// The neutral element of the reduction.
double StartOf(RowReduction kind);
// Combines two partial results; for kMax and kMin NaN takes precedence.
double Combine(RowReduction kind, double a, double b);

// Over n contiguous elements; n may be 0.
double ReduceRow(RowReduction kind, const float* x, int64_t n);
// total[c] = Combine(total[c], x[r * step + c] over rows r) for c < width.
void ReduceColumns(RowReduction kind, const float* x, int64_t rows, int64_t step, int64_t width,
                   double* total);

// Softmax of a row of n >= 1; `y` may be `x`.
void SoftmaxRow(const float* x, float* y, int64_t n, bool log);
// The same down n rows of `width` elements, `step` apart.
void SoftmaxColumns(const float* x, float* y, int64_t n, int64_t step, int64_t width, bool log);

// (x - mean) / sqrt(variance + epsilon) * scale + offset; with `centered` false, x over its root
// mean square. scale and offset may be null.
void NormalizeRow(const float* x, float* y, int64_t n, bool centered, double epsilon,
                  const float* scale, const float* offset);

// Rows of `width` numbers, one after the other, with parameters for each column:
// total[c] += the sum of (x[r][c] - mean[c])^2 over rows r;
void AddSquaresAround(const float* mean, const float* x, int64_t rows, int64_t width,
                      double* total);
// y[r][c] = (x[r][c] - mean[c]) * factor[c] + offset[c]; `y` may be `x`.
void NormalizeColumns(const float* x, float* y, int64_t rows, int64_t width, const float* mean,
                      const float* factor, const float* offset);

}  // namespace oncilla::cpu
