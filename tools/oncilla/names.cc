// Splits NAME=VALUE from the right, and encodes names for files byte by byte.
#include "tools/oncilla/names.h"

#include <algorithm>

#include "engine/base/near_names.h"

namespace oncilla::tool {
namespace {

std::string Join(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

}  // namespace

Result<std::pair<std::string, std::string>> SplitAssignment(std::string_view text,
                                                            std::span<const std::string> names,
                                                            std::string_view what) {
  for (size_t at = text.rfind('='); at != std::string_view::npos; at = text.rfind('=', at - 1)) {
    const std::string_view left = text.substr(0, at);
    if (std::find(names.begin(), names.end(), left) != names.end()) {
      return std::pair(std::string(left), std::string(text.substr(at + 1)));
    }
    if (at == 0) break;
  }
  const size_t first = text.find('=');
  if (first == std::string_view::npos) {
    return WithStage(InvalidArgument("'", text, "' is not of the form NAME=VALUE"),
                     Stage::kOptions);
  }
  const std::string_view name = text.substr(0, first);
  return WithStage(InvalidArgument("there is no ", what, " '", name, "'",
                                   DidYouMeanAmong(name, names, Join(names))),
                   Stage::kOptions);
}

std::string FileNameOf(std::string_view tensor_name) {
  std::string out;
  for (const char c : tensor_name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (plain) {
      out += c;
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace oncilla::tool
