// Rows, slices, arrows and counters in Chrome's trace format, and TensorFlow's messages as bytes.
#include "engine/session/trace.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "engine/placement/device_name.h"

namespace oncilla {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out += '"';
}

// Trace events, with times in microseconds from the start of the run.
class Events {
 public:
  explicit Events(int64_t begin_ns) : begin_ns_(begin_ns) {}

  void Row(int row, std::string_view name) {
    Add(StrCat("\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":", row,
               ",\"args\":{\"name\":", Quoted(name), "}"));
    Add(StrCat("\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":", row,
               ",\"args\":{\"sort_index\":", row, "}"));
  }
  void Slice(int row, std::string_view name, std::string_view category, int64_t begin, int64_t end,
             const std::string& args) {
    Add(StrCat("\"name\":", Quoted(name), ",\"cat\":\"", category, "\",\"ph\":\"X\",\"ts\":",
               Time(begin), ",\"dur\":", Micros(std::max<int64_t>(end - begin, 0)),
               ",\"pid\":1,\"tid\":", row, ",\"args\":{", args, "}"));
  }
  void Arrow(int from, int64_t at, int to, int64_t then) {
    ++arrows_;
    Add(StrCat("\"name\":\"copy\",\"cat\":\"copy\",\"ph\":\"s\",\"id\":", arrows_,
               ",\"ts\":", Time(at), ",\"pid\":1,\"tid\":", from));
    Add(StrCat("\"name\":\"copy\",\"cat\":\"copy\",\"ph\":\"f\",\"bp\":\"e\",\"id\":", arrows_,
               ",\"ts\":", Time(std::max(at, then)), ",\"pid\":1,\"tid\":", to));
  }
  void Counter(std::string_view name, int64_t at, const std::string& args) {
    Add(StrCat("\"name\":", Quoted(name), ",\"ph\":\"C\",\"ts\":", Time(at),
               ",\"pid\":1,\"args\":{", args, "}"));
  }
  // `others` is placed where readers of trace events ignore it.
  std::string Finish(const std::string& others) && {
    return "{\"traceEvents\":[\n" + text_ + "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{" +
           others + "}}\n";
  }

 private:
  void Add(const std::string& fields) {
    if (!text_.empty()) text_ += ",\n";
    text_ += "{" + fields + "}";
  }
  static std::string Micros(int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof(text), "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    return text;
  }
  std::string Time(int64_t ns) const { return Micros(std::max<int64_t>(ns - begin_ns_, 0)); }

  const int64_t begin_ns_;
  int arrows_ = 0;
  std::string text_;
};

constexpr int kHostRow = 1;
int StepRow(int device) { return 2 + 2 * device; }
int CopyRow(int device) { return 3 + 2 * device; }

bool IsCopy(const TraceSpan& span) {
  return span.kind == TraceSpan::kUpload || span.kind == TraceSpan::kDownload;
}

