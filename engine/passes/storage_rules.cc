// Which ops may store 16 bits, as a table, and what is said of those that may not. An op that is
// not here keeps f32: a new one is never narrow by accident.
#include <algorithm>
#include <map>

#include "engine/base/name_pattern.h"
#include "engine/passes/precision.h"

namespace oncilla {
namespace {

struct Row {
  std::string_view op;
  StorageRuling ruling;
};

constexpr std::string_view kGrows = "its results may be far larger or smaller than what comes in";
constexpr std::string_view kSums = "its sums grow with the number of terms";
constexpr std::string_view kSteps = "it jumps or compares: a rounded number may fall elsewhere";
constexpr std::string_view kState = "its state is fed back, and rounding would add up";
constexpr std::string_view kCoordinates =
    "its numbers are coordinates, which 16 bits tell apart badly";
constexpr std::string_view kConverts = "it makes floats of another type";
constexpr std::string_view kOther = "it is not known to be safe in 16 bits";

constexpr StorageRuling kStarts = {StorageRule::kStarts, {}};
constexpr StorageRuling kCarries = {StorageRule::kCarries, {}};
constexpr StorageRuling Keeps(std::string_view why) { return {StorageRule::kKeeps, why}; }

constexpr Row kRows[] = {
    // Sums are in f32 inside.
    {"Conv", kStarts},
    {"ConvTranspose", kStarts},
    {"MatMul", kStarts},
    {"Gather", kStarts},
    // So is what goes from step to step.
    {"Gru", kStarts},
    {"Lstm", kStarts},
    {"Rnn", kStarts},
    // Copies.
    {"Concat", kCarries},
    {"DepthToSpace", kCarries},
    {"Expand", kCarries},
    {"Flatten", kCarries},
    {"GatherElements", kCarries},
    {"GatherND", kCarries},
    {"Identity", kCarries},
    {"Pad", kCarries},
    {"Reshape", kCarries},
    {"Reverse", kCarries},
    {"Roll", kCarries},
    {"Slice", kCarries},
    {"SpaceToBatch", kCarries},
    {"BatchToSpace", kCarries},
    {"SpaceToDepth", kCarries},
    {"Split", kCarries},
    {"Squeeze", kCarries},
    {"StridedSlice", kCarries},
    {"Tile", kCarries},
    {"Transpose", kCarries},
    {"Unsqueeze", kCarries},
    {"Where", kCarries},
    // Averages and extremes; statistics and exponentials of these are in f32 inside.
    {"AveragePool", kCarries},
    {"BatchNorm", kCarries},
    {"ExtractPatches", kCarries},
    {"GroupNorm", kCarries},
    {"InstanceNorm", kCarries},
    {"LRN", kCarries},
    {"LayerNorm", kCarries},
    {"MaxPool", kCarries},
    {"ReduceMax", kCarries},
    {"ReduceMean", kCarries},
    {"ReduceMin", kCarries},
    {"Resize", kCarries},
    {"RmsNorm", kCarries},
    {"Softmax", kCarries},
    // Element by element, where a result is about as large as the operands or bounded.
    {"Abs", kCarries},
    {"Add", kCarries},
    {"Celu", kCarries},
    {"Clip", kCarries},
    {"Elu", kCarries},
    {"Erf", kCarries},
    {"Gelu", kCarries},
    {"HardSigmoid", kCarries},
    {"HardSwish", kCarries},
    {"LeakyRelu", kCarries},
    {"Max", kCarries},
    {"Min", kCarries},
    {"Mish", kCarries},
    {"Mul", kCarries},
    {"Neg", kCarries},
    {"PRelu", kCarries},
    {"Relu", kCarries},
    {"Relu6", kCarries},
    {"Selu", kCarries},
    {"Sigmoid", kCarries},
    {"Silu", kCarries},
    {"Softplus", kCarries},
    {"Softsign", kCarries},
    {"Sub", kCarries},
    {"Tanh", kCarries},
    {"ThresholdedRelu", kCarries},
    // Left alone.
    {"Cast", Keeps(kConverts)},
    {"Div", Keeps(kGrows)},
    {"DivNoNan", Keeps(kGrows)},
    {"Exp", Keeps(kGrows)},
    {"Expm1", Keeps(kGrows)},
    {"Log", Keeps(kGrows)},
    {"Log1p", Keeps(kGrows)},
    {"Pow", Keeps(kGrows)},
    {"Reciprocal", Keeps(kGrows)},
    {"Rsqrt", Keeps(kGrows)},
    {"Sqrt", Keeps(kGrows)},
    {"Square", Keeps(kGrows)},
    {"SquaredDifference", Keeps(kGrows)},
    {"CumProd", Keeps(kGrows)},
    {"ReduceProd", Keeps(kGrows)},
    {"CumLogSumExp", Keeps(kSums)},
    {"CumSum", Keeps(kSums)},
    {"LpNormalize", Keeps(kSums)},
    {"LpPool", Keeps(kSums)},
    {"ReduceL1", Keeps(kSums)},
    {"ReduceL2", Keeps(kSums)},
    {"ReduceLogSum", Keeps(kSums)},
    {"ReduceLogSumExp", Keeps(kSums)},
    {"ReduceSum", Keeps(kSums)},
    {"ReduceSumSquare", Keeps(kSums)},
    {"SegmentReduce", Keeps(kSums)},
    {"SortedSegmentReduce", Keeps(kSums)},
    {"ScatterElements", Keeps(kSums)},
    {"ScatterND", Keeps(kSums)},
    {"ArgMax", Keeps(kSteps)},
    {"ArgMin", Keeps(kSteps)},
    {"Ceil", Keeps(kSteps)},
    {"Equal", Keeps(kSteps)},
    {"Floor", Keeps(kSteps)},
    {"FloorDiv", Keeps(kSteps)},
    {"FloorMod", Keeps(kSteps)},
    {"Greater", Keeps(kSteps)},
    {"GreaterEqual", Keeps(kSteps)},
    {"Less", Keeps(kSteps)},
    {"LessEqual", Keeps(kSteps)},
    {"NotEqual", Keeps(kSteps)},
    {"Round", Keeps(kSteps)},
    {"Sign", Keeps(kSteps)},
    {"TopK", Keeps(kSteps)},
    {"BlockLstm", Keeps(kState)},
    {"If", Keeps(kState)},
    {"While", Keeps(kState)},
    {"AssignVariable", Keeps(kState)},
    {"ReadVariable", Keeps(kState)},
    {"Cos", Keeps(kCoordinates)},
    {"CropAndResize", Keeps(kCoordinates)},
    {"GridSample", Keeps(kCoordinates)},
    {"NonMaxSuppression", Keeps(kCoordinates)},
    {"RoiAlign", Keeps(kCoordinates)},
    {"Sin", Keeps(kCoordinates)},
};

}  // namespace

StorageRuling StorageRulingOf(std::string_view op) {
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return row == std::end(kRows) ? Keeps(kOther) : row->ruling;
}

bool NamesNode(std::string_view entry, const Node& node, const SourceNodes* sources) {
  const auto fits = [&](std::string_view name) {
    if (entry.substr(0, 3) != "op:") return MatchesPattern(entry, name);
    if (sources == nullptr) return false;
    const auto source = sources->find(name);
    return source != sources->end() && source->second.op == entry.substr(3);
  };
  if (entry.substr(0, 3) == "op:" && entry.substr(3) == node.op->name) return true;
  return fits(node.name) || std::any_of(node.sources.begin(), node.sources.end(), fits);
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
