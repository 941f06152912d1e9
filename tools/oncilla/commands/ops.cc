// oncilla ops: lists the canonical ops of this build, with the backends that have kernels for them,
// or the ops of each model format, as in docs/formats.md. tools/tidy uses the first list to check
// that every op has a case and a CPU kernel.
#include <CLI/CLI.hpp>

#include "backends/cpu/kernel.h"
#include "engine/import/format_ops.h"
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

// Joins words to lines of at most `width` characters.
std::string Wrapped(const std::vector<std::string>& words, size_t width) {
  std::string text, line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 2 + word.size() > width) {
      text += line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + word;
  }
  return text + line + '\n';
}

Status Formats(bool as_json) {
  Json json = DocumentJson("formats");
  json["formats"] = Json::array();
  std::string text;
  for (const FormatOps& format : SupportedFormatOps()) {
    json["formats"].push_back({{"format", format.format}, {"ops", format.ops}});
    text += StrCat("## ", format.format, ": ", format.ops.size(), " ops\n\n");
    text += Wrapped(format.ops, 118) + '\n';
  }
  text.pop_back();
  return as_json ? PrintDocument(json) : PrintResult(text);
}

}  // namespace

Action AddOps(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "One JSON document");
  auto formats = std::make_shared<bool>(false);
  app.add_flag("--formats", *formats, "The ops of each model format, as in docs/formats.md");
  app.footer("Example:\n  oncilla ops --formats");
  return [as_json, formats] { return *formats ? Formats(*as_json) : Ops(*as_json); };
}

}  // namespace oncilla::tool