// As much of Protocol Buffers' wire format as these messages need.
class Wire {
 public:
  void Int(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
  }
  void Bytes(int field, std::string_view bytes) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(bytes.size());
    out_ += bytes;
  }
  const std::string& bytes() const { return out_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

// A NodeExecStats message.
std::string NodeStats(const std::string& node, const std::string& label, int64_t begin_ns,
                      int64_t end_ns, int64_t bytes) {
  Wire stats;
  stats.Bytes(1, node);
  stats.Int(2, begin_ns / 1000);
  stats.Int(3, 0);
  stats.Int(4, (end_ns - begin_ns) / 1000);
  stats.Int(5, (end_ns - begin_ns) / 1000);
  if (bytes > 0) {
    Wire memory;  // an AllocatorMemoryUsed message
    memory.Bytes(1, "oncilla");
    memory.Int(2, bytes);
    stats.Bytes(6, memory.bytes());
  }
  stats.Bytes(8, label);
  stats.Int(13, begin_ns);
  stats.Int(15, end_ns - begin_ns);
  stats.Int(16, end_ns - begin_ns);
  return stats.bytes();
}

// The total time covered by the slices, which may overlap.
int64_t Covered(std::vector<std::pair<int64_t, int64_t>> slices) {
  std::sort(slices.begin(), slices.end());
  int64_t sum = 0, until = std::numeric_limits<int64_t>::min();
  for (const auto& [begin, end] : slices) {
    sum += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

std::string PeaksText(const RunReport& report) {
  std::string text;
  for (const OpPeak& peak : PeaksOf(report)) {
    text +=
        StrCat(text.empty() ? "" : ",", "\n{\"device\":", Quoted(ShortDeviceName(peak.device)),
               ",\"op\":", Quoted(peak.op), ",\"node\":", Quoted(peak.node),
               ",\"live_bytes\":", peak.live_bytes, ",\"output_bytes\":", peak.output_bytes, "}");
  }
  return StrCat("\"peak_by_op\":[", text, "]");
}

}  // namespace

std::vector<OpPeak> PeaksOf(const RunReport& report) {
  std::map<std::pair<int, std::string>, const StepProfile*> most;
  for (const StepProfile& s : report.stats.steps) {
    const StepProfile*& known = most[{s.device, s.op}];
    if (known == nullptr || s.live_bytes > known->live_bytes) known = &s;
  }
  std::vector<OpPeak> peaks;
  for (const auto& [key, s] : most) {
    peaks.push_back({report.devices[static_cast<size_t>(s->device)], s->op, s->node, s->live_bytes,
                     s->output_bytes});
  }
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const OpPeak& a, const OpPeak& b) { return a.live_bytes > b.live_bytes; });
  return peaks;
}

std::string ChromeTrace(const RunReport& report) {
  Events events(report.begin_ns);
  events.Row(kHostRow, "host");
  std::vector<bool> steps(report.devices.size()), copies(report.devices.size());
  for (const StepProfile& s : report.stats.steps) steps[static_cast<size_t>(s.device)] = true;
  for (const TraceSpan& s : report.stats.spans) {
    if (IsCopy(s)) copies[static_cast<size_t>(s.device)] = true;
  }
  for (size_t d = 0; d < report.devices.size(); ++d) {
    const std::string name = ShortDeviceName(report.devices[d]);
    const int device = static_cast<int>(d);
    if (steps[d]) events.Row(StepRow(device), name);
    if (copies[d]) events.Row(CopyRow(device), name + " copies");
  }
  events.Slice(kHostRow, "run", "host", report.begin_ns, report.begin_ns + report.wall_ns, "");
  for (const TraceSpan& s : report.stats.spans) {
    if (!IsCopy(s)) {
      events.Slice(kHostRow, s.name, "host", s.begin_ns, s.end_ns, "");
      continue;
    }
    events.Slice(
        CopyRow(s.device), s.name, "copy", s.begin_ns, s.end_ns,
        StrCat("\"bytes\":", s.bytes, ",\"timed_by\":\"", s.by_device ? "device" : "host", "\""));
    events.Arrow(kHostRow, s.asked_ns, CopyRow(s.device), s.begin_ns);
  }
  for (const StepProfile& s : report.stats.steps) {
    if (s.end_ns == 0) continue;  // the driver does not report it
    events.Slice(StepRow(s.device), s.node, s.op, s.start_ns, s.end_ns,
                 StrCat("\"op\":", Quoted(s.op), ",\"kernel\":", Quoted(s.kernel),
                        ",\"output_bytes\":", s.output_bytes, ",\"live_bytes\":", s.live_bytes));
    events.Counter(ShortDeviceName(report.devices[static_cast<size_t>(s.device)]) + " live bytes",
                   s.start_ns, StrCat("\"arena\":", s.live_bytes));
  }
  for (const PoolSample& p : report.pool_samples) {
    const std::string name = ShortDeviceName(p.device);
    events.Counter(
        name + " pool bytes", p.at_ns,
        StrCat("\"in_use\":", p.in_use_bytes, ",\"free\":", p.pool_bytes - p.in_use_bytes));
    events.Counter(name + " fragmentation", p.at_ns, StrCat("\"share\":", p.fragmentation));
  }
  return std::move(events).Finish(PeaksText(report));
}

