// Converts numbers and strings between JSON and tensors.
#include "server/http/json_data.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::json;

absl::Status Bad(const TensorSpec& spec, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("input '", spec.name, "' ", what));
}

template <class T>
bool Convert(const Json& element, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!element.is_boolean()) return false;
    value = element.get<bool>();
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!element.is_number()) return false;
    const auto wide = element.get<double>();
    if (!std::isfinite(wide) || std::abs(wide) > static_cast<double>(std::numeric_limits<T>::max()))
      return false;
    value = static_cast<T>(wide);
    return true;
  } else {
    if (element.is_number_unsigned()) {
      const auto wide = element.get<uint64_t>();
      if (wide > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
      value = static_cast<T>(wide);
      return true;
    }
    if (!element.is_number_integer()) return false;
    const auto wide = element.get<int64_t>();
    if (std::is_unsigned_v<T> || wide < static_cast<int64_t>(std::numeric_limits<T>::min()))
      return false;
    value = static_cast<T>(wide);
    return true;
  }
}

// Calls `take` for each element in row-major order. Nested lists must have the nesting of the
// shape.
template <class Take>
absl::Status Walk(const TensorSpec& spec, const Json& data, size_t axis, const Take& take) {
  const bool nested = !data.empty() && data[0].is_array();
  if (nested || axis > 0) {
    if (axis >= spec.shape.size() || static_cast<int64_t>(data.size()) != spec.shape[axis]) {
      return Bad(spec, "has 'data' whose nesting does not match its shape");
    }
  }
  const bool last = axis + 1 >= spec.shape.size() || (axis == 0 && !nested);
  for (const Json& element : data) {
    if (last ? element.is_array() : !element.is_array()) {
      return Bad(spec, "has 'data' whose nesting does not match its shape");
    }
    const absl::Status status = last ? take(element) : Walk(spec, element, axis + 1, take);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Tensor> Numbers(const TensorSpec& spec, const Json& data, size_t elements) {
  std::string bytes;
  size_t count = 0;
  const absl::Status status = Walk(spec, data, 0, [&](const Json& element) {
    T value{};
    if (!Convert(element, value)) {
      return Bad(spec, StrCat("has an element (number ", count, ") that is not ", spec.datatype));
    }
    if (++count > elements) return Bad(spec, "has more elements in 'data' than its shape");
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (count != elements) {
    return Bad(spec, StrCat("has ", count, " elements in 'data', and its shape has ", elements));
  }
  return TensorFromRaw(spec, bytes);
}

absl::StatusOr<Tensor> Strings(const TensorSpec& spec, const Json& data) {
  std::vector<std::string> strings;
  const absl::Status status = Walk(spec, data, 0, [&](const Json& element) {
    if (!element.is_string())
      return Bad(spec, StrCat("has an element (number ", strings.size(), ") that is not a text"));
    strings.push_back(element.get<std::string>());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return TensorFromStrings(spec, strings);
}

template <class T>
absl::Status AppendNumbers(const std::string& name, const Tensor& tensor, std::string& json) {
  const auto* values = static_cast<const T*>(tensor.raw());
  for (size_t i = 0; i < tensor.size(); ++i) {
    if (i > 0) json += ',';
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(values[i])) {
        return absl::InvalidArgumentError(
            StrCat("output '", name, "' holds ", std::isnan(values[i]) ? "a NaN" : "an infinity",
                   ", which JSON has no form for: ask for binary data"));
      }
    }
    char text[40];
    // The shortest text that reads back as the same number.
    const auto end = std::to_chars(text, text + sizeof(text), values[i]).ptr;
    json.append(text, end);
  }
  return absl::OkStatus();
}

absl::Status AppendStrings(const std::string& name, const Tensor& tensor, std::string& json) {
  for (size_t i = 0; i < tensor.size(); ++i) {
    const std::string text = tensor.string(i);
    if (!IsUtf8(text)) {
      return absl::InvalidArgumentError(
          StrCat("output '", name, "' holds bytes that are not UTF-8: ask for binary data"));
    }
    StrAppend(&json, i > 0 ? "," : "", Json(text).dump());
  }
  return absl::OkStatus();
}

absl::Status AppendElements(const std::string& name, const Tensor& tensor, std::string& json) {
  switch (tensor.dtype()) {
    case ONCILLA_BOOL: {
      const auto* values = static_cast<const uint8_t*>(tensor.raw());
      for (size_t i = 0; i < tensor.size(); ++i)
        StrAppend(&json, i > 0 ? "," : "", values[i] ? "true" : "false");
      return absl::OkStatus();
    }
    case ONCILLA_UINT8:
      return AppendNumbers<uint8_t>(name, tensor, json);
    case ONCILLA_UINT16:
      return AppendNumbers<uint16_t>(name, tensor, json);
    case ONCILLA_UINT32:
      return AppendNumbers<uint32_t>(name, tensor, json);
    case ONCILLA_UINT64:
      return AppendNumbers<uint64_t>(name, tensor, json);
    case ONCILLA_INT8:
      return AppendNumbers<int8_t>(name, tensor, json);
    case ONCILLA_INT16:
      return AppendNumbers<int16_t>(name, tensor, json);
    case ONCILLA_INT32:
      return AppendNumbers<int32_t>(name, tensor, json);
    case ONCILLA_INT64:
      return AppendNumbers<int64_t>(name, tensor, json);
    case ONCILLA_FLOAT32:
      return AppendNumbers<float>(name, tensor, json);
    case ONCILLA_FLOAT64:
      return AppendNumbers<double>(name, tensor, json);
    case ONCILLA_STRING:
      return AppendStrings(name, tensor, json);
    default:
      return absl::InvalidArgumentError(
          StrCat("output '", name, "' is ", DatatypeOf(tensor.dtype()),
                 ", which JSON has no form for: ask for binary data"));
  }
}

}  // namespace

absl::StatusOr<Tensor> TensorFromJson(const TensorSpec& spec, const Json& data) {
  const auto dtype = DtypeOf(spec.datatype);
  if (!dtype.ok()) return dtype.status();
  const auto elements = ElementsOf(spec.name, spec.shape);
  if (!elements.ok()) return elements.status();
  if (!data.is_array()) return Bad(spec, "has 'data' that is not a list");
  switch (*dtype) {
    case ONCILLA_BOOL:
      return Numbers<bool>(spec, data, *elements);
    case ONCILLA_UINT8:
      return Numbers<uint8_t>(spec, data, *elements);
    case ONCILLA_UINT16:
      return Numbers<uint16_t>(spec, data, *elements);
    case ONCILLA_UINT32:
      return Numbers<uint32_t>(spec, data, *elements);
    case ONCILLA_UINT64:
      return Numbers<uint64_t>(spec, data, *elements);
    case ONCILLA_INT8:
      return Numbers<int8_t>(spec, data, *elements);
    case ONCILLA_INT16:
      return Numbers<int16_t>(spec, data, *elements);
    case ONCILLA_INT32:
      return Numbers<int32_t>(spec, data, *elements);
    case ONCILLA_INT64:
      return Numbers<int64_t>(spec, data, *elements);
    case ONCILLA_FLOAT32:
      return Numbers<float>(spec, data, *elements);
    case ONCILLA_FLOAT64:
      return Numbers<double>(spec, data, *elements);
    case ONCILLA_STRING:
      return Strings(spec, data);
    default:
      return Bad(spec,
                 StrCat("is ", spec.datatype, ", which JSON has no form for: send binary data"));
  }
}

absl::Status AppendJsonData(const std::string& name, const Tensor& tensor, std::string& json) {
  json += '[';
  const absl::Status status = AppendElements(name, tensor, json);
  json += ']';
  return status;
}

}  // namespace oncilla::server
