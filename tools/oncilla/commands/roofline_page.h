// A roofline as a self-contained HTML file: a plot, bars and tables; light or dark as the reader's
// system is.
#pragma once

#include <string>

#include "tools/oncilla/commands/roofline.h"

namespace oncilla::tool {

// `model`: its name on the page. `facts`: what else distinguishes measurements: the processor, its
// threads, the version. The page is also well-formed XML.
std::string RooflinePage(const Roofline& roofline, const std::string& model,
                         const std::string& facts);

}  // namespace oncilla::tool
