// Near names by edit distance.
#include "engine/base/near_names.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {
namespace {

constexpr size_t kCompared = 64;

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

// Optimal string alignment distance: dynamic programming over prefixes, with three rows kept.
int EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kCompared);
  b = b.substr(0, kCompared);
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change = Lower(a[i - 1]) != Lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  std::vector<std::pair<int, std::string_view>> near;
  // The limit is a third of the name's length, but at least two edits; for names under six
  // characters, half of the length.
  const int length = static_cast<int>(std::min(name.size(), kCompared));
  const int limit = length < 6 ? length / 2 : std::max(2, length / 3);
  for (const std::string& candidate : candidates) {
    int distance = EditDistance(name, candidate);
    // A candidate that contains the name ("model/logits:0" for "logits") is near too.
    if (!name.empty() && name.size() >= 3 && candidate.find(name) != std::string::npos) {
      distance = std::min(distance, limit);
    }
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.empty()) return "";
  near.resize(std::min<size_t>(near.size(), 3));
  std::string out = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) out += i + 1 == near.size() ? " or " : ", ";
    out += "'" + std::string(near[i].second) + "'";
  }
  return out + "?";
}

std::string DidYouMeanAmong(std::string_view name, std::span<const std::string> candidates,
                            std::string_view all) {
  const std::string near = DidYouMean(name, candidates);
  return StrCat(near.empty() ? "." : near, " There is: ", all);
}

std::string Listed(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out.empty() ? "none" : out;
}

}  // namespace oncilla
