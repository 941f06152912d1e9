// Translates the protocol's model configuration to the keys of config.yaml, whose values
// ParseConfig checks.
#include "server/model/protocol_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_join.h"
#include "server/core/text.h"
#include "server/model/config.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBytes = 1 << 20;  // as of a config.yaml

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(StrCat("the parameter 'config': ", what));
}

// The supported members, each with a function that reads its value into the keys of config.yaml.
using Reader = absl::Status (*)(const Json& value, const std::string& name, Json& keys);
struct Member {
  const char* name;
  Reader read;
};

template <size_t N>
absl::Status ReadMembers(const Json& object, const std::string& what, const Member (&members)[N],
                         Json& keys) {
  if (!object.is_object()) return Bad(StrCat("'", what, "' must be an object"));
  for (const auto& [name, value] : object.items()) {
    Reader read = nullptr;
    for (const Member& member : members)
      if (name == member.name) read = member.read;
    if (read == nullptr)
      return Bad(StrCat("'", name.substr(0, 64), "' in '", what, "' is not supported"));
    const absl::Status status = read(value, name, keys);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// In JSON written from protobuf messages, 64-bit numbers are strings.
absl::StatusOr<int64_t> NumberOf(const Json& value, const std::string& name) {
  std::optional<int64_t> number;
  if (value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX)
    number = value.get<int64_t>();
  else if (value.is_string())
    number = ParseNumber(value.get<std::string>());
  if (!number) return Bad(StrCat("'", name, "' must be a whole number, not negative"));
  return *number;
}

absl::Status Number(const Json& value, const std::string& name, const char* key, Json& keys) {
  const auto number = NumberOf(value, name);
  if (number.ok()) keys[key] = *number;
  return number.status();
}

absl::Status Text(const Json& value, const std::string& name, const char* key, Json& keys) {
  if (!value.is_string()) return Bad(StrCat("'", name, "' must be a text"));
  if (!value.get<std::string>().empty()) keys[key] = value;
  return absl::OkStatus();
}

// Accepts a setting that this server supports with one value only.
absl::Status Only(const Json& value, const std::string& name, const Json& only) {
  if (value == only || value == "") return absl::OkStatus();
  return Bad(StrCat("'", name, "' can only be ", only.dump()));
}

absl::Status ReadVersionPolicy(const Json& value, const std::string& name, Json& keys) {
  if (value.is_object() && value.size() == 1) {
    const std::string kind = value.begin().key();
    const Json& given = value.begin().value();
    if (kind == "all" && given == Json::object()) {
      keys["version_policy"] = "all";
      return absl::OkStatus();
    }
    const bool latest = kind == "latest" && given.is_object() && given.contains("num_versions");
    if (latest && given.size() == 1)
      return Number(given["num_versions"], "num_versions", "latest", keys["version_policy"]);
    const bool specific = kind == "specific" && given.is_object() && given.contains("versions");
    if (specific && given.size() == 1 && given["versions"].is_array()) {
      Json& versions = keys["version_policy"]["specific"] = Json::array();
      for (const Json& each : given["versions"]) {
        const auto version = NumberOf(each, "versions");
        if (!version.ok()) return version.status();
        versions.push_back(*version);
      }
      return absl::OkStatus();
    }
  }
  return Bad(StrCat("'", name,
                    "' must be {\"latest\": {\"num_versions\": N}}, {\"all\": {}} or "
                    "{\"specific\": {\"versions\": [..]}}"));
}

constexpr Member kGroupMembers[] = {
    {"name", [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "device", k); }},
    {"count",
     [](const Json& v, const std::string& n, Json& k) { return Number(v, n, "count", k); }},
};

// Reads a list of objects with the same members into the list `key`; an empty list is left out.
template <size_t N>
absl::Status ReadList(const Json& value, const std::string& name, const Member (&members)[N],
                      const std::string& key, Json& keys) {
  if (!value.is_array()) return Bad(StrCat("'", name, "' must be a list"));
  if (value.empty()) return absl::OkStatus();
  Json& list = keys[key] = Json::array();
  for (const Json& each : value) {
    Json object = Json::object();
    const absl::Status status = ReadMembers(each, name, members, object);
    if (!status.ok()) return status;
    list.push_back(object);
  }
  return absl::OkStatus();
}

absl::Status ReadInstances(const Json& value, const std::string& name, Json& keys) {
  return ReadList(value, name, kGroupMembers, "instances", keys);
}

absl::Status ReadTimeout(const Json& value, const std::string& name, Json& keys) {
  const auto microseconds = NumberOf(value, name);
  if (!microseconds.ok()) return microseconds.status();
  if (*microseconds % 1000 != 0) return Bad(StrCat("'", name, "' must be whole milliseconds"));
  keys["timeout_ms"] = *microseconds / 1000;
  return absl::OkStatus();
}

constexpr Member kQueueMembers[] = {
    {"timeout_action",
     [](const Json& v, const std::string& n, Json&) { return Only(v, n, "REJECT"); }},
    {"default_timeout_microseconds", ReadTimeout},
    {"allow_timeout_override",
     [](const Json& v, const std::string& n, Json&) { return Only(v, n, true); }},
    {"max_queue_size",
     [](const Json& v, const std::string& n, Json& k) { return Number(v, n, "queue_size", k); }},
};

constexpr Member kBatchingMembers[] = {
    {"max_queue_delay_microseconds",
     [](const Json& v, const std::string& n, Json& k) { return Number(v, n, "max_delay_us", k); }},
    {"priority_levels", [](const Json& v, const std::string& n,
                           Json& k) { return Number(v, n, "priority_levels", k); }},
    {"default_priority_level",
     [](const Json& v, const std::string& n, Json& k) {
       return v == 0 || v == "0" ? absl::OkStatus() : Number(v, n, "default_priority", k);
     }},
    {"default_queue_policy", [](const Json& v, const std::string& n,
                                Json& k) { return ReadMembers(v, n, kQueueMembers, k); }},
};

// Reads sizes, which may include -1.
absl::Status ReadDims(const Json& value, const std::string& name, Json& keys) {
  if (!value.is_array()) return Bad(StrCat("'", name, "' must be a list"));
  keys["dims"] = Json::array();
  for (const Json& each : value) {
    const bool open = each == -1 || each == "-1";
    const auto size = open ? absl::StatusOr<int64_t>(-1) : NumberOf(each, name);
    if (!size.ok()) return size.status();
    keys["dims"].push_back(*size);
  }
  return absl::OkStatus();
}

constexpr Member kInitialMembers[] = {
    {"name", [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "name", k); }},
    {"data_type",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "data_type", k); }},
    {"dims", ReadDims},
    {"zero_data",
     [](const Json& v, const std::string& n, Json& k) {
       k["zero_data"] = true;
       return Only(v, n, true);
     }},
};

