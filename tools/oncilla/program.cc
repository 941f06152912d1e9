// The oncilla program: finds the command, parses its flags, and turns its outcome into an exit
// code.
#include "tools/oncilla/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <iostream>

#include "engine/base/caught.h"
#include "engine/base/near_names.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"
#include "tools/oncilla/version.h"

namespace oncilla::tool {
namespace {

struct Command {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App& app);
  bool hidden = false;
};

constexpr Command kCommands[] = {
    {"run", "Run a model on files, write or show its outputs", AddRun},
    {"inspect", "What a model is, and what would run where", AddInspect},
    {"convert", "Any model as one file that loads at once", AddConvert},
    {"devices", "What this machine has", AddDevices},
    {"doctor", "Whether its devices compute what they should", AddDoctor},
    {"bench", "How fast a model runs", AddBench},
    {"tune", "Measure ways of launching on an OpenCL device, and keep the best", AddTune},
    {"serve", "Models over HTTP and gRPC (oncilla_server)", AddServe},
    {"cache", "Compiled programs kept on disk", AddCache},
    {"options", "What a configuration may set", AddOptions},
    {"ops", "The canonical ops", AddOps, /*hidden=*/true},
};

// All flags of the app and of the apps above it, for suggestions.
std::vector<std::string> FlagsOf(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// The innermost command that was given.
const CLI::App* Innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands()[0];
  return at;
}

Status UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = Innermost(app);
  std::vector<std::string> rest = at->remaining();
  if (at == &app || rest.empty()) {
    const std::vector<std::string> more = app.remaining();
    rest.insert(rest.end(), more.begin(), more.end());
  }
  // An unknown flag explains the errors that follow from it, for example when its value is taken
  // for the model.
  for (const std::string& word : rest) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    return InvalidArgument("unknown flag ", flag, DidYouMean(flag, FlagsOf(at)));
  }
  const std::vector<const CLI::App*> below =
      at->get_subcommands([](const CLI::App*) { return true; });
  const bool missing =
      rest.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (!below.empty() && (!rest.empty() || missing)) {
    std::vector<std::string> names;
    std::string listed;
    for (const CLI::App* command : below) {
      if (command->get_group().empty()) continue;
      names.push_back(command->get_name());
      listed += (listed.empty() ? "" : ", ") + command->get_name();
    }
    if (missing) return InvalidArgument("a command is missing. There is: ", listed);
    for (const char* flag : {"--help", "--version"}) names.emplace_back(flag);
    return InvalidArgument("unknown command '", rest[0], "'",
                           DidYouMeanAmong(rest[0], names, listed));
  }
  if (!rest.empty()) return InvalidArgument("unexpected argument '", rest[0], "'");
  return InvalidArgument(error.what());
}

std::string CommandName(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = Innermost(app); at != &app; at = at->get_parent()) {
    name = at->get_name() + (name.empty() ? "" : " ") + name;
  }
  return name;
}

// Opens standard streams that the caller closed. Otherwise files opened later would get their
// numbers, and printed text would go to these files. The streams are opened in the wrong direction,
// so that using one fails as on a closed stream.
void HoldStandardStreams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) std::_Exit(kExitFile);
  }
}

int Main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");  // determines what the terminal can show; numbers stay as in C
  HandleInterrupts();
  CLI::App app("Runs TensorFlow, TFLite and ONNX models on OpenCL devices and on the CPU.",
               "oncilla");
  app.set_version_flag("--version", StrCat("oncilla ", kVersion, "\n", BuildFacts()));
  app.require_subcommand(1);
  app.footer("oncilla COMMAND --help explains a command.\nExit codes: docs/cli.md");
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    if (command.hidden) sub->group("");
    actions.emplace_back(sub, command.add(*sub));
  }
  Status status;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    status = WithStage(UsageError(app, error), Stage::kOptions);
  }
  for (const auto& [sub, action] : actions) {
    if (status.ok() && sub->parsed()) status = Fenced(action);
  }
  if (!status.ok()) PrintFailure(CommandName(app), status);
  return ExitCodeOf(status);
}

}  // namespace

int RunProgram(int argc, char** argv) {
  HoldStandardStreams();
  try {
    return Main(argc, argv);
  } catch (...) {  // while the command line was parsed, or a failure printed
    return ExitCodeOf(CaughtStatus());
  }
}

}  // namespace oncilla::tool
