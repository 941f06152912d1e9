// Attributes of quantisation by TensorFlow's rules, which start from the range of the numbers.
// Ranges are single, or one for each place along `axis`.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// QuantizeRange(x f32, least, most) -> y of type `to`, and the range that y really has.
// min_combined: the range over all steps; min_first: with zero on a step; scaled: by one factor.
struct QuantizeRangeAttrs {
  std::string mode = "min_combined";
  DType to = DType::kU8;
  bool half_to_even = false;  // of scaled; else away from zero
  bool narrow = false;        // without the lowest number
  int64_t axis = -1;          // -1: one range
  double least_range = 0.01;  // what the range is widened to, times its size where that is above 1
  void Fields(auto&& field) {
    field("mode", mode);
    field("to", to);
    field("half_to_even", half_to_even);
    field("narrow", narrow);
    field("axis", axis);
    field("least_range", least_range);
  }
};

// DequantizeRange(x, least, most) -> f32.
struct DequantizeRangeAttrs {
  std::string mode = "min_combined";
  bool narrow = false;
  int64_t axis = -1;
  void Fields(auto&& field) {
    field("mode", mode);
    field("narrow", narrow);
    field("axis", axis);
  }
};

// RoundToSteps(x, least?, most?) -> y like x: cut to the range and rounded to steps of bits, zero
// being one; without a range to that of x itself.
struct RoundToStepsAttrs {
  int64_t bits = 8;
  bool is_signed = true;
  bool narrow = false;
  bool half_up = false;  // else to even
  int64_t axis = -1;
  void Fields(auto&& field) {
    field("bits", bits);
    field("is_signed", is_signed);
    field("narrow", narrow);
    field("half_up", half_up);
    field("axis", axis);
  }
};

}  // namespace oncilla
