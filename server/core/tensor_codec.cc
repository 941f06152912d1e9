// Converts between the protocol's bytes and tensors.
#include "server/core/tensor_codec.h"

#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors go over the wire as they lie in memory");

struct DatatypeRow {
  std::string_view name;
  oncilla_dtype dtype;
  size_t bytes;
};

constexpr DatatypeRow kDatatypes[] = {
    {"BOOL", ONCILLA_BOOL, 1},     {"UINT8", ONCILLA_UINT8, 1},   {"UINT16", ONCILLA_UINT16, 2},
    {"UINT32", ONCILLA_UINT32, 4}, {"UINT64", ONCILLA_UINT64, 8}, {"INT8", ONCILLA_INT8, 1},
    {"INT16", ONCILLA_INT16, 2},   {"INT32", ONCILLA_INT32, 4},   {"INT64", ONCILLA_INT64, 8},
    {"FP16", ONCILLA_FLOAT16, 2},  {"FP32", ONCILLA_FLOAT32, 4},  {"FP64", ONCILLA_FLOAT64, 8},
    {"BF16", ONCILLA_BFLOAT16, 2}, {"BYTES", ONCILLA_STRING, 0},
};

std::string InputNamed(const std::string& name) { return StrCat("input '", name, "'"); }

absl::StatusOr<std::vector<std::string>> ParseStrings(const TensorSpec& spec, size_t count,
                                                      std::string_view bytes) {
  std::vector<std::string> strings;
  size_t at = 0;
  while (at < bytes.size()) {
    uint32_t length = 0;
    if (bytes.size() - at < sizeof(length)) {
      return absl::InvalidArgumentError(
          StrCat(InputNamed(spec.name), " ends inside the length of string ", strings.size()));
    }
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    at += sizeof(length);
    if (length > bytes.size() - at) {
      return absl::InvalidArgumentError(StrCat(InputNamed(spec.name), ": string ", strings.size(),
                                               " has ", length, " bytes, and only ",
                                               bytes.size() - at, " follow"));
    }
    if (strings.size() == count) break;
    strings.emplace_back(bytes.substr(at, length));
    at += length;
  }
  if (at != bytes.size() || strings.size() != count) {
    return absl::InvalidArgumentError(StrCat(InputNamed(spec.name), " holds ",
                                             strings.size() < count ? "fewer" : "more",
                                             " strings than its shape has elements (", count, ")"));
  }
  return strings;
}

}  // namespace

std::string_view DatatypeOf(oncilla_dtype dtype) {
  for (const DatatypeRow& row : kDatatypes) {
    if (row.dtype == dtype) return row.name;
  }
  return "";
}

absl::StatusOr<oncilla_dtype> DtypeOf(std::string_view datatype) {
  for (const DatatypeRow& row : kDatatypes) {
    if (row.name == datatype) return row.dtype;
  }
  const std::string known = absl::StrJoin(
      kDatatypes, ", ", [](std::string* out, const DatatypeRow& row) { StrAppend(out, row.name); });
  return absl::InvalidArgumentError(
      StrCat("there is no datatype '", datatype.substr(0, 40), "'; there are ", known));
}

std::string ConfigTypeOf(std::string_view datatype) {
  return StrCat("TYPE_", datatype == "BYTES" ? "STRING" : datatype);
}

size_t ElementBytes(oncilla_dtype dtype) {
  for (const DatatypeRow& row : kDatatypes) {
    if (row.dtype == dtype) return row.bytes;
  }
  return 0;
}

absl::StatusOr<size_t> ElementsOf(const std::string& name, const std::vector<int64_t>& shape) {
  constexpr size_t kMostAxes = 64;
  if (shape.size() > kMostAxes) {
    return absl::InvalidArgumentError(StrCat(InputNamed(name), " has ", shape.size(), " axes"));
  }
  uint64_t elements = 1;
  bool empty = false, overflow = false;
  for (const int64_t size : shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(StrCat(InputNamed(name), " has an axis of ", size,
                                               " in its shape; a request gives all sizes"));
    }
    if (size == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements) ||
                  elements > 1ull << 62;
  }
  if (empty) return 0;
  if (overflow)
    return absl::InvalidArgumentError(StrCat(InputNamed(name), " has a shape that is too large"));
  return elements;
}

