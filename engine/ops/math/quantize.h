// Attributes of quantisation: by scale and zero point, and by TensorFlow's rules, which start from
// the range of the numbers. There is one range, or one per index along `axis`.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// QuantizeLinear(x, scale, zero_point?) -> y of type `to`: x / scale in `precision`, for integers
// rounded half to even, plus zero_point, saturated to the range of `to` (a NaN becomes the zero of
// `to`). Scale and zero point are one number; or one per index along `axis`; or, with a block_size,
// one for each block of that many indices along it, and then have the rank of x.
struct QuantizeLinearAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  DType to = DType::kU8;
  bool saturate = true;  // floats of 8 bits: to the largest number, not to infinity or NaN
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

// CastStored(x) -> x as type `to`; at least one of both types only stores numbers (dtype.h).
// Numbers are rounded to nearest even for floats of 8 and 4 bits; too large ones become the largest
// number, or with saturate=false an infinity or NaN if the type has one. f8e8m0 is rounded to a
// power of two: up, down or nearest. For integers numbers are truncated towards zero; for those of
// fewer than 8 bits only the lowest bits are kept.
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

// The index of the scale or zero point for an element (o, j, i) of x, where x is [outer, places,
// inner] around the axis: outer * o + place * (j / block) + inner * i.
struct ParameterSteps {
  int64_t outer = 0, place = 0, inner = 0, block = 1;
};
struct ParameterPlaces {
  int64_t outer = 1, places = 1, inner = 1;  // of x
  ParameterSteps steps;
};
// InvalidArgument when the shapes do not fit.
Result<ParameterPlaces> PlacesOf(const Shape& x, const Shape& parameter, int64_t axis,
                                 int64_t block_size);

// QuantizeRange(x f32, least, most) -> y of type `to`, and the actual range of y. min_combined: the
// range is divided into all steps; min_first: zero is on a step; scaled: only by a factor.
struct QuantizeRangeAttrs {
  std::string mode = "min_combined";
  DType to = DType::kU8;
  bool half_to_even = false;  // for scaled; else away from zero
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

// RoundToSteps(x, least?, most?) -> y like x: clipped to the range and rounded to 2^bits steps, of
// which one is zero; without a range, that of x itself is used.
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
