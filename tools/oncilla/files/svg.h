// An image of a classification: the photograph with its labels as bars, as one self-contained SVG
// file (the photograph is embedded; fonts are those of the viewer).
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

// Fails only if the photograph cannot be read.
Result<std::string> ClassificationSvg(const ClassificationPicture& picture);

}  // namespace oncilla::tool
