// Validates and reads the JSON of an inference request.
#include "server/http/json_infer.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "server/core/parameters.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"
#include "server/http/json_data.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::json;

// A JSON document takes many times its length in memory; larger data must be sent as binary data.
constexpr size_t kMostJsonBytes = 64 << 20;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status TextMember(const Json& object, const char* key, bool required, std::string& text) {
  const auto found = object.find(key);
  if (found == object.end())
    return required ? Bad(StrCat("'", key, "' is missing")) : absl::OkStatus();
  if (!found->is_string()) return Bad(StrCat("'", key, "' must be a text"));
  text = found->get<std::string>();
  return absl::OkStatus();
}

// The member `parameters`; an empty object if it is missing.
absl::StatusOr<Json> ParametersOf(const Json& object) {
  const auto found = object.find("parameters");
  if (found == object.end()) return Json::object();
  if (!found->is_object()) return Bad("'parameters' must be an object");
  return *found;
}

absl::Status Unsigned(const Json& parameters, const char* key, uint64_t& value) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absl::OkStatus();
  if (!found->is_number_unsigned())
    return Bad(StrCat("'", key, "' must be a whole number, not negative"));
  value = found->get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Flag(const Json& parameters, const char* key, bool& value) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absl::OkStatus();
  if (!found->is_boolean()) return Bad(StrCat("'", key, "' must be true or false"));
  value = found->get<bool>();
  return absl::OkStatus();
}

absl::Status MemoryParameters(const Json& parameters, std::optional<MemoryTarget>& target) {
  MemoryTarget memory;
  absl::Status status = TextMember(parameters, "shared_memory_region", false, memory.region);
  if (status.ok()) status = Unsigned(parameters, "shared_memory_offset", memory.offset);
  if (status.ok()) status = Unsigned(parameters, "shared_memory_byte_size", memory.bytes);
  if (!status.ok() || memory.region.empty()) return status;
  target = std::move(memory);
  return absl::OkStatus();
}

absl::StatusOr<TensorSpec> SpecOf(const Json& input) {
  TensorSpec spec;
  absl::Status status = TextMember(input, "name", true, spec.name);
  if (status.ok()) status = TextMember(input, "datatype", true, spec.datatype);
  if (!status.ok()) return status;
  const auto shape = input.find("shape");
  if (shape == input.end() || !shape->is_array()) {
    return Bad(StrCat("input '", spec.name, "' needs a 'shape', a list of sizes"));
  }
  for (const Json& size : *shape) {
    if (!size.is_number_integer() ||
        (size.is_number_unsigned() && size.get<uint64_t>() > INT64_MAX)) {
      return Bad(
          StrCat("input '", spec.name, "' has a size in its shape that is not a whole number"));
    }
    spec.shape.push_back(size.get<int64_t>());
  }
  return spec;
}

// Reads one input; its binary data are taken from the front of `binary`.
absl::StatusOr<NamedTensor> ReadInput(const Json& input, std::string_view& binary,
                                      const SharedMemory& memory) {
  if (!input.is_object()) return Bad("an element of 'inputs' must be an object");
  const auto spec = SpecOf(input);
  if (!spec.ok()) return spec.status();
  const auto parameters = ParametersOf(input);
  if (!parameters.ok()) return parameters.status();
  std::optional<MemoryTarget> source;
  const absl::Status status = MemoryParameters(*parameters, source);
  if (!status.ok()) return status;
  const bool has_data = input.contains("data"), has_size = parameters->contains("binary_data_size");
  if (has_data + has_size + source.has_value() != 1) {
    return Bad(StrCat("input '", spec->name,
                      "' must have 'data', or a parameter 'binary_data_size', or "
                      "'shared_memory_region', and only one of them"));
  }
  absl::StatusOr<Tensor> tensor = Bad("");
  if (source) {
    const auto bytes = memory.Read(*source);
    if (!bytes.ok()) return bytes.status();
    tensor = TensorFromRaw(*spec, *bytes);
  } else if (has_size) {
    uint64_t size = 0;
    const absl::Status read = Unsigned(*parameters, "binary_data_size", size);
    if (!read.ok()) return read;
    if (size > binary.size()) {
      return Bad(StrCat("input '", spec->name, "' has a binary_data_size of ", size, ", and only ",
                        binary.size(), " bytes are left behind the JSON"));
    }
    tensor = TensorFromRaw(*spec, binary.substr(0, size));
    binary.remove_prefix(size);
  } else {
    tensor = TensorFromJson(*spec, input["data"]);
  }
  if (!tensor.ok()) return tensor.status();
  return NamedTensor{spec->name, *std::move(tensor)};
}

absl::StatusOr<WantedOutput> ReadOutput(const Json& output, bool binary_outputs) {
  if (!output.is_object()) return Bad("an element of 'outputs' must be an object");
  WantedOutput wanted;
  wanted.binary = binary_outputs;
  absl::Status status = TextMember(output, "name", true, wanted.name);
  if (!status.ok()) return status;
  const auto parameters = ParametersOf(output);
  if (!parameters.ok()) return parameters.status();
  status = Unsigned(*parameters, "classification", wanted.classes);
  if (status.ok()) status = Flag(*parameters, "binary_data", wanted.binary);
  if (status.ok()) status = MemoryParameters(*parameters, wanted.into);
  if (!status.ok()) return status;
  return wanted;
}

