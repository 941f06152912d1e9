// Reads config.yaml, key by key.
#include "server/model/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_join.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::ordered_json;

// Thrown and caught in this file: the parser throws anyway.
struct ConfigError {
  std::string message;
};

[[noreturn]] void Fail(const YAML::Node& node, const std::string& what) {
  const int line = node.Mark().line;
  throw ConfigError{line < 0 ? what : StrCat("line ", line + 1, ": ", what)};
}

std::string Text(const YAML::Node& node, const std::string& key) {
  if (!node.IsScalar()) Fail(node, StrCat(key, " must be a text"));
  return node.Scalar();
}

int64_t Number(const YAML::Node& node, const std::string& key, int64_t least, int64_t most) {
  const auto number = node.IsScalar() ? ParseNumber(node.Scalar()) : std::nullopt;
  if (!number || *number < least || *number > most) {
    Fail(node, StrCat(key, " must be a whole number from ", least, " to ", most));
  }
  return *number;
}

// A number of bytes with an optional unit: 512MiB, 2GB, 1000000.
int64_t Bytes(const YAML::Node& node, const std::string& key) {
  static constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"KiB", 1ll << 10},
                                                                    {"MiB", 1ll << 20},
                                                                    {"GiB", 1ll << 30},
                                                                    {"KB", 1000},
                                                                    {"MB", 1000000},
                                                                    {"GB", 1000000000},
                                                                    {"B", 1}};
  std::string text = Text(node, key);
  int64_t unit = 1;
  for (const auto& [name, bytes] : kUnits) {
    if (text.size() > name.size() && text.ends_with(name)) {
      text.resize(text.size() - name.size());
      unit = bytes;
      break;
    }
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const auto number = ParseNumber(text);
  int64_t total = 0;
  if (!number || __builtin_mul_overflow(*number, unit, &total)) {
    Fail(node, StrCat(key, " must be a number of bytes, like 512MiB"));
  }
  return total;
}

std::vector<InstanceGroup> Instances(const YAML::Node& node, const std::string& key) {
  constexpr int64_t kMost = 64;
  if (node.IsScalar()) return {{"", static_cast<int>(Number(node, key, 1, kMost))}};
  if (!node.IsSequence() || node.size() == 0) {
    Fail(node, StrCat(key, " must be a number or a list of {device: NAME, count: NUMBER}"));
  }
  std::vector<InstanceGroup> groups;
  int64_t total = 0;
  for (const YAML::Node& entry : node) {
    if (!entry.IsMap())
      Fail(entry, StrCat("an entry of ", key, " must be {device: NAME, count: NUMBER}"));
    InstanceGroup group;
    for (const auto& member : entry) {
      const std::string name = Text(member.first, key);
      if (name == "device")
        group.device = Text(member.second, "device");
      else if (name == "count")
        group.count = static_cast<int>(Number(member.second, "count", 1, kMost));
      else
        Fail(member.first,
             StrCat("unknown key '", name, "' in ", key, "; there are: device, count"));
    }
    total += group.count;
    groups.push_back(group);
  }
  if (total > kMost) Fail(node, StrCat("there may be ", kMost, " instances in all"));
  return groups;
}

VersionPolicy Policy(const YAML::Node& node, const std::string& key) {
  VersionPolicy policy;
  const std::string choices =
      StrCat(key, " must be latest, all, {latest: NUMBER} or {specific: [NUMBERS]}");
  if (node.IsScalar()) {
    if (node.Scalar() == "all")
      policy.kind = VersionPolicy::Kind::kAll;
    else if (node.Scalar() != "latest")
      Fail(node, choices);
    return policy;
  }
  if (!node.IsMap() || node.size() != 1) Fail(node, choices);
  const auto member = *node.begin();
  if (member.first.Scalar() == "latest") {
    policy.latest = Number(member.second, "latest", 1, 1000);
  } else if (member.first.Scalar() == "specific" && member.second.IsSequence() &&
             member.second.size() > 0) {
    policy.kind = VersionPolicy::Kind::kSpecific;
    for (const YAML::Node& version : member.second) {
      policy.specific.push_back(Number(version, "a version", 1, INT64_MAX));
    }
  } else {
    Fail(node, choices);
  }
  return policy;
}

