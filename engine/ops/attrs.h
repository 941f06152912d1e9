// Attributes of a node: AttrMap stores them by name, an Attrs struct reads them with types.
//
// An Attrs struct lists its fields once:
//   struct SoftmaxAttrs {
//     int64_t axis = -1;
//     void Fields(auto&& field) { field("axis", axis); }
//   };
// That one list gives parsing, defaults, writing and the check for unknown names. Field types:
// int64_t, int, double, float, bool, DType, std::string, std::vector<int64_t>,
// std::vector<double>, std::vector<std::string>.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/tensor/dtype.h"

namespace oncilla {

using AnyAttr = std::variant<int64_t, double, bool, DType, std::string, std::vector<int64_t>,
                             std::vector<double>, std::vector<std::string>>;
// Copies in two steps: if an allocation fails while a std::variant of libstdc++ 12 is copied, it
// destroys a value that was never constructed.
struct AttrValue : AnyAttr {
  using AnyAttr::AnyAttr;
  AttrValue() = default;
  AttrValue(const AttrValue& other) : AnyAttr(int64_t{0}) {
    std::visit(
        [this]<class T>(const T& value) {
          T copy = value;
          this->emplace<T>(std::move(copy));
        },
        static_cast<const AnyAttr&>(other));
  }
  AttrValue(AttrValue&&) = default;
  AttrValue& operator=(const AttrValue& other) { return *this = AttrValue(other); }
  AttrValue& operator=(AttrValue&&) = default;
};
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

std::string ToString(const AttrValue& value);
// "{axis=1,log=true}", empty for no attributes; sorted by name.
std::string ToString(const AttrMap& attrs);

struct NoAttrs {
  void Fields(auto&&) {}
};

namespace attrs_internal {
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, int>, int64_t,
                                  std::conditional_t<std::is_same_v<T, float>, double, T>>;
Status WrongType(std::string_view name, const AttrValue& value);
Status UnknownNames(const AttrMap& map, const std::vector<std::string_view>& known);
}  // namespace attrs_internal

// Fills an Attrs struct; refuses a wrong type and any name that the struct lacks. Integers are
// accepted for floating-point fields.
template <class Attrs>
Result<Attrs> ReadAttrs(const AttrMap& map) {
  Attrs attrs;
  Status status;
  std::vector<std::string_view> known;
  attrs.Fields([&]<class T>(std::string_view name, T& field) {
    known.push_back(name);
    auto it = map.find(name);
    if (it == map.end()) return;
    if (const auto* value = std::get_if<attrs_internal::Stored<T>>(&it->second)) {
      field = static_cast<T>(*value);
    } else if (const auto* whole = std::get_if<int64_t>(&it->second);
               whole != nullptr && std::is_floating_point_v<T>) {
      if constexpr (std::is_floating_point_v<T>) field = static_cast<T>(*whole);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&it->second);
               list != nullptr && std::is_same_v<T, std::vector<double>>) {
      if constexpr (std::is_same_v<T, std::vector<double>>)
        field.assign(list->begin(), list->end());
    } else {
      status = attrs_internal::WrongType(name, it->second);
    }
  });
  ONCILLA_TRY(status);
  ONCILLA_TRY(attrs_internal::UnknownNames(map, known));
  return attrs;
}

// The struct as a map; fields that have their default value are left out, so that equal nodes have
// equal maps.
template <class Attrs>
AttrMap WriteAttrs(Attrs attrs) {
  AttrMap map, defaults;
  auto write = [](AttrMap& to) {
    return [&to]<class T>(std::string_view name, T& field) {
      to.emplace(std::string(name), attrs_internal::Stored<T>(field));
    };
  };
  attrs.Fields(write(map));
  Attrs fresh;
  fresh.Fields(write(defaults));
  std::erase_if(map, [&](const auto& item) { return defaults.at(item.first) == item.second; });
  return map;
}

}  // namespace oncilla