absl::Status Copy(const Json& value, const std::string& name, Json& keys) {
  keys[name] = value;  // checked by ParseConfig
  return absl::OkStatus();
}

constexpr Member kControlMembers[] = {
    {"kind", Copy},
    {"int32_false_true", Copy},
    {"fp32_false_true", Copy},
    {"bool_false_true", Copy},
    {"data_type", Copy},
};

constexpr Member kControlInputMembers[] = {
    {"name", [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "name", k); }},
    {"control", [](const Json& v, const std::string& n,
                   Json& k) { return ReadList(v, n, kControlMembers, "control", k); }},
};

constexpr Member kStateMembers[] = {
    {"input_name",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "input_name", k); }},
    {"output_name",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "output_name", k); }},
    {"data_type",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "data_type", k); }},
    {"dims", ReadDims},
    {"initial_state", [](const Json& v, const std::string& n,
                         Json& k) { return ReadList(v, n, kInitialMembers, "initial_state", k); }},
};

absl::Status ReadDelay(const Json& value, const std::string& name, Json& keys) {
  const auto delay = NumberOf(value, name);
  if (delay.ok() && *delay > 0) keys["max_delay_us"] = *delay;
  return delay.status();
}

constexpr Member kDirectMembers[] = {
    {"max_queue_delay_microseconds", ReadDelay},
    {"minimum_slot_utilization",
     [](const Json& v, const std::string& n, Json&) { return Only(v, n, 0); }},
};

constexpr Member kOldestMembers[] = {
    {"max_queue_delay_microseconds", ReadDelay},
    {"max_candidate_sequences",
     [](const Json& v, const std::string& n, Json& k) {
       return Number(v, n, "max_candidate_sequences", k["sequence_batching"]);
     }},
};

// A strategy states how requests of several sequences are joined; this server has one way.
constexpr Member kSequenceMembers[] = {
    {"max_sequence_idle_microseconds",
     [](const Json& v, const std::string& n, Json& k) {
       const bool unset = v == 0 || v == "0";
       return unset ? absl::OkStatus()
                    : Number(v, n, "max_sequence_idle_microseconds", k["sequence_batching"]);
     }},
    {"direct", [](const Json& v, const std::string& n,
                  Json& k) { return ReadMembers(v, n, kDirectMembers, k); }},
    {"oldest", [](const Json& v, const std::string& n,
                  Json& k) { return ReadMembers(v, n, kOldestMembers, k); }},
    {"state",
     [](const Json& v, const std::string& n, Json& k) {
       return ReadList(v, n, kStateMembers, "state", k["sequence_batching"]);
     }},
    {"control_input",
     [](const Json& v, const std::string& n, Json& k) {
       return ReadList(v, n, kControlInputMembers, "control_input", k["sequence_batching"]);
     }},
};

