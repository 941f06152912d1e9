// Prints results. Numbers are shown with as many digits as distinguish floats.
#include "tools/oncilla/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/format.h"
#include "engine/placement/device_name.h"
#include "engine/session/memory_report.h"
#include "engine/tensor/tensor_list.h"
#include "tools/oncilla/files/json_tensor.h"
#include "tools/oncilla/terminal.h"
#include "tools/oncilla/version.h"

namespace oncilla::tool {
namespace {

constexpr int64_t kShownNumbers = 6, kShownStrings = 5, kJsonElements = 100, kShownElements = 20;

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// `count` elements from `begin` on; for packed elements, `begin` is at a whole byte.
Tensor Part(const Tensor& tensor, int64_t begin, int64_t count) {
  TensorDesc desc{tensor.dtype(), {count}};
  const int64_t first = begin * BitsOf(tensor.dtype()) / 8;
  const auto bytes =
      tensor.bytes().subspan(static_cast<size_t>(first), static_cast<size_t>(desc.bytes()));
  return Tensor::View(std::move(desc), bytes, nullptr);
}

// The numbers of up to `count` elements; a complex element gives its two parts.
Result<std::vector<double>> NumbersOf(const Tensor& tensor, int64_t count) {
  const Tensor part = Part(tensor, 0, std::min(count, tensor.elements()));
  if (!IsComplex(part.dtype())) return ToDoubles(part);
  const DType real = part.dtype() == DType::kC64 ? DType::kF32 : DType::kF64;
  return ToDoubles(Tensor::View({real, {part.elements(), 2}}, part.bytes(), nullptr));
}

Json NumberJson(double v) {  // JSON has no NaN and no infinity
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

}  // namespace

namespace {

// A list, one element per line. The mark at the end of an optional sequence is not an element.
std::string PrintList(const std::string& name, const TensorList& list) {
  int64_t count = list.size();
  if (count > 0 && !list.at(count - 1).valid()) --count;
  std::string out = StrCat(OneLine(name), "  list of ", count, " ", list.dtype(), "\n");
  for (int64_t i = 0; i < std::min(count, kShownElements); ++i) {
    if (list.at(i).valid()) out += "  " + PrintTensor(StrCat(i), list.at(i));
  }
  return out + (count > kShownElements ? "  ..\n" : "");
}

Json ListJson(const std::string& name, const TensorList& list) {
  int64_t count = list.size();
  if (count > 0 && !list.at(count - 1).valid()) --count;
  Json json;
  json["name"] = JsonText(name);
  json["dtype"] = std::string(Name(list.dtype()));
  json["shape"] = Json::array({count});
  json["elements"] = Json::array();
  for (int64_t i = 0; i < std::min(count, kJsonElements); ++i) {
    if (list.at(i).valid()) json["elements"].push_back(TensorJson(StrCat(i), list.at(i)));
  }
  return json;
}

}  // namespace

std::string PrintTensor(const std::string& name, const Tensor& tensor) {
  if (tensor.is_list()) return PrintList(name, tensor.list());
  std::string out = StrCat(OneLine(name), "  ", tensor.desc(), " ");
  const int64_t count = tensor.elements();
  if (tensor.dtype() == DType::kString) {
    for (int64_t i = 0; i < std::min(count, kShownStrings); ++i) {
      out += " " + nlohmann::json(JsonText(tensor.strings()[static_cast<size_t>(i)])).dump();
    }
    return out + (count > kShownStrings ? " ..\n" : "\n");
  }
  const auto first = NumbersOf(tensor, kShownNumbers);
  if (!first.ok() || count == 0) return out + (count == 0 ? " (empty)\n" : "\n");
  if (IsComplex(tensor.dtype())) {
    for (size_t i = 0; i < first->size(); i += 2) {
      const double imaginary = (*first)[i + 1];
      out += StrCat(" ", Number((*first)[i]), imaginary < 0 ? "" : "+", Number(imaginary), "j");
    }
    return out + (count > kShownNumbers ? " ..\n" : "\n");
  }
  for (const double v : *first) out += " " + Number(v);
  if (count > kShownNumbers) {
    double least = INFINITY, most = -INFINITY, sum = 0;
    int64_t numbers = 0;
    constexpr int64_t kPiece = 1 << 16;  // a result may take most of the memory
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      const auto piece = ToDoubles(Part(tensor, begin, std::min(count - begin, kPiece)));
      for (const double v : piece.value_or(std::vector<double>())) {
        if (std::isnan(v)) continue;
        least = std::min(least, v);
        most = std::max(most, v);
        sum += v;
        ++numbers;
      }
    }
    out += " ..";
    if (numbers > 0) {
      out += StrCat("  (min ", Number(least), ", max ", Number(most), ", mean ",
                    Number(sum / static_cast<double>(numbers)), ")");
    }
    if (numbers < count) out += StrCat("  ", count - numbers, " NaN");
  }
  return out + "\n";
}

std::string JsonText(std::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

Json TensorJson(const std::string& name, const Tensor& tensor) {
  if (tensor.is_list()) return ListJson(name, tensor.list());
  Json json;
  json["name"] = JsonText(name);
  json["dtype"] = std::string(Name(tensor.dtype()));
  json["shape"] = Json::array();
  for (int64_t size : tensor.shape()) json["shape"].push_back(size);
  if (tensor.elements() > kJsonElements) return json;
  if (tensor.dtype() == DType::kString) {
    json["data"] = Json::array();
    for (const std::string& value : tensor.strings()) json["data"].push_back(JsonText(value));
  } else if (tensor.dtype() == DType::kU64) {
    json["data"] = Json::array();
    for (uint64_t v : tensor.As<uint64_t>()) json["data"].push_back(v);
  } else if (const auto whole = ToInt64s(tensor); whole.ok()) {
    json["data"] = *whole;
  } else if (const auto values = NumbersOf(tensor, kJsonElements); values.ok()) {
    json["data"] = Json::array();
    for (size_t i = 0; i < values->size(); ++i) {
      if (!IsComplex(tensor.dtype())) {
        json["data"].push_back(NumberJson((*values)[i]));
      } else if (i % 2 == 1) {  // a pair
        json["data"].push_back({NumberJson((*values)[i - 1]), NumberJson((*values)[i])});
      }
    }
  }
  return json;
}

std::string CostLine(const RunReport& report, Session& session) {
  std::string out = report.Line();
  std::string peaks;
  for (const DeviceMemory& memory : session.memory().Devices()) {
    if (memory.peak_bytes == 0) continue;
    peaks += StrCat(peaks.empty() ? "" : ", ", HumanBytes(memory.peak_bytes), " on ",
                    ShortDeviceName(memory.device));
  }
  if (!peaks.empty()) out += "; memory peak " + peaks;
  return out + "; " + HumanTime(static_cast<double>(report.wall_ns) * 1e-9);
}

Json DocumentJson(std::string_view command) {
  Json json;
  json["schema_version"] = 1;
  json["command"] = command;
  json["oncilla"] = {{"version", kVersion}, {"build", BuildFacts()}};
  return json;
}

Json DevicesJson(Session& session) {
  Json list = Json::array();
  for (size_t i = 0; i < session.device_set().devices().size(); ++i) {
    const DeviceInfo& info = session.device_set().devices()[i]->info();
    list.push_back({{"name", session.device_set().names()[i]},
                    {"backend", info.backend},
                    {"device", JsonText(info.name)},
                    {"driver", JsonText(info.driver)},
                    {"preferred", static_cast<int>(i) == session.device_set().preferred()}});
  }
  return list;
}

Json MemoryJson(const Session& session) { return Json::parse(DeviceMemoryJson(session)); }

Json ShareJson(const DeviceShare& share) {
  return {{"device", share.device},
          {"busy", share.busy},
          {"copying", share.copying},
          {"gaps", share.gaps},
          {"longest_gap_s", static_cast<double>(share.longest_gap_ns) * 1e-9},
          {"waited", share.waited}};
}

std::string ShareLine(const DeviceShare& share) {
  char text[120];
  std::snprintf(text, sizeof(text),
                "%.0f %% of the run in kernels, %.0f %% in copies, %.0f %% between kernels",
                100 * share.busy, 100 * share.copying, 100 * share.gaps);
  std::string line = StrCat(share.device, ": ", text);
  if (share.longest_gap_ns > 0) {
    std::snprintf(text, sizeof(text), ", at most %.3f ms before '",
                  static_cast<double>(share.longest_gap_ns) * 1e-6);
    line += text + share.waited + "'";
  }
  return line;
}

Json RunReportJson(const RunReport& report) {
  Json json;
  json["nodes"] = Json::array();
  for (size_t i = 0; i < report.devices.size(); ++i) {
    json["nodes"].push_back({{"device", report.devices[i]}, {"count", report.nodes_on[i]}});
  }
  json["host_nodes"] = report.host_nodes;
  json["planned_nodes"] = report.planned_nodes;
  json["refusals"] = Json::array();
  for (const auto& [reason, count] : report.refusals) {
    json["refusals"].push_back({{"reason", JsonText(reason)}, {"nodes", count}});
  }
  json["relaxed"] = Json::array();
  for (const auto& [reason, count] : report.relaxed) {
    json["relaxed"].push_back({{"reason", JsonText(reason)}, {"nodes", count}});
  }
  json["copies"] = report.stats.copies;
  json["copied_bytes"] = report.stats.copied_bytes;
  json["segments"] = report.stats.segments;
  json["flushes"] = report.flushes;
  json["waits"] = report.waits;
  json["wall_ns"] = report.wall_ns;
  return json;
}

Json CountersJson(const ModelCounters& counters) {
  return {{"graphs_compiled", counters.graphs_compiled},
          {"plans_made", counters.plans_made},
          {"instances_made", counters.instances_made},
          {"constants_packed", counters.constants_packed},
          {"constant_bytes", counters.constant_bytes},
          {"kernels_built", counters.kernels_built}};
}

Status PrintResult(std::string_view result) {
  const std::string text = Printable(result);
  const bool ok =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (ok) return {};
  return WithStage(Error(Code::kUnavailable, "cannot write to standard output"), Stage::kFile);
}

Status PrintDocument(const Json& json) { return PrintResult(json.dump(2) + "\n"); }

}  // namespace oncilla::tool
