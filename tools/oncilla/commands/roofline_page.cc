// Fills in the placeholders of roofline.html.
#include "tools/oncilla/commands/roofline_page.h"

#include <map>

#include "engine/base/format.h"
#include "engine/placement/device_name.h"
#include "tools/oncilla/commands/roofline_drawings.h"
#include "tools/oncilla/commands/roofline_html.gen.h"
#include "tools/oncilla/files/markup.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

std::string Cell(const std::string& text) { return "<td>" + Escaped(text) + "</td>"; }

// `value` is the key that the column is sorted by.
std::string Number(double value, const std::string& text) {
  char key[40];
  std::snprintf(key, sizeof(key), "%.9g", value);
  return StrCat("<td class=\"n\" data-v=\"", key, "\">", Escaped(text), "</td>");
}
std::string Time(double time_s) { return Number(time_s, time_s > 0 ? HumanTime(time_s) : "-"); }
std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return Number(share, text);
}
std::string Rate(double value) { return Number(value, value > 0 ? Digits(value) : "-"); }

// Shapes with a real arrow, because the browser could break a line within "->".
std::string ShapesOf(const OpTime& op) {
  const std::string& shapes = op.work.shapes;
  const size_t arrow = shapes.find("->");
  if (arrow == shapes.npos) return Escaped(shapes);
  return StrCat(Escaped(shapes.substr(0, arrow)), "&#8594;", Escaped(shapes.substr(arrow + 2)));
}

std::string Tile(const std::string& value, const std::string& what) {
  return StrCat("<div><b>", Escaped(value), "</b><span>", Escaped(what), "</span></div>\n");
}

std::string Tiles(const Roofline& roofline) {
  const OpTimes& times = *roofline.times;
  double operations = 0;
  for (const OpRoof& op : roofline.ops) operations += op.op->work.operations;
  const double run_s = std::max(times.run_s, 1e-12);
  const auto percent = [&](double time_s) {
    return Digits(100 * time_s / roofline.total_s()) + " %";
  };
  return Tile(HumanTime(times.run_s), "a run") +
         Tile(percent(roofline.allowed_s()), "of it is what the roof allows") +
         Tile(percent(times.outside_s()), "is outside of kernels") +
         Tile(Digits(operations / run_s * 1e-9) + " GFLOP/s", "over the whole run") +
         Tile(Digits(100 * operations / run_s / roofline.peaks[0].fp32_flops) + " %",
              "of the peak of fp32");
}

std::string KindRows(const Roofline& roofline) {
  std::string out;
  for (const KindOfOp& kind : roofline.kinds) {
    out += "<tr>" + Cell(kind.op) + Number(kind.count, StrCat(kind.count)) + Time(kind.time_s) +
           Percent(kind.time_s / roofline.total_s()) + Time(kind.allowed_s) + Time(kind.above_s) +
           Percent(kind.above_s / roofline.total_s()) + "</tr>\n";
  }
  return out;
}

std::string OpRows(const Roofline& roofline) {
  std::string out;
  for (size_t i = 0; i < roofline.ops.size(); ++i) {
    const OpRoof& roof = roofline.ops[i];
    const OpTime& op = *roof.op;
    const double seconds = std::max(op.time_s, 1e-12);
    std::string kernel = Escaped(op.kernel);
    if (op.plain) kernel = "<span class=\"bad\">" + kernel + "</span>";
    if (op.device != roofline.peaks[0].device) {
      kernel += "<small>on " + Escaped(ShortDeviceName(op.device)) + "</small>";
    }
    out +=
        StrCat("<tr data-op=\"", i, "\"><td class=\"name\">", Escaped(op.node), "<small>",
               ShapesOf(op), "</small></td>", Cell(op.op), "<td class=\"name\">", kernel, "</td>");
    out += Time(op.time_s) + Percent(op.time_s / roofline.total_s()) +
           Rate(op.work.operations / seconds * 1e-9) + Rate(op.work.bytes / seconds * 1e-9) +
           Rate(op.work.bytes > 0 ? op.work.operations / op.work.bytes : 0) +
           Cell(std::string(NameOf(roof.bound))) + Time(roof.roof_s) + Time(roof.above_s()) +
           "</tr>\n";
  }
  return out;
}

std::string PeakRows(const Roofline& roofline) {
  std::string out;
  const auto giga = [](std::optional<double> rate, const char* unit) {
    return rate ? Number(*rate, StrCat(Digits(*rate * 1e-9), " ", unit)) : Number(0, "-");
  };
  for (const Peaks& peaks : roofline.peaks) {
    std::string copies;
    for (const CopyRate& copy : peaks.copies) {
      copies += StrCat(copies.empty() ? "" : ", ", Digits(copy.bytes_per_s * 1e-9), " GB/s of ",
                       HumanBytes(static_cast<int64_t>(copy.bytes)));
    }
    out += "<tr>" + Cell(ShortDeviceName(peaks.device)) + giga(peaks.fp32_flops, "GFLOP/s") +
           giga(peaks.bf16_flops, "GFLOP/s") + giga(peaks.int8_ops, "GOP/s") +
           giga(peaks.read_bytes, "GB/s") + Cell(copies) + "</tr>\n";
  }
  return out;
}

}  // namespace

std::string RooflinePage(const Roofline& roofline, const std::string& model,
                         const std::string& facts) {
  const std::string device = ShortDeviceName(roofline.peaks[0].device);
  const std::map<std::string_view, std::string> parts = {
      {"title", Escaped(StrCat(model, " on ", device))},
      {"subtitle", Escaped(facts)},
      {"tiles", Tiles(roofline)},
      {"causes", CausesDrawing(roofline)},
      {"plot", PlotDrawing(roofline)},
      {"bars", BarsDrawing(roofline)},
      {"kinds", KindRows(roofline)},
      {"ops", OpRows(roofline)},
      {"peaks", PeakRows(roofline)},
  };
  // Replaced in one pass, so that placeholders in text that was filled in are not replaced.
  std::string_view rest = kRooflineHtml;
  std::string page;
  for (size_t at; (at = rest.find("{{")) != rest.npos;) {
    const size_t end = rest.find("}}", at);
    page += rest.substr(0, at);
    page += parts.at(rest.substr(at + 2, end - at - 2));
    rest = rest.substr(end + 2);
  }
  return page.append(rest);
}

}  // namespace oncilla::tool
