// Texts about reduced precision: why an op keeps f32, the names of precisions, and reports.
#include <algorithm>
#include <map>

#include "engine/passes/precision.h"

namespace oncilla {

std::string_view WhyNotNarrow(StorageRule storage) {
  switch (storage) {
    case StorageRule::kCarries:
    case StorageRule::kBounds:
    case StorageRule::kStarts:
      return {};
    case StorageRule::kGrows:
      return "its results may be far larger or smaller than its inputs";
    case StorageRule::kSums:
      return "its sums grow with the number of terms";
    case StorageRule::kSteps:
      return "it compares or steps: a rounded number may fall on the other side";
    case StorageRule::kState:
      return "its state is fed back, and rounding would add up";
    case StorageRule::kCoordinates:
      return "its numbers are coordinates, which 16 bits cannot tell apart";
    case StorageRule::kConverts:
      return "it makes floats of another type";
    case StorageRule::kUnknown:
      break;
  }
  return "it is not known to be safe in 16 bits";
}

std::string_view PrecisionName(DType storage) {
  return storage == DType::kF16 ? "fp16" : storage == DType::kBF16 ? "bf16" : "fp32";
}

Result<DType> PrecisionFromName(std::string_view name) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (name == PrecisionName(t)) return t;
  }
  return InvalidArgument("there is no precision '", name, "'; there are fp32, fp16 and bf16");
}

std::vector<std::pair<std::string, int>> Reasons(const PrecisionReport& report) {
  std::map<std::string, int> counts;
  for (const PrecisionReport::Kept& kept : report.kept) ++counts[StrCat(kept.op, ": ", kept.why)];
  std::vector<std::pair<std::string, int>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace oncilla