absl::StatusOr<Tensor> TensorFromRaw(const TensorSpec& spec, std::string_view bytes) {
  const auto dtype = DtypeOf(spec.datatype);
  if (!dtype.ok()) return dtype.status();
  const auto elements = ElementsOf(spec.name, spec.shape);
  if (!elements.ok()) return elements.status();
  if (*dtype == ONCILLA_STRING) {
    auto strings = ParseStrings(spec, *elements, bytes);
    if (!strings.ok()) return strings.status();
    return TensorFromStrings(spec, *strings);
  }
  const size_t each = ElementBytes(*dtype);
  if (bytes.size() % each != 0 || bytes.size() / each != *elements) {
    return absl::InvalidArgumentError(
        StrCat(InputNamed(spec.name), " has ", bytes.size(), " bytes of data; ", spec.datatype, "[",
               absl::StrJoin(spec.shape, ","), "] has ", *elements, " elements of ", each));
  }
  if (*dtype == ONCILLA_BOOL) {
    for (const char c : bytes) {
      if (c != 0 && c != 1) {
        return absl::InvalidArgumentError(
            StrCat(InputNamed(spec.name), " has a BOOL that is neither 0 nor 1"));
      }
    }
  }
  auto tensor = Tensor::Copy(*dtype, spec.shape, bytes.data(), bytes.size());
  if (!tensor.ok()) return FromEngine(tensor.status(), InputNamed(spec.name));
  return *std::move(tensor);
}

absl::StatusOr<Tensor> TensorFromStrings(const TensorSpec& spec,
                                         const std::vector<std::string>& strings) {
  const auto elements = ElementsOf(spec.name, spec.shape);
  if (!elements.ok()) return elements.status();
  if (strings.size() != *elements) {
    return absl::InvalidArgumentError(StrCat(InputNamed(spec.name), " has ", strings.size(),
                                             " strings, and its shape ", *elements, " elements"));
  }
  auto tensor = Tensor::Strings(spec.shape, strings);
  if (!tensor.ok()) return FromEngine(tensor.status(), InputNamed(spec.name));
  return *std::move(tensor);
}

absl::StatusOr<Tensor> ZeroTensor(const std::string& name, oncilla_dtype dtype,
                                  const std::vector<int64_t>& shape) {
  const auto elements = ElementsOf(name, shape);
  if (!elements.ok()) return elements.status();
  if (dtype == ONCILLA_STRING)
    return TensorFromStrings({name, "BYTES", shape}, std::vector<std::string>(*elements));
  const std::string zeros(*elements * ElementBytes(dtype), '\0');
  auto tensor = Tensor::Copy(dtype, shape, zeros.data(), zeros.size());
  if (!tensor.ok()) return FromEngine(tensor.status(), InputNamed(name));
  return *std::move(tensor);
}

absl::StatusOr<size_t> RawBytes(const Tensor& tensor) {
  if (tensor.dtype() != ONCILLA_STRING) return tensor.bytes();
  size_t total = 0;
  for (size_t i = 0; i < tensor.size(); ++i) {
    size_t length = 0;
    oncilla_tensor_string(tensor.get(), i, &length);
    if (length > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          "an output has a string of 4 GiB or more, which BYTES cannot carry");
    }
    total += sizeof(uint32_t) + length;
  }
  return total;
}

void AppendRaw(const Tensor& tensor, std::string& bytes) {
  if (tensor.dtype() != ONCILLA_STRING) {
    bytes.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    return;
  }
  for (size_t i = 0; i < tensor.size(); ++i) {
    size_t length = 0;
    const char* text = oncilla_tensor_string(tensor.get(), i, &length);
    const auto prefix = static_cast<uint32_t>(length);
    bytes.append(reinterpret_cast<const char*>(&prefix), sizeof(prefix));
    bytes.append(text, length);
  }
}

}  // namespace oncilla::server
