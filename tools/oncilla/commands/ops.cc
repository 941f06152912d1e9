// oncilla ops: the canonical ops of this build and which backends have kernels for them. What
// tools/tidy asks to learn whether every op has a case and a CPU kernel.
#include <CLI/CLI.hpp>

#include "backends/cpu/kernel.h"
#include "engine/ops/op_set.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/report.h"

namespace oncilla::tool {
namespace {

Status Ops(bool as_json) {
  const std::shared_ptr<const OpSet> set = OpSet::Builtin();
  Json json = DocumentJson("ops");
  json["ops"] = Json::array();
  std::string text;
  for (const OpDef* op : set->ops()) {
    const bool cpu = cpu::FindKernel(op->name) != nullptr;
    json["ops"].push_back({{"name", std::string(op->name)},
                           {"cpu", cpu},
                           {"elementwise", op->elementwise != nullptr}});
    text += StrCat(op->name, cpu ? "" : "  (no CPU kernel)", "\n");
  }
  return as_json ? PrintDocument(json) : PrintResult(text);
}

}  // namespace

Action AddOps(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "One JSON document");
  return [as_json] { return Ops(*as_json); };
}

}  // namespace oncilla::tool
