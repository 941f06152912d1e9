// What a step of a recurrent layer computes for the units of one sample once its products are done.
// Results may overwrite the state that they are computed from.
#pragma once

#include <cstdint>

namespace oncilla::cpu {

// `sum` holds the gates i, o, f, c; `peepholes` may be null.
void LstmUnits(const float* sum, const float* peepholes, bool input_forget, int64_t units,
               float* cell, float* y);

// reset = sigmoid(r) * h
void GruReset(const float* r, const float* h, int64_t units, float* reset);
// `sum` holds the gates z, r, h. With `gate` the reset is applied here: sum's h is then the state's
// part of the candidate, and gate's h the inputs' part. `bias` may be null.
void GruUnits(const float* sum, const float* gate, const float* bias, const float* h, int64_t units,
              float* y);

void RnnUnits(const float* sum, bool relu, int64_t units, float* y);

// Numbers as bytes: a number is (byte - zero) * step.
struct StateScale {
  float step = 1;
  int32_t zero = 0;
};
// Rounds a state of n numbers to 255 steps of its range, extended to contain zero, as the plain
// kernel does. The step is NaN if the plain kernel makes any of the numbers NaN, which then reaches
// every sum.
StateScale RoundToBytes(const float* h, int64_t n, uint8_t* bytes);
// Converts n sums of products of bytes, in place: gates + sum * step * scale.
float* ToGates(const float* gates, float step, const float* scales, int64_t n, int32_t* sums);

}  // namespace oncilla::cpu
