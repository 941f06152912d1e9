// Nearness is the Levenshtein distance: insertions, deletions and changes of one byte, regardless
// of case.
#include "tools/oncilla/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace oncilla::tool {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t change = diagonal + (a[i] != b[k]);
      diagonal = row[k + 1];
      row[k + 1] = std::min({change, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

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
  return WithStage(InvalidArgument("no ", what, " is named '", name, "'", Suggestion(name, names),
                                   "; the model has: ", Join(names)),
                   Stage::kOptions);
}

std::vector<std::string> NearNames(std::string_view name, std::span<const std::string> names) {
  const std::string wanted = Lower(name);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : names) {
    const std::string other = Lower(candidate);
    size_t distance = Distance(wanted, other);
    // A name given without its ending, or with one too many, is near however long the ending is.
    if (wanted.size() > 2 && (other.starts_with(wanted) || wanted.starts_with(other))) {
      distance = std::min<size_t>(distance, 1);
    }
    if (distance <= std::max<size_t>(1, wanted.size() / 3)) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (size_t i = 0; i < near.size() && i < 3; ++i) out.push_back(std::move(near[i].second));
  return out;
}

std::string Suggestion(std::string_view name, std::span<const std::string> names) {
  const std::vector<std::string> near = NearNames(name, names);
  if (near.empty()) return "";
  std::string out = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    out += StrCat(i == 0 ? "" : i + 1 == near.size() ? " or " : ", ", "'", near[i], "'");
  }
  return out + "?";
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
