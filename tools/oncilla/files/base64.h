// Base64 as RFC 4648 section 4 states it: the standard alphabet, padded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oncilla::tool {

std::string EncodeBase64(std::string_view bytes);

// Nothing when `text` is not valid base64: an invalid character, a length that is not a multiple of
// four, padding other than at the end, or unused bits that are set.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace oncilla::tool
