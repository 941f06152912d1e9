// The C interface: tensors.
#include "engine/api/handles.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace oncilla::api {
namespace {

constexpr std::pair<oncilla_dtype, DType> kTypes[] = {
    {ONCILLA_FLOAT32, DType::kF32},
    {ONCILLA_FLOAT64, DType::kF64},
    {ONCILLA_FLOAT16, DType::kF16},
    {ONCILLA_BFLOAT16, DType::kBF16},
    {ONCILLA_INT8, DType::kI8},
    {ONCILLA_INT16, DType::kI16},
    {ONCILLA_INT32, DType::kI32},
    {ONCILLA_INT64, DType::kI64},
    {ONCILLA_UINT8, DType::kU8},
    {ONCILLA_UINT16, DType::kU16},
    {ONCILLA_UINT32, DType::kU32},
    {ONCILLA_UINT64, DType::kU64},
    {ONCILLA_BOOL, DType::kBool},
    {ONCILLA_STRING, DType::kString},
    {ONCILLA_INT4, DType::kI4},
    {ONCILLA_UINT4, DType::kU4},
    {ONCILLA_INT2, DType::kI2},
    {ONCILLA_UINT2, DType::kU2},
    {ONCILLA_FLOAT8E4M3FN, DType::kF8E4M3FN},
    {ONCILLA_FLOAT8E4M3FNUZ, DType::kF8E4M3FNUZ},
    {ONCILLA_FLOAT8E5M2, DType::kF8E5M2},
    {ONCILLA_FLOAT8E5M2FNUZ, DType::kF8E5M2FNUZ},
    {ONCILLA_FLOAT8E8M0, DType::kF8E8M0},
    {ONCILLA_FLOAT4E2M1, DType::kF4E2M1},
    {ONCILLA_COMPLEX64, DType::kC64},
    {ONCILLA_COMPLEX128, DType::kC128},
};

Result<TensorDesc> ReadDesc(oncilla_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                            size_t bytes) {
  const DType type = FromC(dtype);
  if (type == DType::kInvalid || type == DType::kString) {
    return InvalidArgument("dtype ", static_cast<int>(dtype), " is not a numeric type");
  }
  ONCILLA_ASSIGN(Shape shape, ReadShape(dims, rank));
  TensorDesc desc{type, std::move(shape)};
  if (static_cast<uint64_t>(desc.bytes()) != bytes) {
    return InvalidArgument("a tensor ", desc, " has ", desc.bytes(), " bytes, not ", bytes);
  }
  if (bytes > 0) ONCILLA_TRY(NeedHandle(data, "data"));
  for (size_t i = 0; type == DType::kBool && i < bytes; ++i) {
    const int value = static_cast<const unsigned char*>(data)[i];
    if (value > 1) return InvalidArgument("element ", i, " of a bool tensor is ", value);
  }
  return desc;
}

}  // namespace

Result<Shape> ReadShape(const int64_t* dims, size_t rank) {
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " is above ", kMaxRank);
  if (rank > 0) ONCILLA_TRY(NeedHandle(dims, "dims"));
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return InvalidArgument("dims[", i, "] is ", dims[i]);
    shape.push_back(dims[i]);
  }
  return shape;
}

oncilla_dtype ToC(DType dtype) {
  for (const auto& [c, ours] : kTypes) {
    if (ours == dtype) return c;
  }
  return static_cast<oncilla_dtype>(0);
}

DType FromC(oncilla_dtype dtype) {
  for (const auto& [c, ours] : kTypes) {
    if (c == dtype) return ours;
  }
  return DType::kInvalid;
}

oncilla_tensor MakeTensor(RunValue value) {
  oncilla_tensor handle;
  const Shape& shape = value.desc().shape;
  handle.dims.assign(shape.begin(), shape.end());
  handle.tensor = value.host();
  handle.device = value.device();
  return handle;
}

}  // namespace oncilla::api

