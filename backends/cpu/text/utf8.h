// UTF-8. Bytes that are no character are faults, counted as Unicode recommends: the longest
// beginning of a character is one.
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

// The character that a text, which is not empty, begins with.
Decoded NextUtf8(std::string_view text);
void AppendUtf8(std::string& out, uint32_t character);

// Whole texts; `otherwise` stands for each fault.
std::vector<int32_t> CharactersOf(std::string_view text, int32_t otherwise = kFault);
std::string Utf8Of(std::span<const int32_t> characters);

}  // namespace oncilla::cpu
