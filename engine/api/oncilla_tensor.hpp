// Oncilla for C++17: Status, Result and Tensor. Included by oncilla.hpp.
#ifndef ONCILLA_TENSOR_HPP_
#define ONCILLA_TENSOR_HPP_

#include <oncilla/oncilla.h>

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace oncilla {
// The namespace has a name so that these classes cannot collide with the engine's own classes of
// the same names in a program that links the static library.
inline namespace v0 {

// Success, or a description of a failure. Cheap to copy.
class [[nodiscard]] Status {
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
  // The driver's own error number (an OpenCL error code), where there is one.
  std::optional<int32_t> driver_code() const {
    int32_t code = 0;
    if (oncilla_status_driver_code(status_.get(), &code) == 0) return std::nullopt;
    return code;
  }

 private:
  std::shared_ptr<oncilla_status> status_;
};

// The exception that value() throws: what() is the message, and status() has the code, the stage,
// the node and the device.
class Error : public std::runtime_error {
 public:
  explicit Error(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }
  oncilla_code code() const { return status_.code(); }

 private:
  Status status_;
};

// A value, or the failure instead of one. Reading the value of a failure throws Error; with
// -fno-exceptions it prints the message and aborts the program.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: return value;
  Result(Status status) : state_(std::move(status)) {}  // NOLINT: return status;

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& value() & {
    Check();
    return std::get<T>(state_);
  }
  const T& value() const& {
    Check();
    return std::get<T>(state_);
  }
  T value() && {
    Check();
    return std::move(std::get<T>(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void Check() const {
    if (ok()) return;
#if defined(__cpp_exceptions)
    throw Error(std::get<Status>(state_));
#else
    std::fprintf(stderr, "%s\n", std::get<Status>(state_).message().c_str());
    std::abort();
#endif
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
  if constexpr (std::is_same_v<T, std::complex<float>>) return ONCILLA_COMPLEX64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return ONCILLA_COMPLEX128;
  return static_cast<oncilla_dtype>(0);
}

inline const char* NameOf(oncilla_dtype dtype) {
  constexpr const char* kNames[] = {
      "?",  "f32",      "f64",        "f16",    "bf16",       "i8",     "i16",    "i32", "i64",
      "u8", "u16",      "u32",        "u64",    "bool",       "string", "i4",     "u4",  "i2",
      "u2", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "c64", "c128"};
  return dtype >= 0 && dtype <= ONCILLA_COMPLEX128 ? kNames[dtype] : kNames[0];
}

// Returns false for types that C++ has no number type for.
inline bool PrintElement(std::ostream& out, oncilla_dtype dtype, const void* data, size_t index) {
  const auto print = [&](auto zero) {
    const auto value = static_cast<const decltype(zero)*>(data)[index];
    if constexpr (sizeof(value) == 1) {
      out << static_cast<int>(value);
    } else {
      out << value;
    }
    return true;
  };
  switch (dtype) {
    case ONCILLA_FLOAT32:
      return print(float{});
    case ONCILLA_FLOAT64:
      return print(double{});
    case ONCILLA_INT8:
      return print(int8_t{});
    case ONCILLA_INT16:
      return print(int16_t{});
    case ONCILLA_INT32:
      return print(int32_t{});
    case ONCILLA_INT64:
      return print(int64_t{});
    case ONCILLA_BOOL:
    case ONCILLA_UINT8:
      return print(uint8_t{});
    case ONCILLA_UINT16:
      return print(uint16_t{});
    case ONCILLA_UINT32:
      return print(uint32_t{});
    case ONCILLA_UINT64:
      return print(uint64_t{});
    case ONCILLA_COMPLEX64:
      return print(std::complex<float>{});
    case ONCILLA_COMPLEX128:
      return print(std::complex<double>{});
    default:
      return false;
  }
}
}  // namespace internal

// A tensor in host memory or on a device, or a reference to one that a result holds. Copies share
// the memory. A default-constructed tensor, and one that a result does not have, is not valid: it
// has no elements, and calls that are given it fail.
class Tensor {
 public:
  Tensor() = default;
  bool valid() const { return tensor_ != nullptr; }
  // Copies the values, of which there must be as many as the product of `dims`.
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
  // Uses the caller's memory without a copy. Its size must be that of the tensor, and it must stay
  // unchanged until `release` (may be empty) is called, on whichever thread drops the last
  // reference. On failure `release` is not called.
  static Result<Tensor> Wrap(oncilla_dtype dtype, const std::vector<int64_t>& dims,
                             const void* data, size_t bytes,
                             std::function<void()> release = nullptr) {
    auto kept = std::make_unique<std::function<void()>>(std::move(release));
    const auto call = [](void* user) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(user));
      if (*own) (*own)();
    };
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_wrap(dtype, dims.data(), dims.size(), data, bytes, +call,
                                      kept.get(), &tensor));
    if (!status.ok()) return status;
    (void)kept.release();  // `call` has it
    return Adopt(tensor);
  }
  template <class T>
  static Result<Tensor> Wrap(const std::vector<int64_t>& dims, const T* data, size_t count,
                             std::function<void()> release = nullptr) {
    return Wrap(internal::DTypeOf<T>(), dims, data, count * sizeof(T), std::move(release));
  }
  static Result<Tensor> Strings(const std::vector<int64_t>& dims,
                                const std::vector<std::string>& values) {
    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    for (const std::string& v : values) texts.push_back(v.data()), lengths.push_back(v.size());
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_create_strings(dims.data(), dims.size(), texts.data(),
                                                lengths.data(), texts.size(), &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }

  // A sequence of tensors of one type in host memory, whose shapes may differ; inputs of ONNX
  // models may be sequences and optional values (oncilla_sequence.h).
  static Result<Tensor> Sequence(oncilla_dtype dtype, const std::vector<Tensor>& elements) {
    std::vector<const oncilla_tensor*> handles;
    for (const Tensor& element : elements) handles.push_back(element.get());
    oncilla_tensor* sequence = nullptr;
    Status status(oncilla_sequence_create(dtype, handles.data(), handles.size(), &sequence));
    if (!status.ok()) return status;
    return Adopt(sequence);
  }
  // An optional value: a tensor or a sequence, or none where `value` is not valid.
  static Result<Tensor> Optional(oncilla_dtype dtype, const Tensor& value) {
    oncilla_tensor* optional = nullptr;
    Status status(oncilla_optional_create(dtype, value.get(), &optional));
    if (!status.ok()) return status;
    return Adopt(optional);
  }
  // Whether this is a sequence or an optional value, and whether the latter is there.
  bool is_sequence() const { return oncilla_tensor_is_sequence(get()) != 0; }
  bool has_value() const { return oncilla_optional_has_value(get()) != 0; }
  // The elements of a sequence; of an optional tensor that is there, this tensor.
  Result<std::vector<Tensor>> Elements() const {
    std::vector<Tensor> elements(oncilla_sequence_size(get()));
    for (size_t i = 0; i < elements.size(); ++i) {
      oncilla_tensor* element = nullptr;
      Status status(oncilla_sequence_element(get(), i, &element));
      if (!status.ok()) return status;
      elements[i] = Adopt(element);
    }
    return elements;
  }

  oncilla_dtype dtype() const { return oncilla_tensor_dtype(get()); }
  std::vector<int64_t> dims() const {
    const int64_t* d = oncilla_tensor_dims(get());
    if (d == nullptr) return {};
    return {d, d + oncilla_tensor_rank(get())};
  }
  size_t size() const { return oncilla_tensor_elements(get()); }
  size_t bytes() const { return oncilla_tensor_bytes(get()); }
  const void* raw() const { return oncilla_tensor_data(get()); }
  // The bytes, to be changed: null where somebody else may read them, as a copy of this object
  // does; see oncilla_tensor_mutable_data.
  void* mutable_raw() {
    if (tensor_.use_count() != 1) return nullptr;
    return oncilla_tensor_mutable_data(const_cast<oncilla_tensor*>(get()));
  }
  // The elements; null when the tensor has another type, is on a device, or is not valid.
  template <class T>
  const T* data() const {
    return dtype() == internal::DTypeOf<T>() ? static_cast<const T*>(raw()) : nullptr;
  }
  // String `index`; empty where the index is out of range or the tensor holds numbers.
  std::string string(size_t index) const {
    size_t length = 0;
    const char* text = oncilla_tensor_string(get(), index, &length);
    return text == nullptr ? std::string() : std::string(text, length);
  }
  // The full name of the device that holds the tensor; empty for host memory. data() of a tensor on
  // a device is null: use Read().
  std::string device() const { return oncilla_tensor_device(get()); }
  // Copies the tensor to host memory.
  Result<Tensor> Read() const {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_read(get(), &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }
  // The same tensor by a handle of its own: an output that is kept so does not keep the result's
  // other outputs in memory, as a Tensor taken from the result does.
  Result<Tensor> Share() const {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_tensor_share(get(), &tensor));
    if (!status.ok()) return status;
    return Adopt(tensor);
  }
  const oncilla_tensor* get() const { return tensor_.get(); }
  // Takes ownership of a handle of the C interface.
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

// "f32[2,3] 1 2 3 ..": the type, the shape and the first elements of a tensor in host memory.
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.valid()) return out << "no tensor";
  out << internal::NameOf(tensor.dtype()) << '[';
  const std::vector<int64_t> dims = tensor.dims();
  for (size_t i = 0; i < dims.size(); ++i) out << (i > 0 ? "," : "") << dims[i];
  out << ']';
  if (!tensor.device().empty()) return out << " on " << tensor.device();
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < tensor.size() && i < kMost; ++i) {
    out << ' ';
    if (tensor.dtype() == ONCILLA_STRING) {
      out << '"' << tensor.string(i) << '"';
    } else if (!internal::PrintElement(out, tensor.dtype(), tensor.raw(), i)) {
      return out;
    }
  }
  return tensor.size() > kMost ? out << " .." : out;
}
inline std::ostream& operator<<(std::ostream& out, const Status& status) {
  return status.ok() ? out << "ok" : out << status.message();
}

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_TENSOR_HPP_
