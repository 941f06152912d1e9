// The exit code follows from the stage, which says who caused a failure, and from the code, which
// says what kind it is. If both apply, the order of the checks below decides.
#include "tools/oncilla/exit_code.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/base/format.h"

namespace oncilla::tool {

int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitOk;
  const Stage stage = Details(status).stage;
  if (stage == Stage::kOptions) return kExitUsage;
  if (stage == Stage::kFile) return kExitFile;
  switch (status.code()) {
    case Code::kUnimplemented:
      return kExitUnsupported;
    case Code::kResourceExhausted:
      return kExitMemory;
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return kExitLost;
    case Code::kCancelled:
      return kExitInterrupted;
    default:
      break;
  }
  if (stage == Stage::kLoad) return kExitModel;
  if (stage == Stage::kDevice) return kExitDevice;
  if (stage == Stage::kCompile) {
    return status.code() == Code::kInvalidArgument || status.code() == Code::kDataLoss
               ? kExitModel
               : kExitDevice;
  }
  // A driver that fails during a run is a problem of the device, not of the data.
  return Details(status).driver_code ? kExitDevice : kExitFailed;
}

namespace {

Status Rebuilt(const Status& status, Code code, Stage stage) {
  const StatusDetails details = Details(status);
  Status out = WithStage(Status(code, status.message()), stage);
  out = WithNode(std::move(out), details.node);
  out = WithDevice(std::move(out), details.device);
  if (details.driver_code) out = WithDriverCode(std::move(out), *details.driver_code);
  return out;
}

}  // namespace

Status Restaged(const Status& status, Stage stage) { return Rebuilt(status, status.code(), stage); }

Status OfModel(const Status& status) {
  const Stage stage = Details(status).stage;
  if (stage == Stage::kFile || stage == Stage::kUnknown) return Restaged(status, Stage::kLoad);
  return status;
}

Status OfRun(const Status& status) {
  if (status.code() != Code::kUnavailable) return status;
  return Rebuilt(status, Code::kAborted, Details(status).stage);
}

namespace {

// The first line, and the details below it. Line breaks of names that the first line quotes are
// escaped.
std::pair<std::string, std::string> Parts(std::string_view message) {
  std::string first;
  size_t at = 0;
  while (at < message.size() && message[at] != '\n') {
    const bool opens =
        message[at] == '\'' && (at == 0 || message[at - 1] == ' ' || message[at - 1] == '(');
    const size_t close = opens ? message.find('\'', at + 1) : std::string_view::npos;
    const size_t end = close == std::string_view::npos ? at + 1 : close + 1;
    first += OneLine(message.substr(at, end - at));
    at = end;
  }
  return {std::move(first), std::string(message.substr(std::min(at + 1, message.size())))};
}

}  // namespace

void PrintFailure(std::string_view command, const Status& status) {
  auto [first, text] = Parts(Message(status));
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += StrCat("oncilla", command.empty() ? "" : " ", command, ": error: ", first, "\n");
  const std::string shown = Printable(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

}  // namespace oncilla::tool
