// Converts TensorFlow's element types, shapes and tensors to ours.
//
// Fields follow tensor.proto, tensor_shape.proto and types.proto. Types that the engine does not
// have (resource, variant, floats of 8 bits) are kept as numbers and names, so that a model that
// only mentions one can be loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/import/wire/wire.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// Numbers of TensorFlow's DataType enum that readers need by name; a reference type is 100 more.
namespace tf_type {
inline constexpr int kFloat = 1, kInt32 = 3, kString = 7, kInt64 = 9, kBool = 10, kResource = 20;
inline constexpr int kVariant = 21, kReference = 100;
}  // namespace tf_type

// kInvalid for types that the engine does not have. Reference types count as the type they refer
// to.
DType DTypeFromTf(int64_t tf_type);
// "float", "resource", "int8_ref", ... or "type 99" for undefined numbers.
std::string TfTypeName(int64_t tf_type);

// The type of the two parts of complex numbers; other types are returned unchanged.
DType PartOf(DType dtype);
// Complex numbers in the form that graphs use: their parts along a last axis. The bytes are shared.
Result<Tensor> ComplexParts(const Tensor& tensor);

// TensorShapeProto. Throws WireError; any rank, every size known and >= 0 or unknown.
Result<PartialShape> ShapeFromTf(Bytes shape_proto);

// Limit on the bytes that constants may expand to: a TensorProto can describe a petabyte in a few
// bytes by repeating its last value. Views into the file do not count.
struct TfUnfoldBudget {
  int64_t bytes = int64_t{1} << 30;
};

// Reads a TensorProto. Tensor bytes that the message has as one block become a view that shares
// `owner`; lists of values are copied and padded with their last value. Element counts are checked
// before anything is allocated. Throws WireError.
Result<Tensor> TensorFromTf(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                            TfUnfoldBudget& budget);

}  // namespace oncilla
