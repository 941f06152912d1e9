// Exit codes of the program, and the mapping from a failure's code and stage.
#pragma once

#include "engine/base/status.h"

namespace oncilla::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;       // a check failed, or the data made the run fail
inline constexpr int kExitUsage = 2;        // the command line: names, types, shapes included
inline constexpr int kExitModel = 3;        // the model is unreadable or damaged
inline constexpr int kExitUnsupported = 4;  // the model is fine, the engine cannot run it
inline constexpr int kExitDevice = 5;       // no such device, driver trouble
inline constexpr int kExitMemory = 6;
inline constexpr int kExitLost = 7;           // device lost, or a deadline passed
inline constexpr int kExitFile = 9;           // the user's other files
inline constexpr int kExitInterrupted = 130;  // 128 and the signal's number, here Ctrl-C's

int ExitCodeOf(const Status& status);

// InvalidArgument for a wrong flag, or a wrong value of one.
template <class... Parts>
Status BadOption(const Parts&... parts) {
  return WithStage(InvalidArgument(parts...), Stage::kOptions);
}

// The same failure in another stage, for callers that know the reason better: a file that cannot
// be read may be the model's or one of the user's.
Status Restaged(const Status& status, Stage stage);

// A failure while a model was opened or imported: what went wrong with a file is the model's.
Status OfModel(const Status& status);

// A failure of a run on an opened device: a device that is no longer available was lost.
Status OfRun(const Status& status);

// Writes the failure to stderr, details first, so that its first line comes last:
//   oncilla run: error: cannot open ...
// Line breaks of quoted names in that line are escaped.
void PrintFailure(std::string_view command, const Status& status);

}  // namespace oncilla::tool
