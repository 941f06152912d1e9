// Printing of attributes, and the messages of refusals.
#include "engine/ops/attrs.h"

#include <algorithm>
#include <charconv>

namespace oncilla {
namespace {

std::string Number(double value) {
  // Finds the shortest text that reads back as the same double.
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

template <class T, class F>
std::string List(const std::vector<T>& values, F&& item) {
  std::string out = "[";
  for (const T& v : values) out += (out.size() > 1 ? "," : "") + item(v);
  return out + "]";
}

}  // namespace

std::string ToString(const AttrValue& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, double>) {
          return Number(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return List(v, [](int64_t i) { return std::to_string(i); });
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return List(v, Number);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return List(v, [](const std::string& s) { return s; });
        } else {
          return StrCat(v);
        }
      },
      value);
}

std::string ToString(const AttrMap& attrs) {
  std::string out;
  for (const auto& [name, value] : attrs) {
    out += (out.empty() ? "{" : ",") + name + "=" + ToString(value);
  }
  return out.empty() ? out : out + "}";
}

namespace attrs_internal {

Status WrongType(std::string_view name, const AttrValue& value) {
  return InvalidArgument("attribute '", name, "' has the wrong type (value ", ToString(value), ")");
}

Status UnknownNames(const AttrMap& map, const std::vector<std::string_view>& known) {
  for (const auto& item : map) {
    if (std::find(known.begin(), known.end(), item.first) == known.end()) {
      return InvalidArgument("there is no attribute '", item.first, "'");
    }
  }
  return Status();
}

}  // namespace attrs_internal
}  // namespace oncilla
