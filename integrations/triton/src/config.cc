// Reads and completes the configurations of models, in JSON.
#include "integrations/triton/src/config.h"

#include <algorithm>
#include <charconv>

#include "integrations/triton/src/border.h"

namespace oncilla::triton {
namespace {

using nlohmann::json;

// Short names of options.
constexpr std::pair<const char*, const char*> kShort[] = {
    {"memory_limit", "memory_limit_bytes"},
    {"precision", "precision.storage"},
};

struct TypeRow {
  DataType type;
  const char* name;  // in a configuration
  oncilla_dtype dtype;
};
constexpr TypeRow kTypes[] = {
    {kBool, "TYPE_BOOL", ONCILLA_BOOL},       {kUint8, "TYPE_UINT8", ONCILLA_UINT8},
    {kUint16, "TYPE_UINT16", ONCILLA_UINT16}, {kUint32, "TYPE_UINT32", ONCILLA_UINT32},
    {kUint64, "TYPE_UINT64", ONCILLA_UINT64}, {kInt8, "TYPE_INT8", ONCILLA_INT8},
    {kInt16, "TYPE_INT16", ONCILLA_INT16},    {kInt32, "TYPE_INT32", ONCILLA_INT32},
    {kInt64, "TYPE_INT64", ONCILLA_INT64},    {kFp16, "TYPE_FP16", ONCILLA_FLOAT16},
    {kFp32, "TYPE_FP32", ONCILLA_FLOAT32},    {kFp64, "TYPE_FP64", ONCILLA_FLOAT64},
    {kBytes, "TYPE_STRING", ONCILLA_STRING},  {kBf16, "TYPE_BF16", ONCILLA_BFLOAT16},
};

const TypeRow* RowOf(oncilla_dtype dtype) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& r) { return r.dtype == dtype; });
  return row == std::end(kTypes) ? nullptr : row;
}

std::string Quoted(const std::string& text) { return "'" + text + "'"; }

// Numbers, true and false of a session's options become JSON literals, everything else a string.
json ValueOf(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : json(text);
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const size_t first = text.find_first_not_of(' ', begin),
                 last = text.find_last_not_of(' ', end - 1);
    if (first < end) parts.push_back(text.substr(first, last - first + 1));
    begin = end + 1;
  }
  return parts;
}

std::vector<int64_t> DimsOf(const json& list) {
  std::vector<int64_t> dims;
  for (const json& dim : list) dims.push_back(NumberOf(dim));
  return dims;
}

int64_t MaxBatchOf(const json& config) {
  return config.contains("max_batch_size") ? NumberOf(config["max_batch_size"]) : 0;
}

// Refuses tensors that Triton cannot carry.
void CheckCrosses(const char* what, const TensorInfo& info) {
  if (info.kind != ONCILLA_KIND_TENSOR) {
    throw Failure(kUnsupported, std::string("oncilla: ") + what + " " + Quoted(info.name) +
                                    " is a sequence or an optional value, which Triton lacks");
  }
  if (RowOf(info.dtype) == nullptr) {
    throw Failure(kUnsupported, std::string("oncilla: ") + what + " " + Quoted(info.name) +
                                    " has the type " + internal::NameOf(info.dtype) +
                                    ", which Triton lacks");
  }
}

void CheckBatchAxis(const char* what, const TensorInfo& info) {
  if (!info.ranked || (!info.dims.empty() && info.dims[0] == -1)) return;
  throw Failure(kInvalidArgument, std::string("oncilla: max_batch_size is above 0, but ") + what +
                                      " " + Quoted(info.name) + " of the shape " +
                                      ShapeText(info.dims) + " has no open first axis for a batch");
}

json EntryOf(const char* what, const TensorInfo& info, bool batches) {
  CheckCrosses(what, info);
  if (!info.ranked) {
    throw Failure(kInvalidArgument, std::string("oncilla: the model leaves the rank of ") + what +
                                        " " + Quoted(info.name) +
                                        " open; write its dims in config.pbtxt");
  }
  if (batches) CheckBatchAxis(what, info);
  const std::vector<int64_t> dims(info.dims.begin() + (batches ? 1 : 0), info.dims.end());
  json entry = {{"name", info.name}, {"data_type", RowOf(info.dtype)->name}, {"dims", dims}};
  // Triton's requests have no scalars: they are sent as one element. In batches Triton reshapes
  // them itself.
  if (dims.empty()) {
    entry["dims"] = {1};
    if (batches) entry["reshape"] = {{"shape", json::array()}};
  }
  return entry;
}

void CheckEntry(const char* what, const json& entry, const TensorInfo& info, bool batches) {
  CheckCrosses(what, info);
  const std::string type = entry.value("data_type", "");
  if (type != RowOf(info.dtype)->name) {
    throw Failure(kInvalidArgument, std::string("oncilla: ") + what + " " + Quoted(info.name) +
                                        " is " + type + " in the configuration and " +
                                        RowOf(info.dtype)->name + " in the model");
  }
  if (batches) CheckBatchAxis(what, info);
  if (!info.ranked) return;
  const bool reshaped = entry.contains("reshape");
  std::vector<int64_t> dims =
      DimsOf(reshaped ? entry["reshape"].value("shape", json::array()) : entry["dims"]);
  if (batches) dims.insert(dims.begin(), -1);
  if (IsScalar(info) && dims == std::vector<int64_t>{1}) return;
  bool same = dims.size() == info.dims.size();
  for (size_t i = 0; same && i < dims.size(); ++i) {
    same = dims[i] == -1 || info.dims[i] == -1 || dims[i] == info.dims[i];
  }
  if (same) return;
  throw Failure(kInvalidArgument, std::string("oncilla: ") + what + " " + Quoted(info.name) +
                                      " has the shape " + ShapeText(dims) +
                                      (batches ? " in the configuration, with its batch, and "
                                               : " in the configuration and ") +
                                      ShapeText(info.dims) + " in the model");
}