std::vector<int64_t> Sizes(const YAML::Node& node, const std::string& key, bool open) {
  if (!node.IsSequence()) Fail(node, StrCat(key, " must be a list of sizes"));
  std::vector<int64_t> sizes;
  for (const YAML::Node& size : node) {
    const bool any = open && size.IsScalar() && size.Scalar() == "-1";
    sizes.push_back(any ? -1 : Number(size, "a size in dims", 0, INT64_MAX));
  }
  return sizes;
}

std::vector<DeclaredTensor> Declared(const YAML::Node& node, const std::string& key) {
  const std::string form =
      StrCat(key, " must be a list of {name: NAME, data_type: TYPE_FP32, dims: [SIZES]}");
  if (!node.IsSequence() || node.size() == 0) Fail(node, form);
  std::vector<DeclaredTensor> tensors;
  for (const YAML::Node& entry : node) {
    if (!entry.IsMap() || entry.size() != 3 || !entry["name"] || !entry["data_type"] ||
        !entry["dims"] || !entry["dims"].IsSequence()) {
      Fail(entry, form);
    }
    tensors.push_back({Text(entry["name"], "name"), Text(entry["data_type"], "data_type"),
                       Sizes(entry["dims"], "dims", /*open=*/true)});
  }
  return tensors;
}

// Reads a list with one {dims: [SIZES], zero_data: true}, the form that the protocol has.
std::vector<int64_t> InitialDims(const YAML::Node& node, const std::string& data_type) {
  const YAML::Node first = node.IsSequence() && node.size() == 1 ? node[0] : YAML::Node();
  if (!first.IsMap() || !first["zero_data"] || !first["zero_data"].IsScalar() ||
      first["zero_data"].Scalar() != "true") {
    Fail(node, "initial_state must be a list of one {dims: [SIZES], zero_data: true}");
  }
  for (const auto& member : first) {
    const std::string name = Text(member.first, "a key");
    if (name == "data_type" && Text(member.second, name) != data_type)
      Fail(member.second, "the initial_state's data_type must be the state's");
    if (name != "dims" && name != "zero_data" && name != "data_type" && name != "name")
      Fail(member.first, StrCat("unknown key '", name, "' in initial_state"));
  }
  if (!first["dims"]) return {};  // the protocol's messages mean a scalar
  return Sizes(first["dims"], "dims", /*open=*/false);
}

std::vector<DeclaredState> States(const YAML::Node& node) {
  const char* form = "state must be a list of {input_name: NAME, output_name: NAME}";
  if (!node.IsSequence() || node.size() == 0) Fail(node, form);
  std::vector<DeclaredState> states;
  for (const YAML::Node& entry : node) {
    if (!entry.IsMap() || !entry["input_name"] || !entry["output_name"]) Fail(entry, form);
    DeclaredState state;
    if (entry["data_type"]) state.data_type = Text(entry["data_type"], "data_type");
    for (const auto& member : entry) {
      const std::string name = Text(member.first, "a key");
      if (name == "input_name")
        state.input_name = Text(member.second, name);
      else if (name == "output_name")
        state.output_name = Text(member.second, name);
      else if (name == "dims")
        state.dims = Sizes(member.second, name, /*open=*/true);
      else if (name == "initial_state")
        state.initial_dims = InitialDims(member.second, state.data_type);
      else if (name != "data_type")
        Fail(member.first,
             StrCat("unknown key '", name,
                    "' in state; there are: input_name, output_name, data_type, dims, "
                    "initial_state"));
    }
    states.push_back(std::move(state));
  }
  return states;
}

double Real(const YAML::Node& node, const std::string& key) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value))
    Fail(node, StrCat(key, " must hold numbers"));
  return value;
}

