// Formats the list of unsupported ops for people; programs should test the status code.
#include "engine/import/unsupported_list.h"

#include "engine/base/format.h"

namespace oncilla {
namespace {

constexpr size_t kNamesListed = 5;

}  // namespace

void UnsupportedList::Add(std::string_view op, const std::string& reason, const std::string& node) {
  std::string key = "'" + OneLine(op) + "'";
  if (!reason.empty()) key += " (" + reason + ")";
  nodes_[key].push_back(OneLine(node));
  if (first_.empty()) first_ = node;
}

std::string UnsupportedList::Ops() const {
  std::string text;
  for (const auto& [what, nodes] : nodes_) text += (text.empty() ? "" : "; ") + what;
  return text;
}

Status UnsupportedList::ToStatus() const {
  std::string text;
  for (const auto& [what, nodes] : nodes_) {
    text += (text.empty() ? "" : "; ") + what + " in " + std::to_string(nodes.size()) +
            (nodes.size() == 1 ? " node: " : " nodes: ");
    for (size_t i = 0; i < nodes.size() && i < kNamesListed; ++i) {
      text += (i == 0 ? "'" : ", '") + nodes[i] + "'";
    }
    if (nodes.size() > kNamesListed) {
      text += StrCat(" and ", nodes.size() - kNamesListed, " more");
    }
  }
  return WithNode(Unsupported(nodes_.size(), nodes_.size() == 1 ? " op is" : " ops are",
                              " not supported: ", text),
                  first_);
}

}  // namespace oncilla
