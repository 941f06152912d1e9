// RunError: an error in the data that a kernel found, as the 32-bit word that is read with a run's
// outputs: bits 8-30 the step plus one, bits 0-7 the cause. cl_kernels/common/error.clh writes it.
#pragma once

#include <cstdint>
#include <string_view>

namespace oncilla::opencl {

inline constexpr int32_t kMostErrorSteps = (1 << 23) - 2;

struct RunError {
  int32_t step;
  int32_t cause;
  static RunError FromWord(int32_t word) { return {(word >> 8) - 1, word & 0xff}; }
  std::string_view text() const {
    switch (cause) {
      case 1:
        return "an index is out of range";
      case 2:
        return "integer division by zero";
      default:
        return "the data is not acceptable";
    }
  }
};

}  // namespace oncilla::opencl
