// Numbers as people read them. For machines, print the number itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oncilla {

// "0 B", "999 B", "1.50 KiB", "2.00 GiB". Negative numbers keep their sign.
std::string HumanBytes(int64_t bytes);

// Parses a number of bytes with or without a unit: "64", "1.5k", "512MiB", "3GB". k, M, G and T are
// powers of 1000, with an 'i' powers of 1024. Returns nothing for any other text, or above 9e18.
std::optional<int64_t> BytesFromText(std::string_view text);

// Makes text safe for a terminal: control characters, which a name in a file may contain, become
// \xNN; line breaks and tabs stay.
std::string Printable(std::string_view text);

// As Printable(), for a name within such text: line breaks and tabs become \n, \r and \t.
std::string OneLine(std::string_view name);

}  // namespace oncilla
