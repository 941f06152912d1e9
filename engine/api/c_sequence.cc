// Sequences and optional values of the C interface, which are lists of tensors in the engine.
#include "engine/api/handles.h"
#include "engine/tensor/tensor_list.h"

using namespace oncilla;       // NOLINT: this file is the border
using namespace oncilla::api;  // NOLINT

namespace {

// The number of elements, without the unwritten last one that marks an optional value as present.
int64_t WrittenSize(const TensorList& list) {
  const int64_t size = list.size();
  return size > 0 && !list.at(size - 1).valid() ? size - 1 : size;
}

Status CheckElement(const oncilla_tensor* element, DType dtype, std::string_view what) {
  ONCILLA_TRY(NeedHandle(element, what));
  if (element->device.valid()) return InvalidArgument(what, " is on a device; read it first");
  if (element->tensor.is_list()) return InvalidArgument(what, " is a sequence itself");
  if (element->tensor.dtype() == dtype) return Status();
  return InvalidArgument(what, " is ", element->tensor.desc(), ", and the sequence is of ", dtype);
}

Result<DType> ReadElementType(oncilla_dtype dtype) {
  const DType ours = FromC(dtype);
  if (ours == DType::kInvalid) {
    return InvalidArgument("dtype ", static_cast<int>(dtype), " is not a type");
  }
  return ours;
}

oncilla_tensor* Release(TensorList list) {
  return new oncilla_tensor(MakeTensor(Tensor::OfList(std::move(list))));
}

}  // namespace

oncilla_status* oncilla_sequence_create(oncilla_dtype dtype, const oncilla_tensor* const* elements,
                                        size_t count, oncilla_tensor** sequence) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(sequence, "sequence"));
    if (count > 0) ONCILLA_TRY(NeedHandle(elements, "elements"));
    if (count > static_cast<size_t>(TensorList::kMaxSize)) {
      return InvalidArgument("a sequence of ", count, " elements; at most ", TensorList::kMaxSize);
    }
    ONCILLA_ASSIGN(const DType type, ReadElementType(dtype));
    TensorList list(type);
    for (size_t i = 0; i < count; ++i) {
      ONCILLA_TRY(CheckElement(elements[i], type, StrCat("elements[", i, "]")));
      list.Push(elements[i]->tensor);
    }
    *sequence = Release(std::move(list));
    return Status();
  });
}

oncilla_status* oncilla_optional_create(oncilla_dtype dtype, const oncilla_tensor* value,
                                        oncilla_tensor** optional) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(optional, "optional"));
    ONCILLA_ASSIGN(const DType type, ReadElementType(dtype));
    TensorList list(type);
    if (value != nullptr && value->tensor.is_list()) {
      if (value->tensor.dtype() != type) {
        return InvalidArgument("value is a sequence of ", value->tensor.dtype(), ", not of ", type);
      }
      list = value->tensor.list();
      list.Resize(WrittenSize(list) + 1);  // the unwritten element marks it as present
    } else if (value != nullptr) {
      ONCILLA_TRY(CheckElement(value, type, "value"));
      list.Push(value->tensor);
    }
    *optional = Release(std::move(list));
    return Status();
  });
}

int oncilla_tensor_is_sequence(const oncilla_tensor* tensor) {
  return tensor != nullptr && tensor->tensor.is_list() ? 1 : 0;
}

int oncilla_optional_has_value(const oncilla_tensor* optional) {
  return oncilla_tensor_is_sequence(optional) != 0 && optional->tensor.list().size() > 0 ? 1 : 0;
}

size_t oncilla_sequence_size(const oncilla_tensor* sequence) {
  if (oncilla_tensor_is_sequence(sequence) == 0) return 0;
  return static_cast<size_t>(WrittenSize(sequence->tensor.list()));
}

oncilla_status* oncilla_sequence_element(const oncilla_tensor* sequence, size_t index,
                                         oncilla_tensor** element) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(sequence, "sequence"));
    ONCILLA_TRY(NeedHandle(element, "element"));
    const size_t size = oncilla_sequence_size(sequence);
    if (index >= size) {
      return Error(Code::kOutOfRange, "there is no element ", index, " of ", size);
    }
    const Tensor& held = sequence->tensor.list().at(static_cast<int64_t>(index));
    if (!held.valid()) {
      return Error(Code::kFailedPrecondition, "element ", index, " was never written");
    }
    *element = new oncilla_tensor(MakeTensor(held));
    return Status();
  });
}