// Reads the values for no and yes: [0, 1].
void Choice(const YAML::Node& node, const std::string& key, DeclaredControl& control) {
  if (!control.data_type.empty()) Fail(node, "a control has one type");
  if (!node.IsSequence() || node.size() != 2)
    Fail(node, StrCat(key, " must be a list of two values: for no and for yes"));
  control.data_type = key == "int32_false_true"  ? "TYPE_INT32"
                      : key == "fp32_false_true" ? "TYPE_FP32"
                                                 : "TYPE_BOOL";
  for (const auto& [i, value] : {std::pair{0, &control.no}, std::pair{1, &control.yes}}) {
    const YAML::Node each = node[i];
    if (control.data_type == "TYPE_BOOL") {
      bool yes = false;
      if (!each.IsScalar() || !YAML::convert<bool>::decode(each, yes))
        Fail(each, StrCat(key, " must hold true or false"));
      *value = yes ? 1 : 0;
      continue;
    }
    *value = Real(each, key);
    const bool whole = *value == std::trunc(*value) && std::abs(*value) <= INT32_MAX;
    if (control.data_type == "TYPE_INT32" && !whole) Fail(each, StrCat(key, " must hold integers"));
  }
}

void CheckControl(const YAML::Node& node, const DeclaredControl& control) {
  static constexpr const char* kIdTypes[] = {"TYPE_INT32", "TYPE_UINT32", "TYPE_INT64",
                                             "TYPE_UINT64", "TYPE_STRING"};
  const char* kind = kControlKinds[static_cast<size_t>(control.kind)];
  if (control.kind != ControlKind::kId) {
    if (control.data_type.empty())
      Fail(node, StrCat(kind, " needs int32_false_true, fp32_false_true or bool_false_true"));
    return;
  }
  if (std::find(std::begin(kIdTypes), std::end(kIdTypes), control.data_type) == std::end(kIdTypes))
    Fail(node, StrCat(kind, " needs a data_type: ", absl::StrJoin(kIdTypes, ", ")));
}

// Reads a list with one {kind: KIND, ..}: an input can have only one meaning here.
void ReadControl(const YAML::Node& node, DeclaredControl& control) {
  const YAML::Node only = node.IsSequence() && node.size() == 1 ? node[0] : YAML::Node();
  if (!only.IsMap()) Fail(node, "control must be a list of one {kind: CONTROL_SEQUENCE_START, ..}");
  if (only["kind"]) {
    const std::string kind = Text(only["kind"], "kind");
    const auto found = std::find(std::begin(kControlKinds), std::end(kControlKinds), kind);
    if (found == std::end(kControlKinds)) {
      Fail(only["kind"], StrCat("there is no kind '", kind,
                                "'; there are: ", absl::StrJoin(kControlKinds, ", ")));
    }
    control.kind = static_cast<ControlKind>(found - std::begin(kControlKinds));
  }
  for (const auto& member : only) {
    const std::string name = Text(member.first, "a key");
    const bool choice =
        name == "int32_false_true" || name == "fp32_false_true" || name == "bool_false_true";
    if (choice && control.kind != ControlKind::kId)
      Choice(member.second, name, control);
    else if (name == "data_type" && control.kind == ControlKind::kId)
      control.data_type = Text(member.second, name);
    else if (name != "kind")
      Fail(member.first, StrCat("'", name, "' does not go with ",
                                kControlKinds[static_cast<size_t>(control.kind)]));
  }
  CheckControl(only, control);
}

std::vector<DeclaredControl> Controls(const YAML::Node& node) {
  const char* form = "control_input must be a list of {name: NAME, control: [{kind: KIND, ..}]}";
  if (!node.IsSequence() || node.size() == 0) Fail(node, form);
  std::vector<DeclaredControl> controls;
  for (const YAML::Node& entry : node) {
    if (!entry.IsMap() || entry.size() != 2 || !entry["name"] || !entry["control"])
      Fail(entry, form);
    DeclaredControl control;
    control.name = Text(entry["name"], "name");
    ReadControl(entry["control"], control);
    for (const DeclaredControl& other : controls) {
      if (other.kind == control.kind)
        Fail(entry,
             StrCat("there are two inputs for ", kControlKinds[static_cast<size_t>(control.kind)]));
    }
    controls.push_back(std::move(control));
  }
  return controls;
}

std::vector<std::string> Variables(const YAML::Node& node, const std::string& key) {
  if (!node.IsSequence() || node.size() == 0) Fail(node, StrCat(key, " must be a list of names"));
  std::vector<std::string> names;
  for (const YAML::Node& name : node) {
    names.push_back(Text(name, "a variable"));
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      Fail(name, StrCat("the variable '", names.back(), "' is there twice"));
  }
  return names;
}

