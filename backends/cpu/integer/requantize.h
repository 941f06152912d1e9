// Converts sums in i32 to integers of 8 or 16 bits, on vectors: shared by Requantize
// (engine/ops/nn/integer.h) and the epilogues of integer products.
#pragma once

#include <cstdint>

#include "engine/ops/nn/integer.h"
#include "engine/tensor/dtype.h"

namespace oncilla::cpu {

// One of `scales` (mode float, and real numbers) and `multipliers` with `shifts` (mode fixed) is
// set.
struct RequantizeRule {
  DType to = DType::kI8;  // f32: real numbers, sum * scale + term, by the factors of their columns
  const float* terms = nullptr;  // of real numbers; null: 0
  bool many_terms = false;
  const float* scales = nullptr;
  const int32_t *multipliers = nullptr, *shifts = nullptr;
  bool many = false;  // a factor for each sum of a row; else one for all
  int32_t x_zero = 0, left_shift = 0;
  int32_t zero = 0;
  int32_t least = 0, most = 0;  // of the result before the zero point is added

  bool fixed() const { return multipliers != nullptr; }
  bool real() const { return to == DType::kF32; }
};

struct Args;  // kernel.h
// The rule of a Requantize whose factors, zero point and shifts are inputs `first`, first + 1 and
// first + 2 of a node. Refuses shifts out of range.
Result<RequantizeRule> RuleOf(const RequantizeAttrs& attrs, const Args& args, size_t first);
// The rule of a product's epilogue, whose inputs follow the product's.
Result<RequantizeRule> RuleOf(const IntegerEpilogue& epilogue, const Args& args);

}  // namespace oncilla::cpu
