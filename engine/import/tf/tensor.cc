// TensorProto and related messages, read from the wire format.
#include "engine/import/tf/tensor.h"

#include <cstring>
#include <vector>

#include "engine/base/half.h"

namespace oncilla {
namespace {

struct TypeRow {
  int number;
  const char* name;
  DType dtype;
};

// Quantised types are mapped to the integers that carry them; only ops that take ranges compute
// with such tensors.
constexpr TypeRow kTypes[] = {
    {1, "float", DType::kF32},
    {2, "double", DType::kF64},
    {3, "int32", DType::kI32},
    {4, "uint8", DType::kU8},
    {5, "int16", DType::kI16},
    {6, "int8", DType::kI8},
    {7, "string", DType::kString},
    {8, "complex64", DType::kC64},
    {9, "int64", DType::kI64},
    {10, "bool", DType::kBool},
    {11, "qint8", DType::kI8},
    {12, "quint8", DType::kU8},
    {13, "qint32", DType::kI32},
    {14, "bfloat16", DType::kBF16},
    {15, "qint16", DType::kI16},
    {16, "quint16", DType::kU16},
    {17, "uint16", DType::kU16},
    {18, "complex128", DType::kC128},
    {19, "half", DType::kF16},
    {20, "resource", DType::kInvalid},
    {21, "variant", DType::kInvalid},
    {22, "uint32", DType::kU32},
    {23, "uint64", DType::kU64},
    {24, "float8_e5m2", DType::kInvalid},
    {25, "float8_e4m3fn", DType::kInvalid},
    {29, "int4", DType::kInvalid},
    {30, "uint4", DType::kInvalid},
};

const TypeRow* FindType(int64_t number) {
  if (number > tf_type::kReference) number -= tf_type::kReference;
  for (const TypeRow& row : kTypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

// The values of a TensorProto in list form, collected as raw bytes of the tensor's type.
class ElementBytes {
 public:
  explicit ElementBytes(DType dtype) : size_(static_cast<size_t>(BytesOf(dtype))) {}
  template <class T>
  void Add(T value) {
    // The engine supports little-endian hosts only: the low bytes come first.
    const char* bytes = reinterpret_cast<const char*>(&value);
    data_.append(bytes, size_);
  }
  const std::string& data() const { return data_; }
  size_t element_size() const { return size_; }

 private:
  size_t size_;
  std::string data_;
};

struct TensorFields {
  int64_t tf_type = 0;
  Bytes shape, content;
};

TensorFields ReadHeader(Bytes proto) {
  TensorFields fields;
  WireMessage message(proto);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        fields.tf_type = message.Int();
        break;
      case 2:
        fields.shape = message.View();
        break;
      case 4:
        fields.content = message.View();
        break;
    }
  }
  return fields;
}

// The field number of the typed list for elements of `dtype`.
uint32_t ListField(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 5;
    case DType::kF64:
      return 6;
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU16:
    case DType::kU8:
      return 7;
    case DType::kString:
      return 8;
    case DType::kC64:
      return 9;
    case DType::kI64:
      return 10;
    case DType::kBool:
      return 11;
    case DType::kC128:
      return 12;
    case DType::kF16:
    case DType::kBF16:
      return 13;
    case DType::kU32:
      return 16;
    case DType::kU64:
      return 17;
    default:
      break;
  }
  return 0;
}

// Refuses a list that is longer than the tensor, before memory is allocated.
void CheckRoom(int64_t have, int64_t elements) {
  if (have >= elements) throw WireError("a tensor lists more values than its shape holds");
}

Result<Tensor> ReadStrings(Bytes proto, const Shape& shape, int64_t elements,
                           TfUnfoldBudget& budget) {
  std::vector<std::string> values;
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() != 8) continue;
    CheckRoom(static_cast<int64_t>(values.size()), elements);
    values.emplace_back(message.View());
  }
  const auto missing = static_cast<uint64_t>(elements) - values.size();
  const int64_t each = static_cast<int64_t>(sizeof(std::string)) +
                       (values.empty() ? 0 : static_cast<int64_t>(values.back().size()));
  const int64_t cost = SaturatingMul(static_cast<int64_t>(missing), each);
  if (cost > budget.bytes) return Exhausted("a constant of ", elements, " strings is too large");
  budget.bytes -= cost;
  values.resize(static_cast<size_t>(elements), values.empty() ? std::string() : values.back());
  return Tensor::Strings(shape, std::move(values));
}

