// A TensorProto stores its elements in one of three ways: as raw bytes, as a typed list (of a wider
// type for small elements), or as a reference to another file.
#include "engine/import/onnx/tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "engine/import/import_bounds.h"

namespace oncilla {
namespace {

struct TypeRow {
  const char* name;
  DType dtype;
  uint32_t list;  // field number of the typed list for such elements
};

// By onnx.TensorProto.DataType.
constexpr TypeRow kTypes[] = {
    {"UNDEFINED", DType::kInvalid, 0},
    {"FLOAT", DType::kF32, 4},
    {"UINT8", DType::kU8, 5},
    {"INT8", DType::kI8, 5},
    {"UINT16", DType::kU16, 5},
    {"INT16", DType::kI16, 5},
    {"INT32", DType::kI32, 5},
    {"INT64", DType::kI64, 7},
    {"STRING", DType::kString, 6},
    {"BOOL", DType::kBool, 5},
    {"FLOAT16", DType::kF16, 5},
    {"DOUBLE", DType::kF64, 10},
    {"UINT32", DType::kU32, 11},
    {"UINT64", DType::kU64, 11},
    {"COMPLEX64", DType::kC64, 4},
    {"COMPLEX128", DType::kC128, 10},
    {"BFLOAT16", DType::kBF16, 5},
    {"FLOAT8E4M3FN", DType::kF8E4M3FN, 5},
    {"FLOAT8E4M3FNUZ", DType::kF8E4M3FNUZ, 5},
    {"FLOAT8E5M2", DType::kF8E5M2, 5},
    {"FLOAT8E5M2FNUZ", DType::kF8E5M2FNUZ, 5},
    {"UINT4", DType::kU4, 5},
    {"INT4", DType::kI4, 5},
    {"FLOAT4E2M1", DType::kF4E2M1, 5},
    {"FLOAT8E8M0", DType::kF8E8M0, 5},
    {"UINT2", DType::kU2, 5},
    {"INT2", DType::kI2, 5},
};

const TypeRow* FindType(int64_t type) {
  return type >= 0 && type < std::ssize(kTypes) ? &kTypes[type] : nullptr;
}

struct Fields {
  Shape shape;
  int64_t type = 0;
  Bytes raw;
  bool has_raw = false, is_external = false;
  OnnxExternalData external;
  std::string name;
};

Status ReadExternal(Bytes entry, OnnxExternalData& external) {
  Bytes key, value;
  WireMessage message(entry);
  while (message.Next()) {
    if (message.field() == 1) key = message.View();
    if (message.field() == 2) value = message.View();
  }
  if (key == "location") {
    external.location = value;
    return {};
  }
  // Any other key could change what is read, or from where.
  if (key == "checksum") return {};
  if (key != "offset" && key != "length") {
    return Unsupported("external data with the key '", key, "'");
  }
  int64_t number = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) {
    return DataLoss("external data with the ", key, " '", value, "'");
  }
  (key == "offset" ? external.offset : external.length) = number;
  return {};
}

void ReadSizes(WireMessage& message, Shape& shape) {
  message.EachInt([&](int64_t size) {
    if (size < 0) throw WireError("a tensor has a negative size");
    if (shape.rank() > kMaxRank) throw WireError("a tensor has too many dimensions");
    shape.push_back(size);
  });
}

Result<Fields> ReadFields(Bytes proto) {
  Fields fields;
  Status status;
  WireMessage message(proto);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        ReadSizes(message, fields.shape);
        break;
      case 2:
        fields.type = message.Int();
        break;
      case 3:
        return Unsupported("a tensor in segments");
      case 8:
        fields.name = message.View();
        break;
      case 9:
        fields.raw = message.View();
        fields.has_raw = true;
        break;
      case 13:
        ONCILLA_TRY(ReadExternal(message.View(), fields.external));
        break;
      case 14:
        fields.is_external = message.Int() == 1;
        break;
    }
  }
  return fields;
}

