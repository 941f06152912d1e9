// SourceNodes: what a model's file says of its nodes beside what they compute: for placement.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace oncilla {

struct SourceNode {
  std::string op;           // in the words of the file's format
  std::string device = {};  // stored on the node, or on the call that it is inside of; may be empty
  // All nodes of a group belong on one device ("loc:@" in TensorFlow). Empty: the group that bears
  // the node's own name.
  std::string group = {};
};

// By the source node's name, as Node::sources spells it.
using SourceNodes = std::map<std::string, SourceNode, std::less<>>;

}  // namespace oncilla
