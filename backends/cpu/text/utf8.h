// UTF-8. Invalid bytes are faults, counted as Unicode recommends: the longest valid prefix of a
// character is one fault.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oncilla::cpu {

inline constexpr int32_t kFault = -1;

struct Decoded {
  int32_t character = kFault;
  size_t bytes = 1;
};

// Decodes the first character of a text, which must not be empty.
Decoded NextUtf8(std::string_view text);
void AppendUtf8(std::string& out, uint32_t character);

// Decodes a whole text; each fault becomes `otherwise`.
std::vector<int32_t> CharactersOf(std::string_view text, int32_t otherwise = kFault);
std::string Utf8Of(std::span<const int32_t> characters);

}  // namespace oncilla::cpu
