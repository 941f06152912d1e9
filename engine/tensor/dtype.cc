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
    {"invalid", 0}, {"f32", 32}, {"f64", 64}, {"f16", 16}, {"bf16", 16},
    {"i8", 8},      {"i16", 16}, {"i32", 32}, {"i64", 64}, {"u8", 8},
    {"u16", 16},    {"u32", 32}, {"u64", 64}, {"bool", 8}, {"string", 0},
};
static_assert(std::size(kRows) == static_cast<size_t>(DType::kString) + 1);

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
