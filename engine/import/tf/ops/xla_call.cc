// XlaCallModule: a StableHLO module as one op, which is how JAX exports by default.
#include <algorithm>

#include "engine/import/stablehlo/bytecode.h"
#include "engine/import/tf/lowering.h"
#include "engine/ops/array/movement.h"

namespace oncilla {
namespace {

// The number of the platform for which a module of several is run; the module takes it as its first
// argument.
Result<int64_t> PlatformIndex(const std::vector<std::string>& platforms) {
  for (const std::string_view wanted : {"CPU", "cpu"}) {
    const auto at = std::find(platforms.begin(), platforms.end(), wanted);
    if (at != platforms.end()) return at - platforms.begin();
  }
  // A module for other devices computes the same; it differs in what it calls, which is refused
  // where it matters.
  return int64_t{0};
}

Result<Values> LowerCallModule(TfLowering& b) {
  ONCILLA_ASSIGN(std::string text, b.attrs().String("module"));
  const auto bytes = std::make_shared<const std::string>(std::move(text));
  if (!IsMlirBytecode(*bytes)) {
    return Unsupported("a module that is text, not StableHLO's portable form");
  }
  ONCILLA_ASSIGN(const HloModule module, ReadHloModule(*bytes, bytes));
  const auto main = module.functions.find("main");
  if (main == module.functions.end()) return DataLoss("the module has no function 'main'");
  const HloRegion& region = main->second;
  std::vector<std::string> platforms;
  if (b.attrs().Has("platforms")) {
    ONCILLA_ASSIGN(platforms, b.attrs().Strings("platforms"));
  }
  Values arguments;
  size_t next = 0;
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const HloType& type = module.types[static_cast<size_t>(region.argument_types[i])];
    if (type.kind == HloType::Kind::kToken) {
      arguments.push_back(kNoValue);
      continue;
    }
    if (i == 0 && platforms.size() > 1 && region.arguments.size() == b.inputs() + 1) {
      ONCILLA_ASSIGN(const int64_t platform, PlatformIndex(platforms));
      ONCILLA_ASSIGN(const ValueId number, b.Scalar(type.dtype, static_cast<double>(platform)));
      arguments.push_back(number);
      continue;
    }
    if (next >= b.inputs()) return DataLoss("the module takes more inputs than the op has");
    const ValueId input = b.in(next++);
    if (type.dtype != b.fact(input).dtype) {
      return DataLoss("input ", next - 1, " is ", b.fact(input).dtype, " and the module takes ",
                      type.dtype);
    }
    const PartialShape& shape = b.fact(input).shape;
    if (!shape.ranked()) return Unsupported("the rank of input ", next - 1, " is not known");
    if (shape.rank() != static_cast<int>(type.sizes.size())) {
      return DataLoss("input ", next - 1, " is ", shape, " and the module takes ", type.shape());
    }
    // Sizes that the file leaves open are checked by the run.
    const Result<PartialShape> merged = MergeShapes(shape, type.shape());
    if (!merged.ok()) {
      return InvalidArgument("input ", next - 1, " is ", shape, " and the module takes ",
                             type.shape());
    }
    bool checked = true;
    for (int k = 0; k < shape.rank(); ++k) {
      checked &= shape[k].known() || type.sizes[static_cast<size_t>(k)] < 0;
    }
    arguments.push_back(input);
    if (checked) continue;
    ONCILLA_ASSIGN(arguments.back(),
                   b.Add(EnsureShapeAttrs{.dims = type.sizes}, {input}, StrCat("input", next - 1)));
  }
  if (next != b.inputs()) return DataLoss("the op has more inputs than the module takes");
  return b.CallHlo(module, arguments);
}

constexpr TfOpRow kRows[] = {
    {"XlaCallModule", 0, "", LowerCallModule},
};

}  // namespace

std::span<const TfOpRow> TfXlaCallRows() { return kRows; }

}  // namespace oncilla
