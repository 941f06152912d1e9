// DLPack's structs, as its specification defines them, and the conversions to and from tensors.
#include "python/src/dlpack.h"

#include <oncilla/oncilla_opencl.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "python/src/arrays.h"
#include "python/src/deferred.h"

namespace oncilla_python {
namespace {

enum DeviceType : int32_t { kCpu = 1, kOpenCl = 4 };
struct DLDevice {
  int32_t type, number;
};
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0 = 14,
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;

struct TypeRow {
  oncilla_dtype ours;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {ONCILLA_FLOAT32, kFloat, 32},
    {ONCILLA_FLOAT64, kFloat, 64},
    {ONCILLA_FLOAT16, kFloat, 16},
    {ONCILLA_BFLOAT16, kBfloat, 16},
    {ONCILLA_INT8, kInt, 8},
    {ONCILLA_INT16, kInt, 16},
    {ONCILLA_INT32, kInt, 32},
    {ONCILLA_INT64, kInt, 64},
    {ONCILLA_UINT8, kUInt, 8},
    {ONCILLA_UINT16, kUInt, 16},
    {ONCILLA_UINT32, kUInt, 32},
    {ONCILLA_UINT64, kUInt, 64},
    {ONCILLA_BOOL, kBool, 8},
    {ONCILLA_COMPLEX64, kComplex, 64},
    {ONCILLA_COMPLEX128, kComplex, 128},
    {ONCILLA_FLOAT8E4M3FN, kFloat8E4M3FN, 8},
    {ONCILLA_FLOAT8E4M3FNUZ, kFloat8E4M3FNUZ, 8},
    {ONCILLA_FLOAT8E5M2, kFloat8E5M2, 8},
    {ONCILLA_FLOAT8E5M2FNUZ, kFloat8E5M2FNUZ, 8},
    {ONCILLA_FLOAT8E8M0, kFloat8E8M0, 8},
};

// What an exported tensor keeps alive besides the struct.
struct Exported {
  nb::object tensor;  // null where `copy` holds the bytes
  void* copy = nullptr;
  std::vector<int64_t> shape, strides;
  ~Exported() { std::free(copy); }
};

// Consumers may call deleters on any thread, with or without the interpreter's lock, even after the
// interpreter has ended.
void FreeExported(void* context) {
  if (Py_IsInitialized() == 0 || InterpreterEnds()) return;
  nb::gil_scoped_acquire locked;
  delete static_cast<Exported*>(context);
}

void FillTensor(const oncilla_tensor* handle, Exported& exported, DLTensor* to) {
  const oncilla_dtype dtype = oncilla_tensor_dtype(handle);
  const TypeRow* row = nullptr;
  for (const TypeRow& r : kTypes) {
    if (r.ours == dtype) row = &r;
  }
  if (row == nullptr || oncilla_tensor_is_sequence(handle) != 0) {
    throw nb::buffer_error("DLPack has no form for strings, sequences and packed types");
  }
  const size_t rank = oncilla_tensor_rank(handle);
  exported.shape.assign(oncilla_tensor_dims(handle), oncilla_tensor_dims(handle) + rank);
  exported.strides.resize(rank);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    exported.strides[i] = stride;
    stride *= std::max<int64_t>(exported.shape[i], 1);
  }
  const nb::tuple device = DlpackDevice(handle);
  to->device = {nb::cast<int32_t>(device[0]), nb::cast<int32_t>(device[1])};
  to->ndim = static_cast<int32_t>(rank);
  to->dtype = {row->code, row->bits, 1};
  to->shape = exported.shape.data();
  to->strides = exported.strides.data();
  to->byte_offset = 0;
  if (to->device.type == kOpenCl) {
    size_t offset = 0;
    Check(oncilla_opencl_buffer(handle, &to->data, &offset, nullptr));
    to->byte_offset = offset;
  } else if (exported.copy != nullptr) {
    to->data = exported.copy;
  } else {
    to->data = const_cast<void*>(oncilla_tensor_data(handle));
  }
}

void CopyBytes(const oncilla_tensor* handle, Exported& exported) {
  if (oncilla_tensor_device(handle)[0] != 0) {
    throw nb::buffer_error("a tensor on a device is not copied for DLPack: read() copies it");
  }
  const size_t bytes = oncilla_tensor_bytes(handle);
  exported.copy = std::aligned_alloc(64, (bytes / 64 + 1) * 64);
  if (exported.copy == nullptr) throw std::bad_alloc();
  if (bytes > 0) std::memcpy(exported.copy, oncilla_tensor_data(handle), bytes);
}

// Frees a struct that no consumer took: its capsule then still has its original name.
template <class Managed>
nb::object MakeCapsule(std::unique_ptr<Managed> managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed.get(), name, [](PyObject* self) {
    const char* now = PyCapsule_GetName(self);
    if (now == nullptr || std::strncmp(now, "used_", 5) == 0) return;
    auto* own = static_cast<Managed*>(PyCapsule_GetPointer(self, now));
    own->deleter(own);
  });
  if (capsule == nullptr) throw nb::python_error();
  (void)managed.release();
  return nb::steal(capsule);
}

// Whether the tensor of a capsule is dense and row-major; also counts its elements.
bool IsDense(const DLTensor& t, int64_t* elements) {
  *elements = 1;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0 || __builtin_mul_overflow(*elements, t.shape[i], elements)) {
      throw nb::value_error("the capsule's shape is not valid");
    }
  }
  if (t.strides == nullptr || *elements == 0) return true;
  int64_t stride = 1;
  for (int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
    stride *= t.shape[i];
  }
  return true;
}

