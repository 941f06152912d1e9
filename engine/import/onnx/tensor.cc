// A TensorProto stores its elements in one of three ways: as raw bytes, as a typed list (of a wider
// type for small elements), or as a reference to another file.
#include "engine/import/onnx/tensor.h"

#include <charconv>
#include <limits>

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

Result<Fields> ReadFields(Bytes proto) {
  Fields fields;
  Status status;
  WireMessage message(proto);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        message.EachInt([&](int64_t size) {
          if (size < 0) throw WireError("a tensor has a negative size");
          if (fields.shape.rank() > kMaxRank) throw WireError("a tensor has too many dimensions");
          fields.shape.push_back(size);
        });
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

}  // namespace

DType DTypeFromOnnx(int64_t onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row ? row->dtype : DType::kInvalid;
}

std::string OnnxTypeName(int64_t onnx_type) {
  const TypeRow* row = FindType(onnx_type);
  return row ? std::string(row->name) : StrCat("type ", onnx_type);
}

std::string OnnxExternalLocation(Bytes tensor_proto) {
  OnnxExternalData data;
  bool is_external = false;
  WireMessage message(tensor_proto);
  while (message.Next()) {
    // An error in an entry is reported when the tensor is read.
    if (message.field() == 13) (void)ReadExternal(message.View(), data).ok();
    if (message.field() == 14) is_external = message.Int() == 1;
  }
  return is_external ? data.location : std::string();
}

Result<OnnxTensor> TensorFromOnnx(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                                  const OnnxExternalReader& external) {
  ONCILLA_ASSIGN(Fields fields, ReadFields(tensor_proto));
  OnnxTensor out{std::move(fields.name), {}};
  const TensorDesc desc{DTypeFromOnnx(fields.type), fields.shape};
  if (desc.dtype == DType::kInvalid) {
    return Unsupported("a tensor of ", OnnxTypeName(fields.type));
  }
  if (desc.rank() > kMaxRank) {
    return Unsupported("a tensor of rank ", desc.rank(), "; at most ", kMaxRank);
  }
  if (desc.elements() == std::numeric_limits<int64_t>::max() ||
      desc.bytes() == std::numeric_limits<int64_t>::max()) {
    return DataLoss("a tensor has the impossible shape ", desc);
  }
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

}  // namespace oncilla
