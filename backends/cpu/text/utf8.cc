// Reading and writing of UTF-8.
#include "backends/cpu/text/utf8.h"

namespace oncilla::cpu {

Decoded NextUtf8(std::string_view text) {
  auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u;
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {static_cast<int32_t>(first), 1};
  if (first < 0xC2 || first > 0xF4) return {};
  const size_t more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  // The range of the second byte excludes overlong forms, surrogates, and values beyond the last
  // character.
  const uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  uint32_t value = first & (0x3F >> more);
  for (size_t i = 1; i <= more; ++i) {
    const uint32_t next = byte(i);
    if (next < (i == 1 ? low : 0x80u) || next > (i == 1 ? high : 0xBFu)) return {kFault, i};
    value = value << 6 | (next & 0x3F);
  }
  return {static_cast<int32_t>(value), more + 1};
}

void AppendUtf8(std::string& out, uint32_t character) {
  const int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0x00, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | character >> (6 * more));
  for (int i = more - 1; i >= 0; --i) {
    out += static_cast<char>(0x80 | (character >> (6 * i) & 0x3F));
  }
}

std::vector<int32_t> CharactersOf(std::string_view text, int32_t otherwise) {
  std::vector<int32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Decoded next = NextUtf8(text.substr(at));
    out.push_back(next.character == kFault ? otherwise : next.character);
    at += next.bytes;
  }
  return out;
}

std::string Utf8Of(std::span<const int32_t> characters) {
  std::string out;
  out.reserve(characters.size());
  for (const int32_t c : characters) AppendUtf8(out, static_cast<uint32_t>(c));
  return out;
}

}  // namespace oncilla::cpu
