// A roofline as one HTML file that needs nothing from outside: a plot, bars and tables; light or
// dark as the reader's system is.
#pragma once

#include <string>

#include "tools/oncilla/commands/roofline.h"

namespace oncilla::tool {

// `model`: what to call it. `facts`: what else tells one measurement from another: the processor,
// its threads, the version. The page is well-formed as XML, too.
std::string RooflinePage(const Roofline& roofline, const std::string& model,
                         const std::string& facts);

}  // namespace oncilla::tool
