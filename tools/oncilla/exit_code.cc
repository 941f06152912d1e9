// The exit code follows from the stage, which says who caused a failure, and from the code, which
// says what kind it is. If both apply, the order of the checks below decides.
#include "tools/oncilla/exit_code.h"

#include <cstdio>

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

void PrintFailure(std::string_view command, const Status& status) {
  const std::string message = Message(status);
  const size_t end = message.find('\n');
  std::string text;
  if (end != std::string::npos) {
    text = message.substr(end + 1);
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  text += StrCat("oncilla", command.empty() ? "" : " ", command,
                 ": error: ", message.substr(0, end), "\n");
  const std::string shown = Printable(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

}  // namespace oncilla::tool
