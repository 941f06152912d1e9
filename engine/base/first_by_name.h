// Looks up pairs of a list by name: a short list is searched, a longer one is indexed by a hash
// table.
#pragma once

#include <string_view>
#include <unordered_map>

namespace oncilla {

// Keeps a reference to the list. If several pairs have the same name, the first is found.
template <class List>
class FirstByName {
 public:
  using Item = typename List::value_type;

  explicit FirstByName(const List& list) : list_(list) {
    if (list.size() <= kFew) return;
    for (const Item& item : list) table_.emplace(item.first, &item);
  }
  const Item* Find(std::string_view name) const {
    if (list_.size() > kFew) {
      const auto found = table_.find(name);
      return found == table_.end() ? nullptr : found->second;
    }
    for (const Item& item : list_) {
      if (item.first == name) return &item;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kFew = 16;
  const List& list_;
  std::unordered_map<std::string_view, const Item*> table_;
};

}  // namespace oncilla