std::string RunMetadata(const RunReport& report) {
  Wire step_stats;
  for (size_t d = 0; d < report.devices.size(); ++d) {
    Wire device, stream;
    bool any = false, copied = false;
    device.Bytes(1, report.devices[d]);
    stream.Bytes(1, report.devices[d] + "/stream:copies");
    for (const StepProfile& s : report.stats.steps) {
      if (static_cast<size_t>(s.device) != d) continue;
      any = true;
      device.Bytes(2, NodeStats(s.node, StrCat(s.node, " = ", s.op, "() ", s.kernel), s.start_ns,
                                s.end_ns, s.output_bytes));
    }
    for (const TraceSpan& s : report.stats.spans) {
      if (!IsCopy(s) || static_cast<size_t>(s.device) != d) continue;
      copied = true;
      const std::string name = s.kind == TraceSpan::kUpload ? "MEMCPYHtoD" : "MEMCPYDtoH";
      stream.Bytes(2,
                   NodeStats(name, StrCat(name, " ", s.bytes, " bytes"), s.begin_ns, s.end_ns, 0));
    }
    if (any) step_stats.Bytes(1, device.bytes());
    if (copied) step_stats.Bytes(1, stream.bytes());
  }
  Wire metadata;
  metadata.Bytes(1, step_stats.bytes());
  return metadata.bytes();
}

RunReport ReportOf(EnqueuedProfile profile) {
  RunReport report;
  report.devices = std::move(profile.devices);
  int64_t last = 0;
  for (const StepProfile& s : profile.steps) {
    if (s.end_ns == 0) continue;
    report.begin_ns = report.begin_ns == 0 ? s.start_ns : std::min(report.begin_ns, s.start_ns);
    last = std::max(last, s.end_ns);
  }
  report.wall_ns = last - report.begin_ns;
  report.traced = true;
  report.stats.steps = std::move(profile.steps);
  return report;
}

namespace {

// Gaps are measured from the end of all earlier steps to the start of the next one.
void MeasureGaps(const RunReport& report, int device, double wall, DeviceShare& share) {
  std::vector<const StepProfile*> steps;
  for (const StepProfile& s : report.stats.steps) {
    if (s.device == device && s.end_ns > 0) steps.push_back(&s);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  int64_t sum = 0, end = steps.empty() ? 0 : steps[0]->end_ns;
  for (const StepProfile* step : steps) {
    const int64_t gap = step->start_ns - end;
    if (gap > 0) sum += gap;
    if (gap > share.longest_gap_ns) {
      share.longest_gap_ns = gap;
      share.waited = step->node;
    }
    end = std::max(end, step->end_ns);
  }
  share.gaps = static_cast<double>(sum) / wall;
}

}  // namespace

std::vector<DeviceShare> SharesOf(const RunReport& report) {
  std::vector<DeviceShare> shares;
  const auto wall = static_cast<double>(std::max<int64_t>(report.wall_ns, 1));
  for (size_t d = 0; d < report.devices.size(); ++d) {
    std::vector<std::pair<int64_t, int64_t>> steps, copies;
    for (const StepProfile& s : report.stats.steps) {
      if (static_cast<size_t>(s.device) == d) steps.emplace_back(s.start_ns, s.end_ns);
    }
    for (const TraceSpan& s : report.stats.spans) {
      if (IsCopy(s) && static_cast<size_t>(s.device) == d) {
        copies.emplace_back(s.begin_ns, s.end_ns);
      }
    }
    if (steps.empty() && copies.empty()) continue;
    DeviceShare share{.device = report.devices[d]};
    share.busy = static_cast<double>(Covered(std::move(steps))) / wall;
    share.copying = static_cast<double>(Covered(std::move(copies))) / wall;
    MeasureGaps(report, static_cast<int>(d), wall, share);
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace oncilla