SequenceBatching Sequences(const YAML::Node& node, const std::string& key) {
  if (!node.IsMap()) Fail(node, StrCat(key, " must hold keys and values"));
  SequenceBatching sequences;
  for (const auto& member : node) {
    const std::string name = Text(member.first, "a key");
    if (name == "max_sequence_idle_microseconds")
      sequences.max_idle_us = Number(member.second, name, 1, 86'400'000'000);
    else if (name == "max_candidate_sequences")
      sequences.max_sequences = Number(member.second, name, 1, 1 << 20);
    else if (name == "memory_limit")
      sequences.memory_limit_bytes = Bytes(member.second, name);
    else if (name == "state")
      sequences.state = States(member.second);
    else if (name == "control_input")
      sequences.controls = Controls(member.second);
    else if (name == "variables")
      sequences.variables = Variables(member.second, name);
    else
      Fail(member.first,
           StrCat("unknown key '", name, "' in ", key,
                  "; there are: max_sequence_idle_microseconds, "
                  "max_candidate_sequences, memory_limit, state, variables, control_input"));
  }
  if (sequences.state.empty() && sequences.controls.empty() && sequences.variables.empty()) {
    Fail(node,
         StrCat(key,
                " needs state: which output is the input of the next request, or variables: "
                "those of the model that each sequence has for itself, or control_input: what "
                "the model is told of its sequences"));
  }
  return sequences;
}

// Converts YAML to JSON. A plain scalar gets the type that it looks like, a quoted one is a string.
Json ToJson(const YAML::Node& node, int depth = 0) {
  if (depth > 20) Fail(node, "session is nested too deeply");
  if (node.IsNull()) return nullptr;
  if (node.IsMap()) {
    Json map = Json::object();
    for (const auto& member : node)
      map[Text(member.first, "a key")] = ToJson(member.second, depth + 1);
    return map;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& element : node) list.push_back(ToJson(element, depth + 1));
    return list;
  }
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  Json number = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (number.is_number()) return number;
  return text;
}

std::string SessionJson(const YAML::Node& node) {
  if (!node.IsMap()) Fail(node, "session must hold options of docs/config.md");
  for (const auto& member : node) {
    const std::string name = Text(member.first, "session");
    for (const char* own :
         {"device", "memory_limit_bytes", "max_concurrent_runs", "run_timeout_ms"}) {
      if (name == own)
        Fail(member.first, StrCat("session.", name, " is set by a key of the model's own"));
    }
  }
  return ToJson(node).dump();
}

using Reader =
    std::function<void(const YAML::Node& value, const std::string& key, ModelConfig& config)>;

const std::vector<std::pair<std::string, Reader>>& Keys() {
  constexpr int64_t kMostUs = 60'000'000;
  static const auto* keys = new std::vector<std::pair<std::string, Reader>>{
      {"file", [](auto& v, auto& k, auto& c) { c.file = Text(v, k); }},
      {"device", [](auto& v, auto& k, auto& c) { c.device = Text(v, k); }},
      {"signature", [](auto& v, auto& k, auto& c) { c.signature = Text(v, k); }},
      {"tags", [](auto& v, auto& k, auto& c) { c.tags = Text(v, k); }},
      {"max_batch", [](auto& v, auto& k, auto& c) { c.max_batch = Number(v, k, 0, 1 << 20); }},
      {"max_delay_us",
       [](auto& v, auto& k, auto& c) { c.max_delay_us = Number(v, k, 0, kMostUs); }},
      {"instances", [](auto& v, auto& k, auto& c) { c.instances = Instances(v, k); }},
      {"queue_size", [](auto& v, auto& k, auto& c) { c.queue_size = Number(v, k, 1, 1 << 20); }},
      {"timeout_ms", [](auto& v, auto& k, auto& c) { c.timeout_ms = Number(v, k, 0, 86'400'000); }},
      {"priority_levels",
       [](auto& v, auto& k, auto& c) { c.priority_levels = Number(v, k, 0, 1000); }},
      {"default_priority",
       [](auto& v, auto& k, auto& c) { c.default_priority = Number(v, k, 1, 1000); }},
      {"memory_limit", [](auto& v, auto& k, auto& c) { c.memory_limit_bytes = Bytes(v, k); }},
      {"sequence_batching", [](auto& v, auto& k, auto& c) { c.sequences = Sequences(v, k); }},
      {"version_policy", [](auto& v, auto& k, auto& c) { c.version_policy = Policy(v, k); }},
      {"inputs", [](auto& v, auto& k, auto& c) { c.inputs = Declared(v, k); }},
      {"outputs", [](auto& v, auto& k, auto& c) { c.outputs = Declared(v, k); }},
      {"session", [](auto& v, auto&, auto& c) { c.session = SessionJson(v); }},
  };
  return *keys;
}

