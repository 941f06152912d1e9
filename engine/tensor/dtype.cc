// Names and sizes of the element types, one row each.
#include "engine/tensor/dtype.h"

#include <iterator>

namespace oncilla {
namespace {

struct Row {
  std::string_view name;
  int bits;
};

constexpr Row kRows[] = {
    {"invalid", 0},    {"f32", 32},   {"f64", 64},       {"f16", 16},   {"bf16", 16},
    {"i8", 8},         {"i16", 16},   {"i32", 32},       {"i64", 64},   {"u8", 8},
    {"u16", 16},       {"u32", 32},   {"u64", 64},       {"bool", 8},   {"string", 0},
    {"i4", 4},         {"u4", 4},     {"i2", 2},         {"u2", 2},     {"f8e4m3fn", 8},
    {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8}, {"f8e8m0", 8}, {"f4e2m1", 4},
    {"c64", 64},       {"c128", 128},
};
static_assert(std::size(kRows) == static_cast<size_t>(DType::kC128) + 1);
static_assert(std::size(kAllDTypes) + 1 == std::size(kRows));

}  // namespace

int BitsOf(DType t) { return kRows[static_cast<size_t>(t)].bits; }

std::string_view Name(DType t) { return kRows[static_cast<size_t>(t)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (DType t : kAllDTypes) {
    if (Name(t) == name) return t;
  }
  return std::nullopt;
}

}  // namespace oncilla
