// Base64 as RFC 4648 section 4 states it: the standard alphabet, padded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oncilla::tool {

std::string EncodeBase64(std::string_view bytes);

// Nothing when `text` is no complete base64: a foreign character, a length that is no multiple of
// four, padding elsewhere than at the end, or bits set that no byte uses.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace oncilla::tool
