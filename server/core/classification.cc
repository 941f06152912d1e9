// Sorts a tensor's elements by their values.
#include "server/core/classification.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "server/core/tensor_codec.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

template <class T>
std::string ValueText(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    char text[400];  // the largest double has 309 digits before the point
    const auto end = std::to_chars(text, text + sizeof(text), static_cast<double>(value),
                                   std::chars_format::fixed, 6)
                         .ptr;
    return std::string(text, end);
  } else {
    return std::to_string(value);
  }
}

template <class T>
void Append(const T* values, size_t size, size_t count, std::vector<std::string>& texts) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [values](size_t a, size_t b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(values[a]) != std::isnan(values[b])) return std::isnan(values[b]);
      if (std::isnan(values[a])) return a < b;
    }
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    before);
  for (size_t i = 0; i < count; ++i)
    texts.push_back(StrCat(ValueText(values[order[i]]), ":", order[i]));
}

template <class T>
absl::StatusOr<Tensor> Make(const Tensor& tensor, uint64_t count, bool rows) {
  const size_t parts = rows ? static_cast<size_t>(tensor.dims()[0]) : 1;
  const size_t size = parts == 0 ? 0 : tensor.size() / parts;
  const size_t each = std::min<uint64_t>(count, size);
  std::vector<std::string> texts;
  for (size_t i = 0; i < parts; ++i)
    Append(static_cast<const T*>(tensor.raw()) + i * size, size, each, texts);
  std::vector<int64_t> shape;
  if (rows) shape.push_back(static_cast<int64_t>(parts));
  shape.push_back(static_cast<int64_t>(each));
  auto made = Tensor::Strings(shape, texts);
  if (!made.ok()) return FromEngine(made.status());
  return *std::move(made);
}

}  // namespace

absl::StatusOr<Tensor> Classified(const std::string& name, const Tensor& tensor, uint64_t count,
                                  bool rows) {
  switch (tensor.dtype()) {
    case ONCILLA_FLOAT32:
      return Make<float>(tensor, count, rows);
    case ONCILLA_FLOAT64:
      return Make<double>(tensor, count, rows);
    case ONCILLA_INT8:
      return Make<int8_t>(tensor, count, rows);
    case ONCILLA_INT16:
      return Make<int16_t>(tensor, count, rows);
    case ONCILLA_INT32:
      return Make<int32_t>(tensor, count, rows);
    case ONCILLA_INT64:
      return Make<int64_t>(tensor, count, rows);
    case ONCILLA_UINT8:
      return Make<uint8_t>(tensor, count, rows);
    case ONCILLA_UINT16:
      return Make<uint16_t>(tensor, count, rows);
    case ONCILLA_UINT32:
      return Make<uint32_t>(tensor, count, rows);
    case ONCILLA_UINT64:
      return Make<uint64_t>(tensor, count, rows);
    default:
      return absl::InvalidArgumentError(StrCat(
          "output '", name, "' is ", DatatypeOf(tensor.dtype()), ", which cannot be classified"));
  }
}

}  // namespace oncilla::server
