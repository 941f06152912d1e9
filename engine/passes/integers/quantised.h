// Queries on quantised tensors: the parameters of QuantizeLinear and DequantizeLinear, where they
// are constants, and the DequantizeLinear that a value comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/passes/axis_order.h"
#include "engine/passes/rewrite.h"

namespace oncilla {

// An integer q represents scale * (q - zero). One scale and zero point for the tensor, or one per
// index along `axis`.
struct LinearParameters {
  DType dtype = DType::kInvalid;  // of the integers
  std::vector<float> scales;      // finite, above zero
  std::vector<int64_t> zeros;     // one, or as many as scales
  int axis = -1;                  // -1: one for all
  ValueId zero = kNoValue;        // the constant that holds the zero points; kNoValue: all are 0

  bool single() const { return axis < 0; }
  // The largest |q - zero|.
  int64_t Reach() const;
  // Whether both represent the same numbers by the same integers; both must be single.
  bool SameAs(const LinearParameters& other) const;
};

// The parameters of a QuantizeLinear or DequantizeLinear, without blocks, between f32 and integers
// of 8 to 32 bits; nothing for any other node, or if they are not constants.
std::optional<LinearParameters> ParametersOf(const Graph& graph, const Node& node);

// Whether every element of the results is an element of input 0 (of all inputs, where the op's axes
// say so) at another index: nothing is computed, padded or left undefined.
bool OnlyMoves(const OpDef& op);

// A value that is the result of a DequantizeLinear of `integers`, then transposed by `order`.
struct Dequantised {
  ValueId integers = kNoValue;
  LinearParameters parameters;  // their axis is that of the value
  AxisOrder order;              // empty: not transposed
  NodeId from = kNoNode;        // the DequantizeLinear
};
std::optional<Dequantised> DequantisedBefore(const Graph& graph, ValueId value);

// Adds the integers with their axes in the value's order.
Result<ValueId> AddIntegers(Patch& patch, const Dequantised& value);

// What QuantizeLinear with these single parameters yields for a number that is not NaN.
int64_t QuantisedNumber(const LinearParameters& parameters, double number);

}  // namespace oncilla
