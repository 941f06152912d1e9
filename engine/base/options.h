// Structs of options that list their fields once, and what follows from that one list: reading and
// printing them as text or JSON (text_tree.h), near names for what is misspelt, ranges, and tables
// for people.
//
//   struct Watching {
//     int64_t limit_ms = 0;
//     std::string log;
//     static void Fields(auto& self, auto&& field) {
//       field({.name = "limit_ms", .doc = "When it ends; 0: never.", .least = 0}, self.limit_ms);
//       field({.name = "log", .doc = "Where it is written."}, self.log);
//     }
//   };
//
// Types of fields: bool, int, int64_t, double, std::string, std::chrono::milliseconds, structs with
// Fields, and, with a table of names as the third argument, enums; std::vector and std::set of
// these; std::map from names to them.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/text_tree.h"

namespace oncilla {

struct Option {
  std::string_view name;
  std::string_view doc = {};  // what it does, and when one would change it
  // Numbers outside are refused. An int64_t is compared as a double: limits are round numbers.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool bytes = false;          // also accepts "512MiB", "2GB"
  std::string_view flag = {};  // of the command-line program
};

// Names of an enum's values, as pairs.
template <class E>
using OptionNames = std::span<const std::pair<E, std::string_view>>;

namespace options_internal {

template <class T>
concept IsStruct = requires(T& t) {
  T::Fields(t, [](const Option&, auto&, auto&&...) {});
};
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsList<std::set<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

// Scalars, one function per type. A failure names the option and its value, after its position.
Status ReadScalar(const Option& option, const TextTree& from, bool& to);
Status ReadScalar(const Option& option, const TextTree& from, int& to);
Status ReadScalar(const Option& option, const TextTree& from, int64_t& to);
Status ReadScalar(const Option& option, const TextTree& from, double& to);
Status ReadScalar(const Option& option, const TextTree& from, std::string& to);
Status ReadScalar(const Option& option, const TextTree& from, std::chrono::milliseconds& to);
TextTree PrintScalar(bool value);
TextTree PrintScalar(int64_t value);
TextTree PrintScalar(int value);
TextTree PrintScalar(double value);
TextTree PrintScalar(std::string_view value);
TextTree PrintScalar(std::chrono::milliseconds value);

Status UnknownName(std::string_view what, const Option& option, const TextTree& from,
                   std::vector<std::string> names);
Status UnknownMember(const TextMember& member, const std::vector<std::string>& names);
Status GivenTwice(const TextMember& member);
Status WantsMessage(const Option& option, const TextTree& from);
Status WantsName(const Option& option, const TextTree& from);
// The key and the value of an entry of a map in the text format; both null if the message is not
// one. A missing value is read as an empty message.
struct MapEntry {
  const TextTree* key = nullptr;
  const TextTree* value = nullptr;
};
MapEntry EntryOf(const TextTree& message);

}  // namespace options_internal

// Changes the options that `from` sets. A list replaces the previous one; of a map and of a struct
// only the given members change.
template <class Options>
Status ReadOptions(const TextTree& from, Options& to);

namespace options_internal {

template <class T, class... Names>
Status ReadOption(const Option& option, const TextTree& from, T& to, const Names&... names) {
  if constexpr (IsStruct<T>) {
    if (from.kind != TextTree::Kind::kMessage) return WantsMessage(option, from);
    return ReadOptions(from, to);
  } else if constexpr (sizeof...(Names) > 0) {
    const std::string& text = from.scalar.text;  // a word, or in quotes
    if (from.kind != TextTree::Kind::kScalar) return WantsName(option, from);
    std::vector<std::string> all;
    for (const auto& [value, name] : OptionNames<T>(names...)) {
      if (name == text) {
        to = value;
        return {};
      }
      all.emplace_back(name);
    }
    return UnknownName(text, option, from, std::move(all));
  } else {
    return ReadScalar(option, from, to);
  }
}

// Reads the members that have the option's name into `to`.
template <class T, class... Names>
Status ReadMembers(const Option& option, const std::vector<const TextMember*>& from, T& to,
                   const Names&... names) {
  if constexpr (kIsList<T>) {
    T list;
    for (const TextMember* member : from) {
      typename T::value_type item{};
      ONCILLA_TRY(ReadOption(option, member->value, item, names...));
      list.insert(list.end(), std::move(item));
    }
    to = std::move(list);
    return {};
  } else if constexpr (kIsMap<T>) {
    for (const TextMember* member : from) {
      if (member->value.kind != TextTree::Kind::kMessage)
        return WantsMessage(option, member->value);
      if (const MapEntry entry = EntryOf(member->value); entry.value != nullptr) {
        std::string key;
        ONCILLA_TRY(ReadScalar(option, *entry.key, key));
        auto& item = to[key];
        const bool given =
            entry.value->kind != TextTree::Kind::kMessage || !entry.value->members.empty();
        if (given) ONCILLA_TRY(ReadOption(option, *entry.value, item, names...));
        continue;
      }
      for (const TextMember& item : member->value.members) {
        ONCILLA_TRY(ReadOption(option, item.value, to[item.name], names...));
      }
    }
    return {};
  } else {
    if (from.size() > 1) return GivenTwice(*from[1]);
    return ReadOption(option, from[0]->value, to, names...);
  }
}

template <class T, class... Names>
TextTree PrintOption(const T& value, const T& standard, const Names&... names);

}  // namespace options_internal

template <class Options>
Status ReadOptions(const TextTree& from, Options& to) {
  Status status;
  std::vector<std::string> known;
  Options::Fields(to, [&](const Option& option, auto& field, const auto&... names) {
    known.emplace_back(option.name);
    std::vector<const TextMember*> members;
    for (const TextMember& member : from.members) {
      if (member.name == option.name) members.push_back(&member);
    }
    if (status.ok() && !members.empty()) {
      status = options_internal::ReadMembers(option, members, field, names...);
    }
  });
  for (const TextMember& member : from.members) {
    bool found = false;
    for (const std::string& name : known) found |= name == member.name;
    if (!found) return options_internal::UnknownMember(member, known);
  }
  return status;
}

// The names of the fields, in order.
template <class Options>
std::vector<std::string> OptionNamesOf() {
  std::vector<std::string> names;
  Options options;
  Options::Fields(options, [&](const Option& option, auto&, const auto&...) {
    names.emplace_back(option.name);
  });
  return names;
}

// One line of a table for people: the option with its path, what it does, its flag.
struct OptionRow {
  std::string name;  // "device_memory.*.limit_bytes"
  std::string doc;
  std::string flag;
};

template <class Options>
void ListOptions(const std::string& where, std::vector<OptionRow>& rows) {
  Options options;
  Options::Fields(options, [&]<class T>(const Option& option, T&, const auto&...) {
    const std::string name = StrCat(where, option.name);
    rows.push_back({name, std::string(option.doc), std::string(option.flag)});
    if constexpr (options_internal::IsStruct<T>) {
      ListOptions<T>(name + ".", rows);
    } else if constexpr (options_internal::kIsList<T>) {
      if constexpr (options_internal::IsStruct<typename T::value_type>) {
        ListOptions<typename T::value_type>(name + ".", rows);
      }
    } else if constexpr (options_internal::kIsMap<T>) {
      if constexpr (options_internal::IsStruct<typename T::mapped_type>) {
        ListOptions<typename T::mapped_type>(name + ".*.", rows);
      }
    }
  });
}

// The options that differ from `standard`, in the form that ReadOptions reads.
template <class Options>
TextTree PrintOptions(const Options& options, const Options& standard = {}) {
  TextTree out;
  Options::Fields(options, [&](const Option& option, const auto& field, const auto&... names) {
    // The same field of the defaults, found by its name.
    Options::Fields(standard, [&](const Option& other, const auto& usual, const auto&...) {
      if constexpr (std::is_same_v<decltype(field), decltype(usual)>) {
        if (other.name != option.name || field == usual) return;
        out.members.push_back(
            {std::string(option.name), options_internal::PrintOption(field, usual, names...)});
      }
    });
  });
  return out;
}

namespace options_internal {

template <class T, class... Names>
TextTree PrintOption(const T& value, const T& standard, const Names&... names) {
  TextTree out;
  if constexpr (IsStruct<T>) {
    return PrintOptions(value, standard);
  } else if constexpr (kIsList<T>) {
    out.kind = TextTree::Kind::kList;
    for (const auto& item : value) {
      out.members.push_back({"", PrintOption(item, std::decay_t<decltype(item)>{}, names...)});
    }
    return out;
  } else if constexpr (kIsMap<T>) {
    out.kind = TextTree::Kind::kMap;
    for (const auto& [key, item] : value) {
      out.members.push_back({key, PrintOption(item, std::decay_t<decltype(item)>{}, names...)});
    }
    return out;
  } else if constexpr (sizeof...(Names) > 0) {
    for (const auto& [known, name] : OptionNames<T>(names...)) {
      if (known == value) return PrintScalar(name);
    }
    return PrintScalar(std::string_view());
  } else {
    return PrintScalar(value);
  }
}

}  // namespace options_internal
}  // namespace oncilla
