// Compares an entry with a node's own name, its source names and its op.
#include "engine/graph/names_node.h"

#include <algorithm>

#include "engine/base/name_pattern.h"

namespace oncilla {

bool NamesNode(std::string_view entry, const Node& node, const SourceNodes* sources) {
  const auto fits = [&](std::string_view name) {
    if (entry.substr(0, 3) != "op:") return MatchesPattern(entry, name);
    if (sources == nullptr) return false;
    const auto source = sources->find(name);
    return source != sources->end() && source->second.op == entry.substr(3);
  };
  if (entry.substr(0, 3) == "op:" && entry.substr(3) == node.op->name) return true;
  return fits(node.name) || std::any_of(node.sources.begin(), node.sources.end(), fits);
}

}  // namespace oncilla
