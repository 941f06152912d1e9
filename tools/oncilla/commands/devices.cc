// oncilla devices: what this machine has, what will be used, and what prevents the use of the rest.
#include <CLI/CLI.hpp>

#include "engine/base/format.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/gpu_notes.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"
#if ONCILLA_OPENCL
#include "backends/opencl/runtime/disk_cache.h"
#endif

namespace oncilla::tool {
namespace {

struct DevicesFlags {
  RuntimeFlags runtime;
  bool json = false;
};

struct OpenedDevice {
  const ListedDevice* listed = nullptr;
  std::string problem;  // why it cannot be opened; empty when it can
};

// Opens a device, which probes it: compiles and runs small kernels, or reads what an earlier
// process found.
OpenedDevice Try(Runtime& runtime, const ListedDevice& listed) {
  OpenedDevice out{&listed, listed.note};
  if (listed.name.empty()) return out;
  const Progress progress(StrCat("probing ", listed.info.name));
  OpenOptions open;
  open.threads = &runtime.threads();
  open.cache_dir = runtime.options().cache_dir;
  const auto device = listed.Open(open);
  if (!device.ok()) out.problem = Message(device.status());
  return out;
}

// The device that a run on "auto" takes: of those that open.
Result<size_t> Usual(const Runtime& runtime, std::span<const OpenedDevice> devices) {
  std::vector<ListedDevice> usable(runtime.devices().begin(), runtime.devices().end());
  for (size_t i = 0; i < usable.size(); ++i) {
    if (!devices[i].problem.empty()) usable[i].name.clear();
  }
  return ResolveDevice("auto", usable, runtime.notes());
}

// The folder of compiled programs, and the reason if they are not stored.
std::pair<std::string, std::string> CacheState(const Runtime& runtime) {
#if ONCILLA_OPENCL
  std::string folder = runtime.options().cache_dir;
  if (folder.empty()) folder = opencl::UserCacheFolder();
  if (folder.empty()) return {"", "there is no home folder; set ONCILLA_CACHE_DIR"};
  const opencl::DiskCache cache(folder);
  return {folder, cache.problem()};
#else
  (void)runtime;
  return {"", "this build has no OpenCL"};
#endif
}

Json DeviceJson(const OpenedDevice& device) {
  const DeviceInfo& info = device.listed->info;
  Json json;
  json["name"] = device.listed->name;
  json["usable"] = device.problem.empty();
  json["problem"] = JsonText(device.problem);
  json["backend"] = info.backend;
  json["device"] = JsonText(info.name);
  json["vendor"] = JsonText(info.vendor);
  json["driver"] = JsonText(info.driver);
  json["platform"] = JsonText(info.platform);
  json["id"] = JsonText(info.id);
  json["memory_bytes"] = info.memory_bytes;
  json["max_allocation_bytes"] = info.max_allocation_bytes;
  json["alignment_bytes"] = info.alignment_bytes;
  json["compute_units"] = info.compute_units;
  json["is_opencl_cpu"] = info.is_opencl_cpu;
  return json;
}

std::string DeviceText(const OpenedDevice& device) {
  const DeviceInfo& info = device.listed->info;
  std::string out = StrCat(device.listed->name.empty() ? "-" : device.listed->short_name(), "  ",
                           info.name, "\n");
  std::string facts = info.backend;
  if (!info.platform.empty()) facts += ", " + info.platform;
  if (!info.driver.empty()) facts += ", driver " + info.driver;
  out += "    " + facts + "\n";
  std::string sizes;
  if (info.compute_units > 0) sizes += StrCat(info.compute_units, " compute units");
  if (info.memory_bytes > 0) {
    sizes += StrCat(sizes.empty() ? "" : ", ", HumanBytes(info.memory_bytes), " memory");
  }
  if (info.max_allocation_bytes > 0 && info.max_allocation_bytes < info.memory_bytes) {
    sizes += StrCat(", at most ", HumanBytes(info.max_allocation_bytes), " at once");
  }
  if (!sizes.empty()) out += "    " + sizes + "\n";
  if (!device.problem.empty()) out += "    not used: " + device.problem + "\n";
  return out;
}

Status Devices(const DevicesFlags& flags) {
  const std::shared_ptr<Runtime> runtime = flags.runtime.Create();
  std::vector<OpenedDevice> devices;
  for (const ListedDevice& listed : runtime->devices()) devices.push_back(Try(*runtime, listed));
  std::vector<std::string> notes = runtime->notes();
  bool found_gpu = false;
  for (const ListedDevice& listed : runtime->devices()) {
    found_gpu |= listed.info.type == "GPU" && !listed.info.is_opencl_cpu;
  }
  for (std::string& note : GpuNotes("/dev/dri", found_gpu)) notes.push_back(std::move(note));
  const auto [cache, cache_problem] = CacheState(*runtime);
  ONCILLA_ASSIGN(const size_t chosen, Usual(*runtime, devices));
  const std::string choice = runtime->devices()[chosen].short_name();
  if (flags.json) {
    Json json = DocumentJson("devices");
    json["devices"] = Json::array();
    for (const OpenedDevice& device : devices) json["devices"].push_back(DeviceJson(device));
    json["auto"] = runtime->devices()[chosen].name;
    json["notes"] = Json::array();
    for (const std::string& note : notes) json["notes"].push_back(JsonText(note));
    json["cache"] = {{"folder", JsonText(cache)}, {"problem", JsonText(cache_problem)}};
    return PrintDocument(json);
  }
  std::string text;
  for (const OpenedDevice& device : devices) text += DeviceText(device);
  text += StrCat("\n--device auto takes ", choice, "\n");
  for (const std::string& note : notes) text += StrCat("note: ", note, "\n");
  if (!cache.empty()) text += StrCat("compiled programs are kept in ", cache, "\n");
  if (!cache_problem.empty()) text += StrCat("note: no cache: ", cache_problem, "\n");
  return PrintResult(text);
}

}  // namespace

Action AddDevices(CLI::App& app) {
  auto flags = std::make_shared<DevicesFlags>();
  flags->runtime.AddTo(app);
  app.add_flag("--json", flags->json, "One JSON document");
  app.footer(
      "Examples:\n"
      "  oncilla devices\n"
      "  oncilla devices --opencl-cpu-devices --json");
  return [flags] { return Devices(*flags); };
}

}  // namespace oncilla::tool
