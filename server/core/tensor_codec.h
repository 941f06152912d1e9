// Tensors in the form of the protocol: datatypes by name, and elements as little-endian bytes,
// strings (BYTES) each after a length of four bytes. All sizes come from clients and are checked
// here.
#pragma once

#include <oncilla/oncilla.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/status.h"

namespace oncilla::server {

// A tensor as a request declares it.
struct TensorSpec {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
};

// The protocol's name of a type ("FP32"), or "" if it has none.
std::string_view DatatypeOf(oncilla_dtype dtype);
// InvalidArgument for a name that the protocol does not have.
absl::StatusOr<oncilla_dtype> DtypeOf(std::string_view datatype);
// The name that model configurations have for a datatype: "TYPE_FP32", "TYPE_STRING".
std::string ConfigTypeOf(std::string_view datatype);
// The bytes of an element; 0 for strings.
size_t ElementBytes(oncilla_dtype dtype);

// The number of elements of a shape. InvalidArgument for negative sizes and products above 2^62.
absl::StatusOr<size_t> ElementsOf(const std::string& name, const std::vector<int64_t>& shape);

// Copies the bytes of a tensor. InvalidArgument if their number does not fit the shape, a string's
// length exceeds the bytes, or a BOOL is neither 0 nor 1.
absl::StatusOr<Tensor> TensorFromRaw(const TensorSpec& spec, std::string_view bytes);
// A tensor of strings, whose number must fit the shape.
absl::StatusOr<Tensor> TensorFromStrings(const TensorSpec& spec,
                                         const std::vector<std::string>& strings);

// Zeros, or empty strings.
absl::StatusOr<Tensor> ZeroTensor(const std::string& name, oncilla_dtype dtype,
                                  const std::vector<int64_t>& shape);

// The size of AppendRaw's bytes. InvalidArgument for a string of 4 GiB or more.
absl::StatusOr<size_t> RawBytes(const Tensor& tensor);
void AppendRaw(const Tensor& tensor, std::string& bytes);

}  // namespace oncilla::server
