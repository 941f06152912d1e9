// Options of the provider: its own ones, and those of the engine's session by their configuration
// names.
#include "integrations/onnxruntime/src/options.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace oncilla::ort {
namespace {

// Short names of options.
constexpr std::pair<const char*, const char*> kShort[] = {
    {"memory_limit", "memory_limit_bytes"},
    {"precision", "precision.storage"},
};
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Numbers, true and false become JSON literals, everything else a string.
std::string JsonOf(const std::string& value) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, number);
  const bool digits = value.find_first_not_of("0123456789.-+eE") == std::string::npos;
  if (error == std::errc() && stopped == end && digits) return value;
  return value == "true" || value == "false" ? value : Quoted(value);
}

bool ReadBool(const std::string& name, const std::string& value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  throw Failure(kOrtInvalidArgument,
                "oncilla: option '" + name + "' is '" + value + "', not true or false");
}

size_t ReadCount(const std::string& name, const std::string& value) {
  uint32_t count = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, count);
  if (error != std::errc() || stopped != end || count == 0) {
    throw Failure(kOrtInvalidArgument,
                  "oncilla: option '" + name + "' is '" + value + "', not a number from 1");
  }
  return count;
}

// The items between commas, without blanks around them.
std::set<std::string> ReadList(const std::string& value) {
  std::set<std::string> items;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    const size_t first = value.find_first_not_of(' ', begin);
    if (first < end) {
      items.insert(value.substr(first, value.find_last_not_of(' ', end - 1) + 1 - first));
    }
    begin = end + 1;
  }
  return items;
}

// Turns {"a.b": "x"} into {"a": {"b": "x"}}.
std::string ConfigOf(const std::map<std::string, std::string>& fields) {
  std::string json = "{", open;
  bool first = true;
  for (const auto& [name, value] : fields) {
    const size_t dot = name.find('.');
    const std::string outer = dot == std::string::npos ? "" : name.substr(0, dot);
    if (!open.empty() && outer != open) json += "}";
    if (!first) json += ", ";
    if (!outer.empty() && outer != open) json += Quoted(outer) + ": {";
    open = outer;
    json += Quoted(dot == std::string::npos ? name : name.substr(dot + 1)) + ": " + value;
    first = false;
  }
  return json + (open.empty() ? "}" : "}}");
}

}  // namespace

Options ReadOptions(const std::vector<std::pair<std::string, std::string>>& given) {
  Options options;
  std::map<std::string, std::string> fields;
  for (const auto& [asked, value] : given) {
    std::string name = asked;
    for (const auto& [shorter, longer] : kShort) {
      if (name == shorter) name = longer;
    }
    if (name == "device") {
      options.device = value;
    } else if (name == "min_nodes") {
      options.min_nodes = ReadCount(name, value);
    } else if (name == "exclude_ops") {
      options.exclude_ops = ReadList(value);
    } else if (name == "log_nodes") {
      options.log_nodes = ReadBool(name, value);
    } else if (name == "config") {
      options.config = value;
    } else if (!fields.emplace(name, JsonOf(value)).second) {
      throw Failure(kOrtInvalidArgument, "oncilla: option '" + asked + "' is given twice");
    }
  }
  if (!options.config.empty() && !fields.empty()) {
    throw Failure(kOrtInvalidArgument, "oncilla: option '" + fields.begin()->first +
                                           "' is given beside 'config'; write it there");
  }
  if (!fields.empty()) options.config = ConfigOf(fields);
  return options;
}

Options ReadOptions(const OrtSessionOptions* options, const std::string& ep) {
  OrtKeyValuePairs* entries = nullptr;
  Check(Ort().GetSessionOptionsConfigEntries(options, &entries));
  const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> held(
      entries, Ort().ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  Ort().GetKeyValuePairs(entries, &keys, &values, &count);
  // ONNX Runtime prefixes options with "ep.NAME.", with the name in lower case.
  std::string prefix = "ep." + ep + ".";
  for (char& c : prefix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::vector<std::pair<std::string, std::string>> given;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = keys[i];
    if (key == "ep.context_enable" && std::string(values[i]) == "1") {
      throw Failure(kOrtNotImplemented,
                    "oncilla: ep.context_enable: this provider writes no compiled models");
    }
    if (key.compare(0, prefix.size(), prefix) != 0) continue;
    given.emplace_back(key.substr(prefix.size()), values[i]);
  }
  return ReadOptions(given);
}

}  // namespace oncilla::ort
