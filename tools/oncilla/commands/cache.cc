// oncilla cache: the compiled programs kept on disk.
#include <CLI/CLI.hpp>
#include <ctime>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/report.h"
#if ONCILLA_OPENCL
#include "backends/opencl/runtime/disk_cache.h"
#endif

namespace oncilla::tool {
namespace {

struct CacheFlags {
  std::string folder;
  bool json = false;
  const CLI::App *list = nullptr, *clear = nullptr;
};

#if ONCILLA_OPENCL
std::string When(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "?";
  if (gmtime_r(&time, &parts)) std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

Result<std::string> FolderOf(const CacheFlags& flags) {
  if (FileExists(flags.folder)) return BadOption("--cache-dir ", flags.folder, " is a file");
  if (!flags.folder.empty()) return flags.folder;
  std::string folder = opencl::UserCacheFolder();
  if (!folder.empty()) return folder;
  return WithStage(NotFound("there is no home folder; give --cache-dir or set ONCILLA_CACHE_DIR"),
                   Stage::kOptions);
}

Status List(const CacheFlags& flags, const std::string& folder) {
  std::vector<opencl::CacheEntry> entries;
  auto listed = opencl::ListCache(folder);
  if (listed.ok()) {
    entries = *std::move(listed);
  } else if (listed.status().code() != Code::kNotFound) {  // a missing folder is an empty cache
    return WithStage(listed.status(), Stage::kFile);
  }
  uint64_t bytes = 0;
  Json json = DocumentJson("cache list");
  json["folder"] = JsonText(folder);
  json["entries"] = Json::array();
  std::string text;
  for (const opencl::CacheEntry& entry : entries) {
    bytes += entry.bytes;
    json["entries"].push_back(
        {{"name", JsonText(entry.name)}, {"bytes", entry.bytes}, {"used_s", entry.used_s}});
    text += StrCat(entry.name, "  ", HumanBytes(static_cast<int64_t>(entry.bytes)), "  used ",
                   When(entry.used_s), "\n");
  }
  json["bytes"] = bytes;
  if (flags.json) return PrintDocument(json);
  text += StrCat(entries.size(), entries.size() == 1 ? " entry, " : " entries, ",
                 HumanBytes(static_cast<int64_t>(bytes)), " in ", folder, "\n");
  return PrintResult(text);
}

Status Clear(const CacheFlags& flags, const std::string& folder) {
  uint64_t freed = 0;
  auto cleared = opencl::ClearCache(folder);
  if (cleared.ok()) {
    freed = *cleared;
  } else if (cleared.status().code() != Code::kNotFound) {
    return WithStage(cleared.status(), Stage::kFile);
  }
  if (flags.json) {
    Json json = DocumentJson("cache clear");
    json["folder"] = JsonText(folder);
    json["freed_bytes"] = freed;
    return PrintDocument(json);
  }
  return PrintResult(
      StrCat("freed ", HumanBytes(static_cast<int64_t>(freed)), " in ", folder, "\n"));
}
#endif

Status Cache(const CacheFlags& flags) {
#if ONCILLA_OPENCL
  ONCILLA_ASSIGN(const std::string folder, FolderOf(flags));
  return flags.clear->parsed() ? Clear(flags, folder) : List(flags, folder);
#else
  (void)flags;
  return Unsupported("this build has no OpenCL, which is what the cache is for");
#endif
}

}  // namespace

Action AddCache(CLI::App& app) {
  auto flags = std::make_shared<CacheFlags>();
  CLI::App* list = app.add_subcommand("list", "What is kept, the longest unused first");
  CLI::App* clear = app.add_subcommand("clear", "Remove it all; it is made again when needed");
  for (CLI::App* command : {list, clear}) {
    command
        ->add_option("--cache-dir", flags->folder,
                     "The folder (else $ONCILLA_CACHE_DIR, else the user's cache)")
        ->type_name("DIR");
    command->add_flag("--json", flags->json, "One JSON document");
  }
  flags->list = list;
  flags->clear = clear;
  app.require_subcommand(1);
  app.footer("Examples:\n  oncilla cache list\n  oncilla cache clear --cache-dir /tmp/programs");
  return [flags] { return Cache(*flags); };
}

}  // namespace oncilla::tool
