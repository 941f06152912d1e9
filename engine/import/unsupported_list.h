// Everything in a model that cannot be lowered, gathered so that it is reported at once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// Grouped by op, or by op and reason where an op is known but not in this form.
class UnsupportedList {
 public:
  void Add(std::string_view op, const std::string& reason, const std::string& node);
  bool empty() const { return nodes_.empty(); }
  // Only the ops with their reasons, for callers that know the node.
  std::string Ops() const;
  // Unimplemented, at the node that was added first: how many ops, and for each the reason and the
  // first few nodes.
  Status ToStatus() const;

 private:
  std::map<std::string, std::vector<std::string>> nodes_;
  std::string first_;
};

}  // namespace oncilla
