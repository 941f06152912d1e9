// Checks and parses text from outside: UTF-8, numbers, names.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace oncilla::server {

// Appends texts and numbers. Implemented here, since Abseil's version in Debian uses a string_view
// type of its own.
inline void StrAppend(std::string* text) { (void)text; }
template <class First, class... Rest>
void StrAppend(std::string* text, const First& first, const Rest&... rest) {
  if constexpr (std::is_arithmetic_v<First>) {
    static_assert(!std::is_same_v<First, char>, "a character is neither text nor number");
    if constexpr (std::is_same_v<First, bool>) {
      text->push_back(first ? '1' : '0');
    } else {
      char digits[40];
      text->append(digits, std::to_chars(digits, digits + sizeof(digits), first).ptr);
    }
  } else {
    text->append(std::string_view(first));
  }
  StrAppend(text, rest...);
}
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  StrAppend(&text, parts...);
  return text;
}

// The parts between separators; one more than there are separators.
std::vector<std::string> Split(std::string_view text, char separator);

bool IsUtf8(std::string_view text);
// The same text, with '?' in place of each byte that does not belong to valid UTF-8.
std::string ValidUtf8(std::string_view text);
// A decimal number without sign, blanks and leading zeros; none where it is anything else or too
// large.
std::optional<int64_t> ParseNumber(std::string_view text);
// Whether the text is a valid model name: letters, digits, '_', '-' and '.', not beginning with
// '.', at most 128.
bool IsModelName(std::string_view text);

}  // namespace oncilla::server