Status CheckSize(const TensorDesc& desc) {
  if (desc.rank() > kMaxRank) {
    return Unsupported("a tensor of rank ", desc.rank(), "; at most ", kMaxRank);
  }
  if (desc.elements() == std::numeric_limits<int64_t>::max() ||
      desc.bytes() == std::numeric_limits<int64_t>::max()) {
    return DataLoss("a tensor has the impossible shape ", desc);
  }
  return {};
}

Result<Tensor> ReadStrings(Bytes proto, const Shape& shape) {
  std::vector<std::string> values;
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() == 6) values.emplace_back(message.View());
  }
  if (static_cast<int64_t>(values.size()) != shape.elements()) {
    return DataLoss("a tensor of shape ", shape, " holds ", values.size(), " strings");
  }
  return Tensor::Strings(shape, std::move(values));
}

Result<Tensor> ReadList(Bytes proto, const TensorDesc& desc, uint32_t list) {
  std::string data;
  // A number in the list is one byte of packed elements, or one part of a complex number.
  const int64_t parts = IsComplex(desc.dtype) ? 2 : 1;
  const auto each = static_cast<size_t>(IsPacked(desc.dtype) ? 1 : BytesOf(desc.dtype) / parts);
  const auto limit = static_cast<uint64_t>(desc.bytes());
  // The engine supports little-endian hosts only: the low bytes come first.
  const auto add = [&](auto value) {
    if (data.size() >= limit) throw WireError("a tensor lists more values than its shape holds");
    data.append(reinterpret_cast<const char*>(&value), each);
  };
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() != list) continue;
    if (desc.dtype == DType::kF32 || desc.dtype == DType::kC64) {
      message.EachFloat(add);
    } else if (desc.dtype == DType::kF64 || desc.dtype == DType::kC128) {
      message.EachDouble(add);
    } else if (desc.dtype == DType::kBool) {
      message.EachInt([&](int64_t v) { add(static_cast<uint8_t>(v != 0)); });
    } else {
      message.EachInt(add);
    }
  }
  if (data.size() != limit) {
    return DataLoss("a tensor ", desc, " lists ", data.size() / each, " values");
  }
  return Tensor::Copy(desc, std::as_bytes(std::span(data)));
}

std::string LocationOf(Bytes tensor_proto) {
  OnnxExternalData data;
  bool is_external = false;
  WireMessage message(tensor_proto);
  while (message.Next()) {
    // Errors in an entry are reported when the tensor is read.
    if (message.field() == 13) (void)ReadExternal(message.View(), data).ok();
    if (message.field() == 14) is_external = message.Int() == 1;
  }
  return is_external ? data.location : std::string();
}

// A SparseTensorProto: the values that are not zero, and their positions.
struct SparseFields {
  Bytes values, indices;
  Shape shape;
};

SparseFields ReadSparse(Bytes proto) {
  SparseFields fields;
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() == 1) fields.values = message.View();
    if (message.field() == 2) fields.indices = message.View();
    if (message.field() == 3) ReadSizes(message, fields.shape);
  }
  return fields;
}

// The positions as flat indices. The file gives flat indices, or one coordinate per axis.
Result<std::vector<int64_t>> PlacesOf(const Tensor& indices, int64_t count, const Shape& shape) {
  const bool flat = indices.shape() == Shape{count};
  if (indices.dtype() != DType::kI64 || !(flat || indices.shape() == Shape{count, shape.rank()})) {
    return DataLoss("a sparse tensor of shape ", shape, " with ", count, " values has the indices ",
                    indices.desc());
  }
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, ToInt64s(indices));
  const Shape axes = flat ? Shape{shape.elements()} : shape;
  std::vector<int64_t> places(static_cast<size_t>(count), 0);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto rank = static_cast<size_t>(axes.rank());
    const int64_t size = axes[static_cast<int>(i % rank)];
    if (numbers[i] < 0 || numbers[i] >= size) {
      return DataLoss("a sparse tensor of shape ", shape, " has a value at ", numbers[i],
                      " of an axis of ", size);
    }
    int64_t& place = places[i / rank];
    place = place * size + numbers[i];
  }
  std::vector<int64_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return places;
  return DataLoss("a sparse tensor has two values at element ", *twice);
}

}  // namespace

