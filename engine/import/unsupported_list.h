// Collects everything in a model that cannot be lowered, so that it is reported at once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// Grouped by op, or by op and reason if an op is supported but not in this form.
class UnsupportedList {
 public:
  void Add(std::string_view op, const std::string& reason, const std::string& node);
  bool empty() const { return nodes_.empty(); }
  // Only the ops with their reasons, for callers that name the node themselves.
  std::string Ops() const;
  // Unimplemented, at the node that was added first: the number of ops, and for each the reason and
  // the first few nodes.
  Status ToStatus() const;

 private:
  std::map<std::string, std::vector<std::string>> nodes_;
  std::string first_;
};

}  // namespace oncilla
