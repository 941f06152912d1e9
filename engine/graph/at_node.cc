// Names stand on one line in messages, whatever characters a file gives them.
#include "engine/graph/at_node.h"

#include "engine/base/format.h"

namespace oncilla {

const std::string& NameInModel(const Node& node) {
  return node.sources.size() == 1 ? node.sources[0] : node.name;
}

Status AtNode(Status status, std::string_view name, std::string_view op) {
  if (status.ok()) return status;
  return WithNode(In(std::move(status), StrCat("node '", OneLine(name), "' (", op, ")")), name);
}

Status AtNode(Status status, const Node& node) {
  return AtNode(std::move(status), NameInModel(node), node.op->name);
}

}  // namespace oncilla