oncilla_status* oncilla_tensor_create(oncilla_dtype dtype, const int64_t* dims, size_t rank,
                                      const void* data, size_t bytes, oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_ASSIGN(TensorDesc desc, ReadDesc(dtype, dims, rank, data, bytes));
    ONCILLA_ASSIGN(Tensor copy, Tensor::Allocate(std::move(desc)));
    if (bytes > 0) std::memcpy(copy.mutable_bytes().data(), data, bytes);
    *tensor = new oncilla_tensor(MakeTensor(std::move(copy)));
    return Status();
  });
}

oncilla_status* oncilla_tensor_wrap(oncilla_dtype dtype, const int64_t* dims, size_t rank,
                                    const void* data, size_t bytes, void (*release)(void* user),
                                    void* user, oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_ASSIGN(TensorDesc desc, ReadDesc(dtype, dims, rank, data, bytes));
    auto handle = std::make_unique<oncilla_tensor>();
    // Everything that can fail happens before `release` is bound to the owner.
    auto owner = std::make_shared<std::pair<void (*)(void*), void*>>(nullptr, user);
    std::shared_ptr<const void> guard(owner.get(), [owner](const void*) {
      try {
        if (owner->first != nullptr) owner->first(owner->second);
      } catch (...) {  // there is no caller left to report this to
      }
    });
    *handle = MakeTensor(Tensor::View(std::move(desc), {static_cast<const std::byte*>(data), bytes},
                                      std::move(guard)));
    owner->first = release;
    *tensor = handle.release();
    return Status();
  });
}

oncilla_status* oncilla_tensor_create_strings(const int64_t* dims, size_t rank,
                                              const char* const* strings, const size_t* lengths,
                                              size_t count, oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_ASSIGN(Shape shape, ReadShape(dims, rank));
    if (static_cast<uint64_t>(shape.elements()) != count) {
      return WithStage(InvalidArgument("a tensor of shape ", shape, " holds ", shape.elements(),
                                       " strings, not ", count),
                       Stage::kOptions);
    }
    std::vector<std::string> values;
    if (count > 0) ONCILLA_TRY(NeedHandle(strings, "strings"));
    for (size_t i = 0; i < count; ++i) {
      ONCILLA_TRY(NeedHandle(strings[i], StrCat("strings[", i, "]")));
      values.emplace_back(strings[i], lengths == nullptr ? std::strlen(strings[i]) : lengths[i]);
    }
    *tensor = new oncilla_tensor(MakeTensor(Tensor::Strings(std::move(shape), std::move(values))));
    return Status();
  });
}

oncilla_dtype oncilla_tensor_dtype(const oncilla_tensor* tensor) {
  return tensor == nullptr ? static_cast<oncilla_dtype>(0) : ToC(tensor->desc().dtype);
}
size_t oncilla_tensor_rank(const oncilla_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->dims.size();
}
const int64_t* oncilla_tensor_dims(const oncilla_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->dims.data();
}
size_t oncilla_tensor_elements(const oncilla_tensor* tensor) {
  return tensor == nullptr ? 0 : static_cast<size_t>(tensor->desc().elements());
}
const void* oncilla_tensor_data(const oncilla_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->tensor.bytes().data();
}
void* oncilla_tensor_mutable_data(oncilla_tensor* tensor) {
  const bool ours = tensor != nullptr && tensor->tensor.unshared();
  return ours ? tensor->tensor.mutable_bytes().data() : nullptr;
}
size_t oncilla_tensor_bytes(const oncilla_tensor* tensor) {
  const bool none = tensor == nullptr || tensor->tensor.is_list();
  return none ? 0 : static_cast<size_t>(tensor->desc().bytes());
}
const char* oncilla_tensor_string(const oncilla_tensor* tensor, size_t index, size_t* length) {
  if (tensor == nullptr || tensor->tensor.is_list() || tensor->tensor.dtype() != DType::kString ||
      index >= tensor->tensor.strings().size()) {
    return nullptr;
  }
  const std::string& value = tensor->tensor.strings()[index];
  if (length != nullptr) *length = value.size();
  return value.c_str();
}
oncilla_status* oncilla_tensor_share(const oncilla_tensor* tensor, oncilla_tensor** shared) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_TRY(NeedHandle(shared, "shared"));
    *shared = new oncilla_tensor(*tensor);
    return Status();
  });
}
void oncilla_tensor_free(oncilla_tensor* tensor) { delete tensor; }
