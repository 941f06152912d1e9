// Attributes of quantisation: by scale and zero point, and by TensorFlow's rules, which start from
// the range of the numbers. Ranges are single, or one for each place along `axis`.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// QuantizeLinear(x, scale, zero_point?) -> y of type `to`: x / scale in `precision`, to integers
// rounded half to even, zero_point added, cut to the range of `to` (a NaN becomes the zero of
// `to`). Scale and zero point hold one number; or one for each place along `axis`; or, with a
// block_size, one for each block of so many places along it, and then have the rank of x.
struct QuantizeLinearAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  DType to = DType::kU8;
  bool saturate = true;  // of floats of 8 bits: to the largest number, not to infinity or NaN
  DType precision = DType::kF32;
  void Fields(auto&& field) {
    field("axis", axis);
    field("block_size", block_size);
    field("to", to);
    field("saturate", saturate);
    field("precision", precision);
  }
};

// DequantizeLinear(x, scale, zero_point?) -> (x - zero_point) * scale, in f32, as type `to`.
struct DequantizeLinearAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  DType to = DType::kF32;
  void Fields(auto&& field) {
    field("axis", axis);
    field("block_size", block_size);
    field("to", to);
  }
};

// CastStored(x) -> x as type `to`, of which at least one only stores numbers (dtype.h). To floats
// of 8 and 4 bits numbers are rounded to nearest even, and what is too large becomes the largest
// number, or with saturate=false an infinity or NaN where the type has one. f8e8m0 is rounded to a
// power of two: up, down or nearest. To integers numbers are cut towards zero; of fewer than 8 bits
// the lowest bits are kept.
struct CastStoredAttrs {
  DType to = DType::kInvalid;
  bool saturate = true;
  std::string round = "up";
  void Fields(auto&& field) {
    field("to", to);
    field("saturate", saturate);
    field("round", round);
  }
};

// Which number of a scale or zero point goes with an element of x, x being [outer, places, inner]
// around the axis: outer * o + place * (j / block) + inner * i.
struct ParameterSteps {
  int64_t outer = 0, place = 0, inner = 0, block = 1;
};
struct ParameterPlaces {
  int64_t outer = 1, places = 1, inner = 1;  // of x
  ParameterSteps steps;
};
// InvalidArgument where the shapes do not fit.
Result<ParameterPlaces> PlacesOf(const Shape& x, const Shape& parameter, int64_t axis,
                                 int64_t block_size);

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
