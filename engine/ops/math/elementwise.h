// The elementwise family: rows of one table of expressions (elementwise_table.inc), from which
// inference, kernels and fusion are derived.
#pragma once

#include <span>

#include "engine/ops/op_def.h"
#include "engine/tensor/dtype_set.h"

namespace oncilla {

// The classes of dtypes that an expression may support.
enum class ElementClass : uint8_t { kFloat, kInteger, kBool };
ElementClass ClassOf(DType dtype);

enum ElementwiseFlags : uint8_t {
  kNoFlags = 0,
  kToBool = 1,          // the result is a condition: dtype bool
  kIsCast = 2,          // the result's dtype is an attribute
  kConditionFirst = 4,  // x is bool; the others give the dtype
  kDivides = 8,         // for integers, a zero in y fails the run
  kOptionalBounds = 16  // y and z may be absent: the lowest and the highest number
};

// Attributes of a row: up to two numbers or flags, or one flag that selects the next row.
struct ElementwiseParams {
  int count = 0;
  bool flags = false;
  bool variant = false;
  std::string_view names[2] = {};
  double defaults[2] = {};
};

struct ElementwiseRow {
  std::string_view name;
  int inputs;  // at most; the least is 1 with kOptionalBounds
  ElementwiseParams params;
  uint8_t flags;
  StorageRule storage;
  // The expression for each ElementClass as C text; empty where the op does not take the class.
  std::string_view text[3];

  constexpr bool takes(ElementClass c) const { return !text[static_cast<int>(c)].empty(); }
  constexpr int min_inputs() const { return (flags & kOptionalBounds) != 0 ? 1 : inputs; }
};

// All rows in the table's order, variants included.
std::span<const ElementwiseRow> ElementwiseRows();
// By name, variants included; null when there is none.
const ElementwiseRow* FindElementwise(std::string_view name);

// A row with its attributes read.
struct ElementwiseCall {
  const ElementwiseRow* row = nullptr;
  double alpha = 0;
  double beta = 0;
  DType to = DType::kInvalid;  // of Cast
};
Result<ElementwiseCall> ReadElementwise(const ElementwiseRow& row, const AttrMap& attrs);

// The dtype of the result, or a refusal. kInvalid is used for an absent input.
Result<DType> ResultOf(const ElementwiseCall& call, std::span<const DType> in);

// A parameter rounded to this dtype, at least to float.
double ParameterAs(DType dtype, double value);

struct CastAttrs {
  DType to = DType::kInvalid;
  void Fields(auto&& field) { field("to", to); }
};

// The dtypes that the first input of such an op may have.
DTypeSet FirstDTypes(const OpDef& op);

}  // namespace oncilla
