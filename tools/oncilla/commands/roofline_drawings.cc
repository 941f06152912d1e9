// Sizes are in units of a drawing that is 1000 wide; the page scales it.
#include "tools/oncilla/commands/roofline_drawings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/oncilla/files/markup.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

constexpr double kWidth = 1000;
constexpr size_t kColours = 6;  // of kinds of ops; the others share one
constexpr size_t kBars = 28;

template <class... Args>
std::string Print(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

std::string Head(double height, const char* label) {
  return Print("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n", kWidth, height,
               label);
}

std::string Label(double x, double y, const char* anchor, const char* kind,
                  const std::string& text) {
  return Print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, kind) +
         Escaped(text) + "</text>\n";
}

std::string Rect(double x, double y, double width, double height, const std::string& kind) {
  return Print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\"/>", x, y,
               std::max(width, 0.0), height, kind.c_str());
}

// The text of a tip, with its lines separated.
std::string Title(const std::string& tip) {
  std::string text;
  for (size_t at = 0; at <= tip.size();) {
    const size_t end = std::min(tip.find('\n', at), tip.size());
    text += (at == 0 ? "" : "\n") + Escaped(tip.substr(at, end - at));
    at = end + 1;
  }
  return "<title>" + text + "</title>";
}

// Keeps the end of a name, which is more specific than its beginning.
std::string Tail(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  size_t at = name.size() - most + 2;
  while (at < name.size() && (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80) ++at;
  return ".." + name.substr(at);
}

std::string ClassOf(const Cause& cause) {
  const std::string key = cause.key;
  if (key.starts_with("above_")) return key.substr(6) + " above";
  return key;
}

const char* ClassOf(Bound bound) {
  return bound == Bound::kCompute ? "compute" : bound == Bound::kMemory ? "memory" : "unknown";
}

// An axis of the plot: maps powers of ten to units of the drawing.
struct Axis {
  double low, high;  // as powers of ten, whole
  double from, to;   // units
  double At(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
  double Clamped(double value) const {
    return At(std::clamp(value, std::pow(10, low), std::pow(10, high)));
  }
};

// A dot of the plot: an op of one device, with its operations.
struct Dot {
  const OpRoof* op;
  double intensity, rate;  // operations per byte, and per second in 10^9
};

std::vector<Dot> DotsOf(const Roofline& roofline) {
  std::vector<Dot> dots;
  for (const OpRoof& op : roofline.ops) {
    const NodeWork& work = op.op->work;
    if (op.op->device != roofline.peaks[0].device || !work.known || work.operations <= 0 ||
        work.bytes <= 0 || op.op->time_s <= 0) {
      continue;
    }
    dots.push_back({&op, work.operations / work.bytes, work.operations / op.op->time_s * 1e-9});
  }
  return dots;
}

// The kinds of ops that take most of the time get separate colours.
std::map<std::string, size_t> ColoursOf(const Roofline& roofline) {
  std::vector<KindOfOp> kinds = roofline.kinds;
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const KindOfOp& a, const KindOfOp& b) { return a.time_s > b.time_s; });
  std::map<std::string, size_t> colours;
  for (const KindOfOp& kind : kinds) colours[kind.op] = std::min(colours.size(), kColours);
  return colours;
}

// A roof: the slope of memory, which ends in the line of arithmetic.
std::string RoofLine(const Axis& x, const Axis& y, double bytes_per_s, double flops,
                     const char* kind) {
  const double left = std::pow(10, x.low), right = std::pow(10, x.high);
  const double low = std::pow(10, y.low) * 1e9;
  const double begin = std::max(left, low / bytes_per_s), ridge = flops / bytes_per_s;
  return Print("<path d=\"M%.1f %.1f L%.1f %.1f L%.1f %.1f\" class=\"%s\"/>\n", x.At(begin),
               y.Clamped(begin * bytes_per_s * 1e-9), x.Clamped(ridge), y.Clamped(flops * 1e-9),
               x.At(right), y.Clamped(flops * 1e-9), kind);
}

std::string Level(const Axis& x, const Axis& y, double flops, const std::string& words, bool line) {
  std::string out;
  const double at = y.Clamped(flops * 1e-9);
  if (line) {
    out = Print("<path d=\"M%.1f %.1f L%.1f %.1f\" class=\"peak less\"/>\n",
                x.from + 0.5 * (x.to - x.from), at, x.to, at);
  }
  return out + Label(x.to - 6, at - 6, "end", "strong", words);
}

std::string Grid(const Axis& x, const Axis& y) {
  std::string out;
  for (int power = static_cast<int>(x.low); power <= static_cast<int>(x.high); ++power) {
    const double at = x.At(std::pow(10, power));
    out += Print("<path d=\"M%.1f %.1f V%.1f\" class=\"grid\"/>", at, y.from, y.to);
    out += Label(at, y.from + 18, "middle", "", Digits(std::pow(10, power)));
  }
  for (int power = static_cast<int>(y.low); power <= static_cast<int>(y.high); ++power) {
    const double at = y.At(std::pow(10, power));
    out += Print("<path d=\"M%.1f %.1f H%.1f\" class=\"grid\"/>", x.from, at, x.to);
    out += Label(x.from - 8, at + 4, "end", "", Digits(std::pow(10, power)));
  }
  out += Label((x.from + x.to) / 2, y.from + 38, "middle", "", "operations per byte");
  return out + Label(x.from - 50, y.to - 14, "start", "", "10^9 operations a second");
}