void CopyStrided(const DLTensor& t, const char* from, size_t item, int32_t axis, char*& to) {
  if (axis == t.ndim) {
    std::memcpy(to, from, item);
    to += item;
    return;
  }
  for (int64_t i = 0; i < t.shape[axis]; ++i) {
    CopyStrided(t, from + i * t.strides[axis] * static_cast<int64_t>(item), item, axis + 1, to);
  }
}

template <class Managed>
std::unique_ptr<Kept> Keep(Managed* managed) {
  auto kept = std::make_unique<Kept>();
  kept->managed = managed;
  kept->free = [](void* m) {
    auto* own = static_cast<Managed*>(m);
    if (own->deleter != nullptr) own->deleter(own);
  };
  return kept;
}

TensorHandle Take(const DLTensor& t, std::unique_ptr<Kept> owner) {
  constexpr int32_t kMostDims = 64;
  if (t.device.type != kCpu) {
    throw nb::buffer_error("the tensor is not in host memory: copy it there first");
  }
  if (t.ndim < 0 || t.ndim > kMostDims || (t.ndim > 0 && t.shape == nullptr)) {
    throw nb::value_error("the capsule has no usable shape");
  }
  const TypeRow* row = nullptr;
  for (const TypeRow& r : kTypes) {
    if (r.code == t.dtype.code && r.bits == t.dtype.bits && t.dtype.lanes == 1) row = &r;
  }
  if (row == nullptr) throw nb::type_error("the capsule's element type is not supported");
  int64_t elements = 0, bytes = 0;
  const bool dense = IsDense(t, &elements);
  const size_t item = row->bits / 8u;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(item), &bytes)) {
    throw nb::value_error("the capsule's shape is too large");
  }
  const char* data = static_cast<const char*>(t.data) + t.byte_offset;
  oncilla_tensor* tensor = nullptr;
  const auto rank = static_cast<size_t>(t.ndim);
  const size_t alignment = row->code == kComplex ? item / 2 : item;
  if (dense && reinterpret_cast<uintptr_t>(data) % alignment == 0) {
    Check(oncilla_tensor_wrap(row->ours, t.shape, rank, data, static_cast<size_t>(bytes),
                              ReleaseLater, owner.get(), &tensor));
    (void)owner.release();  // freed by ReleaseLater
    return TensorHandle(tensor);
  }
  std::vector<char> copy(static_cast<size_t>(bytes));
  char* to = copy.data();
  if (dense) {
    std::memcpy(to, data, copy.size());
  } else {
    CopyStrided(t, data, item, 0, to);
  }
  Check(oncilla_tensor_create(row->ours, t.shape, rank, copy.data(), copy.size(), &tensor));
  owner->free(owner->managed);
  return TensorHandle(tensor);
}

}  // namespace

nb::tuple DlpackDevice(const oncilla_tensor* tensor) {
  const std::string device = oncilla_tensor_device(tensor);
  const size_t gpu = device.rfind("GPU:");
  if (gpu == std::string::npos) return nb::make_tuple(static_cast<int>(kCpu), 0);
  return nb::make_tuple(static_cast<int>(kOpenCl), std::atoi(device.c_str() + gpu + 4));
}

nb::object ToDlpack(nb::handle tensor, int version, bool copy) {
  const oncilla_tensor* handle = nb::cast<const Tensor&>(tensor).handle.get();
  auto exported = std::make_unique<Exported>();
  if (copy) {
    CopyBytes(handle, *exported);
  } else {
    exported->tensor = nb::borrow(tensor);
  }
  if (version >= 1) {
    auto managed = std::make_unique<DLManagedTensorVersioned>();
    FillTensor(handle, *exported, &managed->tensor);
    managed->major = 1;
    managed->minor = 0;
    managed->flags = copy ? kCopied : kReadOnly;
    managed->context = exported.release();
    managed->deleter = [](DLManagedTensorVersioned* self) {
      const std::unique_ptr<DLManagedTensorVersioned> own(self);
      FreeExported(own->context);
    };
    return MakeCapsule(std::move(managed), "dltensor_versioned");
  }
  auto managed = std::make_unique<DLManagedTensor>();
  FillTensor(handle, *exported, &managed->tensor);
  managed->context = exported.release();
  managed->deleter = [](DLManagedTensor* self) {
    const std::unique_ptr<DLManagedTensor> own(self);
    FreeExported(own->context);
  };
  return MakeCapsule(std::move(managed), "dltensor");
}

// The capsule is renamed only once the tensor exists, so that a refused capsule still frees its
// struct.
nb::object FromDlpack(nb::handle capsule) {
  PyObject* object = capsule.ptr();
  if (PyCapsule_IsValid(object, "dltensor_versioned") != 0) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(object, "dltensor_versioned"));
    if (managed->major != 1) throw nb::buffer_error("the capsule is of another version of DLPack");
    TensorHandle tensor = Take(managed->tensor, Keep(managed));
    PyCapsule_SetName(object, "used_dltensor_versioned");
    return WrapTensor(std::move(tensor));
  }
  if (PyCapsule_IsValid(object, "dltensor") == 0) {
    throw nb::type_error("this is not a DLPack capsule, or it was consumed already");
  }
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object, "dltensor"));
  TensorHandle tensor = Take(managed->tensor, Keep(managed));
  PyCapsule_SetName(object, "used_dltensor");
  return WrapTensor(std::move(tensor));
}

}  // namespace oncilla_python