Result<Tensor> ReadNumbers(Bytes proto, const TensorDesc& desc, TfUnfoldBudget& budget) {
  // Complex numbers are listed as their real and imaginary parts.
  const DType part = PartOf(desc.dtype);
  const int64_t parts = IsComplex(desc.dtype) ? 2 : 1;
  const uint32_t list = ListField(desc.dtype);
  const int64_t elements = SaturatingMul(desc.elements(), parts);
  ElementBytes out(part);
  int64_t count = 0;
  const auto add = [&](auto value) {
    CheckRoom(count++, elements);
    out.Add(value);
  };
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() != list) continue;
    if (part == DType::kF32) {
      message.EachFloat(add);
    } else if (part == DType::kF64) {
      message.EachDouble(add);
    } else if (desc.dtype == DType::kBool) {
      message.EachInt([&](int64_t v) { add(static_cast<uint8_t>(v != 0)); });
    } else {
      message.EachInt(add);
    }
  }
  const int64_t bytes = desc.bytes();
  if (count % parts != 0) return DataLoss("a constant ", desc, " lists half a number");
  if (count == elements) return Tensor::Copy(desc, std::as_bytes(std::span(out.data())));
  if (bytes > budget.bytes) {
    return Exhausted("a constant ", desc, " of repeated values unfolds to ", bytes,
                     " bytes, more than the ", budget.bytes, " left for such constants");
  }
  budget.bytes -= bytes;
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate(desc));
  std::byte* at = tensor.mutable_bytes().data();
  if (count == 0) return tensor;  // an empty list means zeros
  std::memcpy(at, out.data().data(), out.data().size());
  const size_t each = out.element_size() * static_cast<size_t>(parts);
  const std::byte* last = at + out.data().size() - each;
  for (int64_t i = count / parts; i < desc.elements(); ++i) {
    std::memcpy(at + static_cast<size_t>(i) * each, last, each);
  }
  return tensor;
}

}  // namespace

DType DTypeFromTf(int64_t tf_type) {
  const TypeRow* row = FindType(tf_type);
  return row == nullptr ? DType::kInvalid : row->dtype;
}

std::string TfTypeName(int64_t tf_type) {
  const TypeRow* row = FindType(tf_type);
  if (row == nullptr) return StrCat("type ", tf_type);
  return StrCat(row->name, tf_type > tf_type::kReference ? "_ref" : "");
}

DType PartOf(DType dtype) {
  if (!IsComplex(dtype)) return dtype;
  return dtype == DType::kC64 ? DType::kF32 : DType::kF64;
}

Result<Tensor> ComplexParts(const Tensor& tensor) {
  if (!IsComplex(tensor.dtype())) return tensor;
  Shape shape = tensor.shape();
  if (shape.rank() >= kMaxRank) return Unsupported("complex numbers of rank ", shape.rank());
  shape.push_back(2);
  Tensor parts = Tensor::View({PartOf(tensor.dtype()), std::move(shape)}, tensor.bytes(),
                              std::make_shared<const Tensor>(tensor));
  if (tensor.mapped()) parts.set_mapped();
  return parts;
}

Result<PartialShape> ShapeFromTf(Bytes shape_proto) {
  std::vector<Dim> dims;
  bool unknown_rank = false;
  WireMessage message(shape_proto);
  while (message.Next()) {
    if (message.field() == 3) unknown_rank = message.Bool();
    if (message.field() != 2 || !message.is_view()) continue;
    Dim dim(0);  // proto3 does not encode a size of zero
    WireMessage fields(message.View());
    while (fields.Next()) {
      if (fields.field() == 1) dim.size = fields.Int();
      if (fields.field() == 2) dim.name = fields.View();
    }
    if (dim.size < -1) return DataLoss("a shape has the size ", dim.size);
    dims.push_back(std::move(dim));
    if (dims.size() > 254) return DataLoss("a shape has more than 254 dimensions");
  }
  if (unknown_rank) return PartialShape();
  return PartialShape(std::move(dims));
}

Result<Tensor> TensorFromTf(Bytes tensor_proto, const std::shared_ptr<const void>& owner,
                            TfUnfoldBudget& budget) {
  const TensorFields fields = ReadHeader(tensor_proto);
  TensorDesc desc;
  desc.dtype = DTypeFromTf(fields.tf_type);
  if (desc.dtype == DType::kInvalid) {
    return Unsupported("a tensor of ", TfTypeName(fields.tf_type));
  }
  ONCILLA_ASSIGN(const PartialShape shape, ShapeFromTf(fields.shape));
  if (!shape.known()) return DataLoss("a constant has the unknown shape ", shape);
  if (shape.rank() > kMaxRank) {
    return Unsupported("a tensor of rank ", shape.rank(), "; at most ", kMaxRank);
  }
  desc.shape = shape.ToShape();
  if (desc.elements() == std::numeric_limits<int64_t>::max() ||
      desc.bytes() == std::numeric_limits<int64_t>::max()) {
    return DataLoss("a constant has the impossible shape ", desc);
  }
  if (desc.dtype == DType::kString) {
    if (!fields.content.empty()) return Unsupported("a string constant in packed form");
    return ReadStrings(tensor_proto, desc.shape, desc.elements(), budget);
  }
  if (fields.content.empty()) return ReadNumbers(tensor_proto, desc, budget);
  if (static_cast<int64_t>(fields.content.size()) != desc.bytes()) {
    return DataLoss("a constant ", desc, " needs ", desc.bytes(), " bytes and has ",
                    fields.content.size());
  }
  Tensor tensor = Tensor::View(desc, std::as_bytes(std::span(fields.content)), owner);
  tensor.set_mapped();
  return tensor;
}

}  // namespace oncilla
