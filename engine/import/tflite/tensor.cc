// Types, and constants in all their forms.
#include "engine/import/tflite/tensor.h"

#include <algorithm>
#include <limits>

#include "engine/base/work_limits.h"
#include "engine/import/tflite/sparse.h"

namespace oncilla {
namespace {

struct TypeRow {
  std::string_view name;
  DType dtype = DType::kInvalid;
  int packed_bits = 0;  // for integers narrower than a byte
};

// The schema's TensorType, by number.
constexpr TypeRow kTypes[] = {
    {"FLOAT32", DType::kF32},
    {"FLOAT16", DType::kF16},
    {"INT32", DType::kI32},
    {"UINT8", DType::kU8},
    {"INT64", DType::kI64},
    {"STRING", DType::kString},
    {"BOOL", DType::kBool},
    {"INT16", DType::kI16},
    {"COMPLEX64"},
    {"INT8", DType::kI8},
    {"FLOAT64", DType::kF64},
    {"COMPLEX128"},
    {"UINT64", DType::kU64},
    {"RESOURCE"},
    {"VARIANT"},
    {"UINT32", DType::kU32},
    {"UINT16", DType::kU16},
    {"INT4", DType::kI8, 4},
    {"BFLOAT16", DType::kBF16},
    {"INT2", DType::kI8, 2},
    {"UINT4", DType::kU8, 4},
    {"FLOAT8_E4M3FN"},
    {"FLOAT8_E5M2"},
};

const TypeRow* FindType(int64_t type) {
  return type >= 0 && type < std::ssize(kTypes) ? &kTypes[type] : nullptr;
}

// Packed integers fill a byte from its low bits on.
Result<Tensor> Unpack(const TensorDesc& desc, int bits, std::string_view data) {
  const int64_t each = 8 / bits, bytes = desc.elements() / each + (desc.elements() % each != 0);
  if (bytes != std::ssize(data)) {
    return DataLoss("a tensor ", desc, " of ", bits, " bits each needs ", bytes, " bytes and has ",
                    data.size());
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(desc));
  const std::span<int8_t> to = out.MutableAs<int8_t>();
  for (size_t i = 0; i < to.size(); ++i) {
    const int per = static_cast<int>(each);
    const int shift = static_cast<int>(i % static_cast<size_t>(per)) * bits;
    const int value = static_cast<uint8_t>(data[i / static_cast<size_t>(per)]) >> shift;
    const int cut = value & ((1 << bits) - 1);
    const bool negative = desc.dtype == DType::kI8 && (cut >> (bits - 1)) != 0;
    to[i] = static_cast<int8_t>(negative ? cut - (1 << bits) : cut);
  }
  return out;
}

// The number of strings, the offset of each and of the end, then the characters.
Result<Tensor> ReadStrings(const TensorDesc& desc, std::string_view data) {
  const auto number = [&](size_t i) {
    int32_t value = 0;
    std::memcpy(&value, data.data() + 4 * i, 4);
    return value;
  };
  const int64_t count = data.size() < 4 ? -1 : number(0);
  if (count != desc.elements() || count > (std::ssize(data) - 4) / 4 - 1) {
    return DataLoss("a tensor ", desc, " has ", count, " strings");
  }
  std::vector<std::string> values;
  Growth growth;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t begin = number(i + 1), end = number(i + 2);
    if (begin < 0 || end < begin || end > std::ssize(data)) {
      return DataLoss("string ", i, " lies outside of its tensor");
    }
    ONCILLA_TRY(growth.Add(end - begin + static_cast<int64_t>(sizeof(std::string))));
    values.emplace_back(data.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
  return Tensor::Strings(desc.shape, std::move(values));
}

}  // namespace

DType DTypeFromTflite(int64_t type) {
  const TypeRow* row = FindType(type);
  return row != nullptr ? row->dtype : DType::kInvalid;
}

std::string TfliteTypeName(int64_t type) {
  const TypeRow* row = FindType(type);
  return row != nullptr ? std::string(row->name) : StrCat("type ", type);
}

Result<Tensor> TensorFromTflite(const TfliteTensor& tensor,
                                const std::shared_ptr<const void>& owner) {
  TensorDesc desc{DTypeFromTflite(tensor.type), {}};
  if (desc.dtype == DType::kInvalid) return Unsupported("of ", TfliteTypeName(tensor.type));
  if (std::ssize(tensor.shape) > kMaxRank) {
    return Unsupported("of rank ", tensor.shape.size(), "; at most ", kMaxRank);
  }
  for (int32_t size : tensor.shape) {
    if (size < 0) return DataLoss("a constant has an axis of ", size);
    desc.shape.push_back(size);
  }
  if (desc.elements() == std::numeric_limits<int64_t>::max() ||
      desc.bytes() == std::numeric_limits<int64_t>::max()) {
    return DataLoss("a constant has the impossible shape ", desc);
  }
  if (tensor.sparsity.valid()) {
    if (FindType(tensor.type)->packed_bits != 0) return Unsupported("sparse and packed");
    return DensifyTflite(tensor.sparsity, desc, tensor.data);
  }
  if (desc.dtype == DType::kString) return ReadStrings(desc, tensor.data);
  if (const int bits = FindType(tensor.type)->packed_bits; bits != 0) {
    return Unpack(desc, bits, tensor.data);
  }
  if (std::ssize(tensor.data) != desc.bytes()) {
    return DataLoss("a tensor ", desc, " needs ", desc.bytes(), " bytes and has ",
                    tensor.data.size());
  }
  Tensor value = Tensor::View(desc, std::as_bytes(std::span(tensor.data)), owner);
  value.set_mapped();
  return value;
}

bool IsQuantised(const TfliteTensor& tensor) {
  const DType dtype = DTypeFromTflite(tensor.type);
  const bool narrow = dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16;
  const TfliteQuantization& q = tensor.quantization;
  return narrow && (!q.scale.empty() || q.details != 0);
}

bool SameQuantisation(const TfliteTensor& a, const TfliteTensor& b) {
  const TfliteQuantization &qa = a.quantization, &qb = b.quantization;
  return qa.scale == qb.scale && qa.zero_point == qb.zero_point && qa.details == qb.details &&
         (qa.scale.size() < 2 || qa.axis == qb.axis);
}

}  // namespace oncilla
