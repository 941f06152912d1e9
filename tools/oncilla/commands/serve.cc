// oncilla serve: replaces this process by oncilla_server, a program in the same folder. The server
// is a separate program, so that nothing else needs its libraries; it has separate flags and its
// own --help.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "tools/oncilla/commands/commands.h"

namespace oncilla::tool {
namespace {

Status Serve(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return Error(Code::kUnavailable, "where this program lies cannot be found: ", error.message());
  const std::string server = (self.parent_path() / "oncilla_server").string();
  if (!std::filesystem::exists(server, error)) {
    return NotFound(
        "there is no oncilla_server beside this program: build it with -DONCILLA_SERVER=ON");
  }
  std::vector<char*> argv = {const_cast<char*>(server.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(server.c_str(), argv.data());
  return Error(Code::kUnavailable, "oncilla_server cannot be started: ", std::strerror(errno));
}

}  // namespace

Action AddServe(CLI::App& app) {
  app.prefix_command();  // all further arguments are the server's
  app.set_help_flag();   // including --help
  app.footer("oncilla serve --help lists the server's own flags; docs/serving.md explains them.");
  return [&app] { return Serve(app.remaining()); };
}

}  // namespace oncilla::tool