std::string Roofs(const Peaks& peaks, const Axis& x, const Axis& y) {
  std::string out;
  const double memory = peaks.copy_bytes(), caches = peaks.copies.front().bytes_per_s;
  const auto named = [&](double rate, const char* what, double along) {
    // The label runs along the slope, above it.
    const double low = std::pow(10, y.low) * 1e9 / rate;
    const double begin = std::max(std::pow(10, x.low), low);
    const double at = begin * std::pow(peaks.fp32_flops / rate / begin, along);
    const double slope =
        -std::atan2(y.from - y.to, (x.to - x.from) * (y.high - y.low) / (x.high - x.low));
    const double degrees = std::atan(std::tan(slope)) * 180 / 3.14159265358979;
    return Print("<text class=\"strong\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">",
                 x.Clamped(at), y.Clamped(at * rate * 1e-9) - 6, degrees) +
           Escaped(StrCat(what, " ", Digits(rate * 1e-9), " GB/s")) + "</text>\n";
  };
  if (peaks.copies.size() > 1) {
    out += RoofLine(x, y, caches, peaks.fp32_flops, "peak less");
    out += named(caches, "caches", 0.25);
  }
  out += RoofLine(x, y, memory, peaks.fp32_flops, "peak");
  out += named(memory, "memory", 0.4);
  out += Level(x, y, peaks.fp32_flops, StrCat("fp32 ", Digits(peaks.fp32_flops * 1e-9)), false);
  if (peaks.bf16_flops) {
    // Close to the label of fp32 there is no room for another one.
    const double ratio = *peaks.bf16_flops / peaks.fp32_flops;
    const std::string words = StrCat("bf16 ", Digits(*peaks.bf16_flops * 1e-9));
    if (ratio > 1.3 || ratio < 0.75) out += Level(x, y, *peaks.bf16_flops, words, true);
  }
  if (peaks.int8_ops) {
    out += Level(x, y, *peaks.int8_ops, StrCat("int8 ", Digits(*peaks.int8_ops * 1e-9)), true);
  }
  return out;
}

Axis AxisOver(double least, double most, double from, double to) {
  const double low = std::floor(std::log10(least)), high = std::ceil(std::log10(most));
  return {low, std::max(high, low + 1), from, to};
}

// The slowest ops in separate rows, then the sum of the others.
struct BarRow {
  std::string label, tip, kind, value;
  double time_s = 0, allowed_s = 0, roof_s = 0;
  int op = -1;
};

std::vector<BarRow> BarsOf(const Roofline& roofline) {
  std::vector<BarRow> bars;
  BarRow others{.label = "", .tip = "", .kind = "outside", .value = ""};
  for (size_t i = 0; i < roofline.ops.size(); ++i) {
    const OpRoof& op = roofline.ops[i];
    if (i < kBars) {
      bars.push_back({StrCat(op.op->op, "  ", Tail(op.op->node, 30)), TipOf(op), ClassOf(op.bound),
                      HumanTime(op.op->time_s), op.op->time_s, op.allowed_s(), op.roof_s,
                      static_cast<int>(i)});
    } else {
      others.time_s += op.op->time_s;
    }
  }
  if (others.time_s > 0) {
    others.label = StrCat(roofline.ops.size() - kBars, " more");
    others.value = HumanTime(others.time_s);
    others.allowed_s = others.time_s;
    bars.push_back(others);
  }
  const double outside_s = roofline.times->outside_s();
  bars.push_back({"outside of kernels", "", "outside", HumanTime(outside_s), outside_s, outside_s});
  return bars;
}

}  // namespace

std::string Digits(double value) {
  if (value >= 100) return Print("%.0f", value);
  return Print("%.3g", value);
}

std::string TipOf(const OpRoof& roof) {
  const OpTime& op = *roof.op;
  std::string text = StrCat(op.node, "\n", op.op, ": ", op.kernel, "\n");
  if (!op.work.shapes.empty()) {
    text += StrCat(op.work.shapes, " ", op.work.dtype, "\n");
  }
  text += HumanTime(op.time_s);
  if (op.work.known) {
    if (op.work.operations > 0) {
      text += StrCat(", ", Digits(op.work.operations / op.time_s * 1e-9), " GFLOP/s");
    }
    text += StrCat(", ", Digits(op.work.bytes / op.time_s * 1e-9), " GB/s");
  }
  if (roof.bound == Bound::kUnknown) return text + "\nno roof is known";
  return text + StrCat("\nroof ", HumanTime(roof.roof_s), " by ", NameOf(roof.bound), ", ",
                       Digits(100 * roof.roof_s / op.time_s), " % of it reached");
}

