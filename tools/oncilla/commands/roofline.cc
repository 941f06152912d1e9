// Computes roofs and their sums, and prints both as text and JSON.
#include "tools/oncilla/commands/roofline.h"

#include <algorithm>
#include <map>

#include "engine/placement/device_name.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

OpRoof RoofOf(const OpTime& op, const std::vector<Peaks>& all) {
  OpRoof roof{.op = &op};
  const auto peaks =
      std::find_if(all.begin(), all.end(), [&](const Peaks& p) { return p.device == op.device; });
  if (peaks == all.end() || !op.work.known) return roof;
  const double compute_s = op.work.operations / peaks->rate_of(op.work.dtype);
  const double moved = op.work.bytes - op.work.constant_bytes;
  const double memory_s = op.work.constant_bytes / peaks->read_bytes.value_or(peaks->copy_bytes()) +
                          moved / peaks->copy_rate(moved);
  roof.roof_s = std::max(compute_s, memory_s);
  roof.bound = compute_s >= memory_s ? Bound::kCompute : Bound::kMemory;
  return roof;
}

std::vector<Cause> CausesOf(const Roofline& roofline) {
  double allowed[3] = {}, above[3] = {};
  for (const OpRoof& op : roofline.ops) {
    allowed[static_cast<int>(op.bound)] += op.allowed_s();
    above[static_cast<int>(op.bound)] += op.above_s();
  }
  const int compute = static_cast<int>(Bound::kCompute), memory = static_cast<int>(Bound::kMemory);
  return {{"compute", "arithmetic at the device's peak", allowed[compute]},
          {"memory", "memory at the device's peak", allowed[memory]},
          {"above_compute", "above the roof, ops bound by arithmetic", above[compute]},
          {"above_memory", "above the roof, ops bound by memory", above[memory]},
          {"unknown", "ops without a roof", above[static_cast<int>(Bound::kUnknown)]},
          {"outside", "outside of kernels", roofline.times->outside_s()}};
}

std::vector<KindOfOp> KindsOf(const std::vector<OpRoof>& ops) {
  std::map<std::string, KindOfOp> by_name;
  for (const OpRoof& op : ops) {
    KindOfOp& kind = by_name[op.op->op];
    kind.op = op.op->op;
    kind.count += 1;
    kind.time_s += op.op->time_s;
    kind.allowed_s += op.allowed_s();
    kind.above_s += op.above_s();
  }
  std::vector<KindOfOp> kinds;
  for (auto& [name, kind] : by_name) kinds.push_back(std::move(kind));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const KindOfOp& a, const KindOfOp& b) { return a.above_s > b.above_s; });
  return kinds;
}

template <class... Args>
std::string Line(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

}  // namespace

std::string_view NameOf(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "arithmetic";
    case Bound::kMemory:
      return "memory";
    case Bound::kUnknown:
      break;
  }
  return "unknown";
}

double Roofline::total_s() const { return times->kernels_s + times->outside_s(); }

double Roofline::allowed_s() const {
  double sum = 0;
  for (const OpRoof& op : ops) sum += op.allowed_s();
  return sum;
}

Roofline RooflineOf(const OpTimes& times, std::vector<Peaks> peaks) {
  Roofline roofline;
  roofline.times = &times;
  roofline.peaks = std::move(peaks);
  for (const OpTime& op : times.ops) roofline.ops.push_back(RoofOf(op, roofline.peaks));
  roofline.kinds = KindsOf(roofline.ops);
  roofline.causes = CausesOf(roofline);
  return roofline;
}

std::string RooflineText(const Roofline& roofline) {
  std::string out = "\nroofline\n";
  for (const Peaks& peaks : roofline.peaks) {
    out += StrCat("  peaks of ", ShortDeviceName(peaks.device), ": ", PeaksText(peaks), "\n");
  }
  const double total_s = roofline.total_s();
  for (const Cause& cause : roofline.causes) {
    if (cause.time_s <= 0) continue;
    out += Line("%7.1f%% %9s  %s\n", 100 * cause.time_s / total_s, HumanTime(cause.time_s).c_str(),
                cause.name);
  }
  out += "  most above the roof:";
  for (size_t i = 0; i < roofline.kinds.size() && i < 5; ++i) {
    const KindOfOp& kind = roofline.kinds[i];
    out += Line("%s %d %s %s (%.0f %%)", i == 0 ? "" : ",", kind.count, kind.op.c_str(),
                HumanTime(kind.above_s).c_str(), 100 * kind.above_s / total_s);
  }
  return out + "\n";
}

Json RooflineJson(const Roofline& roofline) {
  Json json;
  json["peaks"] = Json::array();
  for (const Peaks& peaks : roofline.peaks) {
    Json one = PeaksJson(peaks);
    one["device"] = peaks.device;
    json["peaks"].push_back(std::move(one));
  }
  json["run_s"] = roofline.times->run_s;
  json["kernels_s"] = roofline.times->kernels_s;
  for (const Cause& cause : roofline.causes) json["causes_s"][cause.key] = cause.time_s;
  json["kinds"] = Json::array();
  for (const KindOfOp& kind : roofline.kinds) {
    json["kinds"].push_back({{"op", kind.op},
                             {"count", kind.count},
                             {"time_s", kind.time_s},
                             {"roof_s", kind.allowed_s},
                             {"above_s", kind.above_s}});
  }
  json["ops"] = Json::array();
  for (const OpRoof& op : roofline.ops) {
    json["ops"].push_back(
        {{"node", JsonText(op.op->node)},
         {"bound", NameOf(op.bound)},
         {"roof_s", op.bound == Bound::kUnknown ? Json(nullptr) : Json(op.roof_s)},
         {"above_s", op.above_s()}});
  }
  return json;
}

}  // namespace oncilla::tool
