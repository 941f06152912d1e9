// Text for XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace oncilla::tool {

// Characters of markup escaped, for text and for attributes in double quotes. Bytes that are no
// UTF-8 and characters that XML has no place for become '?'.
std::string Escaped(std::string_view text);

}  // namespace oncilla::tool