// A JSON list in a string.
absl::Status Names(const Json& value, const std::string& name, Json& names) {
  const Json list =
      value.is_string() ? Json::parse(value.get<std::string>(), nullptr, false) : Json();
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_string(); }))
    return Bad(StrCat("'", name, "' must be a list of names, like [\"a\", \"b\"]"));
  names = list;
  return absl::OkStatus();
}

// {"KEY": {"string_value": TEXT}}: settings for which the protocol has no member. The session's
// options are excluded, since they may name files of this machine.
absl::Status ReadParameters(const Json& value, const std::string& name, Json& keys) {
  static constexpr const char* kKeys[] = {"device",       "signature",          "tags",
                                          "memory_limit", kSequenceMemoryLimit, kSequenceVariables};
  if (!value.is_object()) return Bad(StrCat("'", name, "' must be an object"));
  for (const auto& [key, parameter] : value.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      return Bad(StrCat("there is no parameter '", key.substr(0, 64), "'; there are ",
                        absl::StrJoin(kKeys, ", ")));
    if (!parameter.is_object() || parameter.size() != 1 || !parameter.contains("string_value"))
      return Bad(StrCat("the parameter '", key, "' must be {\"string_value\": TEXT}"));
    const Json& text = parameter["string_value"];
    absl::Status status;
    if (key == kSequenceMemoryLimit)
      status = Text(text, key, "memory_limit", keys["sequence_batching"]);
    else if (key == kSequenceVariables)
      status = Names(text, key, keys["sequence_batching"]["variables"]);
    else
      status = Text(text, key, key.c_str(), keys);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

constexpr Member kTensorMembers[] = {
    {"name", [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "name", k); }},
    {"data_type",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "data_type", k); }},
    {"dims", ReadDims},
};

// Reads `input` and `output`, which ServedModel compares with the model's.
absl::Status ReadTensors(const Json& value, const std::string& name, Json& keys) {
  return ReadList(value, name, kTensorMembers, name + "s", keys);
}

constexpr Member kMembers[] = {
    {"name", [](const Json& v, const std::string& n, Json& k) { return Only(v, n, k["name"]); }},
    {"platform", [](const Json& v, const std::string& n, Json&) { return Only(v, n, "oncilla"); }},
    {"backend", [](const Json& v, const std::string& n, Json&) { return Only(v, n, "oncilla"); }},
    {"version_policy", ReadVersionPolicy},
    {"max_batch_size",
     [](const Json& v, const std::string& n, Json& k) { return Number(v, n, "max_batch", k); }},
    {"input", ReadTensors},
    {"output", ReadTensors},
    {"instance_group", ReadInstances},
    {"default_model_filename",
     [](const Json& v, const std::string& n, Json& k) { return Text(v, n, "file", k); }},
    {"dynamic_batching", [](const Json& v, const std::string& n,
                            Json& k) { return ReadMembers(v, n, kBatchingMembers, k); }},
    {"sequence_batching",
     [](const Json& v, const std::string& n, Json& k) {
       if (!k.contains(n)) k[n] = Json::object();  // the parameter may precede it
       return ReadMembers(v, n, kSequenceMembers, k);
     }},
    {"parameters", ReadParameters},
};

}  // namespace

absl::StatusOr<std::string> ConfigFromProtocol(const std::string& model, const std::string& text) {
  if (text.size() > kMostBytes) return Bad("it may have 1 MiB");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Bad("it must be a JSON object");
  Json keys = {{"name", model}};  // to compare the member 'name' with it
  const absl::Status status = ReadMembers(json, "config", kMembers, keys);
  if (!status.ok()) return status;
  keys.erase("name");
  // Other servers use a batch size without joining as what the model accepts in one request, which
  // this server allows in any case.
  const bool joins = json.contains("dynamic_batching") || json.contains("sequence_batching");
  if (keys.value("max_batch", int64_t{0}) > 1 && !joins)
    return Bad("'max_batch_size' needs 'dynamic_batching', which joins requests");
  if (json.contains("dynamic_batching") && json.contains("sequence_batching"))
    return Bad("there may be one of 'dynamic_batching' and 'sequence_batching'");
  return keys.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace oncilla::server