// With `all`, every tensor of the signature must be in the configuration.
void CheckSide(const char* what, const json& entries, const std::vector<TensorInfo>& infos,
               bool all, bool batches) {
  std::vector<std::string> seen;
  for (const json& entry : entries) {
    const std::string name = entry.value("name", "");
    const auto info = std::find_if(infos.begin(), infos.end(),
                                   [&](const TensorInfo& i) { return i.name == name; });
    if (info == infos.end()) {
      std::string names;
      for (const TensorInfo& i : infos) names += (names.empty() ? "" : ", ") + i.name;
      throw Failure(kInvalidArgument, std::string("oncilla: the model has no ") + what + " " +
                                          Quoted(name) + "; it has: " + names);
    }
    CheckEntry(what, entry, *info, batches);
    seen.push_back(name);
  }
  for (const TensorInfo& info : infos) {
    if (all && std::find(seen.begin(), seen.end(), info.name) == seen.end()) {
      throw Failure(kInvalidArgument, std::string("oncilla: the configuration lacks the model's ") +
                                          what + " " + Quoted(info.name));
    }
  }
}

}  // namespace

bool IsScalar(const TensorInfo& info) { return info.ranked && info.dims.empty(); }

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

int64_t NumberOf(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t number = 0;
    const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stopped == text.data() + text.size()) return number;
  }
  throw Failure(kInvalidArgument, "oncilla: " + value.dump() + " is not a number");
}

int InstanceCountOf(const json& config) {
  int64_t count = 0;
  for (const json& group : config.value("instance_group", json::array())) {
    const int64_t each = group.contains("count") ? NumberOf(group["count"]) : 1;
    const auto gpus = static_cast<int64_t>(group.value("gpus", json::array()).size());
    count += std::max<int64_t>(each, 1) * std::max<int64_t>(gpus, 1);
  }
  return static_cast<int>(std::clamp<int64_t>(count, 1, 1024));
}

bool IsForCpu(const json& config) {
  const json groups = config.value("instance_group", json::array());
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const json& group) {
    return group.value("kind", "") == "KIND_CPU";
  });
}

oncilla_dtype DTypeOf(TRITONSERVER_DataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.dtype;
  }
  return static_cast<oncilla_dtype>(0);
}

DataType DataTypeOf(oncilla_dtype dtype) {
  const TypeRow* row = RowOf(dtype);
  return row == nullptr ? kNoType : row->type;
}

Options ReadOptions(const json& config) {
  Options options;
  json session = json::object();
  std::string whole;
  const json parameters = config.value("parameters", json::object());
  for (const auto& [asked, parameter] : parameters.items()) {
    const std::string value = parameter.value("string_value", "");
    std::string name = asked;
    for (const auto& [shorter, longer] : kShort) {
      if (name == shorter) name = longer;
    }
    if (name == "device") {
      options.devices = Split(value);
    } else if (name == "signature") {
      options.signature = value;
    } else if (name == "tags") {
      options.tags = value;
    } else if (name == "config") {
      whole = value;
    } else {
      const size_t dot = name.find('.');
      json& outer = session[name.substr(0, dot)];
      if (dot == std::string::npos ? !outer.is_null() : !outer.is_null() && !outer.is_object()) {
        throw Failure(kInvalidArgument, "oncilla: the parameters give '" + name.substr(0, dot) +
                                            "' both as a whole and in parts");
      }
      (dot == std::string::npos ? outer : outer[name.substr(dot + 1)]) = ValueOf(value);
    }
  }
  if (!whole.empty() && !session.empty()) {
    throw Failure(kInvalidArgument, "oncilla: the parameter '" + session.begin().key() +
                                        "' stands beside 'config'; write it there");
  }
  options.session = !whole.empty() ? whole : session.empty() ? "" : session.dump();
  return options;
}

bool Complete(json& config, const std::vector<TensorInfo>& inputs,
              const std::vector<TensorInfo>& outputs) {
  const bool batches = MaxBatchOf(config) > 0;
  bool changed = false;
  const auto fill = [&](const char* what, const std::vector<TensorInfo>& infos) {
    if (config.contains(what) && !config[what].empty()) return;
    json entries = json::array();
    for (const TensorInfo& info : infos) entries.push_back(EntryOf(what, info, batches));
    config[what] = std::move(entries);
    changed = true;
  };
  fill("input", inputs);
  fill("output", outputs);
  return changed;
}

void CheckAgainst(const json& config, const std::vector<TensorInfo>& inputs,
                  const std::vector<TensorInfo>& outputs) {
  const bool batches = MaxBatchOf(config) > 0;
  if (config.contains("sequence_batching")) {
    throw Failure(kUnsupported, "oncilla: sequence_batching is not supported");
  }
  if (config.contains("model_transaction_policy") &&
      config["model_transaction_policy"].value("decoupled", false)) {
    throw Failure(kUnsupported, "oncilla: decoupled models are not supported");
  }
  CheckSide("input", config.value("input", json::array()), inputs, true, batches);
  CheckSide("output", config.value("output", json::array()), outputs, false, batches);
}

}  // namespace oncilla::triton
