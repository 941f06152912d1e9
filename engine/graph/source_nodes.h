// SourceNodes: what placement needs to know about the nodes of a model's file.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace oncilla {

struct SourceNode {
  std::string op;           // the op type in the file's format
  std::string device = {};  // stored on the node, or on the call that contains it; may be empty
  // The colocation group ("loc:@" in TensorFlow): its nodes belong on one device. Empty: the group
  // that has the node's own name.
  std::string group = {};
};

// Keyed by the name of the source node, as Node::sources spells it.
using SourceNodes = std::map<std::string, SourceNode, std::less<>>;

}  // namespace oncilla
