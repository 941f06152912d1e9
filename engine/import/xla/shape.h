// Shapes in XLA's ops: reshapes to sizes that are known or those of other values, padding between
// elements, and axes moved to where a canonical op wants them.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// A size: the product of some axes of a value, or a number.
struct XlaSize {
  ValueId of = kNoValue;
  std::vector<int> axes = {};
  int64_t number = 1;  // without a value

  static XlaSize Number(int64_t number) { return {kNoValue, {}, number}; }
  static XlaSize Axis(ValueId of, int64_t axis) { return {of, {static_cast<int>(axis)}, 1}; }
};

// x with these sizes. A shape whose sizes are not known is computed while running.
Result<ValueId> ReshapeTo(Lowering& b, ValueId x, const std::vector<XlaSize>& sizes,
                          std::string_view role);
// The sizes as an i64 vector.
Result<ValueId> ShapeOf(Lowering& b, const std::vector<XlaSize>& sizes, std::string_view role);

// The axes [0, rank) that a list does not name, in order; and whether a list names each at most
// once, all in range.
std::vector<int64_t> OtherAxes(int rank, const std::vector<int64_t>& axes);
Status CheckAxes(const std::vector<int64_t>& axes, int rank, std::string_view what);
bool Names(const std::vector<int64_t>& axes, int64_t axis);

// XLA's Pad: `value` (a scalar) before, after and between the elements of each axis; negative
// numbers before and after crop.
struct XlaPadding {
  std::vector<int64_t> low, high, interior;
};
Result<ValueId> LowerXlaPad(Lowering& b, ValueId x, ValueId value, const XlaPadding& padding,
                            std::string_view role = "");
// The numbers [0, count) along `axis` of `rank` axes of which all others have size one.
Result<ValueId> CountsAlong(Lowering& b, int64_t count, int axis, int rank, DType dtype,
                            std::string_view role);
// Whether each element of a value is known to be its index along this axis.
bool IsCountAlong(const Graph& graph, ValueId value, int axis);

// x[start, start + size) of known sizes, moved until it fits. `starts` is a vector.
Result<ValueId> LowerXlaSlice(Lowering& b, ValueId x, ValueId starts, std::vector<int64_t> sizes);

// x rounded to a float of so many bits, where that is a type of its own.
Result<ValueId> LowerXlaPrecision(Lowering& b, ValueId x, int64_t exponent, int64_t mantissa);

}  // namespace oncilla
