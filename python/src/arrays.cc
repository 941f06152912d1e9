// Converts NumPy arrays to tensors and back. The module is not built against NumPy: arrays pass
// through Python's buffer interface, which supports all types but those of ml_dtypes and strings.
#include "python/src/arrays.h"

#include <cstring>

#include "python/src/deferred.h"

namespace oncilla_python {
namespace {

// Only native byte order, since NumPy writes '<' or '>' for others. Returns 0 for a type that the
// engine does not have.
oncilla_dtype ReadFormat(const char* format, Py_ssize_t size) {
  const auto integer = [&](bool is_signed) {
    switch (size) {
      case 1:
        return is_signed ? ONCILLA_INT8 : ONCILLA_UINT8;
      case 2:
        return is_signed ? ONCILLA_INT16 : ONCILLA_UINT16;
      case 4:
        return is_signed ? ONCILLA_INT32 : ONCILLA_UINT32;
      default:
        return is_signed ? ONCILLA_INT64 : ONCILLA_UINT64;
    }
  };
  constexpr auto kNone = static_cast<oncilla_dtype>(0);
  if (format == nullptr || format[0] == 0) return kNone;
  if (format[0] == 'Z' && format[1] != 0 && format[2] == 0) {
    return format[1] == 'f' ? ONCILLA_COMPLEX64 : format[1] == 'd' ? ONCILLA_COMPLEX128 : kNone;
  }
  if (format[1] != 0) return kNone;
  if (std::strchr("bhilq", format[0]) != nullptr) return integer(true);
  if (std::strchr("BHILQ", format[0]) != nullptr) return integer(false);
  switch (format[0]) {
    case 'f':
      return ONCILLA_FLOAT32;
    case 'd':
      return ONCILLA_FLOAT64;
    case 'e':
      return ONCILLA_FLOAT16;
    case '?':
      return ONCILLA_BOOL;
    default:
      return kNone;
  }
}

bool IsArray(nb::handle value) {
  static PyObject* const type = PythonHelper("ndarray").ptr();
  return reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())) == type;
}

TensorHandle Wrap(std::unique_ptr<Kept> kept, oncilla_dtype dtype, const int64_t* dims,
                  size_t rank) {
  oncilla_tensor* tensor = nullptr;
  oncilla_status* failure =
      oncilla_tensor_wrap(dtype, dims, rank, kept->view.buf, static_cast<size_t>(kept->view.len),
                          ReleaseLater, kept.get(), &tensor);
  if (failure != nullptr) PyBuffer_Release(&kept->view);
  Check(failure);
  (void)kept.release();  // freed by ReleaseLater
  return TensorHandle(tensor);
}

}  // namespace

TensorHandle WrapBuffer(nb::handle object) {
  auto kept = std::make_unique<Kept>();
  if (PyObject_GetBuffer(object.ptr(), &kept->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // not contiguous, or of a type without a letter in the interface
    return nullptr;
  }
  const Py_buffer& view = kept->view;
  const oncilla_dtype dtype = ReadFormat(view.format, view.itemsize);
  constexpr int kMaxDims = 64;  // the most that Python's interface allows
  const bool aligned =
      view.itemsize > 0 &&
      reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) == 0;
  if (dtype == 0 || !aligned || view.ndim > kMaxDims) {
    PyBuffer_Release(&kept->view);
    return nullptr;
  }
  int64_t dims[kMaxDims];
  for (int i = 0; i < view.ndim; ++i) dims[i] = view.shape[i];
  return Wrap(std::move(kept), dtype, dims, static_cast<size_t>(view.ndim));
}

TensorHandle WrapBytes(nb::handle object, oncilla_dtype dtype, const std::vector<int64_t>& dims) {
  auto kept = std::make_unique<Kept>();
  if (PyObject_GetBuffer(object.ptr(), &kept->view, PyBUF_C_CONTIGUOUS) != 0) {
    throw nb::python_error();
  }
  return Wrap(std::move(kept), dtype, dims.data(), dims.size());
}

