// Exact arithmetic on quantised tensors: convolutions and matrix products of 8- and 16-bit integers
// with integer sums, and the conversion of sums to integers of another scale.
//
// An integer q represents the real number scale * (q - zero point). These ops subtract zero points,
// and leave scales to Requantize.
#pragma once

#include <cstdint>
#include <span>

#include "engine/ops/math/matmul.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/op_def.h"

namespace oncilla {

struct RequantizeAttrs;

// What a product does with its sums: nothing, or the same as a Requantize of mode `requantize`
// (float or fixed), with one factor or one per index of the last axis; its inputs follow the
// product's: scale, zero?, shift?. Or, with `real`, it computes the real numbers float(sum) * scale
// + term, rounding after each operation: then `to` is f32, and scale and term?, both f32, follow
// the product's inputs, each one number or one per index of the last axis.
struct IntegerEpilogue {
  std::string requantize = "none";
  DType to = DType::kI8;
  int64_t least = INT32_MIN, most = INT32_MAX;
  void Fields(auto&& field) {
    field("requantize", requantize);
    field("to", to);
    field("least", least);
    field("most", most);
  }
  bool none() const { return requantize == "none"; }
  bool real() const { return requantize == "real"; }
};
// For an epilogue that is not `real`.
RequantizeAttrs AsRequantize(const IntegerEpilogue& epilogue);

// x[N, spatial.., Cin], filter[spatial.., Cin/groups, Cout], x_zero?, filter_zero?, bias[Cout]?,
// epilogue's.. -> the sums of (x - x_zero) * (filter - filter_zero), plus bias. x is u8, i8 or i16,
// the filter u8 or i8; a zero point has the type of its operand and is one number, that of x may
// also be one per sample, the filter's one per output channel. Padding adds nothing: it represents
// the real number 0. Sums have the bias's type, i32 or i64; without a bias, i64 for an x of i16 and
// else i32. They wrap around.
struct ConvIntegerAttrs {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad = "explicit";
  int64_t groups = 1;
  IntegerEpilogue epilogue = {};
  void Fields(auto&& field) {
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("auto_pad", auto_pad);
    field("groups", groups);
    epilogue.Fields(field);
  }
};

// a[.., M, K], b[.., K, N], a_zero?, b_zero?, bias[N]?, epilogue's.. -> the sums of (a - a_zero) *
// (b - b_zero), plus bias, by the rules of MatMul and with the types of ConvInteger. A zero point
// is one number, or a vector with one for each row of a or column of b.
struct MatMulIntegerAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  IntegerEpilogue epilogue = {};
  void Fields(auto&& field) {
    field("transpose_a", transpose_a);
    field("transpose_b", transpose_b);
    epilogue.Fields(field);
  }
};

// The type of a product's sums, before an epilogue; `bias` may be absent.
DType SumType(DType x, const Fact* bias);

// x (an integer of at most 32 bits, or i64), scale, zero[to]?, shift[i32]? -> y, integers of type
// `to` with another scale: y = round((x - x_zero) * factor) + zero, saturated to the range of `to`
// and to [least, most]. scale and shift are one number, or a vector with one per index along
// `axis`.
//
// mode float (ONNX Runtime's rule): scale is f32 and the factor; x - x_zero is converted to float,
// and ties go to even. NaN becomes the least number.
// mode fixed (TFLite's rule): scale is i32 and the factor is scale * 2^(shift - 31), shift from -31
// to 30. x - x_zero is first shifted left by `left_shift` bits, in 32 bits that wrap around; the
// product is rounded to 2^-31 with ties towards positive infinity, and shifted right with ties away
// from zero. An x of i64 has its factor reduced to 15 bits and is rounded once, ties towards
// positive infinity; its shift is at most 14.
struct RequantizeAttrs {
  std::string mode = "float";
  DType to = DType::kI8;
  int64_t axis = -1;
  int64_t x_zero = 0;
  int64_t left_shift = 0;
  int64_t least = INT32_MIN, most = INT32_MAX;
  void Fields(auto&& field) {
    field("mode", mode);
    field("to", to);
    field("axis", axis);
    field("x_zero", x_zero);
    field("left_shift", left_shift);
    field("least", least);
    field("most", most);
  }
};

ConvAttrs AsConv(const ConvIntegerAttrs& attrs);
MatMulAttrs AsMatMul(const MatMulIntegerAttrs& attrs);

// x of a Requantize as [outer, count, inner] around its axis; `count` is 1 if there is one factor.
struct RequantizeSpan {
  int64_t outer = 1, count = 1, inner = 1;
};
RequantizeSpan SpanOf(const RequantizeAttrs& attrs, const Shape& x, const Shape& scale);

// The integers that `to`, least and most allow.
struct IntegerRange {
  int64_t least = 0, most = 0;
};
IntegerRange RangeOf(const RequantizeAttrs& attrs);

// Refuses shifts that mode fixed does not support for an x of this type.
Status CheckShifts(DType x, std::span<const int32_t> shifts);

// The rules of mode fixed; every engine that runs TFLite files must round the same way.
inline int32_t MultiplyFixed(int32_t x, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  const auto wide = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(x) << left));
  if (wide == INT32_MIN && multiplier == INT32_MIN) return INT32_MAX >> right;
  const int64_t high = (wide * multiplier + (int64_t{1} << 30)) >> 31;
  const int64_t mask = (int64_t{1} << right) - 1;
  const int64_t above = (mask >> 1) + (high < 0 ? 1 : 0);
  return static_cast<int32_t>((high >> right) + ((high & mask) > above ? 1 : 0));
}
inline int32_t MultiplyFixed(int64_t x, int32_t multiplier, int32_t shift) {
  const int64_t reduced =
      multiplier < 0x7FFF0000 ? (int64_t{multiplier} + (int64_t{1} << 15)) >> 16 : 0x7FFF;
  const int32_t total = 15 - shift;
  const uint64_t product =
      static_cast<uint64_t>(x) * static_cast<uint64_t>(reduced) + (uint64_t{1} << (total - 1));
  return static_cast<int32_t>(static_cast<int64_t>(product) >> total);
}

}  // namespace oncilla