std::string CausesDrawing(const Roofline& roofline) {
  std::string out = Head(44, "A run's time by cause"), legend = "<ul class=\"legend\">\n";
  const double scale = kWidth / std::max(roofline.total_s(), 1e-12);
  double at = 0;
  for (const Cause& cause : roofline.causes) {
    if (cause.time_s <= 0) continue;
    const std::string kind = ClassOf(cause);
    const std::string words = Print("%s (%.1f %%)", HumanTime(cause.time_s).c_str(),
                                    100 * cause.time_s / roofline.total_s());
    out += StrCat("<g><title>", cause.name, ": ", words, "</title>",
                  Rect(at, 4, cause.time_s * scale - 1, 36, kind), "</g>\n");
    legend +=
        StrCat("<li><i class=\"", kind, "\"></i>", cause.name, " <em>", words, "</em></li>\n");
    at += cause.time_s * scale;
  }
  return out + "</svg>\n" + legend + "</ul>\n";
}

std::string PlotDrawing(const Roofline& roofline) {
  const Peaks& peaks = roofline.peaks[0];
  std::vector<Dot> dots = DotsOf(roofline);
  double least = 1, most = 100, slowest = 1, fastest = peaks.fp32_flops * 1e-9;
  fastest =
      std::max({fastest, peaks.int8_ops.value_or(0) * 1e-9, peaks.bf16_flops.value_or(0) * 1e-9});
  for (const Dot& dot : dots) {
    least = std::min(least, dot.intensity);
    most = std::max(most, dot.intensity);
    slowest = std::min(slowest, dot.rate);
    fastest = std::max(fastest, dot.rate);
  }
  const Axis x = AxisOver(std::max(least, 1e-3), most, 64, kWidth - 12);
  const Axis y = AxisOver(std::max(slowest, 1e-3), fastest, 470, 34);
  std::string out = Head(516, "Rates of ops over their operations per byte, with the roofs");
  out += Grid(x, y);
  const std::map<std::string, size_t> colours = ColoursOf(roofline);
  std::map<std::string, int> counts;
  const double kernels_s = std::max(roofline.times->kernels_s, 1e-12);
  for (const Dot& dot : dots) {  // slowest first, so that small dots are drawn on top
    const OpTime& op = *dot.op->op;
    const double radius = 3 + 30 * std::sqrt(op.time_s / kernels_s);
    out += Print("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"k%zu\" data-op=\"%zu\">",
                 x.Clamped(dot.intensity), y.Clamped(dot.rate), std::min(radius, 20.0),
                 colours.at(op.op), static_cast<size_t>(dot.op - roofline.ops.data()));
    out += Title(TipOf(*dot.op)) + "</circle>\n";
    ++counts[op.op];
  }
  out += Roofs(peaks, x, y) + "</svg>\n<ul class=\"legend\">\n";
  std::vector<std::pair<size_t, std::string>> ordered;
  for (const auto& [op, count] : counts) ordered.emplace_back(colours.at(op), op);
  std::sort(ordered.begin(), ordered.end());
  for (const auto& [colour, op] : ordered) {
    out += StrCat("<li><i class=\"k", colour, "\"></i>", Escaped(op), " <em>", counts.at(op),
                  "</em></li>\n");
  }
  return out + "</ul>\n";
}

std::string BarsDrawing(const Roofline& roofline) {
  const std::vector<BarRow> bars = BarsOf(roofline);
  constexpr double kRow = 21, kLeft = 330, kRight = 90;
  double most = 1e-12;
  for (const BarRow& bar : bars) most = std::max(most, bar.time_s);
  const double scale = (kWidth - kLeft - kRight) / most;
  std::string out = Head(kRow * static_cast<double>(bars.size()) + 6, "The slowest ops as bars");
  double y = 4;
  for (const BarRow& bar : bars) {
    out += bar.op < 0 ? "<g>" : Print("<g data-op=\"%d\">", bar.op);
    if (!bar.tip.empty()) out += Title(bar.tip);
    out += Label(kLeft - 10, y + 12, "end", "strong", bar.label);
    out += Rect(kLeft, y, bar.time_s * scale, kRow - 5, bar.kind + " above");
    out += Rect(kLeft, y, bar.allowed_s * scale, kRow - 5, bar.kind);
    const double behind = std::clamp(bar.roof_s, bar.time_s, most) * scale;
    if (bar.roof_s > bar.time_s) {
      out +=
          Print("<path d=\"M%.1f %.1f v%.1f\" class=\"tick\"/>", kLeft + behind, y - 1, kRow - 3);
    }
    out += Label(kLeft + behind + 8, y + 12, "start", "", bar.value) + "</g>\n";
    y += kRow;
  }
  return out +
         "</svg>\n<ul class=\"legend\"><li><i class=\"compute\"></i>bound by arithmetic</li>"
         "<li><i class=\"memory\"></i>bound by memory</li><li><i class=\"unknown\"></i>no roof is "
         "known</li></ul>\n";
}

}  // namespace oncilla::tool
