// A picture of a classification: the photograph beside its labels as bars, as one SVG file that
// needs nothing else (the photograph is embedded, fonts are whatever the viewer has).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla::tool {

struct LabelScore {
  std::string label;
  double score = 0;  // in [0, 1]
};

struct ClassificationPicture {
  std::string title;                 // what was classified
  std::string caption;               // what classified it, and where
  std::span<const std::byte> photo;  // a whole PNG or JPEG file; empty: bars only
  std::vector<LabelScore> rows;      // best first
};

// Fails only where the photograph does.
Result<std::string> ClassificationSvg(const ClassificationPicture& picture);

}  // namespace oncilla::tool