DType DTypeFromOnnx(int64_t onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row ? row->dtype : DType::kInvalid;
}

std::string OnnxTypeName(int64_t onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row ? std::string(row->name) : StrCat("type ", onnx_type);
}

std::vector<std::string> OnnxExternalLocations(const OnnxTensorData& tensor) {
  std::vector<Bytes> parts = {tensor.message};
  if (tensor.sparse) {
    parts.clear();
    WireMessage message(tensor.message);
    while (message.Next()) {  // values and indices; the shape is checked when the tensor is read
      if (message.field() == 1 || message.field() == 2) parts.push_back(message.View());
    }
  }
  std::vector<std::string> locations;
  for (const Bytes part : parts) {
    std::string location = LocationOf(part);
    if (!location.empty()) locations.push_back(std::move(location));
  }
  return locations;
}

Result<OnnxTensor> TensorFromOnnx(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                                  const OnnxExternalReader& external) {
  ONCILLA_ASSIGN(Fields fields, ReadFields(tensor_proto));
  OnnxTensor out{std::move(fields.name), {}};
  const TensorDesc desc{DTypeFromOnnx(fields.type), fields.shape};
  if (desc.dtype == DType::kInvalid) {
    return Unsupported("a tensor of ", OnnxTypeName(fields.type));
  }
  ONCILLA_TRY(CheckSize(desc));
  if (fields.is_external) {
    if (!external) return Unsupported("a tensor with external data, outside a model");
    if (desc.dtype == DType::kString) return Unsupported("strings as external data");
    if (fields.external.location.empty()) return DataLoss("external data without a location");
    ONCILLA_ASSIGN(out.value, external(fields.external, desc));
  } else if (desc.dtype == DType::kString) {
    ONCILLA_ASSIGN(out.value, ReadStrings(tensor_proto, desc.shape));
  } else if (!fields.has_raw) {
    ONCILLA_ASSIGN(out.value, ReadList(tensor_proto, desc, kTypes[fields.type].list));
  } else if (static_cast<int64_t>(fields.raw.size()) != desc.bytes()) {
    return DataLoss("a tensor ", desc, " needs ", desc.bytes(), " bytes and has ",
                    fields.raw.size());
  } else {
    out.value = Tensor::View(desc, std::as_bytes(std::span(fields.raw)), owner);
    out.value.set_mapped();
  }
  return out;
}

Result<Tensor> DenseFromOnnx(Bytes sparse_proto, const OnnxExternalReader& external) {
  const SparseFields fields = ReadSparse(sparse_proto);
  ONCILLA_ASSIGN(const OnnxTensor values, TensorFromOnnx(fields.values, nullptr, external));
  ONCILLA_ASSIGN(const OnnxTensor indices, TensorFromOnnx(fields.indices, nullptr, external));
  const TensorDesc desc{values.value.dtype(), fields.shape};
  if (desc.dtype == DType::kString || IsPacked(desc.dtype)) {
    return Unsupported("a sparse tensor of ", desc.dtype);
  }
  ONCILLA_TRY(CheckSize(desc));
  if (values.value.shape().rank() != 1) {
    return DataLoss("the values of a sparse tensor have the shape ", values.value.shape());
  }
  ONCILLA_TRY(CheckSparseSize(desc, values.value.desc().bytes()));
  ONCILLA_ASSIGN(const std::vector<int64_t> places,
                 PlacesOf(indices.value, values.value.elements(), desc.shape));
  ONCILLA_ASSIGN(Tensor dense, Tensor::Allocate(desc));
  const auto bytes = static_cast<size_t>(BytesOf(desc.dtype));
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(dense.mutable_bytes().data() + static_cast<size_t>(places[i]) * bytes,
                values.value.bytes().data() + i * bytes, bytes);
  }
  return dense;
}

}  // namespace oncilla
