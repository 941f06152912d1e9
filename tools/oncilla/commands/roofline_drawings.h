// The drawings of the page of bench --roofline, as SVG inside of HTML.
#pragma once

#include <string>

#include "tools/oncilla/commands/roofline.h"

namespace oncilla::tool {

// "conv1, 12.3 us" and the like, as the tooltip of an op.
std::string TipOf(const OpRoof& op);
// Three digits: "1.23", "12.3", "123", "4560".
std::string Digits(double value);

// A run as one bar of its causes, with a legend.
std::string CausesDrawing(const Roofline& roofline);
// Rates over intensities, of the ops of the preferred device, with a legend of their kinds.
std::string PlotDrawing(const Roofline& roofline);
// The slowest ops as bars.
std::string BarsDrawing(const Roofline& roofline);

}  // namespace oncilla::tool