TensorHandle MakeStrings(nb::handle sequence, const std::vector<int64_t>& dims) {
  std::vector<nb::object> held;  // bytes objects, which own the text
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) {
    held.push_back(PythonHelper("string_bytes")(item));
    char* text = nullptr;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(held.back().ptr(), &text, &length) != 0) throw nb::python_error();
    texts.push_back(text);
    lengths.push_back(static_cast<size_t>(length));
  }
  int64_t elements = 1;
  for (const int64_t size : dims) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) elements = -1;
  }
  if (elements != static_cast<int64_t>(texts.size())) {
    throw nb::value_error("the shape does not have as many elements as there are strings");
  }
  oncilla_tensor* tensor = nullptr;
  Check(oncilla_tensor_create_strings(dims.data(), dims.size(), texts.data(), lengths.data(),
                                      texts.size(), &tensor));
  return TensorHandle(tensor);
}

Feed ToFeed(nb::handle value, nb::handle convert, nb::handle name, bool plain) {
  Feed feed;
  if (plain && IsArray(value)) {
    feed.owned = WrapBuffer(value);
    feed.tensor = feed.owned.get();
  } else if (nb::isinstance<Tensor>(value)) {
    feed.object = nb::borrow(value);
    feed.tensor = nb::inst_ptr<Tensor>(value)->handle.get();
  }
  if (feed.tensor == nullptr) {
    feed.object = convert(name, value);
    feed.tensor = nb::cast<Tensor&>(feed.object).handle.get();
  }
  return feed;
}

nb::tuple ShapeOf(const oncilla_tensor* tensor) {
  const size_t rank = oncilla_tensor_rank(tensor);
  const int64_t* dims = oncilla_tensor_dims(tensor);
  nb::list sizes;
  for (size_t i = 0; i < rank; ++i) sizes.append(dims[i]);
  return nb::tuple(sizes);
}

nb::list StringsOf(const oncilla_tensor* tensor, bool bytes) {
  nb::list strings;
  for (size_t i = 0; i < oncilla_tensor_elements(tensor); ++i) {
    size_t length = 0;
    const char* text = oncilla_tensor_string(tensor, i, &length);
    PyObject* item =
        bytes ? PyBytes_FromStringAndSize(text, static_cast<Py_ssize_t>(length))
              : PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "surrogateescape");
    if (item == nullptr) throw nb::python_error();
    strings.append(nb::steal(item));
  }
  return strings;
}

nb::object WrapTensor(TensorHandle tensor) { return nb::cast(Tensor{std::move(tensor)}); }

nb::object ToPython(TensorHandle tensor, bool bytes, oncilla_kind kind) {
  if (oncilla_tensor_is_sequence(tensor.get()) != 0) {
    const bool optional = kind == ONCILLA_KIND_OPTIONAL || kind == ONCILLA_KIND_OPTIONAL_SEQUENCE;
    if (optional && oncilla_optional_has_value(tensor.get()) == 0) return nb::none();
    nb::list items;
    for (size_t i = 0; i < oncilla_sequence_size(tensor.get()); ++i) {
      oncilla_tensor* element = nullptr;
      Check(oncilla_sequence_element(tensor.get(), i, &element));
      items.append(ToPython(TensorHandle(element), bytes));
    }
    if (kind == ONCILLA_KIND_OPTIONAL) return nb::borrow(items[0]);
    return items;
  }
  nb::object wrapped = WrapTensor(std::move(tensor));
  auto* own = nb::inst_ptr<Tensor>(wrapped);
  own->writable = oncilla_tensor_mutable_data(own->handle.get()) != nullptr;
  const oncilla_tensor* handle = own->handle.get();
  if (oncilla_tensor_device(handle)[0] != 0) return wrapped;
  switch (oncilla_tensor_dtype(handle)) {
    case ONCILLA_STRING:
      return PythonHelper("strings_array")(StringsOf(handle, bytes), ShapeOf(handle));
    case ONCILLA_FLOAT32:
    case ONCILLA_FLOAT64:
    case ONCILLA_FLOAT16:
    case ONCILLA_INT8:
    case ONCILLA_INT16:
    case ONCILLA_INT32:
    case ONCILLA_INT64:
    case ONCILLA_UINT8:
    case ONCILLA_UINT16:
    case ONCILLA_UINT32:
    case ONCILLA_UINT64:
    case ONCILLA_BOOL:
    case ONCILLA_COMPLEX64:
    case ONCILLA_COMPLEX128: {
      static PyObject* const as_array = PythonHelper("asarray").ptr();
      return nb::handle(as_array)(wrapped);
    }
    default:  // types of ml_dtypes
      return PythonHelper("extended_array")(wrapped);
  }
}

}  // namespace oncilla_python
