// The pairs of a list by their names: a list of few is searched, for more there is a table.
#pragma once

#include <string_view>
#include <unordered_map>

namespace oncilla {

// Refers to the list. Of pairs with the same name it finds the first.
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
