// The commands. Each declares its flags on a CLI::App of its own and returns what to do once they
// are parsed; the parsed values live as long as that function.
#pragma once

#include <functional>
#include <string_view>

#include "engine/base/status.h"

namespace CLI {
class App;
}

namespace oncilla::tool {

using Action = std::function<Status()>;

Action AddRun(CLI::App& app);
Action AddInspect(CLI::App& app);
Action AddConvert(CLI::App& app);
Action AddDevices(CLI::App& app);
Action AddDoctor(CLI::App& app);
Action AddBench(CLI::App& app);
Action AddCache(CLI::App& app);
Action AddOps(CLI::App& app);
Action AddOptions(CLI::App& app);
Action AddServe(CLI::App& app);
Action AddTune(CLI::App& app);

}  // namespace oncilla::tool
