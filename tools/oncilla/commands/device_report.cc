// Converts the OpenCL backend's own types to a report without private facts.
#include "tools/oncilla/commands/device_report.h"

#include <unistd.h>

#include "engine/base/hash.h"
#include "tools/oncilla/version.h"
#if ONCILLA_OPENCL
#include "backends/opencl/device.h"
#include "backends/opencl/recipes/choices.h"
#include "backends/opencl/runtime/quirks.h"
#endif

namespace oncilla::tool {
namespace {

#if ONCILLA_OPENCL
using opencl::ClDevice, opencl::DeviceFacts, opencl::ProbeResult;

Json FactsJson(const DeviceFacts& f) {
  Json json = {{"platform_version", JsonText(f.platform_version)},
               {"version", JsonText(f.version)},
               {"type", std::string(opencl::Name(f.type))},
               {"compute_units", f.compute_units},
               {"clock_mhz", f.clock_mhz},
               {"address_bits", f.address_bits},
               {"global_memory", f.global_memory},
               {"max_allocation", f.max_allocation},
               {"base_alignment", f.base_alignment},
               {"local_memory", f.local_memory},
               {"local_memory_is_real", f.local_memory_is_real},
               {"constant_memory", f.constant_memory},
               {"parameter_bytes", f.parameter_bytes},
               {"max_work_group", f.max_work_group},
               {"max_work_items", f.max_work_items},
               {"native_float_width", f.native_float_width},
               {"preferred_float_width", f.preferred_float_width},
               {"unified_memory", f.unified_memory},
               {"profiling_timer_ns", f.profiling_timer_ns}};
  json["extensions"] = Json::array();
  for (const std::string& extension : f.extensions) {
    json["extensions"].push_back(JsonText(extension));
  }
  return json;
}

Json ProbeJson(const ProbeResult& p) {
  Json json = {{"fp64", p.fp64},
               {"fp16", p.fp16},
               {"local_groups", p.local_groups},
               {"profiling", p.profiling},
               {"max_work_group", p.max_work_group},
               {"sub_group", p.sub_group},
               {"byte_dot", std::string(opencl::Name(p.byte_dot))},
               {"matrix_unit", std::string(opencl::Name(p.matrix_unit))},
               {"max_loop_trips", p.max_loop_trips}};
  json["notes"] = Json::array();
  for (const std::string& note : p.notes) json["notes"].push_back(JsonText(WithoutPrivate(note)));
  return json;
}

std::string ProbesText(const ProbeResult& p) {
  std::string text = p.local_groups ? StrCat("groups of ", p.max_work_group) : "groups of one";
  if (p.fp64) text = "double, " + text;
  if (p.fp16) text = "half, " + text;
  if (p.sub_group > 0) text += StrCat(", sub-groups of ", p.sub_group);
  if (p.byte_dot != opencl::ByteDot::kPortable) text += ", dot products of bytes";
  if (p.matrix_unit != opencl::MatrixUnit::kNone) text += ", products of matrices";
  text += p.profiling ? ", time stamps" : ", no time stamps";
  if (p.max_loop_trips > 0) text += StrCat(", loops end after ", p.max_loop_trips, " trips");
  return text;
}

void AddTuning(const ClDevice& device, DeviceReport& report) {
  int64_t layers = 0, others = 0;
  if (const auto& table = device.capabilities().tuned; table != nullptr) {
    for (const auto& [layer, choice] : table->choices()) {
      ++layers;
      others += choice.driver.empty() ? 0 : 1;
    }
  }
  report.json["tuning"] = {{"layers", layers}, {"of_another_driver", others}};
  if (layers == 0) return;
  report.tuning = StrCat(layers, layers == 1 ? " class" : " classes", " of layers tuned");
  if (others > 0) {
    report.tuning +=
        StrCat(", ", others, " of them with another driver: 'oncilla tune' measures anew");
  }
}

std::string MarkOf(const DeviceReport& report) {
  Sha256 hash;
  for (const std::string& part : {std::string("doctor 1"), std::string(kVersion), report.driver}) {
    hash.UpdateField(part);
  }
  return hash.FinishHex();
}
std::string FolderOf(const Runtime& runtime) {
  const std::string& folder = runtime.options().cache_dir;
  return folder.empty() ? opencl::UserCacheFolder() : folder;
}
#endif

void ReplaceAll(std::string& text, const std::string& what, std::string_view by) {
  if (what.size() < 3) return;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

std::string WithoutPrivate(std::string_view given) {
  std::string text;
  // A path begins where a word begins, and has at least two parts.
  for (size_t at = 0; at < given.size();) {
    const bool begins =
        given[at] == '/' &&
        (at == 0 || std::string_view(" '\"(=:").find(given[at - 1]) != std::string_view::npos);
    const size_t end = std::min(given.find_first_of(" '\"),;", at), given.size());
    const std::string_view word = given.substr(at, end - at);
    if (begins && word.find('/', 1) != word.npos) {
      text += "<path>";
      at = end;
    } else {
      text += given[at++];
    }
  }
  char host[256] = "";
  if (::gethostname(host, sizeof(host) - 1) == 0) ReplaceAll(text, host, "<host>");
  return text;
}

#if ONCILLA_OPENCL
Result<DeviceReport> ReportOf(Runtime& runtime, const ListedDevice& listed) {
  DeviceReport report;
  if (listed.info.backend != "opencl") return report;
  OpenOptions open;
  open.cache_dir = runtime.options().cache_dir;
  open.shared = &runtime.shared();
  ONCILLA_ASSIGN(const auto device, opencl::OpenClDevice(listed.info, open));
  ONCILLA_TRY(device->UseTuning("auto", nullptr));
  report.json["claims"] = FactsJson(device->facts());
  report.json["probe"] = ProbeJson(device->probe());
  report.probes = ProbesText(device->probe());
  report.json["quirks"] = Json::array();
  for (const opencl::Quirk& quirk : opencl::Quirks()) {
    if (opencl::Applies(quirk, device->facts())) report.json["quirks"].push_back(quirk.reason);
  }
  const opencl::Capabilities& caps = device->capabilities();
  report.json["shape"] = std::string(opencl::Name(caps.shape));
  report.json["cores"] = caps.cores();
  AddTuning(*device, report);
  report.driver = opencl::CacheIdentity(device->facts());
  return report;
}

bool HasPassed(const Runtime& runtime, const DeviceReport& report) {
  const std::string folder = FolderOf(runtime);
  if (folder.empty() || report.driver.empty()) return false;
  return opencl::DiskCache(folder).Load(MarkOf(report)).has_value();
}

void RememberPassed(const Runtime& runtime, const DeviceReport& report) {
  const std::string folder = FolderOf(runtime);
  if (!folder.empty() && !report.driver.empty()) {
    opencl::DiskCache(folder).Store(MarkOf(report), "passed");
  }
}
#else
Result<DeviceReport> ReportOf(Runtime&, const ListedDevice&) { return DeviceReport(); }
bool HasPassed(const Runtime&, const DeviceReport&) { return false; }
void RememberPassed(const Runtime&, const DeviceReport&) {}
#endif

}  // namespace oncilla::tool