absl::Status SequenceParameters(const Json& parameters, SequenceMark& mark) {
  const auto id = parameters.find("sequence_id");
  if (id != parameters.end() && id->is_number_unsigned()) {
    mark.id = SequenceId(id->get<uint64_t>());
  } else if (id != parameters.end()) {
    auto text = id->is_string() ? SequenceId(id->get<std::string>()) : BadSequenceId();
    if (!text.ok()) return text.status();
    mark.id = *std::move(text);
  }
  absl::Status status = Flag(parameters, "sequence_start", mark.start);
  if (status.ok()) status = Flag(parameters, "sequence_end", mark.end);
  if (!status.ok()) return status;
  return CheckSequence(mark);
}

absl::Status RequestParameters(const Json& root, InferRequest& request) {
  const auto parameters = ParametersOf(root);
  if (!parameters.ok()) return parameters.status();
  uint64_t timeout_us = 0;
  absl::Status status = Unsigned(*parameters, "timeout", timeout_us);
  if (status.ok()) status = Unsigned(*parameters, "priority", request.priority);
  if (status.ok()) status = Flag(*parameters, "binary_data_output", request.binary_outputs);
  if (status.ok()) status = SequenceParameters(*parameters, request.sequence);
  request.deadline = TimeoutParameter(timeout_us);
  return status;
}

absl::Status ReadRoot(const Json& root, std::string_view binary, const SharedMemory& memory,
                      InferRequest& request) {
  if (!root.is_object()) return Bad("the request must be a JSON object");
  absl::Status status = TextMember(root, "id", false, request.id);
  if (status.ok()) status = RequestParameters(root, request);
  if (!status.ok()) return status;
  const auto inputs = root.find("inputs");
  if (inputs == root.end() || !inputs->is_array())
    return Bad("'inputs' is missing, a list of tensors");
  for (const Json& input : *inputs) {
    auto tensor = ReadInput(input, binary, memory);
    if (!tensor.ok()) return tensor.status();
    request.inputs.push_back(*std::move(tensor));
  }
  if (!binary.empty()) {
    return Bad(
        StrCat(binary.size(), " bytes behind the JSON belong to no input (binary_data_size)"));
  }
  const auto outputs = root.find("outputs");
  if (outputs == root.end()) return absl::OkStatus();
  if (!outputs->is_array()) return Bad("'outputs' must be a list");
  for (const Json& output : *outputs) {
    auto wanted = ReadOutput(output, request.binary_outputs);
    if (!wanted.ok()) return wanted.status();
    request.outputs.push_back(*std::move(wanted));
  }
  return absl::OkStatus();
}

std::string Quoted(const std::string& text) { return Json(ValidUtf8(text)).dump(); }

void AppendShape(const Tensor& tensor, std::string& json) {
  json += "\"shape\":[";
  bool first = true;
  for (const int64_t size : tensor.dims()) {
    StrAppend(&json, first ? "" : ",", size);
    first = false;
  }
  json += "]";
}

}  // namespace

absl::StatusOr<InferRequest> ParseInferBody(std::string_view body, std::optional<size_t> json_bytes,
                                            const SharedMemory& memory) {
  if (json_bytes && *json_bytes > body.size()) {
    return Bad(StrCat("Inference-Header-Content-Length is ", *json_bytes, ", and the body has ",
                      body.size(), " bytes"));
  }
  const std::string_view text = body.substr(0, json_bytes.value_or(body.size()));
  if (text.size() > kMostJsonBytes) {
    return Bad(StrCat("the JSON of a request may have ", kMostJsonBytes >> 20,
                      " MiB: send tensors as binary data"));
  }
  InferRequest request;
  try {
    const Json root = Json::parse(text);
    const absl::Status status = ReadRoot(root, body.substr(text.size()), memory, request);
    if (!status.ok()) return status;
  } catch (const Json::out_of_range&) {
    return Bad("the request has a number that no type can hold");
  } catch (const Json::parse_error& error) {
    return Bad(StrCat("the request is not JSON: wrong at byte ", error.byte));
  }
  return request;
}

absl::StatusOr<InferBody> WriteInferBody(const InferResponse& response) {
  InferBody out;
  std::string binary;
  std::string& json = out.body;
  StrAppend(&json, "{\"model_name\":", Quoted(response.model),
            ",\"model_version\":", Quoted(response.version));
  if (!response.id.empty()) StrAppend(&json, ",\"id\":", Quoted(response.id));
  json += ",\"outputs\":[";
  bool first = true;
  for (const InferOutput& output : response.outputs) {
    StrAppend(&json, first ? "" : ",", "{\"name\":", Quoted(output.name), ",\"datatype\":\"",
              DatatypeOf(output.tensor.dtype()), "\",");
    first = false;
    AppendShape(output.tensor, json);
    if (output.into) {
      StrAppend(&json, ",\"parameters\":{\"shared_memory_region\":", Quoted(output.into->region),
                ",\"shared_memory_byte_size\":", output.into->bytes);
      if (output.into->offset != 0)
        StrAppend(&json, ",\"shared_memory_offset\":", output.into->offset);
      json += "}";
    } else if (output.binary) {
      const size_t before = binary.size();
      AppendRaw(output.tensor, binary);
      StrAppend(&json, ",\"parameters\":{\"binary_data_size\":", binary.size() - before, "}");
      out.json_bytes = 0;
    } else {
      json += ",\"data\":";
      const absl::Status status = AppendJsonData(output.name, output.tensor, json);
      if (!status.ok()) return status;
    }
    json += "}";
  }
  json += "]}";
  if (out.json_bytes) out.json_bytes = json.size();
  json += binary;
  return out;
}

}  // namespace oncilla::server
