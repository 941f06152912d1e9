// TensorDesc: dtype and shape. Tensor: a tensor in host memory.
//
// A Tensor is an immutable value that is cheap to copy: its bytes are shared, and are either owned
// or a view into memory that it keeps alive (a mapped file). Only the code that allocated a tensor
// writes to it, before sharing it. Strings are stored in a vector instead of bytes. A list of
// tensors (tensor_list.h) is also passed as a Tensor wherever values of a graph are: see is_list().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace oncilla {

struct TensorDesc {
  DType dtype = DType::kInvalid;
  Shape shape;

  int rank() const { return shape.rank(); }
  int64_t elements() const { return shape.elements(); }
  // Bytes of the dense row-major form; saturates at INT64_MAX. 0 for strings.
  int64_t bytes() const;
  friend bool operator==(const TensorDesc& a, const TensorDesc& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
  friend bool operator!=(const TensorDesc& a, const TensorDesc& b) { return !(a == b); }
};
std::ostream& operator<<(std::ostream& out, const TensorDesc& desc);  // f32[1,3]

class ResultMemory;
class TensorList;

class Tensor {
 public:
  Tensor() = default;  // invalid: dtype kInvalid

  // Zero-filled, aligned to 64 bytes. Fails with ResourceExhausted when the host has no room.
  static Result<Tensor> Allocate(TensorDesc desc);
  // For a result whose bytes will all be written: takes memory from `kept`, to which it returns
  // when the tensor is destroyed. Reused memory is not zero-filled.
  static Result<Tensor> AllocateResult(TensorDesc desc, const std::shared_ptr<ResultMemory>& kept);
  // Shares `bytes`, which must stay alive and unchanged as long as `owner` does; they must be
  // desc.bytes() long. They may be unaligned: read them through As() only where aligned().
  static Tensor View(TensorDesc desc, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);
  static Tensor Strings(Shape shape, std::vector<std::string> values);
  // The list as a value: its dtype is the elements', its shape [length]; it has no bytes.
  static Tensor OfList(TensorList list);

  template <class T>
  static Tensor Of(DType dtype, Shape shape, std::span<const T> values) {
    Tensor t = Copy({dtype, std::move(shape)}, std::as_bytes(values));
    return t;
  }
  static Tensor Int64s(std::span<const int64_t> values);  // rank 1
  static Tensor Scalar(float value);                      // rank 0
  static Tensor ScalarInt64(int64_t value);               // rank 0
  static Tensor Copy(TensorDesc desc, std::span<const std::byte> bytes);

  const TensorDesc& desc() const { return desc_; }
  DType dtype() const { return desc_.dtype; }
  const Shape& shape() const { return desc_.shape; }
  int64_t elements() const { return desc_.elements(); }
  bool valid() const { return desc_.dtype != DType::kInvalid; }
  bool is_list() const { return list_ != nullptr; }
  const TensorList& list() const { return *list_; }

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // For the code that allocated the tensor, before it is shared.
  std::span<std::byte> mutable_bytes() { return {const_cast<std::byte*>(data_), size_}; }
  // Whether the bytes were allocated for this tensor and no copy shares them.
  bool unshared() const { return allocated_ && owner_.use_count() == 1; }
  bool aligned() const { return reinterpret_cast<uintptr_t>(data_) % 16 == 0; }
  // True when the bytes are a view into a mapped file rather than the process's own memory.
  bool mapped() const { return mapped_; }
  void set_mapped() { mapped_ = true; }

  // Elements as T, which must be of the dtype's size; the data must be aligned for T.
  template <class T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<T> MutableAs() {
    return {reinterpret_cast<T*>(const_cast<std::byte*>(data_)), size_ / sizeof(T)};
  }
  const std::vector<std::string>& strings() const { return *strings_; }

  // The same elements under another shape of as many elements.
  Tensor Reshaped(Shape shape) const;

 private:
  static Result<Tensor> AllocateFrom(TensorDesc desc, const std::shared_ptr<ResultMemory>* kept);

  TensorDesc desc_;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  bool allocated_ = false;  // by Allocate
  std::shared_ptr<const std::vector<std::string>> strings_;
  std::shared_ptr<const TensorList> list_;
};

// Integer tensors of any width, and bools, as int64. Fails for other types and for uint64 above
// INT64_MAX.
Result<std::vector<int64_t>> ToInt64s(const Tensor& tensor);
// Any number type as double.
Result<std::vector<double>> ToDoubles(const Tensor& tensor);

}  // namespace oncilla
