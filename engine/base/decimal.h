// Floating-point numbers as text with a decimal point, whatever locale the program has set.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>

namespace oncilla {

// `digits` is the precision as in printf: digits after the point (fixed, scientific) or significant
// digits (general).
inline std::string DecimalText(double value, std::chars_format form, int digits) {
  // The largest double has 309 digits before the point.
  std::string text(static_cast<size_t>(std::max(digits, 0)) + 330, '\0');
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, form, digits).ptr;
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

// As "%.*f" and "%.*g" print in the C locale.
inline std::string FixedText(double value, int digits) {
  return DecimalText(value, std::chars_format::fixed, digits);
}
inline std::string GeneralText(double value, int digits = 6) {
  return DecimalText(value, std::chars_format::general, digits);
}

}  // namespace oncilla
