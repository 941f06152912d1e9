// Escapes text character by character.
#include "tools/oncilla/files/markup.h"

#include "tools/oncilla/files/json_tensor.h"

namespace oncilla::tool {

std::string Escaped(std::string_view text) {
  const bool utf8 = IsUtf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace oncilla::tool
