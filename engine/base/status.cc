// Details of a failure are kept as Abseil payloads, one URL per fact.
#include "engine/base/status.h"

#include <charconv>

#include "absl/strings/cord.h"

namespace oncilla {
namespace {

constexpr char kStageUrl[] = "oncilla/stage";
constexpr char kNodeUrl[] = "oncilla/node";
constexpr char kDeviceUrl[] = "oncilla/device";
constexpr char kDriverUrl[] = "oncilla/driver_code";

Status With(Status status, const char* url, std::string_view value) {
  if (!status.ok() && !value.empty() && !status.GetPayload(url).has_value()) {
    status.SetPayload(url, absl::Cord(absl::string_view(value.data(), value.size())));
  }
  return status;
}

std::string Get(const Status& status, const char* url) {
  auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

namespace internal {

void Piece::PrintText(std::ostream& out, const void* value) {
  out << static_cast<const char*>(value);
}

std::string Concatenate(const Piece* pieces, size_t count) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // numbers without a decimal comma or separators
  for (size_t i = 0; i < count; ++i) pieces[i].PrintTo(out);
  return std::move(out).str();
}

Status ErrorOf(Code code, const Piece* pieces, size_t count) {
  return Status(code, Concatenate(pieces, count));
}

}  // namespace internal

std::string_view Name(Stage stage) {
  switch (stage) {
    case Stage::kUnknown:
      return "unknown";
    case Stage::kOptions:
      return "options";
    case Stage::kFile:
      return "file";
    case Stage::kLoad:
      return "load";
    case Stage::kCompile:
      return "compile";
    case Stage::kRun:
      return "run";
    case Stage::kDevice:
      return "device";
  }
  return "unknown";
}

StatusDetails Details(const Status& status) {
  StatusDetails details;
  const std::string stage = Get(status, kStageUrl);
  for (Stage s : {Stage::kOptions, Stage::kFile, Stage::kLoad, Stage::kCompile, Stage::kRun,
                  Stage::kDevice}) {
    if (stage == Name(s)) details.stage = s;
  }
  details.node = Get(status, kNodeUrl);
  details.device = Get(status, kDeviceUrl);
  if (const std::string code = Get(status, kDriverUrl); !code.empty()) {
    int32_t value = 0;
    std::from_chars(code.data(), code.data() + code.size(), value);
    details.driver_code = value;
  }
  return details;
}

Status WithStage(Status status, Stage stage) {
  return With(std::move(status), kStageUrl, stage == Stage::kUnknown ? "" : Name(stage));
}
Status WithNode(Status status, std::string_view node) {
  return With(std::move(status), kNodeUrl, node);
}
Status WithDevice(Status status, std::string_view device) {
  return With(std::move(status), kDeviceUrl, device);
}
Status WithDriverCode(Status status, int32_t code) {
  return With(std::move(status), kDriverUrl, std::to_string(code));
}

Status In(Status status, std::string_view where) {
  if (status.ok()) return status;
  Status outer(status.code(), StrCat(where, ": ", Message(status)));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { outer.SetPayload(url, payload); });
  return outer;
}

}  // namespace oncilla
