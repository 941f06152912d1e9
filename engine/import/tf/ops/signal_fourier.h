// Fourier transforms of tensors whose last axis is the parts of complex numbers.
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

Result<Values> LowerFft(TfLowering& b);    // FFT and IFFT of one to three axes
Result<Values> LowerRfft(TfLowering& b);   // of real numbers, to the non-negative frequencies
Result<Values> LowerIrfft(TfLowering& b);  // back to real numbers

}  // namespace oncilla
