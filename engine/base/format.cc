// Powers of 1024, with two decimals for every unit above the byte.
#include "engine/base/format.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "engine/base/decimal.h"

namespace oncilla {

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  // A value from 1023.995 on would round to "1024.00", so it moves to the next unit.
  while (std::fabs(value) >= 1023.995 && unit < 6) value /= 1024, ++unit;
  return FixedText(value, unit == 0 ? 0 : 2) + kUnits[unit];
}

std::optional<int64_t> BytesFromText(std::string_view text) {
  std::string_view unit = text;
  while (!unit.empty() && ((unit[0] >= '0' && unit[0] <= '9') || unit[0] == '.')) {
    unit.remove_prefix(1);
  }
  double number = 0;
  const char* const end = unit.data();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (unit.ends_with('B') || unit.ends_with('b')) unit.remove_suffix(1);
  const bool binary = unit.ends_with('i');
  if (binary) unit.remove_suffix(1);
  double factor = 1;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    const size_t power = kUnits.find(letter);
    if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
    factor = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  } else if (binary) {
    return std::nullopt;
  }
  if (number * factor >= 9e18) return std::nullopt;
  return static_cast<int64_t>(number * factor);
}

std::string Printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  const auto escape = [&](unsigned char byte) {
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C1 control characters are two bytes in UTF-8; terminals read some as the start of a sequence,
    // as they read ESC.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (c1) {
      escape(byte);
      escape(static_cast<unsigned char>(text[++i]));
    } else if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') {
      out.push_back(text[i]);
    } else {
      escape(byte);
    }
  }
  return out;
}

std::string OneLine(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (const char c : name) {
    if (c == '\n' || c == '\r' || c == '\t') {
      out += {'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'};
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace oncilla
