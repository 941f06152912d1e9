// Oncilla for C++17: outcomes and tensors. Included by oncilla.hpp.
#ifndef ONCILLA_TENSOR_HPP_
#define ONCILLA_TENSOR_HPP_

#include <oncilla/oncilla.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace oncilla {
// Named, so that a program that links the static library can never mix these classes up with the
// engine's own of the same names.
inline namespace v0 {

// Success, or what went wrong. Cheap to copy.
class Status {
 public:
  Status() = default;
  explicit Status(oncilla_status* owned)
      : status_(owned == nullptr ? nullptr
                                 : std::shared_ptr<oncilla_status>(owned, oncilla_status_free)) {}

  bool ok() const { return status_ == nullptr; }
  oncilla_code code() const { return oncilla_status_code(status_.get()); }
  std::string message() const { return oncilla_status_message(status_.get()); }
  std::string stage() const { return oncilla_status_stage(status_.get()); }
  std::string node() const { return oncilla_status_node(status_.get()); }
  std::string device() const { return oncilla_status_device(status_.get()); }

 private:
  std::shared_ptr<oncilla_status> status_;
};

// A value, or why there is none.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: return value;
  Result(Status status) : state_(std::move(status)) {}  // NOLINT: return status;

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  // The value; on a failure throws std::runtime_error with its message.
  T& value() & { return Check(); }
  T value() && { return std::move(Check()); }
  T& operator*() & { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }

 private:
  T& Check() {
    if (!ok()) {
#if defined(__cpp_exceptions)
      throw std::runtime_error(std::get<Status>(state_).message());
#else
      std::fprintf(stderr, "%s\n", std::get<Status>(state_).message().c_str());
      std::abort();
#endif
    }
    return std::get<T>(state_);
  }
  std::variant<T, Status> state_;
};

namespace internal {
template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* handle) const { Free(handle); }
};
template <class T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Freer<T, Free>>;

template <class T>
constexpr oncilla_dtype DTypeOf() {
  if constexpr (std::is_same_v<T, float>) return ONCILLA_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return ONCILLA_FLOAT64;
  if constexpr (std::is_same_v<T, int8_t>) return ONCILLA_INT8;
  if constexpr (std::is_same_v<T, int16_t>) return ONCILLA_INT16;
  if constexpr (std::is_same_v<T, int32_t>) return ONCILLA_INT32;
  if constexpr (std::is_same_v<T, int64_t>) return ONCILLA_INT64;
  if constexpr (std::is_same_v<T, uint8_t>) return ONCILLA_UINT8;
  if constexpr (std::is_same_v<T, uint16_t>) return ONCILLA_UINT16;
  if constexpr (std::is_same_v<T, uint32_t>) return ONCILLA_UINT32;
  if constexpr (std::is_same_v<T, uint64_t>) return ONCILLA_UINT64;
  if constexpr (std::is_same_v<T, bool>) return ONCILLA_BOOL;
  return static_cast<oncilla_dtype>(0);
}
}  // namespace internal

// A tensor in host memory or on a device, or a view of one that a Result holds. Copies share the
// memory.
class Tensor {
 public:
  // Copies the values, whose number must be the product of dims.
  template <class T>
  static Result<Tensor> Of(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    static_assert(!std::is_same_v<T, bool>, "use Copy with bytes of 0 and 1");
    return Copy(internal::DTypeOf<T>(), dims, values.data(), values.size() * sizeof(T));
  }
  static Result<Tensor> Copy(oncilla_dtype dtype, const std::vector<int64_t>& dims,
                             const void* data, size_t bytes) {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_create(dtype, dims.data(), dims.size(), data, bytes, &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }
  static Result<Tensor> Strings(const std::vector<int64_t>& dims,
                                const std::vector<std::string>& values) {
    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    for (const std::string& v : values) texts.push_back(v.data()), lengths.push_back(v.size());
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_create_strings(dims.data(), dims.size(), texts.data(),
                                                lengths.data(), &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }

  oncilla_dtype dtype() const { return oncilla_tensor_dtype(get()); }
  std::vector<int64_t> dims() const {
    const int64_t* d = oncilla_tensor_dims(get());
    return {d, d + oncilla_tensor_rank(get())};
  }
  size_t size() const { return oncilla_tensor_elements(get()); }
  size_t bytes() const { return oncilla_tensor_bytes(get()); }
  const void* raw() const { return oncilla_tensor_data(get()); }
  // Null when the tensor holds something else.
  template <class T>
  const T* data() const {
    return dtype() == internal::DTypeOf<T>() ? static_cast<const T*>(raw()) : nullptr;
  }
  // String `index`; empty outside and for numbers.
  std::string string(size_t index) const {
    size_t length = 0;
    const char* text = oncilla_tensor_string(get(), index, &length);
    return text == nullptr ? std::string() : std::string(text, length);
  }
  // The device that it is on; empty for host memory. Of one on a device, data is null: Read() it.
  std::string device() const { return oncilla_tensor_device(get()); }
  // A copy in host memory.
  Result<Tensor> Read() const {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_read(get(), &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }
  const oncilla_tensor* get() const { return tensor_.get(); }
  // Takes over a handle of the C interface.
  static Tensor Adopt(oncilla_tensor* tensor) {
    return Tensor(std::shared_ptr<const oncilla_tensor>(tensor, oncilla_tensor_free_const));
  }

 private:
  friend class RunResult;
  static void oncilla_tensor_free_const(const oncilla_tensor* tensor) {
    oncilla_tensor_free(const_cast<oncilla_tensor*>(tensor));
  }
  explicit Tensor(std::shared_ptr<const oncilla_tensor> tensor) : tensor_(std::move(tensor)) {}
  std::shared_ptr<const oncilla_tensor> tensor_;
};

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_TENSOR_HPP_
