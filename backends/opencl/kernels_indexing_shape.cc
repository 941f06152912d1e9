// Recipes of ops that make tensors from a few numbers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/opencl/kernels.h"
#include "backends/opencl/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/indexing.h"

namespace oncilla::opencl {
namespace {

// A plan input's number as the bits that range.cl takes.
Result<uint64_t> Bits(const Tensor& value) {
  if (IsInteger(value.dtype())) {
    // Of two's complement only the low bits matter, so sign extension does no harm.
    uint64_t bits = 0;
    std::memcpy(&bits, value.bytes().data(), value.bytes().size());
    return bits;
  }
  ONCILLA_ASSIGN(const auto number, ToDoubles(value));
  if (value.dtype() == DType::kF64) return std::bit_cast<uint64_t>(number[0]);
  return std::bit_cast<uint32_t>(static_cast<float>(number[0]));
}

Result<Recipe> Range(const NoAttrs&, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  ONCILLA_ASSIGN(const uint64_t start, Bits(node.inputs[0].value));
  ONCILLA_ASSIGN(const uint64_t delta, Bits(node.inputs[2].value));
  const int kind = IsInteger(y.dtype) ? 0 : y.dtype == DType::kF64 ? 2 : 1;
  Dispatch d{.source = &cl::kIndexingRange,
             .entry = "range",
             .defines = {{"TYPE", std::string(Name(y.dtype))}, {"KIND", StrCat(kind)}},
             .args = {Out{0}, y.elements(), start, delta}};
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> OneHot(const OneHotAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + y.rank() : attrs.axis);
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const Indices index(y.elements());
  Dispatch d{.source = &cl::kIndexingOneHot,
             .entry = "one_hot",
             .defines = {{"T", std::string(MoveType(y.dtype))},
                         {"I", index.type()},
                         {"INDEX", std::string(Name(node.inputs[0].dtype))},
                         {"NEGATIVE", attrs.negative_indices ? "1" : "0"}},
             .args = {In{0}, In{2}, Out{0}, index(y.elements()), index(y.shape[axis]),
                      index(y.shape.Product(axis + 1, y.rank()))}};
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// A diagonal so far away that a place cannot reach it is as good as any such.
Arg Diagonal(int64_t k, const TensorDesc& y, const Indices& index) {
  const int64_t far = std::max(y.shape[y.rank() - 2], y.shape[y.rank() - 1]) + 1;
  return index(std::clamp(k, -far, far));
}

Result<Recipe> Trilu(const TriluAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  int64_t k = 0;
  if (node.has_input(1)) {
    ONCILLA_ASSIGN(const auto given, NeedInts(node.inputs[1], "k"));
    k = given[0];
  }
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const Indices index(y.elements());
  Dispatch d{.source = &cl::kIndexingTriangle,
             .entry = "triangle",
             .defines = {{"T", std::string(MoveType(y.dtype))},
                         {"I", index.type()},
                         {"UPPER", attrs.upper ? "1" : "0"},
                         {"TYPE", std::string(Name(y.dtype))}},
             .args = {In{0}, Out{0}, index(y.elements()), index(y.shape[y.rank() - 2]),
                      index(y.shape.back()), Diagonal(k, y, index)}};
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> EyeLike(const EyeLikeAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const Indices index(y.elements());
  Dispatch d{
      .source = &cl::kIndexingTriangle,
      .entry = "eye",
      .defines = {{"T", std::string(MoveType(y.dtype))},
                  {"I", index.type()},
                  {"UPPER", "1"},
                  {"TYPE", std::string(Name(y.dtype))}},
      .args = {Out{0}, index(y.elements()), index(y.shape.back()), Diagonal(attrs.k, y, index)}};
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

const KernelRow kRows[] = {
    MoveRow<FillMoves>("Fill"),          Row<Range>("Range", kNumbers),
    Row<OneHot>("OneHot", kIntegers),    Row<Trilu>("Trilu", kFixedSize),
    Row<EyeLike>("EyeLike", kFixedSize),
};

}  // namespace

std::span<const KernelRow> ShapeKernels() { return kRows; }

}  // namespace oncilla::opencl
