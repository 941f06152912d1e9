// oncilla options: lists the options of a configuration, from the list of fields that reads it.
// tools/tidy compares the output with the table in docs/config.md.
#include <CLI/CLI.hpp>

#include "engine/session/session_options.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/report.h"

namespace oncilla::tool {
namespace {

Status PrintTable(bool markdown) {
  std::vector<OptionRow> rows;
  ListOptions<SessionOptions>("", rows);
  std::string text = markdown ? "| option | what it does | flag |\n|---|---|---|\n" : "";
  for (const OptionRow& row : rows) {
    const std::string flag = row.flag.empty() ? "" : StrCat("`", row.flag, "`");
    text += markdown ? StrCat("| `", row.name, "` | ", row.doc, " | ", flag, " |\n")
                     : StrCat(row.name, row.flag.empty() ? "" : StrCat("  (", row.flag, ")"),
                              "\n    ", row.doc, "\n");
  }
  return PrintResult(text);
}

}  // namespace

Action AddOptions(CLI::App& app) {
  auto markdown = std::make_shared<bool>(false);
  app.add_flag("--markdown", *markdown, "As the table of docs/config.md");
  app.footer("Example:\n  oncilla options");
  return [markdown] { return PrintTable(*markdown); };
}

}  // namespace oncilla::tool