ModelConfig Parse(const std::string& yaml) {
  ModelConfig config;
  const YAML::Node root = YAML::Load(yaml);
  if (root.IsNull()) return config;
  if (!root.IsMap()) Fail(root, "the file must hold keys and values");
  std::set<std::string> seen;
  for (const auto& member : root) {
    const std::string key = Text(member.first, "a key");
    if (!seen.insert(key).second) Fail(member.first, StrCat(key, " is given twice"));
    const auto& keys = Keys();
    const auto row =
        std::find_if(keys.begin(), keys.end(), [&](const auto& r) { return r.first == key; });
    if (row == keys.end()) {
      Fail(member.first, StrCat("unknown key '", key, "'; there are: ",
                                absl::StrJoin(keys, ", ", [](std::string* out, const auto& r) {
                                  out->append(r.first);
                                })));
    }
    row->second(member.second, key, config);
  }
  if (config.file.find('/') != std::string::npos || config.file == "..") {
    Fail(root["file"], "file must be a name in the version's folder");
  }
  if (config.max_delay_us > 0 && config.max_batch < 2) {
    Fail(root["max_delay_us"], "max_delay_us needs a max_batch of 2 or more");
  }
  int instances = 0;
  for (const InstanceGroup& group : config.instances) instances += group.count;
  if (config.sequences && !config.sequences->variables.empty() &&
      (config.joins() || instances > 1)) {
    Fail(root["sequence_batching"],
         "variables of sequences need one instance and no max_batch: a model has each variable "
         "once, so that one request runs at a time");
  }
  if (config.sequences && config.priority_levels > 0) {
    Fail(root["priority_levels"],
         "priority_levels do not go with sequence_batching: the requests of a sequence have an "
         "order");
  }
  if (config.default_priority > config.priority_levels) {
    Fail(root["default_priority"],
         StrCat("default_priority must be one of the ", config.priority_levels,
                " levels that priority_levels gives"));
  }
  if (config.default_priority == 0) config.default_priority = config.priority_levels;
  return config;
}

}  // namespace

absl::StatusOr<ModelConfig> ParseConfig(const std::string& yaml, const std::string& source) {
  try {
    return Parse(yaml);
  } catch (const ConfigError& error) {
    return absl::InvalidArgumentError(StrCat(source, ": ", error.message));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        StrCat(source, ": line ", error.mark.line + 1, ": ", error.msg));
  }
}

std::vector<std::pair<std::string, std::string>> ParametersOf(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> parameters;
  const std::string limit =
      config.memory_limit_bytes > 0 ? StrCat(config.memory_limit_bytes) : std::string();
  for (const auto& [key, value] :
       {std::pair{"device", &config.device}, std::pair{"signature", &config.signature},
        std::pair{"tags", &config.tags}, std::pair{"memory_limit", &limit}}) {
    if (!value->empty()) parameters.emplace_back(key, *value);
  }
  if (config.sequences) {
    parameters.emplace_back(kSequenceMemoryLimit, StrCat(config.sequences->memory_limit_bytes));
    if (!config.sequences->variables.empty())
      parameters.emplace_back(kSequenceVariables, Json(config.sequences->variables).dump());
  }
  return parameters;
}

std::string SessionConfig(const ModelConfig& config) {
  Json options = config.session.empty() ? Json::object() : Json::parse(config.session);
  int runs = 0;
  for (const InstanceGroup& group : config.instances) runs += group.count;
  options["max_concurrent_runs"] = runs;
  return options.dump();
}

}  // namespace oncilla::server
