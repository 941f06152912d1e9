// The JSON of a load request: strings in 'parameters', which may be long.
#include "server/http/json_load.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "server/core/parameters.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::json;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

// A load request has no lists and no deep nesting, which would take many times their length.
absl::StatusOr<Json> ParseShallow(std::string_view body) {
  constexpr int kMostDepth = 2;
  constexpr size_t kMostMembers = 2000;
  size_t members = 0;
  bool strange = false;
  const auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::key) strange |= ++members > kMostMembers;
    strange |= event == Json::parse_event_t::array_start;
    strange |= event == Json::parse_event_t::object_start && depth >= kMostDepth;
    return !strange;
  };
  Json json = Json::parse(body, keep, /*allow_exceptions=*/false);
  if (strange)
    return Bad("a load request is {\"parameters\": {..}}, whose values are texts, not lists");
  if (!json.is_object()) return Bad("the body must be a JSON object");
  return json;
}

absl::Status ReadFile(const std::string& path, const std::string& text, LoadRequest& request) {
  const absl::Status room = request.held.Grow(text.size() / 4 * 3);
  if (!room.ok()) return room;
  ModelFile file{path, {}};
  if (!absl::Base64Unescape({text.data(), text.size()}, &file.bytes))
    return Bad(StrCat("the file '", ValidUtf8(path.substr(0, 100)), "' is not base64"));
  request.files.push_back(std::move(file));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadRequest> ParseLoadBody(std::string_view body, ByteBudget* budget) {
  LoadRequest request;
  request.held = ByteHold(budget);
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return request;
  ByteHold document(budget);
  const absl::Status room = document.Grow(body.size());
  if (!room.ok()) return room;
  const auto json = ParseShallow(body);
  if (!json.ok()) return json.status();
  const auto parameters = json->find("parameters");
  if (parameters == json->end()) return request;
  if (!parameters->is_object()) return Bad("'parameters' must be an object");
  for (const auto& [key, value] : parameters->items()) {
    const bool file = key.starts_with(kLoadFile);
    if (!file && key != kLoadConfig) return UnsupportedLoadParameter(key);
    if (!value.is_string())
      return Bad(StrCat("'", ValidUtf8(key.substr(0, 100)), "' must be a text"));
    const auto& text = value.get_ref<const std::string&>();
    if (!file) {
      request.config = text;
      continue;
    }
    const absl::Status read =
        ReadFile(key.substr(std::string_view(kLoadFile).size()), text, request);
    if (!read.ok()) return read;
  }
  return request;
}

}  // namespace oncilla::server
