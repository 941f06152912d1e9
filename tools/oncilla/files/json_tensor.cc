// Tensors in JSON. nlohmann's parser is used without exceptions, so every access checks the type
// first.
#include "tools/oncilla/files/json_tensor.h"

#include <nlohmann/json.hpp>

#include "tools/oncilla/files/base64.h"

namespace oncilla::tool {
namespace {

using Json = nlohmann::json;

Result<Tensor> Read(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("it is not a JSON object");
  if (json.value("dtype", Json()) != "string") {
    return Unsupported("its \"dtype\" is not \"string\"; other types travel as .npy");
  }
  const Json encoding = json.value("encoding", Json("utf8"));
  if (encoding != "utf8" && encoding != "base64") {
    return Unsupported("its \"encoding\" is neither \"utf8\" nor \"base64\"");
  }
  const Json dims = json.value("shape", Json());
  if (!dims.is_array() || dims.size() > static_cast<size_t>(kMaxRank)) {
    return DataLoss("its \"shape\" is not a list of at most ", kMaxRank, " sizes");
  }
  Shape shape;
  for (const Json& dim : dims) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return DataLoss("its \"shape\" holds something that is not a size");
    }
    shape.push_back(dim.get<int64_t>());
  }
  const auto data = json.find("data");
  if (data == json.end() || !data->is_array()) return DataLoss("its \"data\" is not a list");
  if (static_cast<int64_t>(data->size()) != shape.elements()) {
    return DataLoss("its shape ", shape, " needs ", shape.elements(), " strings, \"data\" holds ",
                    data->size());
  }
  std::vector<std::string> values;
  for (const Json& item : *data) {
    if (!item.is_string()) return DataLoss("its \"data\" holds something that is not a string");
    const std::string& value = item.get_ref<const std::string&>();
    if (encoding == "utf8") {
      values.push_back(value);
      continue;
    }
    std::optional<std::string> bytes = DecodeBase64(value);
    if (!bytes) return DataLoss("string ", values.size(), " of its \"data\" is not base64");
    values.push_back(*std::move(bytes));
  }
  return Tensor::Strings(std::move(shape), std::move(values));
}

}  // namespace

Result<Tensor> ReadJsonTensor(std::string_view text) {
  Result<Tensor> tensor = Read(text);
  if (!tensor.ok()) return WithStage(tensor.status(), Stage::kFile);
  return tensor;
}

std::string JsonTensor(const Tensor& tensor) {
  bool utf8 = true;
  for (const std::string& value : tensor.strings()) utf8 = utf8 && IsUtf8(value);
  nlohmann::ordered_json json;
  json["dtype"] = "string";
  json["shape"] = Json::array();
  for (int64_t size : tensor.shape()) json["shape"].push_back(size);
  json["encoding"] = utf8 ? "utf8" : "base64";
  json["data"] = Json::array();
  for (const std::string& value : tensor.strings()) {
    json["data"].push_back(utf8 ? value : EncodeBase64(value));
  }
  return json.dump() + "\n";
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned char lead = byte(i);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0 || length > text.size() - i) return false;
    uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      point = point << 6 | (byte(i + k) & 0x3fu);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (overlong || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff) return false;
    i += length;
  }
  return true;
}

}  // namespace oncilla::tool
