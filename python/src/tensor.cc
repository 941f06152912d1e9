// The class Tensor: memory of the library or of a device, as Python sees it.
#include <nanobind/stl/vector.h>

#include "python/src/arrays.h"
#include "python/src/deferred.h"
#include "python/src/dlpack.h"

namespace oncilla_python {
namespace {

// The letter of a type in Python's buffer interface; types without a letter are shown as bytes.
const char* FormatOf(oncilla_dtype dtype) {
  switch (dtype) {
    case ONCILLA_FLOAT32:
      return "f";
    case ONCILLA_FLOAT64:
      return "d";
    case ONCILLA_FLOAT16:
      return "e";
    case ONCILLA_INT8:
      return "b";
    case ONCILLA_INT16:
      return "h";
    case ONCILLA_INT32:
      return "i";
    case ONCILLA_INT64:
      return "q";
    case ONCILLA_UINT8:
      return "B";
    case ONCILLA_UINT16:
    case ONCILLA_BFLOAT16:
      return "H";
    case ONCILLA_UINT32:
      return "I";
    case ONCILLA_UINT64:
      return "Q";
    case ONCILLA_BOOL:
      return "?";
    case ONCILLA_COMPLEX64:
      return "Zf";
    case ONCILLA_COMPLEX128:
      return "Zd";
    default:
      return "B";
  }
}

Py_ssize_t ItemSize(const char* format) {
  switch (format[0]) {
    case 'Z':
      return format[1] == 'f' ? 8 : 16;
    case 'd':
    case 'q':
    case 'Q':
      return 8;
    case 'f':
    case 'i':
    case 'I':
      return 4;
    case 'e':
    case 'h':
    case 'H':
      return 2;
    default:
      return 1;
  }
}

bool IsPacked(oncilla_dtype dtype) {
  return dtype == ONCILLA_INT4 || dtype == ONCILLA_UINT4 || dtype == ONCILLA_INT2 ||
         dtype == ONCILLA_UINT2 || dtype == ONCILLA_FLOAT4E2M1;
}

// Shape and strides of an exported buffer; packed types are exported as a row of bytes.
struct Exported {
  std::vector<Py_ssize_t> shape, strides;
};

int GetBuffer(PyObject* object, Py_buffer* view, int flags) noexcept {
  const oncilla_tensor* tensor = nb::inst_ptr<Tensor>(object)->handle.get();
  const oncilla_dtype dtype = oncilla_tensor_dtype(tensor);
  const char* refused = nullptr;
  if (oncilla_tensor_is_sequence(tensor) != 0) refused = "a sequence has no buffer";
  if (dtype == ONCILLA_STRING) refused = "a tensor of strings has no buffer";
  if (oncilla_tensor_device(tensor)[0] != 0) {
    refused = "the tensor is on a device: read() copies it to the host";
  }
  const bool writable = nb::inst_ptr<Tensor>(object)->writable;
  if ((flags & PyBUF_WRITABLE) != 0 && !writable) refused = "the tensor is read-only";
  if (refused != nullptr) {
    PyErr_SetString(PyExc_BufferError, refused);
    view->obj = nullptr;
    return -1;
  }
  auto* exported = new (std::nothrow) Exported;
  if (exported == nullptr) {
    PyErr_NoMemory();
    view->obj = nullptr;
    return -1;
  }
  const char* format = FormatOf(dtype);
  const Py_ssize_t item = ItemSize(format),
                   bytes = static_cast<Py_ssize_t>(oncilla_tensor_bytes(tensor));
  const int64_t* dims = oncilla_tensor_dims(tensor);
  if (IsPacked(dtype)) {
    exported->shape = {bytes};
  } else {
    exported->shape.assign(dims, dims + oncilla_tensor_rank(tensor));
  }
  exported->strides.resize(exported->shape.size());
  Py_ssize_t stride = item;
  for (size_t i = exported->shape.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= std::max<Py_ssize_t>(exported->shape[i], 1);
  }
  static char nothing[1];
  const void* data = oncilla_tensor_data(tensor);
  view->buf = data != nullptr ? const_cast<void*>(data) : nothing;
  view->obj = Py_NewRef(object);
  view->len = bytes;
  view->readonly = writable ? 0 : 1;
  view->itemsize = item;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  view->ndim = static_cast<int>(exported->shape.size());
  view->shape = (flags & PyBUF_ND) != 0 ? exported->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported;
  return 0;
}

void ReleaseBuffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Exported*>(view->internal);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
                       {Py_bf_releasebuffer, reinterpret_cast<void*>(ReleaseBuffer)},
                       {0, nullptr}};

nb::object Read(const Tensor& tensor) {
  oncilla_tensor* host = nullptr;
  oncilla_status* failure = nullptr;
  {
    const Unlock unlocked;
    failure = oncilla_tensor_read(tensor.handle.get(), &host);
  }
  Drain();
  Check(failure);
  return WrapTensor(TensorHandle(host));
}

}  // namespace

