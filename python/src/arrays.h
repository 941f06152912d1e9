// Converts NumPy's arrays to tensors and back, without a copy if the memory allows.
#pragma once

#include "python/src/handles.h"

namespace oncilla_python {

// A Python value as a tensor: the handle is `owned`, or belongs to a Tensor object that lives as
// long as the value.
struct Feed {
  const oncilla_tensor* tensor = nullptr;
  TensorHandle owned = nullptr;
  nb::object object;  // keeps `tensor` alive
};

// `convert` is a Python function that converts values which are not plain arrays (_arrays.py); if
// not `plain`, it converts everything, because the model has inputs other than tensors.
Feed ToFeed(nb::handle value, nb::handle convert, nb::handle name, bool plain = true);

// An array over an object with Python's buffer interface, shape and dtype permitting; else null.
TensorHandle WrapBuffer(nb::handle object);
// The same with the type given and the bytes as they lie; `dims` replaces the buffer's shape.
TensorHandle WrapBytes(nb::handle object, oncilla_dtype dtype, const std::vector<int64_t>& dims);
TensorHandle MakeStrings(nb::handle sequence, const std::vector<int64_t>& dims);

// The host tensor as NumPy shows it; a sequence as a list. Takes the handle.
nb::object ToPython(TensorHandle tensor, bool bytes, oncilla_kind kind = ONCILLA_KIND_TENSOR);
// The strings in row-major order, as str (what is no UTF-8 by surrogates) or bytes.
nb::list StringsOf(const oncilla_tensor* tensor, bool bytes);
nb::tuple ShapeOf(const oncilla_tensor* tensor);
nb::object WrapTensor(TensorHandle tensor);

}  // namespace oncilla_python
