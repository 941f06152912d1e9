// What passes ask about quantised tensors: the parameters of QuantizeLinear and DequantizeLinear
// where these are known, and where a value was dequantised.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/passes/axis_order.h"
#include "engine/passes/rewrite.h"

namespace oncilla {

// An integer q stands for scale * (q - zero). One scale and zero point for all, or one for each
// place along `axis`.
struct LinearParameters {
  DType dtype = DType::kInvalid;  // of the integers
  std::vector<float> scales;      // finite, above zero
  std::vector<int64_t> zeros;     // one, or as many as scales
  int axis = -1;                  // -1: one for all
  ValueId zero = kNoValue;        // the constant that holds the zero points; kNoValue: all are 0

  bool single() const { return axis < 0; }
  // The largest |q - zero|.
  int64_t Reach() const;
  // The same numbers stand for the same integers; both are single.
  bool SameAs(const LinearParameters& other) const;
};

// The parameters of a QuantizeLinear or DequantizeLinear between f32 and integers of 8 to 32 bits
// that are constants without blocks; nothing for any other node.
std::optional<LinearParameters> ParametersOf(const Graph& graph, const Node& node);

// Every element of the results is one of input 0 (of all inputs, where the op's axes say so), at
// another place: nothing is computed, filled up or left open.
bool OnlyMoves(const OpDef& op);

// A value that is DequantizeLinear of `integers`, its axes then in another order.
struct Dequantised {
  ValueId integers = kNoValue;
  LinearParameters parameters;  // their axis is that of the value
  AxisOrder order;              // empty: as they are
  NodeId from = kNoNode;        // the DequantizeLinear
};
std::optional<Dequantised> DequantisedBefore(const Graph& graph, ValueId value);

// The integers in the order of the value's axes.
Result<ValueId> AddIntegers(Patch& patch, const Dequantised& value);

// What QuantizeLinear with these single parameters makes of a number that is not NaN.
int64_t QuantisedNumber(const LinearParameters& parameters, double number);

}  // namespace oncilla
