// Parses text as a number of a type: decimal or scientific, with optional whitespace around it, inf
// and nan in any case. Rounded once.
#pragma once

#include <locale.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>

namespace oncilla::cpu {

// While an object exists, the C library formats and parses numbers on this thread as in the C
// locale, whatever the application has set.
class PlainNumbers {
 public:
  PlainNumbers() : before_(uselocale(Plain())) {}
  ~PlainNumbers() { uselocale(before_); }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  static locale_t Plain() {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return plain;
  }
  const locale_t before_;
};

// Returns false when the text is not a number of that type.
template <class T>
bool ParseNumber(std::string_view text, T& value) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return false;
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  const bool minus = text[0] == '-';
  if (text[0] == '+') text.remove_prefix(1);
  if (text.empty() || (text[0] == '-') != minus) return false;  // "+-1"
  const char* end = text.data() + text.size();
  if constexpr (std::is_integral_v<T>) {
    const auto [at, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && at == end;
  } else {
    // Rounded once, to T itself.
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Wide wide = 0;
    const auto [at, error] = std::from_chars(text.data(), end, wide);
    if (at != end || error == std::errc::invalid_argument) return false;
    if (error == std::errc::result_out_of_range) {
      // Too large or too small: infinity or zero, distinguished by the number as a double, or by
      // the sign of its exponent.
      double large = 0;
      const auto again = std::from_chars(text.data(), end, large);
      const size_t exponent = text.find_first_of("eE");
      const bool tiny = again.ec == std::errc()
                            ? std::fabs(large) < 1
                            : exponent != std::string_view::npos && text[exponent + 1] == '-';
      wide = tiny ? 0 : INFINITY;
      if (minus) wide = -wide;
    }
    value = static_cast<T>(wide);
    return true;
  }
}

}  // namespace oncilla::cpu
