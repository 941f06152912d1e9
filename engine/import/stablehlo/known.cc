// Integers that are known while importing: arithmetic with sizes, computed at once.
#include <algorithm>

#include "engine/import/stablehlo/builder.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

constexpr int64_t kMostElements = 64;

// One result, or nothing where the integer type wraps around or the op is another one.
std::optional<int64_t> Computed(std::string_view op, int64_t x, int64_t y) {
  int64_t result = 0;
  if (op == "add")
    return __builtin_add_overflow(x, y, &result) ? std::nullopt : std::optional(result);
  if (op == "subtract") {
    return __builtin_sub_overflow(x, y, &result) ? std::nullopt : std::optional(result);
  }
  if (op == "multiply") {
    return __builtin_mul_overflow(x, y, &result) ? std::nullopt : std::optional(result);
  }
  if (op == "maximum") return std::max(x, y);
  if (op == "minimum") return std::min(x, y);
  if (y == 0 || y == -1) return std::nullopt;
  if (op == "divide") return x / y;
  if (op == "remainder") return x % y;
  return std::nullopt;
}

std::optional<int64_t> Compared(int64_t direction, int64_t x, int64_t y) {
  switch (direction) {
    case 0:
      return x == y;
    case 1:
      return x != y;
    case 2:
      return x >= y;
    case 3:
      return x > y;
    case 4:
      return x <= y;
    case 5:
      return x < y;
    default:
      return std::nullopt;
  }
}

// Ops of one element each, of which a scalar stands for all.
std::optional<int64_t> ElementOf(const HloNode& b, std::span<const int64_t> in) {
  const std::string_view op = b.op().name;
  if (in.size() == 1 && op == "convert") return in[0];
  if (in.size() == 1 && op == "negate") return Computed("subtract", 0, in[0]);
  if (in.size() == 1 && op == "sign") return (in[0] > 0) - (in[0] < 0);
  if (in.size() == 3 && op == "select") return in[0] != 0 ? in[1] : in[2];
  if (in.size() != 2) return std::nullopt;
  if (op == "and" && b.dtype() == DType::kBool) return in[0] != 0 && in[1] != 0;
  if (op == "or" && b.dtype() == DType::kBool) return in[0] != 0 || in[1] != 0;
  if (op == "compare") {
    const Result<int64_t> direction = b.Int("comparison_direction");
    return direction.ok() ? Compared(*direction, in[0], in[1]) : std::nullopt;
  }
  return b.dtype() == DType::kBool ? std::nullopt : Computed(op, in[0], in[1]);
}

bool Fits(DType dtype, int64_t value) {
  if (dtype == DType::kI64) return true;
  if (dtype == DType::kBool) return value == 0 || value == 1;
  if (BitsOf(dtype) < 8 || BitsOf(dtype) > 32) return false;
  const IntegerLimits limits = LimitsOf(dtype);
  return value >= limits.least && value <= limits.most;
}

std::optional<Tensor> Stored(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  const auto size = static_cast<size_t>(BytesOf(dtype));
  std::vector<std::byte> bytes;
  for (int64_t value : values) {
    if (!Fits(dtype, value)) return std::nullopt;
    for (size_t i = 0; i < size; ++i) {
      bytes.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  return Tensor::Copy({dtype, shape}, bytes);
}

}  // namespace

std::optional<Tensor> KnownHloInts(const HloNode& b) {
  const std::string_view op = b.op().name;
  if (b.op().result_types.size() != 1 || !b.result_type().fixed() || b.inputs() == 0) return {};
  const HloType& type = b.result_type();
  const Shape shape = type.shape().ToShape();
  const auto whole = [](DType dtype) { return IsInteger(dtype) || dtype == DType::kBool; };
  if (!whole(type.dtype) || shape.elements() > kMostElements) return {};
  std::vector<std::vector<int64_t>> values;
  for (size_t i = 0; i < b.inputs(); ++i) {
    const Fact& fact = b.in_fact(i);
    if (!fact.has_value() || !whole(fact.dtype) || fact.value.elements() > kMostElements) return {};
    Result<std::vector<int64_t>> known = ToInt64s(fact.value);
    if (!known.ok()) return {};
    values.push_back(*std::move(known));
  }
  std::vector<int64_t> result;
  const auto count = static_cast<size_t>(shape.elements());
  if (op == "concatenate") {
    const Result<int64_t> axis = b.Int("dimension");
    if (!axis.ok() || *axis != 0) return {};
    for (const auto& part : values) result.insert(result.end(), part.begin(), part.end());
  } else if (op == "reshape") {
    result = values[0];
  } else {
    for (size_t i = 0; i < count; ++i) {
      std::vector<int64_t> in;
      for (const auto& list : values) {
        if (list.size() != 1 && list.size() != count) return {};
        in.push_back(list[list.size() == 1 ? 0 : i]);
      }
      const std::optional<int64_t> element = ElementOf(b, in);
      if (!element.has_value()) return {};
      result.push_back(*element);
    }
  }
  if (result.size() != count) return {};
  return Stored(type.dtype, shape, result);
}

}  // namespace oncilla