void DefineTensor(nb::module_& m) {
  nb::class_<Tensor>(m, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(),
                     nb::is_final())
      .def_prop_ro("shape", [](const Tensor& t) { return ShapeOf(t.handle.get()); })
      .def_prop_ro(
          "code",
          [](const Tensor& t) { return static_cast<int>(oncilla_tensor_dtype(t.handle.get())); })
      .def_prop_ro("nbytes", [](const Tensor& t) { return oncilla_tensor_bytes(t.handle.get()); })
      .def_prop_ro("device", [](const Tensor& t) { return oncilla_tensor_device(t.handle.get()); })
      .def_prop_ro("is_sequence",
                   [](const Tensor& t) { return oncilla_tensor_is_sequence(t.handle.get()) != 0; })
      .def("read", &Read)
      .def(
          "value",
          [](const Tensor& t, bool bytes, int kind) {
            oncilla_tensor* shared = nullptr;
            Check(oncilla_tensor_share(t.handle.get(), &shared));
            TensorHandle own(shared);
            if (oncilla_tensor_device(shared)[0] != 0) {
              const nb::object host = Read(t);
              return ToPython(std::move(nb::cast<Tensor&>(host).handle), bytes);
            }
            return ToPython(std::move(own), bytes, static_cast<oncilla_kind>(kind));
          },
          nb::arg("bytes") = false, nb::arg("kind") = 0)
      .def("strings", [](const Tensor& t, bool bytes) { return StringsOf(t.handle.get(), bytes); })
      .def("dlpack", &ToDlpack)
      .def("dlpack_device", [](const Tensor& t) { return DlpackDevice(t.handle.get()); });
  m.def("from_dlpack", &FromDlpack);
  // The same values in memory that nobody else can change.
  m.def("copy", [](const Tensor& t) {
    const oncilla_tensor* from = t.handle.get();
    oncilla_tensor* made = nullptr;
    const bool plain = oncilla_tensor_is_sequence(from) == 0 &&
                       oncilla_tensor_dtype(from) != ONCILLA_STRING &&
                       oncilla_tensor_device(from)[0] == 0;
    Check(plain ? oncilla_tensor_create(oncilla_tensor_dtype(from), oncilla_tensor_dims(from),
                                        oncilla_tensor_rank(from), oncilla_tensor_data(from),
                                        oncilla_tensor_bytes(from), &made)
                : oncilla_tensor_share(from, &made));
    return WrapTensor(TensorHandle(made));
  });
  m.def("wrap", [](nb::object object) -> nb::object {
    TensorHandle tensor = WrapBuffer(object);
    return tensor == nullptr ? nb::none() : WrapTensor(std::move(tensor));
  });
  m.def("wrap_bytes", [](nb::object object, int dtype, std::vector<int64_t> dims) {
    return WrapTensor(WrapBytes(object, static_cast<oncilla_dtype>(dtype), dims));
  });
  m.def("make_strings", [](nb::object strings, std::vector<int64_t> dims) {
    return WrapTensor(MakeStrings(strings, dims));
  });
  m.def("make_sequence", [](int dtype, std::vector<const Tensor*> elements) {
    std::vector<const oncilla_tensor*> handles;
    for (const Tensor* element : elements) handles.push_back(element->handle.get());
    oncilla_tensor* sequence = nullptr;
    Check(oncilla_sequence_create(static_cast<oncilla_dtype>(dtype), handles.data(), handles.size(),
                                  &sequence));
    return WrapTensor(TensorHandle(sequence));
  });
  m.def(
      "make_optional",
      [](int dtype, const Tensor* value) {
        oncilla_tensor* optional = nullptr;
        Check(oncilla_optional_create(static_cast<oncilla_dtype>(dtype),
                                      value == nullptr ? nullptr : value->handle.get(), &optional));
        return WrapTensor(TensorHandle(optional));
      },
      nb::arg("dtype"), nb::arg("value").none());
}

}  // namespace oncilla_python
